//! How much is done at once: requests, and apart from them those that wait, which cost little and last long.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use tokio::time::timeout;

use crate::api::{self, Code};
use crate::http::app::App;
use crate::http::error::Problem;

/// What is done at present.
#[derive(Debug, Default)]
pub(super) struct Load {
    requests: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
}

/// The place of a request, until it is answered or waits.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<Counted>);

/// One that counts until it is dropped or given up.
#[derive(Debug)]
struct Counted {
    count: Arc<AtomicUsize>,
    is_given_up: AtomicBool,
}

/// The place of a request that waits.
#[derive(Debug)]
pub(super) struct Waiting(#[expect(dead_code, reason = "it counts until it is dropped")] Counted);

impl Counted {
    /// Counts one more, unless there are as many as allowed.
    fn new(count: &Arc<AtomicUsize>, limit: u32) -> Option<Self> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = |present| (present < limit).then_some(present + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self { count: Arc::clone(count), is_given_up: AtomicBool::new(false) })
    }

    fn give_up(&self) {
        if !self.is_given_up.swap(true, Ordering::Relaxed) {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Load {
    /// Gives the place of a request up for one among those that wait.
    pub(super) fn wait(&self, place: &Place, limit: u32) -> Result<Waiting, Problem> {
        let waiting = Counted::new(&self.waiting, limit).ok_or_else(|| too_many("waiting requests", "max_waiting"))?;
        place.0.give_up();
        Ok(Waiting(waiting))
    }
}

fn too_many(what: &str, limit: &str) -> Problem {
    let detail =
        format!("more {what} at once than limits.{limit} allows; make this one again in a moment, or raise it");
    api::Problem::new(Code::TooMany, detail).retry_after(Duration::from_secs(1)).into()
}

/// Lets in as many requests as allowed, and lets none but those that wait take for ever.
pub(super) async fn limit(app: &App, mut request: Request, run: impl AsyncFnOnce(Request) -> Response) -> Response {
    let limits = app.limits();
    let counted = Counted::new(&app.load().requests, limits.max_requests);
    let Some(counted) = counted else { return too_many("requests", "max_requests").into_response() };
    let place = Place(Arc::new(counted));
    request.extensions_mut().insert(place.clone());
    // The body may take one time-out by itself.
    let patience = limits.request_timeout * 2;
    let mut running = pin!(run(request));
    match timeout(patience, &mut running).await {
        Ok(response) => response,
        // What waits may.
        Err(_) if place.0.is_given_up.load(Ordering::Relaxed) => running.await,
        Err(_) => {
            let detail = "the store took too long; the call may have been carried out, make it again in a moment";
            let problem = api::Problem::new(Code::StoreUnavailable, detail).retry_after(Duration::from_secs(1));
            Problem::from(problem).into_response()
        }
    }
}
