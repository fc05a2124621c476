//! Commands that look at deadlines: `show`, `list`.

use std::time::Duration;

use clap::Args;
use forewarn::{
    Forewarn, Id, Name,
    model::parse_span,
    store::{DeadlineView, DeliveryView, ListQuery},
};
use serde::Serialize;
use serde_json::json;

use super::{
    args::{self, Cursor},
    deadline::OneArgs,
    exit::Exit,
    output::{
        FailureJson, IdJson, PayloadJson, distance, failure_text, instant, instant_and_distance, payload_text, print,
        print_json, printable, say, table,
    },
};

/// Say everything about one id: expiry, payload, deliveries, open cleanup
///
/// An id of which nothing is known is exit 1.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// List armed deadlines by expiry
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    /// Only what expires within this time from now, as in 10m
    #[arg(long, value_name = "SPAN", value_parser = |text: &str| parse_span("within", text))]
    within: Option<Duration>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Go on after the page that printed this cursor
    #[arg(long, value_name = "CURSOR")]
    after: Option<Cursor>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Carries out `show`.
pub(super) async fn show(forewarn: &Forewarn, args: ShowArgs) -> anyhow::Result<Exit> {
    let id = args.one.id.into_id()?;
    let namespace = forewarn.namespace(args.one.namespace.clone());
    let Some(view) = namespace.show(id.as_bytes()).await? else {
        say(format_args!("{} {id} is unknown: it is not armed and nothing of it is pending", args.one.namespace));
        return Ok(Exit::Failed);
    };
    if args.json {
        print_json(&DeadlineJson::new(&args.one.namespace, &view))?;
    } else {
        print(view_text(&args.one.namespace, &view, forewarn.store().now().await?))?;
    }
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct DeadlineJson<'a> {
    namespace: &'a Name,
    #[serde(flatten)]
    id: IdJson,
    armed: bool,
    expires_at: Option<String>,
    #[serde(flatten)]
    payload: PayloadJson,
    every: Option<&'a str>,
    quarantined: Option<&'a str>,
    open: Option<NoticeJson>,
    deliveries: Vec<DeliveryJson>,
}

#[derive(Debug, Serialize)]
struct DeliveryJson {
    route: String,
    #[serde(flatten)]
    notice: NoticeJson,
    state: forewarn::store::DeliveryState,
    at: String,
    hand_outs: u8,
    failures: Vec<FailureJson>,
}

/// A notice in JSON, beside an id that is said elsewhere. To be flattened.
#[derive(Debug, Serialize)]
pub(super) struct NoticeJson {
    event_id: forewarn::model::EventId,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<forewarn::Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lead_ms: Option<i64>,
    #[serde(rename = "expires_at")]
    notice_expires_at: String,
}

impl From<&forewarn::model::Notice> for NoticeJson {
    fn from(notice: &forewarn::model::Notice) -> Self {
        let (reason, lead_ms) = match notice.kind {
            forewarn::Kind::Reminder(lead) => (None, Some(lead.as_millis())),
            forewarn::Kind::Cleanup(reason) => (Some(reason), None),
        };
        Self {
            event_id: notice.event_id(),
            kind: notice.kind.as_str(),
            reason,
            lead_ms,
            notice_expires_at: instant(notice.expires_at_ms),
        }
    }
}

impl<'a> DeadlineJson<'a> {
    fn new(namespace: &'a Name, view: &'a DeadlineView) -> Self {
        Self {
            namespace,
            id: IdJson::from(&view.id),
            armed: view.expires_at_ms.is_some(),
            expires_at: view.expires_at_ms.map(instant),
            payload: PayloadJson::from(view.payload.as_deref()),
            every: view.every.as_deref(),
            quarantined: view.quarantined.as_deref(),
            open: view.open.as_ref().map(NoticeJson::from),
            deliveries: view.deliveries.iter().map(DeliveryJson::from).collect(),
        }
    }
}

impl From<&DeliveryView> for DeliveryJson {
    fn from(delivery: &DeliveryView) -> Self {
        Self {
            route: delivery.route.to_string(),
            notice: NoticeJson::from(&delivery.notice),
            state: delivery.state,
            at: instant(delivery.at_ms),
            hand_outs: delivery.hand_outs,
            failures: delivery.failures.iter().map(FailureJson::from).collect(),
        }
    }
}

fn view_text(namespace: &Name, view: &DeadlineView, now_ms: i64) -> String {
    let mut lines = vec![format!("{namespace} {}", view.id)];
    let mut field = |name: &str, value: String| lines.push(format!("  {name:<13}{value}"));
    match view.expires_at_ms {
        Some(ms) => field("armed until", instant_and_distance(ms, now_ms)),
        None => field("armed", "no".to_owned()),
    }
    if let Some(payload) = &view.payload {
        field("payload", payload_text(payload));
    }
    if let Some(every) = &view.every {
        let period = every.parse().map(|ms| forewarn::model::format_span(Duration::from_millis(ms)));
        field("every", period.unwrap_or_else(|_| printable(every)));
    }
    if let Some(score) = &view.quarantined {
        field("quarantined", format!("its score {} cannot be an expiry in milliseconds", printable(score)));
    }
    if let Some(open) = &view.open {
        field("open", notice_text(open));
    }
    for delivery in &view.deliveries {
        let state = match delivery.state {
            forewarn::store::DeliveryState::Ready => "ready since",
            forewarn::store::DeliveryState::Waiting => "waiting until",
            forewarn::store::DeliveryState::Leased => "leased until",
        };
        let at = instant_and_distance(delivery.at_ms, now_ms);
        let (route, notice, outs) = (&delivery.route, notice_text(&delivery.notice), delivery.hand_outs);
        field("delivery", format!("{notice} on route {route}: {state} {at}, hand-outs {outs}"));
        for failure in &delivery.failures {
            field("", format!("  {}", failure_text(failure, now_ms)));
        }
    }
    lines.join("\n")
}

/// A notice on one line for people, beside an id that is said elsewhere.
pub(super) fn notice_text(notice: &forewarn::model::Notice) -> String {
    let at = instant(notice.expires_at_ms);
    match notice.kind {
        forewarn::Kind::Reminder(lead) => format!("reminder {lead} before {at}"),
        forewarn::Kind::Cleanup(reason) => format!("cleanup ({}) of {at}", reason.as_str()),
    }
}

/// Carries out `list`.
pub(super) async fn list(forewarn: &Forewarn, args: ListArgs) -> anyhow::Result<Exit> {
    let after = args.after.map(|Cursor(ms, id)| (ms, id));
    let query = ListQuery { within: args.within, after, limit: args.limit };
    let listed = forewarn.namespace(args.namespace).list(&query).await?;
    // A full page may have a successor; a short one has none.
    let full = usize::try_from(args.limit).is_ok_and(|limit| listed.len() >= limit);
    let next = listed.last().filter(|_| full).map(|last| Cursor(last.expires_at_ms, last.id.clone()).to_string());
    if args.json {
        let deadlines: Vec<_> = listed.iter().map(|one| ListedJson::new(&one.id, one.expires_at_ms)).collect();
        print_json(&json!({ "deadlines": deadlines, "next": next }))?;
        return Ok(Exit::Done);
    }
    let now_ms = forewarn.store().now().await?;
    let row = |ms: i64, id: &Id| [instant(ms), distance(ms, now_ms), id.to_string()];
    print(table(["expires_at", "expires", "id"], listed.iter().map(|one| row(one.expires_at_ms, &one.id))))?;
    if let Some(next) = next {
        say(format_args!("there may be more: --after {next}"));
    }
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct ListedJson {
    #[serde(flatten)]
    id: IdJson,
    expires_at: String,
}

impl ListedJson {
    fn new(id: &Id, expires_at_ms: i64) -> Self {
        Self { id: IdJson::from(id), expires_at: instant(expires_at_ms) }
    }
}
