-- Made by version 1 of the layout: its tables, then one namespace in the middle of its life.
PRAGMA journal_mode = WAL;
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

PRAGMA application_id = 1718777710;
PRAGMA user_version = 1;

INSERT INTO namespace (key, name, version, settings, routes, claims) VALUES (1, 'session', '0123456789abcdef',
  '{"remind":[600000],"cleanup":true,"grace_ms":0,"late":"crossing","on_rearm":"supersede","min_repeat_ms":null,"lease_ms":60000,"clock_tolerance_ms":5000,"max_deliveries":10,"max_payload":16384,"shards":1,"key_backed":false,"revision":null}',
  '[{"name":"main","reminders":true,"cleanups":true}]', 3);
INSERT INTO route (namespace, name, wake_at) VALUES (1, 'main', 1796083201000);
INSERT INTO armed VALUES (1, CAST('wang' AS BLOB), 1796083900000), (1, CAST('zhao' AS BLOB), 1796092200000);
INSERT INTO payload VALUES (1, CAST('wang' AS BLOB), CAST('{"user":7}' AS BLOB));
INSERT INTO cursor VALUES (1, 600000, 1796083800000, NULL);
INSERT INTO open VALUES (1, CAST('late' AS BLOB), 0, 1796083195000, 0);
INSERT INTO due VALUES (1, CAST('late' AS BLOB), 1796083195000, 0, 'main', 1796083225000, 1, 0, 1796083195000, 0,
  '{"failures":1,"lapses":0,"last":[{"at_ms":1796083195000,"attempt":1,"stage":"deliver","class":"timeout","summary":"no answer","next_attempt_at_ms":1796083225000}]}');
INSERT INTO parked VALUES (1, 'dead', 'main', CAST('gone' AS BLOB), 1796083110000, 0, 1796083120000, NULL,
  '{"failures":1,"lapses":0,"last":[{"at_ms":1796083120000,"attempt":1,"stage":"deliver","class":"denied","summary":"403 from the bucket"}]}');
INSERT INTO counter VALUES (1, 'handed_out', 3);
