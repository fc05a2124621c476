//! Opening, voiding and closing cleanups (W4, W5), and what may still be handed out.

use crate::store::DropReason;

use super::{delivery::Key, error::Fault, operation::Operation};

/// What `open` holds for an id: its latest unsettled cleanup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) kind: i64,
    pub(super) e: i64,
    /// Its own recurrence armed the id again.
    pub(super) recurs: bool,
}

impl Open {
    pub(super) fn names(&self, key: Key<'_>) -> bool {
        self.kind == key.kind && self.e == key.e
    }
}

impl Operation<'_> {
    pub(super) fn armed(&self, id: &[u8]) -> Result<Option<i64>, Fault> {
        self.desk.row("SELECT expires_at FROM armed WHERE namespace = ?1 AND id = ?2", (self.scope.key, id), |row| {
            row.get(0)
        })
    }

    pub(super) fn open_of(&self, id: &[u8]) -> Result<Option<Open>, Fault> {
        self.desk.row(
            "SELECT kind, expires_at, recurs FROM open WHERE namespace = ?1 AND id = ?2",
            (self.scope.key, id),
            |row| Ok(Open { kind: row.get(0)?, e: row.get(1)?, recurs: row.get(2)? }),
        )
    }

    pub(super) fn set_open(&self, id: &[u8], open: Open) -> Result<(), Fault> {
        self.desk.run(
            "INSERT INTO open (namespace, id, kind, expires_at, recurs) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET kind = excluded.kind, expires_at = excluded.expires_at, recurs = excluded.recurs",
            (self.scope.key, id, open.kind, open.e, open.recurs),
        )?;
        Ok(())
    }

    fn forget_open(&self, id: &[u8]) -> Result<(), Fault> {
        self.desk.run("DELETE FROM open WHERE namespace = ?1 AND id = ?2", (self.scope.key, id))?;
        Ok(())
    }

    pub(super) fn void_cleanup(&self, id: &[u8], open: Open) -> Result<(), Fault> {
        let key = Key { kind: open.kind, e: open.e, id };
        self.void_everywhere(key)?;
        self.forget_open(id)?;
        self.forget_cleanup_payload(key)
    }

    /// Creates the cleanup of a life that ends now; the caller disarms the id.
    pub(super) fn open_cleanup(&mut self, kind: i64, e: i64, id: &[u8], at: i64) -> Result<(), Fault> {
        let key = Key { kind, e, id };
        for lane in self.scope.lanes.iter().filter(|lane| lane.cleanups) {
            self.add_new(lane.name.as_str(), key, at, 0, at)?;
        }
        if self.scope.wants_cleanups() {
            self.set_open(id, Open { kind, e, recurs: false })?;
            self.copy_payload(key)?;
            self.comes_due(at);
        }
        self.forget_payload(id)
    }

    /// A route's delivery of this cleanup has just gone; the last one of all routes clears what belongs to it.
    pub(super) fn close_if_last(&self, key: Key<'_>, open: Option<Open>) -> Result<(), Fault> {
        let is_outstanding = self.desk.has(
            "SELECT 1 FROM due WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4",
            (self.scope.key, key.id, key.e, key.kind),
        )?;
        if is_outstanding {
            return Ok(());
        }
        if open.is_some_and(|open| open.names(key)) {
            self.forget_open(key.id)?;
        }
        self.forget_cleanup_payload(key)
    }

    /// Takes away a delivery whose notice is void.
    pub(super) fn drop_void(&self, route: &str, key: Key<'_>, open: Option<Open>) -> Result<(), Fault> {
        self.void(route, key)?;
        if key.is_cleanup() { self.close_if_last(key, open) } else { Ok(()) }
    }

    /// W1 and W5: why a notice may not be handed out any more, given what is armed and open for its id.
    pub(super) fn reason_to_drop(&self, key: Key<'_>, armed: Option<i64>, open: Option<Open>) -> Option<DropReason> {
        if key.is_cleanup() {
            let named = open.filter(|open| open.names(key));
            let holds = self.scope.delivers || named.is_some_and(|open| armed.is_none() || open.recurs);
            return (!holds).then_some(DropReason::Superseded);
        }
        let Some(lead) = self.leads.iter().find(|lead| lead.ms == key.kind) else {
            return Some(DropReason::Lead);
        };
        let rest = key.e - self.now;
        if armed != Some(key.e) || rest > lead.ms {
            Some(DropReason::Superseded)
        } else if rest <= 0 {
            Some(DropReason::Expired)
        } else if rest <= lead.next {
            Some(DropReason::Coalesced)
        } else {
            None
        }
    }

    pub(super) fn set_payload(&self, id: &[u8], bytes: &[u8]) -> Result<(), Fault> {
        self.desk.run(
            "INSERT INTO payload (namespace, id, bytes) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET bytes = excluded.bytes",
            (self.scope.key, id, bytes),
        )?;
        Ok(())
    }

    pub(super) fn payload(&self, id: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.desk
            .row("SELECT bytes FROM payload WHERE namespace = ?1 AND id = ?2", (self.scope.key, id), |row| row.get(0))
    }

    pub(super) fn forget_payload(&self, id: &[u8]) -> Result<(), Fault> {
        self.desk.run("DELETE FROM payload WHERE namespace = ?1 AND id = ?2", (self.scope.key, id))?;
        Ok(())
    }

    /// The payload of the id becomes that of its cleanup, too.
    pub(super) fn copy_payload(&self, key: Key<'_>) -> Result<(), Fault> {
        self.desk.run(
            "INSERT OR REPLACE INTO cleanup_payload (namespace, id, expires_at, kind, bytes)
             SELECT namespace, id, ?3, ?4, bytes FROM payload WHERE namespace = ?1 AND id = ?2",
            (self.scope.key, key.id, key.e, key.kind),
        )?;
        Ok(())
    }

    pub(super) fn set_cleanup_payload(&self, key: Key<'_>, bytes: &[u8]) -> Result<(), Fault> {
        self.desk.run(
            "INSERT OR REPLACE INTO cleanup_payload (namespace, id, expires_at, kind, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
            (self.scope.key, key.id, key.e, key.kind, bytes),
        )?;
        Ok(())
    }

    fn forget_cleanup_payload(&self, key: Key<'_>) -> Result<(), Fault> {
        self.desk.run(
            "DELETE FROM cleanup_payload WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4",
            (self.scope.key, key.id, key.e, key.kind),
        )?;
        Ok(())
    }

    /// What a notice carries.
    pub(super) fn payload_of(&self, key: Key<'_>) -> Result<Option<Vec<u8>>, Fault> {
        if !key.is_cleanup() {
            return self.payload(key.id);
        }
        self.desk.row(
            "SELECT bytes FROM cleanup_payload WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4",
            (self.scope.key, key.id, key.e, key.kind),
            |row| row.get(0),
        )
    }
}
