//! Commands on namespaces: `namespace apply`, `list`, `show`, `pause`, `resume`, `forget`.

use std::time::Duration;

use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use forewarn::{
    Forewarn, LeadTime, Name, Route, Settings,
    model::{FirstStart, Late, OnRearm, Pause, format_span, parse_span},
    store::{Change, Configured, Preview, Stats},
};
use serde::Serialize;
use serde_json::json;

use super::{
    args,
    exit::Exit,
    output::{paused_text, print, print_json, say, table},
};

/// Create, change, look at, pause and forget namespaces
#[derive(Debug, Subcommand)]
pub(super) enum NamespaceCommand {
    Apply(Box<ApplyArgs>),
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
    /// Let notices flow again
    Resume(PauseArgs),
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

/// Create a namespace or change its settings
///
/// The settings are declarative: a flag that is not given means its default. Routes are not part of them: --route adds
/// or changes one, --drop-route removes one (its open cleanups are settled as dropped), the others stay. A new
/// namespace without any --route gets the route main.
#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    /// Remind this long before expiry; give it once for each reminder
    #[arg(long, value_name = "LEAD")]
    remind: Vec<LeadTime>,
    /// Only disarm what expires, with no cleanup
    #[arg(long)]
    no_cleanup: bool,
    /// Time after expiry before the cleanup, in which a renewal still revives
    #[arg(long, value_name = "SPAN", default_value = "0s", value_parser = |text: &str| parse_span("grace", text))]
    grace: Duration,
    /// What a reminder does when its deadline is set inside its lead
    #[arg(long, value_name = "WORD", default_value = "crossing", value_parser = PossibleValuesParser::new(["crossing", "skip", "fire"])
        .try_map(|word| word.parse::<Late>()))]
    late: Late,
    /// How long a claimed notice belongs to its worker
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = |text: &str| parse_span("lease", text))]
    lease: Duration,
    /// The ids are real keys whose own TTL is the truth
    #[arg(long, hide_short_help = true)]
    key_backed: bool,
    /// Number of parts; fixed for the life of the namespace
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: u16,
    /// Whether ids found inside a lead when the namespace is new are reminded
    #[arg(long, value_name = "WORD", default_value = "speak", value_parser = PossibleValuesParser::new(["speak", "silent"])
        .try_map(|word| word.parse::<FirstStart>()))]
    first_start: FirstStart,
    /// What a new life does to an open cleanup of an earlier one
    #[arg(long, value_name = "WORD", default_value = "supersede", value_parser = PossibleValuesParser::new(["supersede", "deliver"])
        .try_map(|word| word.parse::<OnRearm>()))]
    on_rearm: OnRearm,
    /// Shortest time between two reminders by renewal of the same id and lead [default: the lead]
    #[arg(long, value_name = "SPAN", value_parser = |text: &str| parse_span("min_repeat", text))]
    min_repeat: Option<Duration>,
    /// Add or change a route: NAME, NAME:reminders or NAME:cleanups
    #[arg(long, value_name = "ROUTE")]
    route: Vec<Route>,
    /// Remove a route
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    drop_route: Vec<Name>,
    /// Say what would speak at once, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Largest payload accepted, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16 * 1024, hide_short_help = true)]
    max_payload: u32,
    /// Vanished workers before a notice becomes a dead letter
    #[arg(long, value_name = "N", default_value_t = 10, hide_short_help = true)]
    max_deliveries: u32,
    /// How far the store's clock may step back without repeats
    #[arg(long, value_name = "SPAN", default_value = "5s", hide_short_help = true,
        value_parser = |text: &str| parse_span("clock_tolerance", text))]
    clock_tolerance: Duration,
    /// A number for these settings; lower ones never overwrite higher ones
    #[arg(long, value_name = "N", hide_short_help = true)]
    revision: Option<u64>,
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

/// Carries out a `namespace` command.
pub(super) async fn run(forewarn: &Forewarn, command: NamespaceCommand) -> anyhow::Result<Exit> {
    match command {
        NamespaceCommand::Apply(args) => apply(forewarn, *args).await,
        NamespaceCommand::List { json } => list(forewarn, json).await,
        NamespaceCommand::Show { namespace, json } => show(forewarn, namespace, json).await,
        NamespaceCommand::Pause(args) => pause(forewarn, args, true).await,
        NamespaceCommand::Resume(args) => pause(forewarn, args, false).await,
        NamespaceCommand::Forget { namespace, force } => forget(forewarn, namespace, force).await,
    }
}

async fn apply(forewarn: &Forewarn, args: ApplyArgs) -> anyhow::Result<Exit> {
    let name = args.namespace.clone();
    let namespace = forewarn.namespace(name.clone());
    let dry_run = args.dry_run;
    let change = args.into_change();
    if dry_run {
        print(preview_text(&name, &namespace.preview(&change).await?))?;
        return Ok(Exit::Done);
    }
    let applied = namespace.configure(&change).await?;
    let word = match (applied.created, applied.changed) {
        (true, _) => "created",
        (false, true) => "changed",
        (false, false) => "unchanged",
    };
    print(format_args!("{word} {}", configured_text(&name, &applied.configured)))?;
    Ok(Exit::Done)
}

impl ApplyArgs {
    fn into_change(self) -> Change {
        let mut settings = Settings::default();
        settings.remind = self.remind;
        settings.cleanup = !self.no_cleanup;
        settings.grace = self.grace;
        settings.late = self.late;
        settings.on_rearm = self.on_rearm;
        settings.min_repeat = self.min_repeat;
        settings.lease = self.lease;
        settings.clock_tolerance = self.clock_tolerance;
        settings.max_deliveries = self.max_deliveries;
        settings.max_payload = self.max_payload;
        settings.shards = self.shards;
        settings.key_backed = self.key_backed;
        settings.revision = self.revision;
        Change {
            settings: Some(settings),
            first_start: self.first_start,
            routes: self.route,
            drop_routes: self.drop_route,
        }
    }
}

fn preview_text(name: &Name, preview: &Preview) -> String {
    let word = match (preview.created, preview.changed) {
        (true, _) => "would create",
        (false, true) => "would change",
        (false, false) => "would change nothing in",
    };
    let mut lines = vec![format!("{word} {name}; at once would speak:")];
    for (lead, count) in &preview.reminders {
        lines.push(format!("  reminders {lead} before expiry: {count}"));
    }
    lines.push(format!("  cleanups: {}", preview.cleanups));
    lines.join("\n")
}

async fn list(forewarn: &Forewarn, json: bool) -> anyhow::Result<Exit> {
    let namespaces = forewarn.namespaces().await?;
    if json {
        print_json(&json!({ "namespaces": namespaces }))?;
    } else if namespaces.is_empty() {
        say("no namespaces; create one with: forewarn namespace apply NS");
    } else {
        let rows = namespaces.iter().map(|one| [one.name.to_string(), one.shards.to_string()]);
        print(table(["namespace", "shards"], rows))?;
    }
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct ShownJson<'a> {
    namespace: &'a Name,
    #[serde(flatten)]
    configured: &'a Configured,
}

async fn show(forewarn: &Forewarn, name: Name, json: bool) -> anyhow::Result<Exit> {
    let configured = forewarn.namespace(name.clone()).configured().await?;
    if json {
        print_json(&ShownJson { namespace: &name, configured: &configured })?;
    } else {
        print(configured_text(&name, &configured))?;
    }
    Ok(Exit::Done)
}

fn configured_text(name: &Name, configured: &Configured) -> String {
    let settings = &configured.settings;
    let leads: Vec<_> = settings.leads().iter().rev().map(ToString::to_string).collect();
    let routes: Vec<_> = configured.routes.iter().map(ToString::to_string).collect();
    let mut lines = vec![name.to_string()];
    let mut field = |name: &str, value: String| lines.push(format!("  {name:<17}{value}"));
    field("remind", if leads.is_empty() { "never".to_owned() } else { leads.join(", ") });
    field("cleanup", if settings.cleanup { "yes" } else { "no" }.to_owned());
    field("grace", format_span(settings.grace));
    field("late", settings.late.to_string());
    field("min_repeat", settings.min_repeat.map_or_else(|| "the lead".to_owned(), format_span));
    field("on_rearm", settings.on_rearm.to_string());
    field("lease", format_span(settings.lease));
    field("clock_tolerance", format_span(settings.clock_tolerance));
    field("max_deliveries", settings.max_deliveries.to_string());
    field("max_payload", format!("{} bytes", settings.max_payload));
    field("shards", settings.shards.to_string());
    if let Some(revision) = settings.revision {
        field("revision", revision.to_string());
    }
    field("routes", routes.join(", "));
    if let Some(paused) = paused_text(&configured.paused) {
        field("paused", paused.to_owned());
    }
    lines.join("\n")
}

async fn pause(forewarn: &Forewarn, args: PauseArgs, paused: bool) -> anyhow::Result<Exit> {
    let both = args.reminders == args.cleanups;
    let pause = Pause { route: args.route, reminders: both || args.reminders, cleanups: both || args.cleanups, paused };
    forewarn.namespace(args.namespace.clone()).pause(&pause).await?;
    let classes = match (pause.reminders, pause.cleanups) {
        (true, true) => "reminders and cleanups",
        (true, false) => "reminders",
        _ => "cleanups",
    };
    let word = if paused { "paused" } else { "resumed" };
    let route = pause.route.map(|route| format!(" on route {route}")).unwrap_or_default();
    print(format_args!("{word} {classes} of {}{route}", args.namespace))?;
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
