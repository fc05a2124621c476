//! Commands on namespaces: `namespace list`, `show`, `pause`, `resume`, `forget`. For `namespace apply` see `apply`.

use std::num::NonZeroU32;

use clap::{Args, Subcommand};
use forewarn::{
    Forewarn, Name, Route, Settings,
    model::Pause,
    store::{Configured, Stats},
};
use serde::Serialize;
use serde_json::json;

use super::{
    apply, args,
    exit::Exit,
    output::{print, print_json, print_table, say},
    pauses::{CatchUps, Pauses},
    settings::{configured_text, field_text},
};

/// Create, change, look at, pause and forget namespaces
#[derive(Debug, Subcommand)]
pub(super) enum NamespaceCommand {
    Apply(Box<apply::ApplyArgs>),
    /// List all namespaces
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show the settings and routes in force
    Show {
        /// The namespace
        #[arg(value_name = "NS", value_parser = args::namespace)]
        namespace: Name,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Stop notices, for all workers; while cleanups stand still, overdue ids may be renewed
    Pause(PauseArgs),
    /// Let notices flow again, what gathered meanwhile no faster than --rate
    Resume(ResumeArgs),
    /// Delete a namespace with everything in it
    ///
    /// Refused while anything in it is armed, open or parked, unless --force is given. Stop its workers first: one that
    /// runs on would create it again.
    Forget {
        /// The namespace
        #[arg(value_name = "NS", value_parser = args::namespace)]
        namespace: Name,
        /// Delete also what is armed, open or parked
        #[arg(long)]
        force: bool,
    },
}

/// What to pause or to resume; both classes if neither is named
#[derive(Debug, Args)]
pub(super) struct PauseArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    /// Only this route; the others go on
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    route: Option<Name>,
    /// Only reminders
    #[arg(long)]
    reminders: bool,
    /// Only cleanups
    #[arg(long)]
    cleanups: bool,
}

/// What to resume, and how fast
#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    what: PauseArgs,
    /// Notices a second of each class, until what gathered during the pause is worked off; "unlimited" lets all flow at once
    #[arg(long, value_name = "N", default_value = "1000", value_parser = rate)]
    rate: Rate,
}

/// Notices a second; `None` does not limit them.
#[derive(Debug, Clone, Copy)]
struct Rate(Option<NonZeroU32>);

fn rate(text: &str) -> Result<Rate, String> {
    match text {
        "unlimited" => Ok(Rate(None)),
        number => match number.parse() {
            Ok(rate) => Ok(Rate(NonZeroU32::new(rate))),
            Err(_) => Err("write a number of notices a second, or unlimited".to_owned()),
        },
    }
}

/// Carries out a `namespace` command.
pub(super) async fn run(forewarn: &Forewarn, command: NamespaceCommand) -> anyhow::Result<Exit> {
    match command {
        NamespaceCommand::Apply(args) => apply::apply(forewarn, *args).await,
        NamespaceCommand::List { json } => list(forewarn, json).await,
        NamespaceCommand::Show { namespace, json } => show(forewarn, namespace, json).await,
        NamespaceCommand::Pause(args) => pause(forewarn, args, true, None).await,
        NamespaceCommand::Resume(args) => pause(forewarn, args.what, false, args.rate.0).await,
        NamespaceCommand::Forget { namespace, force } => forget(forewarn, namespace, force).await,
    }
}

async fn list(forewarn: &Forewarn, json: bool) -> anyhow::Result<Exit> {
    let namespaces = forewarn.namespaces().await?;
    if json {
        print_json(&json!({ "namespaces": namespaces }))?;
    } else if namespaces.is_empty() {
        say("no namespaces; create one with: forewarn namespace apply NS");
    } else {
        let rows = namespaces.iter().map(|one| [one.name.to_string(), one.shards.to_string()]);
        print_table(["namespace", "shards"], rows)?;
    }
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct ShownJson<'a> {
    namespace: &'a Name,
    version: &'a str,
    settings: &'a Settings,
    routes: &'a [Route],
    #[serde(flatten)]
    pauses: Pauses,
    #[serde(flatten)]
    catch_ups: CatchUps,
}

async fn show(forewarn: &Forewarn, name: Name, json: bool) -> anyhow::Result<Exit> {
    let namespace = forewarn.namespace(name.clone());
    let configured = namespace.configured().await?;
    let stats = namespace.stats().await?;
    let (pauses, catch_ups) = (Pauses::from(&stats), CatchUps::from(&stats));
    let Configured { version, settings, routes, .. } = &*configured;
    if json {
        print_json(&ShownJson { namespace: &name, version, settings, routes, pauses, catch_ups })?;
    } else {
        let pauses = pauses.texts().into_iter().map(|paused| field_text("paused", &paused));
        let catch_ups = catch_ups.texts().into_iter().map(|rates| field_text("catching up", &rates));
        let lines = [configured_text(&name, &configured)].into_iter().chain(pauses).chain(catch_ups);
        print(lines.collect::<Vec<_>>().join("\n"))?;
    }
    Ok(Exit::Done)
}

async fn pause(forewarn: &Forewarn, args: PauseArgs, paused: bool, rate: Option<NonZeroU32>) -> anyhow::Result<Exit> {
    let both = args.reminders == args.cleanups;
    let pause =
        Pause { route: args.route, reminders: both || args.reminders, cleanups: both || args.cleanups, paused, rate };
    forewarn.namespace(args.namespace.clone()).pause(&pause).await?;
    let classes = match (pause.reminders, pause.cleanups) {
        (true, true) => "reminders and cleanups",
        (true, false) => "reminders",
        _ => "cleanups",
    };
    let word = if paused { "paused" } else { "resumed" };
    let route = pause.route.map(|route| format!(" on route {route}")).unwrap_or_default();
    let rate = rate.map(|rate| format!(", what gathered at {rate} a second")).unwrap_or_default();
    print(format_args!("{word} {classes} of {}{route}{rate}", args.namespace))?;
    Ok(Exit::Done)
}

async fn forget(forewarn: &Forewarn, name: Name, force: bool) -> anyhow::Result<Exit> {
    let namespace = forewarn.namespace(name.clone());
    if !force {
        let Stats { armed, open, dead, review, .. } = namespace.stats().await?;
        if armed + open + dead + review > 0 {
            say(format_args!(
                "namespace {name} is in use: armed {armed}, open cleanups {open}, dead letters {dead}, reviews {review}; \
                 add --force to delete them, too"
            ));
            return Ok(Exit::Failed);
        }
    }
    let was_there = namespace.forget().await?;
    print(if was_there { format!("forgot {name}") } else { format!("unknown, there is no namespace {name}") })?;
    Ok(Exit::done_if(was_there))
}
