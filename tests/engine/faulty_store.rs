//! A store that fails where a test wants it to: before the inner call, or after it has been carried out.
//!
//! Everything else goes to the store inside. Calls are counted by verb.

use std::{
    collections::HashMap,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use forewarn::model::{Id, Mode, Name, Pause, Renew, Track};
use forewarn::store::copy::{Bookmark, CopyMark, Exported, Row};
use forewarn::store::{
    Applied, Change, Checked, Claims, Configured, DeadlineView, Expired, Failing, Feed, HistoryEntry, HistoryQuery,
    ListQuery, Listed, Parked, ParkedPage, ParkedQuery, Preview, Registered, Removed, Renewed, Replaced, Requeued,
    Settled, Shelf, Stats, Store, StoreError, Token, Tracked, Wakeups,
};
use tokio::sync::Notify;

use crate::harness::Inbox;

/// What goes wrong with a call.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It never reaches the store.
    Before,
    /// The store carries it out; the reply is cut off.
    After,
    /// The store carries it out; the reply waits until the test lets it through.
    Held(Arc<Notify>),
    /// It reaches the store only when the test lets it through.
    Late(Arc<Notify>),
    /// It never ends.
    Hangs,
}

/// A store with faults.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    faults: Mutex<HashMap<&'static str, (Fault, u32)>>,
    calls: Inbox<&'static str>,
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, faults: Mutex::default(), calls: Inbox::new() })
    }

    /// The next `times` calls of this verb fail like this. A claim counts only if it takes something, except for a fault
    /// that keeps it from the store.
    pub(crate) fn fail(&self, verb: &'static str, fault: Fault, times: u32) {
        self.faults.lock().unwrap().insert(verb, (fault, times));
    }

    /// No call of this verb fails any more.
    pub(crate) fn heal(&self, verb: &'static str) {
        self.faults.lock().unwrap().remove(verb);
    }

    /// How many calls of this verb have been made.
    pub(crate) fn calls(&self, verb: &str) -> usize {
        count(&self.calls.items(), verb)
    }

    /// Waits until so many calls of this verb have been made.
    pub(crate) async fn called(&self, verb: &str, times: usize) {
        self.calls.wait_until(&format!("{times} calls of {verb}"), |calls| count(calls, verb) >= times).await;
    }

    fn take(&self, verb: &str) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        let (fault, times) = faults.get_mut(verb)?;
        *times = times.checked_sub(1)?;
        Some(fault.clone())
    }

    async fn through<T>(
        &self,
        verb: &'static str,
        inner: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.calls.push(verb);
        match self.take(verb) {
            None => inner.await,
            Some(fault) => suffer(fault, inner).await,
        }
    }
}

async fn suffer<T>(fault: Fault, inner: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let cut = || StoreError::Unavailable { address: "faulty".to_owned(), source: "cut off by the test".into() };
    match fault {
        Fault::Before => Err(cut()),
        Fault::After => {
            inner.await?;
            Err(cut())
        }
        Fault::Held(go) => {
            let reply = inner.await;
            go.notified().await;
            reply
        }
        Fault::Late(go) => {
            go.notified().await;
            inner.await
        }
        Fault::Hangs => pending().await,
    }
}

fn count(calls: &[&'static str], verb: &str) -> usize {
    calls.iter().filter(|call| **call == verb).count()
}

#[async_trait]
impl Store for FaultyStore {
    async fn now(&self) -> Result<i64, StoreError> {
        self.through("now", self.inner.now()).await
    }

    async fn namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        self.through("namespaces", self.inner.namespaces()).await
    }

    async fn configured(&self, namespace: &Name) -> Result<Arc<Configured>, StoreError> {
        self.through("configured", self.inner.configured(namespace)).await
    }

    async fn configure(&self, namespace: &Name, change: &Change) -> Result<Applied, StoreError> {
        self.through("configure", self.inner.configure(namespace, change)).await
    }

    async fn preview(&self, namespace: &Name, change: &Change) -> Result<Preview, StoreError> {
        self.through("preview", self.inner.preview(namespace, change)).await
    }

    async fn forget(&self, namespace: &Name) -> Result<bool, StoreError> {
        self.through("forget", self.inner.forget(namespace)).await
    }

    async fn pause(&self, namespace: &Name, pause: &Pause) -> Result<(), StoreError> {
        self.through("pause", self.inner.pause(namespace, pause)).await
    }

    async fn track(&self, namespace: &Name, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, StoreError> {
        self.through("track", self.inner.track(namespace, mode, entries)).await
    }

    async fn replace(&self, namespace: &Name, mode: Mode, new: &Track, old: &Id) -> Result<Replaced, StoreError> {
        self.through("replace", self.inner.replace(namespace, mode, new, old)).await
    }

    async fn renew(&self, namespace: &Name, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError> {
        self.through("renew", self.inner.renew(namespace, entries)).await
    }

    async fn remove(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Removed>, StoreError> {
        self.through("remove", self.inner.remove(namespace, ids)).await
    }

    async fn expire(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Expired>, StoreError> {
        self.through("expire", self.inner.expire(namespace, ids)).await
    }

    async fn show(&self, namespace: &Name, id: &Id) -> Result<Option<DeadlineView>, StoreError> {
        self.through("show", self.inner.show(namespace, id)).await
    }

    async fn list(&self, namespace: &Name, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        self.through("list", self.inner.list(namespace, query)).await
    }

    async fn claim(&self, namespace: &Name, route: &Name, limit: u32, lease: Duration) -> Result<Claims, StoreError> {
        let reaches_the_store = !matches!(
            self.faults.lock().unwrap().get("claim"),
            Some((Fault::Before | Fault::Late(_) | Fault::Hangs, times)) if *times > 0
        );
        if !reaches_the_store {
            return self.through("claim", self.inner.claim(namespace, route, limit, lease)).await;
        }
        self.calls.push("claim");
        let claims = self.inner.claim(namespace, route, limit, lease).await?;
        let fault = if claims.claims.is_empty() { None } else { self.take("claim") };
        match fault {
            None => Ok(claims),
            Some(fault) => {
                self.calls.push("claim that took something");
                suffer(fault, async { Ok(claims) }).await
            }
        }
    }

    async fn recheck(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Checked>, StoreError> {
        self.through("recheck", self.inner.recheck(namespace, route, tokens)).await
    }

    async fn ack(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        self.through("ack", self.inner.ack(namespace, route, tokens)).await
    }

    async fn fail(&self, namespace: &Name, route: &Name, failing: &[Failing]) -> Result<Vec<Settled>, StoreError> {
        self.through("fail", self.inner.fail(namespace, route, failing)).await
    }

    async fn extend(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
        lease: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        self.through("extend", self.inner.extend(namespace, route, tokens, lease)).await
    }

    async fn release(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        self.through("release", self.inner.release(namespace, route, tokens)).await
    }

    async fn parked(&self, namespace: &Name, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError> {
        self.through("parked", self.inner.parked(namespace, shelf, query)).await
    }

    async fn requeue(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<Requeued>, StoreError> {
        self.through("requeue", self.inner.requeue(namespace, shelf, keys)).await
    }

    async fn discard(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<bool>, StoreError> {
        self.through("discard", self.inner.discard(namespace, shelf, keys)).await
    }

    async fn stats(&self, namespace: &Name) -> Result<Stats, StoreError> {
        self.through("stats", self.inner.stats(namespace)).await
    }

    async fn export(&self, namespace: &Name, after: Option<&Bookmark>, limit: u32) -> Result<Exported, StoreError> {
        self.through("export", self.inner.export(namespace, after, limit)).await
    }

    async fn import(&self, namespace: &Name, rows: &[Row], mark: Option<&CopyMark>) -> Result<(), StoreError> {
        self.through("import", self.inner.import(namespace, rows, mark)).await
    }

    async fn copy_mark(&self, namespace: &Name) -> Result<Option<CopyMark>, StoreError> {
        self.through("copy_mark", self.inner.copy_mark(namespace)).await
    }

    fn can_hold(&self, row: &Row) -> bool {
        self.inner.can_hold(row)
    }

    fn place(&self) -> String {
        self.inner.place()
    }

    async fn history(&self, namespace: &Name, query: &HistoryQuery) -> Result<Vec<HistoryEntry>, StoreError> {
        self.through("history", self.inner.history(namespace, query)).await
    }

    async fn resync(&self, namespace: &Name) -> Result<Duration, StoreError> {
        self.through("resync", self.inner.resync(namespace)).await
    }

    async fn feed(&self, namespace: &Name) -> Result<Feed, StoreError> {
        self.through("feed", self.inner.feed(namespace)).await
    }

    async fn wakeups(&self, namespace: &Name) -> Result<Wakeups, StoreError> {
        self.through("wakeups", self.inner.wakeups(namespace)).await
    }
}
