//! Commands that change one deadline: `track`, `renew`, `remove`, `expire`.
//!
//! Each prints one line whose first word is the store's answer. What was asked for and did not happen is exit 1.

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use forewarn::{
    ExpiresAt, Forewarn, Id, Mode, Name,
    store::{Expired, Removed, Renewed, Replaced, Tracked},
};
use serde::de::IgnoredAny;

use super::{
    args::{self, IdArg, When},
    exit::{Exit, Usage},
    output::{instant, print},
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
    id: IdArg,
    #[command(flatten)]
    when: When,
    /// JSON handed to the handlers of its notices
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// What to do with an id that is armed already
    #[arg(long, value_name = "WORD", default_value = "upsert", value_parser = PossibleValuesParser::new(["upsert", "create", "extend_only"])
        .try_map(|word| word.parse::<Mode>()))]
    mode: Mode,
    /// Remove this id in the same step: a session whose id rotates
    #[arg(long, value_name = "OLD", value_parser = args::id_parser())]
    replaces: Option<Id>,
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

/// Carries out `track`.
pub(super) async fn track(forewarn: &Forewarn, args: TrackArgs) -> anyhow::Result<Exit> {
    let id = args.id.into_id()?;
    if let Some(payload) = &args.payload {
        // Checked here, stored as it was written.
        serde_json::from_str::<IgnoredAny>(payload).map_err(|e| {
            Usage(format!("payload is not JSON ({e}); put single quotes around it, so that the shell leaves it alone"))
        })?;
    }
    let at = args.when.resolve(forewarn.store().as_ref()).await?;
    let mut call = forewarn.namespace(args.namespace).track(id.as_bytes(), at).mode(args.mode);
    if let Some(payload) = args.payload {
        call = call.payload_bytes(payload);
    }
    let Some(old) = args.replaces else {
        return tracked(call.await?, at, "");
    };
    let Replaced { tracked: answer, replaced } = call.replaces(old.as_bytes()).await?;
    let note = if replaced { format!("; replaced {old}") } else { format!("; nothing to replace: {old} is not armed") };
    tracked(answer, at, &note)
}

fn tracked(answer: Tracked, at: ExpiresAt, note: &str) -> anyhow::Result<Exit> {
    let at = instant(at.as_millis());
    let (line, exit) = match answer {
        Tracked::Created { already_expired: false } => (format!("created, expires at {at}"), Exit::Done),
        Tracked::Created { already_expired: true } => (format!("created, already expired at {at}"), Exit::Done),
        Tracked::Moved { already_expired: false } => (format!("moved, expires at {at}"), Exit::Done),
        Tracked::Moved { already_expired: true } => (format!("moved, already expired at {at}"), Exit::Done),
        Tracked::Unchanged => (format!("unchanged, expires at {at}"), Exit::Done),
        Tracked::Kept => ("kept, it expires later already".to_owned(), Exit::Done),
        Tracked::Exists => ("exists, nothing was changed".to_owned(), Exit::Failed),
        Tracked::Rejected(invalid) => return Err(invalid.into()),
        other => (format!("answered {other:?}"), Exit::Failed),
    };
    print(format_args!("{line}{note}"))?;
    Ok(exit)
}

/// Carries out `renew`.
pub(super) async fn renew(forewarn: &Forewarn, args: RenewArgs) -> anyhow::Result<Exit> {
    let id = args.id.into_id()?;
    let at = args.when.resolve(forewarn.store().as_ref()).await?;
    let until = instant(at.as_millis());
    let (line, exit) = match forewarn.namespace(args.namespace).renew(id.as_bytes(), at).await? {
        Renewed::Renewed => (format!("renewed, expires at {until}"), Exit::Done),
        Renewed::Unchanged => (format!("unchanged, expires at {until}"), Exit::Done),
        Renewed::Expired => ("expired, too late to renew; track it to begin a new life".to_owned(), Exit::Failed),
        Renewed::Unknown => ("unknown, nothing to renew; track it first".to_owned(), Exit::Failed),
        Renewed::Rejected(invalid) => return Err(invalid.into()),
        other => (format!("answered {other:?}"), Exit::Failed),
    };
    print(line)?;
    Ok(exit)
}

/// Carries out `remove`.
pub(super) async fn remove(forewarn: &Forewarn, args: OneArgs) -> anyhow::Result<Exit> {
    let id = args.id.into_id()?;
    print(match forewarn.namespace(args.namespace).remove(id.as_bytes()).await? {
        Removed::Removed => "removed",
        Removed::Voided => "voided, its cleanup will not run",
        Removed::Unknown => "unknown, nothing to remove",
    })?;
    Ok(Exit::Done)
}

/// Carries out `expire`.
pub(super) async fn expire(forewarn: &Forewarn, args: OneArgs) -> anyhow::Result<Exit> {
    let id = args.id.into_id()?;
    let (line, exit) = match forewarn.namespace(args.namespace).expire(id.as_bytes()).await? {
        Expired::Ended => ("ended", Exit::Done),
        Expired::Open => ("open, it had ended before and its cleanup is not settled yet", Exit::Done),
        Expired::Unknown => ("unknown, nothing to end", Exit::Failed),
    };
    print(line)?;
    Ok(exit)
}
