//! Leases: which claims this worker holds, how long it may trust them, and the keeper that extends them in time.
//!
//! The trust is counted by this machine's timer and always ends before the store's own lease can. Losing a claim
//! cancels its handler; a claim leaves the table exactly once: finished, lost, or taken at the stop.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    select,
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::engine::outage::Call;
use crate::engine::report::{Happening, Loss, Witness};
use crate::engine::route_store::RouteStore;
use crate::engine::tick::{Patience, after};
use crate::store::{Claim, DropReason, Settled, Token};

/// For how long an answer of the store makes a claim ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    extend_at: Instant,
    trusted_until: Instant,
}

impl Term {
    /// The term of a lease of `lease` that was asked for at `asked_at`.
    pub(crate) fn new(asked_at: Instant, lease: Duration) -> Self {
        // Counted from before the request left, so that a slow answer cannot make us trust it longer than the store
        // does; the margin covers timers that run apart.
        let margin = (lease / 10).min(Duration::from_secs(1));
        Self { extend_at: after(asked_at, lease / 3), trusted_until: after(asked_at, lease - margin) }
    }

    pub(crate) fn is_trusted_at(&self, instant: Instant) -> bool {
        instant < self.trusted_until
    }
}

/// One claim in the table, as its holder sees it.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    pub(crate) key: u64,
    pub(crate) claim: Arc<Claim>,
    /// Fires when the claim is lost, or when the time to finish it at a stop is over.
    pub(crate) cancelled: CancellationToken,
}

/// A claim that left the table while it was still ours.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Until when it may be settled.
    pub(crate) until: Instant,
    /// Whether its handler had been cancelled by the stop.
    pub(crate) stopped: bool,
}

/// The claims a worker holds.
#[derive(Debug)]
pub(crate) struct Leases {
    table: Mutex<Table>,
    changed: Notify,
    witness: Witness,
}

#[derive(Debug, Default)]
struct Table {
    held: HashMap<u64, Held>,
    last_key: u64,
    /// When the keeper means to wake next.
    planned: Option<Instant>,
    stopped: bool,
}

#[derive(Debug)]
struct Held {
    holding: Holding,
    term: Term,
}

impl Leases {
    pub(crate) fn new(witness: Witness) -> Self {
        Self { table: Mutex::default(), changed: Notify::new(), witness }
    }

    /// Takes a claim into the table.
    pub(crate) fn hold(&self, claim: Claim, term: Term) -> Holding {
        let mut table = self.table();
        table.last_key += 1;
        let holding = Holding { key: table.last_key, claim: Arc::new(claim), cancelled: CancellationToken::new() };
        table.held.insert(holding.key, Held { holding: holding.clone(), term });
        if table.planned.is_none_or(|planned| term.extend_at < planned) {
            self.changed.notify_one();
        }
        holding
    }

    /// How many claims are held.
    pub(crate) fn len(&self) -> usize {
        self.table().held.len()
    }

    /// Takes a claim out because its handler has ended; `None` if it was lost before.
    pub(crate) fn finish(&self, key: u64) -> Option<Finished> {
        let mut table = self.table();
        let held = table.held.remove(&key)?;
        Some(Finished { until: held.term.trusted_until, stopped: table.stopped })
    }

    /// Takes a claim out because it is lost, and cancels its handler.
    pub(crate) fn lose(&self, key: u64, loss: Loss) {
        let Some(held) = self.table().held.remove(&key) else { return };
        held.holding.cancelled.cancel();
        let Claim { notice, attempt, .. } = &*held.holding.claim;
        self.witness.tell(&Happening::Lost { notice, attempt: *attempt, loss });
    }

    /// Takes a claim out because its notice is void, and cancels its handler.
    pub(crate) fn void(&self, key: u64, reason: Option<DropReason>) {
        let Some(held) = self.table().held.remove(&key) else { return };
        held.holding.cancelled.cancel();
        let Claim { notice, attempt, .. } = &*held.holding.claim;
        self.witness.tell(&Happening::Voided { notice, attempt: *attempt, outcome: None, reason });
    }

    /// Takes a claim out because the store does not know it any more.
    pub(crate) fn stale(&self, key: u64) {
        // While its lease is trusted nobody else can have got the notice, so it was settled by what made it void.
        let now = Instant::now();
        if self.table().held.get(&key).is_some_and(|held| held.term.is_trusted_at(now)) {
            self.void(key, None);
        } else {
            self.lose(key, Loss::Stale);
        }
    }

    /// Cancels all handlers, because the time to finish is over. The claims stay.
    pub(crate) fn cancel_all(&self) {
        let mut table = self.table();
        table.stopped = true;
        table.held.values().for_each(|held| held.holding.cancelled.cancel());
    }

    /// Takes all claims out, to be given back.
    pub(crate) fn take_all(&self) -> Vec<(Arc<Claim>, Instant)> {
        self.table().held.drain().map(|(_, held)| (held.holding.claim, held.term.trusted_until)).collect()
    }

    /// Loses what can no longer be trusted.
    pub(crate) fn expire(&self, now: Instant) {
        let expired = |held: &Held| held.term.trusted_until <= now;
        let keys: Vec<u64> = self.table().held.iter().filter(|(_, held)| expired(held)).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.lose(key, Loss::Expired));
        self.witness.log_losses();
    }

    /// The claims to extend, if any has to be extended by `now`: those due within `slack` go along.
    fn due(&self, now: Instant, slack: Duration, limit: usize) -> Vec<(u64, Token)> {
        let table = self.table();
        let due = |by: Instant| table.held.iter().filter(move |(_, held)| held.term.extend_at <= by);
        if due(now).next().is_none() {
            return Vec::new();
        }
        due(after(now, slack)).take(limit).map(|(key, held)| (*key, held.holding.claim.token.clone())).collect()
    }

    fn prolong(&self, key: u64, term: Term) {
        if let Some(held) = self.table().held.get_mut(&key) {
            held.term = term;
        }
    }

    fn postpone(&self, key: u64, extend_at: Instant) {
        if let Some(held) = self.table().held.get_mut(&key) {
            held.term.extend_at = extend_at;
        }
    }

    /// When the keeper has to look next; it is told of anything earlier.
    fn plan(&self, instant: impl Fn(&Term) -> Instant) -> Option<Instant> {
        let mut table = self.table();
        table.planned = table.held.values().map(|held| instant(&held.term)).min();
        table.planned
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Extends the leases of what takes long, in batches, at a third of their time.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    leases: Arc<Leases>,
    store: Arc<RouteStore>,
    patience: Patience,
}

impl LeaseKeeper {
    const BATCH: usize = 500;

    pub(crate) fn new(leases: Arc<Leases>, store: Arc<RouteStore>) -> Self {
        Self { leases, store, patience: Patience::new() }
    }

    pub(crate) async fn run(&mut self) -> Infallible {
        loop {
            let plan = self.leases.plan(|term| term.extend_at.min(term.trusted_until));
            if plan.is_none() {
                self.store.answered(Call::Extend);
            }
            select! {
                () = until(plan) => self.run_once().await,
                () = self.leases.changed.notified() => {}
            }
        }
    }

    /// Extends what is due and loses what is over.
    async fn run_once(&mut self) {
        let (asked_at, lease) = (Instant::now(), self.store.lease());
        self.leases.expire(asked_at);
        let (keys, tokens): (Vec<u64>, Vec<Token>) =
            self.leases.due(asked_at, lease / 12, Self::BATCH).into_iter().unzip();
        if keys.is_empty() {
            return;
        }
        let mut extending = pin!(self.store.extend(&tokens, lease));
        let answer = loop {
            // Trust ends on time, however long the store thinks about it.
            let first_end = self.leases.plan(|term| term.trusted_until);
            select! {
                answer = &mut extending => break answer,
                () = until(first_end) => self.leases.expire(Instant::now()),
                () = self.leases.changed.notified() => {}
            }
        };
        match answer {
            Ok(answers) => {
                self.patience.reset();
                for (key, settled) in keys.into_iter().zip(answers) {
                    match settled {
                        Settled::Settled => self.leases.prolong(key, Term::new(asked_at, lease)),
                        Settled::Dropped(reason) => self.leases.void(key, Some(reason)),
                        _ => self.leases.stale(key),
                    }
                }
                self.leases.witness.log_losses();
            }
            Err(_) => {
                let again_at = Instant::now() + self.patience.next_delay_within(lease);
                keys.into_iter().for_each(|key| self.leases.postpone(key, again_at));
            }
        }
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::delivery::tests::claim;
    use crate::engine::report::tests::witness;

    fn leases() -> Leases {
        Leases::new(witness(None))
    }

    #[test]
    fn a_lease_is_trusted_from_before_it_was_asked_for_and_shorter_than_it_is() {
        let asked_at = Instant::now();
        let term = Term::new(asked_at, Duration::from_secs(60));
        assert_eq!(term.trusted_until, asked_at + Duration::from_secs(59));
        assert_eq!(term.extend_at, asked_at + Duration::from_secs(20));
        let short = Term::new(asked_at, Duration::from_millis(300));
        assert_eq!(short.trusted_until, asked_at + Duration::from_millis(270));
    }

    #[test]
    fn a_claim_leaves_the_table_only_once() {
        let leases = leases();
        let holding = leases.hold(claim("a", None), Term::new(Instant::now(), Duration::from_secs(60)));
        leases.lose(holding.key, Loss::Stale);
        assert!(holding.cancelled.is_cancelled());
        assert!(leases.finish(holding.key).is_none());
        leases.lose(holding.key, Loss::Stale);
        assert_eq!((leases.witness.totals().lost, leases.len()), (1, 0));
    }

    #[test]
    fn a_claim_the_store_does_not_know_is_void_while_its_lease_is_trusted_and_else_lost() {
        let leases = leases();
        let (now, lease) = (Instant::now(), Duration::from_secs(60));
        let trusted = leases.hold(claim("trusted", None), Term::new(now, lease));
        let ended = leases.hold(claim("ended", None), Term::new(now, Duration::ZERO));
        leases.stale(trusted.key);
        leases.stale(ended.key);
        let totals = leases.witness.totals();
        assert_eq!((totals.voided, totals.lost), (1, 1));
        assert!(trusted.cancelled.is_cancelled() && ended.cancelled.is_cancelled());
    }

    #[test]
    fn a_lease_that_was_not_extended_in_time_is_lost() {
        let leases = leases();
        let (now, lease) = (Instant::now(), Duration::from_secs(60));
        let old = leases.hold(claim("old", None), Term::new(now, lease));
        let new = leases.hold(claim("new", None), Term::new(now + lease, lease));
        leases.expire(now + lease);
        assert!(old.cancelled.is_cancelled() && !new.cancelled.is_cancelled());
    }

    #[test]
    fn leases_due_soon_are_extended_along_with_one_that_is_due() {
        let leases = leases();
        let (now, lease) = (Instant::now(), Duration::from_secs(60));
        for (id, ahead) in [("a", 0), ("b", 4), ("c", 6)] {
            leases.hold(claim(id, None), Term::new(now + Duration::from_secs(ahead), lease));
        }
        let due = |at| leases.due(now + Duration::from_secs(at), lease / 12, 500).len();
        assert_eq!((due(19), due(20), due(24)), (0, 2, 3));
    }

    #[test]
    fn a_stop_cancels_handlers_and_leaves_their_claims_to_be_given_back() {
        let leases = leases();
        let term = Term::new(Instant::now(), Duration::from_secs(60));
        let (first, second) = (leases.hold(claim("a", None), term), leases.hold(claim("b", None), term));
        leases.cancel_all();
        assert!(first.cancelled.is_cancelled() && second.cancelled.is_cancelled());
        assert!(leases.finish(first.key).is_some_and(|finished| finished.stopped));
        assert_eq!(leases.take_all().len(), 1);
    }
}
