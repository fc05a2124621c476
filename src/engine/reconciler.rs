//! The reconciler: has the keys of key-backed ids looked at again between the claims that look at them anyway.
//!
//! The store sees to it that any number of workers make one pass an interval together. Namespaces whose ids are no keys
//! cost nothing.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use crate::engine::route_store::RouteStore;
use crate::engine::tick::{Patience, after};

/// Has keys looked at again.
pub(crate) struct Reconciler {
    store: Arc<RouteStore>,
}

impl Reconciler {
    /// How soon it is noticed that a namespace has become key-backed.
    const LOOK_EVERY: Duration = Duration::from_secs(10);

    pub(crate) fn new(store: Arc<RouteStore>) -> Self {
        Self { store }
    }

    pub(crate) async fn run(&self) -> Infallible {
        let mut patience = Patience::new();
        loop {
            if !self.store.is_key_backed() {
                sleep(Self::LOOK_EVERY).await;
                continue;
            }
            let asked_at = Instant::now();
            match self.store.resync().await {
                Ok(wait) => {
                    patience.reset();
                    sleep_until(after(asked_at, wait.max(Duration::from_millis(1)))).await;
                }
                Err(_) => sleep(patience.next_delay()).await,
            }
        }
    }
}
