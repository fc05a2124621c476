//! Commands on the two shelves where notices are parked, dead letters and reviews: `list`, `show`, `requeue`, `drop`.

use clap::{Args, Subcommand};
use forewarn::{
    Forewarn, Kind, Name, Namespace,
    model::{EventId, IdMask, ShownId},
    store::{Parked, ParkedPage, ParkedQuery, Requeued, Shelf},
};
use serde::Serialize;
use serde_json::json;

use super::{
    args::{self, Reveal},
    exit::Exit,
    notice::{FailureJson, NoticeJson, failure_text, notice_text},
    output::{PayloadJson, instant, payload_text, print, print_json, print_table, printable, say},
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
    /// One that is void by now stays parked, and the exit status is 1: a cleanup whose id has been tracked again or has
    /// another open cleanup, a reminder whose deadline has changed or whose time has passed.
    Requeue(RequeueArgs),
    /// Delete parked notices for good
    ///
    /// With --all it first only says how many there are; --yes deletes them.
    Drop(DropArgs),
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
    #[command(flatten)]
    reveal: Reveal,
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
    #[command(flatten)]
    reveal: Reveal,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RequeueArgs {
    #[command(flatten)]
    selection: Selection,
    /// Delete those that are void by now
    #[arg(long)]
    drop_void: bool,
}

#[derive(Debug, Args)]
pub(super) struct DropArgs {
    #[command(flatten)]
    selection: Selection,
    /// Do it: with --all nothing is deleted without this
    #[arg(long)]
    yes: bool,
}

/// Which parked notices are meant.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    #[command(flatten)]
    which: Which,
    /// Only that of this route, or with --all only those
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    route: Option<Name>,
}

/// One or all.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Which {
    /// The event id, 32 hex digits, as list prints it
    #[arg(value_name = "EVENT_ID")]
    event_id: Option<EventId>,
    /// All that are parked
    #[arg(long)]
    all: bool,
}

/// Gives the commands on `shelf` the usage lines that the parser cannot make up: it would put the namespace last.
pub(super) fn with_usage(command: clap::Command, shelf: Shelf) -> clap::Command {
    let shelf = shelf.as_str();
    command.mut_subcommand(shelf, |group| {
        [("requeue", "--drop-void"), ("drop", "--yes")].into_iter().fold(group, |group, (verb, flag)| {
            let usage = format!("forewarn {shelf} {verb} NS (EVENT_ID | --all) [--route NAME] [{flag}]");
            group.mut_subcommand(verb, |command| command.override_usage(usage))
        })
    })
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
pub(super) struct ParkedJson {
    route: String,
    #[serde(flatten)]
    id: ShownId,
    #[serde(flatten)]
    notice: NoticeJson,
    parked_at: String,
    #[serde(flatten)]
    payload: PayloadJson,
    failures: Vec<FailureJson>,
}

impl ParkedJson {
    pub(super) fn new(parked: &Parked, id: ShownId) -> Self {
        Self {
            route: parked.route.to_string(),
            id,
            notice: NoticeJson::from(&parked.notice),
            parked_at: instant(parked.parked_at_ms),
            payload: PayloadJson::from(parked.payload.as_deref()),
            failures: parked.failures.iter().map(FailureJson::from).collect(),
        }
    }
}

async fn list(forewarn: &Forewarn, shelf: Shelf, args: ListArgs) -> anyhow::Result<Exit> {
    let query = ParkedQuery { route: args.route, offset: args.offset, limit: args.limit, ..ParkedQuery::default() };
    let namespace = forewarn.namespace(args.namespace);
    let mask = args.reveal.mask(&namespace).await?;
    let page = scrubbed(namespace.parked(shelf, &query).await?, &mask);
    if args.json {
        print_json(&json!({ shelf.as_str(): entries_json(&page, &mask), "total": page.total }))?;
        return Ok(Exit::Done);
    }
    let header = ["event_id", "route", "kind", "id", "class", "failures", "parked_at", "summary"];
    print_table(header, page.entries.iter().map(|parked| row(parked, &mask)))?;
    // The total counts every route.
    let shown = page.entries.len();
    if u64::try_from(shown)? < page.total {
        say(format_args!("{shown} of {} shown; see --limit, --offset and --route", page.total));
    }
    Ok(Exit::Done)
}

/// Without the ids in what handlers have said, if they are not to be shown.
fn scrubbed(mut page: ParkedPage, mask: &IdMask) -> ParkedPage {
    page.entries.iter_mut().for_each(|parked| mask.scrub_failures(&parked.notice.id, &mut parked.failures));
    page
}

fn entries_json(page: &ParkedPage, mask: &IdMask) -> Vec<ParkedJson> {
    page.entries.iter().map(|parked| ParkedJson::new(parked, mask.show(&parked.notice.id))).collect()
}

fn row(parked: &Parked, mask: &IdMask) -> [String; 8] {
    let last = parked.failures.last();
    [
        parked.event_id().to_string(),
        parked.route.to_string(),
        parked.notice.kind.as_str().to_owned(),
        mask.show(&parked.notice.id).to_string(),
        last.map(|failure| failure.class.to_string()).unwrap_or_default(),
        parked.failures.len().to_string(),
        instant(parked.parked_at_ms),
        last.map(|failure| printable(&failure.summary)).unwrap_or_default(),
    ]
}

async fn show(forewarn: &Forewarn, shelf: Shelf, args: ShowArgs) -> anyhow::Result<Exit> {
    let query = ParkedQuery { event_id: Some(args.event_id), route: args.route, limit: PAGE, ..ParkedQuery::default() };
    let namespace = forewarn.namespace(args.namespace);
    let mask = args.reveal.mask(&namespace).await?;
    let page = scrubbed(namespace.parked(shelf, &query).await?, &mask);
    if page.entries.is_empty() {
        say(format_args!("event {} is not parked here", args.event_id));
        return Ok(Exit::Failed);
    }
    if args.json {
        print_json(&json!({ shelf.as_str(): entries_json(&page, &mask) }))?;
    } else {
        let now_ms = forewarn.store().now().await?;
        let texts: Vec<_> = page.entries.iter().map(|parked| parked_text(parked, &mask, now_ms)).collect();
        print(texts.join("\n"))?;
    }
    Ok(Exit::Done)
}

fn parked_text(parked: &Parked, mask: &IdMask, now_ms: i64) -> String {
    let mut lines = vec![format!("{} {}", parked.notice.namespace, mask.show(&parked.notice.id))];
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

impl Selection {
    fn query(&self, offset: u32) -> ParkedQuery {
        ParkedQuery {
            event_id: self.which.event_id,
            route: self.route.clone(),
            offset,
            limit: PAGE,
            ..ParkedQuery::default()
        }
    }

    async fn page(&self, namespace: &Namespace, shelf: Shelf, offset: u32) -> anyhow::Result<Vec<Parked>> {
        Ok(namespace.parked(shelf, &self.query(offset)).await?.entries)
    }

    /// That nothing was found is a failure only of who named one.
    fn found(&self, any: bool) -> Exit {
        match self.which.event_id {
            Some(event_id) if !any => {
                say(format_args!("event {event_id} is not parked here"));
                Exit::Failed
            }
            _ => Exit::Done,
        }
    }
}

async fn requeue(forewarn: &Forewarn, shelf: Shelf, args: RequeueArgs) -> anyhow::Result<Exit> {
    let selection = args.selection;
    let namespace = forewarn.namespace(selection.namespace.clone());
    let mask = namespace.id_mask().await?;
    let (mut requeued, mut dropped, mut left) = (0_u64, 0_u64, 0_u32);
    loop {
        let entries = selection.page(&namespace, shelf, left).await?;
        if entries.is_empty() {
            break;
        }
        let answers = namespace.requeue(shelf, &entries).await?;
        let mut void = Vec::new();
        for (parked, answer) in entries.into_iter().zip(answers) {
            let why = match answer {
                Requeued::Requeued => {
                    requeued += 1;
                    continue;
                }
                // Somebody else was quicker: it takes no place on the shelf that the next page would have to skip.
                Requeued::Unknown => continue,
                Requeued::Superseded if args.drop_void => {
                    void.push(parked);
                    continue;
                }
                Requeued::Superseded => void_text(parked.notice.kind),
                Requeued::NoRoute => "its route is gone; add it again with namespace apply --route, or drop it",
            };
            left += 1;
            let id = mask.show(&parked.notice.id);
            say(format_args!("{} of {id} stays parked: {why}", parked.event_id()));
        }
        dropped += discard(&namespace, shelf, &void).await?;
    }
    let note = if args.drop_void { format!(", dropped {dropped}") } else { String::new() };
    print(format_args!("requeued {requeued}{note}"))?;
    match left {
        0 => Ok(selection.found(requeued + dropped > 0)),
        _ => Ok(Exit::Failed),
    }
}

fn void_text(kind: Kind) -> &'static str {
    match kind {
        Kind::Reminder(_) => {
            "it is void by now (superseded): its deadline was renewed or removed, or its time has passed; drop it, or \
             give --drop-void"
        }
        Kind::Cleanup(_) => {
            "it is void by now (superseded): its id is armed again or has another open cleanup; drop it, or give \
             --drop-void"
        }
    }
}

async fn drop_parked(forewarn: &Forewarn, shelf: Shelf, args: DropArgs) -> anyhow::Result<Exit> {
    let selection = args.selection;
    let namespace = forewarn.namespace(selection.namespace.clone());
    if selection.which.all && !args.yes {
        let count = count(&namespace, shelf, &selection).await?;
        let what = if shelf == Shelf::Dead { "dead letters" } else { "reviews" };
        say(format_args!(
            "would drop {count} {what} of {} for good; look at them with list, and add --yes to drop them",
            selection.namespace
        ));
        return Ok(Exit::done_if(count == 0));
    }
    let mut dropped = 0_u64;
    loop {
        let entries = selection.page(&namespace, shelf, 0).await?;
        if entries.is_empty() {
            break;
        }
        dropped += discard(&namespace, shelf, &entries).await?;
    }
    print(format_args!("dropped {dropped}"))?;
    Ok(selection.found(dropped > 0))
}

async fn count(namespace: &Namespace, shelf: Shelf, selection: &Selection) -> anyhow::Result<u64> {
    if selection.route.is_none() {
        // The total counts every route.
        return Ok(namespace.parked(shelf, &ParkedQuery { limit: 1, ..ParkedQuery::default() }).await?.total);
    }
    let mut count = 0;
    loop {
        match u32::try_from(selection.page(namespace, shelf, count).await?.len())? {
            0 => return Ok(count.into()),
            more => count += more,
        }
    }
}

async fn discard(namespace: &Namespace, shelf: Shelf, parked: &[Parked]) -> anyhow::Result<u64> {
    if parked.is_empty() {
        return Ok(0);
    }
    let answers = namespace.discard(shelf, parked).await?;
    Ok(u64::try_from(answers.iter().filter(|was_there| **was_there).count())?)
}
