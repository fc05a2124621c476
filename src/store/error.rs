//! Why a store could not carry out a call.

use std::error::Error as StdError;

use crate::model::{Invalid, Name};

/// Why a store could not carry out a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The input is not acceptable.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The namespace has no settings.
    #[error(
        "namespace \"{namespace}\" is not configured; forewarn namespace list tells which are, forewarn namespace apply {namespace} creates it"
    )]
    Unconfigured {
        /// The namespace.
        namespace: Name,
    },
    /// The namespace has no such route.
    #[error(
        "namespace \"{namespace}\" has no route \"{route}\"; forewarn namespace show {namespace} tells which it has"
    )]
    NoRoute {
        /// The namespace.
        namespace: Name,
        /// The route.
        route: Name,
    },
    /// The store cannot be reached or does not answer. The call may have been carried out nevertheless.
    #[error("the store at {address} is unavailable")]
    Unavailable {
        /// Where the store is, without secrets.
        address: String,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The store has no memory left for something new; nothing was written.
    #[error("the store at {address} is out of memory and refuses new deadlines; raise maxmemory or free keys")]
    Full {
        /// Where the store is, without secrets.
        address: String,
    },
    /// No room is left for the store's file; nothing was written.
    #[error("no room is left for the store file {path}; free space on its disk or raise its size limit")]
    DiskFull {
        /// The file.
        path: String,
    },
    /// The store's file cannot be worked with until somebody does something about it; it was not touched.
    #[error("the store file {path} cannot be used: {problem}")]
    Unusable {
        /// The file.
        path: String,
        /// What is wrong with it, and the fix.
        problem: String,
    },
    /// The ids of the namespace are keys of somebody else's, which this call would change.
    #[error(
        "the ids of namespace \"{namespace}\" are keys whose own TTL is the truth; change that (EXPIRE, DEL), or set manage_keys to let forewarn do it"
    )]
    KeyBacked {
        /// The namespace.
        namespace: Name,
    },
    /// A key holds a value of another type: somebody else wrote it.
    #[error("key \"{key}\" holds a {found}, not a {expected}; delete or rename it")]
    WrongType {
        /// The key.
        key: String,
        /// The type it should have.
        expected: &'static str,
        /// The type it has.
        found: String,
    },
    /// The store refused the credentials or the command.
    #[error("the store at {address} denies access")]
    Denied {
        /// Where the store is, without secrets.
        address: String,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Something else keeps changing the same settings, or newer settings are in force.
    #[error("settings of namespace \"{namespace}\" were not applied: {reason}")]
    Conflict {
        /// The namespace.
        namespace: Name,
        /// What stands against it.
        reason: String,
    },
    /// The store answered in a way this version does not understand.
    #[error("the store at {address} answered unexpectedly: {problem}")]
    Unexpected {
        /// Where the store is, without secrets.
        address: String,
        /// What was odd.
        problem: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing anything in the caller.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::Full { .. }
                | Self::DiskFull { .. }
                | Self::WrongType { .. }
                | Self::Denied { .. }
                | Self::Unexpected { .. }
        )
    }
}
