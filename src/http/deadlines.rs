//! Deadlines: one by one under their ids, many in a batch, and lists of them.

use axum::{Json, http::StatusCode};
use serde::{Deserialize, de::IgnoredAny};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::api::{
    self, Action, Answer, Answers, BatchBody, BatchEntry, Code, DeadlineBody, DeadlineForm, DeadlinePage, IdForm,
    ListedForm, MAX_BATCH, ModeForm, Span, Word, read_replaces,
};
use crate::forewarn::Namespace;
use crate::http::App;
use crate::http::error::Problem;
use crate::http::extract::{Anybody, Asked, Body, IdQuery, PathHandle, PathId, ToManage, ToRead, ToWrite};
use crate::http::problems::{Common, Writing};
use crate::model::{Cursor, Id, Invalid, Mode, Name, Renew, Track};
use crate::store::{ListQuery, Listed, StoreError};

/// The routes of deadlines.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(track, show, remove))
        .routes(routes!(renew))
        .routes(routes!(expire))
        .routes(routes!(list, batch))
        .routes(routes!(find))
}

/// What `track` is asked besides.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct TrackQuery {
    /// What is done with an id that is armed already: `upsert` moves it, `create` leaves it and answers 409, `extend_only` moves it
    /// only to a later expiry. Default: `upsert`.
    #[serde(default)]
    mode: ModeForm,
    /// Track it in place of this id, which is removed: a session whose id rotates.
    replaces: Option<String>,
    /// The same in base64 (RFC 4648, section 5), for an id that is not UTF-8.
    replaces_base64: Option<String>,
    // Read with the path.
    #[param(ignore)]
    #[serde(rename = "id_base64", default)]
    _id_base64: IgnoredAny,
    #[param(ignore)]
    #[serde(rename = "handle", default)]
    _handle: IgnoredAny,
}

/// Track a deadline
///
/// Creates it, or moves it to its new expiry; the same call again changes nothing. An expiry that has passed already is accepted
/// and told: its cleanup follows at once.
#[utoipa::path(
    put, path = "/v1/namespaces/{ns}/deadlines/{id}", tag = "deadlines",
    params(("ns" = String, Path, description = "The namespace"), ("id" = String, Path, description = "The id, percent-encoded"), TrackQuery, IdQuery),
    request_body = DeadlineBody,
    responses(
        (status = 201, description = "A new life began", body = Answer),
        (status = 200, description = "It was moved, or left as it is", body = Answer),
        Writing,
    )
)]
async fn track(
    namespace: ToWrite,
    PathId(id): PathId,
    Asked(query): Asked<TrackQuery>,
    Body(body): Body<DeadlineBody>,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    let old = read_replaces(query.replaces.as_deref(), query.replaces_base64.as_deref())?;
    let now_ms = now_for(&namespace, body.ttl.is_some()).await?;
    let track = body.into_track(id, now_ms)?;
    let (at, mode) = (track.expires_at, query.mode.into());
    let answer = match old {
        Some(old) => {
            let replaced = namespace.store().replace(&namespace.name, mode, &track, &old).await?;
            Answer::replaced(&replaced, at)
        }
        None => Answer::tracked(&one(namespace.track_all(mode, &[track]).await?)?, at),
    };
    match answer.result {
        Word::Created => Ok((StatusCode::CREATED, Json(answer))),
        Word::Exists => Err(Problem::new(Code::Exists, "the id is armed already, and mode is create")),
        Word::NoKey => Err(Problem::new(
            Code::UnknownDeadline,
            "there is no key of this name, so there is nothing that could expire; set the key first",
        )),
        Word::Rejected => Err(rejected(answer)),
        _ => Ok((StatusCode::OK, Json(answer))),
    }
}

/// Renew a deadline
///
/// Moves one that is armed; never creates one.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/deadlines/{id}/renew", tag = "deadlines",
    params(("ns" = String, Path, description = "The namespace"), ("id" = String, Path, description = "The id, percent-encoded"), IdQuery),
    request_body = DeadlineBody,
    responses(
        (status = 200, description = "It was moved, or had this very expiry", body = Answer),
        (status = 410, description = "Too late: its expiry and grace have passed", body = api::Problem, content_type = "application/problem+json"),
        Writing,
    )
)]
async fn renew(
    namespace: ToWrite,
    PathId(id): PathId,
    Body(body): Body<DeadlineBody>,
) -> Result<Json<Answer>, Problem> {
    let now_ms = now_for(&namespace, body.ttl.is_some()).await?;
    let Track { id, expires_at, payload } = body.into_track(id, now_ms)?;
    let answers = namespace.renew_all(&[Renew { id, expires_at, payload }]).await?;
    let answer = Answer::renewed(&one(answers)?, expires_at);
    match answer.result {
        Word::Expired => {
            Err(Problem::new(Code::Expired, "its expiry and grace have passed; track it to begin a new life"))
        }
        Word::Unknown => Err(unknown("there is nothing to renew; track it first")),
        Word::Rejected => Err(rejected(answer)),
        _ => Ok(Json(answer)),
    }
}

/// Show a deadline
///
/// Everything that is known of an id: expiry, payload, open cleanup, deliveries in flight and their failures.
#[utoipa::path(
    get, path = "/v1/namespaces/{ns}/deadlines/{id}", tag = "deadlines",
    params(("ns" = String, Path, description = "The namespace"), ("id" = String, Path, description = "The id, percent-encoded"), IdQuery),
    responses((status = 200, description = "What is known", body = DeadlineForm), Common)
)]
async fn show(namespace: ToRead, Anybody(caller): Anybody, PathId(id): PathId) -> Result<Json<DeadlineForm>, Problem> {
    match namespace.store().show(&namespace.name, &id).await? {
        Some(view) => Ok(Json(DeadlineForm::new(&view, &caller.mask(&namespace).await?))),
        None => Err(unknown("it is not armed and nothing of it is pending")),
    }
}

/// Remove a deadline
///
/// Nothing of its life is handed out any more; an open cleanup is void.
#[utoipa::path(
    delete, path = "/v1/namespaces/{ns}/deadlines/{id}", tag = "deadlines",
    params(("ns" = String, Path, description = "The namespace"), ("id" = String, Path, description = "The id, percent-encoded"), IdQuery),
    responses((status = 200, description = "It was armed, or its cleanup was open", body = Answer), Common)
)]
async fn remove(namespace: ToWrite, PathId(id): PathId) -> Result<Json<Answer>, Problem> {
    let answer = Answer::from(one(namespace.remove_all(&[id]).await?)?);
    if answer.result == Word::Unknown { Err(unknown("there is nothing to remove")) } else { Ok(Json(answer)) }
}

/// End a deadline now
///
/// Its cleanup follows at once, with reason `ended`; no reminder.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/deadlines/{id}/expire", tag = "deadlines",
    params(("ns" = String, Path, description = "The namespace"), ("id" = String, Path, description = "The id, percent-encoded"), IdQuery),
    responses((status = 200, description = "It has ended, now or before", body = Answer), Common)
)]
async fn expire(namespace: ToWrite, PathId(id): PathId) -> Result<Json<Answer>, Problem> {
    let answer = Answer::from(one(namespace.store().expire(&namespace.name, &[id]).await?)?);
    if answer.result == Word::Unknown { Err(unknown("there is nothing to end")) } else { Ok(Json(answer)) }
}

/// Find the id behind a handle
///
/// Goes through all ids of the namespace, what is parked and what is open. For callers of scope `admin`.
#[utoipa::path(
    get, path = "/v1/namespaces/{ns}/handles/{handle}", tag = "deadlines",
    params(("ns" = String, Path, description = "The namespace"), ("handle" = String, Path, description = "The handle, percent-encoded")),
    responses((status = 200, description = "The id", body = IdForm), Common)
)]
async fn find(namespace: ToManage, PathHandle(handle): PathHandle) -> Result<Json<IdForm>, Problem> {
    match namespace.find(&handle).await? {
        Some(id) => Ok(Json(IdForm::from(&id))),
        None => Err(unknown("no id has this handle; list shows those there are")),
    }
}

/// Which deadlines to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListParams {
    /// Only what expires within this time from now, as in `10m`.
    within: Option<String>,
    /// At most this many, 1 to 1,000. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// List deadlines
///
/// Those that are armed, by expiry, page by page.
#[utoipa::path(
    get, path = "/v1/namespaces/{ns}/deadlines", tag = "deadlines",
    params(("ns" = String, Path, description = "The namespace"), ListParams),
    responses((status = 200, description = "A page", body = DeadlinePage), Common)
)]
async fn list(
    namespace: ToRead,
    Anybody(caller): Anybody,
    Asked(params): Asked<ListParams>,
) -> Result<Json<DeadlinePage>, Problem> {
    let limit = limit_of(params.limit, 1000)?;
    let after = match params.cursor.as_deref().map(read_cursor).transpose()? {
        Some(cursor) => Some(namespace.place_of(&cursor).await?),
        None => None,
    };
    let query =
        ListQuery { within: params.within.map(|text| Span::Text(text).read("within")).transpose()?, after, limit };
    let listed = namespace.list(&query).await?;
    // A full page may have a successor; a short one has none.
    let is_full = u32::try_from(listed.len()).is_ok_and(|len| len >= limit);
    let mask = caller.mask(&namespace).await?;
    let cursor = |last: &Listed| Cursor { expires_at_ms: last.expires_at_ms, last: mask.show(&last.id) };
    let next = listed.last().filter(|_| is_full).map(|last| cursor(last).to_string());
    Ok(Json(DeadlinePage { deadlines: listed.iter().map(|one| ListedForm::new(one, &mask)).collect(), next }))
}

/// Many deadlines in one call
///
/// Tracks, renews, removes or expires 1 to 1,000 of them. Each is answered for itself: one that is not acceptable leaves the
/// others alone.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/deadlines", tag = "deadlines",
    params(("ns" = String, Path, description = "The namespace")),
    request_body = BatchBody,
    responses((status = 200, description = "An answer for each entry", body = Answers), Writing)
)]
async fn batch(namespace: ToWrite, Body(body): Body<BatchBody>) -> Result<Json<Answers>, Problem> {
    let BatchBody { action, mode, entries } = body;
    check_count("entries", entries.len())?;
    let now_ms = now_for(&namespace, entries.iter().any(|entry| entry.ttl.is_some())).await?;
    let (store, name) = (namespace.store(), &namespace.name);
    let results = match action {
        Action::Track if entries.iter().any(|entry| entry.read_replaces() != Ok(None)) => {
            // One by one, and each by itself in one step.
            let mut results = Vec::with_capacity(entries.len());
            for entry in &entries {
                results.push(track_or_replace(&namespace, mode.into(), entry, now_ms).await?);
            }
            results
        }
        Action::Track => {
            let read = entries.iter().map(|entry| entry.read_track(now_ms)).collect();
            answer_each(read, async |tracks: Vec<Track>| {
                let answers = store.track(name, mode.into(), &tracks).await?;
                Ok(tracks.iter().zip(answers).map(|(track, it)| Answer::tracked(&it, track.expires_at)).collect())
            })
            .await?
        }
        Action::Renew => {
            let read = entries.iter().map(|entry| entry.read_track(now_ms)).collect();
            answer_each(read, async |tracks: Vec<Track>| {
                let renew = |Track { id, expires_at, payload }| Renew { id, expires_at, payload };
                let renews: Vec<Renew> = tracks.into_iter().map(renew).collect();
                let answers = store.renew(name, &renews).await?;
                Ok(renews.iter().zip(answers).map(|(renew, it)| Answer::renewed(&it, renew.expires_at)).collect())
            })
            .await?
        }
        Action::Remove => {
            let read = entries.iter().map(BatchEntry::read_bare).collect();
            answer_each(read, async |ids: Vec<Id>| {
                Ok(store.remove(name, &ids).await?.into_iter().map(Answer::from).collect())
            })
            .await?
        }
        Action::Expire => {
            let read = entries.iter().map(BatchEntry::read_bare).collect();
            answer_each(read, async |ids: Vec<Id>| {
                Ok(store.expire(name, &ids).await?.into_iter().map(Answer::from).collect())
            })
            .await?
        }
    };
    Ok(Json(Answers { results }))
}

async fn track_or_replace(
    namespace: &ToWrite,
    mode: Mode,
    entry: &BatchEntry,
    now_ms: i64,
) -> Result<Answer, StoreError> {
    let read = entry.read_track(now_ms).and_then(|track| Ok((track, entry.read_replaces()?)));
    let (track, old) = match read {
        Ok(read) => read,
        Err(invalid) => return Ok(Answer::rejected(&invalid)),
    };
    let (store, name, at) = (namespace.store(), &namespace.name, track.expires_at);
    match old {
        None => Ok(Answer::tracked(&one(store.track(name, mode, &[track]).await?)?, at)),
        Some(old) => match store.replace(name, mode, &track, &old).await {
            Ok(replaced) => Ok(Answer::replaced(&replaced, at)),
            Err(StoreError::Invalid(invalid)) => Ok(Answer::rejected(&invalid)),
            Err(error) => Err(error),
        },
    }
}

/// Asks the store about the entries that can be read; the others are answered here, each in its place.
async fn answer_each<T>(
    read: Vec<Result<T, Invalid>>,
    ask: impl AsyncFnOnce(Vec<T>) -> Result<Vec<Answer>, StoreError>,
) -> Result<Vec<Answer>, Problem> {
    let (mut asked, mut answers) = (Vec::with_capacity(read.len()), Vec::with_capacity(read.len()));
    for entry in read {
        match entry {
            Ok(entry) => {
                asked.push(entry);
                answers.push(None);
            }
            Err(invalid) => answers.push(Some(Answer::rejected(&invalid))),
        }
    }
    let told = if asked.is_empty() { Vec::new() } else { ask(asked).await? };
    let mut told = told.into_iter();
    let in_place = |answer: Option<Answer>| answer.or_else(|| told.next());
    answers.into_iter().map(in_place).collect::<Option<Vec<_>>>().ok_or_else(|| no_answer().into())
}

/// The store's clock, if a span counts from it.
async fn now_for(namespace: &Namespace, is_needed: bool) -> Result<i64, StoreError> {
    if is_needed { namespace.store().now().await } else { Ok(0) }
}

/// Refuses an empty batch and one that is too long.
pub(super) fn check_count(field: &'static str, count: usize) -> Result<(), Invalid> {
    match count {
        0 => Err(Invalid::new(field, "is empty; give 1 to 1000")),
        1..=MAX_BATCH => Ok(()),
        _ => Err(Invalid::new(field, format!("has {count}; give at most 1000 in one call"))),
    }
}

/// A limit of a page.
pub(super) fn limit_of(limit: Option<u32>, most: u32) -> Result<u32, Invalid> {
    match limit.unwrap_or(100) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        limit => Err(Invalid::new("limit", format!("is {limit}; give 1 to {most}"))),
    }
}

fn read_cursor(text: &str) -> Result<Cursor, Invalid> {
    text.parse().map_err(|_| Invalid::new("cursor", "is none; give what the page before said as next"))
}

fn one<T>(mut answers: Vec<T>) -> Result<T, StoreError> {
    answers.pop().ok_or_else(no_answer)
}

fn no_answer() -> StoreError {
    StoreError::Unexpected { address: "the store".to_owned(), problem: "it gave no answer".to_owned() }
}

fn unknown(detail: &str) -> Problem {
    Problem::new(Code::UnknownDeadline, detail)
}

fn rejected(answer: Answer) -> Problem {
    answer.error.map_or_else(|| no_answer().into(), |error| Invalid::from(error).into())
}

/// A name of a query or a body.
pub(super) fn name(field: &'static str, text: Option<String>) -> Result<Option<Name>, Invalid> {
    text.map(|text| Name::new(field, text)).transpose()
}
