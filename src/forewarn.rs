//! The library face: [`Forewarn`] opens a store by its URL, [`Namespace`] does what callers do with deadlines.

mod call;
mod find;
mod namespace;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::model::Invalid;
use crate::store::redis::RedisStore;
#[cfg(feature = "daemon")]
use crate::store::remote::RemoteStore;
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{Registered, Store, StoreError};

pub use call::{RenewCall, TrackCall};
pub use namespace::Namespace;

/// A connection to a store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Forewarn {
    store: Arc<dyn Store>,
}

impl Forewarn {
    /// Opens the store at `url`: `redis://[user:password@]host[:port][/db][?prefix=fw]`, `rediss://…` or
    /// `redis+unix:///path` for one on a server; `sqlite:PATH` or `sqlite:///absolute/path` for one in a file, which is made
    /// if it is missing; `http://host:port` or `https://…` for that of a daemon that needs no token, with the feature `daemon`.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a URL that cannot be understood, [`StoreError::Unavailable`] if nothing answers there,
    /// [`StoreError::Unusable`] for a file that is no store, [`StoreError::Denied`] by a daemon that needs a token.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), forewarn::StoreError> {
    /// let forewarn = forewarn::Forewarn::connect("redis://127.0.0.1/").await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        if url.starts_with("sqlite:") {
            return Ok(Self::with_store(Arc::new(SqliteStore::connect(url).await?)));
        }
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("redis" | "rediss" | "redis+unix" | "unix") => {
                Ok(Self::with_store(Arc::new(RedisStore::connect(url).await?)))
            }
            #[cfg(feature = "daemon")]
            Some("http" | "https") => Ok(Self::with_store(Arc::new(RemoteStore::connect(url, None).await?))),
            _ => Err(Invalid::new(
                "store",
                "has no known scheme; use sqlite:PATH, redis://host:port, rediss://host:port or redis+unix:///path",
            )
            .into()),
        }
    }

    /// Opens the store of the daemon at `url`, as in `https://forewarn.internal:7878`, through its HTTP API. `token` is one of those
    /// that its configuration names; its scope decides what may be done: `read` looks, `write` works with deadlines and claims,
    /// `admin` does the rest and is shown ids that are secrets. Copying a store is not for daemons.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a URL or a token that cannot be sent, [`StoreError::Unavailable`] if nothing answers there,
    /// [`StoreError::Denied`] if the daemon does not know the token, [`StoreError::Unexpected`] if something else answers there.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let token = std::env::var("FOREWARN_TOKEN").ok();
    /// let forewarn = forewarn::Forewarn::connect_daemon("http://127.0.0.1:7878", token).await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "daemon")]
    pub async fn connect_daemon(url: &str, token: Option<String>) -> Result<Self, StoreError> {
        Ok(Self::with_store(Arc::new(RemoteStore::connect(url, token).await?)))
    }

    /// Opens the store in the file at `path`; it and its directory are made if they are missing.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] for a file that is no store.
    pub async fn open_file(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let options = SqliteOptions { create_parent: true, ..SqliteOptions::default() };
        Ok(Self::with_store(Arc::new(SqliteStore::open(path, options).await?)))
    }

    /// The file that a URL names; `None` if the store is on a server. Opens nothing.
    ///
    /// # Errors
    /// For a URL of a file that cannot be understood.
    pub fn file_of(url: &str) -> Result<Option<PathBuf>, Invalid> {
        url.starts_with("sqlite:").then(|| SqliteStore::path_of(url)).transpose()
    }

    /// Uses a store that is open already.
    pub fn with_store(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The store behind this connection.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// One namespace. A name that is not valid is refused by the first call made with it.
    pub fn namespace(&self, name: impl AsRef<str>) -> Namespace {
        Namespace::new(Arc::clone(&self.store), name)
    }

    /// All namespaces ever configured, by name.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        self.store.namespaces().await
    }
}
