//! Commands that change one deadline: `track`, `renew`, `remove`, `expire`.
//!
//! Each prints one line whose first word is the store's answer, or the same as JSON. What was asked for and did not happen
//! is exit 1.

use anyhow::Context as _;
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use forewarn::{
    ExpiresAt, Forewarn, Id, Invalid, Mode, Name, Namespace,
    model::{IdMask, Late, Renew, ShownId},
    store::{Expired, Removed, Renewed, Replaced, StoreError, Tracked},
};
use serde::{Serialize, de::IgnoredAny};

use super::{
    args::{self, IdArg, NewIdArg, When},
    exit::Exit,
    output::{instant, print, print_json, say},
};

/// Track a deadline, or move one that is tracked
///
/// Prints created, moved, unchanged, kept (mode extend_only met a later expiry) or exists (mode create met an armed
/// id; exit 1). The payload, any JSON, comes with every reminder and with the cleanup. Not given, it stays as it is
/// when a deadline is moved, and a new life starts without.
#[derive(Debug, Args)]
#[command(override_usage = "forewarn track [OPTIONS] NS ID (--in SPAN | --at TIME | --at-ms MS)")]
pub(super) struct TrackArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    #[command(flatten)]
    id: NewIdArg,
    #[command(flatten)]
    when: When,
    /// JSON handed to the handlers of its notices
    #[arg(long, value_name = "JSON", value_parser = payload)]
    payload: Option<String>,
    /// What to do with an id that is armed already
    #[arg(long, value_name = "WORD", default_value = "upsert", value_parser = PossibleValuesParser::new(["upsert", "create", "extend_only"])
        .try_map(|word| word.parse::<Mode>()))]
    mode: Mode,
    /// Remove this id in the same step: a session whose id rotates
    #[arg(long, value_name = "OLD", value_parser = args::id_parser())]
    replaces: Option<Id>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Move the expiry of an armed deadline; never creates one
///
/// Prints renewed or unchanged; expired (too late: its expiry and grace have passed) or unknown are exit 1.
#[derive(Debug, Args)]
#[command(override_usage = "forewarn renew [OPTIONS] NS ID (--in SPAN | --at TIME | --at-ms MS)")]
pub(super) struct RenewArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    #[command(flatten)]
    id: IdArg,
    #[command(flatten)]
    when: When,
    /// JSON in place of the payload it has
    #[arg(long, value_name = "JSON", value_parser = payload)]
    payload: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// A command on one deadline that needs nothing else.
#[derive(Debug, Args)]
pub(super) struct EndArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// One deadline of one namespace.
#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    pub(super) namespace: Name,
    #[command(flatten)]
    pub(super) id: IdArg,
}

/// Checked here, stored as it was written.
fn payload(text: &str) -> Result<String, Invalid> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|e| {
        let fix = "put single quotes around it, so that the shell leaves it alone";
        Invalid::new("payload", format!("is not JSON ({e}); {fix}"))
    })?;
    Ok(text.to_owned())
}

/// What became of one deadline.
#[derive(Debug, Serialize)]
struct Answer {
    namespace: Name,
    #[serde(flatten)]
    id: ShownId,
    answer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    already_expired: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<bool>,
    #[serde(skip)]
    line: String,
}

impl Answer {
    fn new(namespace: &Name, id: ShownId, answer: &'static str, line: impl Into<String>) -> Self {
        Self {
            namespace: namespace.clone(),
            id,
            answer,
            expires_at: None,
            already_expired: None,
            replaced: None,
            line: line.into(),
        }
    }

    /// The same, of a deadline that has this expiry now.
    fn expiring(self, at: ExpiresAt) -> Self {
        Self { expires_at: Some(instant(at.as_millis())), ..self }
    }

    fn tell(&self, json: bool) -> anyhow::Result<()> {
        if json { print_json(self) } else { Ok(print(&self.line)?) }
    }
}

/// Carries out `track`.
pub(super) async fn track(forewarn: &Forewarn, args: TrackArgs) -> anyhow::Result<Exit> {
    let (name, id) = (args.namespace, args.id.into_id()?);
    let at = args.when.resolve(forewarn.store().as_ref()).await?;
    let namespace = forewarn.namespace(name.clone());
    // Before anything is changed: without it nothing could be told.
    let mask = namespace.id_mask().await?;
    let mut call = namespace.track(id.as_bytes(), at).mode(args.mode);
    if let Some(payload) = args.payload {
        call = call.payload_bytes(payload);
    }
    let (tracked, replaced) = match &args.replaces {
        None => (call.await?, None),
        Some(old) => {
            let Replaced { tracked, replaced } = call.replaces(old.as_bytes()).await?;
            (tracked, Some((old, replaced)))
        }
    };
    let hint = hint(&namespace, &tracked, at).await?;
    let new = |answer, line: &str| Answer::new(&name, mask.show(&id), answer, line);
    let until = instant(at.as_millis());
    let (answer, exit) = match tracked {
        Tracked::Created { already_expired } => (moved(new("created", ""), at, already_expired), Exit::Done),
        Tracked::Moved { already_expired } => (moved(new("moved", ""), at, already_expired), Exit::Done),
        Tracked::Unchanged => (new("unchanged", &format!("unchanged, expires at {until}")).expiring(at), Exit::Done),
        Tracked::NoKey => (new("no_key", "no key of this name exists, so nothing could expire"), Exit::Failed),
        Tracked::Kept => (new("kept", "kept, it expires later already"), Exit::Done),
        Tracked::Exists => (new("exists", "exists, nothing was changed"), Exit::Failed),
        Tracked::Rejected(invalid) => return Err(invalid.into()),
        other => (new("other", &format!("answered {other:?}")), Exit::Failed),
    };
    let mut answer = answer;
    if let Some((old, replaced)) = replaced {
        let old = mask.show(old);
        answer.replaced = Some(replaced);
        answer.line += &match replaced {
            true => format!("; replaced {old}"),
            false => format!("; nothing to replace: {old} is not armed"),
        };
    }
    answer.tell(args.json)?;
    if let Some(hint) = hint {
        say(hint);
    }
    Ok(exit)
}

fn moved(answer: Answer, at: ExpiresAt, already_expired: bool) -> Answer {
    let word = if already_expired { "already expired" } else { "expires" };
    let line = format!("{}, {word} at {}", answer.answer, instant(at.as_millis()));
    Answer { line, already_expired: Some(already_expired), ..answer }.expiring(at)
}

/// Which reminders stay silent because the deadline was set inside their leads.
async fn hint(namespace: &Namespace, tracked: &Tracked, at: ExpiresAt) -> Result<Option<String>, StoreError> {
    if !matches!(tracked, Tracked::Created { already_expired: false } | Tracked::Moved { already_expired: false }) {
        return Ok(None);
    }
    let configured = namespace.configured().await?;
    let late = configured.settings.late;
    let silent = match late {
        Late::Crossing => matches!(tracked, Tracked::Created { .. }),
        Late::Skip => true,
        Late::Fire => false,
    };
    if !silent {
        return Ok(None);
    }
    let left = at.as_millis() - namespace.store().now().await?;
    let leads = configured.settings.leads();
    let inside: Vec<_> = leads.iter().rev().filter(|lead| left <= lead.as_millis()).map(ToString::to_string).collect();
    let (that, stays) = if inside.len() == 1 { ("that reminder", "stays") } else { ("those reminders", "stay") };
    let inside = (!inside.is_empty()).then(|| inside.join(", "));
    Ok(inside.map(|leads| format!("inside {leads}: {that} {stays} silent (late is {late})")))
}

/// A namespace with one of its ids, and how that is shown.
async fn known(forewarn: &Forewarn, name: &Name, id: IdArg) -> anyhow::Result<(Namespace, Id, IdMask)> {
    let namespace = forewarn.namespace(name.clone());
    let mask = namespace.id_mask().await?;
    let id = id.resolve(&namespace).await?;
    Ok((namespace, id, mask))
}

/// Carries out `renew`.
pub(super) async fn renew(forewarn: &Forewarn, args: RenewArgs) -> anyhow::Result<Exit> {
    let name = args.namespace;
    let (namespace, id, mask) = known(forewarn, &name, args.id).await?;
    let at = args.when.resolve(forewarn.store().as_ref()).await?;
    let entry = Renew { id: id.clone(), expires_at: at, payload: args.payload.map(String::into_bytes) };
    let answers = namespace.renew_all(&[entry]).await?;
    let new = |answer, line: &str| Answer::new(&name, mask.show(&id), answer, line);
    let until = instant(at.as_millis());
    let (answer, exit) = match answers.into_iter().next().context("the store gave no answer")? {
        Renewed::Renewed => (new("renewed", &format!("renewed, expires at {until}")).expiring(at), Exit::Done),
        Renewed::Unchanged => (new("unchanged", &format!("unchanged, expires at {until}")).expiring(at), Exit::Done),
        Renewed::Expired => (new("expired", "expired, too late to renew; track it to begin a new life"), Exit::Failed),
        Renewed::Unknown => (new("unknown", "unknown, nothing to renew; track it first"), Exit::Failed),
        Renewed::Rejected(invalid) => return Err(invalid.into()),
        other => (new("other", &format!("answered {other:?}")), Exit::Failed),
    };
    answer.tell(args.json)?;
    Ok(exit)
}

/// Carries out `remove`.
pub(super) async fn remove(forewarn: &Forewarn, args: EndArgs) -> anyhow::Result<Exit> {
    let name = args.one.namespace;
    let (namespace, id, mask) = known(forewarn, &name, args.one.id).await?;
    let (answer, line) = match namespace.remove(id.as_bytes()).await? {
        Removed::Removed => ("removed", "removed"),
        Removed::Voided => ("voided", "voided, its cleanup will not run"),
        Removed::Unknown => ("unknown", "unknown, nothing to remove"),
    };
    Answer::new(&name, mask.show(&id), answer, line).tell(args.json)?;
    Ok(Exit::Done)
}

/// Carries out `expire`.
pub(super) async fn expire(forewarn: &Forewarn, args: EndArgs) -> anyhow::Result<Exit> {
    let name = args.one.namespace;
    let (namespace, id, mask) = known(forewarn, &name, args.one.id).await?;
    let (answer, line, exit) = match namespace.expire(id.as_bytes()).await? {
        Expired::Ended => ("ended", "ended", Exit::Done),
        Expired::Open => ("open", "open, it had ended before and its cleanup is not settled yet", Exit::Done),
        Expired::Unknown => ("unknown", "unknown, nothing to end", Exit::Failed),
    };
    Answer::new(&name, mask.show(&id), answer, line).tell(args.json)?;
    Ok(exit)
}
