//! Where a command works: the store or the daemon it was given, or a file in the user's data directory.

use std::{
    env,
    path::{Path, PathBuf},
};

use clap::Args;
use forewarn::{Forewarn, StoreError, config::default_store};

use super::{exit::Usage, output::say};

/// The store or the daemon that a command works on.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// The store's URL; with a password rather in FOREWARN_STORE
    ///
    /// sqlite:PATH for a file, redis://host[:port][/db] for a server, rediss://… with TLS, redis+unix:///path. Default: the file forewarn/forewarn.db in $XDG_DATA_HOME, or in
    /// ~/.local/share; for demo a temporary file.
    #[arg(
        long,
        global = true,
        display_order = 100,
        value_name = "URL",
        env = "FOREWARN_STORE",
        hide_env_values = true
    )]
    store: Option<String>,
    /// Work through the daemon at this URL, in place of a store; its token in FOREWARN_TOKEN
    ///
    /// As in http://127.0.0.1:7878 or https://…; SSL_CERT_FILE names the certificates of a private CA. The commands and what
    /// they print are the same; what a token may do is decided by its scope.
    #[arg(
        long,
        global = true,
        display_order = 101,
        value_name = "URL",
        env = "FOREWARN_SERVER",
        hide_env_values = true
    )]
    server: Option<String>,
    /// A file with the daemon's token, in place of FOREWARN_TOKEN
    #[arg(long, global = true, display_order = 102, value_name = "FILE", hide_short_help = true)]
    token_file: Option<PathBuf>,
    /// Which of them were given as flags, and not by the environment.
    #[arg(skip)]
    pub(super) flags: Flags,
}

/// What was given as a flag.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Flags {
    pub(super) store: bool,
    pub(super) server: bool,
}

/// Where a command works.
#[derive(Debug)]
pub(super) enum Place {
    /// The file of this user.
    Own,
    /// The store at this URL.
    Store(String),
    /// The daemon at this URL.
    Server { url: String, token_file: Option<PathBuf> },
}

impl PlaceArgs {
    /// The store that was given as a flag, for commands that know no other; a daemon is refused.
    pub(super) fn into_store_flag(self, command: &str) -> Result<Option<String>, Usage> {
        if self.flags.server || self.token_file.is_some() {
            return Err(Usage(format!(
                "{command} does not work through a daemon; leave --server and --token-file away"
            )));
        }
        Ok(self.store.filter(|_| self.flags.store))
    }

    /// Where to work: a flag is stronger than the environment.
    pub(super) fn into_place(self) -> Result<Place, Usage> {
        let Self { store, server, token_file, flags } = self;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (store, server) = match (flags.store, flags.server) {
            (true, true) => return Err(Usage("--store and --server are both given; give one of them".to_owned())),
            (true, false) => (given(store), None),
            (false, true) => (None, given(server)),
            (false, false) => (given(store), given(server)),
        };
        match (store, server) {
            (Some(_), Some(_)) => Err(Usage(
                "FOREWARN_STORE and FOREWARN_SERVER are both set; unset one of them, or give --store or --server"
                    .to_owned(),
            )),
            (_, None) if token_file.is_some() => {
                Err(Usage("--token-file is for a daemon; give its URL with --server".to_owned()))
            }
            (None, Some(url)) => Ok(Place::Server { url, token_file }),
            (Some(url), None) => check_store(&url).map(|()| Place::Store(url)),
            (None, None) => Ok(Place::Own),
        }
    }
}

impl Place {
    /// The URL of a store; `None` for the file of this user. A daemon is refused.
    pub(super) fn into_store(self, command: &str) -> Result<Option<String>, Usage> {
        match self {
            Self::Own => Ok(None),
            Self::Store(url) => Ok(Some(url)),
            Self::Server { .. } => {
                Err(Usage(format!("{command} does not work through a daemon; give the store itself with --store")))
            }
        }
    }

    /// Opens it; the file of this user is made if it is missing.
    pub(super) async fn open(self) -> anyhow::Result<Forewarn> {
        match self {
            Self::Own => open_own().await,
            Self::Store(url) => Ok(Forewarn::connect(&url).await?),
            Self::Server { url, token_file } => open_server(&url, token_file.as_deref()).await,
        }
    }
}

/// Refuses what is the URL of a daemon, without showing it.
pub(super) fn check_store(url: &str) -> Result<(), Usage> {
    match url.split_once("://") {
        Some(("http" | "https", _)) => Err(Usage(
            "store is the URL of a daemon, which --server takes; that of a store begins with sqlite:, redis://, rediss:// or \
             redis+unix://"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

async fn open_own() -> anyhow::Result<Forewarn> {
    let data_home = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let path = default_store(data_home.as_deref(), env::home_dir().as_deref())?;
    let is_new = !path.exists();
    let forewarn = Forewarn::open_file(&path).await?;
    if is_new {
        say(format_args!("the store is new: {}; --store or FOREWARN_STORE names another one", path.display()));
    }
    Ok(forewarn)
}

async fn open_server(url: &str, token_file: Option<&Path>) -> anyhow::Result<Forewarn> {
    let token = token(token_file)?;
    let has_token = token.is_some();
    match Forewarn::connect_daemon(url, token).await {
        Err(error @ StoreError::Denied { .. }) if !has_token => {
            say("give its token in FOREWARN_TOKEN, or a file that holds it with --token-file");
            Err(error.into())
        }
        opened => Ok(opened?),
    }
}

/// The token: that of the file, else that of the environment. No error shows it.
fn token(file: Option<&Path>) -> Result<Option<String>, Usage> {
    let text = match file {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Usage(format!("--token-file {} cannot be read: {error}", path.display())))?,
        None => match env::var("FOREWARN_TOKEN") {
            Ok(text) => text,
            Err(env::VarError::NotPresent) => return Ok(None),
            Err(env::VarError::NotUnicode(_)) => return Err(Usage("FOREWARN_TOKEN is not UTF-8".to_owned())),
        },
    };
    match (text.trim(), file) {
        ("", Some(path)) => Err(Usage(format!("--token-file {} is empty; write the token into it", path.display()))),
        ("", None) => Ok(None),
        (token, _) => Ok(Some(token.to_owned())),
    }
}
