//! Calls that are built up and then awaited: track and renew.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use serde::Serialize;

use crate::forewarn::namespace::{Namespace, only};
use crate::model::{ExpiresAt, Id, Invalid, Mode, Renew, Track, span_ms};
use crate::store::{Renewed, Replaced, Store, StoreError, Tracked};

/// What track and renew have in common: who, until when, with what. Errors wait until the call is awaited.
#[derive(Clone, Debug)]
pub(super) struct Target {
    id: Result<Id, Invalid>,
    until: Until,
    payload: Option<Vec<u8>>,
}

/// An expiry as callers give it.
#[derive(Clone, Debug)]
enum Until {
    At(Result<ExpiresAt, Invalid>),
    /// From now, by the store's clock.
    In(Duration),
}

impl Target {
    pub(super) fn new(id: impl Into<Vec<u8>>, expires_at: impl TryInto<ExpiresAt, Error = impl Into<Invalid>>) -> Self {
        Self { id: Id::new(id), until: Until::At(expires_at.try_into().map_err(Into::into)), payload: None }
    }

    pub(super) fn within(id: impl Into<Vec<u8>>, ttl: Duration) -> Self {
        Self { id: Id::new(id), until: Until::In(ttl), payload: None }
    }

    async fn resolve(self, store: &dyn Store) -> Result<(Id, ExpiresAt, Option<Vec<u8>>), StoreError> {
        let id = self.id?;
        let expires_at = match self.until {
            Until::At(expires_at) => expires_at?,
            Until::In(ttl) => ExpiresAt::from_millis(store.now().await?.saturating_add(span_ms(ttl)))?,
        };
        Ok((id, expires_at, self.payload))
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
    pub(super) fn new(namespace: Namespace, target: Target) -> Self {
        Self { namespace, target, mode: Mode::Upsert }
    }

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
        let track = self.into_track().await?;
        let old = Id::new(old)?;
        if old == track.id {
            return Err(Invalid::new("replaces", "names the id itself; name the old id").into());
        }
        namespace.store().replace(namespace.name()?, mode, &track, &old).await
    }

    async fn into_track(self) -> Result<Track, StoreError> {
        let (id, expires_at, payload) = self.target.resolve(&**self.namespace.store()).await?;
        Ok(Track { id, expires_at, payload })
    }
}

impl IntoFuture for TrackCall {
    type Output = Result<Tracked, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (namespace, mode) = (self.namespace.clone(), self.mode);
            let answers = namespace.store().track(namespace.name()?, mode, &[self.into_track().await?]).await?;
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
    pub(super) fn new(namespace: Namespace, target: Target) -> Self {
        Self { namespace, target }
    }

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
            let Self { namespace, target } = self;
            let (id, expires_at, payload) = target.resolve(&**namespace.store()).await?;
            let answers = namespace.store().renew(namespace.name()?, &[Renew { id, expires_at, payload }]).await?;
            match only(answers)? {
                Renewed::Rejected(invalid) => Err(invalid.into()),
                renewed => Ok(renewed),
            }
        })
    }
}
