//! The listener: hears of what becomes due earlier than the dispatcher knew, and subscribes again when cut off.
//!
//! A wake-up is only a hint. While nobody listens the dispatcher still looks every `max_poll`.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures::StreamExt;
use tokio::time::{Instant, sleep};

use crate::engine::route_store::RouteStore;
use crate::engine::tick::{Alarm, Patience};
use crate::store::Wakeups;

/// Listens for wake-ups and rings the dispatcher's alarm.
pub(crate) struct Listener {
    store: Arc<RouteStore>,
    alarm: Arc<Alarm>,
    wakeups: Option<Wakeups>,
}

impl Listener {
    /// A subscription that lived this long was a good one.
    const GOOD_AFTER: Duration = Duration::from_secs(5);

    /// Subscribes, before the first claim is made. If that fails it is tried again while the worker runs.
    pub(crate) async fn subscribe(store: Arc<RouteStore>, alarm: Arc<Alarm>) -> Self {
        let wakeups = store.wakeups().await.ok();
        Self { store, alarm, wakeups }
    }

    pub(crate) async fn run(&mut self) -> Infallible {
        let mut patience = Patience::new();
        loop {
            if let Some(mut wakeups) = self.wakeups.take() {
                let since = Instant::now();
                while let Some(at_ms) = wakeups.next().await {
                    self.alarm.ring(at_ms);
                }
                if since.elapsed() >= Self::GOOD_AFTER {
                    patience.reset();
                }
            }
            sleep(patience.next_delay()).await;
            if let Ok(wakeups) = self.store.wakeups().await {
                self.wakeups = Some(wakeups);
                // What was said while nobody listened is not said again.
                self.alarm.ring_now();
            }
        }
    }
}
