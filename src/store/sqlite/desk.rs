//! What a thread of the store works with: its connection, the clock, and the settings it has read.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use rusqlite::{Connection, OptionalExtension, Params, Row};

use crate::clock;
use crate::model::Name;
use crate::store::StoreError;

use super::{error::Fault, scope::Scope};

/// A connection and what belongs to it.
pub(super) struct Desk {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) clock: Clock,
    pub(super) max_poll_ms: i64,
    /// Tells this store from others on the same file.
    pub(super) instance: i64,
    /// The namespaces as last read; each names its version.
    pub(super) scopes: RefCell<HashMap<Name, Arc<Scope>>>,
    /// What came due earlier than somebody knew, told once it is committed.
    pub(super) woken: RefCell<Vec<Woken>>,
}

/// Something of a namespace came due earlier than a sleeping worker knew.
#[derive(Debug, Clone)]
pub(super) struct Woken {
    pub(super) namespace: Name,
    pub(super) at_ms: i64,
}

/// The store's clock: that of this machine, or one that a test turns.
#[derive(Debug, Clone)]
pub(super) struct Clock(pub(super) Option<Arc<AtomicI64>>);

impl Clock {
    pub(super) fn now_ms(&self) -> i64 {
        self.0.as_ref().map_or_else(clock::now_ms, |manual| manual.load(Ordering::SeqCst))
    }
}

impl Desk {
    /// Something is not as this program writes it.
    pub(super) fn odd(&self, problem: impl Into<String>) -> StoreError {
        StoreError::Unexpected { address: self.path.display().to_string(), problem: problem.into() }
    }

    /// Changes rows; answers how many.
    pub(super) fn run(&self, sql: &str, params: impl Params) -> Result<usize, Fault> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }

    /// The first row, if there is one.
    pub(super) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Fault> {
        Ok(self.connection.prepare_cached(sql)?.query_row(params, read).optional()?)
    }

    /// The first row of a query that always has one.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        Ok(self.connection.prepare_cached(sql)?.query_row(params, read)?)
    }

    /// All rows.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Fault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether there is any row.
    pub(super) fn has(&self, sql: &str, params: impl Params) -> Result<bool, Fault> {
        Ok(self.connection.prepare_cached(sql)?.exists(params)?)
    }
}
