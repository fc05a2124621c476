//! Dead letters and reviews: looked at, put back, dropped.

use std::collections::HashMap;

use axum::{
    Json,
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::api::{
    Code, ParkedAction, ParkedAnswer, ParkedAnswers, ParkedBatch, ParkedForm, ParkedName, ParkedPageForm, ParkedWord,
};
use crate::forewarn::Namespace;
use crate::http::App;
use crate::http::auth::Caller;
use crate::http::deadlines::{check_count, limit_of, name};
use crate::http::error::Problem;
use crate::http::extract::{Anybody, Asked, Body, ToRead, ToWrite, text_at};
use crate::http::problems::{Common, Writing};
use crate::model::{EventId, Invalid, Name};
use crate::store::{Parked, ParkedQuery, Requeued, Shelf, StoreError};

/// Which parked notices to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListParams {
    /// Only those of this route.
    route: Option<String>,
    /// Only this notice (32 hex digits).
    event_id: Option<String>,
    /// Only those of this deadline.
    id: Option<String>,
    /// The same in base64 (RFC 4648, section 5), for an id that is not UTF-8.
    id_base64: Option<String>,
    /// Skip this many that match. Default: 0.
    #[serde(default)]
    #[param(minimum = 0)]
    offset: u32,
    /// At most this many, 1 to 1,000. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

impl ListParams {
    fn read(self) -> Result<ParkedQuery, Invalid> {
        let id = match (&self.id, &self.id_base64) {
            (None, None) => None,
            (id, base64) => Some(crate::api::read_id(id.as_deref(), base64.as_deref())?),
        };
        Ok(ParkedQuery {
            event_id: self.event_id.as_deref().map(read_event_id).transpose()?,
            route: name("route", self.route)?,
            id,
            offset: self.offset,
            limit: limit_of(self.limit, 1000)?,
        })
    }
}

fn read_event_id(text: &str) -> Result<EventId, Invalid> {
    text.parse().map_err(|invalid: Invalid| Invalid::new("event_id", invalid.problem()))
}

/// A parked notice by its path: `…/dead/EVENT_ID/ROUTE`.
#[derive(Debug)]
struct Named {
    event_id: EventId,
    route: Name,
}

impl FromRequestParts<App> for Named {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let event_id = read_event_id(&text_at(parts, 5))?;
        Ok(Self { event_id, route: Name::new("route", text_at(parts, 6))? })
    }
}

async fn page(
    namespace: &ToRead,
    caller: &Caller,
    shelf: Shelf,
    params: ListParams,
) -> Result<Json<ParkedPageForm>, Problem> {
    let page = namespace.parked(shelf, &params.read()?).await?;
    let mask = caller.mask(namespace).await?;
    let entries = page.entries.iter().map(|parked| ParkedForm::new(parked, &mask)).collect();
    Ok(Json(ParkedPageForm { entries, total: page.total }))
}

async fn find(namespace: &Namespace, shelf: Shelf, named: Named) -> Result<Parked, Problem> {
    let Named { event_id, route } = named;
    let query = ParkedQuery { event_id: Some(event_id), route: Some(route), limit: 1, ..ParkedQuery::default() };
    let found = namespace.parked(shelf, &query).await?.entries.pop();
    found.ok_or_else(|| Problem::new(Code::UnknownParked, "no notice with this event id is parked on this route"))
}

async fn requeue_one(namespace: &Namespace, shelf: Shelf, named: Named) -> Result<StatusCode, Problem> {
    let parked = find(namespace, shelf, named).await?;
    match namespace.requeue(shelf, &[parked]).await?.pop() {
        Some(Requeued::Requeued) => Ok(StatusCode::NO_CONTENT),
        Some(Requeued::Superseded) => {
            let detail =
                "it is void: the id has another life, or the reminder's time has passed. It stays parked; delete it";
            Err(Problem::new(Code::Conflict, detail))
        }
        Some(Requeued::NoRoute) => Err(Problem::new(
            Code::UnknownRoute,
            "its route is gone. It stays parked; add the route again, or delete it",
        )),
        Some(Requeued::Unknown) | None => Err(Problem::new(Code::UnknownParked, "it is not parked any more")),
    }
}

async fn drop_one(namespace: &Namespace, shelf: Shelf, named: Named) -> Result<StatusCode, Problem> {
    let parked = find(namespace, shelf, named).await?;
    match namespace.discard(shelf, &[parked]).await?.pop() {
        Some(true) => Ok(StatusCode::NO_CONTENT),
        _ => Err(Problem::new(Code::UnknownParked, "it is not parked any more")),
    }
}

async fn act(namespace: &Namespace, shelf: Shelf, body: ParkedBatch) -> Result<Json<ParkedAnswers>, Problem> {
    check_count("entries", body.entries.len())?;
    let names: Vec<(EventId, Name)> = body.entries.iter().map(ParkedName::read).collect::<Result<_, _>>()?;
    let mut found = find_all(namespace, shelf, &names).await?;
    let parked: Vec<Option<Parked>> = names.iter().map(|name| found.remove(name)).collect();
    let there: Vec<Parked> = parked.iter().flatten().cloned().collect();
    let words: Vec<ParkedWord> = match body.action {
        ParkedAction::Requeue => namespace.requeue(shelf, &there).await?.into_iter().map(ParkedWord::from).collect(),
        ParkedAction::Drop => {
            let word = |was_there| if was_there { ParkedWord::Dropped } else { ParkedWord::Unknown };
            namespace.discard(shelf, &there).await?.into_iter().map(word).collect()
        }
    };
    let mut words = words.into_iter();
    let word = |parked: &Option<Parked>| parked.as_ref().and_then(|_| words.next()).unwrap_or(ParkedWord::Unknown);
    Ok(Json(ParkedAnswers { results: parked.iter().map(word).map(|result| ParkedAnswer { result }).collect() }))
}

/// Finds parked notices by their names: one by itself, many in one pass over the shelf.
async fn find_all(
    namespace: &Namespace,
    shelf: Shelf,
    names: &[(EventId, Name)],
) -> Result<HashMap<(EventId, Name), Parked>, StoreError> {
    const PAGE: u32 = 500;
    let mut query = ParkedQuery { limit: PAGE, ..ParkedQuery::default() };
    if let [(event_id, route)] = names {
        query = ParkedQuery { event_id: Some(*event_id), route: Some(route.clone()), ..query };
    }
    let mut found = HashMap::new();
    loop {
        let entries = namespace.parked(shelf, &query).await?.entries;
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        for parked in entries {
            let name = (parked.event_id(), parked.route.clone());
            if names.contains(&name) {
                found.insert(name, parked);
            }
        }
        if count < PAGE || found.len() >= names.len() {
            return Ok(found);
        }
        query.offset += PAGE;
    }
}

/// Makes the handlers of one shelf.
macro_rules! shelf {
    ($module:ident, $shelf:ident, $tag:literal, $all:literal, $one:literal, $requeue:literal) => {
        /// The handlers of one shelf.
        pub(super) mod $module {
            use super::*;

            /// The routes.
            pub(crate) fn routes() -> OpenApiRouter<App> {
                OpenApiRouter::new()
                    .routes(routes!(list, batch))
                    .routes(routes!(show, delete))
                    .routes(routes!(requeue))
            }

            /// List what is parked
            ///
            /// The oldest first.
            #[utoipa::path(
                get, path = $all, tag = $tag, operation_id = concat!("list_", stringify!($module)),
                params(("ns" = String, Path, description = "The namespace"), ListParams),
                responses((status = 200, description = "A page", body = ParkedPageForm), Common)
            )]
            async fn list(namespace: ToRead, Anybody(caller): Anybody, Asked(params): Asked<ListParams>) -> Result<Json<ParkedPageForm>, Problem> {
                page(&namespace, &caller, Shelf::$shelf, params).await
            }

            /// Requeue or drop many
            ///
            /// Each is answered for itself. One that is void by now stays parked when it is requeued.
            #[utoipa::path(
                post, path = $all, tag = $tag, operation_id = concat!("batch_", stringify!($module)),
                params(("ns" = String, Path, description = "The namespace")), request_body = ParkedBatch,
                responses((status = 200, description = "An answer for each entry", body = ParkedAnswers), Writing)
            )]
            async fn batch(namespace: ToWrite, Body(body): Body<ParkedBatch>) -> Result<Json<ParkedAnswers>, Problem> {
                act(&namespace, Shelf::$shelf, body).await
            }

            /// Show one
            ///
            /// With its payload and its last failures.
            #[utoipa::path(
                get, path = $one, tag = $tag, operation_id = concat!("show_", stringify!($module)),
                params(
                    ("ns" = String, Path, description = "The namespace"),
                    ("event_id" = String, Path, description = "The event id, 32 hex digits"),
                    ("route" = String, Path, description = "The route it was for"),
                ),
                responses((status = 200, description = "The notice", body = ParkedForm), Common)
            )]
            async fn show(namespace: ToRead, Anybody(caller): Anybody, named: Named) -> Result<Json<ParkedForm>, Problem> {
                let parked = find(&namespace, Shelf::$shelf, named).await?;
                Ok(Json(ParkedForm::new(&parked, &caller.mask(&namespace).await?)))
            }

            /// Drop one
            ///
            /// It is deleted for good.
            #[utoipa::path(
                delete, path = $one, tag = $tag, operation_id = concat!("drop_", stringify!($module)),
                params(
                    ("ns" = String, Path, description = "The namespace"),
                    ("event_id" = String, Path, description = "The event id, 32 hex digits"),
                    ("route" = String, Path, description = "The route it was for"),
                ),
                responses((status = 204, description = "It is deleted"), Common)
            )]
            async fn delete(namespace: ToWrite, named: Named) -> Result<StatusCode, Problem> {
                drop_one(&namespace, Shelf::$shelf, named).await
            }

            /// Requeue one
            ///
            /// It is ready to be delivered again. One that is void by now stays parked: 409.
            #[utoipa::path(
                post, path = $requeue, tag = $tag, operation_id = concat!("requeue_", stringify!($module)),
                params(
                    ("ns" = String, Path, description = "The namespace"),
                    ("event_id" = String, Path, description = "The event id, 32 hex digits"),
                    ("route" = String, Path, description = "The route it was for"),
                ),
                responses((status = 204, description = "It is ready again"), Writing)
            )]
            async fn requeue(namespace: ToWrite, named: Named) -> Result<StatusCode, Problem> {
                requeue_one(&namespace, Shelf::$shelf, named).await
            }
        }
    };
}

shelf!(
    dead,
    Dead,
    "dead letters",
    "/v1/namespaces/{ns}/dead",
    "/v1/namespaces/{ns}/dead/{event_id}/{route}",
    "/v1/namespaces/{ns}/dead/{event_id}/{route}/requeue"
);
shelf!(
    reviews,
    Review,
    "reviews",
    "/v1/namespaces/{ns}/reviews",
    "/v1/namespaces/{ns}/reviews/{event_id}/{route}",
    "/v1/namespaces/{ns}/reviews/{event_id}/{route}/requeue"
);
