//! What every test here plays on: a namespace of its own, a worker in the background, and what is seen of it.

use std::{sync::Arc, time::Duration};

use forewarn::engine::{Happening, Loss, WorkerBuilder};
use forewarn::model::{Failure, Id, LeadTime};
use forewarn::store::redis::{RedisOptions, RedisStore};
use forewarn::store::{Counters, DeadlineView, DropReason, Settled, Store};
use forewarn::{Forewarn, Namespace, Settings, StopReport, Worker, WorkerError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::faulty_store::FaultyStore;
use crate::harness::{self, Inbox, Kind, Rights, Server, within};

/// A namespace on a store whose faults the test decides.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) namespace: Namespace,
}

impl Stage {
    /// A namespace with these settings on the server that all tests share.
    pub(crate) async fn new(settings: Settings) -> Self {
        Self::on(Server::shared(Kind::Redis), settings).await
    }

    /// A namespace with these settings on this server.
    pub(crate) async fn on(server: &Server, settings: Settings) -> Self {
        let stage = Self::unconfigured(server).await;
        stage.namespace.apply(settings).await.unwrap();
        stage
    }

    /// A namespace that was never configured.
    pub(crate) async fn unconfigured(server: &Server) -> Self {
        Self::open(server, RedisOptions::default()).await
    }

    /// A namespace whose workers look only once an hour: whatever they do in time, they were told of or knew.
    pub(crate) async fn unpolled(server: &Server, settings: Settings) -> Self {
        let options = RedisOptions { max_poll: HOUR, ..RedisOptions::default() };
        let stage = Self::open(server, options).await;
        stage.namespace.apply(settings).await.unwrap();
        stage
    }

    /// A namespace that was never configured, and may have the keys for ids that begin with its name and `:`.
    pub(crate) async fn unconfigured_with_keys(server: &Server) -> Self {
        let name = harness::namespace();
        let url = server.url_with(&Rights::documented().with_managed_keys(&format!("{name}:*")));
        Self::open_at(&url, name, RedisOptions::default()).await
    }

    async fn open(server: &Server, options: RedisOptions) -> Self {
        Self::open_at(&server.url(), harness::namespace(), options).await
    }

    async fn open_at(url: &str, name: String, options: RedisOptions) -> Self {
        let store = FaultyStore::new(Arc::new(RedisStore::open(url, options).await.unwrap()));
        let forewarn = Forewarn::with_store(Arc::<FaultyStore>::clone(&store));
        Self { store, namespace: forewarn.namespace(name) }
    }

    pub(crate) fn builder(&self) -> WorkerBuilder {
        Worker::builder(&self.namespace)
    }

    /// Tracks a deadline that expires so many milliseconds from now, by the store's clock.
    pub(crate) async fn track(&self, id: &str, in_ms: i64) {
        let expires_at = forewarn::ExpiresAt::from_millis(self.now().await + in_ms).unwrap();
        self.namespace.track(id, expires_at).await.unwrap();
    }

    pub(crate) async fn now(&self) -> i64 {
        self.store.now().await.unwrap()
    }

    /// Waits until the store's clock has gone on by so much.
    pub(crate) async fn pass(&self, ms: i64) {
        let until = self.now().await + ms;
        harness::eventually("the store's clock", async || (self.now().await >= until).then_some(())).await;
    }

    /// Waits until nothing is armed, open or in a queue; answers with the counters.
    pub(crate) async fn settled(&self) -> Counters {
        harness::eventually("everything to be settled", async || {
            // The server may be away for a moment.
            let stats = self.namespace.stats().await.ok()?;
            let is_over = stats.armed + stats.open == 0 && stats.routes.iter().all(|route| route.pending == 0);
            is_over.then_some(stats.counters)
        })
        .await
    }

    pub(crate) async fn show(&self, id: &str) -> Option<DeadlineView> {
        let name = self.namespace.name().unwrap();
        self.store.show(name, &Id::new(id).unwrap()).await.unwrap()
    }
}

/// Longer than any test waits.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// Settings with a lease of so many milliseconds, and no reminder.
pub(crate) fn lease(ms: u64) -> Settings {
    Settings::default().lease(Duration::from_millis(ms))
}

pub(crate) fn lead(ms: i64) -> LeadTime {
    LeadTime::from_millis(ms).unwrap()
}

/// A happening as a test remembers it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Started { registered: bool },
    Claimed(u64),
    Settled { id: String, attempt: u32, outcome: &'static str, settled: Settled },
    Released(String),
    Voided { id: String, attempt: u32, outcome: Option<&'static str>, reason: Option<DropReason> },
    Lost { id: String, loss: Loss },
    OutageStarted(String),
    OutageEnded,
    Reapplied,
    Stopping,
    Other,
}

impl Seen {
    fn of(happening: &Happening<'_>) -> Self {
        match happening {
            Happening::Started { registered, .. } => Self::Started { registered: *registered },
            Happening::Claimed { notices, .. } => Self::Claimed(*notices),
            Happening::Settled { notice, attempt, outcome, settled } => Self::Settled {
                id: notice.id.to_string(),
                attempt: *attempt,
                outcome: outcome.as_str(),
                settled: *settled,
            },
            Happening::Released { notice, .. } => Self::Released(notice.id.to_string()),
            Happening::Voided { notice, attempt, outcome, reason } => Self::Voided {
                id: notice.id.to_string(),
                attempt: *attempt,
                outcome: outcome.map(forewarn::Outcome::as_str),
                reason: *reason,
            },
            Happening::Lost { notice, loss, .. } => Self::Lost { id: notice.id.to_string(), loss: *loss },
            Happening::OutageStarted { error } => Self::OutageStarted((*error).to_owned()),
            Happening::OutageEnded { .. } => Self::OutageEnded,
            Happening::Reapplied => Self::Reapplied,
            Happening::Stopping { .. } => Self::Stopping,
            _ => Self::Other,
        }
    }
}

/// A worker in the background.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) seen: Arc<Inbox<Seen>>,
    stop: CancellationToken,
    task: JoinHandle<Result<StopReport, WorkerError>>,
}

impl Running {
    /// Runs the worker until [`Running::stop`]; returns when it has started.
    pub(crate) async fn start(builder: WorkerBuilder) -> Self {
        let running = Self::launch(builder);
        running.wait("the start", |seen| matches!(seen, Seen::Started { .. })).await;
        running
    }

    /// Runs the worker without waiting for its start.
    pub(crate) fn launch(builder: WorkerBuilder) -> Self {
        let seen = Arc::new(Inbox::new());
        let stop = CancellationToken::new();
        let observer = {
            let seen = Arc::clone(&seen);
            move |happening: &Happening<'_>| seen.push(Seen::of(happening))
        };
        let task = tokio::spawn(builder.observer(observer).run(stop.clone().cancelled_owned()));
        Self { seen, stop, task }
    }

    /// Waits until this has been seen.
    pub(crate) async fn wait(&self, what: &str, is_it: impl Fn(&Seen) -> bool) -> Seen {
        let seen = self.seen.wait_until(what, |seen| seen.iter().any(&is_it)).await;
        seen.into_iter().find(is_it).unwrap()
    }

    /// Waits until notices of this id have been settled so often; answers with how.
    pub(crate) async fn settled(&self, id: &str, times: usize) -> Vec<Seen> {
        let of_id = |seen: &&Seen| matches!(seen, Seen::Settled { id: of, .. } if of == id);
        let enough = |seen: &[Seen]| seen.iter().filter(of_id).count() >= times;
        let seen = self.seen.wait_until(&format!("{id} to be settled {times} times"), enough).await;
        seen.iter().filter(of_id).cloned().collect()
    }

    /// How many happenings of a kind have been seen.
    pub(crate) fn count(&self, is_it: impl Fn(&Seen) -> bool) -> usize {
        self.seen.items().iter().filter(|seen| is_it(seen)).count()
    }

    /// Tells it to stop and waits for the report.
    pub(crate) async fn stop(self) -> StopReport {
        self.stop.cancel();
        self.end().await.unwrap()
    }

    /// Waits for the end without telling it to stop.
    pub(crate) async fn end(self) -> Result<StopReport, WorkerError> {
        within("the worker to end", self.task).await.unwrap()
    }

    /// Ends it as a crash would.
    pub(crate) async fn crash(self) {
        self.task.abort();
        assert!(within("the crash", self.task).await.unwrap_err().is_cancelled());
    }
}

/// A failure of which only the summary matters.
pub(crate) fn failure(summary: &str) -> Failure {
    Failure::new(forewarn::Class::Timeout, summary)
}
