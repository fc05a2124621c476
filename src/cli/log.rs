//! The log: on stderr, as lines for people or as JSON, with a filter that may change while the process runs.

use std::{
    env::VarError,
    io::{self, IsTerminal as _},
};

use forewarn::config::LogFormat;
use tracing_subscriber::{
    Layer as _, Registry,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    reload,
    util::SubscriberInitExt as _,
};

use super::exit::Usage;

/// The filter of the log that has been started.
#[derive(Debug)]
pub(super) struct SetLog(reload::Handle<Targets, Registry>);

impl SetLog {
    /// Takes another filter.
    pub(super) fn set(&self, filter: &str) -> anyhow::Result<()> {
        Ok(self.0.reload(parse("log.filter", filter)?)?)
    }
}

/// Starts the log of a command: `FOREWARN_LOG` is its filter, or this one.
pub(super) fn start_for_command(default: &str) -> anyhow::Result<()> {
    let filter = match std::env::var("FOREWARN_LOG") {
        Ok(filter) if !filter.is_empty() => filter,
        Ok(_) | Err(VarError::NotPresent) => default.to_owned(),
        Err(error @ VarError::NotUnicode(_)) => return Err(Usage(format!("FOREWARN_LOG: {error}")).into()),
    };
    begin(parse("FOREWARN_LOG", &filter)?, LogFormat::Text).map(drop)
}

/// Starts the log with a filter.
pub(super) fn start(filter: &str, format: LogFormat) -> anyhow::Result<SetLog> {
    begin(parse("log.filter", filter)?, format)
}

/// A level, or levels by target: `info`, `warn,forewarn::http=debug`.
pub(super) fn parse(field: &str, filter: &str) -> Result<Targets, Usage> {
    let mut targets = Targets::new();
    for part in filter.split(',').map(str::trim) {
        let (target, level) = part.split_once('=').map_or((None, part), |(target, level)| (Some(target), level));
        // An empty text would be read as a level, too.
        let level = Some(level).filter(|level| !level.is_empty()).and_then(|level| level.parse::<LevelFilter>().ok());
        let level = level.ok_or_else(|| wrong(field, part))?;
        let is_path = |c: char| c.is_ascii_alphanumeric() || "_:-".contains(c);
        targets = match target {
            None => targets.with_default(level),
            Some(target) if !target.is_empty() && target.chars().all(is_path) => targets.with_target(target, level),
            Some(_) => return Err(wrong(field, part)),
        };
    }
    Ok(targets)
}

fn wrong(field: &str, part: &str) -> Usage {
    let part = part.escape_debug();
    Usage(format!(
        "{field} is no log filter: \"{part}\"; give a level (error, warn, info, debug, trace, off), or levels by target as in \
         warn,forewarn::http=debug"
    ))
}

fn begin(filter: Targets, format: LogFormat) -> anyhow::Result<SetLog> {
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).try_init()?;
    Ok(SetLog(handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_or_levels_by_target() {
        for good in ["info", "OFF", "warn,forewarn::http=debug", "forewarn=trace, warn"] {
            parse("log.filter", good).unwrap();
        }
        for bad in ["", "inof", "[[[", "=debug", "a=", "a b=info", "info,", "forewarn"] {
            assert!(parse("log.filter", bad).is_err(), "{bad}");
        }
    }
}
