//! The configuration of the daemon: a TOML file, the environment and flags, in that order of weakness, become checked
//! settings.
//!
//! Owns the keys, where each value came from, what may be shown of it, and how a change is noticed and told. Every
//! mistake is reported, not only the first. Nothing here starts or serves anything, and only [`Layers::of_process`]
//! looks at the process's own environment.
//!
//! ```
//! use forewarn::config::Layers;
//!
//! let mut layers = Layers::default();
//! layers.env.push(("FOREWARN_STORE".into(), "sqlite:forewarn.db".into()));
//! layers.env.push(("FOREWARN_NAMESPACE__SESSION__REMIND".into(), "10m,1m".into()));
//! let loaded = layers.load()?;
//! assert_eq!(loaded.config.namespaces[0].name.as_str(), "session");
//! # Ok::<(), forewarn::config::ConfigError>(())
//! ```

mod apply;
mod changes;
mod check;
mod difference;
mod env;
mod example;
mod file;
mod form;
mod given;
mod load;
mod nearest;
mod place;
mod secret;
mod shape;
mod token;
mod value;

use std::{fmt, net::IpAddr, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Name;
use crate::store::Change;

pub use apply::{AppliedNamespace, Effect, apply, foresee};
pub use changes::Changes;
pub use difference::{Changed, Difference, Reload};
pub use example::example;
pub use given::{ConfigError, Origin, Problem};
pub use load::{Flag, Layers, Loaded, Value};
pub use place::{StorePlace, default_config, default_store};
pub use secret::TokenHash;
pub use token::{Scope, Token};

/// A configuration that has been checked. Shows no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The store.
    pub store: StorePlace,
    /// Where to listen. Default: `127.0.0.1:7878`.
    pub listen: Listen,
    /// Whether an address that other machines can reach may be served without tokens. Default: no.
    pub insecure: bool,
    /// TLS for the listener. Default: none, which means plain HTTP.
    pub tls: Option<Tls>,
    /// The log.
    pub log: Log,
    /// How long work in progress may take to end when the daemon is told to stop. Default: 30 s.
    pub stop_timeout: Duration,
    /// What a client may cost.
    pub limits: Limits,
    /// Who may use the API, by name. Default: nobody named, which means everybody on this machine.
    pub tokens: Vec<Token>,
    /// The namespaces to create or to keep, by name.
    pub namespaces: Vec<NamespaceConfig>,
}

/// A host and a port to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// An address or a name.
    pub host: String,
    /// The port; 0 means any that is free.
    pub port: u16,
}

impl Listen {
    /// Reads `host:port` or `[::1]:port`; answers with what is wrong, to follow the key.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |problem| {
            format!("\"{}\" {problem}; write it as in 127.0.0.1:7878, [::1]:7878 or localhost:0", text.escape_debug())
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("has no port"))?;
        let port = port.parse().map_err(|_| wrong("has no port from 0 to 65535"))?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) => {
                host.parse::<std::net::Ipv6Addr>().map_err(|_| wrong("has no address in its brackets"))?.to_string()
            }
            None if host.contains(':') => return Err(wrong("has an address with colons outside of brackets")),
            None => host.to_owned(),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(wrong("has no host"));
        }
        Ok(Self { host, port })
    }

    /// Whether only this machine can reach it. A name other than `localhost` counts as one that others can.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The certificate of the listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The certificate and those of its issuers, in PEM.
    pub cert_file: PathBuf,
    /// Its private key, in PEM.
    pub key_file: PathBuf,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How lines are written. Default: text.
    pub format: LogFormat,
    /// What is logged: a level, or levels by module. Default: `info`. Not checked here.
    pub filter: String,
}

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON document each.
    Json,
}

/// What a client may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest body of a request, in bytes. Default: 4 MiB.
    pub max_body: u64,
    /// The largest head of a request, in bytes. Default: 16 KiB.
    pub max_header: u32,
    /// How long a request may take. Default: 10 s.
    pub request_timeout: Duration,
    /// How long a client may take to send a head. Default: 10 s.
    pub header_timeout: Duration,
    /// Connections at the same time. Default: 1,024.
    pub max_connections: u32,
    /// Requests at the same time. Default: 256.
    pub max_requests: u32,
    /// Long polls and event streams at the same time. Default: 512.
    pub max_waiting: u32,
}

/// A namespace of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceConfig {
    /// The name.
    pub name: Name,
    /// Its settings, whole, and the routes to add or to change.
    pub change: Change,
}
