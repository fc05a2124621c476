//! The keys behind key-backed ids: their owner, the server that expires them, and looking at them again.

use std::collections::{BTreeMap, BTreeSet};

use forewarn::model::{KeyPattern, OnGone, Settings};
use redis::{Cmd, FromRedisValue};

use super::{Bench, World, id, same};
use crate::ground::Entry;
use crate::model::RECHECK;
use crate::operation::{IDS, Op};
use crate::words::{Bytes, Keyed, Score};

pub(super) fn settings(settings: Settings, keyed: Keyed) -> Settings {
    let mut settings = settings.key_backed(true).manage_keys(keyed.manages);
    settings.on_gone = if keyed.drops { OnGone::Drop } else { OnGone::Cleanup };
    settings.recheck_interval = RECHECK;
    if keyed.has_pattern {
        settings.keys = vec!["[^~]*".parse::<KeyPattern>().expect("a good pattern")];
    } else if keyed.manages {
        settings.keys = vec!["*".parse::<KeyPattern>().expect("a good pattern")];
    }
    settings
}

impl Bench {
    /// No key is left of the history before.
    pub(super) async fn forget_keys(&mut self) {
        let mut delete = redis::cmd("DEL");
        IDS.iter().for_each(|id| {
            delete.arg(*id);
        });
        let _: i64 = self.raw(&delete).await;
    }

    /// The keys that are there, with their expiries.
    pub(super) async fn keys(&mut self) -> BTreeMap<Bytes, Option<i64>> {
        let mut pipe = redis::pipe();
        for id in IDS {
            pipe.cmd("PEXPIRETIME").arg(id);
        }
        let found: Vec<i64> = pipe.query_async(self.peer.connection()).await.expect("the test's own server answers");
        let found = IDS.iter().zip(found).filter(|(_, at)| *at != -2);
        found.map(|(id, at)| (id.to_vec(), (at >= 0).then_some(at))).collect()
    }

    async fn raw<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        command.query_async(self.peer.connection()).await.expect("a good command")
    }
}

impl World<'_> {
    /// Whether this operation is about an id that the namespace refuses: none of its keys.
    pub(super) fn is_out_of_reach(&self, op: &Op) -> bool {
        commanded(op).into_iter().any(|index| self.model.is_foreign(id(index).as_bytes()))
    }

    /// A command that finds another expiry at a key sets its id twice, and nobody sees the first.
    pub(super) fn forget_commanded(&self, op: &Op, before: &mut BTreeMap<Bytes, Score>) {
        for index in commanded(op) {
            before.remove(id(index).as_bytes());
        }
    }

    /// Nobody is woken for what the owner of a key does.
    pub(super) async fn write_key(&mut self, op: &Op) {
        let now = self.model.now;
        match op {
            Op::KeySet { id: index, ttl } => self.set_key(*index, ttl.map(|ttl| now + ttl)).await,
            Op::KeyArm { id: index, ttl } => {
                self.set_key(*index, Some(now + ttl)).await;
                self.arm(*index, now + ttl).await;
            }
            Op::KeyFew { ttl, arms } => {
                for index in 0..3 {
                    self.set_key(index, Some(now + ttl)).await;
                    if *arms {
                        self.arm(index, now + ttl).await;
                    }
                }
            }
            Op::KeyDelete { id: index } => {
                self.raw.insert(id(*index).as_bytes().to_vec());
                self.model.delete_key(id(*index).as_bytes());
                let mut delete = redis::cmd("DEL");
                delete.arg(id(*index).as_bytes());
                let _: i64 = self.bench.raw(&delete).await;
            }
            Op::RawTrue { id: index } => {
                let at = self.model.keys.get(id(*index).as_bytes()).copied().flatten();
                if let Some(at) = at {
                    self.arm(*index, at).await;
                }
            }
            _ => {}
        }
    }

    async fn set_key(&mut self, index: u8, at: Option<i64>) {
        let id = id(index);
        self.raw.insert(id.as_bytes().to_vec());
        self.model.write_key(id.as_bytes(), at);
        let mut set = redis::cmd("SET");
        set.arg(id.as_bytes()).arg("data");
        if let Some(at) = at {
            set.arg("PXAT").arg(at);
        }
        let () = self.bench.raw(&set).await;
    }

    async fn arm(&mut self, index: u8, at: i64) {
        let id = id(index);
        self.raw.insert(id.as_bytes().to_vec());
        self.model.raw_set(id.as_bytes(), Score::ms(at));
        let shards = self.model.rules.shards;
        self.bench.peer.write(&self.name, shards, id.as_bytes(), Entry::Armed(at.to_string())).await;
    }

    /// The ids for which nobody needs to be woken, should a script set them: a cleanup that nobody was told of waits.
    pub(super) fn unheard(&self) -> BTreeSet<Bytes> {
        let waiting = self.model.queues.values().flat_map(BTreeMap::keys);
        waiting.filter(|notice| notice.kind.is_cleanup()).map(|notice| notice.id.clone()).collect()
    }

    /// What a script has set anew, its own or after a look at the key, wakes whom it concerns.
    pub(super) fn note_heard(&mut self, before: &BTreeMap<Bytes, Score>, unheard: &BTreeSet<Bytes>) {
        let armed = &self.model.armed;
        self.raw.retain(|id| armed.get(id) == before.get(id) || unheard.contains(id));
    }

    /// The server's part: a key whose expiry has passed is no more.
    pub(super) async fn expire_keys(&mut self) {
        let over = self.model.expire_keys();
        if over.is_empty() {
            return;
        }
        let mut delete = redis::cmd("DEL");
        delete.arg(over);
        let _: i64 = self.bench.raw(&delete).await;
    }

    pub(super) async fn resync(&mut self) -> Result<(), String> {
        let answer = self.bench.store.resync(&self.name).await.map_err(|error| format!("resync: {error}"))?;
        let answer = i64::try_from(answer.as_millis()).unwrap_or(i64::MAX);
        self.note(&answer);
        same("resync", &answer, &self.model.resync())
    }
}

/// The ids that a command names.
fn commanded(op: &Op) -> Vec<u8> {
    match op {
        Op::Track { id, .. }
        | Op::TrackSame { id, .. }
        | Op::Renew { id, .. }
        | Op::Remove { id }
        | Op::Expire { id } => {
            vec![*id]
        }
        Op::Replace { new, old, .. } => vec![*new, *old],
        Op::TrackMany { entries, .. } | Op::RenewMany { entries } => entries.iter().map(|(id, _)| *id).collect(),
        _ => Vec::new(),
    }
}
