//! Ack, fail, extend, release and recheck: what a token still settles (D1, D2), and what was parked.

use forewarn::store::{Checked, DropReason, Requeued, Settled, Verdict};

use super::{Delivery, Model, Open, Place};
use crate::words::{Kind, Notice, parse_token};

pub(super) fn reason(word: &str) -> DropReason {
    match word {
        "expired" => DropReason::Expired,
        "coalesced" => DropReason::Coalesced,
        "lead" => DropReason::Lead,
        _ => DropReason::Superseded,
    }
}

impl Model {
    /// The delivery this token holds, if it is the current one.
    fn held(&self, route: &str, token: &[u8]) -> Option<(Notice, Delivery)> {
        let (n, c, notice) = parse_token(token)?;
        let delivery = self.queues.get(route)?.get(&notice)?;
        (delivery.n == n && delivery.c == c && c > 0).then(|| (notice, delivery.clone()))
    }

    fn drop_with(&mut self, route: &str, notice: &Notice, word: &str) -> DropReason {
        self.drop_void(route, notice);
        reason(word)
    }

    pub(crate) fn ack(&mut self, route: &str, token: &[u8]) -> Settled {
        let Some((notice, _)) = self.held(route, token) else { return Settled::Stale };
        let named = self.open.get(&notice.id).is_some_and(|open| open.names(&notice));
        let counts = !notice.kind.is_cleanup() || named || self.rules.delivers;
        self.drop_void(route, &notice);
        if counts { Settled::Settled } else { Settled::Stale }
    }

    pub(crate) fn recheck(&mut self, route: &str, token: &[u8]) -> Checked {
        let Some((notice, _)) = self.held(route, token) else { return Checked::Stale };
        if self.rules.keyed.is_some() && !self.key_agrees(&notice) {
            return self.recheck_key(route, &notice);
        }
        // D3: only whether the notice is void is asked; a window that has closed since the claim does not matter.
        let unchanged = self.armed.get(&notice.id).is_some_and(|e| e.canonical() == notice.e);
        match self.state(&notice) {
            Ok(()) => Checked::Current,
            Err(_) if !notice.kind.is_cleanup() && unchanged => Checked::Current,
            Err(word) => Checked::Dropped(self.drop_with(route, &notice, word)),
        }
    }

    pub(crate) fn extend(&mut self, route: &str, token: &[u8], lease: i64) -> Settled {
        let Some((notice, delivery)) = self.held(route, token) else { return Settled::Stale };
        if let (true, Err(word)) = (notice.kind.is_cleanup(), self.state(&notice)) {
            return Settled::Dropped(self.drop_with(route, &notice, word));
        }
        let at = delivery.at.max(self.now + lease);
        self.put(route, notice, Delivery { at, ..delivery });
        Settled::Settled
    }

    pub(crate) fn release(&mut self, route: &str, token: &[u8]) -> Settled {
        let Some((notice, delivery)) = self.held(route, token) else { return Settled::Stale };
        if let Err(word) = self.state(&notice) {
            return Settled::Dropped(self.drop_with(route, &notice, word));
        }
        self.put(route, notice, Delivery { at: self.now, c: 0, ..delivery });
        Settled::Settled
    }

    pub(crate) fn fail(&mut self, route: &str, token: &[u8], verdict: Verdict, max_failures: u32) -> Settled {
        let Some((notice, delivery)) = self.held(route, token) else { return Settled::Stale };
        if let Err(word) = self.state(&notice) {
            return Settled::Dropped(self.drop_with(route, &notice, word));
        }
        let place = (route.to_owned(), notice.clone());
        let mut record = self.records.get(&place).cloned().unwrap_or_default();
        record.failures += 1;
        let delay = match (verdict, notice.kind) {
            (Verdict::Review, _) => {
                self.park(Place::Review, route, &notice, &record);
                return Settled::Review;
            }
            (Verdict::Dead, _) => None,
            (_, _) if record.failures >= max_failures => None,
            (Verdict::Backoff(delay), Kind::Reminder(lead)) => {
                let window = notice.e.floor() - self.rules.next_smaller(lead) - self.now;
                Some(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX).min(window / 4))
            }
            (Verdict::Backoff(delay) | Verdict::RetryAfter(delay), _) => i64::try_from(delay.as_millis()).ok(),
        };
        let Some(delay) = delay else {
            self.park(Place::Dead, route, &notice, &record);
            return Settled::Dead;
        };
        self.records.insert(place, record);
        let at = self.now + delay;
        self.put(route, notice, Delivery { at, c: 0, ..delivery });
        Settled::Retry { next_attempt_at_ms: at }
    }

    fn put(&mut self, route: &str, notice: Notice, delivery: Delivery) {
        self.queues.entry(route.to_owned()).or_default().insert(notice, delivery);
    }

    pub(crate) fn requeue(&mut self, place: Place, route: &str, notice: &Notice) -> Requeued {
        let key = (place, route.to_owned(), notice.clone());
        let Some(stored) = self.parked.get(&key).cloned() else { return Requeued::Unknown };
        if self.lane(route).is_none() {
            return Requeued::NoRoute;
        }
        let (armed, open) = (self.armed.contains_key(&notice.id), self.open.contains_key(&notice.id));
        let holds = match notice.kind {
            Kind::Reminder(_) => self.state(notice).is_ok(),
            Kind::Expired | Kind::Ended | Kind::Gone => self.rules.delivers || !armed && !open,
        };
        if !holds {
            return Requeued::Superseded;
        }
        if notice.kind.is_cleanup() {
            if !armed && !open {
                self.open.insert(notice.id.clone(), Open { kind: notice.kind, e: notice.e, recurs: false });
            }
            if let Some(payload) = stored.payload {
                self.moved.insert(notice.clone(), payload);
            }
        }
        self.parked.remove(&key);
        // It was due when it was due: what it is sent with stays honest.
        let at = match notice.kind {
            Kind::Reminder(lead) => notice.e.floor() - lead,
            Kind::Expired => self.now.min(notice.e.floor() + self.rules.grace),
            Kind::Ended | Kind::Gone => self.now,
        };
        let queue = self.queues.entry(route.to_owned()).or_default();
        queue.entry(notice.clone()).or_insert_with(|| Delivery::ready(at, false));
        Requeued::Requeued
    }

    pub(crate) fn discard(&mut self, place: Place, route: &str, notice: &Notice) -> bool {
        self.parked.remove(&(place, route.to_owned(), notice.clone())).is_some()
    }
}
