//! What every request passes on its way to its handler: it is counted and traced, let in if there is room, and its caller found
//! out. One step for all of it, since each step of its own costs every request.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tracing::{Instrument as _, debug, debug_span};

use crate::api::Code;
use crate::http::app::App;
use crate::http::auth::{caller, check_host};
use crate::http::error::Problem;
use crate::http::load::limit;
use crate::http::metrics::{Handled, observe};

/// Whom a route answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// Those with a token, if there are tokens, and as many at once as allowed.
    Guarded,
    /// The same, but anybody on an address that only this machine reaches.
    Local,
    /// Everybody.
    Open,
}

/// Lets a request pass to its handler.
pub(super) async fn pass(State((app, door)): State<(App, Door)>, request: Request, next: Next) -> Response {
    seen(&app, request, async |request| match door {
        Door::Guarded => limit(&app, request, async |request| admit(&app, request, next).await).await,
        Door::Local if app.is_local() => match check_host(&app, request.headers()) {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        },
        Door::Local => admit(&app, request, next).await,
        Door::Open => next.run(request).await,
    })
    .await
}

/// The answer where no route is.
pub(super) async fn nothing_here(State(app): State<App>, request: Request) -> Response {
    let detail = "there is nothing at this path; GET /openapi.json tells what there is";
    seen(&app, request, async |_| Problem::new(Code::NotFound, detail).into_response()).await
}

/// The answer of a route to a method that it does not have.
pub(super) async fn no_such_method(State(app): State<App>, request: Request) -> Response {
    let detail = "the path has no such method; GET /openapi.json tells which it has";
    seen(&app, request, async |_| Problem::new(Code::MethodNotAllowed, detail).into_response()).await
}

/// Finds out who calls.
async fn admit(app: &App, mut request: Request, next: Next) -> Response {
    match caller(app, request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Says, when it is dropped, that the client of a request went away, unless it was answered.
struct RequestGuard {
    is_answered: bool,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if !self.is_answered {
            debug!("the client went away");
        }
    }
}

/// Counts a request and traces it, by its route, because ids may be secrets.
async fn seen(app: &App, request: Request, run: impl AsyncFnOnce(Request) -> Response) -> Response {
    let route = Handled::by(request.method(), request.extensions().get::<MatchedPath>());
    let (method, path) = route.parts();
    let span = debug_span!("request", method, path);
    let answered = async {
        debug!("received");
        let mut guard = RequestGuard { is_answered: false };
        let response = run(request).await;
        guard.is_answered = true;
        debug!(status = response.status().as_u16(), "answered");
        response
    };
    let mut response = observe(app, route, answered.instrument(span)).await;
    response.headers_mut().entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    response
}
