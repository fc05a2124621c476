//! Stores that a copy goes between, and short calls on them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use forewarn::model::{ExpiresAt, Id, Kind, Mode, Name, Notice, Pause, Renew, Track, format_span};
use forewarn::store::copy::{Copied, CopyError, StoreCopy};
use forewarn::store::redis::{RedisOptions, RedisStore};
use forewarn::store::sqlite::{SqliteOptions, SqliteStore};
use forewarn::store::{Claim, Next, Store};
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;

use crate::harness::{self, Kind as Software, Rights, Server};

/// The instant at which clocks begin.
pub(crate) const START: i64 = 1_796_083_200_000;
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// One store and its clock.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    clock: Arc<AtomicI64>,
    back: Back,
}

/// What lies behind a store.
enum Back {
    Redis { connection: MultiplexedConnection, prefix: String },
    File(TempDir),
}

pub(crate) fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

/// The namespace of every test here; each world has one of its own.
pub(crate) fn ns() -> Name {
    name("session")
}

pub(crate) fn id(bytes: impl AsRef<[u8]>) -> Id {
    Id::new(bytes.as_ref()).unwrap()
}

fn expiry(at: i64) -> ExpiresAt {
    ExpiresAt::from_millis(START + at).unwrap()
}

impl World {
    /// A part of the shared server that nobody else uses.
    pub(crate) async fn redis() -> Self {
        Self::on(Server::shared(Software::Redis)).await
    }

    pub(crate) async fn on(server: &Server) -> Self {
        let prefix = harness::namespace();
        let clock = Arc::new(AtomicI64::new(START));
        let options = RedisOptions {
            prefix: Some(name(&prefix)),
            manual_clock: Some(Arc::clone(&clock)),
            ..RedisOptions::default()
        };
        let store = RedisStore::open(&server.url_with(&Rights::of_prefix(&prefix)), options).await.unwrap();
        let back = Back::Redis { connection: server.connection().await, prefix };
        Self { store: Arc::new(store), clock, back }
    }

    /// A file of its own.
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicI64::new(START));
        let options = SqliteOptions { manual_clock: Some(Arc::clone(&clock)), ..SqliteOptions::default() };
        let store = SqliteStore::open(directory.path().join("forewarn.db"), options).await.unwrap();
        Self { store: Arc::new(store), clock, back: Back::File(directory) }
    }

    /// Sets the clock to this many milliseconds after the beginning.
    pub(crate) fn at(&self, ms: i64) {
        self.clock.store(START + ms, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.load(Ordering::SeqCst) - START
    }

    /// Runs a command past the store, on a key of a shard of the namespace.
    pub(crate) async fn raw(&self, command: &str, shard: u16, key: &str, arguments: &[&[u8]]) {
        let Back::Redis { connection, prefix } = &self.back else { panic!("no server") };
        let mut raw = redis::cmd(command);
        raw.arg(format!("{{{prefix}:{}:{shard}}}:{key}", ns()));
        for argument in arguments {
            raw.arg(*argument);
        }
        raw.query_async::<redis::Value>(&mut connection.clone()).await.unwrap();
    }

    /// Makes an armed id recur; there is no call for it yet.
    pub(crate) async fn recur(&self, text: &str, period: &str) {
        match &self.back {
            Back::Redis { .. } => {
                let shards = self.store.configured(&ns()).await.unwrap().settings.shards;
                self.raw("HSET", shard_of(text.as_bytes(), shards), "every", &[text.as_bytes(), period.as_bytes()])
                    .await;
            }
            Back::File(directory) => {
                let connection = rusqlite::Connection::open(directory.path().join("forewarn.db")).unwrap();
                let row = "INSERT INTO every (namespace, id, period) SELECT key, ?2, ?3 FROM namespace WHERE name = ?1";
                connection.execute(row, (ns().as_str(), text.as_bytes(), period)).unwrap();
            }
        }
    }

    pub(crate) async fn track(&self, bytes: impl AsRef<[u8]>, at: i64, payload: Option<&[u8]>) {
        let entry = Track { id: id(bytes), expires_at: expiry(at), payload: payload.map(<[u8]>::to_vec) };
        self.store.track(&ns(), Mode::Upsert, &[entry]).await.unwrap();
    }

    pub(crate) async fn renew(&self, text: &str, at: i64) {
        let entry = Renew { id: id(text), expires_at: expiry(at), payload: None };
        self.store.renew(&ns(), &[entry]).await.unwrap();
    }

    pub(crate) async fn pause(&self, route: Option<&str>, reminders: bool, cleanups: bool, paused: bool) {
        let pause = Pause { route: route.map(name), reminders, cleanups, paused, rate: None };
        self.store.pause(&ns(), &pause).await.unwrap();
    }

    pub(crate) async fn claim_some(&self, route: &str, limit: u32) -> Vec<Claim> {
        self.store.claim(&ns(), &name(route), limit, LEASE).await.unwrap().claims
    }

    /// Claims everything due for a route.
    pub(crate) async fn claim(&self, route: &str) -> Vec<Claim> {
        let mut claims = Vec::new();
        loop {
            let more = self.store.claim(&ns(), &name(route), 500, LEASE).await.unwrap();
            claims.extend(more.claims);
            if more.next != Next::Backlog {
                return claims;
            }
        }
    }

    pub(crate) async fn ack(&self, route: &str, claims: &[Claim]) {
        let tokens: Vec<_> = claims.iter().map(|claim| claim.token.clone()).collect();
        self.store.ack(&ns(), &name(route), &tokens).await.unwrap();
    }

    /// A copy from here to there, the clock of which is set like ours.
    pub(crate) fn copy_to(&self, target: &World) -> StoreCopy {
        target.at(self.now());
        StoreCopy::new(Arc::clone(&self.store), Arc::clone(&target.store)).pause(true).page(7)
    }

    /// Copies all to the target.
    pub(crate) async fn copied_to(&self, target: &World, shards: Option<u16>) -> Copied {
        run(&self.copy_to(target).shards(shards)).await.unwrap()
    }
}

/// Runs a copy to its end.
pub(crate) async fn run(copy: &StoreCopy) -> Result<Copied, CopyError> {
    copy.run(&ns(), &mut |_| {}).await
}

pub(crate) fn shard_of(bytes: &[u8], shards: u16) -> u16 {
    u16::try_from(crc32(bytes) % u32::from(shards)).unwrap()
}

/// The standard CRC-32, bit by bit: not the one the store uses.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// A notice in words.
pub(crate) fn words(notice: &Notice) -> String {
    match notice.kind {
        Kind::Reminder(lead) => format!("{} {}", format_span(lead.as_duration()), notice.id),
        Kind::Cleanup(reason) => format!("{} {}", reason.as_str(), notice.id),
    }
}

/// The notice of a claim in words.
pub(crate) fn said(claim: &Claim) -> String {
    words(&claim.notice)
}

/// What is due on a route, claimed and told in words, sorted.
pub(crate) async fn heard(world: &World, route: &str) -> Vec<String> {
    let mut words: Vec<String> = world.claim(route).await.iter().map(said).collect();
    words.sort();
    words
}
