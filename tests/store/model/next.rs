//! I3, I4 and I6: what a claim leaves due, and when the next thing is.

use std::collections::BTreeSet;

use forewarn::store::Next;

use super::Model;
use crate::words::{Bytes, Kind, Lane, Notice, shard_of};

/// How long a worker may sleep.
const MAX_POLL: i64 = 1000;

impl Model {
    pub(super) fn check_next(&self, lane: &Lane, told: Next, limit: u32) -> Result<(), String> {
        let due = self.left_due(lane, false);
        let hands = |kind| self.hands_out(lane, kind);
        let (due_at, poll_at) = match told {
            // What is swept in silence may count as a backlog; it need not.
            Next::Backlog if self.left_due(lane, true).is_empty() => {
                return Err("I6: a backlog is reported and nothing is due".to_owned());
            }
            Next::Backlog => return Ok(()),
            // "Look again at once" says the same.
            Next::At { due_at_ms: Some(at), .. } if !due.is_empty() && at <= self.now => return Ok(()),
            _ if !due.is_empty() => {
                return Err(format!("I3/I4: no backlog is reported (limit {limit}), but left behind: {due:?}"));
            }
            Next::Paused { .. } if hands(Kind::Expired) || hands(Kind::Reminder(1)) => {
                return Err("paused is reported, but the route is not paused".to_owned());
            }
            Next::Paused { poll_at_ms } => (None, poll_at_ms),
            Next::At { .. } if !hands(Kind::Expired) && !hands(Kind::Reminder(1)) => {
                return Err(format!("{told:?} is reported, but the route is paused"));
            }
            Next::At { due_at_ms, poll_at_ms } => {
                let exact = self.next_event(lane);
                if due_at_ms != exact {
                    return Err(format!("I6: the next event is told as {due_at_ms:?}, but is {exact:?}"));
                }
                (due_at_ms, poll_at_ms)
            }
        };
        if poll_at > self.now + MAX_POLL
            || poll_at < self.now
            || due_at.is_some_and(|due_at| poll_at > due_at.max(self.now))
        {
            return Err(format!("poll at {poll_at} with due at {due_at:?} and now {}", self.now));
        }
        Ok(())
    }

    /// Everything that a claim of this route would take now; `may`: also what it would only look at.
    fn left_due(&self, lane: &Lane, may: bool) -> Vec<String> {
        let mut due = Vec::new();
        for (notice, delivery) in self.queues.get(&lane.name).into_iter().flatten() {
            // A paused class is put off when it is met; it need not be met.
            if delivery.at <= self.now && (may || self.hands_out(lane, notice.kind)) {
                due.push(format!("{notice:?} {delivery:?}"));
            }
        }
        for (id, e) in &self.armed {
            if !self.stopped.cleanups && self.is_over(*e) {
                due.push(format!("the end of {} at {e:?}", id.escape_ascii()));
            }
            if e.is_odd() {
                due.push(format!("the quarantine of {}", id.escape_ascii()));
            }
            for lead in self.rules.leads.iter().copied() {
                let in_window = self.is_inside(*e, lead) && self.rest(*e) > self.rules.next_smaller(lead) as f64;
                let counts = may || !self.is_silent(lead, *e, id);
                if !self.stopped.reminders && in_window && counts && !self.is_swept(lead, *e, id) {
                    due.push(format!("the reminder {lead} of {} at {e:?}", id.escape_ascii()));
                }
            }
        }
        due
    }

    /// The next instant at which a claim of this route has something to do, if nothing is due now.
    fn next_event(&self, lane: &Lane) -> Option<i64> {
        let queued = self.queues.get(&lane.name).into_iter().flatten().map(|(_, delivery)| delivery.at);
        let ends = self.armed.values().filter(|_| !self.stopped.cleanups);
        let ends = ends.map(|e| self.ends_at(*e));
        let crossings = self.rules.leads.iter().flat_map(|lead| {
            let ahead = self.armed.iter().filter(|(id, e)| {
                !self.stopped.reminders && !self.is_inside(**e, *lead) && !self.is_swept(*lead, **e, id)
            });
            ahead.map(|(_, e)| (e.value() - *lead as f64).ceil() as i64)
        });
        queued.chain(ends).chain(crossings).min()
    }

    /// The first thing that is to be handed out on a route in one shard, and what it is; without what concerns `except`.
    pub(crate) fn first_event(&self, route: &str, shard: u16, except: &BTreeSet<Bytes>) -> Option<(i64, String)> {
        let lane = self.lane(route)?;
        let counts = |id: &Bytes| shard_of(id, self.rules.shards) == shard && !except.contains(id);
        let mut events = Vec::new();
        for (notice, delivery) in self.queues.get(route).into_iter().flatten() {
            if counts(&notice.id) && self.hands_out(lane, notice.kind) && self.state(notice).is_ok() {
                events.push((delivery.at, format!("{notice:?}")));
            }
        }
        for (id, e) in self.armed.iter().filter(|(id, e)| counts(id) && !e.is_odd()) {
            let end = Kind::Expired;
            if !self.stopped.cleanups && self.hands_out(lane, end) && lane.wants(end, &self.rules) {
                events.push((self.ends_at(*e), format!("{:?}", Notice::new(end, *e, id))));
            }
            for lead in self.rules.leads.iter().copied() {
                let kind = Kind::Reminder(lead);
                let speaks = lane.wants(kind, &self.rules) && self.hands_out(lane, kind) && !self.stopped.reminders;
                if speaks && !self.is_swept(lead, *e, id) && !self.is_silent(lead, *e, id) {
                    let at = (e.value() - lead as f64).ceil() as i64;
                    // What is past its window is not spoken any more.
                    if self.rest(*e) > self.rules.next_smaller(lead) as f64 {
                        events.push((at, format!("{:?}", Notice::new(kind, *e, id))));
                    }
                }
            }
        }
        events.into_iter().min()
    }
}
