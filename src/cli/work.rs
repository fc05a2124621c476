//! `work`: a worker in the foreground. Each notice is one line of JSON on stdout, or one run of a command.
//!
//! A notice is acked only after its line has been written and flushed. Ends by itself only if stdout is closed.

use std::{
    io::{self, Write as _},
    num::NonZeroUsize,
    sync::{Arc, mpsc},
    time::Duration,
};

use clap::{Args, builder::NonEmptyStringValueParser};
use forewarn::{
    Forewarn, Name, Namespace, Route,
    engine::{Delivery, Happening, Outcome, StopReport, Worker},
    model::{Backoff, Class, Failure, format_span},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    args,
    exec::Exec,
    exit::{Exit, Usage},
    output::say,
    pauses::Pauses,
    settings::apply_words,
    signals::Signals,
};

/// Work on a namespace's notices in the foreground
///
/// Each notice is printed as one line of CloudEvents JSON and is acked once the
/// line is written. With --exec the command is run by `sh -c` for each notice
/// instead, with the event on its standard input and in its environment:
///
///   FOREWARN_ID          the id (absent if it holds a zero byte)
///   FOREWARN_ID_BASE64   the id in URL-safe base64 without padding
///   FOREWARN_EVENT_ID    the same for every attempt: the key to idempotency
///   FOREWARN_NAMESPACE, FOREWARN_ROUTE
///   FOREWARN_KIND        reminder or cleanup
///   FOREWARN_LEAD_MS     of a reminder: its lead in milliseconds
///   FOREWARN_REASON      of a cleanup: expired, ended or gone
///   FOREWARN_ATTEMPT     1, 2, …
///
/// The exit status of the command is the outcome, a failure is recorded with a
/// class:
///
///   0                     done
///   80                    done, with a note
///   81                    superseded: void by the word of the command
///   65                    dead letter, class rejected
///   77                    dead letter, class denied
///   82                    review by a person, class conflict
///   69, 75                retry, class timeout
///   any other, a signal   retry, class failed
///
/// 126 and 127 come from the shell: the command is not executable, or was not
/// found. The last 1 KiB of standard error is the summary of a failure. A command
/// whose claim is lost gets SIGTERM, and is killed 5 s later.
///
/// SIGTERM or Ctrl-C stops the worker: it claims nothing more, waits up to
/// --stop-timeout for what it holds and gives back the rest. A second one stops
/// it at once.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct WorkArgs {
    /// The namespace
    #[arg(value_name = "NS", value_parser = args::namespace)]
    namespace: Name,
    /// Work on this route; one that is missing is registered and gets its own copy of every notice [default: main]
    #[arg(long, value_name = "NAME", value_parser = args::route)]
    route: Option<Name>,
    /// Run this shell command for each notice; its exit status is the outcome
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    exec: Option<String>,
    /// At most this many notices at the same time
    #[arg(long, value_name = "N", default_value = "16", value_parser = args::concurrency)]
    concurrency: NonZeroUsize,
    /// How long a stop waits for what is being handled
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = args::span("stop_timeout"))]
    stop_timeout: Duration,
    /// How long a failed cleanup waits before each retry; the last delay repeats
    #[arg(long, value_name = "SPANS", value_delimiter = ',', default_value = "30s,2m,10m,30m",
        value_parser = args::span("retry_delays"))]
    retry_delays: Vec<Duration>,
    /// The failures after which a notice becomes a dead letter
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_failures: u32,
}

/// Carries out `work`.
pub(super) async fn work(forewarn: &Forewarn, args: WorkArgs) -> anyhow::Result<Exit> {
    let namespace = forewarn.namespace(args.namespace);
    let backoff = Backoff::new(args.retry_delays, args.max_failures)?;
    let route = route(&namespace, args.route).await?;
    say_what_is_paused(&namespace, &route).await?;
    let settings = namespace.configured().await?.settings.clone();
    let (stop, stop_now) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn(heed(Signals::listen()?, args.stop_timeout, stop.clone(), stop_now.clone()));

    let stdout_closed = CancellationToken::new();
    let handler = Arc::new(match args.exec {
        Some(command) => Handler::Exec(Exec::new(command, route.clone())),
        None => Handler::Print { printer: Printer::start()?, closed: stdout_closed.clone(), stop: stop.clone() },
    });
    let handle = move |delivery: Delivery| {
        let handler = Arc::clone(&handler);
        async move { handler.handle(delivery).await }
    };
    let worker = Worker::builder(&namespace)
        .route(route.as_str())
        .concurrency(args.concurrency.get())
        .stop_timeout(args.stop_timeout)
        .backoff(backoff)
        .on_reminder(handle.clone())
        .on_cleanup(handle)
        .observer(move |happening| {
            if let Happening::Started { namespace, route, registered, .. } = happening {
                say(format_args!("working on route {route} of namespace {namespace}"));
                if *registered {
                    let drop_it = format!("{} --drop-route {route}", apply_words(namespace, &settings));
                    say(format_args!(
                        "namespace {namespace} had no route {route}: it is registered as a new consumer, for good, and \
                         gets its own copy of every notice from now on, also while no worker runs. If that is a \
                         mistake, stop this worker and drop it: {drop_it}"
                    ));
                }
            }
        })
        .run(stop.cancelled_owned());
    let report = tokio::select! {
        report = worker => report?,
        () = stop_now.cancelled() => {
            say("stopped at once; what was being handled is handed out again when its lease ends");
            return Ok(Exit::Failed);
        }
    };
    say(report_text(&report));
    if stdout_closed.is_cancelled() {
        say("error: stdout is closed; nothing is lost, what could not be written is handed out again");
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

/// The route to work on; one that is named and missing is registered by the worker. A worker that did not name one must
/// not invent a consumer that nobody asked for.
async fn route(namespace: &Namespace, wanted: Option<Name>) -> anyhow::Result<Name> {
    let configured = namespace.configured().await?;
    if let Some(wanted) = wanted {
        return Ok(wanted);
    }
    let main = Route::main()?.name;
    if configured.routes.iter().any(|route| route.name == main) {
        return Ok(main);
    }
    let (name, routes) = (namespace.name()?, configured.routes.iter().map(|route| route.name.as_str()));
    let routes = routes.collect::<Vec<_>>().join(", ");
    Err(Usage(format!("namespace \"{name}\" has no route main but {routes}; name one with --route")).into())
}

/// A worker on something paused looks like one that has nothing to do.
async fn say_what_is_paused(namespace: &Namespace, route: &Name) -> anyhow::Result<()> {
    let name = namespace.name()?;
    for paused in Pauses::from(&namespace.stats().await?).only(route).texts() {
        say(format_args!("paused in {name}: {paused}; forewarn namespace resume {name} lets them flow again"));
    }
    Ok(())
}

/// Turns the first signal into a graceful stop and the second into an end at once.
async fn heed(mut signals: Signals, stop_timeout: Duration, stop: CancellationToken, stop_now: CancellationToken) {
    signals.next().await;
    let timeout = format_span(stop_timeout);
    say(format_args!("stopping: waiting up to {timeout} for what is being handled; signal again to stop at once"));
    stop.cancel();
    signals.next().await;
    stop_now.cancel();
}

fn report_text(report: &StopReport) -> String {
    let StopReport { finished, released, lost, totals, .. } = report;
    format!(
        "stopped: finished {finished}, gave back {released}, lost {lost}; since the start {} done, {} superseded, \
         {} retried, {} dead, {} for review, {} void, {} lost",
        totals.done, totals.superseded, totals.retried, totals.dead, totals.review, totals.voided, totals.lost
    )
}

/// What is done with a notice.
#[derive(Debug)]
enum Handler {
    Exec(Exec),
    Print { printer: Printer, closed: CancellationToken, stop: CancellationToken },
}

impl Handler {
    async fn handle(&self, delivery: Delivery) -> Outcome {
        let event = match serde_json::to_string(&delivery.event()) {
            Ok(event) => event,
            Err(e) => return Outcome::retry(Failure::new(Class::Failed, format!("the event is no JSON: {e}"))),
        };
        match self {
            Self::Exec(exec) => exec.handle(&delivery, event).await,
            Self::Print { printer, closed, stop } => match printer.print(event).await {
                Ok(()) => Outcome::Done,
                Err(e) => {
                    closed.cancel();
                    stop.cancel();
                    tracing::debug!(error = %e, "stdout cannot be written");
                    Outcome::Release
                }
            },
        }
    }
}

/// Writes lines to stdout, whole and one after the other, in a thread of its own: a reader that is slow holds up
/// notices, not the runtime that keeps their leases.
#[derive(Debug)]
struct Printer {
    lines: mpsc::Sender<(String, oneshot::Sender<io::Result<()>>)>,
}

impl Printer {
    fn start() -> io::Result<Self> {
        let (lines, queue) = mpsc::channel::<(String, oneshot::Sender<io::Result<()>>)>();
        std::thread::Builder::new().name("stdout".to_owned()).spawn(move || {
            for (mut line, written) in queue {
                // Whoever gave up waiting will get the notice again; its line must not appear for a claim that is lost.
                if written.is_closed() {
                    continue;
                }
                line.push('\n');
                let mut stdout = io::stdout().lock();
                let result = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
                if let Err(unheard) = written.send(result) {
                    tracing::debug!(?unheard, "a line was written for a claim that was lost meanwhile");
                }
            }
        })?;
        Ok(Self { lines })
    }

    async fn print(&self, line: String) -> io::Result<()> {
        let (written, result) = oneshot::channel();
        let gone = || io::Error::other("the printing thread has ended");
        self.lines.send((line, written)).map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }
}
