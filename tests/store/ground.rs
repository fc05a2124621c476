//! Where a test plays: every store that is at hand, each with a peer that looks at it and writes to it past the store.
//!
//! A further kind of store is one more file beside `ground/file.rs`, and its place in [`Ground`]. What a test may ask of every
//! store is what [`Peer`] has; tests of what one store alone has live apart, in `only_server` or with that store.

mod daemon;
mod file;
mod server;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::AtomicI64},
};

use async_trait::async_trait;
use forewarn::model::Name;
use forewarn::store::Store;
use redis::aio::MultiplexedConnection;

use crate::harness::{Kind, Rights, Server, servers};
use crate::snapshot::Snapshot;

pub(crate) use daemon::{beneath, forged};
pub(crate) use server::key;

/// A store to play on.
#[derive(Clone, Copy)]
pub(crate) enum Ground<'a> {
    /// A server of the test's.
    Server(&'a Server),
    /// A new file.
    File,
    /// A server of the test's beneath a daemon.
    Daemon(&'a Server),
}

/// All stores at hand: the shared servers, and a file.
pub(crate) fn grounds() -> Vec<Ground<'static>> {
    let beneath = Server::shared(Kind::Redis);
    servers().into_iter().map(Ground::from).chain([Ground::File, Ground::Daemon(beneath)]).collect()
}

impl Ground<'_> {
    /// A peer on this ground; it opens the store, too.
    pub(crate) async fn peer(self) -> Box<dyn Peer> {
        self.peer_with(None).await
    }

    /// The same where a store on a server has these rights, if any are given: for keys behind ids.
    pub(crate) async fn peer_with(self, rights: Option<&Rights>) -> Box<dyn Peer> {
        match self {
            Self::Server(server) => Box::new(server::Raw::new(server, rights).await),
            Self::File => Box::new(file::Sql::new()),
            Self::Daemon(server) => Box::new(daemon::Served::new(Box::new(server::Raw::new(server, rights).await))),
        }
    }
}

/// Who looks at what a store holds, and writes to it, past the store.
#[async_trait(?Send)]
pub(crate) trait Peer {
    /// A store on the same data, under a clock of the test's; any number of them may be open.
    async fn open(&self, clock: &Arc<AtomicI64>) -> Arc<dyn Store>;

    /// Another peer on the same data.
    fn again(&self) -> Box<dyn Peer>;

    /// Into how many shards it splits a namespace at most.
    fn max_shards(&self) -> u16;

    /// Writes something about an id of a namespace with so many shards.
    async fn write(&mut self, namespace: &Name, shards: u16, id: &[u8], entry: Entry);

    /// Takes away everything of a namespace, its settings too, as a failover to an empty replica does.
    async fn wipe(&mut self, namespace: &Name);

    /// What a namespace holds, in the words of the model.
    async fn snapshot(&mut self, namespace: &Name, shards: u16, routes: &[String]) -> Snapshot;

    /// All that is written down for a namespace.
    async fn keyspace(&mut self, namespace: &Name) -> Keyspace;

    /// What is left of a namespace beside settings, cursors and counters.
    async fn leftovers(&mut self, namespace: &Name) -> Vec<String>;

    /// A raw client's connection.
    fn connection(&mut self) -> &mut MultiplexedConnection {
        panic!("only servers have raw clients")
    }
}

/// What a peer may write about an id.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// Armed until this instant: a number as a raw client would spell it.
    Armed(String),
    /// Not armed.
    Disarmed,
    /// Recurring: a period in ms, or `cron:` and an expression. There is no command for it yet.
    Every(String),
}

impl From<Kind> for Ground<'static> {
    fn from(kind: Kind) -> Self {
        Self::Server(Server::shared(kind))
    }
}

impl<'a> From<&'a Server> for Ground<'a> {
    fn from(server: &'a Server) -> Self {
        Self::Server(server)
    }
}

impl fmt::Display for Ground<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => write!(f, "{}", server.kind()),
            Self::File => f.write_str("a file"),
            Self::Daemon(_) => f.write_str("a daemon"),
        }
    }
}

/// The keys or tables of a namespace and what each holds.
#[derive(Default, PartialEq)]
pub(crate) struct Keyspace(pub(crate) BTreeMap<String, Vec<String>>);

impl Keyspace {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether anything at all is written under a name, or contains it.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.0.iter().any(|(key, held)| key.contains(text) || held.iter().any(|entry| entry.contains(text)))
    }
}

/// The names only: what they hold is too long to be read.
impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, held) in &self.0 {
            write!(f, "\n  {key}")?;
            for entry in held.iter().filter(|entry| entry.len() < 200) {
                write!(f, "\n      {entry}")?;
            }
        }
        Ok(())
    }
}
