//! The reconciler of key-backed namespaces, whose workers are on the other side of the API: has their keys looked at again.

use std::{collections::HashMap, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use crate::http::App;
use crate::model::Name;
use crate::store::StoreError;

/// Has keys looked at again, for as long as it is polled. Any number of daemons and workers make one pass an interval
/// together.
pub(super) async fn resync(app: &App) {
    const TICK: Duration = Duration::from_millis(500);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut due, mut look_at) = (HashMap::new(), Instant::now());
    loop {
        ticks.tick().await;
        app.health().tick("keys", Duration::from_secs(60));
        if Instant::now() >= look_at {
            look_at = Instant::now() + Duration::from_secs(10);
            match key_backed(app).await {
                Ok(names) => {
                    let now = Instant::now();
                    due = names.into_iter().map(|name| (name.clone(), due.remove(&name).unwrap_or(now))).collect();
                }
                Err(error) => debug!(%error, "the namespaces cannot be read"),
            }
        }
        for (name, due_at) in &mut due {
            if Instant::now() < *due_at {
                continue;
            }
            let wait = app.forewarn().store().resync(name).await.unwrap_or_else(|error| {
                debug!(namespace = %name, %error, "keys cannot be looked at");
                Duration::from_secs(1)
            });
            *due_at = Instant::now() + wait;
        }
    }
}

async fn key_backed(app: &App) -> Result<Vec<Name>, StoreError> {
    let mut names = Vec::new();
    for registered in app.forewarn().namespaces().await? {
        match app.forewarn().store().configured(&registered.name).await {
            Ok(configured) if configured.settings.key_backed => names.push(registered.name),
            Ok(_) | Err(StoreError::Unconfigured { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}
