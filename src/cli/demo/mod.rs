//! `demo`: a short story on a real store, told as it happens and compared with what was expected.
//!
//! Works in a throw-away namespace, with the ordinary library calls and an ordinary worker. Whatever happens, the
//! namespace is forgotten at the end with all that is in it.

mod cast;
mod report;
mod story;

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use forewarn::{
    Forewarn, LeadTime, Namespace, Settings, StoreError,
    engine::{Delivery, Outcome, Worker},
    model::{Backoff, Class, Failure, Kind, format_span},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    exit::Exit,
    output::{print, say},
    signals::Signals,
};
use cast::{Cast, Heard};

/// How long before expiry the demo's reminders speak.
const LEAD: Duration = Duration::from_secs(2);

/// How long the demo's sessions live unless they are renewed.
const LIFE: Duration = Duration::from_secs(5);

/// How long the failed cleanup waits before its second attempt.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// How long the story may take before what is missing counts as lost.
const PATIENCE: Duration = Duration::from_secs(15);

/// Play a short story on the store, and compare what happened with what was expected
///
/// One session is reminded, renewed and reminded again; one logs out and stays silent; one expires and is cleaned up,
/// its first cleanup attempt failing and the second succeeding. Takes about eight seconds, works in a namespace of its
/// own (demo-…) and deletes it at the end; without --store in a temporary file. Exit 1 if anything differs from what was expected.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {}

/// What to do where no store answers.
pub(super) const NO_STORE: &str = "to get a Redis on this machine: apt-get install redis-server, then \
                                   redis-server --port 6379; or leave --store away, and the demo plays in a file";

/// Carries out `demo` on the store at `url`, or on a temporary file.
pub(super) async fn demo(url: Option<&str>) -> anyhow::Result<Exit> {
    match url {
        Some(url) => match Forewarn::connect(url).await {
            Ok(forewarn) => perform(&forewarn).await,
            Err(error) => {
                if matches!(error, StoreError::Unavailable { .. }) {
                    say(NO_STORE);
                }
                Err(error.into())
            }
        },
        None => {
            let directory = std::env::temp_dir().join(format!("forewarn-demo-{:016x}", fastrand::u64(..)));
            let forewarn = Forewarn::open_file(&directory.join("forewarn.db")).await?;
            print(format_args!("the store is a temporary file: {}", directory.join("forewarn.db").display()))?;
            let performed = perform(&forewarn).await;
            drop(forewarn);
            std::fs::remove_dir_all(&directory).context("the demo could not remove its file")?;
            performed
        }
    }
}

async fn perform(forewarn: &Forewarn) -> anyhow::Result<Exit> {
    let namespace = forewarn.namespace(format!("demo-{:08x}", fastrand::u32(..)));
    let cast = Cast::new();
    let mut signals = Signals::listen()?;
    let played = tokio::select! {
        played = play(&namespace, &cast) => played,
        () = signals.next() => {
            say("the demo was interrupted");
            Ok(Exit::Failed)
        }
    };
    let forgotten = namespace.forget().await.context("the demo could not delete its namespace");
    let exit = played?;
    forgotten?;
    Ok(exit)
}

async fn play(namespace: &Namespace, cast: &Cast) -> anyhow::Result<Exit> {
    let settings = Settings::default().remind(LeadTime::try_from(LEAD)?).lease(Duration::from_secs(10));
    namespace.apply(settings).await?;
    print(format_args!(
        "namespace {}: remind {} before expiry, clean up after it",
        namespace.name()?,
        format_span(LEAD)
    ))?;

    let stop = CancellationToken::new();
    let (tell, heard) = mpsc::channel(64);
    let handler = {
        let store = namespace.store().clone();
        move |delivery: Delivery| {
            let (store, tell) = (store.clone(), tell.clone());
            async move {
                let heard = Heard::of(&delivery, store.now().await?);
                tell.send(heard).await.map_err(anyhow::Error::from)?;
                anyhow::Ok(answer(&delivery))
            }
        }
    };
    let worker = Worker::builder(namespace)
        .backoff(Backoff::new(vec![RETRY_DELAY], 8)?)
        .stop_timeout(Duration::from_secs(2))
        .on_reminder(handler.clone())
        .on_cleanup(handler)
        .run(stop.clone().cancelled_owned());
    let story = async {
        let ended = story::play(namespace, cast, heard).await;
        stop.cancel();
        ended
    };
    let (report, rows) = tokio::join!(worker, story);
    // If the worker failed, the story broke off for that reason.
    report?;
    let rows = rows?;
    let as_expected = rows.iter().all(report::Row::is_as_expected);
    print(report::table(&rows))?;
    print(if as_expected { "everything happened as expected" } else { "this is not what was expected" })?;
    Ok(Exit::done_if(as_expected))
}

/// The first attempt at the cleanup fails, on purpose.
fn answer(delivery: &Delivery) -> Outcome {
    match (delivery.kind(), delivery.attempt()) {
        (Kind::Cleanup(_), 1) => Outcome::retry(Failure::new(Class::Timeout, "the file server does not answer")),
        _ => Outcome::Done,
    }
}
