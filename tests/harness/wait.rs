//! Waiting for events, each time with an end.

use std::{fmt::Debug, future::Future, sync::Mutex, time::Duration};

use tokio::sync::Notify;

/// How long a test waits for something that must happen; far more than it ever takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Awaits `event`; fails the test if it does not come in [`PATIENCE`].
pub(crate) async fn within<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, event).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain for {what}"),
    }
}

/// Asks again and again until `condition` answers something; only for what lies outside this process, such as the
/// contents of a server. What lies inside announces itself: see [`Inbox`].
pub(crate) async fn eventually<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    within(what, async {
        loop {
            ticks.tick().await;
            if let Some(value) = condition().await {
                return value;
            }
        }
    })
    .await
}

/// What handlers have reported, in the order it came; a test waits until there is enough of it.
#[derive(Debug, Default)]
pub(crate) struct Inbox<T> {
    items: Mutex<Vec<T>>,
    changed: Notify,
}

impl<T: Clone + Debug> Inbox<T> {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { items: Mutex::new(Vec::new()), changed: Notify::new() }
    }

    /// Adds an item and wakes whoever waits.
    pub(crate) fn push(&self, item: T) {
        self.items.lock().unwrap().push(item);
        self.changed.notify_waiters();
    }

    /// All that is there now.
    pub(crate) fn items(&self) -> Vec<T> {
        self.items.lock().unwrap().clone()
    }

    /// Waits until `enough` of all that has come; answers with it.
    pub(crate) async fn wait_until(&self, what: &str, enough: impl Fn(&[T]) -> bool) -> Vec<T> {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                // Registered before looking, so that an item that comes between is not missed.
                let changed = self.changed.notified();
                let items = self.items();
                if enough(&items) {
                    return items;
                }
                changed.await;
            }
        });
        match waited.await {
            Ok(items) => items,
            Err(_) => panic!("waited {PATIENCE:?} in vain for {what}; so far: {:#?}", self.items()),
        }
    }

    /// Waits for the first `count` items; answers with all that has come.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<T> {
        self.wait_until(&format!("{count} items"), |items| items.len() >= count).await
    }
}
