//! Where a test plays: every store that is at hand. Tests of raw clients and of servers in trouble take `servers()` instead.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use forewarn::store::Store;
use forewarn::store::redis::{RedisOptions, RedisStore};
use forewarn::store::sqlite::{SqliteOptions, SqliteStore};
use redis::aio::MultiplexedConnection;

use crate::harness::{Kind, Server, servers};

/// A store to play on.
#[derive(Clone, Copy)]
pub(crate) enum Ground<'a> {
    /// A server of the test's.
    Server(&'a Server),
    /// A new file.
    File,
}

/// All stores at hand: the shared servers, and a file.
pub(crate) fn grounds() -> Vec<Ground<'static>> {
    servers().into_iter().map(Ground::from).chain([Ground::File]).collect()
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
        }
    }
}

/// Who looks at what a store holds, and writes to it, past the store.
pub(crate) enum Peer {
    Server(MultiplexedConnection),
    File(rusqlite::Connection, #[expect(dead_code, reason = "the directory goes with it")] tempfile::TempDir),
}

impl Ground<'_> {
    /// Opens the store under a clock of the test's.
    pub(crate) async fn open(self, clock: &Arc<AtomicI64>) -> (Arc<dyn Store>, Peer) {
        match self {
            Self::Server(server) => {
                let options = RedisOptions { manual_clock: Some(Arc::clone(clock)), ..RedisOptions::default() };
                let store = RedisStore::open(&server.url(), options).await.expect("the test's own server answers");
                (Arc::new(store), Peer::Server(server.connection().await))
            }
            Self::File => {
                let options = SqliteOptions { manual_clock: Some(Arc::clone(clock)), ..SqliteOptions::default() };
                let directory = tempfile::tempdir().expect("a temporary directory");
                let path = directory.path().join("store.db");
                let store = SqliteStore::open(&path, options).await.expect("a new file");
                let connection = rusqlite::Connection::open(&path).expect("the file");
                connection.busy_timeout(Duration::from_secs(5)).expect("a timeout");
                (Arc::new(store), Peer::File(connection, directory))
            }
        }
    }
}
