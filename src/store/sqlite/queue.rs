//! Claim's first part: what waits in a route's queue, ready, retried, or lapsed because its worker vanished (D1, D2, Q3).

use crate::model::{Class, FailureRecord};
use crate::store::{Claim, Shelf};

use super::{
    claim::{Taking, bound},
    cleanup::Open,
    delivery::{Key, token},
    error::Fault,
    failure::Failures,
    operation::Operation,
};

/// What may be poisonous goes out in small claims.
const SMALL: u64 = 8;
/// What is paused is looked at again after this.
const DEFERRED_MS: i64 = 1000;

/// A delivery that is due, with what is known of its id.
struct Waiting {
    kind: i64,
    e: i64,
    id: Vec<u8>,
    hand_outs: i64,
    claim: i64,
    due_at: i64,
    on_set: bool,
    failures: Option<String>,
    armed: Option<i64>,
    open: Option<Open>,
}

impl Waiting {
    fn key(&self) -> Key<'_> {
        Key { kind: self.kind, e: self.e, id: &self.id }
    }
}

impl Operation<'_> {
    /// Takes of what is due in the queue: pairs of the class that is meant (whether cleanups), if one is, and of how many.
    pub(super) fn take_from_queue(&mut self, taking: &mut Taking, parts: &[(Option<bool>, u64)]) -> Result<(), Fault> {
        let mut all = Vec::new();
        for (class, share) in parts.iter().filter(|(_, share)| *share > 0) {
            all.extend(self.waiting(taking, *class, *share)?);
        }
        let mut suspects = 0;
        for waiting in all {
            let key = waiting.key();
            // Handed out before, twice or more, and its worker did not come back.
            let is_suspect = waiting.claim > 0 && waiting.hand_outs >= 2;
            if let Some(reason) = self.reason_to_drop(key, waiting.armed, waiting.open) {
                taking.drop(reason);
                self.drop_void(taking.route.as_str(), key, waiting.open)?;
                self.remember(reason.into(), Some(taking.route.as_str()), key)?;
            } else if !taking.hands.of(key) {
                self.defer(taking, key)?;
            } else if is_suspect && suspects >= SMALL {
                taking.held_back += 1;
            } else {
                suspects += u64::from(is_suspect);
                self.take_again(taking, &waiting)?;
            }
        }
        Ok(())
    }

    fn waiting(&self, taking: &Taking, class: Option<bool>, share: u64) -> Result<Vec<Waiting>, Fault> {
        self.desk.rows(
            "SELECT due.kind, due.expires_at, due.id, due.hand_outs, due.claim, due.due_at, due.on_set, due.failures,
               armed.expires_at, open.kind, open.expires_at, open.recurs
             FROM due
             LEFT JOIN armed ON armed.namespace = due.namespace AND armed.id = due.id
             LEFT JOIN open ON open.namespace = due.namespace AND open.id = due.id
             WHERE due.namespace = ?1 AND due.route = ?2 AND due.at <= ?3 AND (?5 IS NULL OR (due.kind <= 0) = ?5)
             ORDER BY due.at LIMIT ?4",
            (self.scope.key, taking.route.as_str(), self.now, bound(share), class),
            |row| {
                let open = match row.get::<_, Option<i64>>(9)? {
                    Some(kind) => Some(Open { kind, e: row.get(10)?, recurs: row.get(11)? }),
                    None => None,
                };
                Ok(Waiting {
                    kind: row.get(0)?,
                    e: row.get(1)?,
                    id: row.get(2)?,
                    hand_outs: row.get(3)?,
                    claim: row.get(4)?,
                    due_at: row.get(5)?,
                    on_set: row.get(6)?,
                    failures: row.get(7)?,
                    armed: row.get(8)?,
                    open,
                })
            },
        )
    }

    /// Puts a delivery of a paused class off.
    fn defer(&self, taking: &Taking, key: Key<'_>) -> Result<(), Fault> {
        self.desk.run(
            "UPDATE due SET at = ?6 WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4 AND route = ?5",
            (self.scope.key, key.id, key.e, key.kind, taking.route.as_str(), self.now + DEFERRED_MS),
        )?;
        Ok(())
    }

    /// Hands a delivery out once more, or gives it up if its workers vanished too often.
    fn take_again(&self, taking: &mut Taking, waiting: &Waiting) -> Result<(), Fault> {
        let (key, route) = (waiting.key(), taking.route.as_str());
        let mut failures = Failures::read(self, waiting.failures.as_deref())?;
        if waiting.claim > 0 {
            failures.lapses += 1;
            taking.lapses += 1;
            failures.add(FailureRecord {
                at_ms: self.now,
                attempt: failures.failures + failures.lapses,
                stage: "deliver".to_owned(),
                class: Class::Lapsed,
                summary: "its worker did not settle it before the lease ended".to_owned(),
                next_attempt_at_ms: None,
            });
            if failures.lapses >= self.scope.settings().max_deliveries {
                taking.dead += 1;
                return self.park(Shelf::Dead, route, key, waiting.open, &failures);
            }
        }
        let hand_outs = waiting.hand_outs.min(14) + 1;
        let stored = if waiting.claim > 0 { Some(failures.write(self)?) } else { waiting.failures.clone() };
        self.desk.run(
            "UPDATE due SET at = ?6, hand_outs = ?7, claim = ?8, failures = ?9
             WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4 AND route = ?5",
            (self.scope.key, key.id, key.e, key.kind, route, taking.lease_until, hand_outs, taking.claim, stored),
        )?;
        let notice = self.notice(key.kind, key.e, key.id)?;
        taking.claims.push(Claim {
            token: token(&notice, hand_outs, taking.claim),
            notice,
            attempt: 1 + failures.failures + failures.lapses,
            failures: failures.failures,
            due_at_ms: waiting.due_at,
            on_set: waiting.on_set,
            payload: None,
        });
        Ok(())
    }
}
