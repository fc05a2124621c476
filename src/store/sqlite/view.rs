//! Show, list, stats: what people look at. Writes nothing.

use rusqlite::Row;

use crate::model::{Id, Name, Paused, span_ms};
use crate::store::{Counters, DeadlineView, DeliveryState, DeliveryView, ListQuery, Listed, RouteStats, Stats};

use super::{delivery::Key, error::Fault, failure::Failures, operation::Operation};

/// The most one list answers.
const MAX_LISTED: u32 = 10_000;

impl Operation<'_> {
    pub(super) fn show(&self, id: &Id) -> Result<Option<DeadlineView>, Fault> {
        let bytes = id.as_bytes();
        let expires_at_ms = self.armed(bytes)?;
        let open = self.open_of(bytes)?.map(|open| Key { kind: open.kind, e: open.e, id: bytes });
        let payload = match (self.payload(bytes)?, open) {
            (None, Some(key)) => self.payload_of(key)?,
            (payload, _) => payload,
        };
        let deliveries = self.deliveries(id, expires_at_ms, open)?;
        let open = open.map(|key| self.notice(key.kind, key.e, key.id)).transpose()?;
        let every = self.period(bytes)?;
        let is_known = expires_at_ms.is_some() || open.is_some() || !deliveries.is_empty();
        let view = DeadlineView { id: id.clone(), expires_at_ms, payload, open, quarantined: None, every, deliveries };
        Ok(is_known.then_some(view))
    }

    /// The deliveries of the present life and of the open cleanup, route by route, reminders first.
    fn deliveries(&self, id: &Id, armed: Option<i64>, open: Option<Key<'_>>) -> Result<Vec<DeliveryView>, Fault> {
        let mut views = Vec::new();
        let mut rows = self.desk.rows(
            "SELECT route, kind, expires_at, hand_outs, claim, at, failures FROM due
             WHERE namespace = ?1 AND id = ?2 ORDER BY kind <= 0, kind",
            (self.scope.key, id.as_bytes()),
            |row: &Row<'_>| {
                let key = Key { kind: row.get(1)?, e: row.get(2)?, id: id.as_bytes() };
                let fence: (u8, u8) = (row.get(3)?, row.get(4)?);
                Ok((row.get::<_, String>(0)?, key, fence, row.get(5)?, row.get::<_, Option<String>>(6)?))
            },
        )?;
        // Those of earlier lives are void, or belong to cleanups that nobody names any more.
        rows.retain(|(_, key, ..)| Some(*key) == open || !key.is_cleanup() && Some(key.e) == armed);
        for lane in &self.scope.lanes {
            for (_, key, (hand_outs, claim), at_ms, failures) in rows.iter().filter(|row| row.0 == lane.name.as_str()) {
                let state = match (hand_outs, claim) {
                    (_, 1..) => DeliveryState::Leased,
                    (0, 0) => DeliveryState::Ready,
                    _ => DeliveryState::Waiting,
                };
                views.push(DeliveryView {
                    route: lane.name.clone(),
                    notice: self.notice(key.kind, key.e, key.id)?,
                    state,
                    at_ms: *at_ms,
                    hand_outs: *hand_outs,
                    failures: Failures::read(self, failures.as_deref())?.last,
                });
            }
        }
        Ok(views)
    }

    pub(super) fn list(&self, query: &ListQuery) -> Result<Vec<Listed>, Fault> {
        let limit = if query.limit == 0 { 100 } else { query.limit }.min(MAX_LISTED);
        let until = query.within.map_or(i64::MAX, |within| self.now.saturating_add(span_ms(within)));
        let (after_e, after_id) = match &query.after {
            Some((e, id)) => (*e, id.as_bytes()),
            None => (i64::MIN, &[][..]),
        };
        let rows = self.desk.rows(
            "SELECT expires_at, id FROM armed
             WHERE namespace = ?1 AND (expires_at, id) > (?2, ?3) AND expires_at <= ?4
             ORDER BY expires_at, id LIMIT ?5",
            (self.scope.key, after_e, after_id, until, limit),
            |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)),
        )?;
        rows.into_iter().map(|(expires_at_ms, id)| Ok(Listed { id: Id::new(id)?, expires_at_ms })).collect()
    }

    pub(super) fn stats(&self) -> Result<Stats, Fault> {
        let key = self.scope.key;
        let count = |sql: &str| self.desk.one(sql, [key], |row| row.get::<_, u64>(0));
        let mut stats = Stats {
            namespace: self.scope.namespace.clone(),
            armed: count("SELECT COUNT(*) FROM armed WHERE namespace = ?1")?,
            overdue: self.count_overdue(u64::MAX)?,
            open: count("SELECT COUNT(*) FROM open WHERE namespace = ?1")?,
            dead: count("SELECT COUNT(*) FROM parked WHERE namespace = ?1 AND shelf = 'dead'")?,
            review: count("SELECT COUNT(*) FROM parked WHERE namespace = ?1 AND shelf = 'review'")?,
            quarantined: 0,
            paused: self.paused.clone(),
            catching_up: self.catching_up(None)?,
            routes: self.scope.lanes.iter().map(|lane| self.route_stats(&lane.name)).collect::<Result<_, _>>()?,
            counters: Counters::default(),
        };
        let counters = self.desk.rows("SELECT name, value FROM counter WHERE namespace = ?1", [key], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?))
        })?;
        for (name, value) in counters {
            stats.counters.add(&name, value);
        }
        Ok(stats)
    }

    fn route_stats(&self, route: &Name) -> Result<RouteStats, Fault> {
        let key = (self.scope.key, route.as_str());
        let pending =
            self.desk.one("SELECT COUNT(*) FROM due WHERE namespace = ?1 AND route = ?2", key, |row| row.get(0))?;
        let (due, oldest): (u64, Option<i64>) = self.desk.one(
            "SELECT COUNT(*), MIN(at) FROM due WHERE namespace = ?1 AND route = ?2 AND at <= ?3",
            (key.0, key.1, self.now),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let paused = self.desk.row(
            "SELECT reminders_paused_at IS NOT NULL, cleanups_paused_at IS NOT NULL FROM route
             WHERE namespace = ?1 AND name = ?2",
            key,
            |row| Ok(Paused { reminders: row.get(0)?, cleanups: row.get(1)? }),
        )?;
        Ok(RouteStats {
            route: route.clone(),
            pending,
            due,
            oldest_due_ms: oldest.map(|oldest| self.now - oldest),
            paused: paused.unwrap_or_default(),
            catching_up: self.catching_up(Some(route))?,
        })
    }
}
