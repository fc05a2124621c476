//! Reads every key of a namespace, by the documented layout.

use std::collections::BTreeMap;

use redis::{FromRedisValue, Value, aio::MultiplexedConnection};
use serde::Deserialize;

use crate::model::{Open, Place, Record, Stored};
use crate::words::{Bytes, Frontier, Notice, Score};

/// Time, n and c of a delivery, as its score holds them.
pub(crate) type Square = (i64, u8, u8);

/// What a namespace holds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) armed: BTreeMap<Bytes, Score>,
    pub(crate) frontiers: BTreeMap<(u16, i64), Frontier>,
    pub(crate) queues: BTreeMap<String, BTreeMap<Notice, Square>>,
    pub(crate) open: BTreeMap<Bytes, Open>,
    pub(crate) silent: BTreeMap<(i64, Bytes), Score>,
    pub(crate) crossed: BTreeMap<(i64, Bytes), i64>,
    pub(crate) payloads: BTreeMap<Bytes, Bytes>,
    pub(crate) records: BTreeMap<(String, Notice), Record>,
    pub(crate) parked: BTreeMap<(Place, String, Notice), Stored>,
    pub(crate) every: BTreeMap<Bytes, i64>,
    pub(crate) bad: BTreeMap<Bytes, Score>,
    /// The claim counter of each shard.
    pub(crate) claims: BTreeMap<u16, i64>,
    /// Until when each route of each shard is known to sleep.
    pub(crate) wake_at: BTreeMap<(u16, String), i64>,
}

#[derive(Deserialize)]
struct Json {
    failures: f64,
    lapses: f64,
    #[serde(default)]
    payload: Option<serde_bytes::ByteBuf>,
}

/// Where a key of a shard stands.
pub(crate) fn key(prefix: &str, namespace: &str, shard: u16, name: &str) -> String {
    format!("{{{prefix}:{namespace}:{shard}}}:{name}")
}

impl Snapshot {
    pub(crate) async fn read(
        connection: &mut MultiplexedConnection,
        namespace: &str,
        shards: u16,
        routes: &[String],
    ) -> Self {
        let mut pipe = redis::pipe();
        for shard in 0..shards {
            let key = |name: &str| key("fw", namespace, shard, name);
            for name in ["cur", "open", "payload", "fail", "dead", "review", "every", "meta"] {
                pipe.cmd("HGETALL").arg(key(name));
            }
            for name in ["exp", "skip", "crossed", "bad", "dead_at", "review_at"] {
                pipe.cmd("ZRANGE").arg(key(name)).arg(0).arg(-1).arg("WITHSCORES");
            }
            for route in routes {
                pipe.cmd("ZRANGE").arg(key(&format!("due:{route}"))).arg(0).arg(-1).arg("WITHSCORES");
            }
        }
        let answers: Vec<Value> = pipe.query_async(connection).await.expect("the test's own server answers");
        let mut answers = answers.into_iter();
        let mut snapshot = Self::default();
        for shard in 0..shards {
            let mut next = || -> Vec<(Bytes, Bytes)> {
                FromRedisValue::from_redis_value(answers.next().expect("one answer a command")).expect("pairs")
            };
            let hashes: Vec<_> = (0..8).map(|_| next()).collect();
            let sets: Vec<_> = (0..6).map(|_| next()).collect();
            let queues: Vec<_> = routes.iter().map(|_| next()).collect();
            snapshot.take_hashes(shard, hashes);
            snapshot.take_sets(sets);
            for (route, queue) in routes.iter().zip(queues) {
                snapshot.take_queue(route, queue);
            }
        }
        snapshot
    }

    fn take_hashes(&mut self, shard: u16, hashes: Vec<Vec<(Bytes, Bytes)>>) {
        let [cur, open, payload, fail, dead, review, every, meta]: [_; 8] = hashes.try_into().expect("eight hashes");
        for (field, cursor) in cur {
            if let Ok(lead) = text(&field).parse() {
                self.frontiers.insert((shard, lead), Frontier::parse(&cursor).expect("a cursor"));
            }
        }
        let sentinel = [b'~'; 1025];
        for (id, entry) in open.into_iter().filter(|(id, _)| id != &sentinel) {
            let entry = text(&entry);
            let (named, recurs) = entry.strip_suffix('+').map_or((entry, false), |named| (named, true));
            let notice = Notice::parse(format!("{named}:").as_bytes()).expect("open names a notice");
            self.open.insert(id, Open { kind: notice.kind, e: notice.e, recurs });
        }
        self.payloads.extend(payload);
        for (field, json) in fail {
            let json: Json = serde_json::from_slice(&json).expect("a failure record");
            self.records.insert(routed(&field), json.record());
        }
        for (place, shelf) in [(Place::Dead, dead), (Place::Review, review)] {
            for (field, json) in shelf {
                let json: Json = serde_json::from_slice(&json).expect("a parked notice");
                let Record { failures, lapses } = json.record();
                let (route, notice) = routed(&field);
                let payload = json.payload.map(serde_bytes::ByteBuf::into_vec);
                self.parked.insert((place, route, notice), Stored { at: i64::MIN, payload, failures, lapses });
            }
        }
        for (id, period) in every {
            self.every.insert(id, text(&period).parse().unwrap_or(-1));
        }
        for (field, value) in meta {
            let field = text(&field);
            if field == "claims" {
                self.claims.insert(shard, text(&value).parse().expect("a counter"));
            } else if let Some(route) = field.strip_prefix("wake-at:") {
                self.wake_at.insert((shard, route.to_owned()), text(&value).parse().expect("an instant"));
            }
        }
    }

    fn take_sets(&mut self, sets: Vec<Vec<(Bytes, Bytes)>>) {
        let mut sets = sets.into_iter();
        let mut next = || {
            let set = sets.next().expect("six sets").into_iter();
            set.map(|(member, score)| (member, Score::parse(text(&score)).expect("a score")))
        };
        self.armed.extend(next());
        self.silent.extend(next().map(|(member, e)| (led(&member), e)));
        self.crossed.extend(next().map(|(member, until)| (led(&member), until.floor())));
        self.bad.extend(next());
        for place in [Place::Dead, Place::Review] {
            for (member, at) in next() {
                let (route, notice) = routed(&member);
                let key = (place, route, notice);
                self.parked.get_mut(&key).expect("a parked notice has an instant and a body").at = at.floor();
            }
        }
    }

    fn take_queue(&mut self, route: &str, queue: Vec<(Bytes, Bytes)>) {
        let deliveries = self.queues.entry(route.to_owned()).or_default();
        for (member, score) in queue.into_iter().filter(|(member, _)| member != &[b'~'; 65]) {
            let notice = Notice::parse(&member).expect("a queue holds notices");
            let score: f64 = text(&score).parse().expect("a score");
            let fence = ((score - score.floor()) * 1024.0) as u16;
            let square = (score.floor() as i64, (fence / 64) as u8, (fence % 64) as u8);
            deliveries.insert(notice, square);
        }
    }
}

impl Json {
    fn record(&self) -> Record {
        Record { failures: self.failures as u32, lapses: self.lapses as u32 }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// `<route>:<notice>`
fn routed(field: &[u8]) -> (String, Notice) {
    let colon = field.iter().position(|byte| *byte == b':').expect("a route and a notice");
    (text(&field[..colon]).to_owned(), Notice::parse(&field[colon + 1..]).expect("a notice"))
}

/// `<lead>:<id>`
fn led(member: &[u8]) -> (i64, Bytes) {
    let colon = member.iter().position(|byte| *byte == b':').expect("a lead and an id");
    (text(&member[..colon]).parse().expect("a lead"), member[colon + 1..].to_vec())
}

impl Snapshot {
    /// The same of a file, by its documented tables.
    pub(crate) fn read_file(connection: &rusqlite::Connection, namespace: &str, routes: &[String]) -> Self {
        let key: i64 = connection
            .query_row("SELECT key FROM namespace WHERE name = ?1", [namespace], |row| row.get(0))
            .expect("a namespace");
        let mut snapshot = Self::default();
        let kind = |kind: i64| match kind {
            0 => crate::words::Kind::Expired,
            -1 => crate::words::Kind::Ended,
            lead => crate::words::Kind::Reminder(lead),
        };
        let mut each = |sql: &str, take: &mut dyn FnMut(&mut Self, &rusqlite::Row<'_>) -> rusqlite::Result<()>| {
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
        let mut each = |sql: &str, take: &mut dyn FnMut(&mut Self, &rusqlite::Row<'_>) -> rusqlite::Result<()>| {
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
}
