//! W3: what a scripted set means for each lead.

use std::collections::BTreeSet;

use forewarn::model::Late;

use super::{Delivery, Model};
use crate::words::{Kind, Notice, Score};

impl Model {
    /// The score of an id becomes `e` by a script; `old` is what it was.
    pub(super) fn set_leads(&mut self, id: &[u8], e: Score, old: Option<Score>) {
        let living = old.filter(|old| self.rest(*old) > 0.0);
        self.set_leads_of(id, e, old, living);
    }

    /// The same, told whether the life goes on: `living` is `old` or nothing.
    pub(super) fn set_leads_of(&mut self, id: &[u8], e: Score, old: Option<Score>, living: Option<Score>) {
        let mut covered = self.rest(e) <= 0.0;
        for lead in self.rules.leads.clone() {
            let kind = Kind::Reminder(lead);
            let was_inside = living.is_some_and(|old| self.is_inside(old, lead));
            // Not yet swept counts as owed on every route, ready but never handed out on that one.
            let owes = self.rules.late == Late::Crossing && was_inside;
            let unswept =
                owes && living.is_some_and(|old| !self.is_swept(lead, old, id) && !self.is_silent(lead, old, id));
            let mut unspoken = BTreeSet::new();
            if let Some(old) = old.filter(|old| self.is_inside(*old, lead + self.rules.tolerance)) {
                unspoken.extend(self.void_everywhere(&Notice::new(kind, old, id)));
            }
            unspoken.extend(self.void_everywhere(&Notice::new(kind, e, id)));
            if !owes {
                unspoken.clear();
            }

            let ahead = !self.is_swept(lead, e, id);
            if !self.is_inside(e, lead) {
                if ahead {
                    self.silent.remove(&(lead, id.to_vec()));
                } else {
                    // The clock stepped back a little and the sweep will not come by again (C4).
                    self.schedule(lead, e, id, e.floor() - lead, false, None);
                }
                continue;
            }
            // What a set makes speak is put there by the set, never left to the sweep: its event says so.
            if ahead {
                self.silent.insert((lead, id.to_vec()), e);
            }
            if !covered {
                let speaks = unswept
                    || match self.rules.late {
                        Late::Fire => true,
                        Late::Crossing => living.is_some() && !was_inside && self.may_cross(lead, id),
                        _ => false,
                    };
                if speaks {
                    self.schedule(lead, e, id, self.now, true, None);
                } else if !unspoken.is_empty() {
                    self.schedule(lead, e, id, self.now, true, Some(&unspoken));
                }
            }
            covered = true;
        }
    }

    /// Voids the reminders of a life that is removed or ended.
    pub(super) fn void_reminders(&mut self, id: &[u8], e: Score) {
        for lead in self.rules.leads.clone() {
            if self.is_inside(e, lead + self.rules.tolerance) {
                self.void_everywhere(&Notice::new(Kind::Reminder(lead), e, id));
                self.silent.remove(&(lead, id.to_vec()));
            }
        }
    }

    fn schedule(&mut self, lead: i64, e: Score, id: &[u8], at: i64, by_set: bool, only: Option<&BTreeSet<String>>) {
        let kind = Kind::Reminder(lead);
        let on_set = by_set && at != e.floor() - lead;
        for lane in self.lanes.clone() {
            if lane.wants(kind, &self.rules) && only.is_none_or(|routes| routes.contains(&lane.name)) {
                self.queues.entry(lane.name).or_default().insert(Notice::new(kind, e, id), Delivery::ready(at, on_set));
            }
        }
    }

    /// At most one crossing of an id and lead in `min_repeat`.
    fn may_cross(&mut self, lead: i64, id: &[u8]) -> bool {
        let place = (lead, id.to_vec());
        if self.crossed.get(&place).is_some_and(|until| *until > self.now) {
            return false;
        }
        self.crossed.insert(place, self.now + self.rules.min_repeat.unwrap_or(lead));
        true
    }
}
