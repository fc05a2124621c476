//! Removing deadlines and ending them early (W5, W6, W8).

use crate::model::Id;
use crate::store::{Expired, Removed};

use super::{delivery::ENDED, error::Fault, operation::Operation};

impl Operation<'_> {
    pub(super) fn remove(&mut self, ids: &[Id]) -> Result<Vec<Removed>, Fault> {
        ids.iter().map(|id| self.remove_one(id.as_bytes())).collect()
    }

    pub(super) fn expire(&mut self, ids: &[Id]) -> Result<Vec<Expired>, Fault> {
        let answers = ids.iter().map(|id| self.expire_one(id.as_bytes())).collect::<Result<_, _>>()?;
        self.wake()?;
        Ok(answers)
    }

    /// Removes one and voids what waits of it, also while it is leased.
    pub(super) fn remove_one(&mut self, id: &[u8]) -> Result<Removed, Fault> {
        let (armed, open) = (self.armed(id)?, self.open_of(id)?);
        if let Some(e) = armed {
            self.disarm(id)?;
            self.forget_payload(id)?;
            self.forget_period(id)?;
            self.void_reminders(id, e)?;
        }
        if let Some(open) = open
            && (armed.is_none() || !self.scope.delivers)
        {
            self.void_cleanup(id, open)?;
        }
        Ok(match (armed, open) {
            (Some(_), _) => Removed::Removed,
            (None, Some(_)) => Removed::Voided,
            (None, None) => Removed::Unknown,
        })
    }

    fn expire_one(&mut self, id: &[u8]) -> Result<Expired, Fault> {
        let (armed, open) = (self.armed(id)?, self.open_of(id)?);
        let Some(e) = armed else {
            return Ok(if open.is_some() { Expired::Open } else { Expired::Unknown });
        };
        self.void_reminders(id, e)?;
        if let Some(open) = open
            && !self.scope.delivers
        {
            self.void_cleanup(id, open)?;
        }
        self.open_cleanup(ENDED, e, id, self.now)?;
        self.disarm(id)?;
        self.forget_period(id)?;
        Ok(Expired::Ended)
    }

    pub(super) fn disarm(&self, id: &[u8]) -> Result<(), Fault> {
        self.desk.run("DELETE FROM armed WHERE namespace = ?1 AND id = ?2", (self.scope.key, id))?;
        Ok(())
    }

    pub(super) fn period(&self, id: &[u8]) -> Result<Option<String>, Fault> {
        self.desk
            .row("SELECT period FROM every WHERE namespace = ?1 AND id = ?2", (self.scope.key, id), |row| row.get(0))
    }

    pub(super) fn forget_period(&self, id: &[u8]) -> Result<(), Fault> {
        self.desk.run("DELETE FROM every WHERE namespace = ?1 AND id = ?2", (self.scope.key, id))?;
        Ok(())
    }
}
