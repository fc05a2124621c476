//! The port as one route's worker uses it: bound to namespace and route, every call bounded in time, outages told once,
//! and settings that have vanished applied again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::timeout;
use tracing::warn;

use crate::engine::outage::{Call, Outage};
use crate::engine::report::{Happening, Witness};
use crate::model::{Name, Pause, Route};
use crate::store::{Change, Checked, Claims, Configured, Failing, Settled, Store, StoreError, Token, Wakeups};

/// A store as seen by the worker of one route.
#[derive(Debug)]
pub(crate) struct RouteStore {
    store: Arc<dyn Store>,
    namespace: Name,
    route: Route,
    /// What was last loaded; applied again should the store forget it.
    known: Mutex<Arc<Configured>>,
    mending: tokio::sync::Mutex<()>,
    outage: Outage,
    witness: Witness,
}

impl RouteStore {
    /// A safety net for an adapter that hangs: its own time-outs are shorter.
    const CALL_TIMEOUT: Duration = Duration::from_secs(15);

    /// Binds `store` to a route that is registered under `configured`.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        namespace: Name,
        route: Route,
        configured: Arc<Configured>,
        outage: Outage,
        witness: Witness,
    ) -> Self {
        witness.mask_ids(configured.id_mask());
        let (known, mending) = (Mutex::new(configured), tokio::sync::Mutex::default());
        Self { store, namespace, route, known, mending, outage, witness }
    }

    pub(crate) fn namespace(&self) -> &Name {
        &self.namespace
    }

    pub(crate) fn route(&self) -> &Name {
        &self.route.name
    }

    /// The visibility timeout, as last loaded.
    pub(crate) fn lease(&self) -> Duration {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).settings.lease
    }

    /// Loads the settings anew, so that what is applied again after a loss is not long out of date.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let configured = self.call(Call::Configured, || self.store.configured(&self.namespace)).await?;
        self.learn(configured);
        Ok(())
    }

    pub(crate) async fn claim(&self, limit: u32, lease: Duration) -> Result<Claims, StoreError> {
        self.call(Call::Claim, || self.store.claim(&self.namespace, &self.route.name, limit, lease)).await
    }

    pub(crate) async fn recheck(&self, tokens: &[Token]) -> Result<Vec<Checked>, StoreError> {
        self.call(Call::Recheck, || async {
            all(tokens, self.store.recheck(&self.namespace, &self.route.name, tokens).await?)
        })
        .await
    }

    pub(crate) async fn extend(&self, tokens: &[Token], lease: Duration) -> Result<Vec<Settled>, StoreError> {
        self.call(Call::Extend, || async {
            all(tokens, self.store.extend(&self.namespace, &self.route.name, tokens, lease).await?)
        })
        .await
    }

    // The three verbs that settle do not count as failing here: one settler makes them all and knows what is left.

    pub(crate) async fn ack(&self, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        self.attempt(|| async { all(tokens, self.store.ack(&self.namespace, &self.route.name, tokens).await?) }).await
    }

    pub(crate) async fn fail(&self, failing: &[Failing]) -> Result<Vec<Settled>, StoreError> {
        self.attempt(|| async { all(failing, self.store.fail(&self.namespace, &self.route.name, failing).await?) })
            .await
    }

    pub(crate) async fn release(&self, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        self.attempt(|| async { all(tokens, self.store.release(&self.namespace, &self.route.name, tokens).await?) })
            .await
    }

    /// Whether the ids are keys, as last loaded.
    pub(crate) fn is_key_backed(&self) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).settings.key_backed
    }

    pub(crate) async fn resync(&self) -> Result<Duration, StoreError> {
        self.call(Call::Resync, || self.store.resync(&self.namespace)).await
    }

    pub(crate) async fn wakeups(&self) -> Result<Wakeups, StoreError> {
        self.call(Call::Wakeups, || self.store.wakeups(&self.namespace)).await
    }

    /// This call failed.
    pub(crate) fn failed(&self, call: Call, error: &StoreError) {
        self.outage.failed(call, error);
    }

    /// This call was answered, or nothing is left that it would be made for.
    pub(crate) fn answered(&self, call: Call) {
        self.outage.answered(call);
    }

    async fn call<T, F>(&self, call: Call, ask: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let answer = self.attempt(ask).await;
        match &answer {
            Ok(_) => self.answered(call),
            Err(error) => self.failed(call, error),
        }
        answer
    }

    /// Asks; once more if what was needed had vanished and could be put back.
    async fn attempt<T, F>(&self, ask: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let answer = self.bounded(ask()).await;
        if let Err(StoreError::Unconfigured { .. } | StoreError::NoRoute { .. }) = &answer {
            self.mend().await?;
            return self.bounded(ask()).await;
        }
        answer
    }

    async fn bounded<T>(&self, asking: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        timeout(Self::CALL_TIMEOUT, asking).await.unwrap_or_else(|elapsed| {
            Err(StoreError::Unavailable { address: "(no answer)".to_owned(), source: Box::new(elapsed) })
        })
    }

    /// Puts back what the store has lost: the settings and routes last loaded (after a FLUSHALL, an empty failover), or
    /// this worker's route alone.
    async fn mend(&self) -> Result<(), StoreError> {
        // One at a time: several calls find the loss at once, and the first one that mends it mends it for all.
        let _mending = self.mending.lock().await;
        let known = Arc::clone(&self.known.lock().unwrap_or_else(PoisonError::into_inner));
        let (change, paused) = match self.bounded(self.store.configured(&self.namespace)).await {
            Ok(found) if found.routes.iter().any(|route| route.name == self.route.name) => {
                self.learn(found);
                return Ok(());
            }
            Ok(_) => (Change::add_route(self.route.clone()), None),
            Err(StoreError::Unconfigured { .. }) => {
                let Configured { settings, routes, paused, id_key, .. } = Configured::clone(&known);
                let change = Change { settings: Some(settings), routes, id_key, ..Change::default() };
                (change, Some(paused))
            }
            Err(error) => return Err(error),
        };
        let applied = self.bounded(self.store.configure(&self.namespace, &change)).await?;
        if let Some(paused) = paused.filter(|paused| paused.reminders || paused.cleanups) {
            let pause =
                Pause { route: None, reminders: paused.reminders, cleanups: paused.cleanups, paused: true, rate: None };
            self.bounded(self.store.pause(&self.namespace, &pause)).await?;
        }
        let (namespace, route) = (&self.namespace, &self.route.name);
        if change.settings.is_some() {
            warn!(%namespace, %route, "the store had lost the settings; those last loaded are applied again");
        } else {
            warn!(%namespace, %route, "the route was dropped under its worker; it is registered again");
        }
        self.learn(applied.configured);
        self.witness.tell(&Happening::Reapplied);
        Ok(())
    }

    fn learn(&self, configured: Arc<Configured>) {
        self.witness.mask_ids(configured.id_mask());
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = configured;
    }
}

/// The answers to a batch, if there is one for each entry.
fn all<Q, A>(entries: &[Q], answers: Vec<A>) -> Result<Vec<A>, StoreError> {
    if answers.len() == entries.len() {
        return Ok(answers);
    }
    let problem = format!("{} answers to {} entries", answers.len(), entries.len());
    Err(StoreError::Unexpected { address: "(worker)".to_owned(), problem })
}
