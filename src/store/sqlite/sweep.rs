//! Claim's second and third part: reminders by sweeping each lead, cleanups by sweeping what has expired (C1, C2, W4).

use crate::model::ExpiresAt;
use crate::store::{Claim, recurrence::next_by_cron};

use super::{
    claim::{Classes, Taking, bound},
    cleanup::Open,
    delivery::{EXPIRED, Key, token},
    error::Fault,
    operation::Operation,
};

/// An armed deadline that a sweep meets.
type Met = (i64, Vec<u8>);

impl Operation<'_> {
    /// Sweeps up to `share` reminders, those of the smallest lead first; `counts` says how many each lead has. Answers
    /// whether the cursors are to be kept.
    pub(super) fn sweep_reminders(
        &mut self,
        taking: &mut Taking,
        sweeps: Classes,
        counts: &[u64],
        share: u64,
    ) -> Result<bool, Fault> {
        let (mut room, mut is_moved) = (share, false);
        for (place, count) in counts.iter().copied().enumerate().filter(|_| sweeps.reminders) {
            let high = self.now + self.leads[place].ms;
            // Q4: a claim that finds nothing writes no more than once a second.
            is_moved |= self.leads[place].rewound || high.saturating_sub(self.leads[place].stored) >= 1000;
            let take = count.min(room);
            let last = if take > 0 { self.sweep_lead(taking, place, high, take)? } else { None };
            room -= take;
            is_moved |= take > 0;
            let lead = &mut self.leads[place];
            if take < count {
                if let Some((e, id)) = last {
                    (lead.score, lead.member) = (e, Some(id));
                }
            } else if lead.score <= high {
                (lead.score, lead.member) = (high, None);
            }
        }
        Ok(is_moved)
    }

    /// Sweeps the next `take` of a lead; answers the last one.
    fn sweep_lead(&self, taking: &mut Taking, place: usize, high: i64, take: u64) -> Result<Option<Met>, Fault> {
        let lead = &self.leads[place];
        let (e, id) = lead.place();
        let met: Vec<Met> = self.desk.rows(
            "SELECT expires_at, id FROM armed
             WHERE namespace = ?1 AND (expires_at, id) > (?2, ?3) AND expires_at <= ?4
             ORDER BY expires_at, id LIMIT ?5",
            (self.scope.key, e, id, high, bound(take)),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (e, id) in &met {
            let is_silent = self.desk.has(
                "SELECT 1 FROM skip WHERE namespace = ?1 AND id = ?2 AND lead = ?3 AND expires_at = ?4",
                (self.scope.key, id, lead.ms, e),
            )?;
            if !is_silent {
                self.deliver(taking, Some(place), Key { kind: lead.ms, e: *e, id }, e - lead.ms)?;
            }
        }
        Ok(met.into_iter().next_back())
    }

    /// Disarms up to `share` of what has expired and opens its cleanups. Answers whether the cursors are to be kept.
    pub(super) fn sweep_cleanups(&mut self, taking: &mut Taking, share: u64) -> Result<bool, Fault> {
        if share == 0 {
            return Ok(false);
        }
        let met: Vec<Met> = self.desk.rows(
            "SELECT expires_at, id FROM armed WHERE namespace = ?1 AND expires_at <= ?2
             ORDER BY expires_at, id LIMIT ?3",
            (self.scope.key, self.now - self.scope.grace_ms, bound(share)),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let mut recurring = Vec::new();
        for (e, id) in met {
            let key = Key { kind: EXPIRED, e, id: &id };
            let next = match self.period(&id)? {
                Some(period) => self.next_expiry(&period, e),
                None => None,
            };
            if self.scope.wants_cleanups() {
                self.deliver(taking, None, key, e + self.scope.grace_ms)?;
                self.set_open(&id, Open { kind: EXPIRED, e, recurs: next.is_some() })?;
                self.copy_payload(key)?;
            }
            match next {
                Some(next) => {
                    self.arm(&id, next)?;
                    recurring.push((id, next));
                }
                None => {
                    self.disarm(&id)?;
                    self.forget_payload(&id)?;
                    self.forget_period(&id)?;
                }
            }
        }
        for (id, next) in &recurring {
            self.set_leads(id, *next, None)?;
        }
        // The new lives were judged by these cursors, so they must be kept.
        Ok(!recurring.is_empty())
    }

    /// When an id that expired at `e` expires next.
    fn next_expiry(&self, period: &str, e: i64) -> Option<i64> {
        let next = match period.parse::<i64>() {
            Ok(ms) if ms > 0 => {
                let periods = ((self.now - e).div_euclid(ms) + 1).max(1);
                ms.checked_mul(periods).and_then(|span| e.checked_add(span)).filter(|next| *next <= ExpiresAt::MAX_MS)
            }
            _ => next_by_cron(period, self.now).map(ExpiresAt::as_millis),
        };
        if next.is_none() {
            tracing::warn!(%period, "a recurring id has no next expiry by this period; it does not recur any more");
        }
        next
    }

    /// A sweep has met a notice: this route's delivery is handed out, the others are ready. `lead` is the place of a
    /// reminder's lead.
    fn deliver(&self, taking: &mut Taking, lead: Option<usize>, key: Key<'_>, due_at: i64) -> Result<(), Fault> {
        for (place, lane) in self.scope.lanes.iter().enumerate() {
            if !lead.map_or(lane.cleanups, |lead| lane.reminders[lead]) {
                continue;
            }
            if place != taking.lane || !taking.hands.of(key) {
                self.add_new(lane.name.as_str(), key, due_at, 0, due_at)?;
            } else if self.add_new(lane.name.as_str(), key, taking.lease_until, taking.claim, due_at)? {
                let notice = self.notice(key.kind, key.e, key.id)?;
                taking.claims.push(Claim {
                    token: token(&notice, 1, taking.claim),
                    notice,
                    attempt: 1,
                    failures: 0,
                    due_at_ms: due_at,
                    on_set: false,
                    payload: None,
                });
            }
        }
        Ok(())
    }
}
