//! The routes of the API, what stands before them, and the OpenAPI document made from them.

use axum::{
    Json, Router,
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, header},
    middleware::from_fn_with_state,
    response::Redirect,
    routing::get,
};
use serde::Serialize;
use tower_http::{set_header::SetResponseHeaderLayer, trace::TraceLayer};
use tracing::{Span, info_span};
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::security::{Http, HttpAuthScheme, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};
use utoipa_swagger_ui::SwaggerUi;

use crate::api::{self, Code};
use crate::http::app::App;
use crate::http::auth::{authenticate, authenticate_unless_local};
use crate::http::error::Problem;
use crate::http::extract::Anybody;
use crate::http::load::limit;
use crate::http::metrics::{self, observe};
use crate::http::problems::Common;
use crate::http::{claims, deadlines, health, namespaces, notices, parked};
use crate::model::format_instant;

/// What the document says of the whole.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "forewarn",
        description = "Warns before something expires and cleans up after it has.\n\nIds are any 1 to 1,024 bytes, percent-encoded in paths. An id \
                       that clients would fold (`.`, `..`) or that is not UTF-8 is addressed as `…/deadlines/-?id_base64=…`. Errors are \
                       `application/problem+json` (RFC 9457)."
    ),
    components(schemas(api::Problem)),
    modifiers(&Security),
    security(("token" = []), ()),
    tags(
        (name = "deadlines", description = "What expires"),
        (name = "claims", description = "Due notices for workers in any language"),
        (name = "notices", description = "What is handed out, as it happens"),
        (name = "namespaces", description = "Kinds of things that expire, each with its settings"),
        (name = "dead letters", description = "Notices that were given up"),
        (name = "reviews", description = "Notices that wait for a person"),
        (name = "daemon", description = "How the daemon is"),
    )
)]
struct Document;

struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let mut bearer = Http::new(HttpAuthScheme::Bearer);
        bearer.description = Some("A token of the daemon's configuration; needed as soon as it has one.".to_owned());
        openapi.components.get_or_insert_default().add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// The time by the store's clock.
#[derive(Debug, Serialize, ToSchema)]
struct Now {
    /// RFC 3339.
    now: String,
}

/// The store's clock
///
/// Which decides what is due.
#[utoipa::path(
    get, path = "/v1/time", tag = "daemon",
    responses((status = 200, description = "The time", body = Now), Common)
)]
async fn time(State(app): State<App>, _caller: Anybody) -> Result<Json<Now>, Problem> {
    Ok(Json(Now { now: format_instant(app.forewarn().store().now().await?) }))
}

fn api() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(namespaces::routes())
        .merge(deadlines::routes())
        .merge(claims::routes())
        .merge(notices::routes())
        .merge(parked::dead::routes())
        .merge(parked::reviews::routes())
        .routes(routes!(time))
}

fn open() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(health::healthz)).routes(routes!(health::readyz))
}

fn operations() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics::metrics))
}

/// The span of a request: by its route, because ids may be secrets.
fn span(request: &Request) -> Span {
    let path = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str);
    info_span!("request", method = %request.method(), path)
}

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    OpenApiRouter::with_openapi(Document::openapi()).merge(api()).merge(open()).merge(operations()).into_openapi()
}

/// The whole API.
pub fn router(app: App) -> Router {
    let document = openapi();
    let docs = SwaggerUi::new("/docs").url("/openapi.json", document);
    let operations: Router<App> = Router::from(operations()).merge(docs);
    let operations = operations.route_layer(from_fn_with_state(app.clone(), authenticate_unless_local));
    Router::from(api())
        .route_layer(from_fn_with_state(app.clone(), authenticate))
        .route_layer(from_fn_with_state(app.clone(), limit))
        .merge(operations)
        .merge(Router::from(open()))
        .route("/", get(|| async { Redirect::temporary("/docs/") }))
        .fallback(async || {
            Problem::new(Code::NotFound, "there is nothing at this path; GET /openapi.json tells what there is")
        })
        .method_not_allowed_fallback(async || {
            Problem::new(Code::MethodNotAllowed, "the path has no such method; GET /openapi.json tells which it has")
        })
        .layer(from_fn_with_state(app.clone(), observe))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(TraceLayer::new_for_http().make_span_with(span).on_failure(()))
        .with_state(app)
}
