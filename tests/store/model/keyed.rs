//! Key-backed ids (B1 to B8): what looking at a key does, and when a notice agrees with it.
//!
//! The keys are plain data here. Which keys a claim looks at is the store's choice as long as nothing goes out unseen;
//! so it is read off what the claim left, and what follows from it is said here.

use std::time::Duration;

use forewarn::store::{Checked, DropReason};

use super::{Model, claim::Taking};
use crate::words::{Kind, Notice, Score, shard_of};

/// A key that vanished early may only be being rewritten; its cleanup waits at least this long.
const SEEN_GONE: i64 = 1000;
/// How often the keys inside the largest lead are looked at again.
pub(crate) const RECHECK: Duration = Duration::from_millis(100);

/// What was found at the keys, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) resynced: i64,
    pub(crate) persisted: i64,
    pub(crate) gone: i64,
}

impl Model {
    /// B7: whether this id is no key of the namespace.
    pub(crate) fn is_foreign(&self, id: &[u8]) -> bool {
        self.rules.keyed.is_some_and(|keyed| keyed.has_pattern) && id.starts_with(b"~")
    }

    /// Whether the key that a command is about does not exist.
    pub(super) fn is_keyless(&self, id: &[u8]) -> bool {
        self.rules.keyed.is_some() && !self.keys.contains_key(id)
    }

    /// The owner of a key, or the server, has written it.
    pub(crate) fn write_key(&mut self, id: &[u8], expires_at: Option<i64>) {
        self.keys.insert(id.to_vec(), expires_at);
    }

    pub(crate) fn delete_key(&mut self, id: &[u8]) {
        self.keys.remove(id);
    }

    /// The server drops a key once its expiry has passed.
    pub(crate) fn expire_keys(&mut self) -> Vec<Vec<u8>> {
        let now = self.now;
        self.keys.extract_if(.., |_, at| at.is_some_and(|at| at < now)).map(|(id, _)| id).collect()
    }

    /// Whether an armed id and its key say the same: also when the key went away at its time.
    fn is_in_step(&self, id: &[u8], e: Score) -> bool {
        match self.keys.get(id) {
            Some(at) => at.is_some_and(|at| Score::ms(at) == e.canonical()),
            None => self.rest(e) <= 0.0,
        }
    }

    /// Compares an armed id with its key and lets the key be right (B2, B3, B4).
    pub(super) fn look(&mut self, id: &[u8]) {
        let Some(keyed) = self.rules.keyed else { return };
        let Some(e) = self.armed.get(id).copied() else { return };
        if self.is_foreign(id) || self.is_in_step(id, e) {
            return;
        }
        match self.keys.get(id).copied() {
            Some(Some(at)) => {
                self.looked.resynced += 1;
                self.ride_out_clock_step(Some(shard_of(id, self.rules.shards)));
                let at = Score::ms(at);
                self.armed.insert(id.to_vec(), at);
                // A renewal, also of a life whose expiry has passed: the key has never been away.
                self.set_leads_of(id, at, Some(e), Some(e));
            }
            Some(None) => {
                self.looked.persisted += 1;
                self.disarm(id, e);
                self.payloads.remove(id);
            }
            None => {
                self.looked.gone += 1;
                self.disarm(id, e);
                if keyed.drops {
                    self.payloads.remove(id);
                } else {
                    self.open_cleanup(Kind::Gone, e, id, self.now + self.rules.grace.max(SEEN_GONE));
                }
            }
        }
    }

    /// This life ends here. It was one: what an earlier life left open is void (W5).
    fn disarm(&mut self, id: &[u8], e: Score) {
        self.armed.remove(id);
        self.void_reminders(id, e);
        if !self.rules.delivers {
            self.void_cleanup(id);
        }
    }

    /// Whether some route was handed this cleanup, or was never to get it.
    fn is_known_to_somebody(&self, notice: &Notice) -> bool {
        self.lanes.iter().filter(|lane| lane.wants(notice.kind, &self.rules)).any(|lane| {
            self.queues.get(&lane.name).and_then(|queue| queue.get(notice)).is_none_or(|delivery| delivery.n > 0)
        })
    }

    /// B1 and B5: may a notice go out as far as its key is concerned?
    pub(super) fn key_agrees(&self, notice: &Notice) -> bool {
        let key = self.keys.get(&notice.id);
        if self.is_foreign(&notice.id) {
            return true;
        }
        if !notice.kind.is_cleanup() {
            return key.copied().flatten().is_some_and(|at| Score::ms(at) == notice.e);
        }
        let goes_on = self.rules.delivers && (notice.kind != Kind::Gone || self.is_known_to_somebody(notice));
        key.is_none() || goes_on
    }

    /// B5: the key is there again. Its cleanup is void, and the id lives as the key says.
    fn revive(&mut self, notice: &Notice) {
        self.void_everywhere(notice);
        if self.open.get(&notice.id).is_some_and(|open| open.names(notice)) {
            self.open.remove(&notice.id);
        }
        self.moved.remove(notice);
        if let Some(at) = self.keys.get(&notice.id).copied().flatten()
            && !self.armed.contains_key(&notice.id)
        {
            self.ride_out_clock_step(Some(shard_of(&notice.id, self.rules.shards)));
            self.armed.insert(notice.id.clone(), Score::ms(at));
            self.set_leads(&notice.id, Score::ms(at), None);
        }
    }

    /// The check before a handler, of a notice whose key does not agree.
    pub(super) fn recheck_key(&mut self, route: &str, notice: &Notice) -> Checked {
        let reason = match self.state(notice) {
            Ok(()) if notice.kind.is_cleanup() => {
                self.revive(notice);
                DropReason::Superseded
            }
            Ok(()) => {
                self.look(&notice.id);
                DropReason::Superseded
            }
            Err(word) => super::settle::reason(word),
        };
        self.drop_void(route, notice);
        Checked::Dropped(reason)
    }

    /// A claim has looked at some keys before it took anything. What it left tells which.
    pub(super) fn look_for_claim(&mut self, taking: &Taking<'_>) -> Result<(), String> {
        if self.rules.keyed.is_none() {
            return Ok(());
        }
        for (id, e) in self.armed.clone() {
            if taking.after.armed.get(&id) != Some(&e) {
                self.look(&id);
            }
        }
        let route = &taking.lane.name;
        let waiting: Vec<Notice> = (self.queues.get(route).into_iter().flatten())
            .filter(|(notice, delivery)| delivery.at <= self.now && notice.kind.is_cleanup())
            .map(|(notice, _)| notice.clone())
            .collect();
        for notice in waiting {
            let is_left = taking.after.queues.get(route).is_some_and(|queue| queue.contains_key(&notice));
            if !is_left && self.state(&notice).is_ok() && !self.key_agrees(&notice) {
                self.revive(&notice);
            }
        }
        Ok(())
    }

    /// I11, at every hand-out; `n` counts it.
    pub(super) fn check_key(&self, notice: &Notice, n: u8) -> Result<(), String> {
        let was_known = n > 1 && self.rules.delivers && notice.kind == Kind::Gone;
        if self.rules.keyed.is_none() || was_known || self.key_agrees(notice) {
            return Ok(());
        }
        Err(format!("I11: {notice:?} was handed out, but its key says {:?}", self.keys.get(&notice.id)))
    }

    /// Looks again at the keys of the ids inside the largest lead or in their grace time; answers how long to wait for the
    /// next time.
    pub(crate) fn resync(&mut self) -> i64 {
        let interval = i64::try_from(RECHECK.as_millis()).unwrap_or(i64::MAX);
        // An instant beyond the interval: the clock stepped back.
        if let Some(at) = self.next_pass.filter(|at| *at > self.now && *at <= self.now + interval) {
            return at - self.now;
        }
        let largest = self.rules.leads.iter().copied().max().unwrap_or(0);
        if largest == 0 && self.rules.grace == 0 {
            return interval;
        }
        if self.stopped.reminders && self.stopped.cleanups {
            return interval;
        }
        self.next_pass = Some(self.now + interval);
        self.ride_out_clock_step(None);
        for (id, e) in self.armed.clone() {
            if !self.is_over(e) && self.is_inside(e, largest) {
                self.look(&id);
            }
        }
        interval
    }
}
