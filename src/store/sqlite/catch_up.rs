//! What a resume with a rate holds back, until what gathered during the pause is worked off (R2).

use crate::model::{CatchingUp, Name, Pause};

use super::{claim::Classes, delivery::EXPIRED, error::Fault, operation::Operation};

/// What is not used for so long lapses; workers look that often. So long a route's limit stands in any case: what was put off
/// while the route was paused comes back by then.
const SAVED_MS: i64 = 1000;
/// A worker need not come for less than goes in this time.
const STEP_MS: f64 = 50.0;
/// The entries of a queue of which some may go.
const LOOKED_AT: usize = 1000;

const REMINDERS: &str = "reminders";
const CLEANUPS: &str = "cleanups";

/// The limits a claim has to keep: of what is swept, and of what its queue hands out.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) reminders: Option<Limit>,
    pub(super) cleanups: Option<Limit>,
    queued_reminders: Option<Limit>,
    queued_cleanups: Option<Limit>,
}

/// The limit of one class.
#[derive(Debug)]
pub(super) struct Limit {
    route: String,
    class: &'static str,
    rate: f64,
    /// The instant up to which it is used, in ms.
    used: f64,
    /// How many may go now.
    room: u64,
    /// How many must wait; those that were counted.
    left: u64,
    may_end: bool,
    has_stepped_back: bool,
}

/// What a claim may take of its queue: in all, and by class where that matters.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Queued {
    pub(super) all: u64,
    by_class: Option<(u64, u64)>,
}

impl Limit {
    /// How many of `count` may go.
    fn allow(limit: &mut Option<Self>, count: u64) -> u64 {
        let Some(limit) = limit else { return count };
        limit.left = count.saturating_sub(limit.room);
        count - limit.left
    }

    fn is_holding(limit: Option<&Self>) -> bool {
        limit.is_some_and(|limit| limit.left > 0)
    }

    /// The instant (ms) at which the next of those that wait may go.
    fn goes_on_at(&self) -> i64 {
        let step = (self.rate * STEP_MS / 1000.0).floor().max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "an instant, and a small count"
        )]
        let at = (self.used + step.min(self.left as f64) * 1000.0 / self.rate).ceil() as i64;
        at
    }
}

impl Limits {
    /// How far to count what is swept, so as to know whether there is more than may go.
    pub(super) fn most(limit: Option<&Limit>, most: u64) -> u64 {
        limit.map_or(most, |limit| most.max(limit.room.saturating_add(1)))
    }

    /// How many of those to be swept may go.
    pub(super) fn allow(&mut self, reminders: u64, cleanups: u64) -> (u64, u64) {
        (Limit::allow(&mut self.reminders, reminders), Limit::allow(&mut self.cleanups, cleanups))
    }

    pub(super) fn holds_reminders(&self) -> bool {
        Limit::is_holding(self.reminders.as_ref())
    }

    pub(super) fn holds_cleanups(&self) -> bool {
        Limit::is_holding(self.cleanups.as_ref())
    }

    pub(super) fn holds_queue(&self) -> bool {
        Limit::is_holding(self.queued_reminders.as_ref()) || Limit::is_holding(self.queued_cleanups.as_ref())
    }

    /// When the next of what is held back may go, if anything is.
    pub(super) fn goes_on_at(&self) -> Option<i64> {
        let all = [&self.reminders, &self.cleanups, &self.queued_reminders, &self.queued_cleanups];
        all.into_iter().flatten().filter(|limit| limit.left > 0).map(Limit::goes_on_at).min()
    }

    fn limits_queue(&self) -> bool {
        self.queued_reminders.is_some() || self.queued_cleanups.is_some()
    }
}

impl Queued {
    /// Splits a share of the queue: pairs of the class, if one is meant, and how many. No class waits for the other.
    pub(super) fn split(self, share: u64) -> Vec<(Option<bool>, u64)> {
        let Some((reminders, cleanups)) = self.by_class else { return vec![(None, share)] };
        let first = reminders.min((share / 2).max(share.saturating_sub(cleanups)));
        vec![(Some(false), first), (Some(true), cleanups.min(share - first))]
    }
}

impl Operation<'_> {
    /// The limits for a claim of a route. A class that is paused keeps its limit for later.
    pub(super) fn limits(&self, route: &Name, hands: Classes) -> Result<Limits, Fault> {
        let rows = self.desk.rows(
            "SELECT route, class, rate, used, stands FROM catch_up WHERE namespace = ?1 AND route IN ('', ?2)",
            (self.scope.key, route.as_str()),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
        )?;
        let mut limits = Limits::default();
        for row in rows {
            let (route, class, rate, used, stands): (String, String, f64, f64, i64) = row;
            let is_queue = !route.is_empty();
            let (place, class) = match (class == CLEANUPS, is_queue) {
                (false, false) => (&mut limits.reminders, REMINDERS),
                (true, false) => (&mut limits.cleanups, CLEANUPS),
                (false, true) if hands.reminders => (&mut limits.queued_reminders, REMINDERS),
                (true, true) if hands.cleanups => (&mut limits.queued_cleanups, CLEANUPS),
                _ => continue,
            };
            #[expect(clippy::cast_precision_loss, reason = "instants are below 2^53")]
            let (now, saved) = (self.now as f64, SAVED_MS as f64);
            // A clock that stepped back must not hold it up.
            let has_stepped_back = used > now;
            let used = used.max(now - saved).min(now);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and at most the rate"
            )]
            let room = ((now - used) * rate / 1000.0 + 0.001).floor() as u64;
            let may_end = stands <= self.now || stands > self.now + SAVED_MS;
            *place = Some(Limit { route, class, rate, used, room, left: 0, may_end, has_stepped_back });
        }
        Ok(limits)
    }

    /// What may be taken of a queue; counts no further than `most`.
    pub(super) fn count_allowed(&self, limits: &mut Limits, route: &Name, most: u64) -> Result<Queued, Fault> {
        if !limits.limits_queue() {
            return Ok(Queued { all: self.count_queue(route, most)?, by_class: None });
        }
        let are_cleanups: Vec<bool> = self.desk.rows(
            "SELECT kind <= ?5 FROM due WHERE namespace = ?1 AND route = ?2 AND at <= ?3 ORDER BY at LIMIT ?4",
            (self.scope.key, route.as_str(), self.now, LOOKED_AT, EXPIRED),
            |row| row.get(0),
        )?;
        let cleanups = are_cleanups.iter().filter(|is_cleanup| **is_cleanup).count() as u64;
        let reminders = are_cleanups.len() as u64 - cleanups;
        for limit in [&mut limits.queued_reminders, &mut limits.queued_cleanups].into_iter().flatten() {
            limit.may_end &= are_cleanups.len() < LOOKED_AT;
        }
        let reminders = Limit::allow(&mut limits.queued_reminders, reminders);
        let cleanups = Limit::allow(&mut limits.queued_cleanups, cleanups);
        Ok(Queued { all: reminders + cleanups, by_class: Some((reminders, cleanups)) })
    }

    /// A claim has taken so many: of its queue by class, and of what is swept.
    pub(super) fn charge(
        &self,
        limits: &mut Limits,
        queued: &[(Option<bool>, u64)],
        swept: (u64, u64),
    ) -> Result<(), Fault> {
        let of_queue = |class| queued.iter().find(|(of, _)| *of == Some(class)).map_or(0, |(_, count)| *count);
        let taken = [swept.0, swept.1, of_queue(false), of_queue(true)];
        let Limits { reminders, cleanups, queued_reminders, queued_cleanups } = limits;
        for (limit, taken) in [reminders, cleanups, queued_reminders, queued_cleanups].into_iter().zip(taken) {
            if let Some(limit) = limit {
                self.charge_one(limit, taken)?;
            }
        }
        Ok(())
    }

    fn charge_one(&self, limit: &mut Limit, taken: u64) -> Result<(), Fault> {
        #[expect(clippy::cast_precision_loss, reason = "at most the rate")]
        let taken_ms = taken as f64 * 1000.0 / limit.rate;
        limit.used += taken_ms;
        let of = (self.scope.key, limit.route.as_str(), limit.class);
        if limit.left == 0 && limit.may_end {
            self.desk.run("DELETE FROM catch_up WHERE namespace = ?1 AND route = ?2 AND class = ?3", of)?;
        } else if taken > 0 || limit.has_stepped_back {
            self.desk.run(
                "UPDATE catch_up SET used = ?4 WHERE namespace = ?1 AND route = ?2 AND class = ?3",
                (of.0, of.1, of.2, limit.used),
            )?;
        }
        Ok(())
    }

    /// What a pause or a resume makes of the limits of its scope.
    pub(super) fn set_limits(&self, pause: &Pause) -> Result<(), Fault> {
        let route = pause.route.as_ref().map_or("", Name::as_str);
        let stands = self.now + if pause.route.is_some() { SAVED_MS } else { 0 };
        for (class, is_meant) in [(REMINDERS, pause.reminders), (CLEANUPS, pause.cleanups)] {
            if !is_meant {
                continue;
            }
            self.desk.run(
                "DELETE FROM catch_up WHERE namespace = ?1 AND route = ?2 AND class = ?3",
                (self.scope.key, route, class),
            )?;
            if let Some(rate) = pause.rate.filter(|_| !pause.paused) {
                self.desk.run(
                    "INSERT INTO catch_up (namespace, route, class, rate, used, stands) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    (self.scope.key, route, class, rate.get(), self.now, stands),
                )?;
            }
        }
        Ok(())
    }

    /// What is limited now, for people: of a route, or of the namespace.
    pub(super) fn catching_up(&self, route: Option<&Name>) -> Result<CatchingUp, Fault> {
        let rate = |class| {
            self.desk.row(
                "SELECT rate FROM catch_up WHERE namespace = ?1 AND route = ?2 AND class = ?3",
                (self.scope.key, route.map_or("", Name::as_str), class),
                |row| row.get(0),
            )
        };
        Ok(CatchingUp { reminders: rate(REMINDERS)?, cleanups: rate(CLEANUPS)? })
    }
}
