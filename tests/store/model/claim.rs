//! Follows a claim: what it took must have been due and allowed, what it left must be said.

use std::collections::BTreeMap;

use forewarn::store::{Claim, Claims, Next};

use super::{Delivery, Model, Open};
use crate::ground::beneath;
use crate::snapshot::Snapshot;
use crate::words::{Bytes, Frontier, Kind, Lane, Notice, Score, parse_token, shard_of};

/// How long a delivery of a paused class is put off.
const DEFERRED: i64 = 1000;
/// Lapsed notices handed out twice or more that go out in one claim of a shard.
const SUSPECTS: usize = 8;

/// One claim as it is followed.
pub(super) struct Taking<'a> {
    pub(super) lane: Lane,
    lease: i64,
    reply: &'a Claims,
    pub(super) after: &'a Snapshot,
    handed: BTreeMap<Notice, &'a Claim>,
    dropped: BTreeMap<&'static str, u64>,
    lapsed: u64,
    quarantined: u64,
}

impl Model {
    /// Follows a claim that was answered with `reply` and left the store as in `after`.
    pub(crate) fn claim(
        &mut self,
        route: &str,
        limit: u32,
        lease: i64,
        reply: &Claims,
        after: &Snapshot,
    ) -> Result<(), String> {
        let lane = self.lane(route).cloned().ok_or_else(|| format!("a claim for {route}, which is no route"))?;
        if reply.now_ms != self.now {
            return Err(format!("the claim ran at {}, not at {}", reply.now_ms, self.now));
        }
        if reply.claims.len() > limit as usize {
            return Err(format!("I8: {} notices for a limit of {limit}", reply.claims.len()));
        }
        let mut handed = BTreeMap::new();
        for claim in &reply.claims {
            let (_, _, notice) = parse_token(&beneath(&claim.token)).ok_or(format!("odd token {:?}", claim.token))?;
            if handed.insert(notice.clone(), claim).is_some() {
                return Err(format!("{notice:?} was handed out twice in one claim"));
            }
        }
        let mut taking =
            Taking { lane, lease, reply, after, handed, dropped: BTreeMap::new(), lapsed: 0, quarantined: 0 };
        let stored = self.frontiers.clone();
        self.ride_out_clock_step(None);
        self.quarantine(&mut taking);
        self.look_for_claim(&taking)?;
        let reminders = self.swept_reminders(&taking, &stored)?;
        let ended = self.swept_lives(&taking)?;
        self.take_from_queue(&mut taking)?;
        for notice in reminders {
            let Kind::Reminder(lead) = notice.kind else { continue };
            let due_at = notice.e.floor() - lead;
            self.deliver(&mut taking, &notice, due_at)?;
        }
        self.frontiers = after.frontiers.clone();
        for (id, e, next) in ended {
            self.end_life(&mut taking, &id, e, next)?;
        }
        self.crossed.retain(|place, until| *until > self.now || after.crossed.contains_key(place));
        for claim in &reply.claims {
            let (_, _, notice) = parse_token(&beneath(&claim.token)).ok_or("odd token")?;
            let payload =
                if notice.kind.is_cleanup() { self.moved.get(&notice) } else { self.payloads.get(&notice.id) };
            if claim.payload.as_ref() != payload {
                return Err(format!("{notice:?} carries {:?}, not {payload:?}", claim.payload));
            }
        }
        if let Some((notice, _)) = taking.handed.pop_first() {
            return Err(format!("{notice:?} was handed out though it was not due on {route}"));
        }
        self.check_answer(&taking, limit)
    }

    /// Ids whose score cannot be an expiry leave `exp` for `bad`.
    fn quarantine(&mut self, taking: &mut Taking<'_>) {
        for (id, score) in self.armed.clone() {
            if (score.is_odd() || self.is_foreign(&id))
                && !taking.after.armed.contains_key(&id)
                && taking.after.bad.contains_key(&id)
            {
                self.armed.remove(&id);
                self.bad.insert(id, score);
                taking.quarantined += 1;
            }
        }
        let armed = &self.armed;
        self.bad.retain(|id, _| !armed.contains_key(id) || taking.after.bad.contains_key(id));
    }

    /// The reminders between the old and the new place of each sweep.
    fn swept_reminders(
        &self,
        taking: &Taking<'_>,
        stored: &BTreeMap<(u16, i64), Frontier>,
    ) -> Result<Vec<Notice>, String> {
        let mut swept = Vec::new();
        for lead in self.rules.leads.iter().copied() {
            let low = Frontier::all((self.now + self.rules.next_smaller(lead)) as f64);
            for shard in 0..self.rules.shards {
                let place = (shard, lead);
                let old = self.frontiers.get(&place).cloned().unwrap_or_else(Frontier::nothing);
                let new = taking.after.frontiers.get(&place).cloned().unwrap_or_else(Frontier::nothing);
                if stored.get(&place).is_some_and(|stored| *stored == new) || new == old {
                    continue;
                }
                if self.stopped.reminders {
                    return Err(format!("the sweep of {lead} moved to {new:?} while reminders are paused"));
                }
                if new < old {
                    return Err(format!("the sweep of {lead} went back from {old:?} to {new:?}"));
                }
                if new > Frontier::all((self.now + lead) as f64) {
                    return Err(format!("the sweep of {lead} went on to {new:?}, beyond the lead"));
                }
                let from = old.max(low.clone());
                for (id, e) in &self.armed {
                    let met = !from.has_passed(*e, id) && new.has_passed(*e, id);
                    if met && shard_of(id, self.rules.shards) == shard && !self.is_silent(lead, *e, id) {
                        swept.push(Notice::new(Kind::Reminder(lead), *e, id));
                    }
                }
            }
        }
        Ok(swept)
    }

    /// The lives that ended: (id, e, the next e if it recurs).
    fn swept_lives(&self, taking: &Taking<'_>) -> Result<Vec<(Bytes, Score, Option<Score>)>, String> {
        let mut ended = Vec::new();
        for (id, e) in &self.armed {
            let now_armed = taking.after.armed.get(id).copied();
            if now_armed == Some(*e) {
                continue;
            }
            if !self.is_over(*e) || self.stopped.cleanups || self.keys.contains_key(id) {
                return Err(format!("I4: {} was disarmed at {} with e {e:?}", id.escape_ascii(), self.now));
            }
            let next = self.every.get(id).map(|period| {
                let (from, period) = (e.canonical().floor(), *period);
                Score::ms(from + period * ((self.now - from).div_euclid(period) + 1).max(1))
            });
            if now_armed != next {
                return Err(format!("{} should be armed with {next:?}, not {now_armed:?}", id.escape_ascii()));
            }
            ended.push((id.clone(), *e, next));
        }
        Ok(ended)
    }

    /// What waited in the route's queue: handed out again, dropped, put off, given up, or left.
    fn take_from_queue(&mut self, taking: &mut Taking<'_>) -> Result<(), String> {
        let route = taking.lane.name.clone();
        let due: Vec<(Notice, Delivery)> = (self.queues.get(&route).into_iter().flatten())
            .filter(|(_, delivery)| delivery.at <= self.now)
            .map(|(notice, delivery)| (notice.clone(), delivery.clone()))
            .collect();
        // Judged by how things stood before anything of this claim was carried out.
        let states: Vec<_> = due.iter().map(|(notice, _)| self.state(notice)).collect();
        let left = |notice: &Notice| taking.after.queues.get(&route).and_then(|queue| queue.get(notice)).copied();
        let mut suspects = BTreeMap::<u16, usize>::new();
        let mut withheld = Vec::new();
        let mut fates = Vec::new();
        for ((notice, delivery), state) in due.into_iter().zip(states) {
            let untouched = left(&notice) == Some((delivery.at, delivery.n, delivery.c));
            let is_suspect = delivery.c > 0 && delivery.n >= 2;
            let shard = shard_of(&notice.id, self.rules.shards);
            let lapses = self.records.get(&(route.clone(), notice.clone())).map_or(0, |record| record.lapses);
            // A new life with the same expiry may be swept by the very claim that gives this one up.
            let is_given_up = delivery.c > 0 && lapses + 1 >= self.rules.max_deliveries;
            if let Err(reason) = state {
                if untouched {
                    continue;
                }
                *taking.dropped.entry(reason).or_default() += 1;
                fates.push(notice);
            } else if !self.hands_out(&taking.lane, notice.kind) {
                if !untouched {
                    let queue = self.queues.entry(route.clone()).or_default();
                    queue.insert(notice, Delivery { at: self.now + DEFERRED, put_off: true, ..delivery });
                }
            } else if !is_given_up && let Some(claim) = taking.handed.remove(&notice) {
                *suspects.entry(shard).or_default() += usize::from(is_suspect);
                self.hand_out_again(taking, claim, &notice, &delivery)?;
            } else if untouched {
                if is_suspect {
                    withheld.push(shard);
                }
            } else {
                *suspects.entry(shard).or_default() += usize::from(is_suspect);
                let mut record = self.records.get(&(route.clone(), notice.clone())).cloned().unwrap_or_default();
                record.lapses += 1;
                if delivery.c == 0 || record.lapses < self.rules.max_deliveries {
                    return Err(format!("{notice:?} vanished from {route} with {delivery:?}, {record:?}"));
                }
                self.park(super::Place::Dead, &route, &notice, &record);
                taking.lapsed += 1;
            }
        }
        for notice in fates {
            self.drop_void(&route, &notice);
        }
        if suspects.values().any(|count| *count > SUSPECTS) {
            return Err(format!("Q3: more than {SUSPECTS} suspects in one claim: {suspects:?}"));
        }
        if !withheld.is_empty() && taking.reply.next != Next::Backlog {
            return Err(format!("lapsed notices were withheld ({withheld:?}) and no backlog was reported"));
        }
        Ok(())
    }

    fn hand_out_again(
        &mut self,
        taking: &Taking<'_>,
        claim: &Claim,
        notice: &Notice,
        delivery: &Delivery,
    ) -> Result<(), String> {
        let place = (taking.lane.name.clone(), notice.clone());
        if delivery.c > 0 {
            self.records.entry(place.clone()).or_default().lapses += 1;
        }
        let record = self.records.get(&place).cloned().unwrap_or_default();
        let natural = match notice.kind {
            Kind::Reminder(lead) => notice.e.floor() - lead,
            Kind::Expired | Kind::Ended | Kind::Gone => notice.e.floor() + self.rules.grace,
        };
        let told = (claim.due_at_ms, claim.on_set);
        let known = told == (delivery.due_at, delivery.on_set)
            || delivery.put_off && told == (delivery.at, !notice.kind.is_cleanup());
        // Only a failure records when the notice was due; after a lapse or a release the natural instant will do.
        if !known && (delivery.n == 0 || record.failures > 0 || told != (natural, false)) {
            return Err(format!("{notice:?} tells due_at, on_set {told:?} after {delivery:?}"));
        }
        let expected = Delivery {
            at: self.now + taking.lease,
            n: (delivery.n + 1).min(15),
            c: 0,
            due_at: claim.due_at_ms,
            on_set: claim.on_set,
            put_off: false,
        };
        self.check_claim(taking, claim, notice, expected, &record)
    }

    /// A sweep met this notice: this route's delivery is handed out, the others are ready.
    fn deliver(&mut self, taking: &mut Taking<'_>, notice: &Notice, due_at: i64) -> Result<(), String> {
        for lane in self.lanes.clone() {
            // Two lives with equal kind and e are one notice: what is in flight already goes on.
            let in_flight = self.queues.get(&lane.name).is_some_and(|queue| queue.contains_key(notice));
            if in_flight || !lane.wants(notice.kind, &self.rules) {
                continue;
            }
            if lane.name == taking.lane.name && self.hands_out(&lane, notice.kind) {
                let Some(claim) = taking.handed.remove(notice) else {
                    return Err(format!("{notice:?} was swept and not handed out on {}", lane.name));
                };
                if (claim.due_at_ms, claim.on_set) != (due_at, false) {
                    return Err(format!("{notice:?} tells due_at {}, on_set {}", claim.due_at_ms, claim.on_set));
                }
                let expected =
                    Delivery { at: self.now + taking.lease, n: 1, c: 0, due_at, on_set: false, put_off: false };
                let record = self.records.get(&(lane.name, notice.clone())).cloned().unwrap_or_default();
                self.check_claim(taking, claim, notice, expected, &record)?;
            } else {
                self.queues.entry(lane.name).or_default().insert(notice.clone(), Delivery::ready(due_at, false));
            }
        }
        Ok(())
    }

    fn end_life(&mut self, taking: &mut Taking<'_>, id: &[u8], e: Score, next: Option<Score>) -> Result<(), String> {
        let notice = Notice::new(Kind::Expired, e, id);
        let payload = match next {
            Some(next) => {
                self.armed.insert(id.to_vec(), next);
                self.payloads.get(id).cloned()
            }
            None => {
                self.armed.remove(id);
                self.payloads.remove(id)
            }
        };
        if self.lanes.iter().any(|lane| lane.wants(notice.kind, &self.rules)) {
            if let Some(payload) = payload {
                self.moved.insert(notice.clone(), payload);
            }
            self.open.insert(id.to_vec(), Open { kind: notice.kind, e: notice.e, recurs: next.is_some() });
            self.deliver(taking, &notice, notice.e.floor() + self.rules.grace)?;
        }
        if let Some(next) = next {
            self.set_leads(id, next, None);
        }
        Ok(())
    }

    /// Checks one claim against what is expected of it and keeps its delivery.
    fn check_claim(
        &mut self,
        taking: &Taking<'_>,
        claim: &Claim,
        notice: &Notice,
        expected: Delivery,
        record: &super::Record,
    ) -> Result<(), String> {
        // I1 and W5, once more and directly.
        if let Kind::Reminder(lead) = notice.kind {
            let rest = self.rest(notice.e);
            let low = self.rules.next_smaller(lead) as f64;
            if self.armed.get(&notice.id).map(|e| e.canonical()) != Some(notice.e) || rest <= low || rest > lead as f64
            {
                return Err(format!("I1: {notice:?} was handed out with {rest} ms left"));
            }
        }
        self.check_key(notice, expected.n)?;
        let (n, c, _) = parse_token(&beneath(&claim.token)).ok_or("odd token")?;
        if n != expected.n || c == 0 {
            return Err(format!("I5: {:?} should carry n = {}", claim.token, expected.n));
        }
        if (claim.attempt, claim.failures) != (1 + record.failures + record.lapses, record.failures) {
            return Err(format!("{notice:?}: attempt {}, failures {}, but {record:?}", claim.attempt, claim.failures));
        }
        let told = (claim.notice.kind.to_stored(), claim.notice.expires_at_ms, claim.notice.id.as_bytes());
        if told != (notice.kind.text(), notice.e.floor(), &notice.id[..]) {
            return Err(format!("the claim of {notice:?} tells {:?}", claim.notice));
        }
        let queue = self.queues.entry(taking.lane.name.clone()).or_default();
        queue.insert(notice.clone(), Delivery { c, ..expected });
        Ok(())
    }

    fn check_answer(&self, taking: &Taking<'_>, limit: u32) -> Result<(), String> {
        let told = taking.reply.dropped;
        for (reason, count) in [
            ("superseded", told.superseded),
            ("expired", told.expired),
            ("coalesced", told.coalesced),
            ("lead", told.lead),
        ] {
            let counted = taking.dropped.get(reason).copied().unwrap_or_default();
            if counted != count {
                return Err(format!("{count} dropped as {reason}, but {counted} were"));
            }
        }
        if taking.reply.lapsed != taking.lapsed {
            return Err(format!("{} told as lapsed, {} were", taking.reply.lapsed, taking.lapsed));
        }
        if taking.reply.quarantined != taking.quarantined {
            return Err(format!("{} told as quarantined, {} were", taking.reply.quarantined, taking.quarantined));
        }
        if !taking.reply.faults.is_empty() {
            return Err(format!("faults: {:?}", taking.reply.faults));
        }
        self.check_next(&taking.lane, taking.reply.next, limit)
    }
}
