//! The leads' side of a set, a removal or an early end (W3).

use crate::model::Late;
use crate::store::Ending;

use super::{cursor::Lead, delivery::Key, error::Fault, operation::Operation, scope::bounded_ms};

impl Operation<'_> {
    /// The expiry of `id` becomes `e`; `old` is what it was, if it was armed.
    pub(super) fn set_leads(&mut self, id: &[u8], e: i64, old: Option<i64>) -> Result<(), Fault> {
        let now = self.now;
        let crossing = self.scope.late == Late::Crossing;
        let deliveries = self.deliveries_of(id)?;
        let marks = self.marks_of(id)?;
        let is_marked = |lead: &Lead, e| marks.contains(&(lead.ms, e));
        let living = old.filter(|old| *old > now);
        let mut tightest = e > now;
        for place in 0..self.leads.len() {
            let lead = self.leads[place].clone();
            let was_inside = living.is_some_and(|old| old - now <= lead.ms);
            // What has not spoken for the old expiry is owed for the new one.
            let keeps = was_inside && crossing;
            let owed_by_sweep = keeps && living.is_some_and(|old| lead.is_ahead(old, id) && !is_marked(&lead, old));
            let mut owed_routes = Vec::new();
            if let Some(old) = old.filter(|old| self.may_have_deliveries(&lead, *old)) {
                owed_routes = self.void_among(&deliveries, Key { kind: lead.ms, e: old, id })?;
            }
            // A step of the clock may have left some for the new one.
            owed_routes.extend(self.void_among(&deliveries, Key { kind: lead.ms, e, id })?);
            if !keeps {
                owed_routes.clear();
            }
            let ahead = lead.is_ahead(e, id);
            if e - now > lead.ms {
                if ahead {
                    if marks.iter().any(|(ms, _)| *ms == lead.ms) {
                        self.unmark(&lead, id)?;
                    }
                    self.comes_due(e - lead.ms);
                } else {
                    self.schedule(place, e, id, e - lead.ms, None)?;
                }
                continue;
            }
            // What a set makes speak is scheduled, never left to the sweep: its event tells that a set caused it.
            if ahead {
                self.mark(&lead, e, id)?;
            }
            let mut is_silent = true;
            if tightest {
                let speaks = owed_by_sweep
                    || self.scope.late == Late::Fire
                    || crossing && living.is_some() && !was_inside && self.may_cross(&lead, id)?;
                if speaks {
                    self.schedule(place, e, id, now, None)?;
                } else if !owed_routes.is_empty() {
                    self.schedule(place, e, id, now, Some(&owed_routes))?;
                }
                is_silent = !speaks && owed_routes.is_empty();
            }
            if is_silent && e > now && !was_inside {
                self.count("skipped", 1)?;
                self.remember(Ending::Skipped, None, Key { kind: lead.ms, e, id })?;
            }
            tightest = false;
        }
        self.comes_due(e + self.scope.grace_ms);
        Ok(())
    }

    /// Voids the reminders of a life that is removed or ended.
    pub(super) fn void_reminders(&self, id: &[u8], e: i64) -> Result<(), Fault> {
        let deliveries = self.deliveries_of(id)?;
        for lead in self.leads.iter().filter(|lead| self.may_have_deliveries(lead, e)) {
            self.void_among(&deliveries, Key { kind: lead.ms, e, id })?;
            self.unmark(lead, id)?;
        }
        Ok(())
    }

    /// Deliveries of (id, e) exist for the leads it is inside of; within the tolerance also scheduled ones, after a step
    /// back of the clock.
    fn may_have_deliveries(&self, lead: &Lead, e: i64) -> bool {
        e - self.now <= lead.ms + self.scope.tolerance_ms
    }

    fn schedule(&mut self, place: usize, e: i64, id: &[u8], at: i64, only: Option<&[&str]>) -> Result<(), Fault> {
        let kind = self.leads[place].ms;
        let on_set = at != e - kind;
        for lane in self.scope.lanes.iter().filter(|lane| lane.reminders[place]) {
            if only.is_none_or(|routes| routes.contains(&lane.name.as_str())) {
                self.make_ready(lane.name.as_str(), Key { kind, e, id }, at, on_set)?;
            }
        }
        self.comes_due(at);
        Ok(())
    }

    /// The leads marked silent for an id, each with the expiry it is silent for.
    fn marks_of(&self, id: &[u8]) -> Result<Vec<(i64, i64)>, Fault> {
        self.desk.rows(
            "SELECT lead, expires_at FROM skip WHERE namespace = ?1 AND id = ?2",
            (self.scope.key, id),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    fn mark(&self, lead: &Lead, e: i64, id: &[u8]) -> Result<(), Fault> {
        self.desk.run(
            "INSERT INTO skip (namespace, id, lead, expires_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at",
            (self.scope.key, id, lead.ms, e),
        )?;
        Ok(())
    }

    fn unmark(&self, lead: &Lead, id: &[u8]) -> Result<(), Fault> {
        self.desk
            .run("DELETE FROM skip WHERE namespace = ?1 AND id = ?2 AND lead = ?3", (self.scope.key, id, lead.ms))?;
        Ok(())
    }

    /// At most one crossing in `min_repeat`.
    fn may_cross(&self, lead: &Lead, id: &[u8]) -> Result<bool, Fault> {
        let key = self.scope.key;
        let until: Option<i64> = self.desk.row(
            "SELECT until FROM crossed WHERE namespace = ?1 AND id = ?2 AND lead = ?3",
            (key, id, lead.ms),
            |row| row.get(0),
        )?;
        if until.is_some_and(|until| until > self.now) {
            return Ok(false);
        }
        let span = self.scope.settings().min_repeat.map_or(lead.ms, bounded_ms);
        self.desk.run(
            "INSERT INTO crossed (namespace, id, lead, until) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET until = excluded.until",
            (key, id, lead.ms, self.now + span),
        )?;
        Ok(true)
    }
}
