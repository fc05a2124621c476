//! Deliveries: the rows of `due`, and the notices they name.

use rusqlite::Row;

use crate::model::{Id, Kind, LeadTime, Name, Notice, Reason};
use crate::store::{Token, notation::write_notice, notation::write_token};

use super::{error::Fault, operation::Operation};

/// The stored kind of a cleanup that expired.
pub(super) const EXPIRED: i64 = 0;
/// The stored kind of a cleanup that ended early.
pub(super) const ENDED: i64 = -1;
const GONE: i64 = -2;

/// A notice as rows name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'k> {
    pub(super) kind: i64,
    pub(super) e: i64,
    pub(super) id: &'k [u8],
}

impl Key<'_> {
    pub(super) fn is_cleanup(&self) -> bool {
        self.kind <= EXPIRED
    }
}

/// A delivery that is handed out never, before or now.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) route: String,
    pub(super) kind: i64,
    pub(super) e: i64,
    /// n: hand-outs so far.
    pub(super) hand_outs: i64,
    /// c: 0 while nobody holds it.
    pub(super) claim: i64,
}

impl Delivery {
    /// Whether it was never handed out.
    fn is_ready(&self) -> bool {
        self.hand_outs == 0 && self.claim == 0
    }
}

/// How a kind is stored.
pub(super) fn store_kind(kind: Kind) -> i64 {
    match kind {
        Kind::Reminder(lead) => lead.as_millis(),
        Kind::Cleanup(Reason::Ended) => ENDED,
        Kind::Cleanup(Reason::Gone) => GONE,
        Kind::Cleanup(_) => EXPIRED,
    }
}

impl Operation<'_> {
    /// The notice a row names.
    pub(super) fn notice(&self, kind: i64, e: i64, id: &[u8]) -> Result<Notice, Fault> {
        read_notice(&self.scope.namespace, kind, e, id).map_err(|problem| self.odd(problem))
    }

    /// Something in the file is not as this program writes it.
    pub(super) fn odd(&self, problem: impl Into<String>) -> Fault {
        self.desk.odd(problem).into()
    }

    /// The deliveries of an id on all routes.
    pub(super) fn deliveries_of(&self, id: &[u8]) -> Result<Vec<Delivery>, Fault> {
        self.desk.rows(
            "SELECT route, kind, expires_at, hand_outs, claim FROM due WHERE namespace = ?1 AND id = ?2",
            (self.scope.key, id),
            |row: &Row<'_>| {
                Ok(Delivery {
                    route: row.get(0)?,
                    kind: row.get(1)?,
                    e: row.get(2)?,
                    hand_outs: row.get(3)?,
                    claim: row.get(4)?,
                })
            },
        )
    }

    /// Takes a delivery out of a route's queue, with what was recorded of it.
    pub(super) fn void(&self, route: &str, key: Key<'_>) -> Result<(), Fault> {
        self.desk.run(
            "DELETE FROM due WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4 AND route = ?5",
            (self.scope.key, key.id, key.e, key.kind, route),
        )?;
        Ok(())
    }

    /// Takes a notice out of all queues.
    pub(super) fn void_everywhere(&self, key: Key<'_>) -> Result<(), Fault> {
        self.remember_void(key)?;
        self.desk.run(
            "DELETE FROM due WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4",
            (self.scope.key, key.id, key.e, key.kind),
        )?;
        Ok(())
    }

    /// Takes a notice out of all queues, given all deliveries of its id. Answers the routes on which it was ready.
    pub(super) fn void_among<'d>(&self, deliveries: &'d [Delivery], key: Key<'_>) -> Result<Vec<&'d str>, Fault> {
        let mut found =
            deliveries.iter().filter(|delivery| delivery.kind == key.kind && delivery.e == key.e).peekable();
        if found.peek().is_some() {
            self.void_everywhere(key)?;
        }
        Ok(found.filter(|delivery| delivery.is_ready()).map(|delivery| delivery.route.as_str()).collect())
    }

    /// Makes a delivery ready at an instant, whatever it was before; what was recorded of it stays.
    pub(super) fn make_ready(&self, route: &str, key: Key<'_>, at: i64, on_set: bool) -> Result<(), Fault> {
        self.desk.run(
            "INSERT INTO due (namespace, id, expires_at, kind, route, at, hand_outs, claim, due_at, on_set)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?6, ?7)
             ON CONFLICT DO UPDATE SET at = excluded.at, hand_outs = 0, claim = 0, due_at = excluded.due_at,
             on_set = excluded.on_set",
            (self.scope.key, key.id, key.e, key.kind, route, at, on_set),
        )?;
        Ok(())
    }

    /// Adds a delivery unless the notice is in that queue already: two lives with the same expiry are one notice.
    /// Answers whether it did. With `claim` 0 it is ready at `at`, else handed out for the first time until then.
    pub(super) fn add_new(&self, route: &str, key: Key<'_>, at: i64, claim: i64, due_at: i64) -> Result<bool, Fault> {
        let added = self.desk.run(
            "INSERT OR IGNORE INTO due (namespace, id, expires_at, kind, route, at, hand_outs, claim, due_at, on_set)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0)",
            (self.scope.key, key.id, key.e, key.kind, route, at, i64::from(claim > 0), claim, due_at),
        )?;
        Ok(added == 1)
    }
}

/// The notice of a row, or what is odd about it.
pub(super) fn read_notice(namespace: &Name, kind: i64, e: i64, id: &[u8]) -> Result<Notice, String> {
    let kind = match kind {
        EXPIRED => Kind::Cleanup(Reason::Expired),
        ENDED => Kind::Cleanup(Reason::Ended),
        GONE => Kind::Cleanup(Reason::Gone),
        lead => Kind::Reminder(LeadTime::from_millis(lead).map_err(|_| format!("a notice of kind {lead}"))?),
    };
    let id = Id::new(id).map_err(|_| format!("an id of {} bytes", id.len()))?;
    Ok(Notice { namespace: namespace.clone(), kind, expires_at_ms: e, id })
}

/// The token of a hand-out.
pub(super) fn token(notice: &Notice, hand_outs: i64, claim: i64) -> Token {
    write_token(hand_outs * 64 + claim, &write_notice(notice))
}
