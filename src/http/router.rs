//! The routes of the API, what stands before them, and the OpenAPI document made from them.

use axum::{Json, Router, extract::State, middleware::from_fn_with_state, response::Redirect, routing::get};
use serde::Serialize;
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::security::{Http, HttpAuthScheme, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};
use utoipa_swagger_ui::SwaggerUi;

use crate::api;
use crate::http::app::App;
use crate::http::error::Problem;
use crate::http::extract::Anybody;
use crate::http::metrics;
use crate::http::pass::{Door, no_such_method, nothing_here, pass};
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

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    OpenApiRouter::with_openapi(Document::openapi()).merge(api()).merge(open()).merge(operations()).into_openapi()
}

/// The whole API.
pub fn router(app: App) -> Router {
    let door = |door| from_fn_with_state((app.clone(), door), pass);
    let docs = SwaggerUi::new("/docs").url("/openapi.json", openapi());
    let operations: Router<App> = Router::from(operations()).merge(docs);
    let home = get(|| async { Redirect::temporary("/docs/") });
    Router::from(api())
        .route_layer(door(Door::Guarded))
        .merge(operations.route_layer(door(Door::Local)))
        .merge(Router::from(open()).route("/", home).route_layer(door(Door::Open)))
        .fallback(nothing_here)
        .method_not_allowed_fallback(no_such_method)
        .with_state(app)
}
