//! What goes wrong inside an operation, and what the port is told of it.

use std::{error::Error as StdError, path::Path};

use rusqlite::{ErrorCode, ffi};

use crate::model::Invalid;
use crate::store::StoreError;

/// Why an operation stops: the database failed, or the port has a word for it.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database failed.
    Database(rusqlite::Error),
    /// The port has a word for it.
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Invalid> for Fault {
    fn from(error: Invalid) -> Self {
        Self::Store(error.into())
    }
}

impl Fault {
    /// As the port tells it of the file at `path`.
    pub(super) fn into_store_error(self, path: &Path) -> StoreError {
        match self {
            Self::Database(error) => explain(path, &error),
            Self::Store(error) => error,
        }
    }
}

/// What a failure of the database means for the caller.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> StoreError {
    let unusable = |problem: &str| unusable(path, problem);
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => unusable("it is no SQLite database; give another path"),
        Some(ErrorCode::DatabaseCorrupt) => {
            unusable("it is damaged; restore it from a backup, or recover it with sqlite3's .recover")
        }
        Some(ErrorCode::ReadOnly) => unusable("it or its directory is read-only; make both writable"),
        Some(ErrorCode::PermissionDenied) => unusable("permission denied; make it and its directory writable"),
        Some(ErrorCode::DiskFull) => StoreError::DiskFull { path: path.display().to_string() },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => unavailable(path, Busy(error.to_string())),
        Some(ErrorCode::SystemIoFailure) if is_write(error) => {
            unavailable(path, format!("{error} while writing; {LOOK_FOR}"))
        }
        Some(_) => unavailable(path, error.to_string()),
        None => StoreError::Unexpected { address: path.display().to_string(), problem: error.to_string() },
    }
}

/// What the database does not tell apart: it has a word of its own only for the plainest kind of full disk.
const LOOK_FOR: &str = "look for free space on its disk, a quota or a limit on the size of files, and a failing disk";

/// Whether it is a write that failed, of the file or of those beside it.
fn is_write(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_SHMSIZE))
}

/// The file cannot serve as a store until somebody does something about it.
pub(super) fn unusable(path: &Path, problem: impl Into<String>) -> StoreError {
    StoreError::Unusable { path: path.display().to_string(), problem: problem.into() }
}

/// The file cannot be worked with at present.
pub(super) fn unavailable(path: &Path, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> StoreError {
    StoreError::Unavailable { address: path.display().to_string(), source: cause.into() }
}

/// Another process has been working on the file for longer than we wait.
#[derive(Debug, thiserror::Error)]
#[error("another process is busy with it: {0}")]
struct Busy(String);

/// Whether the same may succeed a moment later.
pub(super) fn is_busy(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { source, .. } if source.is::<Busy>())
}

/// The same error for another caller of the same transaction.
pub(super) fn tell_again(error: &StoreError) -> StoreError {
    match error {
        StoreError::DiskFull { path } => StoreError::DiskFull { path: path.clone() },
        StoreError::Unusable { path, problem } => StoreError::Unusable { path: path.clone(), problem: problem.clone() },
        StoreError::Unexpected { address, problem } => {
            StoreError::Unexpected { address: address.clone(), problem: problem.clone() }
        }
        StoreError::Unavailable { address, source } => {
            StoreError::Unavailable { address: address.clone(), source: source.to_string().into() }
        }
        other => StoreError::Unexpected { address: "the store's file".to_owned(), problem: other.to_string() },
    }
}
