//! Opening the file of a store: what is no store of ours is refused and left as it is.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::time::Instant;

use crate::store::StoreError;

use super::{
    error::{explain, is_busy, unavailable, unusable},
    schema,
};

/// How long a connection waits for another one to finish.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages kept in memory by each connection, in KiB.
const CACHE_KIB: i64 = 32 * 1024;
/// More statements than this store has.
const STATEMENTS: usize = 128;

/// How long a file that another process is just making is tried again, and how long after each attempt.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// What the caller wants of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Wish {
    pub(super) path: PathBuf,
    pub(super) create_parent: bool,
    pub(super) max_bytes: Option<u64>,
}

/// Opens the file for writing, makes it if it is missing, and brings an older one up.
pub(super) async fn writer(wish: &Wish) -> Result<Connection, StoreError> {
    let own = wish.clone();
    patiently(&wish.path, move || open_writer(&own)).await
}

/// Opens a file that [`writer`] has opened before, for reading.
pub(super) async fn reader(path: &Path) -> Result<Connection, StoreError> {
    let own = path.to_owned();
    patiently(path, move || open_reader(&own)).await
}

/// Opens away from the runtime's threads, again while another process is busy making or changing the file.
async fn patiently(
    path: &Path,
    open: impl Fn() -> Result<Connection, StoreError> + Clone + Send + 'static,
) -> Result<Connection, StoreError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let opened = tokio::task::spawn_blocking(open.clone()).await;
        match opened.map_err(|error| unavailable(path, error.to_string()))? {
            Err(error) if is_busy(&error) && Instant::now() < until => tokio::time::sleep(PAUSE).await,
            outcome => return outcome,
        }
    }
}

fn open_writer(wish: &Wish) -> Result<Connection, StoreError> {
    let path = &wish.path;
    prepare(wish)?;
    check_header(path)?;
    let tell = |error| tell(path, &error);
    let mut connection = connect(path)?;
    if !is_ours(&connection).map_err(tell)? {
        return Err(unusable(path, "it is the database of another application; give another path"));
    }
    let found = schema::migrate(&mut connection, schema::STEPS).map_err(tell)?;
    if found > schema::STEPS.len() {
        return Err(newer(path, found));
    }
    set_up(&connection, wish).map_err(tell)?;
    Ok(connection)
}

fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    // Not opened read-only: the last connection that closes the file tidies up after all others, and has to write for it.
    connection.pragma_update(None, "query_only", true).map_err(|error| tell(path, &error))?;
    Ok(connection)
}

/// What a failure means while the file is being opened: what cannot be opened now will not be a moment later.
fn tell(path: &Path, error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => {
            unusable(path, "it cannot be opened; make it and its directory readable and writable")
        }
        _ => explain(path, error),
    }
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let tell = |error| tell(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(tell)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(tell)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(tell)?;
    Ok(connection)
}

fn set_up(connection: &Connection, wish: &Wish) -> rusqlite::Result<()> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
    }
    // What is answered is on the disk.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    if let Some(bytes) = wish.max_bytes {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
        connection.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, i64>(0))?;
    }
    Ok(())
}

/// Makes the file if it is missing, readable for its owner only: payloads may hold what others must not see.
fn prepare(wish: &Wish) -> Result<(), StoreError> {
    let path = &wish.path;
    if path.is_dir() {
        return Err(unusable(path, "it is a directory; give the path of a file"));
    }
    if wish.create_parent
        && let Some(parent) = path.parent()
    {
        let tell = |error: io::Error| unusable(path, format!("its directory cannot be made: {error}"));
        fs::create_dir_all(parent).map_err(tell)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            io::ErrorKind::NotFound => Err(unusable(path, "its directory does not exist; make it first")),
            _ => Err(unusable(path, format!("it cannot be made: {error}"))),
        },
    }
}

/// Looks at the first bytes without the database's help, which might write to what it opens.
fn check_header(path: &Path) -> Result<(), StoreError> {
    let tell = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            unusable(path, "it is read-only; make it writable")
        }
        _ => unusable(path, format!("it cannot be read: {error}")),
    };
    let mut header = Vec::with_capacity(HEADER);
    // For writing, too: the database would open a file that is read-only, and leave others beside it.
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(tell)?;
    file.take(HEADER as u64).read_to_end(&mut header).map_err(tell)?;
    if header.is_empty() {
        return Ok(());
    }
    if header.len() < HEADER || !header.starts_with(b"SQLite format 3\0") {
        return Err(unusable(path, "it is no SQLite database; give another path"));
    }
    let number = |at: usize| header[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    let (version, application) = (number(60), number(68));
    match i32::try_from(application) {
        // Nothing is said: another program's, or one that was cut off while it was made.
        Ok(0) => Ok(()),
        Ok(schema::APPLICATION_ID) => match usize::try_from(version) {
            Ok(version) if version > schema::STEPS.len() => Err(newer(path, version)),
            _ => Ok(()),
        },
        _ => Err(unusable(path, "it is the database of another application; give another path")),
    }
}

const HEADER: usize = 100;

/// Whether it is a store of ours, or nothing yet.
fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(application == schema::APPLICATION_ID || application == 0 && tables == 0)
}

fn newer(path: &Path, version: usize) -> StoreError {
    let ours = schema::STEPS.len();
    unusable(
        path,
        format!("a newer version of forewarn wrote it (layout {version}, this program knows {ours}); upgrade forewarn"),
    )
}
