//! The Redis adapter of the port: one ZSET of expiries and sweep cursors, worked on by atomic scripts.

use std::sync::{Arc, atomic::AtomicI64};

use crate::model::*;
use crate::store::*;
use std::time::Duration;

/// How to open a [`RedisStore`], beside its URL.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The first part of every key. Default: `fw`, or what the URL's `prefix` says.
    pub prefix: Option<Name>,
    /// The instant (ms) every script takes for now, instead of the server's clock: for tests under virtual time.
    pub manual_clock: Option<Arc<AtomicI64>>,
}

/// A store on one Redis or Valkey server.
#[derive(Debug)]
pub struct RedisStore {}

impl RedisStore {
    /// Connects to the server at `url` and checks that it is new enough.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a URL that cannot be understood, [`StoreError::Unavailable`] if nothing answers.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::open(url, RedisOptions::default()).await
    }

    /// Connects with options.
    ///
    /// # Errors
    /// As for [`RedisStore::connect`].
    pub async fn open(_url: &str, _options: RedisOptions) -> Result<Self, StoreError> {
        unimplemented!()
    }
}

#[async_trait::async_trait]
impl crate::store::Store for RedisStore {
    #[allow(unused_variables)]
    async fn now(&self) -> Result<i64, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn configured(&self, namespace: &Name) -> Result<Arc<Configured>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn configure(&self, namespace: &Name, change: &Change) -> Result<Applied, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn preview(&self, namespace: &Name, settings: &Settings) -> Result<Preview, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn pause(&self, namespace: &Name, pause: &Pause) -> Result<(), StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn track(&self, namespace: &Name, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn replace(&self, namespace: &Name, mode: Mode, new: &Track, old: &Id) -> Result<Replaced, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn renew(&self, namespace: &Name, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn remove(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Removed>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn expire(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Expired>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn show(&self, namespace: &Name, id: &Id) -> Result<Option<DeadlineView>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn list(&self, namespace: &Name, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn claim(&self, namespace: &Name, route: &Name, limit: u32, lease: Duration) -> Result<Claims, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn recheck(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Checked>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn ack(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn fail(&self, namespace: &Name, route: &Name, failing: &[Failing]) -> Result<Vec<Settled>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn extend(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
        lease: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn release(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn parked(&self, namespace: &Name, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn requeue(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<Requeued>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn discard(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<bool>, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn stats(&self, namespace: &Name) -> Result<Stats, StoreError> {
        unimplemented!()
    }
    #[allow(unused_variables)]
    async fn wakeups(&self, namespace: &Name) -> Result<Wakeups, StoreError> {
        unimplemented!()
    }
}
