//! Where things are that nobody has named: the store's file and the configuration.
//!
//! Source of the directories: the XDG Base Directory Specification, `XDG_DATA_HOME` and `XDG_CONFIG_HOME`.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::config::secret::masked_url;
use crate::forewarn::Forewarn;
use crate::model::Invalid;
use crate::store::StoreError;

/// Which store to work on. Shows no password.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StorePlace {
    /// The one at this URL.
    Url(String),
    /// The embedded one in this file; it and its directory are made if they are missing.
    File(PathBuf),
}

impl StorePlace {
    /// Opens it.
    ///
    /// # Errors
    /// As for [`Forewarn::connect`].
    pub async fn open(&self) -> Result<Forewarn, StoreError> {
        match self {
            Self::Url(url) => Forewarn::connect(url).await,
            Self::File(path) => Forewarn::open_file(path).await,
        }
    }

    /// The file that opening would make; `None` if it is there, or if the store is on a server.
    ///
    /// # Errors
    /// If the URL cannot be understood.
    pub fn missing_file(&self) -> Result<Option<PathBuf>, Invalid> {
        let path = match self {
            Self::Url(url) => Forewarn::file_of(url)?,
            Self::File(path) => Some(path.clone()),
        };
        Ok(path.filter(|path| !path.exists()))
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(&masked_url(url)),
            Self::File(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

impl fmt::Debug for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The store's file where none is named. A relative `XDG_DATA_HOME` is invalid by the specification and ignored.
///
/// # Errors
/// If there is no home directory either.
pub fn default_store(data_home: Option<&Path>, home: Option<&Path>) -> Result<PathBuf, Invalid> {
    match directory(data_home, home, ".local/share") {
        Some(data_home) => Ok(data_home.join("forewarn").join("forewarn.db")),
        None => Err(Invalid::new(
            "store",
            "has no default where there is no home directory; use --store URL, as in sqlite:forewarn.db",
        )),
    }
}

/// The files that are looked for where no configuration is named, in this order: the user's own, then the machine's.
pub fn default_config(config_home: Option<&Path>, home: Option<&Path>) -> Vec<PathBuf> {
    let own = directory(config_home, home, ".config").into_iter();
    own.chain([PathBuf::from("/etc")]).map(|directory| directory.join("forewarn").join("forewarn.toml")).collect()
}

fn directory(named: Option<&Path>, home: Option<&Path>, below_home: &str) -> Option<PathBuf> {
    let from_home = || home.filter(|path| path.is_absolute()).map(|home| home.join(below_home));
    named.filter(|path| path.is_absolute()).map(Path::to_owned).or_else(from_home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_in_the_directories_of_the_user() {
        let path = |data_home: Option<&str>, home: Option<&str>| {
            default_store(data_home.map(Path::new), home.map(Path::new)).map(|path| path.display().to_string())
        };
        assert_eq!(path(Some("/data"), Some("/home/a")).ok().as_deref(), Some("/data/forewarn/forewarn.db"));
        let from_home = Some("/home/a/.local/share/forewarn/forewarn.db");
        assert_eq!(path(None, Some("/home/a")).ok().as_deref(), from_home);
        assert_eq!(path(Some("data"), Some("/home/a")).ok().as_deref(), from_home);
        assert!(path(None, None).is_err());
        let files = default_config(None, Some(Path::new("/home/a")));
        assert_eq!(files, ["/home/a/.config/forewarn/forewarn.toml", "/etc/forewarn/forewarn.toml"].map(PathBuf::from));
    }
}
