//! The log: on stderr, as lines for people or as JSON, with a filter that may change while the process runs.

use std::{
    env::VarError,
    io::{self, IsTerminal as _},
};

use forewarn::config::LogFormat;
use tracing_subscriber::{
    EnvFilter, Layer as _, Registry, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _,
};

use super::exit::Usage;

/// The filter of the log that has been started.
#[derive(Debug)]
pub(super) struct SetLog(reload::Handle<EnvFilter, Registry>);

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

fn parse(field: &str, filter: &str) -> Result<EnvFilter, Usage> {
    EnvFilter::try_new(filter).map_err(|e| Usage(format!("{field} is no log filter ({e}); give a level such as debug")))
}

fn begin(filter: EnvFilter, format: LogFormat) -> anyhow::Result<SetLog> {
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).try_init()?;
    Ok(SetLog(handle))
}
