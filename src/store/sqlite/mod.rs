//! The embedded adapter of the port: one SQLite file, one thread that writes, one that reads.
//!
//! Durable: what is answered is on the disk. Several processes may work on one file. Transactions stand where the Redis
//! store has scripts, with the same outcomes. It cannot serve key-backed namespaces: there are no keys.

mod catch_up;
mod claim;
mod cleanup;
mod copy;
mod cursor;
mod delivery;
mod desk;
mod error;
mod failure;
mod feed;
mod history;
mod lead;
mod open;
mod operation;
mod parked;
mod queue;
mod reader;
mod removal;
mod schema;
mod scope;
mod set;
mod settings;
mod settle;
mod share;
mod sweep;
mod task;
mod url;
mod view;
mod wake;
mod writer;

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicI64},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use rusqlite::Connection;
use tokio::sync::{OnceCell, broadcast};

use crate::model::{Id, Invalid, Mode, Name, Pause, Renew, Track};
use crate::store::copy::{Bookmark, CopyMark, Exported, Row};
use crate::store::{
    Applied, Change, Checked, Claims, Configured, DeadlineView, Expired, Failing, Feed, HistoryEntry, HistoryQuery,
    ListQuery, Listed, Parked, ParkedPage, ParkedQuery, Preview, Registered, Removed, Renewed, Replaced, Requeued,
    Settled, Shelf, Stats, Store, StoreError, Token, Tracked, Wakeups,
};

use desk::{Clock, Desk, Woken};
use error::{Fault, unavailable};
use open::Wish;
use operation::Operation;
use task::Intake;

/// How to open a [`SqliteStore`], beside its path.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The instant (ms) every operation takes for now, instead of this machine's clock: for tests under virtual time.
    pub manual_clock: Option<Arc<AtomicI64>>,
    /// The longest time a worker sleeps before it claims again. Default: 1 s.
    pub max_poll: Duration,
    /// Whether to make the directory of the file if it is missing. Default: no.
    pub create_parent: bool,
    /// The largest size the file may reach, in bytes; beyond it the store answers as if the disk were full. Default: none.
    pub max_bytes: Option<u64>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { manual_clock: None, max_poll: Duration::from_secs(1), create_parent: false, max_bytes: None }
    }
}

/// A store in one SQLite file. Its threads end when it is dropped.
pub struct SqliteStore {
    path: PathBuf,
    instance: i64,
    clock: Clock,
    max_poll_ms: i64,
    writer: Intake,
    reader: Intake,
    /// Looks whether other processes have changed the file; begun by the first listener.
    watcher: OnceCell<Intake>,
    news: broadcast::Sender<Woken>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Wakes that a slow listener may be behind.
const MAX_NEWS: usize = 256;
impl SqliteStore {
    /// Opens the file that `url` names, `sqlite:PATH` or `sqlite:///absolute/path`; makes it if it is missing.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a URL that cannot be understood, [`StoreError::Unusable`] for a file that cannot serve as
    /// a store; it is left as it is.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::open(url::path_of(url)?, SqliteOptions::default()).await
    }

    /// The path that `url` names. Opens nothing.
    ///
    /// # Errors
    /// If it is no such URL.
    pub fn path_of(url: &str) -> Result<PathBuf, Invalid> {
        url::path_of(url)
    }

    /// Opens the file at `path` with options.
    ///
    /// # Errors
    /// As for [`SqliteStore::connect`].
    pub async fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let path = path.as_ref();
        // Absolute, so that a change of the working directory does not lead to another file.
        let path = std::path::absolute(path).map_err(|error| unavailable(path, error.to_string()))?;
        let SqliteOptions { manual_clock, max_poll, create_parent, max_bytes } = options;
        let wish = Wish { path: path.clone(), create_parent, max_bytes };
        let writing = open::writer(&wish).await?;
        let reading = open::reader(&path).await?;
        let (news, _) = broadcast::channel(MAX_NEWS);
        let (writer, mut to_write) = Intake::new();
        let (reader, to_read) = Intake::new();
        let store = Self {
            path,
            instance: fastrand::i64(..),
            clock: Clock(manual_clock),
            max_poll_ms: scope::bounded_ms(max_poll),
            writer,
            reader,
            watcher: OnceCell::new(),
            news,
        };
        let (desk, news) = (store.desk(writing), store.news.clone());
        store.spawn("forewarn-write", move || writer::serve(&desk, &mut to_write, &news))?;
        store.spawn_reader("forewarn-read", reading, to_read)?;
        Ok(store)
    }

    fn desk(&self, connection: Connection) -> Desk {
        Desk {
            path: self.path.clone(),
            connection,
            clock: self.clock.clone(),
            max_poll_ms: self.max_poll_ms,
            instance: self.instance,
            scopes: RefCell::new(HashMap::new()),
            woken: RefCell::new(Vec::new()),
        }
    }

    fn spawn(&self, name: &str, serve: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(serve);
        thread.map(drop).map_err(|error| unavailable(&self.path, format!("a thread cannot be started: {error}")))
    }

    fn spawn_reader(&self, name: &str, connection: Connection, mut tasks: Tasks) -> Result<(), StoreError> {
        let desk = self.desk(connection);
        self.spawn(name, move || reader::serve(&desk, &mut tasks))
    }

    async fn watcher(&self) -> Result<&Intake, StoreError> {
        self.watcher
            .get_or_try_init(|| async {
                let (intake, tasks) = Intake::new();
                self.spawn_reader("forewarn-watch", open::reader(&self.path).await?, tasks)?;
                Ok(intake)
            })
            .await
    }

    async fn ask<T: Send + 'static>(
        &self,
        intake: &Intake,
        weight: usize,
        work: impl FnOnce(&Desk) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer = intake.ask(weight, work).await;
        answer.unwrap_or_else(|| Err(unavailable(&self.path, "its thread has ended")))
    }

    /// An operation that writes; `weight` is the number of its entries.
    async fn write<T: Send + 'static>(
        &self,
        namespace: &Name,
        weight: usize,
        work: impl FnOnce(&mut Operation<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let namespace = namespace.clone();
        self.ask(&self.writer, weight, move |desk| work(&mut Operation::begin(desk, &namespace)?)).await
    }

    /// An operation that only looks.
    async fn read<T: Send + 'static>(
        &self,
        namespace: &Name,
        work: impl FnOnce(&Operation<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let namespace = namespace.clone();
        self.ask(&self.reader, 1, move |desk| work(&Operation::begin(desk, &namespace)?)).await
    }
}

/// Where a thread's tasks come out.
type Tasks = tokio::sync::mpsc::Receiver<Box<dyn task::Task>>;

#[async_trait]
impl Store for SqliteStore {
    async fn now(&self) -> Result<i64, StoreError> {
        Ok(self.clock.now_ms())
    }

    async fn namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        self.ask(&self.reader, 1, settings::namespaces).await
    }

    async fn configured(&self, namespace: &Name) -> Result<Arc<Configured>, StoreError> {
        let namespace = namespace.clone();
        self.ask(&self.reader, 1, move |desk| settings::configured(desk, &namespace)).await
    }

    async fn configure(&self, namespace: &Name, change: &Change) -> Result<Applied, StoreError> {
        let (namespace, change) = (namespace.clone(), change.clone());
        self.ask(&self.writer, 1, move |desk| settings::configure(desk, &namespace, &change)).await
    }

    async fn preview(&self, namespace: &Name, change: &Change) -> Result<Preview, StoreError> {
        let (namespace, change) = (namespace.clone(), change.clone());
        self.ask(&self.reader, 1, move |desk| settings::preview(desk, &namespace, &change)).await
    }

    async fn forget(&self, namespace: &Name) -> Result<bool, StoreError> {
        let namespace = namespace.clone();
        self.ask(&self.writer, 1, move |desk| settings::forget(desk, &namespace)).await
    }

    async fn pause(&self, namespace: &Name, pause: &Pause) -> Result<(), StoreError> {
        let pause = pause.clone();
        self.write(namespace, 1, move |operation| operation.pause(&pause)).await
    }

    async fn track(&self, namespace: &Name, mode: Mode, entries: &[Track]) -> Result<Vec<Tracked>, StoreError> {
        let entries = entries.to_vec();
        self.write(namespace, entries.len(), move |operation| operation.track(mode, &entries)).await
    }

    async fn replace(&self, namespace: &Name, mode: Mode, new: &Track, old: &Id) -> Result<Replaced, StoreError> {
        let (new, old) = (new.clone(), old.clone());
        self.write(namespace, 2, move |operation| operation.replace(mode, &new, &old)).await
    }

    async fn renew(&self, namespace: &Name, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError> {
        let entries = entries.to_vec();
        self.write(namespace, entries.len(), move |operation| operation.renew(&entries)).await
    }

    async fn remove(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Removed>, StoreError> {
        let ids = ids.to_vec();
        self.write(namespace, ids.len(), move |operation| operation.remove(&ids)).await
    }

    async fn expire(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Expired>, StoreError> {
        let ids = ids.to_vec();
        self.write(namespace, ids.len(), move |operation| operation.expire(&ids)).await
    }

    async fn show(&self, namespace: &Name, id: &Id) -> Result<Option<DeadlineView>, StoreError> {
        let id = id.clone();
        self.read(namespace, move |operation| operation.show(&id)).await
    }

    async fn list(&self, namespace: &Name, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        let query = query.clone();
        self.read(namespace, move |operation| operation.list(&query)).await
    }

    async fn claim(&self, namespace: &Name, route: &Name, limit: u32, lease: Duration) -> Result<Claims, StoreError> {
        let (route, weight) = (route.clone(), usize::try_from(limit).unwrap_or(usize::MAX));
        self.write(namespace, weight, move |operation| operation.claim(&route, limit, lease)).await
    }

    async fn recheck(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Checked>, StoreError> {
        let (route, tokens) = (route.clone(), tokens.to_vec());
        self.write(namespace, tokens.len(), move |operation| operation.recheck(&route, &tokens)).await
    }

    async fn ack(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        let (route, tokens) = (route.clone(), tokens.to_vec());
        self.write(namespace, tokens.len(), move |operation| operation.ack(&route, &tokens)).await
    }

    async fn fail(&self, namespace: &Name, route: &Name, failing: &[Failing]) -> Result<Vec<Settled>, StoreError> {
        let (route, failing) = (route.clone(), failing.to_vec());
        self.write(namespace, failing.len(), move |operation| operation.fail(&route, &failing)).await
    }

    async fn extend(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
        lease: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        let (route, tokens) = (route.clone(), tokens.to_vec());
        self.write(namespace, tokens.len(), move |operation| operation.extend(&route, &tokens, lease)).await
    }

    async fn release(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, StoreError> {
        let (route, tokens) = (route.clone(), tokens.to_vec());
        self.write(namespace, tokens.len(), move |operation| operation.release(&route, &tokens)).await
    }

    async fn parked(&self, namespace: &Name, shelf: Shelf, query: &ParkedQuery) -> Result<ParkedPage, StoreError> {
        let query = query.clone();
        self.read(namespace, move |operation| operation.parked(shelf, &query)).await
    }

    async fn requeue(&self, namespace: &Name, shelf: Shelf, parked: &[Parked]) -> Result<Vec<Requeued>, StoreError> {
        let parked = parked.to_vec();
        self.write(namespace, parked.len(), move |operation| operation.requeue(shelf, &parked)).await
    }

    async fn discard(&self, namespace: &Name, shelf: Shelf, parked: &[Parked]) -> Result<Vec<bool>, StoreError> {
        let parked = parked.to_vec();
        self.write(namespace, parked.len(), move |operation| operation.discard(shelf, &parked)).await
    }

    async fn stats(&self, namespace: &Name) -> Result<Stats, StoreError> {
        self.read(namespace, |operation| operation.stats()).await
    }

    async fn export(&self, namespace: &Name, after: Option<&Bookmark>, limit: u32) -> Result<Exported, StoreError> {
        let after = after.cloned();
        self.read(namespace, move |operation| operation.export(after.as_ref(), limit)).await
    }

    async fn import(&self, namespace: &Name, rows: &[Row], mark: Option<&CopyMark>) -> Result<(), StoreError> {
        let (namespace, rows, mark) = (namespace.clone(), rows.to_vec(), mark.cloned());
        self.ask(&self.writer, rows.len(), move |desk| copy::import(desk, &namespace, &rows, mark.as_ref())).await
    }

    async fn copy_mark(&self, namespace: &Name) -> Result<Option<CopyMark>, StoreError> {
        let namespace = namespace.clone();
        self.ask(&self.reader, 1, move |desk| copy::copy_mark(desk, &namespace)).await
    }

    /// Only raw clients write what has to be quarantined, and this store has none.
    fn can_hold(&self, row: &Row) -> bool {
        !matches!(row, Row::Quarantined { .. })
    }

    fn place(&self) -> String {
        // One file under several names is one place.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        format!("sqlite:{}", path.display())
    }

    async fn history(&self, namespace: &Name, query: &HistoryQuery) -> Result<Vec<HistoryEntry>, StoreError> {
        let query = query.clone();
        self.read(namespace, move |operation| operation.history(&query)).await
    }

    async fn resync(&self, _namespace: &Name) -> Result<Duration, StoreError> {
        // No namespace of a file is key-backed.
        Ok(Duration::MAX)
    }

    async fn feed(&self, namespace: &Name) -> Result<Feed, StoreError> {
        feed::observe(self, namespace).await
    }

    async fn wakeups(&self, namespace: &Name) -> Result<Wakeups, StoreError> {
        let watcher = self.watcher().await?.clone();
        // Listening begins before the first look, so that nothing falls in between.
        let news = self.news.subscribe();
        let own = namespace.clone();
        let seen = self.ask(&watcher, 1, move |desk| wake::look(desk, &own)).await?;
        Ok(wake::listen(namespace.clone(), self.instance, news, watcher, seen))
    }
}
