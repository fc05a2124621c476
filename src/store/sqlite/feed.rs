//! Observing hand-outs: claims write them down while somebody observes, in their own transaction, and observers of any process
//! read them.
//!
//! An observer is registered for a short time, which it renews while it listens. A registration that has lapsed, because its
//! process is gone, costs the next claim one statement, and is deleted with all that was written down.

use std::{collections::VecDeque, time::Duration};

use futures::{StreamExt, stream};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::clock;
use crate::model::Name;
use crate::store::{Claim, Feed, Handed, StoreError};

use super::{
    SqliteStore,
    delivery::store_kind,
    desk::Desk,
    error::Fault,
    operation::{Operation, Stored},
    task::WeakIntake,
};

/// How often an observer looks whether something was handed out.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often it renews its registration, at the next look.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// How long a registration stands, and how long hand-outs are kept for observers.
const KEPT_MS: i64 = 10_000;
/// The most one look reads.
const MAX_READ: usize = 1000;

impl Operation<'_> {
    /// Writes down what a claim has handed out, if anybody observes.
    pub(super) fn tell_observers(&self, route: &Name, claims: &[Claim]) -> Result<(), Fault> {
        if claims.is_empty() {
            return Ok(());
        }
        let (key, wall) = (self.scope.key, clock::now_ms());
        let is_live: Option<bool> = self.desk.one(
            "SELECT max(until BETWEEN ?2 AND ?3) FROM observer WHERE namespace = ?1",
            (key, wall, wall + KEPT_MS),
            |row| row.get(0),
        )?;
        match is_live {
            None => return Ok(()),
            Some(false) => return forget_observers(self.desk, key),
            Some(true) => {}
        }
        // Those from later than now were written before the clock was set back.
        self.desk.run(
            "DELETE FROM handed WHERE namespace = ?1 AND (told_at < ?2 OR told_at > ?3)",
            (key, wall - KEPT_MS, wall + KEPT_MS),
        )?;
        for (place, claim) in (0i64..).zip(claims) {
            let notice = &claim.notice;
            let (kind, id) = (store_kind(notice.kind), notice.id.as_bytes());
            self.desk.run(
                "INSERT INTO handed (namespace, claim, place, told_at, at, route, kind, expires_at, id, attempt, due_at, on_set,
                   payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                rusqlite::params![
                    key,
                    self.claims,
                    place,
                    wall,
                    self.now,
                    route.as_str(),
                    kind,
                    notice.expires_at_ms,
                    id,
                    claim.attempt,
                    claim.due_at_ms,
                    claim.on_set,
                    claim.payload
                ],
            )?;
        }
        Ok(())
    }
}

fn forget_observers(desk: &Desk, key: i64) -> Result<(), Fault> {
    desk.run("DELETE FROM observer WHERE namespace = ?1", [key])?;
    desk.run("DELETE FROM handed WHERE namespace = ?1", [key])?;
    Ok(())
}

/// Observes a namespace from now on.
pub(super) async fn observe(store: &SqliteStore, namespace: &Name) -> Result<Feed, StoreError> {
    let watcher = store.watcher().await?.downgrade();
    let (own, number) = (namespace.clone(), fastrand::i64(..));
    let place = store.ask(&store.writer, 1, move |desk| register(desk, &own, number)).await?;
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let observer = Observer {
        namespace: namespace.clone(),
        number,
        writer: store.writer.downgrade(),
        watcher,
        ticks,
        renewed_at: Instant::now(),
        place,
        pending: VecDeque::new(),
        is_broken: false,
    };
    Ok(stream::unfold(observer, |mut observer| async move { Some((observer.next().await?, observer)) }).boxed())
}

/// How far an observer has read.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Of the namespace, under which the registration stands.
    key: i64,
    /// The last hand-out that was read: the number of its claim, and its place in that.
    last: (i64, i64),
    /// Changes when another connection has changed the file. Nothing before the first look, and while there is more to read.
    data_version: Option<i64>,
}

/// Registers an observer, or renews its registration. Answers from where on it reads if it was not registered.
fn register(desk: &Desk, namespace: &Name, number: i64) -> Result<Place, Fault> {
    let unconfigured = || StoreError::Unconfigured { namespace: namespace.clone() };
    let Stored { key, claims, .. } = Stored::read(desk, namespace)?.ok_or_else(unconfigured)?;
    desk.run(
        "INSERT INTO observer (namespace, number, until) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET until = excluded.until",
        (key, number, clock::now_ms() + KEPT_MS),
    )?;
    Ok(Place { key, last: (claims, i64::MAX), data_version: None })
}

/// The last one to leave tidies up.
fn leave(desk: &Desk, key: i64, number: i64) -> Result<(), Fault> {
    desk.run("DELETE FROM observer WHERE namespace = ?1 AND number = ?2", (key, number))?;
    if desk.has("SELECT 1 FROM observer WHERE namespace = ?1", [key])? { Ok(()) } else { forget_observers(desk, key) }
}

/// Reads on from a place.
fn read(desk: &Desk, namespace: &Name, mut place: Place) -> Result<(Vec<Handed>, Place), Fault> {
    let data_version: i64 = desk.one("PRAGMA data_version", [], |row| row.get(0))?;
    if place.data_version == Some(data_version) {
        return Ok((Vec::new(), place));
    }
    let rows = desk.rows(
        "SELECT claim, place, at, route, kind, expires_at, id, attempt, due_at, on_set, payload FROM handed
         WHERE namespace = ?1 AND (claim, place) > (?2, ?3) ORDER BY claim, place LIMIT ?4",
        (place.key, place.last.0, place.last.1, MAX_READ),
        |row| {
            let key: (i64, i64, Vec<u8>) = (row.get(4)?, row.get(5)?, row.get(6)?);
            let heard = (row.get(2)?, row.get(7)?, row.get(8)?, row.get(9)?, row.get(10)?);
            Ok(((row.get(0)?, row.get(1)?), row.get::<_, String>(3)?, key, heard))
        },
    )?;
    place.data_version = (rows.len() < MAX_READ).then_some(data_version);
    let mut all = Vec::with_capacity(rows.len());
    for (last, route, (kind, e, id), (at_ms, attempt, due_at_ms, on_set, payload)) in rows {
        place.last = last;
        let notice = super::delivery::read_notice(namespace, kind, e, &id).map_err(|problem| desk.odd(problem))?;
        all.push(Handed { at_ms, route: Name::new("route", route)?, notice, attempt, due_at_ms, on_set, payload });
    }
    Ok((all, place))
}

/// One who listens. It ends when the store is dropped.
struct Observer {
    namespace: Name,
    /// Tells it from others.
    number: i64,
    writer: WeakIntake,
    watcher: WeakIntake,
    ticks: Interval,
    renewed_at: Instant,
    place: Place,
    pending: VecDeque<Handed>,
    is_broken: bool,
}

impl Observer {
    async fn next(&mut self) -> Option<Result<Handed, StoreError>> {
        loop {
            if let Some(handed) = self.pending.pop_front() {
                return Some(Ok(handed));
            }
            if self.is_broken {
                return None;
            }
            self.ticks.tick().await;
            if self.renewed_at.elapsed() >= RENEW_EVERY {
                self.renew().await?;
            }
            let (namespace, place) = (self.namespace.clone(), self.place);
            match self.watcher.upgrade()?.ask(1, move |desk| read(desk, &namespace, place)).await? {
                Ok((handed, place)) => {
                    self.place = place;
                    self.pending.extend(handed);
                }
                Err(error) => {
                    self.is_broken = true;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Nothing if the store is gone, or the namespace.
    async fn renew(&mut self) -> Option<()> {
        let (namespace, number) = (self.namespace.clone(), self.number);
        match self.writer.upgrade()?.ask(1, move |desk| register(desk, &namespace, number)).await? {
            // It was forgotten and begins anew.
            Ok(place) if place.key != self.place.key || place.last < self.place.last => self.place = place,
            Ok(_) => {}
            Err(StoreError::Unconfigured { .. }) => return None,
            Err(error) => tracing::debug!(%error, "an observer could not be registered again"),
        }
        self.renewed_at = Instant::now();
        Some(())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.upgrade() {
            let (key, number) = (self.place.key, self.number);
            writer.hand_in(move |desk| leave(desk, key, number));
        }
    }
}
