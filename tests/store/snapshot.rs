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
