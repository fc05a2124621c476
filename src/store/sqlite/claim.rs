//! Takes due notices for one route: what waits in its queue, reminders by sweeping each lead, cleanups by sweeping what has
//! expired (C1 to C5, D1, D2, Q1 to Q3). Moves the cursors, and only forward.

use std::time::Duration;

use crate::model::Name;
use crate::store::{Claim, Claims, DropReason, Dropped, Next};

use super::{
    catch_up::{Limits, Queued},
    cursor::{Lead, NOTHING},
    delivery::Key,
    error::Fault,
    operation::Operation,
    scope::bounded_ms,
    share::shares,
};

/// The most notices one claim takes: a longer transaction keeps others waiting.
const MAX_CLAIM: u32 = 500;

/// One claim as it is carried out.
pub(super) struct Taking {
    pub(super) route: Name,
    /// Which of the namespace's routes it is.
    pub(super) lane: usize,
    pub(super) lease_until: i64,
    /// The c of everything it hands out.
    pub(super) claim: i64,
    pub(super) hands: Classes,
    pub(super) claims: Vec<Claim>,
    pub(super) dropped: Dropped,
    /// Hand-outs whose worker vanished.
    pub(super) lapses: u64,
    /// Those that became dead letters for it.
    pub(super) dead: u64,
    /// Notices held back because they may be poisonous.
    pub(super) held_back: u64,
}

/// Something for reminders and for cleanups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Classes {
    pub(super) reminders: bool,
    pub(super) cleanups: bool,
}

impl Classes {
    pub(super) fn of(self, key: Key<'_>) -> bool {
        if key.is_cleanup() { self.cleanups } else { self.reminders }
    }

    fn any(self) -> bool {
        self.reminders || self.cleanups
    }
}

impl Taking {
    pub(super) fn drop(&mut self, reason: DropReason) {
        let Dropped { superseded, expired, coalesced, lead } = &mut self.dropped;
        *match reason {
            DropReason::Superseded => superseded,
            DropReason::Expired => expired,
            DropReason::Coalesced => coalesced,
            DropReason::Lead => lead,
        } += 1;
    }
}

impl Operation<'_> {
    pub(super) fn claim(&mut self, route: &Name, limit: u32, lease: Duration) -> Result<Claims, Fault> {
        let limit = u64::from(limit.min(MAX_CLAIM));
        self.scope.lane(route)?;
        let lane = self.scope.lanes.iter().position(|lane| lane.name == *route).unwrap_or_default();
        let (stopped, wake_at) = self.route_state(route)?;
        // A class is swept unless the namespace pauses it, and handed out unless namespace or route pause it.
        let sweeps = Classes { reminders: !self.paused.reminders, cleanups: !self.paused.cleanups };
        let hands = Classes {
            reminders: sweeps.reminders && !stopped.reminders,
            cleanups: sweeps.cleanups && !stopped.cleanups,
        };

        let mut limits = self.limits(route, hands)?;
        let queued = match hands.any() {
            true => self.count_allowed(&mut limits, route, limit + 1)?,
            false => Queued::default(),
        };
        let in_leads = self.count_leads(sweeps, Limits::most(limits.reminders.as_ref(), limit + 1))?;
        let most = Limits::most(limits.cleanups.as_ref(), limit + 1);
        let in_exp = if sweeps.cleanups { self.count_overdue(most)? } else { 0 };
        let (reminders, cleanups) = limits.allow(in_leads.iter().sum(), in_exp);
        let wanted = [queued.all, reminders, cleanups];
        let share = shares(wanted, limit, self.claims);
        if share.iter().sum::<u64>() > 0 {
            self.claims += 1;
            self.desk.run("UPDATE namespace SET claims = ?2 WHERE key = ?1", (self.scope.key, self.claims))?;
        }
        let mut taking = Taking {
            route: route.clone(),
            lane,
            lease_until: self.now + bounded_ms(lease),
            claim: 1 + self.claims % 63,
            hands,
            claims: Vec::new(),
            dropped: Dropped::default(),
            lapses: 0,
            dead: 0,
            held_back: 0,
        };
        let parts = queued.split(share[0]);
        self.take_from_queue(&mut taking, &parts)?;
        let mut cursors_moved = self.sweep_reminders(&mut taking, sweeps, &in_leads, share[1])?;
        cursors_moved |= self.sweep_cleanups(&mut taking, share[2])?;
        if cursors_moved {
            self.save_cursors()?;
        }
        self.desk.run("DELETE FROM crossed WHERE namespace = ?1 AND until <= ?2", (self.scope.key, self.now))?;
        self.count_claim(&taking)?;
        for claim in &mut taking.claims {
            let kind = super::delivery::store_kind(claim.notice.kind);
            let key = Key { kind, e: claim.notice.expires_at_ms, id: claim.notice.id.as_bytes() };
            claim.payload = self.payload_of(key)?;
        }
        if limit > 0 {
            self.charge(&mut limits, &parts, (share[1], share[2]))?;
        }
        self.tell_observers(route, &taking.claims)?;
        let is_backlog = wanted.iter().sum::<u64>() > share.iter().sum::<u64>() || taking.held_back > 0;
        let next = if is_backlog { Next::Backlog } else { self.next(route, sweeps, hands, &limits, wake_at)? };
        Ok(Claims {
            now_ms: self.now,
            claims: taking.claims,
            next,
            dropped: taking.dropped,
            quarantined: 0,
            lapsed: taking.dead,
            faults: Vec::new(),
        })
    }

    /// What is paused on a route, and by when its worker was to claim again.
    fn route_state(&self, route: &Name) -> Result<(Classes, Option<i64>), Fault> {
        let state = self.desk.row(
            "SELECT reminders_paused_at IS NOT NULL, cleanups_paused_at IS NOT NULL, wake_at
             FROM route WHERE namespace = ?1 AND name = ?2",
            (self.scope.key, route.as_str()),
            |row| Ok((Classes { reminders: row.get(0)?, cleanups: row.get(1)? }, row.get(2)?)),
        )?;
        state.ok_or_else(|| self.odd(format!("route {route} has no row")))
    }

    /// How much is due in the queue; counts no further than `most`.
    pub(super) fn count_queue(&self, route: &Name, most: u64) -> Result<u64, Fault> {
        self.desk.one(
            "SELECT COUNT(*) FROM (SELECT 1 FROM due WHERE namespace = ?1 AND route = ?2 AND at <= ?3 LIMIT ?4)",
            (self.scope.key, route.as_str(), self.now, bound(most)),
            |row| row.get(0),
        )
    }

    /// How much each lead has to sweep, no further than `most` each. Moves the cursors to where the sweeps begin (C2).
    fn count_leads(&mut self, sweeps: Classes, most: u64) -> Result<Vec<u64>, Fault> {
        let mut counts = Vec::with_capacity(self.leads.len());
        for place in 0..self.leads.len() {
            if !sweeps.reminders {
                counts.push(0);
                continue;
            }
            let (lead, low, high) = {
                let lead = &self.leads[place];
                (lead, self.now + lead.next, self.now + lead.ms)
            };
            if lead.score < low || lead.score == low && lead.member.is_some() {
                let is_told = self.remember_passed(lead, low)?;
                let lead = &mut self.leads[place];
                (lead.score, lead.member) = (low, None);
                if is_told {
                    // Or it would be told again.
                    lead.stored = NOTHING;
                }
            }
            let lead = &self.leads[place];
            counts.push(self.count_between(lead, high, most)?);
        }
        Ok(counts)
    }

    /// How many are armed between a cursor and an instant.
    pub(super) fn count_between(&self, lead: &Lead, high: i64, most: u64) -> Result<u64, Fault> {
        let (e, id) = lead.place();
        self.desk.one(
            "SELECT COUNT(*) FROM (SELECT 1 FROM armed
             WHERE namespace = ?1 AND (expires_at, id) > (?2, ?3) AND expires_at <= ?4 LIMIT ?5)",
            (self.scope.key, e, id, high, bound(most)),
            |row| row.get(0),
        )
    }

    /// How many have expired, with their grace, and are still armed.
    pub(super) fn count_overdue(&self, most: u64) -> Result<u64, Fault> {
        self.desk.one(
            "SELECT COUNT(*) FROM (SELECT 1 FROM armed WHERE namespace = ?1 AND expires_at <= ?2 LIMIT ?3)",
            (self.scope.key, self.now - self.scope.grace_ms, bound(most)),
            |row| row.get(0),
        )
    }

    fn save_cursors(&self) -> Result<(), Fault> {
        let edge = self.now + self.leads.first().map_or(0, |lead| lead.ms);
        let lowest = self.leads.iter().fold(edge, |lowest, lead| lowest.min(lead.score));
        self.leads.iter().try_for_each(|lead| self.save_cursor(lead))?;
        self.desk.run("DELETE FROM skip WHERE namespace = ?1 AND expires_at < ?2", (self.scope.key, lowest))?;
        Ok(())
    }

    fn count_claim(&self, taking: &Taking) -> Result<(), Fault> {
        let Dropped { superseded, expired, coalesced, lead } = taking.dropped;
        self.count("superseded", superseded)?;
        self.count("expired", expired)?;
        self.count("coalesced", coalesced)?;
        self.count("lead", lead)?;
        self.count("lapsed", taking.lapses)?;
        self.count("dead", taking.dead)?;
        self.count("handed_out", taking.claims.len() as u64)
    }

    /// When the next thing is due, exactly; and until when this route is sure to be looked at (Q2).
    fn next(
        &self,
        route: &Name,
        sweeps: Classes,
        hands: Classes,
        limits: &Limits,
        wake_at: Option<i64>,
    ) -> Result<Next, Fault> {
        let mut events = Vec::new();
        if hands.any() {
            let after = if limits.holds_queue() { self.now } else { i64::MIN };
            let head: Option<i64> = self.desk.row(
                "SELECT at FROM due WHERE namespace = ?1 AND route = ?2 AND at > ?3 ORDER BY at LIMIT 1",
                (self.scope.key, route.as_str(), after),
                |row| row.get(0),
            )?;
            events.extend(head);
        }
        events.extend(limits.goes_on_at());
        if sweeps.cleanups && !limits.holds_cleanups() {
            events.extend(self.first_after(i64::MIN, &[])?.map(|e| e + self.scope.grace_ms));
        }
        if sweeps.reminders && !limits.holds_reminders() {
            for lead in &self.leads {
                let (e, id) = lead.place();
                events.extend(self.first_after(e, id)?.map(|e| e - lead.ms));
            }
        }
        let due_at_ms = events.into_iter().min();
        let mut poll_at_ms = self.now + self.desk.max_poll_ms;
        if let Some(due_at_ms) = due_at_ms {
            poll_at_ms = poll_at_ms.min(due_at_ms.max(self.now));
        }
        match wake_at {
            // Another worker of this route has promised to look earlier, and will be woken for what comes before that.
            Some(wake_at) if wake_at > self.now && wake_at <= poll_at_ms => poll_at_ms = wake_at,
            _ => {
                self.desk.run(
                    "UPDATE route SET wake_at = ?3 WHERE namespace = ?1 AND name = ?2",
                    (self.scope.key, route.as_str(), poll_at_ms),
                )?;
            }
        }
        Ok(if hands.any() { Next::At { due_at_ms, poll_at_ms } } else { Next::Paused { poll_at_ms } })
    }

    /// The first expiry after a place.
    fn first_after(&self, e: i64, id: &[u8]) -> Result<Option<i64>, Fault> {
        self.desk.row(
            "SELECT expires_at FROM armed WHERE namespace = ?1 AND (expires_at, id) > (?2, ?3)
             ORDER BY expires_at, id LIMIT 1",
            (self.scope.key, e, id),
            |row| row.get(0),
        )
    }
}

/// A count as a row limit.
pub(super) fn bound(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
