//! What all handlers share.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::config::Limits;
use crate::forewarn::Forewarn;
use crate::http::auth::Keyring;
use crate::http::claims::Desks;
use crate::http::feeds::Feeds;
use crate::http::health::Health;
use crate::http::load::Load;
use crate::http::metrics::Metrics;

/// What all handlers share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    forewarn: Forewarn,
    keyring: Keyring,
    limits: RwLock<Arc<Limits>>,
    is_local: bool,
    load: Load,
    health: Health,
    metrics: Metrics,
    desks: Desks,
    feeds: Feeds,
    stopping: CancellationToken,
}

impl App {
    /// The API of a store. `is_local`: whether only this machine can reach it.
    pub fn new(forewarn: Forewarn, keyring: Keyring, limits: Limits, is_local: bool) -> Self {
        let stopping = CancellationToken::new();
        Self(Arc::new(Shared {
            keyring,
            is_local,
            load: Load::default(),
            health: Health::default(),
            metrics: Metrics::new(),
            feeds: Feeds::new(Arc::clone(forewarn.store())),
            desks: Desks::new(Arc::clone(forewarn.store()), stopping.clone()),
            limits: RwLock::new(Arc::new(limits)),
            forewarn,
            stopping,
        }))
    }

    /// The store.
    pub fn forewarn(&self) -> &Forewarn {
        &self.0.forewarn
    }

    /// The tokens that are accepted.
    pub fn keyring(&self) -> &Keyring {
        &self.0.keyring
    }

    /// How the daemon is.
    pub fn health(&self) -> &Health {
        &self.0.health
    }

    /// From now on claims do not wait and event streams end.
    pub fn stop(&self) {
        self.0.stopping.cancel();
    }

    /// Waits until claims that nobody got are given back; answers whether all are.
    pub async fn settle(&self, patience: Duration) -> bool {
        tokio::time::timeout(patience, self.0.desks.settled()).await.is_ok()
    }

    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// From now on requests may take this much.
    pub fn set_limits(&self, limits: Limits) {
        *self.0.limits.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
    }

    pub(super) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.0.limits.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_local(&self) -> bool {
        self.0.is_local
    }

    pub(super) fn load(&self) -> &Load {
        &self.0.load
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(super) fn desks(&self) -> &Desks {
        &self.0.desks
    }

    pub(super) fn feeds(&self) -> &Feeds {
        &self.0.feeds
    }
}
