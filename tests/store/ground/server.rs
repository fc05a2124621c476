//! A server as a store's place: raw clients' commands, and what the keys hold, by the documented layout.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicI64},
};

use async_trait::async_trait;
use forewarn::model::Name;
use forewarn::store::Store;
use forewarn::store::redis::{RedisOptions, RedisStore};
use redis::{FromRedisValue, Value, aio::MultiplexedConnection};

use super::{Entry, Keyspace, Peer};
use crate::harness::{Rights, Server};
use crate::model::{Open, Place, Record, Stored};
use crate::snapshot::{Json, Snapshot};
use crate::words::{Bytes, Frontier, Notice, Score, shard_of};

/// A raw client of a server.
pub(super) struct Raw {
    url: String,
    connection: MultiplexedConnection,
}

impl Raw {
    pub(super) async fn new(server: &Server, rights: Option<&Rights>) -> Self {
        let url = rights.map_or_else(|| server.url(), |rights| server.url_with(rights));
        Self { url, connection: server.connection().await }
    }

    /// Every key of a namespace, each with pairs: of fields, of members and scores, or of a text and nothing.
    async fn held(&mut self, namespace: &Name) -> BTreeMap<String, Vec<(Bytes, Bytes)>> {
        let pattern = format!("{{fw:{namespace}:*");
        let mut held = BTreeMap::new();
        let mut cursor = 0u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(1000);
            let (next, keys): (u64, Vec<String>) = scan.query_async(&mut self.connection).await.expect("a scan");
            for key in keys {
                held.insert(key.clone(), self.pairs(&key).await);
            }
            cursor = next;
            if cursor == 0 {
                return held;
            }
        }
    }

    async fn pairs(&mut self, key: &str) -> Vec<(Bytes, Bytes)> {
        let of_type: String = redis::cmd("TYPE").arg(key).query_async(&mut self.connection).await.expect("a type");
        let mut command = redis::Cmd::new();
        match of_type.as_str() {
            "hash" => command.arg("HGETALL").arg(key),
            "zset" => command.arg("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES"),
            "string" => {
                let text: Bytes = command.arg("GET").arg(key).query_async(&mut self.connection).await.expect("a text");
                return vec![(text, Bytes::new())];
            }
            other => panic!("{key} is a {other}"),
        };
        let mut pairs: Vec<(Bytes, Bytes)> = command.query_async(&mut self.connection).await.expect("pairs");
        pairs.sort();
        pairs
    }
}

#[async_trait(?Send)]
impl Peer for Raw {
    async fn open(&self, clock: &Arc<AtomicI64>) -> Arc<dyn Store> {
        let options = RedisOptions { manual_clock: Some(Arc::clone(clock)), ..RedisOptions::default() };
        Arc::new(RedisStore::open(&self.url, options).await.expect("the test's own server answers"))
    }

    fn again(&self) -> Box<dyn Peer> {
        Box::new(Self { url: self.url.clone(), connection: self.connection.clone() })
    }

    fn max_shards(&self) -> u16 {
        u16::MAX
    }

    async fn write(&mut self, namespace: &Name, shards: u16, id: &[u8], entry: Entry) {
        let key = |name: &str| key("fw", namespace.as_str(), shard_of(id, shards), name);
        let mut command = redis::Cmd::new();
        match entry {
            Entry::Armed(score) => command.arg("ZADD").arg(key("exp")).arg(score).arg(id),
            Entry::Disarmed => command.arg("ZREM").arg(key("exp")).arg(id),
            Entry::Every(period) => command.arg("HSET").arg(key("every")).arg(id).arg(period),
        };
        let () = command.query_async(&mut self.connection).await.expect("a raw write");
    }

    async fn wipe(&mut self, namespace: &Name) {
        for key in self.held(namespace).await.into_keys() {
            let () = redis::cmd("DEL").arg(key).query_async(&mut self.connection).await.expect("a removal");
        }
    }

    async fn snapshot(&mut self, namespace: &Name, shards: u16, routes: &[String]) -> Snapshot {
        read(&mut self.connection, namespace.as_str(), shards, routes).await
    }

    async fn keyspace(&mut self, namespace: &Name) -> Keyspace {
        let told = |(one, other): (Bytes, Bytes)| format!("{}: {}", one.escape_ascii(), other.escape_ascii());
        let held = self.held(namespace).await;
        Keyspace(held.into_iter().map(|(key, pairs)| (key, pairs.into_iter().map(told).collect())).collect())
    }

    async fn leftovers(&mut self, namespace: &Name) -> Vec<String> {
        let mut left = Vec::new();
        for (key, pairs) in self.held(namespace).await {
            let name = key.rsplit_once("}:").map_or(&key[..], |(_, name)| name);
            let count = pairs.iter().filter(|(member, _)| !is_sentinel(name, member)).count();
            if count > 0 && !["cur", "meta"].contains(&name) {
                left.push(format!("{count} in {name}"));
            }
        }
        left
    }

    fn connection(&mut self) -> &mut MultiplexedConnection {
        &mut self.connection
    }
}

/// What keeps a key out of the encoding for small collections.
fn is_sentinel(key: &str, member: &[u8]) -> bool {
    let length = if key == "open" { 1025 } else { 65 };
    (key == "open" || key.starts_with("due:")) && member == vec![b'~'; length]
}

/// Where a key of a shard stands.
pub(crate) fn key(prefix: &str, namespace: &str, shard: u16, name: &str) -> String {
    format!("{{{prefix}:{namespace}:{shard}}}:{name}")
}

async fn read(connection: &mut MultiplexedConnection, namespace: &str, shards: u16, routes: &[String]) -> Snapshot {
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
    let mut snapshot = Snapshot::default();
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

impl Snapshot {
    fn take_hashes(&mut self, shard: u16, hashes: Vec<Vec<(Bytes, Bytes)>>) {
        let [cur, open, payload, fail, dead, review, every, meta]: [_; 8] = hashes.try_into().expect("eight hashes");
        for (field, cursor) in cur {
            if let Ok(lead) = text(&field).parse() {
                self.frontiers.insert((shard, lead), Frontier::parse(&cursor).expect("a cursor"));
            }
        }
        for (id, entry) in open.into_iter().filter(|(id, _)| !is_sentinel("open", id)) {
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
            } else if let Some(what) = field.strip_prefix("count:") {
                let count: i64 = text(&value).parse().expect("a counter");
                match what {
                    "resynced" => self.looked.resynced += count,
                    "persisted" => self.looked.persisted += count,
                    "gone" => self.looked.gone += count,
                    _ => {}
                }
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
        for (member, score) in queue.into_iter().filter(|(member, _)| !is_sentinel("due:", member)) {
            let notice = Notice::parse(&member).expect("a queue holds notices");
            let score: f64 = text(&score).parse().expect("a score");
            let fence = ((score - score.floor()) * 1024.0) as u16;
            let square = (score.floor() as i64, (fence / 64) as u8, (fence % 64) as u8);
            deliveries.insert(notice, square);
        }
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
