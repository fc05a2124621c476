//! The service manager: told when the daemon is ready, that it stops, and that it lives (sd_notify of systemd). Without one
//! nothing happens.

use std::{future::pending, time::Duration};

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};
use tracing::debug;

use crate::http::App;

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        debug!(%error, "the service manager cannot be told");
    }
}

/// It serves from now on.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// It begins to stop.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Says that it lives, if the service manager wants to hear it and while its loops tick.
pub(super) async fn watchdog(app: &App) {
    let Some(within) = sd_notify::watchdog_enabled() else { return pending().await };
    let mut ticks = interval((within / 2).max(Duration::from_millis(100)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if app.health().is_ticking() {
            tell(&[NotifyState::Watchdog]);
        }
    }
}
