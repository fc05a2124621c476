//! Track, renew, remove and expire: what they answer and what they change (W2, W5, W6, W9).

use forewarn::model::Mode;
use forewarn::store::{Expired, Removed, Renewed, Replaced, Tracked};

use super::Model;
use crate::words::{Bytes, Frontier, Kind, Score, shard_of};

impl Model {
    pub(crate) fn track(&mut self, mode: Mode, id: &[u8], e: i64, payload: Option<&[u8]>) -> Tracked {
        self.ride_out_clock_step(Some(shard_of(id, self.rules.shards)));
        self.look(id);
        if self.is_keyless(id) {
            return Tracked::NoKey;
        }
        let (e, old) = (Score::ms(e), self.armed.get(id).copied());
        let living = old.filter(|old| !self.is_over(*old));
        if old.is_some_and(|old| old.canonical() == e) {
            return if mode == Mode::Create { Tracked::Exists } else { Tracked::Unchanged };
        }
        if living.is_some() && mode == Mode::Create {
            return Tracked::Exists;
        }
        if living.is_some_and(|old| mode == Mode::ExtendOnly && e < old) {
            return Tracked::Kept;
        }
        let already_expired = self.rest(e) <= 0.0;
        if living.is_some() {
            self.move_to(id, e, payload);
            return Tracked::Moved { already_expired };
        }
        // A new life. One that expired unswept still gets its cleanup where lives own separate resources.
        if !self.rules.delivers {
            self.void_cleanup(id);
        } else if let Some(old) = old {
            self.open_cleanup(Kind::Expired, old, id, old.canonical().floor() + self.rules.grace);
        }
        self.payloads.remove(id);
        self.every.remove(id);
        self.move_to(id, e, payload);
        Tracked::Created { already_expired }
    }

    pub(crate) fn renew(&mut self, id: &[u8], e: i64, payload: Option<&[u8]>) -> Renewed {
        self.ride_out_clock_step(Some(shard_of(id, self.rules.shards)));
        self.look(id);
        let (e, old) = (Score::ms(e), self.armed.get(id).copied());
        match old {
            Some(_) if self.is_keyless(id) => Renewed::Expired,
            None if self.open.contains_key(id) => Renewed::Expired,
            None => Renewed::Unknown,
            // W9: paused cleanups let what is still armed be saved.
            Some(old) if self.is_over(old) && !self.stopped.cleanups => Renewed::Expired,
            Some(old) if old.canonical() == e => Renewed::Unchanged,
            Some(_) => {
                self.move_to(id, e, payload);
                Renewed::Renewed
            }
        }
    }

    pub(crate) fn replace(&mut self, mode: Mode, new: &[u8], e: i64, payload: Option<&[u8]>, old: &[u8]) -> Replaced {
        if shard_of(new, self.rules.shards) == shard_of(old, self.rules.shards) {
            self.look(old);
        }
        let carried: Option<Bytes> = match payload {
            Some(payload) => Some(payload.to_vec()),
            None => self.armed.get(old).and_then(|_| self.payloads.get(old).cloned()),
        };
        let tracked = self.track(mode, new, e, carried.as_deref());
        let replaced = !matches!(tracked, Tracked::Exists | Tracked::NoKey) && self.remove(old) == Removed::Removed;
        Replaced { tracked, replaced }
    }

    pub(crate) fn remove(&mut self, id: &[u8]) -> Removed {
        let armed = self.armed.remove(id);
        let answer = match (armed, self.open.contains_key(id)) {
            (Some(_), _) => Removed::Removed,
            (None, true) => Removed::Voided,
            (None, false) => Removed::Unknown,
        };
        if let Some(e) = armed {
            self.payloads.remove(id);
            self.every.remove(id);
            self.void_reminders(id, e);
        }
        if armed.is_none() || !self.rules.delivers {
            self.void_cleanup(id);
        }
        if self.keys.remove(id).is_some() && answer == Removed::Unknown {
            return Removed::Removed;
        }
        if self.bad.remove(id).is_some() && answer == Removed::Unknown {
            self.payloads.remove(id);
            return Removed::Removed;
        }
        answer
    }

    pub(crate) fn expire(&mut self, id: &[u8]) -> Expired {
        self.look(id);
        let Some(e) = self.armed.remove(id) else {
            return if self.open.contains_key(id) { Expired::Open } else { Expired::Unknown };
        };
        self.void_reminders(id, e);
        if !self.rules.delivers {
            self.void_cleanup(id);
        }
        self.every.remove(id);
        self.keys.remove(id);
        self.open_cleanup(Kind::Ended, e, id, self.now);
        Expired::Ended
    }

    fn move_to(&mut self, id: &[u8], e: Score, payload: Option<&[u8]>) {
        if let Some(payload) = payload {
            self.payloads.insert(id.to_vec(), payload.to_vec());
        }
        let old = self.armed.insert(id.to_vec(), e);
        if self.rules.keyed.is_some() {
            self.keys.insert(id.to_vec(), Some(e.floor()));
        }
        self.set_leads(id, e, old);
    }

    /// C4: a step back of more than the tolerance rewinds the sweeps.
    pub(super) fn ride_out_clock_step(&mut self, shard: Option<u16>) {
        for ((_, lead), frontier) in
            self.frontiers.iter_mut().filter(|((at, _), _)| shard.is_none_or(|shard| *at == shard))
        {
            if frontier.score.value() > (self.now + lead + self.rules.tolerance) as f64 {
                *frontier = Frontier::all((self.now + self.rules.next_smaller(*lead)) as f64);
            }
        }
    }
}
