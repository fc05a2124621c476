//! The invariants read off the outside alone: sets on one side, first hand-outs on the other.
//!
//! Knows nothing of queues, cursors or marks. Where the model would share a mistake with the store, this does not.

use std::collections::{BTreeMap, BTreeSet};

use forewarn::model::Late;

use crate::model::Model;
use crate::words::{Bytes, Kind, Notice, Score};

/// What W3 says of one lead for one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    /// It speaks once its window is open, on every route that wants it.
    Must,
    /// It stays silent.
    Never,
    /// It depends on what this ledger does not know.
    Either,
}

/// The moment a score became what it is.
#[derive(Clone, Debug)]
struct Set {
    serial: u64,
    at: i64,
    e: Score,
    voices: BTreeMap<i64, Voice>,
}

/// How a score came to be what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    Script,
    Raw,
    Recurrence,
}

/// All sets and what was handed out first for each.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    serial: u64,
    sets: BTreeMap<Bytes, Set>,
    /// The last set of each id, armed or not.
    last: BTreeMap<Bytes, u64>,
    spoken: BTreeSet<(u64, i64, String)>,
    cleaned: BTreeMap<(Notice, String), u64>,
    /// Until when no further crossing speaks, and whether that is known for sure.
    crossings: BTreeMap<(Bytes, i64), (i64, bool)>,
    /// Notices put back by hand may speak again.
    requeued: BTreeSet<(Notice, String)>,
    /// The clock went back beyond the tolerance: repeats are allowed.
    pub(crate) repeats_allowed: bool,
    has_stepped_back: bool,
}

impl Ledger {
    /// Compares the armed ids before and after one operation; `model` stands after it.
    pub(crate) fn note_sets(&mut self, before: &BTreeMap<Bytes, Score>, model: &Model, hand: Hand) {
        self.sets.retain(|id, _| model.armed.contains_key(id));
        for (id, e) in &model.armed {
            let old = before.get(id).copied();
            if old == Some(*e) {
                continue;
            }
            let old = old.filter(|_| hand != Hand::Recurrence);
            let voices =
                (model.rules.leads.iter()).map(|lead| (*lead, self.voice(model, id, *e, old, *lead, hand))).collect();
            self.serial += 1;
            self.last.insert(id.clone(), self.serial);
            self.sets.insert(id.clone(), Set { serial: self.serial, at: model.now, e: *e, voices });
        }
    }

    fn voice(&mut self, model: &Model, id: &[u8], e: Score, old: Option<Score>, lead: i64, hand: Hand) -> Voice {
        let rest = |e: Score| e.value() - model.now as f64;
        if rest(e) > lead as f64 {
            // A clock that steps back a little may lose what a raw client sets meanwhile.
            return if hand == Hand::Raw && self.has_stepped_back { Voice::Either } else { Voice::Must };
        }
        if hand == Hand::Raw {
            return Voice::Either;
        }
        let is_tightest = rest(e) > model.rules.next_smaller(lead) as f64;
        match model.rules.late {
            Late::Skip => Voice::Never,
            Late::Fire if is_tightest => Voice::Must,
            Late::Fire => Voice::Never,
            _ => match old.filter(|old| rest(*old) > 0.0) {
                None => Voice::Never,
                Some(old) if rest(old) > lead as f64 && is_tightest => {
                    let span = model.rules.min_repeat.unwrap_or(lead);
                    let (until, is_sure) = self.crossings.entry((id.to_vec(), lead)).or_insert((i64::MIN, true));
                    if *until > model.now {
                        if !*is_sure {
                            *until = (*until).max(model.now + span);
                        }
                        return Voice::Either;
                    }
                    (*until, *is_sure) = (model.now + span, true);
                    Voice::Must
                }
                Some(_) => Voice::Either,
            },
        }
    }

    /// An id was set in a way that cannot be followed from outside.
    pub(crate) fn note_unseen(&mut self, id: &[u8], model: &Model) {
        self.sets.remove(id);
        for lead in &model.rules.leads {
            let (until, is_sure) = self.crossings.entry((id.to_vec(), *lead)).or_insert((i64::MIN, false));
            *until = (*until).max(model.now + model.rules.min_repeat.unwrap_or(*lead));
            *is_sure = false;
        }
    }

    /// An operator changed something: what was still to be said may change with it.
    pub(crate) fn note_change(&mut self) {
        for set in self.sets.values_mut() {
            for voice in set.voices.values_mut() {
                *voice = Voice::Either;
            }
        }
    }

    /// A lead that goes and comes back may speak again.
    pub(crate) fn note_leads(&mut self) {
        self.note_change();
        self.spoken.clear();
    }

    /// The clock went back: within the tolerance nothing is said twice.
    pub(crate) fn note_step_back(&mut self, beyond_tolerance: bool) {
        self.has_stepped_back = true;
        if beyond_tolerance {
            self.repeats_allowed = true;
            self.note_change();
        }
    }

    pub(crate) fn note_requeue(&mut self, notice: &Notice, route: &str) {
        self.requeued.insert((notice.clone(), route.to_owned()));
    }

    /// A first hand-out (n = 1).
    pub(crate) fn note_hand_out(&mut self, notice: &Notice, route: &str) -> Result<(), String> {
        let place = (notice.clone(), route.to_owned());
        let may_repeat = self.requeued.remove(&place) || self.repeats_allowed;
        let set = self.sets.get(&notice.id);
        match notice.kind {
            Kind::Reminder(lead) => {
                let Some(set) = set.filter(|set| set.e == notice.e) else {
                    return Err(format!("I1: {notice:?} was handed out and is not armed"));
                };
                if set.voices.get(&lead) == Some(&Voice::Never) {
                    return Err(format!("W3: {notice:?} should have stayed silent"));
                }
                if !self.spoken.insert((set.serial, lead, route.to_owned())) && !may_repeat {
                    return Err(format!("I2: {notice:?} spoke twice on {route} for one set"));
                }
            }
            Kind::Expired | Kind::Ended | Kind::Gone => {
                // The same expiry set again is another life and the same notice.
                let life = self.last.get(&notice.id).copied().unwrap_or_default();
                if self.cleaned.insert(place, life) == Some(life) && !may_repeat {
                    return Err(format!("I4: {notice:?} was cleaned twice on {route}"));
                }
            }
        }
        Ok(())
    }

    /// I3, when nothing is left to be claimed on `route`; `latest` is the latest instant the clock ever showed.
    pub(crate) fn check_drained(&self, model: &Model, route: &str, latest: i64) -> Result<(), String> {
        let Some(lane) = model.lane(route) else { return Ok(()) };
        for (id, set) in &self.sets {
            let rest = set.e.value() - model.now as f64;
            for (lead, voice) in &set.voices {
                let kind = Kind::Reminder(*lead);
                // A window that had closed before the clock stepped back stays closed.
                let closed = set.e.value() - latest.max(model.now) as f64 <= model.rules.next_smaller(*lead) as f64;
                let in_window = rest <= *lead as f64 && !closed;
                let hears = lane.wants(kind, &model.rules) && model.hands_out(lane, kind);
                if *voice == Voice::Must
                    && set.at <= model.now
                    && in_window
                    && hears
                    && !self.spoken.contains(&(set.serial, *lead, route.to_owned()))
                {
                    return Err(format!("I3: {} at {:?} should have had {lead} on {route}", id.escape_ascii(), set.e));
                }
            }
        }
        Ok(())
    }
}
