//! Uploads that are begun and never finished: the object store is told to abort them, the temporary file goes.
//!
//! Run it with `cargo run --example abandoned_uploads`. It ends by itself after some seconds, and one sees five uploads: one
//! is finished in time and nothing happens to it, one is abandoned and cleaned up, one is gone already, one fails and is
//! tried again, and one is denied. That one becomes a dead letter, is looked at, and is requeued once the right is granted.
//!
//! Everything lies in a directory, with `--dir DIR` in that one: the parts of the uploads, and the deadlines in
//! `forewarn.db`. In real life an upload has a day; `--life 24h` says so here.
#![expect(clippy::print_stdout, reason = "an example may talk")]

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use clap::Parser;
use forewarn::model::parse_span;
use forewarn::store::{ParkedQuery, Settled, Shelf};
use forewarn::{Backoff, Class, Delivery, Failure, Forewarn, Happening, Namespace, Outcome, Settings, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, Receiver};
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
struct Args {
    /// Where the parts of uploads and the store lie; default: a directory that is removed at the end
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How long an upload may take
    #[arg(long, default_value = "2s", value_parser = |text: &str| parse_span("life", text))]
    life: Duration,
    /// How long a failed cleanup waits
    #[arg(long, default_value = "1s", value_parser = |text: &str| parse_span("retry delay", text))]
    retry_delay: Duration,
}

/// What the cleanup has to know: it may run in another process, long after this one has ended.
#[derive(Serialize, Deserialize)]
struct Upload {
    object_key: String,
    upload_id: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let scratch = tempfile::tempdir()?;
    let dir = args.dir.as_deref().unwrap_or(scratch.path());
    let forewarn = Forewarn::connect(&format!("sqlite:{}", dir.join("forewarn.db").display())).await?;
    let uploads = forewarn.namespace("upload");
    // No reminders: nobody waits for a warning.
    uploads.apply(Settings::default()).await?;

    let bucket = Arc::new(Bucket::default());
    let (tell, mut settled) = mpsc::channel(100);
    let stop = CancellationToken::new();
    let worker = Worker::builder(&uploads)
        .backoff(Backoff::new(vec![args.retry_delay], 5)?)
        .on_cleanup({
            let (bucket, dir) = (Arc::clone(&bucket), dir.to_owned());
            move |notice| clean_up(Arc::clone(&bucket), dir.clone(), notice)
        })
        // The observer must not wait; here there is room for every line.
        .observer(move |happening| drop(tell_settled(happening).map(|line| tell.try_send(line))))
        .build()?;
    let working = tokio::spawn(worker.run(stop.clone().cancelled_owned()));

    for name in ["finished", "abandoned", "gone", "busy", "denied"] {
        begin(&uploads, &bucket, dir, name, args.life).await?;
    }
    // The client sent the last part: whatever else happens, nothing is cleaned up.
    bucket.finish("upload-finished");
    std::fs::remove_file(part(dir, "upload-finished"))?;
    uploads.remove("upload-finished").await?;
    println!("upload-finished is complete");
    bucket.finish("upload-gone");

    wait_for(
        &mut settled,
        &["upload-abandoned: done", "upload-gone: done", "upload-busy: done", "upload-denied: dead"],
    )
    .await?;
    look_at_dead_letters(&uploads, &bucket).await?;
    wait_for(&mut settled, &["upload-denied: done"]).await?;

    stop.cancel();
    let report = working.await??;
    let stats = uploads.stats().await?;
    println!("{} cleaned up, {} retried, {} dead letters left", report.totals.done, report.totals.retried, stats.dead);
    Ok(())
}

/// Begins an upload. Tracked first: if this program dies after any of these lines, the cleanup finds what is there.
async fn begin(uploads: &Namespace, bucket: &Bucket, dir: &Path, name: &str, life: Duration) -> anyhow::Result<()> {
    let upload_id = format!("upload-{name}");
    let upload = Upload { object_key: format!("photos/{name}.jpg"), upload_id: upload_id.clone() };
    uploads.track_in(upload_id.as_bytes(), life).payload(&upload)?.await?;
    bucket.begin(&upload_id);
    std::fs::write(part(dir, &upload_id), b"the first part")?;
    println!("{upload_id} has begun");
    Ok(())
}

/// Aborts the upload and deletes its temporary file. Both may have happened before: a notice may come twice.
async fn clean_up(bucket: Arc<Bucket>, dir: PathBuf, notice: Delivery) -> anyhow::Result<Outcome> {
    let upload: Upload = notice.payload_json().context("the payload is no upload")?;
    let aborted = bucket.abort(&upload, notice.attempt());
    if let Err(failure) = &aborted
        && failure.class != Class::Missing
    {
        // Each class has its own answer: what is denied is a dead letter, what timed out is tried again.
        return Ok(failure.clone().into());
    }
    match std::fs::remove_file(part(&dir, &upload.upload_id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    Ok(aborted.map_or_else(Outcome::from, |()| Outcome::Done))
}

/// What a person does about dead letters: looks why, mends it, has them delivered again.
async fn look_at_dead_letters(uploads: &Namespace, bucket: &Bucket) -> anyhow::Result<()> {
    let page = uploads.parked(Shelf::Dead, &ParkedQuery::default()).await?;
    for letter in &page.entries {
        let upload: Upload = serde_json::from_slice(letter.payload.as_deref().unwrap_or_default())?;
        let last = letter.failures.last().context("a dead letter has failed")?;
        println!("dead letter: {} of {}: {} ({})", letter.notice.id, upload.object_key, last.summary, last.class);
    }
    bucket.grant();
    let answers = uploads.requeue(Shelf::Dead, &page.entries).await?;
    println!("the right is granted; requeued: {answers:?}");
    Ok(())
}

/// Prints what was settled until all of these lines were among it.
async fn wait_for(settled: &mut Receiver<String>, awaited: &[&str]) -> anyhow::Result<()> {
    let mut missing = awaited.to_vec();
    while !missing.is_empty() {
        let line = settled.recv().await.context("the worker has ended")?;
        println!("cleanup of {line}");
        missing.retain(|awaited| !line.starts_with(awaited));
    }
    Ok(())
}

fn tell_settled(happening: &Happening<'_>) -> Option<String> {
    let Happening::Settled { notice, outcome, settled, .. } = happening else { return None };
    let why = match outcome {
        Outcome::Noted(note) => format!(" ({note})"),
        outcome => outcome.failure().map_or_else(String::new, |failure| format!(" ({})", failure.summary)),
    };
    let word = match settled {
        Settled::Retry { .. } => "tried again later",
        Settled::Dead => "dead",
        _ => "done",
    };
    Some(format!("{}: {word}{why}", notice.id))
}

fn part(dir: &Path, upload_id: &str) -> PathBuf {
    dir.join(format!("{upload_id}.part"))
}

/// Stands for an object store: which multipart uploads are open, and who may abort them.
#[derive(Default)]
struct Bucket(Mutex<Uploads>);

#[derive(Default)]
struct Uploads {
    open: HashSet<String>,
    is_granted: bool,
}

impl Bucket {
    fn begin(&self, upload_id: &str) {
        self.with(|uploads| uploads.open.insert(upload_id.to_owned()));
    }

    fn finish(&self, upload_id: &str) {
        self.with(|uploads| uploads.open.remove(upload_id));
    }

    fn grant(&self) {
        self.with(|uploads| uploads.is_granted = true);
    }

    /// Fails as object stores do, depending on the upload's name.
    fn abort(&self, upload: &Upload, attempt: u32) -> Result<(), Failure> {
        let fail = |class, summary: &str| Err(Failure::new(class, summary).at_stage("abort"));
        self.with(|uploads| match upload.upload_id.as_str() {
            "upload-busy" if attempt == 1 => fail(Class::Timeout, "503 slow down"),
            "upload-denied" if !uploads.is_granted => fail(Class::Denied, "403 access denied"),
            id if uploads.open.remove(id) => Ok(()),
            _ => fail(Class::Missing, "404 no such upload"),
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Uploads) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
