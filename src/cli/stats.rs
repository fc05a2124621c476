//! `stats`: how much of what there is, in one namespace or in all.

use std::time::Duration;

use clap::Args;
use forewarn::{Forewarn, Name, StoreError, model::format_span, store::Stats};
use serde::Serialize;
use serde_json::json;

use super::{
    args,
    exit::{self, Exit},
    output::{paused_text, print, print_json, printable, say},
    pauses::rates_text,
};

/// Count what is armed, pending, open, dead and done
///
/// Of all namespaces if none is given; one that cannot be read is listed with its error, and the exit status is 1.
#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// The namespace; all if not given
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Option<Name>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Carries out `stats`.
pub(super) async fn stats(forewarn: &Forewarn, args: StatsArgs) -> anyhow::Result<Exit> {
    if let Some(name) = args.namespace {
        let stats = forewarn.namespace(name).stats().await?;
        if args.json {
            print_json(&stats)?
        } else {
            print(stats_text(&stats))?
        }
        return Ok(Exit::Done);
    }
    let (mut all, mut exit) = (Vec::new(), Exit::Done);
    for registered in forewarn.namespaces().await? {
        match forewarn.namespace(registered.name.clone()).stats().await {
            Ok(stats) => all.push(Counted::Stats(stats)),
            // It would be the same for all others.
            Err(error @ StoreError::Unavailable { .. }) => return Err(error.into()),
            Err(error) => {
                let error = exit::describe(&error.into());
                all.push(Counted::Broken { namespace: registered.name, error });
                exit = Exit::Failed;
            }
        }
    }
    if args.json {
        print_json(&json!({ "namespaces": all }))?;
    } else if all.is_empty() {
        say("no namespaces; create one with: forewarn namespace apply NS");
    } else {
        print(all.iter().map(Counted::text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(exit)
}

/// One namespace among all.
#[derive(Serialize)]
#[serde(untagged)]
enum Counted {
    Stats(Stats),
    Broken { namespace: Name, error: String },
}

impl Counted {
    fn text(&self) -> String {
        match self {
            Self::Stats(stats) => stats_text(stats),
            Self::Broken { namespace, error } => format!("{namespace}\n  error        {}", printable(error)),
        }
    }
}

/// In the words of the JSON.
fn stats_text(stats: &Stats) -> String {
    let Stats { armed, overdue, open, dead, review, quarantined, .. } = stats;
    let mut lines = vec![
        stats.namespace.to_string(),
        format!("  now          armed {armed}, overdue {overdue}, open {open}"),
        format!("  parked       dead {dead}, review {review}, quarantined {quarantined}"),
    ];
    if let Some(paused) = paused_text(&stats.paused) {
        lines.push(format!("  paused       {paused}"));
    }
    if let Some(rates) = rates_text(stats.catching_up) {
        lines.push(format!("  catching up  {rates}"));
    }
    for route in &stats.routes {
        let oldest = route.oldest_due_ms.map(|ms| Duration::from_millis(ms.unsigned_abs()));
        let oldest = oldest.map(|span| format!(", oldest due for {}", format_span(span)));
        let paused = paused_text(&route.paused).map(|paused| format!("; paused {paused}"));
        let rates = rates_text(route.catching_up).map(|rates| format!("; catching up {rates}"));
        lines.push(format!(
            "  route {:<7}pending {}, due {}{}{}{}",
            format!("{} ", route.route),
            route.pending,
            route.due,
            oldest.unwrap_or_default(),
            paused.unwrap_or_default(),
            rates.unwrap_or_default()
        ));
    }
    let c = &stats.counters;
    lines.push(format!(
        "  so far       handed_out {}, acked {}, failed {}, lapsed {}, dead {}, review {}, quarantined {}",
        c.handed_out, c.acked, c.failed, c.lapsed, c.dead, c.review, c.quarantined
    ));
    let d = &c.dropped;
    lines.push(format!(
        "  dropped      superseded {}, expired {}, coalesced {}, lead {}; skipped {}",
        d.superseded, d.expired, d.coalesced, d.lead, c.skipped
    ));
    if c.resynced + c.persisted + c.gone > 0 {
        lines.push(format!("  keys         resynced {}, persisted {}, gone {}", c.resynced, c.persisted, c.gone));
    }
    lines.join("\n")
}
