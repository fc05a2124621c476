//! Arrivals: deadlines that come due at random milliseconds, and how late a worker's handler hears of each.
//!
//! Half of the notices are reminders, half are cleanups. The rest of what is armed is not due before the run ends.

use std::{
    collections::HashMap,
    future::{Ready, ready},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use forewarn::model::{ExpiresAt, Kind, Name, Track};
use forewarn::store::Store;
use forewarn::{Delivery, Forewarn, Worker};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::figure::{Figure, Waits};
use crate::rig::{self, LEAD_MS};

/// How much is armed, how much comes due, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) armed: usize,
    pub(crate) per_second: usize,
    pub(crate) seconds: usize,
}

/// How long arming what comes due may take.
const MARGIN_MS: i64 = 5_000;
/// How long the last notices may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Plan {
    /// How many notices there will be.
    pub(crate) fn count(self) -> usize {
        self.per_second * self.seconds
    }

    /// Arms what does not come due.
    pub(crate) async fn arm_the_rest(self, store: &dyn Store, namespace: &Name) -> Result<()> {
        let now = store.now().await?;
        let far = rig::load(0..self.armed, now + 86_400_000..now + 172_800_000)?;
        rig::arm(store, namespace, &far).await
    }

    /// What comes due, reminders first; the first of it in some seconds.
    pub(crate) async fn due(self, store: &dyn Store) -> Result<Due> {
        let from = store.now().await? + MARGIN_MS;
        let span = from..from + self.seconds as i64 * 1_000;
        let half = self.armed + self.count() / 2;
        let reminders = rig::load(self.armed..half, span.start + LEAD_MS..span.end + LEAD_MS)?;
        let cleanups = rig::load(half..self.armed + self.count(), span)?;
        Ok(Due { from, reminders, cleanups })
    }

    /// How long to wait for the last notice.
    pub(crate) fn patience(self) -> Duration {
        Duration::from_secs(self.seconds as u64) + PATIENCE
    }

    /// Runs a worker with default settings, and a handler that does nothing, until all that is due has come. Answers with
    /// the lateness of each notice in milliseconds.
    pub(crate) async fn work(self, store: Arc<dyn Store>, namespace: &Name) -> Result<Waits> {
        let book = Arc::new(Book::new(self.count()));
        let (reminders, cleanups) = (Arc::clone(&book), Arc::clone(&book));
        let sessions = Forewarn::with_store(store).namespace(namespace.as_str());
        let worker = Worker::builder(&sessions)
            .on_reminder(move |notice: Delivery| reminders.note(&notice))
            .on_cleanup(move |notice: Delivery| cleanups.note(&notice))
            .run(book.is_full.clone().cancelled_owned());
        timeout(self.patience(), worker).await.context("the worker does not keep up")??;
        Ok(book.waits())
    }
}

/// What comes due in one round.
#[derive(Debug)]
pub(crate) struct Due {
    /// When the first is, by the store's clock.
    from: i64,
    /// Deadlines whose larger lead comes due.
    pub(crate) reminders: Vec<Track>,
    /// Deadlines that expire.
    pub(crate) cleanups: Vec<Track>,
}

impl Due {
    /// Arms all of it before the first is due.
    pub(crate) async fn arm(&self, store: &dyn Store, namespace: &Name) -> Result<()> {
        rig::arm(store, namespace, &self.reminders).await?;
        rig::arm(store, namespace, &self.cleanups).await?;
        let late = store.now().await? - self.from;
        ensure!(late < 0, "the machine is too slow: arming took {late} ms too long");
        Ok(())
    }

    /// Removes what is left of it.
    pub(crate) async fn disarm(&self, store: &dyn Store, namespace: &Name) -> Result<()> {
        rig::disarm(store, namespace, &self.reminders).await
    }
}

impl Due {
    /// The same arrivals for a bare loop, which knows no leads: each expires when it is due.
    pub(crate) fn barely(self) -> Result<Vec<Track>> {
        let mut all = self.reminders;
        for entry in &mut all {
            entry.expires_at = ExpiresAt::from_millis(entry.expires_at.as_millis() - LEAD_MS)?;
        }
        all.extend(self.cleanups);
        Ok(all)
    }
}

/// Runs a bare loop: it takes what is due, asks again at once, and rests for a millisecond when there was nothing. Ends
/// when all has come; answers as [`Plan::work`] does.
pub(crate) async fn take_barely(
    plan: Plan,
    load: &[Track],
    mut take: impl AsyncFnMut(i64) -> Result<Vec<Vec<u8>>>,
) -> Result<Waits> {
    let awaited: HashMap<Vec<u8>, i64> =
        load.iter().map(|entry| (entry.id.as_bytes().to_vec(), entry.expires_at.as_millis())).collect();
    let (clock, mut waits) = (FineClock::new(), Vec::with_capacity(load.len()));
    let until = Instant::now() + plan.patience();
    while waits.len() < load.len() {
        ensure!(Instant::now() < until, "the bare loop does not keep up");
        let taken = take(forewarn::clock::now_ms()).await?;
        waits.extend(taken.iter().filter_map(|id| Some(clock.since(*awaited.get(id)?))));
        if taken.is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(Waits::new(waits))
}

/// Lateness over the rounds, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    pub(crate) p50: Figure,
    pub(crate) p99: Figure,
    pub(crate) longest: Figure,
}

impl Lateness {
    /// Adds a round.
    pub(crate) fn add(&mut self, waits: &Waits) {
        self.p50.add(waits.percentile(50));
        self.p99.add(waits.percentile(99));
        self.longest.add(waits.percentile(100));
    }
}

/// What handlers note.
#[derive(Debug)]
struct Book {
    clock: FineClock,
    waits: Mutex<Vec<f64>>,
    enough: usize,
    is_full: CancellationToken,
}

impl Book {
    fn new(enough: usize) -> Self {
        let waits = Mutex::new(Vec::with_capacity(enough));
        Self { clock: FineClock::new(), waits, enough, is_full: CancellationToken::new() }
    }

    /// Is a handler's answer: done.
    fn note(&self, notice: &Delivery) -> Ready<()> {
        let lead = if let Kind::Reminder(lead) = notice.kind() { lead.as_millis() } else { 0 };
        let late = self.clock.since(notice.notice().expires_at_ms - lead);
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.push(late);
        if waits.len() == self.enough {
            self.is_full.cancel();
        }
        ready(())
    }

    fn waits(&self) -> Waits {
        Waits::new(self.waits.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// This machine's clock, finer than milliseconds: aligned once to the beginning of one. The servers here go by the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FineClock {
    at: Instant,
    at_ms: i64,
}

impl FineClock {
    /// Waits for a millisecond to begin.
    pub(crate) fn new() -> Self {
        let before = forewarn::clock::now_ms();
        loop {
            let (at, at_ms) = (Instant::now(), forewarn::clock::now_ms());
            if at_ms != before {
                return Self { at, at_ms };
            }
        }
    }

    /// Milliseconds since an instant.
    pub(crate) fn since(self, instant_ms: i64) -> f64 {
        (self.at_ms - instant_ms) as f64 + self.at.elapsed().as_secs_f64() * 1e3
    }
}
