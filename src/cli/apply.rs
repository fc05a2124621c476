//! `namespace apply`: a flag for every setting, routes, what changes by it, and what would speak at once.

use std::time::Duration;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use forewarn::{
    Forewarn, LeadTime, Name, Route, Settings, StoreError,
    model::{FirstStart, KeyPattern, Late, OnGone, OnRearm},
    store::{Change, Configured, Preview},
};

use super::{
    args,
    exit::Exit,
    output::{print, say},
    settings::{apply_words, field_text, fields, leads_text, settings_fields},
};

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
    /// Remind this long before expiry; several as in 10m,1m or each with its own --remind
    #[arg(long, value_name = "LEAD", value_delimiter = ',', value_parser = args::lead)]
    remind: Vec<LeadTime>,
    /// Only disarm what expires, with no cleanup
    #[arg(long)]
    no_cleanup: bool,
    /// Time after expiry before the cleanup, in which a renewal still revives
    #[arg(long, value_name = "SPAN", default_value = "0s", value_parser = args::span("grace"))]
    grace: Duration,
    /// What a reminder does when its deadline is set inside its lead
    #[arg(long, value_name = "WORD", default_value = "crossing", value_parser = PossibleValuesParser::new(["crossing", "skip", "fire"])
        .try_map(|word| word.parse::<Late>()))]
    late: Late,
    /// How long a claimed notice belongs to its worker
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = args::span("lease"))]
    lease: Duration,
    /// The ids are keys of the same server whose own TTL is the truth
    #[arg(long)]
    key_backed: bool,
    /// Key-backed, and only keys that match this are ever read, as in 'user_session:*'; may be repeated [default: all]
    #[arg(long, value_name = "PATTERN", hide_short_help = true)]
    key: Vec<KeyPattern>,
    /// Let track, renew, remove and expire change the keys, too
    #[arg(long, hide_short_help = true)]
    manage_keys: bool,
    /// What a key that vanishes before its time does
    #[arg(long, value_name = "WORD", default_value = "cleanup", hide_short_help = true,
        value_parser = PossibleValuesParser::new(["cleanup", "drop"]).try_map(|word| word.parse::<OnGone>()))]
    on_gone: OnGone,
    /// How often keys inside the largest lead are looked at again
    #[arg(long, value_name = "SPAN", default_value = "10s", hide_short_help = true,
        value_parser = args::span("recheck_interval"))]
    recheck_interval: Duration,
    /// Number of parts; fixed for the life of the namespace
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = args::shards)]
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
    #[arg(long, value_name = "SPAN", value_parser = args::span("min_repeat"))]
    min_repeat: Option<Duration>,
    /// Add or change a route: NAME, NAME:reminders or NAME:cleanups
    #[arg(long, value_name = "ROUTE")]
    route: Vec<Route>,
    /// Remove a route
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    drop_route: Vec<Name>,
    /// Say what would change and what would speak at once, and change nothing
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
        value_parser = args::span("clock_tolerance"))]
    clock_tolerance: Duration,
    /// About how many ended notices each shard remembers, for show [0: none]
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    history: u32,
    /// The ids are secrets, such as session cookies: show people and logs only a handle of each
    #[arg(long, hide_short_help = true)]
    sensitive_ids: bool,
    /// A number for these settings; lower ones never overwrite higher ones
    #[arg(long, value_name = "N", hide_short_help = true)]
    revision: Option<u64>,
}

/// Carries out `namespace apply`.
pub(super) async fn apply(forewarn: &Forewarn, args: ApplyArgs) -> anyhow::Result<Exit> {
    let name = args.namespace.clone();
    let namespace = forewarn.namespace(name.clone());
    let before = match namespace.configured().await {
        Ok(configured) => Some(configured),
        Err(StoreError::Unconfigured { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let dry_run = args.dry_run;
    let change = args.into_change();
    if dry_run {
        let preview = namespace.preview(&change).await?;
        print(preview_text(&name, &preview, before.as_deref(), &change))?;
        warn_of_losses(&name, before.as_deref(), &change);
        return Ok(Exit::Done);
    }
    let applied = namespace.configure(&change).await?;
    let word = match (applied.created, applied.changed) {
        (true, _) => "created",
        (false, true) => "changed",
        (false, false) => "unchanged",
    };
    let before_fields = before.as_deref().filter(|_| applied.changed).map(fields);
    let mut lines = vec![format!("{word} {name}")];
    for (field, value) in fields(&applied.configured) {
        let old = before_fields.as_deref().and_then(|fields| value_of(fields, field)).filter(|old| **old != value);
        lines.push(field_text(field, &old.map_or(value.clone(), |old| format!("{old} → {value}"))));
    }
    print(lines.join("\n"))?;
    warn_of_losses(&name, before.as_deref(), &change);
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
        settings.key_backed = self.key_backed || !self.key.is_empty();
        settings.keys = self.key;
        settings.manage_keys = self.manage_keys;
        settings.on_gone = self.on_gone;
        settings.recheck_interval = self.recheck_interval;
        settings.history = self.history;
        settings.sensitive_ids = self.sensitive_ids;
        settings.revision = self.revision;
        Change {
            settings: Some(settings),
            first_start: self.first_start,
            routes: self.route,
            drop_routes: self.drop_route,
            ..Change::default()
        }
    }
}

fn preview_text(name: &Name, preview: &Preview, before: Option<&Configured>, change: &Change) -> String {
    let word = match (preview.created, preview.changed) {
        (true, _) => "would create",
        (false, true) => "would change",
        (false, false) => "would change nothing in",
    };
    let mut lines = vec![format!("{word} {name}")];
    if let (Some(before), Some(settings)) = (before, &change.settings) {
        let old = settings_fields(&before.settings);
        for (field, new) in settings_fields(settings) {
            match value_of(&old, field) {
                Some(old) if *old == new => {}
                Some(old) => lines.push(field_text(field, &format!("{old} → {new}"))),
                None => lines.push(field_text(field, &new)),
            }
        }
        let known = |route: &Route| before.routes.contains(route);
        lines.extend(
            change.routes.iter().filter(|route| !known(route)).map(|one| field_text("route", &one.to_string())),
        );
        lines.extend(change.drop_routes.iter().map(|route| field_text("drop_route", route.as_str())));
    }
    lines.push("at once would speak".to_owned());
    for (lead, count) in &preview.reminders {
        lines.push(format!("  reminders {lead} before expiry: {count}"));
    }
    lines.push(format!("  cleanups: {}", preview.cleanups));
    lines.join("\n")
}

/// What a field of such a text said.
fn value_of<'f>(fields: &'f [(&'static str, String)], field: &str) -> Option<&'f String> {
    fields.iter().find(|(name, _)| *name == field).map(|(_, value)| value)
}

/// Settings are declared whole, so a flag that was forgotten takes something away.
fn warn_of_losses(name: &Name, before: Option<&Configured>, change: &Change) {
    let (Some(Configured { settings: old, .. }), Some(new)) = (before, &change.settings) else { return };
    let gone: Vec<_> = old.leads().into_iter().rev().filter(|lead| !new.remind.contains(lead)).collect();
    let cleanup = (old.cleanup && !new.cleanup).then_some("no cleanup");
    let reminders = (!gone.is_empty()).then(|| format!("no reminder {} before expiry", leads_text(&gone)));
    let keys = (old.key_backed && !new.key_backed).then_some("no keys behind its ids");
    let managed = (old.manage_keys && new.key_backed && !new.manage_keys).then_some("no leave to change keys");
    let history = (old.history > 0 && new.history == 0).then_some("no history");
    let others = [cleanup, keys, managed, history].into_iter().flatten().map(str::to_owned);
    let lost: Vec<_> = reminders.into_iter().chain(others).collect();
    if !lost.is_empty() {
        say(format_args!(
            "warning: {name} has {} with these settings; it had: {}",
            lost.join(" and "),
            apply_words(name, old)
        ));
    }
}
