//! Commands on the two shelves where notices are parked, dead letters and reviews: `list`, `show`, `requeue`, `drop`.

use clap::{Args, Subcommand};
use forewarn::{
    Forewarn, Name,
    model::EventId,
    store::{Parked, ParkedQuery, Requeued, Shelf},
};
use serde::Serialize;
use serde_json::json;

use super::{
    args,
    exit::Exit,
    inspect::{NoticeJson, notice_text},
    output::{
        FailureJson, IdJson, PayloadJson, failure_text, instant, payload_text, print, print_json, printable, say, table,
    },
};

/// How many are fetched and settled at a time.
const PAGE: u32 = 100;

#[derive(Debug, Subcommand)]
pub(super) enum ParkedCommand {
    /// List parked notices, oldest first
    List(ListArgs),
    /// Show one parked notice with its payload and its last failures
    Show(ShowArgs),
    /// Put parked notices back to be delivered again
    ///
    /// One that is void by now (its id has another life, the reminder's time has passed) stays parked; exit 1.
    Requeue(SelectArgs),
    /// Delete parked notices for good
    Drop(SelectArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    /// Only those of this route
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    route: Option<Name>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Skip this many
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    /// The event id, 32 hex digits
    #[arg(value_name = "EVENT_ID")]
    event_id: EventId,
    /// Only that of this route
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    route: Option<Name>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(override_usage = "forewarn dead|review requeue|drop NS (EVENT_ID | --all) [--route NAME]")]
pub(super) struct SelectArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    /// The event id, 32 hex digits
    #[arg(value_name = "EVENT_ID", required_unless_present = "all", conflicts_with = "all")]
    event_id: Option<EventId>,
    /// Only that of this route, or with --all only those
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    route: Option<Name>,
    /// All that are parked
    #[arg(long)]
    all: bool,
}

/// Carries out a command on `shelf`.
pub(super) async fn run(forewarn: &Forewarn, shelf: Shelf, command: ParkedCommand) -> anyhow::Result<Exit> {
    match command {
        ParkedCommand::List(args) => list(forewarn, shelf, args).await,
        ParkedCommand::Show(args) => show(forewarn, shelf, args).await,
        ParkedCommand::Requeue(args) => requeue(forewarn, shelf, args).await,
        ParkedCommand::Drop(args) => drop_parked(forewarn, shelf, args).await,
    }
}

#[derive(Debug, Serialize)]
struct ParkedJson {
    route: String,
    #[serde(flatten)]
    id: IdJson,
    #[serde(flatten)]
    notice: NoticeJson,
    parked_at: String,
    #[serde(flatten)]
    payload: PayloadJson,
    failures: Vec<FailureJson>,
}

impl From<&Parked> for ParkedJson {
    fn from(parked: &Parked) -> Self {
        Self {
            route: parked.route.to_string(),
            id: IdJson::from(&parked.notice.id),
            notice: NoticeJson::from(&parked.notice),
            parked_at: instant(parked.parked_at_ms),
            payload: PayloadJson::from(parked.payload.as_deref()),
            failures: parked.failures.iter().map(FailureJson::from).collect(),
        }
    }
}

async fn list(forewarn: &Forewarn, shelf: Shelf, args: ListArgs) -> anyhow::Result<Exit> {
    let query = ParkedQuery { route: args.route, offset: args.offset, limit: args.limit, ..ParkedQuery::default() };
    let page = forewarn.store().parked(&args.namespace, shelf, &query).await?;
    if args.json {
        let entries: Vec<_> = page.entries.iter().map(ParkedJson::from).collect();
        print_json(&json!({ shelf.as_str(): entries, "total": page.total }))?;
        return Ok(Exit::Done);
    }
    let header = ["event_id", "route", "kind", "id", "class", "failures", "parked_at", "summary"];
    print(table(header, page.entries.iter().map(row)))?;
    // The total counts every route.
    let shown = page.entries.len();
    if u64::try_from(shown)? < page.total {
        say(format_args!("{shown} of {} shown; see --limit, --offset and --route", page.total));
    }
    Ok(Exit::Done)
}

fn row(parked: &Parked) -> [String; 8] {
    let last = parked.failures.last();
    [
        parked.event_id().to_string(),
        parked.route.to_string(),
        parked.notice.kind.as_str().to_owned(),
        parked.notice.id.to_string(),
        last.map(|failure| failure.class.to_string()).unwrap_or_default(),
        parked.failures.len().to_string(),
        instant(parked.parked_at_ms),
        last.map(|failure| printable(&failure.summary)).unwrap_or_default(),
    ]
}

async fn show(forewarn: &Forewarn, shelf: Shelf, args: ShowArgs) -> anyhow::Result<Exit> {
    let query = ParkedQuery { event_id: Some(args.event_id), route: args.route, limit: PAGE, ..ParkedQuery::default() };
    let page = forewarn.store().parked(&args.namespace, shelf, &query).await?;
    if page.entries.is_empty() {
        say(format_args!("event {} is not parked here", args.event_id));
        return Ok(Exit::Failed);
    }
    if args.json {
        let entries: Vec<_> = page.entries.iter().map(ParkedJson::from).collect();
        print_json(&json!({ shelf.as_str(): entries }))?;
    } else {
        let now_ms = forewarn.store().now().await?;
        let texts: Vec<_> = page.entries.iter().map(|parked| parked_text(parked, now_ms)).collect();
        print(texts.join("\n"))?;
    }
    Ok(Exit::Done)
}

fn parked_text(parked: &Parked, now_ms: i64) -> String {
    let mut lines = vec![format!("{} {}", parked.notice.namespace, parked.notice.id)];
    let mut field = |name: &str, value: String| lines.push(format!("  {name:<10}{value}"));
    field("event_id", parked.event_id().to_string());
    field("notice", notice_text(&parked.notice));
    field("route", parked.route.to_string());
    field("parked_at", instant(parked.parked_at_ms));
    if let Some(payload) = &parked.payload {
        field("payload", payload_text(payload));
    }
    for failure in &parked.failures {
        field("failure", failure_text(failure, now_ms));
    }
    lines.join("\n")
}

impl SelectArgs {
    fn query(&self, offset: u32) -> ParkedQuery {
        ParkedQuery {
            event_id: self.event_id,
            route: self.route.clone(),
            offset,
            limit: PAGE,
            ..ParkedQuery::default()
        }
    }
}

async fn requeue(forewarn: &Forewarn, shelf: Shelf, args: SelectArgs) -> anyhow::Result<Exit> {
    let store = forewarn.store();
    let (mut requeued, mut left) = (0_u64, 0_u32);
    loop {
        let entries = store.parked(&args.namespace, shelf, &args.query(left)).await?.entries;
        if entries.is_empty() {
            break;
        }
        let answers = store.requeue(&args.namespace, shelf, &entries).await?;
        for (parked, answer) in entries.iter().zip(answers) {
            let why = match answer {
                Requeued::Requeued => {
                    requeued += 1;
                    continue;
                }
                // Somebody else was quicker: it takes no place on the shelf that the next page would have to skip.
                Requeued::Unknown => continue,
                Requeued::Superseded => "is void by now (superseded)",
                Requeued::NoRoute => "has no route any more",
            };
            left += 1;
            say(format_args!("{} of {} stays parked: it {why}", parked.event_id(), parked.notice.id));
        }
    }
    conclude(&args, "requeued", requeued, left == 0)
}

async fn drop_parked(forewarn: &Forewarn, shelf: Shelf, args: SelectArgs) -> anyhow::Result<Exit> {
    let store = forewarn.store();
    let mut dropped = 0_u64;
    loop {
        let entries = store.parked(&args.namespace, shelf, &args.query(0)).await?.entries;
        if entries.is_empty() {
            break;
        }
        let answers = store.discard(&args.namespace, shelf, &entries).await?;
        dropped += u64::try_from(answers.iter().filter(|was_there| **was_there).count())?;
    }
    conclude(&args, "dropped", dropped, true)
}

fn conclude(args: &SelectArgs, word: &str, count: u64, all_done: bool) -> anyhow::Result<Exit> {
    print(format_args!("{word} {count}"))?;
    match args.event_id {
        Some(event_id) if count == 0 && all_done => {
            say(format_args!("event {event_id} is not parked here"));
            Ok(Exit::Failed)
        }
        _ => Ok(Exit::done_if(all_done)),
    }
}
