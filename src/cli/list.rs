//! `list`: armed deadlines by expiry, in pages.

use std::time::Duration;

use clap::Args;
use forewarn::{
    Forewarn, Name,
    model::{Cursor, ShownId},
    store::ListQuery,
};
use serde::Serialize;
use serde_json::json;

use super::{
    args::{self, Reveal},
    exit::Exit,
    output::{distance, instant, print_json, print_table, say},
};

/// List armed deadlines by expiry
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    /// Only what expires within this time from now, as in 10m
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = args::span("within"))]
    within: Option<Duration>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Go on after the page that printed this cursor
    #[arg(long, value_name = "CURSOR")]
    after: Option<Cursor>,
    #[command(flatten)]
    reveal: Reveal,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Carries out `list`.
pub(super) async fn list(forewarn: &Forewarn, args: ListArgs) -> anyhow::Result<Exit> {
    let namespace = forewarn.namespace(args.namespace);
    let mask = args.reveal.mask(&namespace).await?;
    let after = match &args.after {
        Some(cursor) => Some(namespace.place_of(cursor).await?),
        None => None,
    };
    let query = ListQuery { within: args.within, after, limit: args.limit };
    let listed = namespace.list(&query).await?.into_iter();
    let listed: Vec<_> = listed.map(|one| (mask.show(&one.id), one.expires_at_ms)).collect();
    // A full page may have a successor; a short one has none.
    let full = usize::try_from(args.limit).is_ok_and(|limit| listed.len() >= limit);
    let cursor = |(last, expires_at_ms): &(ShownId, i64)| Cursor { expires_at_ms: *expires_at_ms, last: last.clone() };
    let next = listed.last().filter(|_| full).map(|last| cursor(last).to_string());
    if args.json {
        let deadlines: Vec<_> = listed.into_iter().map(|(id, ms)| ListedJson { id, expires_at: instant(ms) }).collect();
        print_json(&json!({ "deadlines": deadlines, "next": next }))?;
        return Ok(Exit::Done);
    }
    let now_ms = forewarn.store().now().await?;
    let row = |(id, ms): &(ShownId, i64)| [instant(*ms), distance(*ms, now_ms), id.to_string()];
    print_table(["expires_at", "expires", "id"], listed.iter().map(row))?;
    if let Some(next) = next {
        say(format_args!("there may be more: --after {next}"));
    }
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct ListedJson {
    #[serde(flatten)]
    id: ShownId,
    expires_at: String,
}
