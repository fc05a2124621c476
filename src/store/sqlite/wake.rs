//! Waking workers that sleep: those of this process by a broadcast, those of others by what stands in the file.
//!
//! Each route holds the instant by which its worker will claim again. Whatever comes due earlier moves it, counts a wake and
//! is told. Other processes look whether the file has changed, while somebody listens.

use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::{Instant, Interval, MissedTickBehavior},
};

use crate::model::Name;
use crate::store::{StoreError, Wakeups};

use super::{
    desk::{Desk, Woken},
    error::Fault,
    operation::{Operation, Stored},
    task::Intake,
};

/// How often a listener looks whether another process has changed the file.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Operation<'_> {
    /// Something comes due at `at`.
    pub(super) fn comes_due(&mut self, at: i64) {
        self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
    }

    /// Wakes the workers of all routes that would sleep beyond what came due. Call once, after everything else.
    pub(super) fn wake(&self) -> Result<(), Fault> {
        self.wake_routes(None)
    }

    /// The same for one route.
    pub(super) fn wake_route(&self, route: &Name) -> Result<(), Fault> {
        self.wake_routes(Some(route.as_str()))
    }

    fn wake_routes(&self, only: Option<&str>) -> Result<(), Fault> {
        let Some(earliest) = self.earliest else { return Ok(()) };
        let at_ms = earliest.max(self.now);
        let woken = self.desk.run(
            "UPDATE route SET wake_at = ?2, wakes = wakes + 1, woken_by = ?3
             WHERE namespace = ?1 AND wake_at > ?2 AND (?4 IS NULL OR name = ?4)",
            (self.scope.key, at_ms, self.desk.instance, only),
        )?;
        if woken > 0 {
            let namespace = self.scope.namespace.clone();
            self.desk.woken.borrow_mut().push(Woken { namespace, at_ms });
        }
        Ok(())
    }
}

/// What a look at the file found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// Changes when another connection has changed the file.
    data_version: i64,
    routes: Vec<RouteSeen>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RouteSeen {
    name: String,
    /// How often it was woken.
    wakes: i64,
    /// By which store instance last.
    woken_by: Option<i64>,
    wake_at: Option<i64>,
}

/// Looks at the file for the first time.
pub(super) fn look(desk: &Desk, namespace: &Name) -> Result<Seen, Fault> {
    let data_version = desk.one("PRAGMA data_version", [], |row| row.get(0))?;
    let key = Stored::read(desk, namespace)?.map(|stored| stored.key);
    let key = key.ok_or_else(|| StoreError::Unconfigured { namespace: namespace.clone() })?;
    let routes = desk.rows("SELECT name, wakes, woken_by, wake_at FROM route WHERE namespace = ?1", [key], |row| {
        Ok(RouteSeen { name: row.get(0)?, wakes: row.get(1)?, woken_by: row.get(2)?, wake_at: row.get(3)? })
    })?;
    Ok(Seen { data_version, routes })
}

/// Looks again; nothing if the file has not changed.
fn look_again(desk: &Desk, namespace: &Name, data_version: i64) -> Result<Option<Seen>, Fault> {
    let now: i64 = desk.one("PRAGMA data_version", [], |row| row.get(0))?;
    if now == data_version { Ok(None) } else { look(desk, namespace).map(Some) }
}

impl Seen {
    /// The earliest instant for which somebody else has woken a route since `before`. What this process wakes, its listeners
    /// hear at once.
    fn news_since(&self, before: &Self, instance: i64) -> Option<i64> {
        let is_news = |route: &&RouteSeen| {
            let known = before.routes.iter().find(|known| known.name == route.name);
            known.is_some_and(|known| known.wakes != route.wakes) && route.woken_by != Some(instance)
        };
        self.routes.iter().filter(is_news).filter_map(|route| route.wake_at).min()
    }
}

/// A listener for one namespace: hears this process by `news`, others through the file. It ends when the store is dropped.
pub(super) fn listen(
    namespace: Name,
    instance: i64,
    news: broadcast::Receiver<Woken>,
    watcher: Intake,
    seen: Seen,
) -> Wakeups {
    let mut ticks = tokio::time::interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let listener = Listener { namespace, instance, news, watcher, ticks, seen };
    stream::unfold(listener, |mut listener| async move { Some((listener.next().await?, listener)) }).boxed()
}

struct Listener {
    namespace: Name,
    instance: i64,
    news: broadcast::Receiver<Woken>,
    watcher: Intake,
    ticks: Interval,
    seen: Seen,
}

impl Listener {
    async fn next(&mut self) -> Option<i64> {
        loop {
            tokio::select! {
                heard = self.news.recv() => match heard {
                    Ok(woken) if woken.namespace == self.namespace => return Some(woken.at_ms),
                    Ok(_) => {}
                    // Too much at once to tell apart: something may be due now.
                    Err(RecvError::Lagged(_)) => return Some(0),
                    Err(RecvError::Closed) => return None,
                },
                _ = self.ticks.tick() => {
                    if let Some(at_ms) = self.look_around().await? {
                        return Some(at_ms);
                    }
                }
            }
        }
    }

    /// What others have made due since the last look, if anything. Nothing at all if the store is gone.
    async fn look_around(&mut self) -> Option<Option<i64>> {
        let (namespace, data_version) = (self.namespace.clone(), self.seen.data_version);
        match self.watcher.ask(1, move |desk| look_again(desk, &namespace, data_version)).await? {
            Ok(None) => Some(None),
            Ok(Some(seen)) => {
                let news = seen.news_since(&self.seen, self.instance);
                self.seen = seen;
                Some(news)
            }
            Err(error) => {
                // A worker looks every `max_poll` in any case.
                tracing::debug!(%error, "the store's file could not be looked at");
                Some(None)
            }
        }
    }
}
