//! A daemon as a store's place: whatever a test asks of the store goes over HTTP, and what it looks at past the store lies beneath.

use std::sync::{Arc, Once, atomic::AtomicI64};

use async_trait::async_trait;
use forewarn::Forewarn;
use forewarn::api::Ticket;
use forewarn::config::{Layers, Limits};
use forewarn::http::{App, Keyring, router};
use forewarn::model::Name;
use forewarn::store::remote::RemoteStore;
use forewarn::store::{Store, Token};
use tokio::net::TcpListener;

use super::{Entry, Keyspace, Peer};
use crate::snapshot::Snapshot;

/// A peer beneath a daemon.
pub(super) struct Served(Box<dyn Peer>);

impl Served {
    pub(super) fn new(beneath: Box<dyn Peer>) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        Self(beneath)
    }
}

/// The token that the store beneath gave out: a daemon puts it into one of its own.
pub(crate) fn beneath(token: &Token) -> Vec<u8> {
    ticket(token).map_or_else(|| token.as_bytes().to_vec(), |ticket| ticket.token.as_bytes().to_vec())
}

/// The token that the same place would have given out for this one of the store beneath.
pub(crate) fn forged(like: &Token, bytes: impl Into<Vec<u8>>) -> Token {
    let token = Token::from_bytes(bytes);
    match ticket(like) {
        Some(ticket) => Token::from_bytes(Ticket { token, ..ticket }.to_string()),
        None => token,
    }
}

fn ticket(token: &Token) -> Option<Ticket> {
    Ticket::read(std::str::from_utf8(token.as_bytes()).ok()?).ok()
}

fn limits() -> Limits {
    Layers { env: vec![("FOREWARN_STORE".into(), "sqlite:unused.db".into())], ..Layers::default() }
        .load()
        .expect("the defaults")
        .config
        .limits
}

#[async_trait(?Send)]
impl Peer for Served {
    /// Serves the store beneath for as long as the test's runtime lives.
    async fn open(&self, clock: &Arc<AtomicI64>) -> Arc<dyn Store> {
        let forewarn = Forewarn::with_store(self.0.open(clock).await);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let app = App::new(forewarn, Keyring::default(), limits(), true);
        tokio::spawn(async move { axum::serve(listener, router(app)).await });
        Arc::new(RemoteStore::new(&format!("http://{address}"), None).expect("a URL"))
    }

    fn again(&self) -> Box<dyn Peer> {
        Box::new(Self(self.0.again()))
    }

    fn max_shards(&self) -> u16 {
        self.0.max_shards()
    }

    async fn write(&mut self, namespace: &Name, shards: u16, id: &[u8], entry: Entry) {
        self.0.write(namespace, shards, id, entry).await;
    }

    async fn wipe(&mut self, namespace: &Name) {
        self.0.wipe(namespace).await;
    }

    async fn snapshot(&mut self, namespace: &Name, shards: u16, routes: &[String]) -> Snapshot {
        self.0.snapshot(namespace, shards, routes).await
    }

    async fn keyspace(&mut self, namespace: &Name) -> Keyspace {
        self.0.keyspace(namespace).await
    }

    async fn leftovers(&mut self, namespace: &Name) -> Vec<String> {
        self.0.leftovers(namespace).await
    }
}
