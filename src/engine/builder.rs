//! Building a worker: what it works on, its handlers and its pace, checked before it starts.

use std::{fmt, sync::Arc, time::Duration};

use crate::engine::dispatcher::Pace;
use crate::engine::handler::{Handler, Handlers};
use crate::engine::report::Observer;
use crate::engine::worker::Worker;
use crate::engine::{Delivery, Happening, Outcome, StopReport, WorkerError};
use crate::model::{Backoff, Invalid, Name};
use crate::store::Store;

/// Where a worker works: one namespace of one store.
#[derive(Debug, Clone)]
pub struct Workplace {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) namespace: Result<Name, Invalid>,
}

impl Workplace {
    /// The namespace of this name in `store`. A name that is not valid is refused when the worker is built.
    pub fn new(store: Arc<dyn Store>, namespace: Result<Name, Invalid>) -> Self {
        Self { store, namespace }
    }
}

/// A worker about to be built. At least one handler is required; everything else has a default.
#[must_use = "nothing works until the worker is run"]
pub struct WorkerBuilder {
    workplace: Workplace,
    route: String,
    handlers: Handlers,
    pace: Pace,
    backoff: Backoff,
    observer: Option<Observer>,
}

impl WorkerBuilder {
    /// The most notices one claim may take.
    pub const MAX_BATCH: u32 = 500;

    pub(crate) fn new(workplace: Workplace) -> Self {
        let pace = Pace {
            concurrency: 16,
            batch: 100,
            max_poll: Duration::from_secs(1),
            stop_timeout: Duration::from_secs(30),
        };
        Self {
            workplace,
            route: "main".to_owned(),
            handlers: Handlers::default(),
            pace,
            backoff: Backoff::default(),
            observer: None,
        }
    }

    /// The route to work on. Default: `main`. One that is missing is registered when the worker starts, for the kinds
    /// that have a handler.
    pub fn route(mut self, name: impl Into<String>) -> Self {
        self.route = name.into();
        self
    }

    /// Handles reminders.
    pub fn on_reminder<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Delivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Into<Outcome>> + Send + 'static,
    {
        self.handlers.reminder = Some(Handler::new(handler));
        self
    }

    /// Handles cleanups.
    pub fn on_cleanup<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Delivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Into<Outcome>> + Send + 'static,
    {
        self.handlers.cleanup = Some(Handler::new(handler));
        self
    }

    /// How many handlers run at once. Default: 16.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.pace.concurrency = handlers;
        self
    }

    /// How many notices one claim takes, and never more than handlers are free. Default: 100; at most 500.
    pub fn batch(mut self, notices: u32) -> Self {
        self.pace.batch = notices;
        self
    }

    /// How long what runs may go on when the worker stops; what has not ended then is given back. Default: 30 s.
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.pace.stop_timeout = timeout;
        self
    }

    /// How long failed notices wait, and how often they may fail. Default: that of [`Backoff`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How long the worker sleeps at most before it looks again: how late the write of a raw client may be noticed.
    /// Default: 1 s. The store has a limit of its own, also 1 s unless it was opened with another.
    pub fn max_poll(mut self, interval: Duration) -> Self {
        self.pace.max_poll = interval;
        self
    }

    /// Hears of everything that happens. Called on the worker's own task: it must neither block nor panic.
    pub fn observer(mut self, observer: impl Fn(&Happening<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Checks everything and makes the worker.
    ///
    /// # Errors
    /// [`WorkerError::Invalid`] names the field that is wrong and the fix.
    pub fn build(self) -> Result<Worker, WorkerError> {
        let Self { workplace, route, handlers, pace, backoff, observer } = self;
        let namespace = workplace.namespace?;
        let route = Name::new("route", route)?;
        let refused = |field, problem: &str| Err(Invalid::new(field, problem).into());
        if handlers.reminder.is_none() && handlers.cleanup.is_none() {
            return refused("handler", "is missing; give on_reminder, on_cleanup or both");
        }
        if pace.concurrency == 0 || pace.concurrency > MAX_CONCURRENCY {
            return refused("concurrency", "is out of range; give 1 to 65536");
        }
        if pace.batch == 0 || pace.batch > Self::MAX_BATCH {
            return refused("batch", "is out of range; give 1 to 500");
        }
        if pace.max_poll < Duration::from_millis(1) {
            return refused("max_poll", "is too short; give at least 1ms, as in 1s");
        }
        Ok(Worker { store: workplace.store, namespace, route, handlers, pace, backoff, observer })
    }

    /// Builds the worker and runs it until `shutdown` resolves: [`Worker::run`].
    ///
    /// # Errors
    /// Those of [`WorkerBuilder::build`] and [`Worker::run`].
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<StopReport, WorkerError> {
        self.build()?.run(shutdown).await
    }
}

const MAX_CONCURRENCY: usize = 65_536;

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workplace, route, handlers, pace, .. } = self;
        f.debug_struct("WorkerBuilder")
            .field("namespace", &workplace.namespace)
            .field("route", route)
            .field("handlers", handlers)
            .field("pace", pace)
            .finish_non_exhaustive()
    }
}
