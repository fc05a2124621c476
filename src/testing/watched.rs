//! A store that keeps the book: everything goes to the embedded store inside, and what workers do is written down.
//!
//! Workers are woken by whoever turns the clock, and by every call that may make something due.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use tokio::sync::watch;

use crate::model::{Id, Mode, Name, Pause, Renew, Track, to_datetime};
use crate::store::copy::{Bookmark, CopyMark, Exported, Row};
use crate::store::sqlite::SqliteStore;
use crate::store::{
    Applied, Change, Checked, Claims, Configured, DeadlineView, Expired, Failing, Feed, HistoryEntry, HistoryQuery,
    ListQuery, Listed, Parked, ParkedPage, ParkedQuery, Preview, Registered, Removed, Renewed, Replaced, Requeued,
    Settled, Shelf, Stats, Store, StoreError, Token, Tracked, Wakeups,
};
use crate::testing::Ending;
use crate::testing::book::{Book, Lane};
use crate::testing::scratch::Scratch;

/// A store in a file of its own that is gone when this is dropped.
#[derive(Debug)]
pub(super) struct WatchedStore {
    inner: SqliteStore,
    book: Arc<Book>,
    bell: watch::Sender<()>,
    /// After the store, so that it is dropped after it.
    _scratch: Scratch,
}

impl WatchedStore {
    pub(super) fn new(inner: SqliteStore, scratch: Scratch) -> Self {
        Self { inner, book: Arc::new(Book::new()), bell: watch::Sender::new(()), _scratch: scratch }
    }

    pub(super) fn book(&self) -> &Arc<Book> {
        &self.book
    }

    /// Wakes all workers.
    pub(super) fn ring(&self) {
        self.bell.send_replace(());
    }

    /// Looks when the next thing is due for a route, and takes nothing.
    pub(super) async fn look(&self, lane: &Lane) -> Result<Claims, StoreError> {
        awake(self.inner.claim(&lane.namespace, &lane.route, 0, Duration::ZERO)).await
    }

    /// A call after which something may be due earlier than workers know.
    async fn ringing<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let answer = awake(call).await;
        self.ring();
        answer
    }

    /// What the store answered for claims that a worker asks about: those that do not hold any more have ended.
    fn note_void(&self, lane: &Lane, tokens: &[Token], is_void: impl Iterator<Item = bool>) {
        for (token, _) in tokens.iter().zip(is_void).filter(|(_, is_void)| *is_void) {
            self.book.ended(lane, token, Ending::Void);
        }
    }
}

/// Makes a call while the runtime's clock, should it be paused, stands still: the runtime takes waiting for a thread of the
/// store for idleness, and would skip to whatever time-out comes next.
async fn awake<T>(call: impl Future<Output = T>) -> T {
    let (hold, held) = mpsc::channel::<()>();
    drop(tokio::task::spawn_blocking(move || held.recv().ok()));
    let answer = call.await;
    drop(hold);
    answer
}

#[async_trait]
impl Store for WatchedStore {
    async fn now(&self) -> Result<i64, StoreError> {
        self.inner.now().await
    }

    async fn namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        awake(self.inner.namespaces()).await
    }

    async fn configured(&self, namespace: &Name) -> Result<Arc<Configured>, StoreError> {
        awake(self.inner.configured(namespace)).await
    }

    async fn configure(&self, namespace: &Name, change: &Change) -> Result<Applied, StoreError> {
        self.ringing(self.inner.configure(namespace, change)).await
    }

    async fn preview(&self, namespace: &Name, change: &Change) -> Result<Preview, StoreError> {
        awake(self.inner.preview(namespace, change)).await
    }

    async fn forget(&self, namespace: &Name) -> Result<bool, StoreError> {
        awake(self.inner.forget(namespace)).await
    }

    async fn pause(&self, namespace: &Name, pause: &Pause) -> Result<(), StoreError> {
        self.ringing(self.inner.pause(namespace, pause)).await
    }

    async fn track(&self, namespace: &Name, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, StoreError> {
        self.ringing(self.inner.track(namespace, mode, entries)).await
    }

    async fn replace(&self, namespace: &Name, mode: Mode, new: &Track, old: &Id) -> Result<Replaced, StoreError> {
        self.ringing(self.inner.replace(namespace, mode, new, old)).await
    }

    async fn renew(&self, namespace: &Name, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError> {
        self.ringing(self.inner.renew(namespace, entries)).await
    }

    async fn remove(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Removed>, StoreError> {
        awake(self.inner.remove(namespace, ids)).await
    }

    async fn expire(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Expired>, StoreError> {
        self.ringing(self.inner.expire(namespace, ids)).await
    }

    async fn show(&self, namespace: &Name, id: &Id) -> Result<Option<DeadlineView>, StoreError> {
        awake(self.inner.show(namespace, id)).await
    }

    async fn list(&self, namespace: &Name, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        awake(self.inner.list(namespace, query)).await
    }

    async fn claim(&self, namespace: &Name, route: &Name, limit: u32, lease: Duration) -> Result<Claims, StoreError> {
        let _claiming = self.book.claiming();
        let claims = awake(self.inner.claim(namespace, route, limit, lease)).await?;
        self.book.claimed(&Lane::new(namespace, route), &claims);
        Ok(claims)
    }

    async fn recheck(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Checked>, StoreError> {
        let answers = awake(self.inner.recheck(namespace, route, tokens)).await?;
        let is_void = answers.iter().map(|answer| *answer != Checked::Current);
        self.note_void(&Lane::new(namespace, route), tokens, is_void);
        Ok(answers)
    }

    async fn ack(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        let answers = awake(self.inner.ack(namespace, route, tokens)).await?;
        let lane = Lane::new(namespace, route);
        for (token, answer) in tokens.iter().zip(&answers) {
            self.book.ended(&lane, token, if *answer == Settled::Settled { Ending::Done } else { Ending::Void });
        }
        Ok(answers)
    }

    async fn fail(&self, namespace: &Name, route: &Name, failing: &[Failing]) -> Result<Vec<Settled>, StoreError> {
        let answers = self.ringing(self.inner.fail(namespace, route, failing)).await?;
        let lane = Lane::new(namespace, route);
        for (Failing { token, failure, .. }, answer) in failing.iter().zip(&answers) {
            let failure = failure.clone();
            let ending = match *answer {
                Settled::Retry { next_attempt_at_ms } => Ending::Retry { at: to_datetime(next_attempt_at_ms), failure },
                Settled::Dead => Ending::Dead(failure),
                Settled::Review => Ending::Review(failure),
                Settled::Settled | Settled::Stale | Settled::Dropped(_) => Ending::Void,
            };
            self.book.ended(&lane, token, ending);
        }
        Ok(answers)
    }

    async fn extend(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
        lease: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        let answers = awake(self.inner.extend(namespace, route, tokens, lease)).await?;
        let is_void = answers.iter().map(|answer| *answer != Settled::Settled);
        self.note_void(&Lane::new(namespace, route), tokens, is_void);
        Ok(answers)
    }

    async fn release(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        let answers = self.ringing(self.inner.release(namespace, route, tokens)).await?;
        let lane = Lane::new(namespace, route);
        for (token, answer) in tokens.iter().zip(&answers) {
            self.book.ended(&lane, token, if *answer == Settled::Settled { Ending::Released } else { Ending::Void });
        }
        Ok(answers)
    }

    async fn history(&self, namespace: &Name, query: &HistoryQuery) -> Result<Vec<HistoryEntry>, StoreError> {
        awake(self.inner.history(namespace, query)).await
    }

    async fn parked(&self, namespace: &Name, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError> {
        awake(self.inner.parked(namespace, shelf, query)).await
    }

    async fn requeue(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<Requeued>, StoreError> {
        self.ringing(self.inner.requeue(namespace, shelf, keys)).await
    }

    async fn discard(&self, namespace: &Name, shelf: Shelf, keys: &[Parked]) -> Result<Vec<bool>, StoreError> {
        awake(self.inner.discard(namespace, shelf, keys)).await
    }

    async fn stats(&self, namespace: &Name) -> Result<Stats, StoreError> {
        awake(self.inner.stats(namespace)).await
    }

    async fn export(&self, namespace: &Name, after: Option<&Bookmark>, limit: u32) -> Result<Exported, StoreError> {
        awake(self.inner.export(namespace, after, limit)).await
    }

    async fn import(&self, namespace: &Name, rows: &[Row], mark: Option<&CopyMark>) -> Result<(), StoreError> {
        self.ringing(self.inner.import(namespace, rows, mark)).await
    }

    async fn copy_mark(&self, namespace: &Name) -> Result<Option<CopyMark>, StoreError> {
        awake(self.inner.copy_mark(namespace)).await
    }

    fn can_hold(&self, row: &Row) -> bool {
        self.inner.can_hold(row)
    }

    fn place(&self) -> String {
        self.inner.place()
    }

    async fn resync(&self, namespace: &Name) -> Result<Duration, StoreError> {
        awake(self.inner.resync(namespace)).await
    }

    async fn feed(&self, namespace: &Name) -> Result<Feed, StoreError> {
        awake(self.inner.feed(namespace)).await
    }

    async fn wakeups(&self, namespace: &Name) -> Result<Wakeups, StoreError> {
        let listening = (self.bell.subscribe(), self.book.listening(namespace));
        // Whatever has come due is due by now.
        let next = |mut listening: (watch::Receiver<()>, _)| async move {
            listening.0.changed().await.ok()?;
            Some((0, listening))
        };
        Ok(stream::unfold(listening, next).boxed())
    }
}
