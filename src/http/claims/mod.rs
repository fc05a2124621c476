//! Claims for workers in any language: taken with a wait, settled by their tokens.

mod desk;
mod hold;

use std::{collections::BTreeMap, time::Duration};

use axum::{Extension, Json, extract::State, response::Response};
use tokio::time::Instant;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::api::{
    ClaimBody, ClaimForm, ClaimsForm, ExtendBody, FailBody, FailedClaim, NextForm, SettledAnswer, SettledAnswers, Span,
    Ticket, TokensBody,
};
use crate::http::App;
use crate::http::deadlines::{check_count, name};
use crate::http::error::Problem;
use crate::http::extract::{Body, MaybeBody, ToWrite};
use crate::http::load::Place;
use crate::http::problems::Writing;
use crate::model::{Backoff, Class, Failure, Invalid, Kind, LeadTime, Name, Reason, Route, format_instant, span_ms};
use crate::store::{Claims, Failing, Next, Store, StoreError, Token, Verdict};

pub(super) use desk::Desks;
use desk::Wanted;

/// The longest wait of a claim.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The routes of claims.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(claim))
        .routes(routes!(ack))
        .routes(routes!(retry))
        .routes(routes!(reject))
        .routes(routes!(review))
        .routes(routes!(extend))
        .routes(routes!(release))
        .routes(routes!(check))
}

/// Claim due notices
///
/// Each belongs to the caller for the lease, and is handed out again if it is not settled by then. Nothing is due: waits up to
/// `wait`. Answers as soon as there is one; `limit` is the most, not what is waited for.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/claims", tag = "claims",
    params(("ns" = String, Path, description = "The namespace")),
    request_body = Option<ClaimBody>,
    responses((status = 200, description = "What was claimed; nothing if nothing was due", body = ClaimsForm), Writing)
)]
async fn claim(
    State(app): State<App>,
    namespace: ToWrite,
    Extension(place): Extension<Place>,
    MaybeBody(body): MaybeBody<ClaimBody>,
) -> Result<Response, Problem> {
    let ClaimBody { route, limit, lease, wait } = body;
    let limit = limit.unwrap_or(1);
    if limit > 500 {
        return Err(Invalid::new("limit", format!("is {limit}; give 1 to 500, or 0 to look only")).into());
    }
    let wait = wait.map(|wait| wait.read("wait")).transpose()?.unwrap_or_default();
    if wait > MAX_WAIT {
        return Err(Invalid::new("wait", "is longer than 60 s; ask again instead").into());
    }
    let route = match name("route", route)? {
        Some(route) => route,
        None => Route::main()?.name,
    };
    let lease = lease_of(&namespace, lease).await?;
    let wanted = Wanted { namespace: namespace.name.clone(), route: route.clone(), limit, lease };
    let _waiting = if wait.is_zero() { None } else { Some(app.load().wait(&place, app.limits().max_waiting)?) };
    let (claims, hold) = app.desks().claim(wanted, Instant::now() + wait).await?;
    app.metrics().claimed(&namespace.name, &route, &claims, limit);
    Ok(hold.answer(&claims_form(&claims, &route, lease)))
}

async fn lease_of(namespace: &ToWrite, lease: Option<Span>) -> Result<Duration, Problem> {
    let Some(lease) = lease else { return Ok(namespace.configured().await?.settings.lease) };
    match lease.read("lease")? {
        lease if (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&lease) => Ok(lease),
        _ => Err(Invalid::new("lease", "is out of range; give 1ms to 24h").into()),
    }
}

fn claims_form(claims: &Claims, route: &Name, lease: Duration) -> ClaimsForm {
    let until = claims.now_ms.saturating_add(span_ms(lease));
    let (state, next_due_at_ms, poll_at_ms) = match claims.next {
        Next::Backlog => (NextForm::Backlog, None, None),
        Next::At { due_at_ms, poll_at_ms } => (NextForm::Wait, due_at_ms, Some(poll_at_ms)),
        Next::Paused { poll_at_ms } => (NextForm::Paused, None, Some(poll_at_ms)),
    };
    ClaimsForm {
        now: format_instant(claims.now_ms),
        claims: claims.claims.iter().map(|claim| ClaimForm::new(claim, route, until)).collect(),
        state,
        next_due_at: next_due_at_ms.map(format_instant),
        poll_at: poll_at_ms.map(format_instant),
        dropped: claims.dropped,
        quarantined: claims.quarantined,
        lapsed: claims.lapsed,
    }
}

/// What a settlement is told for each of its claims, in their order.
type Told = Result<Json<SettledAnswers>, Problem>;

/// Settle claims as done
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/claims/ack", tag = "claims",
    params(("ns" = String, Path, description = "The namespace")), request_body = TokensBody,
    responses((status = 200, description = "What became of each", body = SettledAnswers), Writing)
)]
async fn ack(State(app): State<App>, namespace: ToWrite, Body(body): Body<TokensBody>) -> Told {
    let tickets = read_tickets(&body.tokens)?;
    let results = settle(&namespace, &tickets, Verb::Ack).await?;
    app.metrics().settled(&namespace.name, &tickets, &results);
    Ok(Json(SettledAnswers { results }))
}

/// Give claims back
///
/// Unhandled: ready at once for another worker, no attempt burnt.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/claims/release", tag = "claims",
    params(("ns" = String, Path, description = "The namespace")), request_body = TokensBody,
    responses((status = 200, description = "What became of each", body = SettledAnswers), Writing)
)]
async fn release(namespace: ToWrite, Body(body): Body<TokensBody>) -> Told {
    let tickets = read_tickets(&body.tokens)?;
    let results = settle(&namespace, &tickets, Verb::Release).await?;
    Ok(Json(SettledAnswers { results }))
}

/// Check claims
///
/// Whether they still hold, for a worker that begins late with what it claimed; one that is void is dropped.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/claims/check", tag = "claims",
    params(("ns" = String, Path, description = "The namespace")), request_body = TokensBody,
    responses((status = 200, description = "Of each, whether it holds", body = SettledAnswers), Writing)
)]
async fn check(namespace: ToWrite, Body(body): Body<TokensBody>) -> Told {
    let tickets = read_tickets(&body.tokens)?;
    let results = settle(&namespace, &tickets, Verb::Check).await?;
    Ok(Json(SettledAnswers { results }))
}

/// Extend claims
///
/// Their leases end `lease` from now, never earlier than they would have.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/claims/extend", tag = "claims",
    params(("ns" = String, Path, description = "The namespace")), request_body = ExtendBody,
    responses((status = 200, description = "What became of each", body = SettledAnswers), Writing)
)]
async fn extend(namespace: ToWrite, Body(body): Body<ExtendBody>) -> Told {
    let tickets = read_tickets(&body.tokens)?;
    let lease = lease_of(&namespace, body.lease).await?;
    let results = settle(&namespace, &tickets, |tokens| Verb::Extend(tokens, lease)).await?;
    Ok(Json(SettledAnswers { results }))
}

/// Retry claims later
///
/// Records a failure of each; the last one allowed makes it a dead letter.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/claims/retry", tag = "claims",
    params(("ns" = String, Path, description = "The namespace")), request_body = FailBody,
    responses((status = 200, description = "What became of each", body = SettledAnswers), Writing)
)]
async fn retry(State(app): State<App>, namespace: ToWrite, Body(body): Body<FailBody>) -> Told {
    fail(&app, &namespace, body, End::Retry).await
}

/// Reject claims
///
/// They can never succeed: each becomes a dead letter.
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/claims/reject", tag = "claims",
    params(("ns" = String, Path, description = "The namespace")), request_body = FailBody,
    responses((status = 200, description = "What became of each", body = SettledAnswers), Writing)
)]
async fn reject(State(app): State<App>, namespace: ToWrite, Body(body): Body<FailBody>) -> Told {
    fail(&app, &namespace, body, End::Reject).await
}

/// Park claims for a person
#[utoipa::path(
    post, path = "/v1/namespaces/{ns}/claims/review", tag = "claims",
    params(("ns" = String, Path, description = "The namespace")), request_body = FailBody,
    responses((status = 200, description = "What became of each", body = SettledAnswers), Writing)
)]
async fn review(State(app): State<App>, namespace: ToWrite, Body(body): Body<FailBody>) -> Told {
    fail(&app, &namespace, body, End::Review).await
}

/// How a claim that failed ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Retry,
    Reject,
    Review,
}

async fn fail(app: &App, namespace: &ToWrite, body: FailBody, end: End) -> Told {
    check_count("claims", body.claims.len())?;
    let failed: Vec<Failed> =
        body.claims.into_iter().map(|claim| Failed::read(claim, end)).collect::<Result<_, _>>()?;
    let (tickets, failing): (Vec<Ticket>, Vec<Failing>) = failed.into_iter().map(|it| (it.ticket, it.failing)).unzip();
    let results = by_route(namespace, &tickets, |places| {
        Verb::Fail(places.iter().map(|place| failing[*place].clone()).collect())
    })
    .await?;
    app.metrics().settled(&namespace.name, &tickets, &results);
    Ok(Json(SettledAnswers { results }))
}

/// A claim that failed, read.
#[derive(Debug)]
struct Failed {
    ticket: Ticket,
    failing: Failing,
}

impl Failed {
    fn read(claim: FailedClaim, end: End) -> Result<Self, Invalid> {
        let FailedClaim { token, delay, exact, max_failures, class, stage, summary } = claim;
        let ticket = Ticket::read(&token)?;
        let given = [("delay", delay.is_some()), ("exact", exact), ("max_failures", max_failures.is_some())];
        if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given && end != End::Retry) {
            return Err(Invalid::new(field, "has no meaning here; it is for retry"));
        }
        if max_failures == Some(0) {
            return Err(Invalid::new("max_failures", "is 0; give at least 1"));
        }
        let backoff = Backoff::default();
        let verdict = match (end, delay) {
            (End::Retry, Some(delay)) if exact => Verdict::RetryAfter(delay.read("delay")?),
            (End::Retry, Some(delay)) => Verdict::Backoff(delay.read("delay")?),
            (End::Retry, None) if exact => {
                return Err(Invalid::new("delay", "is missing, and exact is given; give both"));
            }
            (End::Retry, None) => {
                let failures = ticket.failures.saturating_add(1);
                Verdict::Backoff(backoff.delay(kind_of(&ticket)?, failures, fastrand::f64()))
            }
            (End::Reject, _) => Verdict::Dead,
            (End::Review, _) => Verdict::Review,
        };
        let class = class.unwrap_or(match end {
            End::Retry => Class::Failed,
            End::Reject => Class::Rejected,
            End::Review => Class::Conflict,
        });
        let summary = summary.unwrap_or_else(|| "the worker gave no reason".to_owned());
        let mut failure = Failure::new(class, summary);
        if let Some(stage) = stage {
            if stage.is_empty() || stage.len() > 64 {
                return Err(Invalid::new("stage", "is empty or longer than 64 bytes; give a short name"));
            }
            failure = failure.at_stage(stage);
        }
        let failing = Failing {
            token: ticket.token.clone(),
            verdict,
            failure,
            max_failures: max_failures.unwrap_or_else(|| backoff.max_failures()),
            due_at_ms: ticket.due_at_ms,
            on_set: ticket.on_set,
        };
        Ok(Self { ticket, failing })
    }
}

/// A kind whose retries follow the same policy.
fn kind_of(ticket: &Ticket) -> Result<Kind, Invalid> {
    match ticket.is_reminder {
        true => Ok(Kind::Reminder(LeadTime::from_millis(1)?)),
        false => Ok(Kind::Cleanup(Reason::Expired)),
    }
}

fn read_tickets(tokens: &[String]) -> Result<Vec<Ticket>, Invalid> {
    check_count("tokens", tokens.len())?;
    tokens.iter().map(|token| Ticket::read(token)).collect()
}

/// What the store is asked about claims of one route.
#[derive(Debug)]
enum Verb {
    Ack(Vec<Token>),
    Release(Vec<Token>),
    Check(Vec<Token>),
    Extend(Vec<Token>, Duration),
    Fail(Vec<Failing>),
}

impl Verb {
    async fn ask(self, store: &dyn Store, namespace: &Name, route: &Name) -> Result<Vec<SettledAnswer>, StoreError> {
        let settled = match self {
            Self::Ack(tokens) => store.ack(namespace, route, &tokens).await?,
            Self::Release(tokens) => store.release(namespace, route, &tokens).await?,
            Self::Extend(tokens, lease) => store.extend(namespace, route, &tokens, lease).await?,
            Self::Fail(failing) => store.fail(namespace, route, &failing).await?,
            Self::Check(tokens) => {
                let checked = store.recheck(namespace, route, &tokens).await?;
                return Ok(checked.into_iter().map(SettledAnswer::from).collect());
            }
        };
        Ok(settled.into_iter().map(SettledAnswer::from).collect())
    }
}

async fn settle(
    namespace: &ToWrite,
    tickets: &[Ticket],
    verb: impl Fn(Vec<Token>) -> Verb,
) -> Result<Vec<SettledAnswer>, StoreError> {
    by_route(namespace, tickets, |places| verb(places.iter().map(|place| tickets[*place].token.clone()).collect()))
        .await
}

/// Asks the store once for each route, and brings the answers into the order of the tickets.
async fn by_route(
    namespace: &ToWrite,
    tickets: &[Ticket],
    verb: impl Fn(&[usize]) -> Verb,
) -> Result<Vec<SettledAnswer>, StoreError> {
    let mut routes: BTreeMap<&Name, Vec<usize>> = BTreeMap::new();
    for (place, ticket) in tickets.iter().enumerate() {
        routes.entry(&ticket.route).or_default().push(place);
    }
    let mut answers = vec![None; tickets.len()];
    for (route, places) in routes {
        let told = verb(&places).ask(namespace.store().as_ref(), &namespace.name, route).await?;
        places.into_iter().zip(told).for_each(|(place, answer)| answers[place] = Some(answer));
    }
    answers.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| StoreError::Unexpected {
        address: "the store".to_owned(),
        problem: "it answered fewer claims than it was asked about".to_owned(),
    })
}
