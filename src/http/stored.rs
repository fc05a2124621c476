//! What the store holds, as metrics: asked for at each scrape, the same whichever daemon is asked.

use std::fmt;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode_registry},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::http::App;
use crate::store::{Dropped, RouteStats, Stats, StoreError};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct In {
    namespace: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct On {
    namespace: String,
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct For {
    namespace: String,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    namespace: String,
    route: String,
    kind: &'static str,
}

/// Makes the figures of a namespace: name, help, and where in its stats they stand.
macro_rules! figures {
    ($type:ident, $metric:ty, $set:ident; $($name:ident: $help:literal = $from:expr;)+) => {
        #[derive(Debug, Default)]
        struct $type { $($name: Family<In, $metric>,)+ }

        impl $type {
            fn register(&self, registry: &mut Registry) {
                $(registry.register(stringify!($name), $help, self.$name.clone());)+
            }

            fn fill(&self, namespace: &In, stats: &Stats) {
                $({
                    let from: fn(&Stats) -> u64 = $from;
                    $set(&self.$name.get_or_create(namespace), from(stats));
                })+
            }
        }
    };
}

figures! { Now, Gauge, set;
    armed_deadlines: "Armed deadlines" = |stats| stats.armed;
    overdue_deadlines: "Armed deadlines that have expired and that no worker has swept yet" = |stats| stats.overdue;
    open_cleanups: "Cleanups that are not settled yet" = |stats| stats.open;
    dead_letters: "Notices given up" = |stats| stats.dead;
    reviews: "Notices parked for a person" = |stats| stats.review;
    quarantined_ids: "Ids whose score cannot be an expiry" = |stats| stats.quarantined;
}

figures! { SoFar, Counter, add;
    hand_outs: "Hand-outs, first and repeated" = |stats| stats.counters.handed_out;
    acked: "Claims settled as done" = |stats| stats.counters.acked;
    failed: "Failures recorded" = |stats| stats.counters.failed;
    lease_expired: "Hand-outs whose worker vanished" = |stats| stats.counters.lapsed;
    dead_lettered: "Notices that became dead letters" = |stats| stats.counters.dead;
    parked_for_review: "Notices that were parked for a person" = |stats| stats.counters.review;
    skipped: "Reminders that stay silent because their deadline was set inside their lead" = |stats| stats.counters.skipped;
    quarantined: "Ids moved to quarantine" = |stats| stats.counters.quarantined;
    resynced: "Key-backed: expiries corrected because the key had another one" = |stats| stats.counters.resynced;
    persisted: "Key-backed: ids disarmed because their key has no TTL any more" = |stats| stats.counters.persisted;
    gone: "Key-backed: ids whose key vanished before its time" = |stats| stats.counters.gone;
}

fn set(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

fn add(counter: &Counter, value: u64) {
    counter.inc_by(value);
}

/// The figures of one scrape.
#[derive(Debug)]
pub(super) struct Stored {
    registry: Registry,
    now: Now,
    so_far: SoFar,
    dropped: Family<For, Counter>,
    pending: Family<On, Gauge>,
    due: Family<On, Gauge>,
    oldest: Family<On, Gauge<f64, std::sync::atomic::AtomicU64>>,
    paused: Family<Of, Gauge>,
    catching_up: Family<Of, Gauge>,
    up: Gauge,
    skew: Gauge<f64, std::sync::atomic::AtomicU64>,
}

impl Stored {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("forewarn");
        let theirs = registry.sub_registry_with_label(("source".into(), "store".into()));
        let (now, so_far) = (Now::default(), SoFar::default());
        now.register(theirs);
        so_far.register(theirs);
        let dropped = Family::default();
        theirs.register("dropped", "Deliveries dropped, by reason", dropped.clone());
        let pending = Family::default();
        theirs.register("pending_deliveries", "Deliveries in flight or waiting", pending.clone());
        let due = Family::default();
        theirs.register("due_deliveries", "Deliveries that may be handed out now", due.clone());
        let oldest = Family::default();
        theirs.register("oldest_due_seconds", "How long the oldest of those has been due", oldest.clone());
        let paused = Family::default();
        theirs.register("paused", "1 if paused; route is empty for the whole namespace", paused.clone());
        let catching_up = Family::default();
        let help = "The most that flows a second after a resume, 0 if it is not limited; route is empty for the whole namespace";
        theirs.register("catching_up_limit", help, catching_up.clone());
        let ours = registry.sub_registry_with_label(("source".into(), "process".into()));
        let up = Gauge::default();
        ours.register("store_up", "1 if the store answers", up.clone());
        let skew = Gauge::default();
        ours.register("clock_skew_seconds", "How far the store's clock is ahead of this machine's", skew.clone());
        Self { registry, now, so_far, dropped, pending, due, oldest, paused, catching_up, up, skew }
    }

    /// Asks the store about all namespaces.
    pub(super) async fn fill(&mut self, app: &App) -> Result<(), StoreError> {
        const AT_ONCE: usize = 8;
        let forewarn = app.forewarn();
        let namespaces = forewarn.namespaces().await?;
        let asked = namespaces.into_iter().map(|registered| async move {
            match forewarn.namespace(registered.name.as_str()).stats().await {
                // Forgotten meanwhile.
                Err(StoreError::Unconfigured { .. }) => Ok(None),
                stats => stats.map(Some),
            }
        });
        let all: Vec<Option<Stats>> = stream::iter(asked).buffer_unordered(AT_ONCE).try_collect().await?;
        all.iter().flatten().for_each(|stats| self.add(stats));
        Ok(())
    }

    fn add(&self, stats: &Stats) {
        let namespace = In { namespace: stats.namespace.to_string() };
        self.now.fill(&namespace, stats);
        self.so_far.fill(&namespace, stats);
        let In { namespace } = namespace;
        let Dropped { superseded, expired, coalesced, lead } = stats.counters.dropped;
        for (reason, count) in
            [("superseded", superseded), ("expired", expired), ("coalesced", coalesced), ("lead", lead)]
        {
            self.dropped.get_or_create(&For { namespace: namespace.clone(), reason }).inc_by(count);
        }
        let routes = stats.routes.iter().map(|route| (route.route.to_string(), &route.paused, route.catching_up));
        for (route, paused, limit) in routes.chain([(String::new(), &stats.paused, stats.catching_up)]) {
            let kinds = [("reminder", paused.reminders, limit.reminders), ("cleanup", paused.cleanups, limit.cleanups)];
            for (kind, is_paused, limit) in kinds {
                let labels = Of { namespace: namespace.clone(), route: route.clone(), kind };
                self.paused.get_or_create(&labels).set(i64::from(is_paused));
                self.catching_up.get_or_create(&labels).set(i64::from(limit.unwrap_or(0)));
            }
        }
        for RouteStats { route, pending, due, oldest_due_ms, .. } in &stats.routes {
            let labels = On { namespace: namespace.clone(), route: route.to_string() };
            set(&self.pending.get_or_create(&labels), *pending);
            set(&self.due.get_or_create(&labels), *due);
            let oldest = std::time::Duration::from_millis(oldest_due_ms.unwrap_or(0).unsigned_abs());
            self.oldest.get_or_create(&labels).set(oldest.as_secs_f64());
        }
    }

    /// Adds what this process knows of the store.
    pub(super) fn say_whether_up(&self, is_up: bool, skew_ms: Option<i64>) {
        self.up.set(i64::from(is_up));
        if let Some(ms) = skew_ms {
            let skew = std::time::Duration::from_millis(ms.unsigned_abs()).as_secs_f64();
            self.skew.set(if ms < 0 { -skew } else { skew });
        }
    }

    /// Writes them.
    pub(super) fn write(&self, text: &mut String) -> fmt::Result {
        encode_registry(text, &self.registry)
    }
}
