//! The library face: [`Forewarn`] opens a store by its URL, [`Namespace`] does what callers do with deadlines.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
};

use serde::Serialize;

use crate::engine::Workplace;
use crate::model::{ExpiresAt, Id, Invalid, Mode, Name, Pause, Renew, Route, Settings, Track};
use crate::store::redis::RedisStore;
use crate::store::sqlite::SqliteStore;
use crate::store::{
    Applied, Change, Configured, DeadlineView, Expired, ListQuery, Listed, Preview, Registered, Removed, Renewed,
    Replaced, Stats, Store, StoreError, Tracked,
};

/// A connection to a store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Forewarn {
    store: Arc<dyn Store>,
}

impl Forewarn {
    /// Opens the store at `url`: `redis://[user:password@]host[:port][/db][?prefix=fw]`, `rediss://…` or
    /// `redis+unix:///path` for one on a server; `sqlite:PATH` or `sqlite:///absolute/path` for one in a file, which is made
    /// if it is missing.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a URL that cannot be understood, [`StoreError::Unavailable`] if nothing answers there,
    /// [`StoreError::Unusable`] for a file that is no store.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), forewarn::StoreError> {
    /// let forewarn = forewarn::Forewarn::connect("redis://127.0.0.1/").await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        if url.starts_with("sqlite:") {
            return Ok(Self::with_store(Arc::new(SqliteStore::connect(url).await?)));
        }
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("redis" | "rediss" | "redis+unix" | "unix") => {
                Ok(Self::with_store(Arc::new(RedisStore::connect(url).await?)))
            }
            _ => Err(Invalid::new(
                "store",
                "has no known scheme; use sqlite:PATH, redis://host:port, rediss://host:port or redis+unix:///path",
            )
            .into()),
        }
    }

    /// Uses a store that is open already.
    pub fn with_store(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The store behind this connection.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// One namespace. A name that is not valid is refused by the first call made with it.
    pub fn namespace(&self, name: impl Into<String>) -> Namespace {
        Namespace { store: Arc::clone(&self.store), name: Name::new("namespace", name) }
    }

    /// All namespaces ever configured, by name.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        self.store.namespaces().await
    }
}

/// One namespace of a store: a kind of thing that expires, with its own settings. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Namespace {
    store: Arc<dyn Store>,
    name: Result<Name, Invalid>,
}

impl Namespace {
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
        TrackCall { namespace: self.clone(), target: Target::new(id, expires_at), mode: Mode::Upsert }
    }

    /// Moves an armed deadline; await the returned call, after adding a payload if wanted.
    pub fn renew(
        &self,
        id: impl Into<Vec<u8>>,
        expires_at: impl TryInto<ExpiresAt, Error = impl Into<Invalid>>,
    ) -> RenewCall {
        RenewCall { namespace: self.clone(), target: Target::new(id, expires_at) }
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

/// What track and renew have in common: who, until when, with what. Errors wait until the call is awaited.
#[derive(Clone, Debug)]
struct Target {
    id: Result<Id, Invalid>,
    expires_at: Result<ExpiresAt, Invalid>,
    payload: Option<Vec<u8>>,
}

impl Target {
    fn new(id: impl Into<Vec<u8>>, expires_at: impl TryInto<ExpiresAt, Error = impl Into<Invalid>>) -> Self {
        Self { id: Id::new(id), expires_at: expires_at.try_into().map_err(Into::into), payload: None }
    }

    fn set_json(&mut self, payload: &impl Serialize) -> Result<(), Invalid> {
        let json = serde_json::to_vec(payload)
            .map_err(|e| Invalid::new("payload", format!("cannot be written as JSON: {e}")))?;
        self.payload = Some(json);
        Ok(())
    }
}

/// A `track` about to be made; await it.
#[must_use = "nothing is tracked until the call is awaited"]
#[derive(Clone, Debug)]
pub struct TrackCall {
    namespace: Namespace,
    target: Target,
    mode: Mode,
}

impl TrackCall {
    /// Hands this value, as JSON, to the handlers of the deadline's notices.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn payload(mut self, payload: &impl Serialize) -> Result<Self, Invalid> {
        self.target.set_json(payload)?;
        Ok(self)
    }

    /// Hands these bytes to the handlers of the deadline's notices.
    pub fn payload_bytes(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.target.payload = Some(payload.into());
        self
    }

    /// Says what happens if the id is armed already. Default: it is moved.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Tracks it in place of another id, which is removed: a session whose id rotates.
    ///
    /// # Errors
    /// Refuses the same id twice; else those of the store.
    pub async fn replaces(self, old: impl Into<Vec<u8>>) -> Result<Replaced, StoreError> {
        let (namespace, mode) = (self.namespace.clone(), self.mode);
        let track = self.into_track()?;
        let old = Id::new(old)?;
        if old == track.id {
            return Err(Invalid::new("replaces", "names the id itself; name the old id").into());
        }
        namespace.store.replace(namespace.name()?, mode, &track, &old).await
    }

    fn into_track(self) -> Result<Track, Invalid> {
        let Target { id, expires_at, payload } = self.target;
        Ok(Track { id: id?, expires_at: expires_at?, payload })
    }
}

impl IntoFuture for TrackCall {
    type Output = Result<Tracked, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (namespace, mode) = (self.namespace.clone(), self.mode);
            let answers = namespace.store.track(namespace.name()?, mode, &[self.into_track()?]).await?;
            match only(answers)? {
                Tracked::Rejected(invalid) => Err(invalid.into()),
                tracked => Ok(tracked),
            }
        })
    }
}

/// A `renew` about to be made; await it.
#[must_use = "nothing is renewed until the call is awaited"]
#[derive(Clone, Debug)]
pub struct RenewCall {
    namespace: Namespace,
    target: Target,
}

impl RenewCall {
    /// Replaces the payload by this value, as JSON.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn payload(mut self, payload: &impl Serialize) -> Result<Self, Invalid> {
        self.target.set_json(payload)?;
        Ok(self)
    }
}

impl IntoFuture for RenewCall {
    type Output = Result<Renewed, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Target { id, expires_at, payload } = self.target;
            let renew = Renew { id: id?, expires_at: expires_at?, payload };
            let answers = self.namespace.store.renew(self.namespace.name()?, &[renew]).await?;
            match only(answers)? {
                Renewed::Rejected(invalid) => Err(invalid.into()),
                renewed => Ok(renewed),
            }
        })
    }
}

/// The answer to a batch of one.
fn only<T: fmt::Debug>(mut answers: Vec<T>) -> Result<T, StoreError> {
    match answers.pop() {
        Some(answer) if answers.is_empty() => Ok(answer),
        other => Err(StoreError::Unexpected {
            address: "the namespace".to_owned(),
            problem: format!("one answer expected, got {other:?} after {}", answers.len()),
        }),
    }
}
