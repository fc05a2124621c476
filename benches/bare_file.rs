//! The bare statements: what a program would do with a table of its own in an SQLite file, as durable as the store.

use std::path::Path;

use anyhow::{Result, ensure};
use forewarn::model::Track;
use rusqlite::{Connection, params};

const SCHEMA: &str = "\
CREATE TABLE deadline (id BLOB PRIMARY KEY, expires_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX deadline_expires_at ON deadline (expires_at);";

const ADD: &str = "\
INSERT INTO deadline (id, expires_at) VALUES (?1, ?2)
ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at";

const TAKE: &str = "\
DELETE FROM deadline
WHERE id IN (SELECT id FROM deadline WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
RETURNING id";

/// One file with one table. Blocks its thread, as SQLite does.
#[derive(Debug)]
pub(crate) struct BareFile {
    connection: Connection,
}

impl BareFile {
    /// Makes the file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self { connection })
    }

    /// Adds or moves rows, `batch` in each transaction.
    pub(crate) fn add(&mut self, load: &[Track], batch: usize) -> Result<()> {
        for chunk in load.chunks(batch) {
            let transaction = self.connection.transaction()?;
            let mut add = transaction.prepare_cached(ADD)?;
            for Track { id, expires_at, .. } in chunk {
                add.execute(params![id.as_bytes(), expires_at.as_millis()])?;
            }
            drop(add);
            transaction.commit()?;
        }
        Ok(())
    }

    /// Takes at most `limit` rows due at `now_ms`.
    pub(crate) fn take(&mut self, now_ms: i64, limit: usize) -> Result<Vec<Vec<u8>>> {
        let mut take = self.connection.prepare_cached(TAKE)?;
        let ids = take.query_map(params![now_ms, limit], |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// Takes until `count` rows have been.
    pub(crate) fn drain(&mut self, now_ms: i64, batch: usize, count: usize) -> Result<()> {
        let mut taken = 0;
        while taken < count {
            let due = self.take(now_ms, batch)?.len();
            ensure!(due > 0, "{taken} of {count} rows were due");
            taken += due;
        }
        Ok(())
    }
}

/// The bytes of a file once everything is in it that stands in its log.
pub(crate) fn bytes_on_disk(path: &Path) -> Result<u64> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(std::fs::metadata(path)?.len())
}
