//! Which store a command works on: the one given, or a file in the user's data directory.
//!
//! Source of the directory: the XDG Base Directory Specification, `XDG_DATA_HOME`.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use forewarn::{
    Forewarn, StoreError,
    store::sqlite::{SqliteOptions, SqliteStore},
};

use super::{exit::Usage, output::say};

/// Opens the store at `url`, or without one the file of this user, which is made if it is missing.
pub(super) async fn open(url: Option<&str>) -> anyhow::Result<Forewarn> {
    let Some(url) = url else {
        let path = default_path(env::var_os("XDG_DATA_HOME").map(PathBuf::from), env::home_dir())?;
        let is_new = !path.exists();
        let forewarn = open_file(&path).await?;
        if is_new {
            say(format_args!("the store is new: {}; --store or FOREWARN_STORE names another one", path.display()));
        }
        return Ok(forewarn);
    };
    Ok(Forewarn::connect(url).await?)
}

/// Opens the file at `path`; it and its directory are made if they are missing.
pub(super) async fn open_file(path: &Path) -> Result<Forewarn, StoreError> {
    let options = SqliteOptions { create_parent: true, ..SqliteOptions::default() };
    Ok(Forewarn::with_store(Arc::new(SqliteStore::open(path, options).await?)))
}

/// A relative `XDG_DATA_HOME` is invalid by the specification and ignored.
fn default_path(data_home: Option<PathBuf>, home: Option<PathBuf>) -> Result<PathBuf, Usage> {
    let data_home = data_home.filter(|path| path.is_absolute());
    let from_home = || home.filter(|path| path.is_absolute()).map(|home| home.join(".local/share"));
    let data_home = data_home.or_else(from_home).ok_or_else(|| {
        Usage("there is no home directory for the store; use --store URL, as in sqlite:forewarn.db".to_owned())
    })?;
    Ok(data_home.join("forewarn").join("forewarn.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_in_the_data_directory_of_the_user() {
        let path = |data_home: Option<&str>, home: Option<&str>| {
            default_path(data_home.map(PathBuf::from), home.map(PathBuf::from)).map(|path| path.display().to_string())
        };
        assert_eq!(path(Some("/data"), Some("/home/a")).ok().as_deref(), Some("/data/forewarn/forewarn.db"));
        let from_home = Some("/home/a/.local/share/forewarn/forewarn.db");
        assert_eq!(path(None, Some("/home/a")).ok().as_deref(), from_home);
        assert_eq!(path(Some("data"), Some("/home/a")).ok().as_deref(), from_home);
        assert!(path(None, None).is_err());
    }
}
