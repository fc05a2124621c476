//! Metrics in the Prometheus text format: what the store holds, asked for at each scrape, and what this process did.
//!
//! Each figure carries the label `source`: `store` for what is the same whichever daemon is asked, `process` for what only this
//! one knows. Sums over daemons make sense of the latter alone.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use axum::{
    extract::{MatchedPath, State},
    http::{HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use tokio::time::{Instant, timeout};

use crate::api::{SettledAnswer, SettledWord, Ticket};
use crate::http::App;
use crate::http::stored::Stored;
use crate::model::Name;
use crate::store::Claims;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Requested {
    method: &'static str,
    path: Arc<str>,
    status: u16,
}

/// Which route handles a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Handled {
    method: &'static str,
    path: Arc<str>,
}

impl Handled {
    /// By the route's own path, as in `/v1/namespaces/{ns}`.
    pub(super) fn by(method: &Method, path: Option<&MatchedPath>) -> Self {
        let method = match *method {
            Method::GET => "GET",
            Method::PUT => "PUT",
            Method::POST => "POST",
            Method::DELETE => "DELETE",
            Method::HEAD => "HEAD",
            _ => "(other)",
        };
        Self { method, path: path.map_or("(none)", MatchedPath::as_str).into() }
    }

    /// The method and the path.
    pub(super) fn parts(&self) -> (&'static str, &str) {
        (self.method, &self.path)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OnRoute {
    namespace: String,
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Handed {
    namespace: String,
    route: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    namespace: String,
    route: String,
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Version {
    version: &'static str,
}

/// What this process did.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Requested, Counter>,
    durations: Family<Handled, Histogram>,
    in_flight: Gauge,
    handed: Family<Handed, Counter>,
    lateness: Family<Handed, Histogram>,
    full: Family<OnRoute, Counter>,
    ended: Family<Ended, Counter>,
    failing: Family<OnRoute, Gauge>,
}

fn durations() -> Histogram {
    Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

fn lateness() -> Histogram {
    Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0, 600.0, 3600.0])
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("forewarn");
        let ours = registry.sub_registry_with_label(("source".into(), "process".into()));
        let requests = Family::default();
        ours.register("http_requests", "Requests answered", requests.clone());
        let make: fn() -> Histogram = durations;
        let durations = Family::new_with_constructor(make);
        ours.register(
            "http_request_duration_seconds",
            "How long requests took; claims include their wait",
            durations.clone(),
        );
        let in_flight = Gauge::default();
        ours.register("http_requests_in_flight", "Requests being handled, those that wait included", in_flight.clone());
        let handed = Family::default();
        ours.register("notices_handed_out", "Notices that claims of this process were answered", handed.clone());
        let make: fn() -> Histogram = lateness;
        let lateness = Family::new_with_constructor(make);
        ours.register("notice_lateness_seconds", "From when a notice was due to its first hand-out", lateness.clone());
        let full = Family::default();
        ours.register("claims_full", "Claims that were answered as many notices as they asked for", full.clone());
        let ended = Family::default();
        ours.register(
            "notices_settled",
            "How notices claimed by workers ended, told through this process",
            ended.clone(),
        );
        let failing = Family::default();
        ours.register("consecutive_failures", "Failures since the last success of a route", failing.clone());
        let info: Family<Version, Gauge<u64, AtomicU64>> = Family::default();
        info.get_or_create(&Version { version: env!("CARGO_PKG_VERSION") }).set(1);
        ours.register("build_info", "The version that runs", info);
        Self { registry, requests, durations, in_flight, handed, lateness, full, ended, failing }
    }

    /// A claim was answered.
    pub(super) fn claimed(&self, namespace: &Name, route: &Name, claims: &Claims, limit: u32) {
        for claim in &claims.claims {
            let kind = claim.notice.kind.as_str();
            let labels = Handed { namespace: namespace.to_string(), route: route.to_string(), kind };
            self.handed.get_or_create(&labels).inc();
            if claim.attempt == 1 {
                let late = u64::try_from(claims.now_ms.saturating_sub(claim.due_at_ms)).unwrap_or(0);
                self.lateness.get_or_create(&labels).observe(Duration::from_millis(late).as_secs_f64());
            }
        }
        if limit > 0 && u32::try_from(claims.claims.len()).is_ok_and(|count| count >= limit) {
            self.full.get_or_create(&OnRoute { namespace: namespace.to_string(), route: route.to_string() }).inc();
        }
    }

    /// Claims were settled, each with its answer.
    pub(super) fn settled(&self, namespace: &Name, tickets: &[Ticket], answers: &[SettledAnswer]) {
        for (ticket, answer) in tickets.iter().zip(answers) {
            let outcome = match answer.result {
                SettledWord::Settled => "done",
                SettledWord::Retry => "retry",
                SettledWord::Stale => "stale",
                SettledWord::Dropped => "dropped",
                SettledWord::Dead => "dead",
                SettledWord::Review => "review",
                SettledWord::Current => continue,
            };
            let (namespace, route) = (namespace.to_string(), ticket.route.to_string());
            let failing =
                self.failing.get_or_create_owned(&OnRoute { namespace: namespace.clone(), route: route.clone() });
            match answer.result {
                SettledWord::Settled => drop(failing.set(0)),
                SettledWord::Retry | SettledWord::Dead => drop(failing.inc()),
                _ => {}
            }
            let kind = if ticket.is_reminder { "reminder" } else { "cleanup" };
            self.ended.get_or_create(&Ended { namespace, route, kind, outcome }).inc();
        }
    }
}

/// Counts a request and how long it takes, by route of the API, never by id.
pub(super) async fn observe(app: &App, route: Handled, run: impl Future<Output = Response>) -> Response {
    let metrics = app.metrics();
    let _flying = Flying::new(&metrics.in_flight);
    let begun = Instant::now();
    let response = run.await;
    metrics.durations.get_or_create(&route).observe(begun.elapsed().as_secs_f64());
    let Handled { method, path } = route;
    metrics.requests.get_or_create(&Requested { method, path, status: response.status().as_u16() }).inc();
    response
}

/// A request that is being handled, whichever way it ends.
struct Flying(Gauge);

impl Flying {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Metrics in the Prometheus text format
///
/// What the store holds, and what this process did; the label `source` says which.
#[utoipa::path(
    get, path = "/metrics", tag = "daemon",
    responses((status = 200, description = "The metrics", body = String, content_type = "application/openmetrics-text"), crate::http::problems::Common)
)]
pub(super) async fn metrics(State(app): State<App>) -> Response {
    // A store that does not answer must not keep what this process knows from being told.
    const PATIENCE: Duration = Duration::from_secs(3);
    let mut stored = Stored::new();
    let is_up = timeout(PATIENCE, stored.fill(&app)).await.is_ok_and(|filled| filled.is_ok());
    stored.say_whether_up(is_up && app.health().is_store_up(), app.health().skew_ms());
    let mut text = String::new();
    let written = stored.write(&mut text).and_then(|()| encode(&mut text, &app.metrics().registry));
    match written {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
        }
        Err(std::fmt::Error) => axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
