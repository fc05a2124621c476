//! How the daemon is: whether the store answers and its loops tick. One probe a second asks; requests only look.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{info, warn};
use utoipa::ToSchema;

use crate::api::{self, Code};
use crate::clock;
use crate::http::App;
use crate::http::error::Problem;

/// How the daemon is.
#[derive(Debug, Default)]
pub struct Health(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Since when the store has not answered, and the first error.
    trouble: Option<(Instant, String)>,
    /// Whether it has answered at all.
    has_answered: bool,
    skew_ms: Option<i64>,
    /// Until when each loop has to tick again.
    loops: BTreeMap<&'static str, Instant>,
}

/// A daemon that is ready.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// `ready`
    status: &'static str,
    /// How far the store's clock is ahead of this machine's, in milliseconds.
    clock_skew_ms: Option<i64>,
}

impl Health {
    /// How often the store is asked.
    const PROBE_INTERVAL: Duration = Duration::from_secs(1);
    /// How long it may take to answer.
    const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

    /// A loop works, and says so again within this time.
    pub fn tick(&self, name: &'static str, within: Duration) {
        self.state().loops.insert(name, Instant::now() + within);
    }

    /// A loop has ended.
    pub fn forget(&self, name: &'static str) {
        self.state().loops.remove(name);
    }

    /// Asks the store once a second, for as long as it is polled.
    pub async fn probe(&self, app: &App) {
        let mut ticks = interval(Self::PROBE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let asked = clock::now_ms();
            let answer = timeout(Self::PROBE_TIMEOUT, app.forewarn().store().now()).await;
            let skew = |now_ms: i64| now_ms.saturating_sub(asked.midpoint(clock::now_ms()));
            match answer {
                Ok(Ok(now_ms)) => self.answered(skew(now_ms)),
                Ok(Err(error)) => self.failed(&error.to_string()),
                Err(_) => self.failed("the store did not answer in time"),
            }
            self.tick("probe", Self::PROBE_INTERVAL + Self::PROBE_TIMEOUT * 2);
        }
    }

    fn answered(&self, skew_ms: i64) {
        let mut state = self.state();
        state.has_answered = true;
        state.skew_ms = Some(skew_ms);
        if let Some((since, _)) = state.trouble.take() {
            info!(lasted_ms = since.elapsed().as_millis(), "the store answers again");
        }
    }

    fn failed(&self, error: &str) {
        let mut state = self.state();
        if state.trouble.is_none() {
            warn!(error, "the store does not answer; it is asked again every second");
            state.trouble = Some((Instant::now(), error.to_owned()));
        }
    }

    /// Whether all loops tick.
    pub fn is_ticking(&self) -> bool {
        let now = Instant::now();
        self.state().loops.values().all(|until| *until >= now)
    }

    /// How far the store's clock is ahead of this machine's, in ms.
    pub(super) fn skew_ms(&self) -> Option<i64> {
        self.state().skew_ms
    }

    /// Whether the store has answered the last probe.
    pub(super) fn is_store_up(&self) -> bool {
        let state = self.state();
        state.has_answered && state.trouble.is_none()
    }

    fn check(&self) -> Result<Ready, Problem> {
        let state = self.state();
        let not_ready =
            |code, detail: String| Err(api::Problem::new(code, detail).retry_after(Self::PROBE_INTERVAL).into());
        if let Some((since, _)) = &state.trouble {
            let detail = format!("the store has not answered for {} s; the log says why", since.elapsed().as_secs());
            return not_ready(Code::StoreUnavailable, detail);
        }
        if !state.has_answered {
            return not_ready(Code::StoreUnavailable, "the store has not answered yet".to_owned());
        }
        let now = Instant::now();
        if let Some((name, _)) = state.loops.iter().find(|(_, until)| **until < now) {
            return not_ready(Code::StoreTrouble, format!("the loop \"{name}\" does not tick"));
        }
        Ok(Ready { status: "ready", clock_skew_ms: state.skew_ms })
    }

    fn state(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the process is alive
#[utoipa::path(
    get, path = "/healthz", tag = "daemon", security(()),
    responses((status = 200, description = "It is", body = String, content_type = "text/plain"))
)]
pub(super) async fn healthz() -> (StatusCode, &'static str) {
    (StatusCode::OK, "alive\n")
}

/// Whether it can work
///
/// The store answers and the daemon's loops tick. Red within 10 s of trouble, green again by itself.
#[utoipa::path(
    get, path = "/readyz", tag = "daemon", security(()),
    responses(
        (status = 200, description = "It can", body = Ready),
        (status = 503, description = "It cannot", body = api::Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn readyz(State(app): State<App>) -> Result<Json<Ready>, Problem> {
    if app.stopping().is_cancelled() {
        return Err(Problem::new(Code::Stopping, "the daemon is stopping"));
    }
    app.health().check().map(Json)
}
