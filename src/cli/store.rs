//! Commands on whole stores: `store copy`. Its progress goes to stderr: a bar on a terminal, else a line now and then.

use std::{
    fmt,
    io::{self, IsTerminal as _},
    path::Path,
    sync::Arc,
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use forewarn::{
    Forewarn, Name, StoreError,
    model::format_span,
    store::copy::{Copied, CopyError, Progress, StoreCopy},
    store::{Change, Store},
};
use indicatif::{ProgressBar, ProgressStyle};

use super::{
    args,
    exit::{Exit, Usage},
    output::{paused_text, print, say, table},
    place::check_store,
};

/// Work on whole stores
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    Copy(CopyArgs),
}

/// Copy namespaces from one store to another: deadlines, payloads, retries, dead letters, settings
///
/// The source has to be paused and stays so, that nobody is reminded twice. Stop also whoever tracks deadlines in it: at the
/// end both stores are compared, and where they differ the copy is not released. What is leased in the source waits in the
/// target until its lease ends.
///
/// A copy that was cut off goes on when the same command is given again.
#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// The source: a URL, or env:NAME for one that stands in the variable NAME
    ///
    /// Other users of this machine can see the arguments of a running command: a URL with a password belongs into a variable.
    #[arg(value_name = "FROM")]
    from: String,
    /// The target, written alike; none of the namespaces may be there
    #[arg(value_name = "TO")]
    to: String,
    /// Only this namespace, and others named so; all if not given
    #[arg(long = "namespace", value_name = "NS", value_parser = args::namespace)]
    namespaces: Vec<Name>,
    /// Pause the source; in the target only what was paused before stays so
    #[arg(long)]
    pause: bool,
    /// Split the target into so many shards; as the source if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    shards: Option<u16>,
    /// The keys of key-backed namespaces are in the target already
    ///
    /// A copy moves deadlines, not the keys behind them; where a key is missing, its id counts as gone.
    #[arg(long)]
    keys_moved: bool,
}

/// Carries out a `store` command.
pub(super) async fn run(command: StoreCommand) -> anyhow::Result<Exit> {
    match command {
        StoreCommand::Copy(args) => copy(args).await,
    }
}

async fn copy(args: CopyArgs) -> anyhow::Result<Exit> {
    let (from, to) = (url_of("FROM", &args.from)?, url_of("TO", &args.to)?);
    check_store(&from)?;
    check_store(&to)?;
    check_file(&from)?;
    let (from, to) = (Forewarn::connect(&from).await?, Forewarn::connect(&to).await?);
    let mut namespaces = args.namespaces;
    if namespaces.is_empty() {
        namespaces.extend(from.namespaces().await?.into_iter().map(|registered| registered.name));
    }
    if namespaces.is_empty() {
        say(format_args!("there is no namespace in {}", from.store().place()));
        return Ok(Exit::Failed);
    }
    let (from, to) = (Arc::clone(from.store()), Arc::clone(to.store()));
    check_keys(&*from, &*to, &namespaces, args.keys_moved).await?;
    let copy = StoreCopy::new(Arc::clone(&from), Arc::clone(&to)).pause(args.pause).shards(args.shards);
    let (mut rows, mut exit) = (Vec::new(), Exit::Done);
    for namespace in &namespaces {
        let mut meter = Meter::new(namespace);
        let outcome = copy.run(namespace, &mut |progress| meter.show(progress)).await;
        meter.end();
        match outcome {
            Ok(copied) => {
                remark(namespace, &copied, &to.place());
                let counts = copied.counts.iter();
                rows.extend(counts.map(|(what, count)| [namespace.to_string(), what.clone(), count.to_string()]));
            }
            Err(CopyError::Store(error)) => return Err(error.into()),
            // What stands in the way of one must not keep the others.
            Err(refused) => {
                say(format_args!("error: {refused}"));
                exit = Exit::Failed;
            }
        }
    }
    if !rows.is_empty() {
        print(table(["namespace", "what", "copied"], rows))?;
    }
    Ok(exit)
}

/// Says what the operator has to know and to do.
fn remark(namespace: &Name, copied: &Copied, to: &str) {
    if copied.is_earlier {
        say(format_args!(
            "{namespace}: was copied before; to copy it again, delete it first: \
             forewarn namespace forget {namespace} --force --store {to}"
        ));
        return;
    }
    if copied.refused > 0 {
        say(format_args!("{namespace}: {} quarantined entries stay behind; {to} has no quarantine", copied.refused));
    }
    if let Some(ms) = copied.clock_behind_ms {
        let span = format_span(std::time::Duration::from_millis(ms.unsigned_abs()));
        say(format_args!("{namespace}: the clock of the target is {span} behind; notices of that time may come again"));
    }
    match paused_text(&copied.paused) {
        None => say(format_args!("{namespace}: the source stays paused, the copy runs")),
        Some(paused) => say(format_args!(
            "{namespace}: the source stays paused, and the copy as it was: {paused}. \
             Start it with: forewarn namespace resume {namespace} --store {to}"
        )),
    }
}

/// The URL of a store, given itself or by the variable it stands in.
fn url_of(which: &str, given: &str) -> Result<String, Usage> {
    let Some(name) = given.strip_prefix("env:") else { return Ok(given.to_owned()) };
    match std::env::var(name) {
        Ok(url) if !url.is_empty() => Ok(url),
        _ => Err(Usage(format!("{which} is env:{name}, but no URL stands in the variable {name}; set it"))),
    }
}

/// Refuses, before anything is paused, key-backed namespaces whose keys would be missing or cannot be in the target.
async fn check_keys(from: &dyn Store, to: &dyn Store, namespaces: &[Name], keys_moved: bool) -> anyhow::Result<()> {
    let mut keyed = Vec::new();
    for namespace in namespaces {
        match from.configured(namespace).await {
            Ok(configured) if configured.settings.key_backed => {
                to.preview(namespace, &Change::settings(configured.settings.clone()))
                    .await
                    .with_context(|| format!("namespace {namespace} cannot be copied"))?;
                keyed.push(namespace.as_str());
            }
            Ok(_) | Err(StoreError::Unconfigured { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if keyed.is_empty() || keys_moved {
        return Ok(());
    }
    Err(Usage(format!(
        "key-backed: {}; a copy moves deadlines, not the keys behind them, and without its key each id would count as gone. \
         Bring the keys into the target first, then say --keys-moved",
        keyed.join(", ")
    ))
    .into())
}

/// Refuses a source that would be made only now.
fn check_file(url: &str) -> Result<(), Usage> {
    let Some(path) = url.strip_prefix("sqlite:") else { return Ok(()) };
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() || Path::new(path).exists() {
        return Ok(());
    }
    Err(Usage(format!("there is no store file {path} to copy from; give the path of one")))
}

/// Shows how far the copy of a namespace has come.
struct Meter {
    namespace: Name,
    /// Only on a terminal.
    bar: Option<ProgressBar>,
    total: u64,
    /// The tenth of the way that was said last.
    said: u64,
    is_comparing: bool,
}

impl Meter {
    fn new(namespace: &Name) -> Self {
        let bar = io::stderr().is_terminal().then(ProgressBar::no_length);
        if let (Some(bar), Ok(style)) = (&bar, ProgressStyle::with_template(BAR)) {
            bar.set_style(style);
        }
        Self { namespace: namespace.clone(), bar, total: 0, said: 0, is_comparing: false }
    }

    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Began { rows, total } => {
                self.total = total;
                self.begin(if rows > 0 { "goes on" } else { "copying" }, rows, total);
            }
            Progress::Copied { rows } => self.advance(rows, self.total),
            Progress::Compared { rows } => {
                if !self.is_comparing {
                    self.is_comparing = true;
                    self.begin("comparing", rows, 2 * self.total);
                }
                self.advance(rows, 2 * self.total);
            }
            _ => {}
        }
    }

    fn begin(&mut self, what: &'static str, rows: u64, total: u64) {
        self.said = tenths(rows, total);
        match &self.bar {
            Some(bar) => {
                bar.set_message(format!("{} {what}", self.namespace));
                bar.set_length(total);
                bar.set_position(rows);
            }
            None => self.tell(format_args!("{what}, {rows} of {total}")),
        }
    }

    fn advance(&mut self, rows: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(rows.min(total));
            return;
        }
        let tenths = tenths(rows, total);
        if tenths > self.said {
            self.said = tenths;
            self.tell(format_args!("{rows} of {total}"));
        }
    }

    fn tell(&self, text: fmt::Arguments<'_>) {
        say(format_args!("{}: {text}", self.namespace));
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

const BAR: &str = "{msg} [{bar:30}] {human_pos} of {human_len} ({eta} left)";

fn tenths(rows: u64, total: u64) -> u64 {
    (10 * rows.min(total)).checked_div(total).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_no_file_yet_is_refused() {
        assert!(check_file("sqlite:/nowhere/at/all.db").unwrap_err().to_string().contains("/nowhere/at/all.db"));
        assert!(check_file("sqlite:///nowhere/at/all.db").is_err());
        assert!(check_file("sqlite:").is_ok(), "that is refused where the URL is read");
        assert!(check_file("redis://nowhere").is_ok());
    }

    #[test]
    fn tenths_of_nothing_are_nothing() {
        assert_eq!((tenths(0, 0), tenths(5, 10), tenths(11, 10)), (0, 5, 10));
    }
}
