//! What the tests here play on: a file of their own, and stores on it.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use forewarn::model::{ExpiresAt, Id, LeadTime, Mode, Name, Track};
use forewarn::store::sqlite::{SqliteOptions, SqliteStore};
use forewarn::store::{Change, Claims, Store, StoreError, Tracked};
use forewarn::{Forewarn, Settings};
use tempfile::TempDir;

/// The instant at which manual clocks begin.
pub(crate) const START: i64 = 1_796_083_200_000;
/// An instant that has passed by any clock.
pub(crate) const PAST: i64 = 1_600_000_000_000;
/// How long claims are leased.
pub(crate) const LEASE: Duration = Duration::from_secs(60);
/// Longer than any test waits.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A directory with the file of a store.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("forewarn.db")
    }

    /// A store on the file, by this machine's clock.
    pub(crate) async fn open(&self) -> SqliteStore {
        self.open_with(SqliteOptions::default()).await
    }

    pub(crate) async fn open_with(&self, options: SqliteOptions) -> SqliteStore {
        SqliteStore::open(self.file(), options).await.unwrap()
    }

    /// A store on the file whose clock stands at [`START`] until it is turned.
    pub(crate) async fn open_still(&self) -> (SqliteStore, Arc<AtomicI64>) {
        let clock = Arc::new(AtomicI64::new(START));
        let options = SqliteOptions { manual_clock: Some(Arc::clone(&clock)), ..SqliteOptions::default() };
        (self.open_with(options).await, clock)
    }

    /// Why the file is refused.
    pub(crate) async fn refusal(&self) -> StoreError {
        SqliteStore::open(self.file(), SqliteOptions::default()).await.map(drop).unwrap_err()
    }

    /// A connection past the store.
    pub(crate) fn connection(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.file()).unwrap()
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

pub(crate) fn track(text: &str, at_ms: i64) -> Track {
    Track { id: id(text), expires_at: ExpiresAt::from_millis(at_ms).unwrap(), payload: None }
}

/// Settings with one lead of so many milliseconds.
pub(crate) fn reminding(ms: i64) -> Settings {
    Settings::default().remind(LeadTime::from_millis(ms).unwrap())
}

/// Creates the namespace `session` with these settings.
pub(crate) async fn configure(store: &dyn Store, settings: Settings) {
    store.configure(&name("session"), &Change::settings(settings)).await.unwrap();
}

pub(crate) async fn track_one(store: &dyn Store, text: &str, at_ms: i64) -> Tracked {
    store.track(&name("session"), Mode::Upsert, &[track(text, at_ms)]).await.unwrap().remove(0)
}

pub(crate) async fn claim(store: &dyn Store) -> Claims {
    store.claim(&name("session"), &name("main"), 500, LEASE).await.unwrap()
}

pub(crate) async fn armed(store: &dyn Store) -> u64 {
    store.stats(&name("session")).await.unwrap().armed
}

/// The library face on a store.
pub(crate) fn face(store: SqliteStore) -> Forewarn {
    Forewarn::with_store(Arc::new(store))
}

pub(crate) fn turn(clock: &AtomicI64, ms: i64) {
    clock.store(START + ms, Ordering::SeqCst);
}

/// Set for a run of this binary that is itself the subject of a test: the path it works on.
pub(crate) const INNER: &str = "FOREWARN_SQLITE_INNER";

/// The path an inner run works on; `None` in the ordinary run.
pub(crate) fn inner_path() -> Option<PathBuf> {
    std::env::var_os(INNER).map(PathBuf::from)
}

/// A run of one test of this binary in a process of its own. What it writes to stderr comes through a pipe.
pub(crate) fn inner(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--nocapture", test])
        .env(INNER, path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// A line that the outer test reads at once: stderr of a run with `--nocapture` is not buffered.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes()).unwrap();
}
