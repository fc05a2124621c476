//! What the tests here play on: a namespace of a test store, and lines of what was handled.

use std::{sync::Arc, time::Duration};

use forewarn::engine::WorkerBuilder;
use forewarn::testing::{Handled, TestStore};
use forewarn::{Class, Failure, Namespace, Settings, Worker};
use tokio::sync::Notify;

use crate::harness::within;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// The namespace `cart` of a new store, with reminders ten minutes and one minute before the end.
pub(crate) async fn carts() -> (TestStore, Namespace) {
    let test = TestStore::new().await.unwrap();
    let carts = test.namespace("cart");
    carts.apply(reminding()).await.unwrap();
    (test, carts)
}

pub(crate) fn reminding() -> Settings {
    Settings::default().remind("10m".parse().unwrap()).remind("1m".parse().unwrap())
}

/// A worker whose handlers are done at once.
pub(crate) fn willing(carts: &Namespace) -> WorkerBuilder {
    Worker::builder(carts).on_reminder(|_| async {}).on_cleanup(|_| async {})
}

/// Each hand-out as a line.
pub(crate) fn lines(handled: &[Handled]) -> Vec<String> {
    handled.iter().map(ToString::to_string).collect()
}

/// Each hand-out as a line, with the seconds of the clock since `begin`.
pub(crate) fn timed(handled: &[Handled], begin: chrono::DateTime<chrono::Utc>) -> Vec<String> {
    handled.iter().map(|handled| format!("{} {handled}", (handled.at - begin).num_seconds())).collect()
}

/// A handler that tells when it has begun, and ends when it is let.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    begun: Arc<Notify>,
    pub(crate) go: Arc<Notify>,
}

impl Gate {
    pub(crate) async fn pass(self) {
        self.tell_begun();
        self.go.notified().await;
    }

    pub(crate) fn tell_begun(&self) {
        self.begun.notify_one();
    }

    /// Waits until a handler has begun.
    pub(crate) async fn begun(&self) {
        within("a handler to begin", self.begun.notified()).await;
    }
}

pub(crate) fn failure(summary: &str) -> Failure {
    Failure::new(Class::Timeout, summary)
}
