//! Setting deadlines: the body of track, renew and replace (W2, W3, W9).

use crate::model::{Id, Invalid, Mode, Renew, Track};
use crate::store::plan::check_payload;
use crate::store::{Removed, Renewed, Replaced, Tracked};

use super::{delivery::EXPIRED, error::Fault, operation::Operation};

/// Which verb sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Track(Mode),
    Renew,
}

/// What became of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Created,
    Moved,
    Unchanged,
    Exists,
    Kept,
    Expired,
    Unknown,
}

impl Operation<'_> {
    pub(super) fn track(&mut self, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, Fault> {
        self.save_rewound()?;
        let answers = entries.iter().map(|entry| self.track_one(mode, entry)).collect::<Result<_, _>>()?;
        self.wake()?;
        Ok(answers)
    }

    pub(super) fn renew(&mut self, entries: &[Renew]) -> Result<Vec<Renewed>, Fault> {
        self.save_rewound()?;
        let answers = entries.iter().map(|entry| self.renew_one(entry)).collect::<Result<_, _>>()?;
        self.wake()?;
        Ok(answers)
    }

    pub(super) fn replace(&mut self, mode: Mode, new: &Track, old: &Id) -> Result<Replaced, Fault> {
        if new.id == *old {
            return Err(Invalid::new("replaces", "names the id itself; name the old id").into());
        }
        self.save_rewound()?;
        let mut new = new.clone();
        if new.payload.is_none() && self.armed(old.as_bytes())?.is_some() {
            new.payload = self.payload(old.as_bytes())?;
        }
        let tracked = self.track_one(mode, &new)?;
        let is_refused = matches!(tracked, Tracked::Exists | Tracked::Rejected(_));
        let replaced = !is_refused && self.remove_one(old.as_bytes())? == Removed::Removed;
        self.wake()?;
        Ok(Replaced { tracked, replaced })
    }

    fn track_one(&mut self, mode: Mode, entry: &Track) -> Result<Tracked, Fault> {
        let payload = entry.payload.as_deref();
        if let Err(invalid) = check_payload(self.scope.settings(), payload) {
            return Ok(Tracked::Rejected(invalid));
        }
        let e = entry.expires_at.as_millis();
        let already_expired = e <= self.now;
        match self.set(Verb::Track(mode), entry.id.as_bytes(), e, payload)? {
            Set::Created => Ok(Tracked::Created { already_expired }),
            Set::Moved => Ok(Tracked::Moved { already_expired }),
            Set::Unchanged => Ok(Tracked::Unchanged),
            Set::Exists => Ok(Tracked::Exists),
            Set::Kept => Ok(Tracked::Kept),
            other @ (Set::Expired | Set::Unknown) => Err(self.odd(format!("track came to {other:?}"))),
        }
    }

    fn renew_one(&mut self, entry: &Renew) -> Result<Renewed, Fault> {
        let payload = entry.payload.as_deref();
        if let Err(invalid) = check_payload(self.scope.settings(), payload) {
            return Ok(Renewed::Rejected(invalid));
        }
        match self.set(Verb::Renew, entry.id.as_bytes(), entry.expires_at.as_millis(), payload)? {
            Set::Moved => Ok(Renewed::Renewed),
            Set::Unchanged => Ok(Renewed::Unchanged),
            Set::Expired => Ok(Renewed::Expired),
            Set::Unknown => Ok(Renewed::Unknown),
            other @ (Set::Created | Set::Exists | Set::Kept) => Err(self.odd(format!("renew came to {other:?}"))),
        }
    }

    fn set(&mut self, verb: Verb, id: &[u8], e: i64, payload: Option<&[u8]>) -> Result<Set, Fault> {
        let old = self.armed(id)?;
        // Expired, and no worker has swept it yet.
        let is_overdue = old.is_some_and(|old| old + self.scope.grace_ms <= self.now);
        // W9: an operator pauses cleanups to save people.
        let may_be_saved = verb == Verb::Renew && self.paused.cleanups;
        let living = old.filter(|_| !is_overdue || may_be_saved);
        if verb == Verb::Renew && living.is_none() {
            let is_known = old.is_some() || self.open_of(id)?.is_some();
            return Ok(if is_known { Set::Expired } else { Set::Unknown });
        }
        if old == Some(e) {
            return Ok(if verb == Verb::Track(Mode::Create) { Set::Exists } else { Set::Unchanged });
        }
        match (verb, living) {
            (Verb::Track(Mode::Create), Some(_)) => return Ok(Set::Exists),
            (Verb::Track(Mode::ExtendOnly), Some(old)) if e < old => return Ok(Set::Kept),
            _ => {}
        }
        if living.is_none() {
            self.begin_life(id, old)?;
        }
        if let Some(bytes) = payload {
            self.set_payload(id, bytes)?;
        }
        self.set_leads(id, e, old)?;
        self.arm(id, e)?;
        Ok(if living.is_some() { Set::Moved } else { Set::Created })
    }

    /// A new life: voids the cleanup of an earlier one, or opens it where lives own separate resources.
    fn begin_life(&mut self, id: &[u8], overdue: Option<i64>) -> Result<(), Fault> {
        if !self.scope.delivers {
            if let Some(open) = self.open_of(id)? {
                self.void_cleanup(id, open)?;
            }
        } else if let Some(old) = overdue {
            self.open_cleanup(EXPIRED, old, id, old + self.scope.grace_ms)?;
        }
        self.forget_payload(id)?;
        self.forget_period(id)
    }

    pub(super) fn arm(&self, id: &[u8], e: i64) -> Result<(), Fault> {
        self.desk.run(
            "INSERT INTO armed (namespace, id, expires_at) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at",
            (self.scope.key, id, e),
        )?;
        Ok(())
    }
}
