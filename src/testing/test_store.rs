//! The store that a test holds, with its clock: turning it, waiting until all that came due is handled, and telling why not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::clock;
use crate::engine::WorkerBuilder;
use crate::forewarn::{Forewarn, Namespace};
use crate::model::{ExpiresAt, Invalid, Name, span_ms, to_datetime};
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{Next, Store, StoreError};
use crate::testing::book::{Lane, Pulse};
use crate::testing::scratch::Scratch;
use crate::testing::watched::WatchedStore;
use crate::testing::{Handled, TestError};

/// A store with a clock that stands still until the test turns it, and the workers that are attached to it.
///
/// See the [module](crate::testing) for an example. Dropping it ends the attached workers.
#[derive(Debug)]
pub struct TestStore {
    store: Arc<WatchedStore>,
    forewarn: Forewarn,
    clock: Arc<AtomicI64>,
    patience: Duration,
    workers: std::sync::Mutex<JoinSet<()>>,
    /// One at a time turns the clock.
    turning: Mutex<()>,
}

/// What a look at all routes found.
#[derive(Debug, Default)]
struct Found {
    due: Vec<Lane>,
    next_ms: Option<i64>,
}

impl TestStore {
    /// A new store whose clock stands at the present second of this machine's.
    ///
    /// # Errors
    /// [`TestError::Store`] if no file can be made in the directory for temporary ones.
    pub async fn new() -> Result<Self, TestError> {
        Self::starting_at_ms(clock::now_ms() / 1000 * 1000).await
    }

    /// A new store whose clock stands at `instant`: for tests that look at instants.
    ///
    /// # Errors
    /// As for [`TestStore::new`], and [`TestError::Invalid`] for an instant that cannot be an expiry.
    pub async fn starting_at(instant: DateTime<Utc>) -> Result<Self, TestError> {
        Self::starting_at_ms(ExpiresAt::try_from(instant)?.as_millis()).await
    }

    async fn starting_at_ms(ms: i64) -> Result<Self, TestError> {
        let clock = Arc::new(AtomicI64::new(ms));
        let scratch = Scratch::new().map_err(|error| StoreError::Unusable {
            path: std::env::temp_dir().display().to_string(),
            problem: format!("no directory can be made there: {error}"),
        })?;
        let options = SqliteOptions { manual_clock: Some(Arc::clone(&clock)), ..SqliteOptions::default() };
        let inner = SqliteStore::open(scratch.path().join("forewarn.db"), options).await?;
        let store = Arc::new(WatchedStore::new(inner, scratch));
        Ok(Self {
            forewarn: Forewarn::with_store(Arc::<WatchedStore>::clone(&store)),
            store,
            clock,
            patience: Duration::from_secs(10),
            workers: std::sync::Mutex::default(),
            turning: Mutex::default(),
        })
    }

    /// How long the calls here wait, by this machine's clock, while no handler ends, before they give up. Default: 10 s.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The connection to hand to the program under test.
    pub fn forewarn(&self) -> &Forewarn {
        &self.forewarn
    }

    /// One namespace: [`Forewarn::namespace`].
    pub fn namespace(&self, name: impl AsRef<str>) -> Namespace {
        self.forewarn.namespace(name)
    }

    /// The instant at which the clock stands.
    pub fn now(&self) -> DateTime<Utc> {
        to_datetime(self.now_ms())
    }

    /// Runs a worker in the background, until this store is dropped; returns when it has looked for the first time.
    ///
    /// A worker that the test or the program runs itself, with [`Worker::run`](crate::Worker::run), serves as well.
    ///
    /// # Errors
    /// [`TestError::Worker`] if it cannot be built or started, [`TestError::Invalid`] if it works on another store,
    /// [`TestError::NoWorker`] if it does not come up in time.
    pub async fn attach(&self, worker: WorkerBuilder) -> Result<(), TestError> {
        let worker = worker.build()?;
        let (store, namespace, route) = worker.place();
        if !std::ptr::addr_eq(Arc::as_ptr(store), Arc::as_ptr(&self.store)) {
            return Err(Invalid::new("worker", "works on another store; build it for a namespace of this one").into());
        }
        let lane = Lane::new(namespace, route);
        let answered = self.store.book().answered(&lane);
        let mut pulses = self.store.book().listen();
        let book = Arc::clone(self.store.book());
        self.workers().spawn(async move {
            if let Err(error) = worker.run(std::future::pending()).await {
                book.failed(error);
            }
        });
        let until = Instant::now() + self.patience;
        while self.store.book().answered(&lane) == answered {
            self.check_workers()?;
            if timeout_at(until, pulses.changed()).await.is_err() {
                return Err(self.no_worker(lane));
            }
        }
        Ok(())
    }

    /// Turns the clock on by `span`, from one instant at which something is due to the next, and returns when all that came
    /// due has been handled and settled: reminders and cleanups at their instants, retries at theirs.
    ///
    /// Answers with what was handed out since the last such call, in that order.
    ///
    /// # Errors
    /// [`TestError::Hanging`] if a handler does not end in time, [`TestError::NoWorker`] if something is due on a route where
    /// nobody works, [`TestError::Unhandled`] if it is not taken there. The clock stands then at the instant where it
    /// happened.
    pub async fn advance(&self, span: Duration) -> Result<Vec<Handled>, TestError> {
        let turning = self.turning.lock().await;
        let handled = self.turn_to(self.now_ms().saturating_add(span_ms(span))).await;
        drop(turning);
        handled
    }

    /// Turns the clock on to `instant`, like [`TestStore::advance`].
    ///
    /// # Errors
    /// As for [`TestStore::advance`], and [`TestError::Invalid`] for an instant that has passed.
    pub async fn advance_to(&self, instant: DateTime<Utc>) -> Result<Vec<Handled>, TestError> {
        let _turning = self.turning.lock().await;
        if instant < self.now() {
            return Err(
                Invalid::new("instant", format!("{instant} has passed; the clock stands at {}", self.now())).into()
            );
        }
        self.turn_to(instant.timestamp_millis()).await
    }

    /// Leaves the clock where it is and returns when all that is due has been handled: `advance` by nothing.
    ///
    /// # Errors
    /// As for [`TestStore::advance`].
    pub async fn settle(&self) -> Result<Vec<Handled>, TestError> {
        self.advance(Duration::ZERO).await
    }

    /// Turns the clock on by `span` at once, as if the workers had been down meanwhile: of the reminders passed only the
    /// tightest speaks. Nothing is waited for. It stops at the last instant that can expire.
    pub fn jump(&self, span: Duration) {
        let target_ms = self.now_ms().saturating_add(span_ms(span)).min(ExpiresAt::MAX_MS);
        self.clock.fetch_max(target_ms, Ordering::SeqCst);
        self.store.ring();
    }

    /// Everything handed out since the beginning, in that order.
    pub fn history(&self) -> Vec<Handled> {
        self.store.book().history()
    }

    async fn turn_to(&self, target_ms: i64) -> Result<Vec<Handled>, TestError> {
        if target_ms > ExpiresAt::MAX_MS {
            return Err(
                Invalid::new("span", "goes beyond the last instant that can expire, 10^14 ms; give less").into()
            );
        }
        loop {
            let next_ms = self.quiet().await?;
            let now_ms = self.now_ms();
            if now_ms >= target_ms {
                return Ok(self.store.book().news());
            }
            let step_ms = next_ms.map_or(target_ms, |next_ms| next_ms.clamp(now_ms + 1, target_ms));
            self.clock.store(step_ms, Ordering::SeqCst);
            self.store.ring();
        }
    }

    /// Waits until nothing is due or held; answers when the next thing is due.
    async fn quiet(&self) -> Result<Option<i64>, TestError> {
        let book = self.store.book();
        let mut pulses = book.listen();
        let (mut settled, mut until) = (book.settled(), Instant::now() + self.patience);
        let mut rung_at = None;
        loop {
            self.check_workers()?;
            if book.settled() != settled {
                (settled, until) = (book.settled(), Instant::now() + self.patience);
            }
            let Pulse { changes, .. } = *pulses.borrow_and_update();
            let held = book.held();
            let mut found = Found::default();
            if held.is_empty() {
                found = self.look().await?;
                if !self.claims_over(until).await {
                    return Err(self.stuck(held, found));
                }
                if pulses.borrow().changes != changes {
                    continue;
                }
                if found.due.is_empty() {
                    return Ok(found.next_ms);
                }
                // What one worker's sweep has put into another one's queue, that one has to be told of, once.
                if rung_at != Some(changes) {
                    rung_at = Some(changes);
                    self.store.ring();
                }
            }
            if Instant::now() >= until || timeout_at(until, pulses.changed()).await.is_err() {
                return Err(self.stuck(held, found));
            }
        }
    }

    /// Waits for the claims that are under way: they may have taken what a look did not find any more. Answers whether they
    /// were over in time.
    async fn claims_over(&self, until: Instant) -> bool {
        let book = self.store.book();
        let last = book.last_claim();
        let mut pulses: watch::Receiver<Pulse> = book.listen();
        while book.is_claiming(last) {
            if timeout_at(until, pulses.changed()).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Looks at all routes of all namespaces.
    async fn look(&self) -> Result<Found, StoreError> {
        let mut found = Found::default();
        for namespace in self.store.namespaces().await? {
            for lane in self.lanes(&namespace.name).await? {
                let next = match self.store.look(&lane).await {
                    Ok(claims) => claims.next,
                    // Gone since the routes were read.
                    Err(StoreError::Unconfigured { .. } | StoreError::NoRoute { .. }) => continue,
                    Err(error) => return Err(error),
                };
                match next {
                    Next::Backlog => found.due.push(lane),
                    Next::At { due_at_ms: Some(at_ms), .. } => {
                        found.next_ms = Some(found.next_ms.map_or(at_ms, |next_ms| next_ms.min(at_ms)));
                    }
                    Next::At { due_at_ms: None, .. } | Next::Paused { .. } => {}
                }
            }
        }
        Ok(found)
    }

    async fn lanes(&self, namespace: &Name) -> Result<Vec<Lane>, StoreError> {
        match self.store.configured(namespace).await {
            Ok(configured) => Ok(configured.routes.iter().map(|route| Lane::new(namespace, &route.name)).collect()),
            Err(StoreError::Unconfigured { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn stuck(&self, held: Vec<Handled>, found: Found) -> TestError {
        let patience = self.patience;
        if !held.is_empty() {
            return TestError::Hanging { held, patience };
        }
        // Whoever works elsewhere may have settled nothing only because it had nothing.
        let mut due = found.due;
        due.sort_by_key(|lane| self.store.book().has_worker(lane));
        match due.into_iter().next() {
            Some(lane) if !self.store.book().has_worker(&lane) => self.no_worker(lane),
            Some(Lane { namespace, route }) => TestError::Unhandled { namespace, route, at: self.now(), patience },
            None => TestError::Hanging { held, patience },
        }
    }

    fn no_worker(&self, lane: Lane) -> TestError {
        TestError::NoWorker { namespace: lane.namespace, route: lane.route, at: self.now() }
    }

    fn check_workers(&self) -> Result<(), TestError> {
        self.store.book().take_failed().map_or(Ok(()), |error| Err(error.into()))
    }

    fn now_ms(&self) -> i64 {
        self.clock.load(Ordering::SeqCst)
    }

    fn workers(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.workers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
