//! The tables, and the steps that bring an older file to them.
//!
//! A released step is never edited: files in the field have been through it.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a file as ours: "frwn".
pub(super) const APPLICATION_ID: i32 = 0x6672_776E;

/// Step n brings a file from version n to n + 1.
pub(super) const STEPS: &[&str] = &[VERSION_1, VERSION_2, VERSION_3, ID_KEYS, VERSION_4, VERSION_5];

/// Brings the file to the version after the last of `steps`, in one transaction. What is newer stays untouched.
///
/// Answers the version found: it is larger than the number of steps if a newer program wrote the file.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<usize> {
    let found = version(connection)?;
    if found >= steps.len() {
        return Ok(found);
    }
    // Exclusive: of two processes that open the file at once one does the work, and the other finds it done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    let found = version(&transaction)?;
    for (place, step) in steps.iter().enumerate().skip(found) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", place + 1)?;
    }
    if found == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.commit()?;
    Ok(found)
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // No version of ours is negative, so this is nothing we could read either.
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Instants are milliseconds since the epoch. `kind` is the lead in ms for a reminder, and for a cleanup 0 if it expired,
/// -1 if it ended, -2 if it is gone.
const VERSION_1: &str = "
-- Settings and routes are JSON; the version changes with every configure. `claims` counts claims that took something.
CREATE TABLE namespace (
  key INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  version TEXT NOT NULL,
  settings TEXT NOT NULL,
  routes TEXT NOT NULL,
  reminders_paused_at INTEGER,
  cleanups_paused_at INTEGER,
  claims INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What a route has beside its settings. `wake_at`: when its worker will claim again at the latest. `wakes` counts how often
-- something came due earlier than that, and `woken_by` is the store instance that brought it.
CREATE TABLE route (
  namespace INTEGER NOT NULL,
  name TEXT NOT NULL,
  reminders_paused_at INTEGER,
  cleanups_paused_at INTEGER,
  wake_at INTEGER,
  wakes INTEGER NOT NULL DEFAULT 0,
  woken_by INTEGER,
  PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

-- The armed deadlines.
CREATE TABLE armed (
  namespace INTEGER NOT NULL,
  id BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX armed_by_expiry ON armed (namespace, expires_at, id);

-- Payloads of deadlines, and of cleanups that are created. Not WITHOUT ROWID, nor is `parked`: long rows do not fit there.
CREATE TABLE payload (
  namespace INTEGER NOT NULL,
  id BLOB NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (namespace, id)
) STRICT;
CREATE TABLE cleanup_payload (
  namespace INTEGER NOT NULL,
  id BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (namespace, id, expires_at, kind)
) STRICT;

-- Recurring ids: a period in ms, or `cron:` and an expression.
CREATE TABLE every (
  namespace INTEGER NOT NULL,
  id BLOB NOT NULL,
  period TEXT NOT NULL,
  PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- How far the sweep of a lead has come: everything up to (expires_at, id), or with no id everything up to expires_at.
CREATE TABLE cursor (
  namespace INTEGER NOT NULL,
  lead INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  id BLOB,
  PRIMARY KEY (namespace, lead)
) STRICT, WITHOUT ROWID;

-- Leads that stay silent for this expiry although the sweep is still to come.
CREATE TABLE skip (
  namespace INTEGER NOT NULL,
  id BLOB NOT NULL,
  lead INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (namespace, id, lead)
) STRICT, WITHOUT ROWID;
CREATE INDEX skip_by_expiry ON skip (namespace, expires_at);

-- Until when no further crossing of an id and lead speaks.
CREATE TABLE crossed (
  namespace INTEGER NOT NULL,
  id BLOB NOT NULL,
  lead INTEGER NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (namespace, id, lead)
) STRICT, WITHOUT ROWID;
CREATE INDEX crossed_by_end ON crossed (namespace, until);

-- Every delivery in flight or waiting. `at`: the end of its lease, or when it may be handed out. `hand_outs`: n, 0 to 15.
-- `claim`: c, 1 to 63 while leased, else 0. `failures`: JSON, once there were any.
CREATE TABLE due (
  namespace INTEGER NOT NULL,
  id BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  route TEXT NOT NULL,
  at INTEGER NOT NULL,
  hand_outs INTEGER NOT NULL,
  claim INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  on_set INTEGER NOT NULL,
  failures TEXT,
  PRIMARY KEY (namespace, id, expires_at, kind, route)
) STRICT, WITHOUT ROWID;
CREATE INDEX due_by_time ON due (namespace, route, at);

-- The latest unsettled cleanup of an id; `recurs`: its own recurrence armed the id again.
CREATE TABLE open (
  namespace INTEGER NOT NULL,
  id BLOB NOT NULL,
  kind INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  recurs INTEGER NOT NULL,
  PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- Dead letters and reviews; `shelf` is 'dead' or 'review'.
CREATE TABLE parked (
  namespace INTEGER NOT NULL,
  shelf TEXT NOT NULL,
  route TEXT NOT NULL,
  id BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  parked_at INTEGER NOT NULL,
  payload BLOB,
  failures TEXT NOT NULL,
  PRIMARY KEY (namespace, shelf, route, id, expires_at, kind)
) STRICT;
CREATE INDEX parked_by_time ON parked (namespace, shelf, parked_at);

-- Running totals.
CREATE TABLE counter (
  namespace INTEGER NOT NULL,
  name TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;
";

/// Where copies into namespaces stand, as JSON. By name: the mark comes before the namespace.
const VERSION_2: &str = "
CREATE TABLE copy (
  name TEXT NOT NULL PRIMARY KEY,
  mark TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// How notices ended; `seq` counts up within a namespace. Rows without an id are of leads that were passed over.
const VERSION_3: &str = "
CREATE TABLE history (
  namespace INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  ending TEXT NOT NULL,
  route TEXT,
  kind INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  id BLOB,
  after INTEGER,
  count INTEGER,
  PRIMARY KEY (namespace, seq)
) STRICT;
";

/// The key of each namespace's handles: 32 hex digits.
const ID_KEYS: &str = "
ALTER TABLE namespace ADD COLUMN id_key TEXT NOT NULL DEFAULT '';
UPDATE namespace SET id_key = lower(hex(randomblob(16)));
";

/// Who observes hand-outs, and what those are told. `until` and `told_at` are by wall clock, whatever the store's clock says.
/// `claim` is the number of the claim in its namespace, `place` the place in it. Empty while nobody observes.
const VERSION_4: &str = "
CREATE TABLE observer (
  namespace INTEGER NOT NULL,
  number INTEGER NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (namespace, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE handed (
  namespace INTEGER NOT NULL,
  claim INTEGER NOT NULL,
  place INTEGER NOT NULL,
  told_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  route TEXT NOT NULL,
  kind INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  id BLOB NOT NULL,
  attempt INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  on_set INTEGER NOT NULL,
  payload BLOB,
  PRIMARY KEY (namespace, claim, place)
) STRICT;
CREATE INDEX handed_by_time ON handed (namespace, told_at);
";

/// What resumes with a rate hold back: of a namespace (no route) or of a route's queue. `class` is 'reminders' or 'cleanups', `rate`
/// a second; it is used up to `used`, and does not end before `stands`.
const VERSION_5: &str = "
CREATE TABLE catch_up (
  namespace INTEGER NOT NULL,
  route TEXT NOT NULL,
  class TEXT NOT NULL,
  rate INTEGER NOT NULL,
  used REAL NOT NULL,
  stands INTEGER NOT NULL,
  PRIMARY KEY (namespace, route, class)
) STRICT, WITHOUT ROWID;
";

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    #[test]
    fn a_fresh_file_goes_through_every_step() {
        let mut connection = memory();
        assert_eq!(migrate(&mut connection, STEPS).unwrap(), 0);
        assert_eq!(version(&connection).unwrap(), STEPS.len());
        let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).unwrap();
        assert_eq!(id, APPLICATION_ID);
    }

    #[test]
    fn an_older_file_goes_through_the_steps_it_lacks_and_keeps_what_it_has() {
        let mut connection = memory();
        migrate(&mut connection, &["CREATE TABLE t (a INTEGER)"]).unwrap();
        connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
        let steps = ["CREATE TABLE t (a INTEGER)", "ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 2"];
        assert_eq!(migrate(&mut connection, &steps).unwrap(), 1);
        let row = connection.query_row("SELECT a, b FROM t", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(row, (1, 2));
        assert_eq!(version(&connection).unwrap(), 2);
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut connection = memory();
        migrate(&mut connection, &["CREATE TABLE t (a INTEGER)"]).unwrap();
        let steps = ["", "DROP TABLE t; CREATE TABLE u (a INTEGER)", "nonsense"];
        assert!(migrate(&mut connection, &steps).is_err());
        assert_eq!(version(&connection).unwrap(), 1);
        assert!(connection.execute("INSERT INTO t VALUES (1)", []).is_ok());
    }

    #[test]
    fn a_newer_file_is_told_and_left_alone() {
        let mut connection = memory();
        connection.pragma_update(None, "user_version", 7).unwrap();
        assert_eq!(migrate(&mut connection, STEPS).unwrap(), 7);
        let tables: i64 = connection.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 0);
    }
}
