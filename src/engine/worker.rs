//! The worker of one route: its start, its agents, and its stop.
//!
//! All agents live inside the future of [`Worker::run`]; handlers run on tasks that end with it. Dropping the future is
//! safe: what was held is handed out again when the leases end.

use std::{fmt, future::pending, pin::pin, sync::Arc};

use tokio::{join, select, sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::engine::builder::{WorkerBuilder, Workplace};
use crate::engine::dispatcher::{Dispatcher, Pace};
use crate::engine::handler::Handlers;
use crate::engine::lease::{LeaseKeeper, Leases};
use crate::engine::listener::Listener;
use crate::engine::outage::{Call, Outage};
use crate::engine::reconciler::Reconciler;
use crate::engine::report::{Happening, Observer, Witness};
use crate::engine::route_store::RouteStore;
use crate::engine::runner::Runner;
use crate::engine::settle::Settler;
use crate::engine::tick::{Alarm, Brake, Patience, Stop};
use crate::engine::{StopReport, WorkerError};
use crate::model::{Backoff, Name, Route};
use crate::store::{Change, Configured, Store, StoreError};

/// Claims the due notices of one route and runs handlers for them.
///
/// Delivery is at least once: a handler must bear to see a notice again. Every notice is claimed for the namespace's
/// lease, which is extended while its handler runs; should the lease be lost all the same,
/// [`Delivery::cancelled`](crate::engine::Delivery::cancelled) resolves.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use forewarn::{Delivery, Forewarn, Outcome, Worker};
///
/// # async fn delete_data_of(session: &str) -> std::io::Result<bool> { Ok(!session.is_empty()) }
/// async fn clean_up(delivery: Delivery) -> std::io::Result<Outcome> {
///     let Some(session) = delivery.id().as_text() else { return Ok(Outcome::noted("no session of ours")) };
///     // An error is retried. A second delivery finds nothing left, and that is done, too.
///     let found = delete_data_of(session).await?;
///     Ok(if found { Outcome::Done } else { Outcome::noted("gone already") })
/// }
///
/// let forewarn = Forewarn::connect("redis://127.0.0.1/").await?;
/// let sessions = forewarn.namespace("session");
/// let shutdown = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
/// let report = Worker::builder(&sessions)
///     .on_reminder(|delivery| async move {
///         println!("{} expires at {}", delivery.id(), delivery.expires_at());
///     })
///     .on_cleanup(clean_up)
///     .run(shutdown)
///     .await?;
/// println!("given back: {}", report.released);
/// # Ok(()) }
/// ```
pub struct Worker {
    pub(super) store: Arc<dyn Store>,
    pub(super) namespace: Name,
    pub(super) route: Name,
    pub(super) handlers: Handlers,
    pub(super) pace: Pace,
    pub(super) backoff: Backoff,
    pub(super) observer: Option<Observer>,
}

impl Worker {
    /// Begins to build a worker for a namespace.
    pub fn builder(workplace: impl Into<Workplace>) -> WorkerBuilder {
        WorkerBuilder::new(workplace.into())
    }

    /// Works until `shutdown` resolves, through any outage of the store. Then it claims nothing more, lets what runs
    /// finish within the stop time-out, gives back the rest and reports.
    ///
    /// The store may be down when this begins: the worker waits for it and tells so, as it does later, until `shutdown`
    /// resolves. To connect, however, as [`Forewarn::connect`](crate::Forewarn::connect) does, needs the store once.
    ///
    /// A route that is missing is registered first. A route that delivers a kind of notice for which there is no
    /// handler is refused, because somebody waits for those notices.
    ///
    /// # Errors
    /// [`WorkerError::Store`] if the namespace was never configured or the store refuses, [`WorkerError::NoHandler`].
    /// A store that cannot be reached is no error: the worker waits for it.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<StopReport, WorkerError> {
        let mut shutdown = pin!(shutdown);
        let witness = Witness::new(self.namespace.clone(), self.route.clone(), self.observer.clone());
        let (store, registered) = select! {
            biased;
            () = &mut shutdown => return Ok(StopReport::default()),
            started = self.start(&witness) => started?,
        };
        let alarm = Arc::new(Alarm::default());
        let mut listener = select! {
            biased;
            () = &mut shutdown => return Ok(StopReport::default()),
            listener = Listener::subscribe(Arc::clone(&store), Arc::clone(&alarm)) => listener,
        };
        let (namespace, route) = (&self.namespace, &self.route);
        info!(%namespace, %route, registered, "the worker starts");
        witness.tell(&Happening::Started { namespace, route, registered });

        let (ended, inbox) = mpsc::channel(Settler::BATCH);
        let leases = Arc::new(Leases::new(witness.clone()));
        let mut settler = Settler::new(Arc::clone(&store), Arc::clone(&alarm), witness.clone(), self.backoff, inbox);
        let mut keeper = LeaseKeeper::new(Arc::clone(&leases), Arc::clone(&store));
        let reconciler = Reconciler::new(Arc::clone(&store));
        let runner = Arc::new(Runner { store, leases, handlers: self.handlers, ended, brake: Brake::new() });
        let stop_timeout = self.pace.stop_timeout;
        let mut dispatcher = Dispatcher::new(runner, alarm, witness.clone(), self.pace);

        let (stop, closing) = (Stop::default(), CancellationToken::new());
        let working = async {
            dispatcher.run(&stop).await;
            let before = witness.totals();
            dispatcher.drain(&stop).await;
            closing.cancel();
            before
        };
        let stopping = async {
            shutdown.await;
            stop.begin(stop_timeout);
            pending::<()>().await;
        };
        let before = select! {
            (before, ()) = async { join!(working, settler.run(&closing)) } => before,
            never = keeper.run() => match never {},
            never = listener.run() => match never {},
            never = reconciler.run() => match never {},
            () = stopping => witness.totals(),
        };
        witness.log_losses();
        let report = StopReport::between(before, witness.totals());
        let StopReport { finished, released, voided, lost, .. } = report;
        info!(%namespace, %route, finished, released, voided, lost, "the worker has stopped");
        Ok(report)
    }

    /// The store, the namespace and the route it works on.
    pub(crate) fn place(&self) -> (&Arc<dyn Store>, &Name, &Name) {
        (&self.store, &self.namespace, &self.route)
    }

    /// Loads the settings and sees to the route, waiting for a store that cannot be reached. Answers also whether the
    /// route had to be registered.
    async fn start(&self, witness: &Witness) -> Result<(Arc<RouteStore>, bool), WorkerError> {
        let outage = Outage::new(self.namespace.clone(), self.route.clone(), witness.clone());
        let mut patience = Patience::new();
        let (configured, registered) = loop {
            match self.ensure_route().await {
                Ok(ensured) => break ensured,
                Err(error @ StoreError::Unavailable { .. }) => {
                    outage.failed(Call::Configured, &error);
                    sleep(patience.next_delay()).await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        outage.answered(Call::Configured);
        let route = configured.routes.iter().find(|route| route.name == self.route).cloned();
        let Some(route) = route else {
            let (namespace, route) = (self.namespace.clone(), self.route.clone());
            return Err(StoreError::NoRoute { namespace, route }.into());
        };
        self.check_handlers(&configured, &route)?;
        let store = RouteStore::new(
            Arc::clone(&self.store),
            self.namespace.clone(),
            route,
            configured,
            outage,
            witness.clone(),
        );
        Ok((Arc::new(store), registered))
    }

    async fn ensure_route(&self) -> Result<(Arc<Configured>, bool), StoreError> {
        let configured = self.store.configured(&self.namespace).await?;
        if configured.routes.iter().any(|route| route.name == self.route) {
            return Ok((configured, false));
        }
        // For what it can handle and nothing else: the rest would wait in its queue for nobody.
        let route = Route {
            reminders: self.handlers.reminder.is_some(),
            cleanups: self.handlers.cleanup.is_some(),
            ..Route::all(self.route.clone())
        };
        let applied = self.store.configure(&self.namespace, &Change::add_route(route)).await?;
        Ok((applied.configured, true))
    }

    fn check_handlers(&self, configured: &Configured, route: &Route) -> Result<(), WorkerError> {
        let (namespace, name) = (&self.namespace, &self.route);
        let Configured { settings, .. } = configured;
        let speaks = settings.remind.iter().any(|lead| route.wants_reminder(*lead));
        let cleans = settings.cleanup && route.cleanups;
        for (delivers, handler, kind, own) in [
            (speaks, &self.handlers.reminder, "reminder", "cleanups"),
            (cleans, &self.handlers.cleanup, "cleanup", "reminders"),
        ] {
            if delivers && handler.is_none() {
                let (namespace, route) = (namespace.clone(), name.clone());
                return Err(WorkerError::NoHandler { namespace, route, kind, own });
            }
            if !delivers && handler.is_some() {
                info!(%namespace, route = %name, "the route delivers no {kind}s at present; their handler has no work");
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, route, handlers, pace, .. } = self;
        f.debug_struct("Worker")
            .field("namespace", namespace)
            .field("route", route)
            .field("handlers", handlers)
            .field("pace", pace)
            .finish_non_exhaustive()
    }
}
