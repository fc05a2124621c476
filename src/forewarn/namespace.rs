//! One namespace as callers use it: settings, deadlines, what is parked, how much there is.

use std::{fmt, sync::Arc, time::Duration};

use crate::engine::Workplace;
use crate::forewarn::call::{RenewCall, Target, TrackCall};
use crate::model::{ExpiresAt, Id, Invalid, Mode, Name, Pause, Renew, Route, Settings, Track};
use crate::store::{
    Applied, Change, Configured, DeadlineView, Expired, Feed, HistoryEntry, HistoryQuery, ListQuery, Listed, Parked,
    ParkedPage, ParkedQuery, Preview, Removed, Renewed, Requeued, Shelf, Stats, Store, StoreError, Tracked,
};

/// One namespace of a store: a kind of thing that expires, with its own settings. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Namespace {
    store: Arc<dyn Store>,
    name: Result<Name, Invalid>,
}

impl Namespace {
    pub(super) fn new(store: Arc<dyn Store>, name: impl AsRef<str>) -> Self {
        Self { store, name: Name::new("namespace", name) }
    }

    /// The one of a name that is known to be one.
    #[cfg(feature = "daemon")]
    pub(crate) fn of(store: Arc<dyn Store>, name: Name) -> Self {
        Self { store, name: Ok(name) }
    }

    /// The name.
    ///
    /// # Errors
    /// If it does not have the grammar of names.
    pub fn name(&self) -> Result<&Name, Invalid> {
        self.name.as_ref().map_err(Clone::clone)
    }

    /// The store it lives in.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Creates the namespace or changes its settings; a field left at its default means the default.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for settings that cannot work, [`StoreError::Conflict`] if newer ones are in force.
    pub async fn apply(&self, settings: Settings) -> Result<Applied, StoreError> {
        self.configure(&Change::settings(settings)).await
    }

    /// Creates or changes the namespace: settings, routes or both.
    ///
    /// # Errors
    /// As for [`Namespace::apply`].
    pub async fn configure(&self, change: &Change) -> Result<Applied, StoreError> {
        self.store.configure(self.name()?, change).await
    }

    /// Adds a route if it is missing. Answers whether it was.
    ///
    /// # Errors
    /// [`StoreError::Unconfigured`] if the namespace has no settings.
    pub async fn ensure_route(&self, route: Route) -> Result<bool, StoreError> {
        let configured = self.configured().await?;
        if configured.routes.iter().any(|known| known.name == route.name) {
            return Ok(false);
        }
        Ok(self.configure(&Change::add_route(route)).await?.changed)
    }

    /// What a change would do at once, without doing it.
    ///
    /// # Errors
    /// As for [`Namespace::apply`].
    pub async fn preview(&self, change: &Change) -> Result<Preview, StoreError> {
        self.store.preview(self.name()?, change).await
    }

    /// The settings and routes in force.
    ///
    /// # Errors
    /// [`StoreError::Unconfigured`] if there are none.
    pub async fn configured(&self) -> Result<Arc<Configured>, StoreError> {
        self.store.configured(self.name()?).await
    }

    /// Deletes the namespace with everything in it; answers whether there was one.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn forget(&self) -> Result<bool, StoreError> {
        self.store.forget(self.name()?).await
    }

    /// Pauses or resumes the namespace or one of its routes, for all workers.
    ///
    /// # Errors
    /// [`StoreError::Unconfigured`], [`StoreError::NoRoute`].
    pub async fn pause(&self, pause: &Pause) -> Result<(), StoreError> {
        self.store.pause(self.name()?, pause).await
    }

    /// Observes what is handed out from now on, to any worker on any route, and claims nothing itself. The stream ends when the
    /// connection behind it is lost; call again.
    ///
    /// ```no_run
    /// # async fn example(sessions: forewarn::Namespace) -> Result<(), forewarn::StoreError> {
    /// use futures::StreamExt;
    ///
    /// let mut feed = sessions.feed().await?;
    /// while let Some(handed) = feed.next().await {
    ///     let handed = handed?;
    ///     println!("{} {} on {}", handed.notice.kind.to_stored(), handed.notice.id, handed.route);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::Unconfigured`], [`StoreError::Denied`].
    pub async fn feed(&self) -> Result<Feed, StoreError> {
        self.store.feed(self.name()?).await
    }

    /// Tracks a deadline; await the returned call, after adding a payload or a mode if wanted.
    ///
    /// ```no_run
    /// # async fn example(sessions: forewarn::Namespace) -> Result<(), Box<dyn std::error::Error>> {
    /// let expires_at = chrono::Utc::now() + chrono::Duration::minutes(30);
    /// sessions.track("user_session:wang2024", expires_at).payload(&serde_json::json!({"user": 7}))?.await?;
    /// # Ok(()) }
    /// ```
    pub fn track(
        &self,
        id: impl Into<Vec<u8>>,
        expires_at: impl TryInto<ExpiresAt, Error = impl Into<Invalid>>,
    ) -> TrackCall {
        TrackCall::new(self.clone(), Target::new(id, expires_at))
    }

    /// Moves an armed deadline; await the returned call, after adding a payload if wanted.
    pub fn renew(
        &self,
        id: impl Into<Vec<u8>>,
        expires_at: impl TryInto<ExpiresAt, Error = impl Into<Invalid>>,
    ) -> RenewCall {
        RenewCall::new(self.clone(), Target::new(id, expires_at))
    }

    /// Tracks a deadline that expires `ttl` from now by the store's clock; await the returned call.
    ///
    /// ```no_run
    /// # async fn example(sessions: forewarn::Namespace) -> Result<(), forewarn::StoreError> {
    /// sessions.track_in("user_session:wang2024", std::time::Duration::from_secs(30 * 60)).await?;
    /// # Ok(()) }
    /// ```
    pub fn track_in(&self, id: impl Into<Vec<u8>>, ttl: Duration) -> TrackCall {
        TrackCall::new(self.clone(), Target::within(id, ttl))
    }

    /// Moves an armed deadline to `ttl` from now by the store's clock; await the returned call.
    pub fn renew_in(&self, id: impl Into<Vec<u8>>, ttl: Duration) -> RenewCall {
        RenewCall::new(self.clone(), Target::within(id, ttl))
    }

    /// Tracks many deadlines in one call; answers for each, in the order given.
    ///
    /// # Errors
    /// Those of the store; an entry that is not acceptable is an answer, not an error.
    pub async fn track_all(&self, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, StoreError> {
        self.store.track(self.name()?, mode, entries).await
    }

    /// Renews many deadlines in one call; answers for each, in the order given.
    ///
    /// # Errors
    /// As for [`Namespace::track_all`].
    pub async fn renew_all(&self, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError> {
        self.store.renew(self.name()?, entries).await
    }

    /// Removes many deadlines in one call; answers for each, in the order given.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn remove_all(&self, ids: &[Id]) -> Result<Vec<Removed>, StoreError> {
        self.store.remove(self.name()?, ids).await
    }

    /// Removes a deadline: nothing of its life is handed out any more.
    ///
    /// # Errors
    /// Those of the store; an unknown id is an answer, not an error.
    pub async fn remove(&self, id: impl Into<Vec<u8>>) -> Result<Removed, StoreError> {
        let answers = self.store.remove(self.name()?, &[Id::new(id)?]).await?;
        only(answers)
    }

    /// Ends a deadline now: its cleanup opens with reason `ended`.
    ///
    /// # Errors
    /// Those of the store; an unknown id is an answer, not an error.
    pub async fn expire(&self, id: impl Into<Vec<u8>>) -> Result<Expired, StoreError> {
        let answers = self.store.expire(self.name()?, &[Id::new(id)?]).await?;
        only(answers)
    }

    /// Everything known of one id.
    ///
    /// # Errors
    /// Those of the store; an unknown id is `None`.
    pub async fn show(&self, id: impl Into<Vec<u8>>) -> Result<Option<DeadlineView>, StoreError> {
        self.store.show(self.name()?, &Id::new(id)?).await
    }

    /// Armed deadlines by expiry.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        self.store.list(self.name()?, query).await
    }

    /// Dead letters or reviews, oldest first.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn parked(&self, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError> {
        self.store.parked(self.name()?, shelf, query).await
    }

    /// Puts parked notices back to be delivered again; answers for each.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn requeue(&self, shelf: Shelf, parked: &[Parked]) -> Result<Vec<Requeued>, StoreError> {
        self.store.requeue(self.name()?, shelf, parked).await
    }

    /// Deletes parked notices; answers for each whether it was there.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn discard(&self, shelf: Shelf, parked: &[Parked]) -> Result<Vec<bool>, StoreError> {
        self.store.discard(self.name()?, shelf, parked).await
    }

    /// What is remembered of notices that have ended, newest first; nothing unless the settings have a `history`.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn history(&self, query: &HistoryQuery) -> Result<Vec<HistoryEntry>, StoreError> {
        self.store.history(self.name()?, query).await
    }

    /// How much of what there is.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn stats(&self) -> Result<Stats, StoreError> {
        self.store.stats(self.name()?).await
    }
}

impl From<&Namespace> for Workplace {
    fn from(namespace: &Namespace) -> Self {
        Self::new(Arc::clone(&namespace.store), namespace.name.clone())
    }
}

/// The answer to a batch of one.
pub(super) fn only<T: fmt::Debug>(mut answers: Vec<T>) -> Result<T, StoreError> {
    match answers.pop() {
        Some(answer) if answers.is_empty() => Ok(answer),
        other => Err(StoreError::Unexpected {
            address: "the namespace".to_owned(),
            problem: format!("one answer expected, got {other:?} after {}", answers.len()),
        }),
    }
}
