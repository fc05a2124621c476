//! A file as a store's place: rows written past the store, and what the tables hold, by the documented layout.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use async_trait::async_trait;
use forewarn::model::Name;
use forewarn::store::Store;
use forewarn::store::sqlite::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, types::Value};
use tempfile::TempDir;

use super::{Entry, Keyspace, Peer};
use crate::model::{Open, Place, Record, Stored};
use crate::snapshot::{Json, Snapshot};
use crate::words::{Bytes, Frontier, Kind, Notice, Score};

/// A connection to a file that is gone with its last peer.
pub(super) struct Sql {
    connection: Connection,
    directory: Arc<TempDir>,
}

impl Sql {
    pub(super) fn new() -> Self {
        Self::of(Arc::new(tempfile::tempdir().expect("a temporary directory")))
    }

    fn of(directory: Arc<TempDir>) -> Self {
        let connection = Connection::open(directory.path().join(FILE)).expect("the file");
        connection.busy_timeout(Duration::from_secs(5)).expect("a timeout");
        Self { connection, directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(FILE)
    }

    /// All tables that hold rows of namespaces, each with the column that names theirs.
    fn tables(&self) -> Vec<(String, &'static str)> {
        let query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'copy'";
        let mut tables = self.connection.prepare(query).expect("a query");
        let names = tables.query_map([], |row| row.get::<_, String>(0)).expect("rows");
        let column = |table: &str| if table == "namespace" { "key" } else { "namespace" };
        names.map(|name| name.expect("a name")).map(|name| (name.clone(), column(&name))).collect()
    }

    fn key(&self, namespace: &Name) -> Option<i64> {
        let query = "SELECT key FROM namespace WHERE name = ?1";
        self.connection.query_row(query, [namespace.as_str()], |row| row.get(0)).ok()
    }
}

const FILE: &str = "store.db";

#[async_trait(?Send)]
impl Peer for Sql {
    async fn open(&self, clock: &Arc<AtomicI64>) -> Arc<dyn Store> {
        let options = SqliteOptions { manual_clock: Some(Arc::clone(clock)), ..SqliteOptions::default() };
        Arc::new(SqliteStore::open(self.path(), options).await.expect("a file of the test's own"))
    }

    fn again(&self) -> Box<dyn Peer> {
        Box::new(Self::of(Arc::clone(&self.directory)))
    }

    fn max_shards(&self) -> u16 {
        1
    }

    async fn write(&mut self, namespace: &Name, _shards: u16, id: &[u8], entry: Entry) {
        let key = self.key(namespace).expect("a namespace");
        let written = match entry {
            Entry::Armed(score) => {
                let e: i64 = score.parse().expect("whole milliseconds: a file holds nothing else");
                self.connection.execute(ARM, (key, id, e))
            }
            Entry::Disarmed => self.connection.execute(DISARM, (key, id)),
            Entry::Every(period) => self.connection.execute(RECUR, (key, id, period)),
        };
        written.expect("a row");
    }

    async fn wipe(&mut self, namespace: &Name) {
        let Some(key) = self.key(namespace) else { return };
        for (table, column) in self.tables() {
            let delete = format!("DELETE FROM {table} WHERE {column} = ?1");
            self.connection.execute(&delete, [key]).expect("a removal");
        }
    }

    async fn snapshot(&mut self, namespace: &Name, _shards: u16, routes: &[String]) -> Snapshot {
        read(&self.connection, namespace.as_str(), routes)
    }

    async fn keyspace(&mut self, namespace: &Name) -> Keyspace {
        let mut found = Keyspace::default();
        let Some(key) = self.key(namespace) else { return found };
        for (table, column) in self.tables() {
            let query = format!("SELECT * FROM {table} WHERE {column} = ?1");
            let mut rows = self.connection.prepare(&query).expect("a query");
            let width = rows.column_count();
            let rows = rows.query_map([key], |row| {
                let values: Vec<Value> = (0..width).map(|at| row.get(at)).collect::<Result<_, _>>()?;
                Ok(format!("{values:?}"))
            });
            let rows: Vec<String> = rows.expect("rows").map(|row| row.expect("a row")).collect();
            if !rows.is_empty() {
                found.0.insert(table, rows);
            }
        }
        found
    }

    async fn leftovers(&mut self, namespace: &Name) -> Vec<String> {
        let tables = self.keyspace(namespace).await.0.into_iter();
        let left = tables.filter(|(table, _)| !["namespace", "route", "cursor", "counter"].contains(&table.as_str()));
        left.map(|(table, rows)| format!("{} in {table}", rows.len())).collect()
    }
}

const ARM: &str = "INSERT INTO armed (namespace, id, expires_at) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at";
const DISARM: &str = "DELETE FROM armed WHERE namespace = ?1 AND id = ?2";
const RECUR: &str = "INSERT OR REPLACE INTO every (namespace, id, period) VALUES (?1, ?2, ?3)";

fn read(connection: &rusqlite::Connection, namespace: &str, routes: &[String]) -> Snapshot {
    let key: i64 = connection
        .query_row("SELECT key FROM namespace WHERE name = ?1", [namespace], |row| row.get(0))
        .expect("a namespace");
    let mut snapshot = Snapshot::default();
    let kind = |kind: i64| match kind {
        0 => Kind::Expired,
        -1 => Kind::Ended,
        lead => Kind::Reminder(lead),
    };
    let mut each = |sql: &str, take: &mut dyn FnMut(&mut Snapshot, &rusqlite::Row<'_>) -> rusqlite::Result<()>| {
        let mut statement = connection.prepare_cached(sql).expect("a good query");
        let mut rows = statement.query([key]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            take(&mut snapshot, row).expect("columns");
        }
    };
    each("SELECT id, expires_at FROM armed WHERE namespace = ?1", &mut |snapshot, row| {
        snapshot.armed.insert(row.get(0)?, Score::ms(row.get(1)?));
        Ok(())
    });
    each("SELECT lead, expires_at, id FROM cursor WHERE namespace = ?1", &mut |snapshot, row| {
        let frontier = Frontier { score: Score::ms(row.get(1)?), member: row.get(2)? };
        snapshot.frontiers.insert((0, row.get(0)?), frontier);
        Ok(())
    });
    each("SELECT lead, id, expires_at FROM skip WHERE namespace = ?1", &mut |snapshot, row| {
        snapshot.silent.insert((row.get(0)?, row.get(1)?), Score::ms(row.get(2)?));
        Ok(())
    });
    each("SELECT lead, id, until FROM crossed WHERE namespace = ?1", &mut |snapshot, row| {
        snapshot.crossed.insert((row.get(0)?, row.get(1)?), row.get(2)?);
        Ok(())
    });
    each("SELECT id, bytes FROM payload WHERE namespace = ?1", &mut |snapshot, row| {
        snapshot.payloads.insert(row.get(0)?, row.get(1)?);
        Ok(())
    });
    each("SELECT id, expires_at, kind, bytes FROM cleanup_payload WHERE namespace = ?1", &mut |snapshot, row| {
        let notice = Notice::new(kind(row.get(2)?), Score::ms(row.get(1)?), &row.get::<_, Bytes>(0)?);
        snapshot.payloads.insert(notice.to_bytes(), row.get(3)?);
        Ok(())
    });
    each("SELECT id, kind, expires_at, recurs FROM open WHERE namespace = ?1", &mut |snapshot, row| {
        let open = Open { kind: kind(row.get(1)?), e: Score::ms(row.get(2)?), recurs: row.get(3)? };
        snapshot.open.insert(row.get(0)?, open);
        Ok(())
    });
    each("SELECT id, period FROM every WHERE namespace = ?1", &mut |snapshot, row| {
        snapshot.every.insert(row.get(0)?, row.get::<_, String>(1)?.parse().unwrap_or(-1));
        Ok(())
    });
    for route in routes {
        snapshot.queues.insert(route.clone(), BTreeMap::new());
    }
    let mut each = |sql: &str, take: &mut dyn FnMut(&mut Snapshot, &rusqlite::Row<'_>) -> rusqlite::Result<()>| {
        let mut statement = connection.prepare_cached(sql).expect("a good query");
        let mut rows = statement.query([key]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            take(&mut snapshot, row).expect("columns");
        }
    };
    each(
        "SELECT route, id, expires_at, kind, at, hand_outs, claim, failures FROM due WHERE namespace = ?1",
        &mut |snapshot, row| {
            let route: String = row.get(0)?;
            let notice = Notice::new(kind(row.get(3)?), Score::ms(row.get(2)?), &row.get::<_, Bytes>(1)?);
            if let Some(json) = row.get::<_, Option<String>>(7)? {
                let json: Json = serde_json::from_str(&json).expect("a failure record");
                snapshot.records.insert((route.clone(), notice.clone()), json.record());
            }
            let queue = snapshot.queues.get_mut(&route).expect("a route of the namespace");
            queue.insert(notice, (row.get(4)?, row.get(5)?, row.get(6)?));
            Ok(())
        },
    );
    each(
        "SELECT shelf, route, id, expires_at, kind, parked_at, payload, failures FROM parked WHERE namespace = ?1",
        &mut |snapshot, row| {
            let place = if row.get::<_, String>(0)? == "dead" { Place::Dead } else { Place::Review };
            let notice = Notice::new(kind(row.get(4)?), Score::ms(row.get(3)?), &row.get::<_, Bytes>(2)?);
            let json: Json = serde_json::from_str(&row.get::<_, String>(7)?).expect("a failure record");
            let Record { failures, lapses } = json.record();
            let stored = Stored { at: row.get(5)?, payload: row.get(6)?, failures, lapses };
            snapshot.parked.insert((place, row.get(1)?, notice), stored);
            Ok(())
        },
    );
    each("SELECT claims FROM namespace WHERE key = ?1", &mut |snapshot, row| {
        snapshot.claims.insert(0, row.get(0)?);
        Ok(())
    });
    each("SELECT name, wake_at FROM route WHERE namespace = ?1 AND wake_at IS NOT NULL", &mut |snapshot, row| {
        snapshot.wake_at.insert((0, row.get(0)?), row.get(1)?);
        Ok(())
    });
    snapshot
}
