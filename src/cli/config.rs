//! `config`: an example, whether a configuration works, what is in force and where it came from. Changes nothing.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use forewarn::{
    Forewarn,
    config::{ConfigError, Effect, Flag, Layers, Loaded, NamespaceConfig, Origin, example, foresee},
    store::Preview,
};
use serde_json::json;

use super::{
    exit::{Exit, describe},
    output::{print, print_json, say},
};

/// Write, check and show the configuration of the daemon
///
/// A TOML file, FOREWARN_ variables and flags, the stronger ones last. Without --config the file is the one that
/// FOREWARN_CONFIG names, else forewarn/forewarn.toml in $XDG_CONFIG_HOME or ~/.config, else
/// /etc/forewarn/forewarn.toml, else none.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print a commented configuration with every key and its default
    Example,
    /// Check a configuration, reach its store and say what applying it would do
    ///
    /// Changes nothing. All mistakes are told at once. Exit status: 0 it works, 1 the store does not answer, 2 something is
    /// wrong with it.
    Check {
        #[command(flatten)]
        from: FileArg,
    },
    /// Show every value in force and where it was given; secrets are masked
    Show {
        #[command(flatten)]
        from: FileArg,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Which file to read
#[derive(Debug, Args)]
pub(super) struct FileArg {
    /// The file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Carries out a `config` command; `store` is what was given as a flag.
pub(super) async fn run(command: ConfigCommand, store: Option<String>) -> anyhow::Result<Exit> {
    match command {
        ConfigCommand::Example => {
            print(example().trim_end())?;
            Ok(Exit::Done)
        }
        ConfigCommand::Check { from } => match load(from, store) {
            Ok(loaded) => check(&loaded).await,
            Err(error) => Ok(refuse(&error)),
        },
        ConfigCommand::Show { from, json } => match load(from, store) {
            Ok(loaded) => show(&loaded, json),
            Err(error) => Ok(refuse(&error)),
        },
    }
}

fn load(from: FileArg, store: Option<String>) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::of_process();
    layers.file = from.config;
    layers.flags.extend(store.map(|value| Flag { flag: "--store", key: "store", value }));
    layers.load()
}

/// Tells everything that is wrong with a configuration.
pub(super) fn refuse(error: &ConfigError) -> Exit {
    for problem in &error.problems {
        say(format_args!("error: {problem}"));
    }
    Exit::Usage
}

fn show(loaded: &Loaded, json: bool) -> anyhow::Result<Exit> {
    warn(loaded);
    if json {
        print_json(&json!({ "file": loaded.file, "values": loaded.values, "warnings": loaded.warnings }))?;
        return Ok(Exit::Done);
    }
    let rows = loaded.values.iter().map(|value| {
        let text = value.text();
        let shown = if text.is_empty() { value.key.clone() } else { format!("{} = {text}", value.key) };
        match &value.origin {
            Origin::Default if text.is_empty() => (shown, "not given".to_owned()),
            origin => (shown, origin.to_string()),
        }
    });
    let rows: Vec<(String, String)> = rows.collect();
    let width = rows.iter().map(|(shown, _)| shown.chars().count()).max().unwrap_or(0).min(60);
    let lines: Vec<String> = rows.iter().map(|(shown, origin)| format!("{shown:<width$}  # {origin}")).collect();
    print(lines.join("\n"))?;
    Ok(Exit::Done)
}

async fn check(loaded: &Loaded) -> anyhow::Result<Exit> {
    let config = &loaded.config;
    warn(loaded);
    super::log::parse("log.filter", &config.log.filter)?;
    let mut lines = vec![match &loaded.file {
        Some(path) => format!("file {}", path.display()),
        None => "no file".to_owned(),
    }];
    if config.store.missing_file()?.is_some() {
        lines.push(format!("store {}: the file is missing; it is made when the daemon starts", config.store));
        lines.extend(config.namespaces.iter().map(|one| format!("namespace {}: would be created", one.name)));
        print(lines.join("\n"))?;
        return Ok(Exit::Done);
    }
    let forewarn = config.store.open().await?;
    lines.push(format!("store {}: answers", config.store));
    let mut exit = Exit::Done;
    for one in &config.namespaces {
        match namespace(&forewarn, one).await {
            Ok(line) => lines.push(line),
            Err(error) => {
                say(format_args!("error: namespace {}: {}", one.name, describe(&error)));
                exit = Exit::of(&error);
            }
        }
    }
    print(lines.join("\n"))?;
    Ok(exit)
}

/// What applying would do to a namespace.
async fn namespace(forewarn: &Forewarn, one: &NamespaceConfig) -> anyhow::Result<String> {
    let name = &one.name;
    let (effect, preview) = foresee(forewarn, one).await?;
    Ok(match effect {
        Effect::Created => format!("namespace {name}: would be created"),
        Effect::Changed => format!("namespace {name}: would be changed{}", at_once(preview.as_ref())),
        Effect::Outranked { in_force, given } => format!(
            "namespace {name}: would be left alone: newer settings (revision {in_force}) are in force than those given \
             here ({given})"
        ),
        _ => format!("namespace {name}: is so already"),
    })
}

fn at_once(preview: Option<&Preview>) -> String {
    let Some(preview) = preview else { return String::new() };
    let reminders: u64 = preview.reminders.iter().map(|(_, count)| count).sum();
    match (reminders, preview.cleanups) {
        (0, 0) => String::new(),
        (reminders, cleanups) => format!("; at once would speak {reminders} reminders and {cleanups} cleanups"),
    }
}

fn warn(loaded: &Loaded) {
    for warning in &loaded.warnings {
        say(format_args!("warning: {warning}"));
    }
}
