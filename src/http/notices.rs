//! Server-sent events: the notices of a namespace as they are handed out, and wake-ups for workers that sleep by themselves.

use std::{convert::Infallible, future::ready, time::Duration};

use axum::{
    Extension,
    extract::State,
    http::HeaderMap,
    response::sse::{Event as Sent, KeepAlive, Sse},
};
use futures::{Stream, StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::api::{self, Code, KindForm, NoticeEvent};
use crate::http::App;
use crate::http::deadlines::name;
use crate::http::error::Problem;
use crate::http::extract::{Anybody, Asked, ToRead, ToWrite};
use crate::http::feeds::{News, Watch, key_of};
use crate::http::load::Place;
use crate::http::problems::Common;
use crate::model::{Event, HandOut, IdMask, Kind, Name};
use crate::store::Handed;

/// The routes of event streams.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(notices)).routes(routes!(wakeups))
}

/// A comment at least this often, so that what lies between does not take the stream for dead.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What to watch.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct WatchParams {
    /// Only what is handed out on this route.
    route: Option<String>,
    /// Only these.
    kind: Option<KindForm>,
    /// Where to go on: as the header `Last-Event-ID`, which is stronger.
    last_event_id: Option<String>,
}

/// A hand-out as it is sent: a CloudEvent, with its route.
#[derive(Debug, Serialize)]
struct Watched {
    #[serde(flatten)]
    event: Event,
    route: Name,
}

/// Watch notices
///
/// Server-sent events: each hand-out of this namespace from now on, by whatever process, on any route, repeats too; each a
/// CloudEvent (`event: reminder` or `event: cleanup`). Nothing is claimed by it. Comments come between as heartbeats. Who comes
/// back with `Last-Event-ID` gets what was missed, as far as this daemon remembers it (1,024 hand-outs, for a minute after the last
/// watcher has gone); `event: gap` says that something may be missing.
#[utoipa::path(
    get, path = "/v1/namespaces/{ns}/notices", tag = "notices",
    params(
        ("ns" = String, Path, description = "The namespace"),
        WatchParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received"),
    ),
    responses((status = 200, description = "The stream", body = NoticeEvent, content_type = "text/event-stream"), Common)
)]
async fn notices(
    State(app): State<App>,
    namespace: ToRead,
    Anybody(caller): Anybody,
    Extension(place): Extension<Place>,
    Asked(params): Asked<WatchParams>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Sent, Infallible>>>, Problem> {
    let WatchParams { route, kind, last_event_id } = params;
    let route = name("route", route)?;
    // Also says whether there is such a namespace.
    namespace.configured().await?;
    let mask = caller.mask(&namespace).await?;
    let waiting = app.load().wait(&place, app.limits().max_waiting)?;
    let last = headers.get("last-event-id").and_then(|last| last.to_str().ok()).map(str::to_owned).or(last_event_id);
    let mut watch = app.feeds().watch(&namespace.name, last.as_deref());
    if !watch.begun(app.limits().request_timeout).await {
        let detail = "the store cannot be listened to just now; come back in a moment";
        return Err(api::Problem::new(Code::StoreUnavailable, detail).retry_after(Duration::from_secs(1)).into());
    }
    let Watch { missed, news, .. } = watch;
    let live = stream::unfold((news, waiting), |(mut news, waiting)| async {
        let next = match news.recv().await {
            Ok(next) => next,
            // Too slow for what comes.
            Err(RecvError::Lagged(_)) => News::Gap,
            Err(RecvError::Closed) => return None,
        };
        Some((next, (news, waiting)))
    });
    let wanted = move |news: &News| match news {
        News::Gap => true,
        News::Handed(handed) => {
            route.as_ref().is_none_or(|route| *route == handed.route) && kind.is_none_or(|kind| is_kind(kind, handed))
        }
    };
    let news = stream::iter(missed).chain(live).filter(move |news| ready(wanted(news)));
    let events = news.map(move |news| Ok(sent(&news, &mask)));
    let stopping = app.stopping().clone();
    Ok(Sse::new(events.take_until(stopping.cancelled_owned())).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

fn is_kind(kind: KindForm, handed: &Handed) -> bool {
    match handed.notice.kind {
        Kind::Reminder(_) => kind == KindForm::Reminder,
        Kind::Cleanup(_) => kind == KindForm::Cleanup,
    }
}

fn sent(news: &News, mask: &IdMask) -> Sent {
    let gap = || Sent::default().event("gap").data("{}");
    let News::Handed(handed) = news else { return gap() };
    let Handed { at_ms, route, notice, attempt, due_at_ms, on_set, payload } = &**handed;
    let hand_out = HandOut {
        attempt: *attempt,
        due_at_ms: *due_at_ms,
        sent_at_ms: *at_ms,
        on_set: *on_set,
        payload: payload.as_deref(),
    };
    let watched = Watched { event: Event::masked(notice, hand_out, mask), route: route.clone() };
    match serde_json::to_string(&watched) {
        Ok(json) => Sent::default().id(key_of(handed)).event(notice.kind.as_str()).data(json),
        Err(_) => gap(),
    }
}

/// Hear of wake-ups
///
/// Server-sent events for workers that claim without waiting: each the instant (milliseconds since 1970, by the store's clock)
/// at which something becomes due earlier than the last claim's answer said.
#[utoipa::path(
    get, path = "/v1/namespaces/{ns}/wakeups", tag = "notices",
    params(("ns" = String, Path, description = "The namespace")),
    responses((status = 200, description = "The stream", body = String, content_type = "text/event-stream"), Common)
)]
async fn wakeups(
    State(app): State<App>,
    namespace: ToWrite,
    Extension(place): Extension<Place>,
) -> Result<Sse<impl Stream<Item = Result<Sent, Infallible>>>, Problem> {
    namespace.configured().await?;
    let waiting = app.load().wait(&place, app.limits().max_waiting)?;
    let wakeups = namespace.store().wakeups(&namespace.name).await?;
    let sent = wakeups.map(move |at_ms| {
        let _held = &waiting;
        Ok(Sent::default().event("wakeup").data(at_ms.to_string()))
    });
    let stopping = app.stopping().clone();
    Ok(Sse::new(sent.take_until(stopping.cancelled_owned())).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}
