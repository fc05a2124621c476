//! Namespaces: their settings, routes, pauses, counts and history.

use axum::{Json, http::StatusCode};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::api::{
    AppliedForm, ApplyBody, Code, HistoryForm, HistoryPage, NamespaceForm, NamespaceList, PauseBody, ResumeBody,
    id_from_base64,
};
use crate::http::App;
use crate::http::deadlines::limit_of;
use crate::http::error::Problem;
use crate::http::extract::{Anybody, Asked, Body, MaybeBody, ToManage, ToRead};
use crate::http::problems::{Common, Writing};
use crate::model::{Id, Invalid};
use crate::store::{HistoryQuery, Stats};

/// The routes of namespaces.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, apply, forget))
        .routes(routes!(stats))
        .routes(routes!(history))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

/// List namespaces
///
/// All that the token may see.
#[utoipa::path(
    get, path = "/v1/namespaces", tag = "namespaces", operation_id = "list_namespaces",
    responses((status = 200, description = "By name", body = NamespaceList), Common)
)]
async fn list(app: axum::extract::State<App>, Anybody(caller): Anybody) -> Result<Json<NamespaceList>, Problem> {
    let mut namespaces = app.forewarn().namespaces().await?;
    namespaces.retain(|registered| caller.sees(&registered.name));
    Ok(Json(NamespaceList { namespaces }))
}

/// Show a namespace
#[utoipa::path(
    get, path = "/v1/namespaces/{ns}", tag = "namespaces", operation_id = "show_namespace",
    params(("ns" = String, Path, description = "The namespace")),
    responses((status = 200, description = "The settings in force", body = NamespaceForm), Common)
)]
async fn show(namespace: ToRead, Anybody(caller): Anybody) -> Result<Json<NamespaceForm>, Problem> {
    let configured = namespace.configured().await?;
    Ok(Json(NamespaceForm::new(&namespace.name, &configured, caller.is_given_ids())))
}

/// How settings are applied.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ApplyQuery {
    /// Only say what it would do.
    #[serde(default)]
    dry_run: bool,
}

/// Create or change a namespace
///
/// Settings are declared whole: one that is left out has its default. Workers take them over by themselves.
#[utoipa::path(
    put, path = "/v1/namespaces/{ns}", tag = "namespaces", operation_id = "apply_namespace",
    params(("ns" = String, Path, description = "The namespace"), ApplyQuery),
    request_body = ApplyBody,
    responses(
        (status = 201, description = "It is new", body = AppliedForm),
        (status = 200, description = "It was changed, was like this before, or this was a dry run", body = AppliedForm),
        Writing,
    )
)]
async fn apply(
    namespace: ToManage,
    Asked(query): Asked<ApplyQuery>,
    Body(body): Body<ApplyBody>,
) -> Result<(StatusCode, Json<AppliedForm>), Problem> {
    let change = body.read()?;
    if query.dry_run {
        return Ok((StatusCode::OK, Json(AppliedForm::preview(&namespace.preview(&change).await?))));
    }
    let applied = namespace.configure(&change).await?;
    let status = if applied.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(AppliedForm::applied(&namespace.name, &applied))))
}

/// How a namespace is forgotten.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ForgetQuery {
    /// Delete also what is armed, open or parked.
    #[serde(default)]
    force: bool,
}

/// Delete a namespace
///
/// With everything in it. One that is in use is left unless `force` is given.
#[utoipa::path(
    delete, path = "/v1/namespaces/{ns}", tag = "namespaces", operation_id = "delete_namespace",
    params(("ns" = String, Path, description = "The namespace"), ForgetQuery),
    responses(
        (status = 204, description = "It is deleted"),
        (status = 409, description = "It is in use", body = crate::api::Problem, content_type = "application/problem+json"),
        Common,
    )
)]
async fn forget(namespace: ToManage, Asked(query): Asked<ForgetQuery>) -> Result<StatusCode, Problem> {
    if !query.force {
        let Stats { armed, open, dead, review, .. } = namespace.stats().await?;
        if armed + open + dead + review > 0 {
            let detail = format!(
                "it is in use: armed {armed}, open cleanups {open}, dead letters {dead}, reviews {review}; add ?force=true \
                 to delete them, too"
            );
            return Err(Problem::new(Code::Conflict, detail));
        }
    }
    match namespace.forget().await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(Code::UnknownNamespace, "there is no such namespace")),
    }
}

/// Count
///
/// How much there is of what: armed, overdue, open, pending, parked, and running totals.
#[utoipa::path(
    get, path = "/v1/namespaces/{ns}/stats", tag = "namespaces",
    params(("ns" = String, Path, description = "The namespace")),
    responses((status = 200, description = "The counts", body = Stats), Common)
)]
async fn stats(namespace: ToRead) -> Result<Json<Stats>, Problem> {
    Ok(Json(namespace.stats().await?))
}

/// What to look up.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct HistoryParams {
    /// Only what may concern this id.
    id: Option<String>,
    /// The same in base64 (RFC 4648, section 5), for an id that is not UTF-8.
    id_base64: Option<String>,
    /// At most this many, 1 to 10,000. Default: 100.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<u32>,
}

impl HistoryParams {
    fn read(&self) -> Result<HistoryQuery, Invalid> {
        let id = match (&self.id, &self.id_base64) {
            (None, None) => None,
            (Some(id), None) => Some(Id::new(id.as_str())?),
            (None, Some(text)) => Some(id_from_base64(text)?),
            (Some(_), Some(_)) => return Err(Invalid::new("id", "is given together with id_base64; give one of them")),
        };
        Ok(HistoryQuery { id, limit: limit_of(self.limit, 10_000)? })
    }
}

/// Look up what was
///
/// Notices that have ended, newest first; nothing unless the settings have a `history`.
#[utoipa::path(
    get, path = "/v1/namespaces/{ns}/history", tag = "namespaces",
    params(("ns" = String, Path, description = "The namespace"), HistoryParams),
    responses((status = 200, description = "What is remembered", body = HistoryPage), Common)
)]
async fn history(
    namespace: ToRead,
    Anybody(caller): Anybody,
    Asked(params): Asked<HistoryParams>,
) -> Result<Json<HistoryPage>, Problem> {
    let entries = namespace.history(&params.read()?).await?;
    let mask = caller.mask(&namespace).await?;
    Ok(Json(HistoryPage { entries: entries.iter().map(|entry| HistoryForm::new(entry, &mask)).collect() }))
}

/// Pause a namespace
///
/// For all workers: claims answer `paused`, tracking goes on, and ids whose expiry has passed may still be renewed while
/// cleanups are paused.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/pause", tag = "namespaces",
    params(("ns" = String, Path, description = "The namespace")), request_body = Option<PauseBody>,
    responses((status = 204, description = "It is paused"), Writing)
)]
async fn pause(namespace: ToManage, MaybeBody(body): MaybeBody<PauseBody>) -> Result<StatusCode, Problem> {
    namespace.pause(&body.read()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Resume a namespace
///
/// What gathered flows at a limited rate, so that it does not run over whoever handles it.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/resume", tag = "namespaces",
    params(("ns" = String, Path, description = "The namespace")), request_body = Option<ResumeBody>,
    responses((status = 204, description = "It flows again"), Writing)
)]
async fn resume(namespace: ToManage, MaybeBody(body): MaybeBody<ResumeBody>) -> Result<StatusCode, Problem> {
    namespace.pause(&body.read()?).await?;
    Ok(StatusCode::NO_CONTENT)
}
