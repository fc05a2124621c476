//! Why a store could not carry out a call.

use std::{error::Error as StdError, fmt, sync::Arc};

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
    /// The same error for any number of callers who shared a call.
    pub(crate) fn copies(self) -> impl Iterator<Item = Self> {
        let shared = Arc::new(self);
        std::iter::repeat_with(move || Self::copy(&shared))
    }

    fn copy(shared: &Arc<Self>) -> Self {
        let source = || Box::new(Shared(Arc::clone(shared)));
        match &**shared {
            Self::Invalid(invalid) => Self::Invalid(invalid.clone()),
            Self::Unconfigured { namespace } => Self::Unconfigured { namespace: namespace.clone() },
            Self::NoRoute { namespace, route } => Self::NoRoute { namespace: namespace.clone(), route: route.clone() },
            Self::Unavailable { address, .. } => Self::Unavailable { address: address.clone(), source: source() },
            Self::Full { address } => Self::Full { address: address.clone() },
            Self::DiskFull { path } => Self::DiskFull { path: path.clone() },
            Self::Unusable { path, problem } => Self::Unusable { path: path.clone(), problem: problem.clone() },
            Self::KeyBacked { namespace } => Self::KeyBacked { namespace: namespace.clone() },
            Self::WrongType { key, expected, found } => {
                Self::WrongType { key: key.clone(), expected, found: found.clone() }
            }
            Self::Denied { address, .. } => Self::Denied { address: address.clone(), source: source() },
            Self::Conflict { namespace, reason } => {
                Self::Conflict { namespace: namespace.clone(), reason: reason.clone() }
            }
            Self::Unexpected { address, problem } => {
                Self::Unexpected { address: address.clone(), problem: problem.clone() }
            }
        }
    }

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

/// The cause of an error that several callers share.
#[derive(Debug)]
struct Shared(Arc<StoreError>);

impl Shared {
    fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        StdError::source(&*self.0)
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause() {
            Some(cause) => fmt::Display::fmt(cause, f),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl StdError for Shared {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause().and_then(StdError::source)
    }
}
