//! The command line: arguments in, library calls, one readable answer out.
//!
//! Uses the public library only. stdout is data, stderr is talk. Owns what all commands share: the
//! log, the runtime and the end of the process. Never prints a store URL: it may hold a password.

mod apply;
mod args;
mod config;
mod deadline;
mod demo;
mod exec;
mod exit;
mod history;
mod list;
mod log;
mod namespace;
mod notice;
mod output;
mod parked;
mod pauses;
mod place;
mod serve;
mod settings;
mod show;
mod signals;
mod stats;
mod store;
mod tail;
mod work;

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    error::{ContextKind, ContextValue},
    parser::ValueSource,
};
use clap_complete::Shell;
use forewarn::store::Shelf;

use exit::Exit;
use place::{Flags, PlaceArgs};

/// Warns before something expires and cleans up after it has
///
/// Deadlines rest in a file or in Redis; workers get a reminder before one expires and a cleanup after it has. Data goes
/// to stdout, talk and logs to stderr. Exit status: 0 done, 1 failed, 2 wrong usage or configuration.
///
/// Other users of this machine can see the arguments of a running command: a store URL with a password belongs into
/// FOREWARN_STORE, a daemon's token into FOREWARN_TOKEN. No output, log or error of forewarn shows either. SSL_CERT_FILE names the certificates of a
/// private CA for rediss:// URLs, FOREWARN_LOG a log filter such as debug.
#[derive(Debug, Parser)]
#[command(
    name = "forewarn",
    version,
    arg_required_else_help = true,
    after_help = "\
Begin with: forewarn demo"
)]
struct Cli {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Serve(serve::ServeArgs),
    Work(work::WorkArgs),
    #[command(subcommand, arg_required_else_help = true)]
    Namespace(namespace::NamespaceCommand),
    Track(deadline::TrackArgs),
    Renew(deadline::RenewArgs),
    /// Remove a deadline: nothing of its life is handed out any more
    ///
    /// Prints removed, voided (only its cleanup was left, which will not run) or unknown. All three are exit 0:
    /// nothing of it is armed.
    Remove(deadline::EndArgs),
    /// End a deadline now: its cleanup follows at once, with reason ended
    ///
    /// Prints ended or open (it had ended before); unknown is exit 1.
    Expire(deadline::EndArgs),
    Show(show::ShowArgs),
    List(list::ListArgs),
    Stats(stats::StatsArgs),
    Tail(tail::TailArgs),
    /// Dead letters: notices that were given up
    #[command(subcommand, arg_required_else_help = true)]
    Dead(parked::ParkedCommand),
    /// Reviews: notices that wait for a person
    #[command(subcommand, arg_required_else_help = true)]
    Review(parked::ParkedCommand),
    #[command(subcommand, arg_required_else_help = true)]
    Store(store::StoreCommand),
    #[command(subcommand, arg_required_else_help = true)]
    Config(config::ConfigCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// The life of the process: arguments, log, runtime, one command, its end.
pub(super) fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            if error.get(ContextKind::Suggested).is_some() {
                // The parser's own advice would put everything behind the dashes.
                let advice = "what begins with a dash and is no option goes last, after --: forewarn … -- -id";
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
            }
            // Help and version are no errors and go to stdout; a closed one changes nothing about their status.
            error.print().unwrap_or_default();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let ended = start_log(&cli).and_then(|()| {
        let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
        let ended = runtime.block_on(run(cli));
        // A name look-up that hangs in its thread must not hold up the end.
        runtime.shutdown_timeout(Duration::from_millis(100));
        ended
    });
    let exit = ended.unwrap_or_else(|error| {
        let exit = Exit::of(&error);
        if exit != Exit::Done {
            output::say(format_args!("error: {}", exit::describe(&error)));
        }
        exit
    });
    exit.into()
}

fn parse() -> Result<Cli, clap::Error> {
    let command = [Shelf::Dead, Shelf::Review].into_iter().fold(Cli::command(), parked::with_usage);
    let matches = command.try_get_matches()?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let is_flag = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
    cli.place.flags = Flags { store: is_flag("store"), server: is_flag("server") };
    Ok(cli)
}

/// The daemon starts its log by its configuration.
fn start_log(cli: &Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Serve(_) => Ok(()),
        // The command itself says when its worker starts and stops.
        Command::Work(_) => log::start_for_command("info,forewarn::engine::worker=warn"),
        _ => log::start_for_command("warn"),
    }
}

async fn run(cli: Cli) -> anyhow::Result<Exit> {
    if let Command::Completions { shell } = cli.command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "forewarn", &mut script);
        output::print(String::from_utf8(script)?.trim_end())?;
        return Ok(Exit::Done);
    }
    let command = match cli.command {
        Command::Store(command) => {
            cli.place.into_store_flag("store copy")?;
            return store::run(command).await;
        }
        Command::Config(command) => return config::run(command, cli.place.into_store_flag("config")?).await,
        Command::Serve(args) => return serve::serve(args, cli.place.into_store_flag("serve")?).await,
        Command::Demo(_) => return demo::demo(cli.place.into_place()?.into_store("demo")?.as_deref()).await,
        command => command,
    };
    let forewarn = cli.place.into_place()?.open().await?;
    match command {
        Command::Work(args) => work::work(&forewarn, args).await,
        Command::Namespace(command) => namespace::run(&forewarn, command).await,
        Command::Track(args) => deadline::track(&forewarn, args).await,
        Command::Renew(args) => deadline::renew(&forewarn, args).await,
        Command::Remove(args) => deadline::remove(&forewarn, args).await,
        Command::Expire(args) => deadline::expire(&forewarn, args).await,
        Command::Show(args) => show::show(&forewarn, args).await,
        Command::List(args) => list::list(&forewarn, args).await,
        Command::Stats(args) => stats::stats(&forewarn, args).await,
        Command::Tail(args) => tail::tail(&forewarn, args).await,
        Command::Dead(command) => parked::run(&forewarn, Shelf::Dead, command).await,
        Command::Review(command) => parked::run(&forewarn, Shelf::Review, command).await,
        Command::Demo(_) | Command::Serve(_) | Command::Store(_) | Command::Config(_) | Command::Completions { .. } => {
            Ok(Exit::Done)
        }
    }
}
