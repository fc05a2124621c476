//! One operation on one namespace, within a transaction: its instant, its settings and the sweep cursors.
//!
//! The verbs stand in files of their own, each an `impl` of [`Operation`].

use std::sync::Arc;

use crate::model::{IdKey, Name, Paused, Route, Settings};
use crate::store::{Configured, StoreError};

use super::{cursor::Lead, desk::Desk, error::Fault, scope::Scope};

/// One operation on one namespace.
pub(super) struct Operation<'a> {
    pub(super) desk: &'a Desk,
    pub(super) scope: Arc<Scope>,
    pub(super) now: i64,
    /// Ascending.
    pub(super) leads: Vec<Lead>,
    /// What is paused for the whole namespace.
    pub(super) paused: Paused,
    /// Claims so far that took something.
    pub(super) claims: i64,
    /// The earliest instant at which something came due by this operation.
    pub(super) earliest: Option<i64>,
}

impl<'a> Operation<'a> {
    /// Reads the clock, the settings in force and the cursors.
    ///
    /// # Errors
    /// [`StoreError::Unconfigured`] if the namespace has no settings.
    pub(super) fn begin(desk: &'a Desk, namespace: &Name) -> Result<Self, Fault> {
        let unconfigured = || StoreError::Unconfigured { namespace: namespace.clone() };
        let stored = Stored::read(desk, namespace)?.ok_or_else(unconfigured)?;
        let scope = stored.scope(desk, namespace)?;
        let now = desk.clock.now_ms();
        let leads = Lead::load_all(desk, &scope, now)?;
        Ok(Self { desk, scope, now, leads, paused: stored.paused, claims: stored.claims, earliest: None })
    }

    /// Adds to a running total.
    pub(super) fn count(&self, name: &'static str, more: u64) -> Result<(), Fault> {
        if more > 0 {
            self.desk.run(
                "INSERT INTO counter (namespace, name, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET value = value + ?3",
                (self.scope.key, name, i64::try_from(more).unwrap_or(i64::MAX)),
            )?;
        }
        Ok(())
    }
}

/// A namespace's row, without what a known version makes superfluous to read.
pub(super) struct Stored {
    pub(super) key: i64,
    pub(super) version: String,
    pub(super) paused: Paused,
    pub(super) claims: i64,
}

impl Stored {
    pub(super) fn read(desk: &Desk, namespace: &Name) -> Result<Option<Self>, Fault> {
        desk.row(
            "SELECT key, version, reminders_paused_at IS NOT NULL, cleanups_paused_at IS NOT NULL, claims
             FROM namespace WHERE name = ?1",
            [namespace.as_str()],
            |row| {
                let paused = Paused { reminders: row.get(2)?, cleanups: row.get(3)? };
                Ok(Self { key: row.get(0)?, version: row.get(1)?, paused, claims: row.get(4)? })
            },
        )
    }

    /// What this version says: as last read, or read now.
    pub(super) fn scope(&self, desk: &Desk, namespace: &Name) -> Result<Arc<Scope>, Fault> {
        let known = desk.scopes.borrow().get(namespace).cloned();
        if let Some(known) = known.filter(|known| known.key == self.key && known.configured.version == self.version) {
            return Ok(known);
        }
        let (settings, routes, id_key) =
            desk.one("SELECT settings, routes, id_key FROM namespace WHERE key = ?1", [self.key], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
            })?;
        let unreadable = |error: serde_json::Error| {
            desk.odd(format!("the settings of {namespace} cannot be read: {error}; a newer forewarn may have written them: upgrade this one"))
        };
        let settings: Settings = serde_json::from_str(&settings).map_err(unreadable)?;
        let routes: Vec<Route> = serde_json::from_str(&routes).map_err(unreadable)?;
        let (version, paused) = (self.version.clone(), self.paused.clone());
        let configured = Configured { version, settings, routes, paused, id_key: Some(IdKey::from_hex(&id_key)?) };
        let scope = Arc::new(Scope::new(self.key, namespace, Arc::new(configured)));
        desk.scopes.borrow_mut().insert(namespace.clone(), Arc::clone(&scope));
        Ok(scope)
    }
}
