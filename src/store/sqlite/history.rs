//! What is remembered of notices that have ended: as many rows as the settings say, the oldest make room.

use rusqlite::Row;

use crate::model::{LeadTime, Name};
use crate::store::{DropReason, Ending, HistoryEntry, HistoryQuery};

use super::{claim::bound, cursor::Lead, cursor::NOTHING, delivery::Key, error::Fault, operation::Operation};

/// The word of rows that are of a lead passed over, in which `expires_at` is up to where, and `after` after what.
const PASSED: &str = "passed";

/// A row as it is stored.
struct Stored {
    at: i64,
    ending: String,
    route: Option<String>,
    kind: i64,
    e: i64,
    id: Option<Vec<u8>>,
    after: Option<i64>,
    count: Option<i64>,
}

impl Operation<'_> {
    /// Remembers how a notice ended; `route`: `None` where no route had it.
    pub(super) fn remember(&self, ending: Ending, route: Option<&str>, key: Key<'_>) -> Result<(), Fault> {
        if self.history_limit() == 0 {
            return Ok(());
        }
        let seq = self.next_seq()?;
        self.desk.run(
            "INSERT INTO history (namespace, seq, at, ending, route, kind, expires_at, id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (self.scope.key, seq, self.now, ending.as_str(), route, key.kind, key.e, key.id),
        )?;
        self.forget_before(seq)
    }

    /// Remembers that all deliveries of a notice are void.
    pub(super) fn remember_void(&self, key: Key<'_>) -> Result<(), Fault> {
        if self.history_limit() == 0 {
            return Ok(());
        }
        let routes: Vec<String> = self.desk.rows(
            "SELECT route FROM due WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4",
            (self.scope.key, key.id, key.e, key.kind),
            |row| row.get(0),
        )?;
        routes.iter().try_for_each(|route| self.remember(Ending::Superseded, Some(route), key))
    }

    /// Remembers that a lead is no more, for all its deliveries.
    pub(super) fn remember_all_of(&self, lead: i64) -> Result<(), Fault> {
        if self.history_limit() == 0 {
            return Ok(());
        }
        let gone: Vec<(String, i64, Vec<u8>)> = self.desk.rows(
            "SELECT route, expires_at, id FROM due WHERE namespace = ?1 AND kind = ?2 ORDER BY expires_at, id, route",
            (self.scope.key, lead),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        gone.iter()
            .try_for_each(|(route, e, id)| self.remember(Ending::Lead, Some(route), Key { kind: lead, e: *e, id }))
    }

    /// Remembers that a sweep of `lead` begins after `low` although it had not come so far; answers whether there was
    /// anything in between.
    pub(super) fn remember_passed(&self, lead: &Lead, low: i64) -> Result<bool, Fault> {
        if self.history_limit() == 0 {
            return Ok(false);
        }
        let (e, id) = lead.place();
        let count: i64 = self.desk.one(
            "SELECT count(*) FROM armed WHERE namespace = ?1 AND (expires_at, id) > (?2, ?3) AND expires_at <= ?4",
            (self.scope.key, e, id, low),
            |row| row.get(0),
        )?;
        if count == 0 {
            return Ok(false);
        }
        let seq = self.next_seq()?;
        let after = Some(lead.score).filter(|score| *score != NOTHING);
        self.desk.run(
            "INSERT INTO history (namespace, seq, at, ending, kind, expires_at, after, count)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (self.scope.key, seq, self.now, PASSED, lead.ms, low, after, count),
        )?;
        self.forget_before(seq)?;
        Ok(true)
    }

    fn history_limit(&self) -> i64 {
        i64::from(self.scope.settings().history)
    }

    fn next_seq(&self) -> Result<i64, Fault> {
        let last: Option<i64> =
            self.desk.one("SELECT max(seq) FROM history WHERE namespace = ?1", [self.scope.key], |row| row.get(0))?;
        Ok(last.unwrap_or(0) + 1)
    }

    fn forget_before(&self, seq: i64) -> Result<(), Fault> {
        self.desk.run(
            "DELETE FROM history WHERE namespace = ?1 AND seq <= ?2",
            (self.scope.key, seq - self.history_limit()),
        )?;
        Ok(())
    }

    pub(super) fn history(&self, query: &HistoryQuery) -> Result<Vec<HistoryEntry>, Fault> {
        let id = query.id.as_ref().map(|id| id.as_bytes());
        let stored: Vec<Stored> = self.desk.rows(
            // Where an id is asked for, the limit is for its own rows; leads passed over may be those of others.
            "SELECT at, ending, route, kind, expires_at, id, after, count FROM history
             WHERE namespace = ?1 AND (?2 IS NULL OR id IS NULL OR id = ?2) AND seq >= coalesce((
               SELECT seq FROM history WHERE namespace = ?1 AND (?2 IS NULL OR id = ?2)
               ORDER BY seq DESC LIMIT 1 OFFSET ?3), 0)
             ORDER BY seq DESC",
            (self.scope.key, id, bound(query.limit() as u64 - 1)),
            |row: &Row<'_>| {
                Ok(Stored {
                    at: row.get(0)?,
                    ending: row.get(1)?,
                    route: row.get(2)?,
                    kind: row.get(3)?,
                    e: row.get(4)?,
                    id: row.get(5)?,
                    after: row.get(6)?,
                    count: row.get(7)?,
                })
            },
        )?;
        let entries = stored.into_iter().map(|row| self.entry(row)).collect::<Result<_, _>>()?;
        Ok(query.limited(entries))
    }

    fn entry(&self, row: Stored) -> Result<HistoryEntry, Fault> {
        let Stored { at: at_ms, ending, route, kind, e, id, after, count } = row;
        let odd = || self.odd("a row of the history cannot be read");
        let Some(id) = id else {
            let lead = LeadTime::from_millis(kind).map_err(|_| odd())?;
            let count = count.and_then(|count| u64::try_from(count).ok()).ok_or_else(odd)?;
            return Ok(HistoryEntry::PassedOver { at_ms, lead, after_ms: after, upto_ms: e, count });
        };
        let route = route.map(|route| Name::new("route", route)).transpose().map_err(|_| odd())?;
        let ending = Ending::from_word(&ending).ok_or_else(odd)?;
        Ok(HistoryEntry::Ended { at_ms, route, notice: self.notice(kind, e, &id)?, ending })
    }
}

impl From<DropReason> for Ending {
    fn from(reason: DropReason) -> Self {
        match reason {
            DropReason::Superseded => Self::Superseded,
            DropReason::Expired => Self::Expired,
            DropReason::Coalesced => Self::Coalesced,
            DropReason::Lead => Self::Lead,
        }
    }
}
