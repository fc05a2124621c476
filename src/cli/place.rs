//! Which store a command works on: the one given, or a file in the user's data directory.

use std::{env, path::PathBuf};

use forewarn::{Forewarn, config::default_store};

use super::output::say;

/// Opens the store at `url`, or without one the file of this user, which is made if it is missing.
pub(super) async fn open(url: Option<&str>) -> anyhow::Result<Forewarn> {
    let Some(url) = url else {
        let data_home = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let path = default_store(data_home.as_deref(), env::home_dir().as_deref())?;
        let is_new = !path.exists();
        let forewarn = Forewarn::open_file(&path).await?;
        if is_new {
            say(format_args!("the store is new: {}; --store or FOREWARN_STORE names another one", path.display()));
        }
        return Ok(forewarn);
    };
    Ok(Forewarn::connect(url).await?)
}
