//! The rig: a server of this run's own, forewarn on it, and a second connection for the bare commands.

use std::{ops::Range, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use forewarn::model::{ExpiresAt, Id, LeadTime, Mode, Name, Track};
use forewarn::store::redis::RedisStore;
use forewarn::store::{Change, Removed, Store, Tracked};
use forewarn::{Forewarn, Namespace, Settings};
use tokio::time::sleep;

use crate::bare::Bare;
use crate::harness::{Rights, Server};
use crate::meter::Meter;

/// The larger of the two leads of every namespace here, in milliseconds; the other is a tenth of it.
pub(crate) const LEAD_MS: i64 = 600_000;
/// Long enough that no claim of a round runs out.
pub(crate) const LEASE: Duration = Duration::from_secs(600);
/// So many deadlines are written in one call.
const WRITE_BATCH: usize = 500;

/// One server and what works on it.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) store: Arc<RedisStore>,
    pub(crate) bare: Bare,
    pub(crate) meter: Meter,
}

impl Rig {
    /// Starts a server that persists nothing.
    pub(crate) async fn start() -> Result<Self> {
        let server = Server::start();
        let store = Arc::new(RedisStore::connect(&server.url()).await?);
        // Under rights, too: each command is checked on either side.
        let rights = Rights::documented().and("~* +script|load");
        let bare = Bare::new(server.connection_with(&rights).await).await?;
        let meter = Meter::new(server.connection().await);
        Ok(Self { server, store, bare, meter })
    }

    /// The library face on the same connection.
    pub(crate) fn face(&self, namespace: &Name) -> Namespace {
        Forewarn::with_store(Arc::clone(&self.store) as Arc<dyn Store>).namespace(namespace.as_str())
    }

    /// The namespace of this name, new, with two leads and cleanups; its cursors stand where a running worker has them.
    pub(crate) async fn namespace(&self, name: &str) -> Result<Name> {
        namespace(&*self.store, name).await
    }

    /// Deletes a namespace.
    pub(crate) async fn forget(&self, namespace: &Name) -> Result<()> {
        self.store.forget(namespace).await?;
        Ok(())
    }
}

/// The route every namespace has.
pub(crate) fn route() -> Result<Name> {
    Ok(Name::new("route", "main")?)
}

/// As [`Rig::namespace`], in any store.
pub(crate) async fn namespace(store: &dyn Store, name: &str) -> Result<Name> {
    let name = Name::new("namespace", name)?;
    let settings =
        [LEAD_MS, LEAD_MS / 10].into_iter().try_fold(Settings::default(), |settings, lead| -> Result<Settings> {
            Ok(settings.remind(LeadTime::from_millis(lead)?))
        })?;
    store.configure(&name, &Change::settings(settings)).await?;
    store.claim(&name, &route()?, 1, LEASE).await?;
    Ok(name)
}

/// Tracks new deadlines and sees that they are.
pub(crate) async fn arm(store: &dyn Store, namespace: &Name, load: &[Track]) -> Result<()> {
    for batch in load.chunks(WRITE_BATCH) {
        let tracked = store.track(namespace, Mode::Create, batch).await?;
        let odd = tracked.iter().find(|tracked| !matches!(tracked, Tracked::Created { .. }));
        ensure!(odd.is_none(), "a deadline was not tracked: {odd:?}");
    }
    Ok(())
}

/// Removes deadlines.
pub(crate) async fn disarm(store: &dyn Store, namespace: &Name, load: &[Track]) -> Result<()> {
    for batch in load.chunks(WRITE_BATCH) {
        let ids: Vec<Id> = batch.iter().map(|entry| entry.id.clone()).collect();
        let removed = store.remove(namespace, &ids).await?;
        ensure!(removed.iter().all(|removed| *removed == Removed::Removed), "a deadline was not there");
    }
    Ok(())
}

/// Deadlines with ids of 24 bytes, each at some millisecond of `span`.
pub(crate) fn load(numbers: Range<usize>, span: Range<i64>) -> Result<Vec<Track>> {
    numbers.map(|number| track(number, fastrand::i64(span.clone()))).collect()
}

/// One deadline.
pub(crate) fn track(number: usize, at_ms: i64) -> Result<Track> {
    let expires_at = ExpiresAt::from_millis(at_ms)?;
    Ok(Track { id: Id::new(format!("user_session:{number:011}"))?, expires_at, payload: None })
}

/// A second later.
pub(crate) fn later(expires_at: ExpiresAt) -> Result<ExpiresAt> {
    Ok(ExpiresAt::from_millis(expires_at.as_millis() + 1_000)?)
}

/// Claims and acks until `count` notices have been.
pub(crate) async fn drain(store: &dyn Store, namespace: &Name, batch: u32, count: usize) -> Result<()> {
    let route = route()?;
    let mut taken = 0;
    while taken < count {
        let claims = store.claim(namespace, &route, batch, LEASE).await?.claims;
        ensure!(!claims.is_empty(), "{taken} of {count} notices were due");
        let tokens: Vec<_> = claims.iter().map(|claim| claim.token.clone()).collect();
        store.ack(namespace, &route, &tokens).await?;
        taken += claims.len();
    }
    ensure!(taken == count, "{taken} notices came instead of {count}");
    Ok(())
}

/// Sleeps until the store's clock is past `at_ms`.
pub(crate) async fn wait_until(store: &dyn Store, at_ms: i64) -> Result<()> {
    loop {
        let left = at_ms - store.now().await?;
        if left < 0 {
            return Ok(());
        }
        sleep(Duration::from_millis(u64::try_from(left).context("an instant in the past")? + 1)).await;
    }
}
