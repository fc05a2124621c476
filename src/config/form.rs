//! The configuration as it is written: the keys, what is said of each, and its default.
//!
//! Everything that knows the keys is derived from these structs: what a file or a variable may hold, the nearest known
//! name, the example. Durations and names are text here; [`super::check`] reads them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{SettingsForm, SpanText};
use crate::config::{LogFormat, Scope};
use crate::model::{FirstStart, Settings};

/// The configuration of forewarn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ConfigForm {
    /// Where deadlines rest: sqlite:PATH for a file, redis://[user:password@]host[:port][/db], rediss://… with TLS, or
    /// redis+unix:///path. Default: the file forewarn/forewarn.db in $XDG_DATA_HOME, or in ~/.local/share.
    #[schemars(extend("x-secret" = "url", "examples" = ["redis://127.0.0.1:6379/0"]))]
    pub(super) store: Option<String>,
    /// A file that holds the password for the store's URL; white space around it does not count. Default: none.
    #[schemars(extend("examples" = ["/run/secrets/redis"]))]
    pub(super) store_password_file: Option<String>,
    /// The address of the HTTP API: host:port, or [::1]:port; port 0 means any that is free.
    pub(super) listen: String,
    /// Whether an address that other machines can reach may be served without any token.
    pub(super) insecure: bool,
    /// How long work in progress may take to end when the daemon is told to stop, a duration.
    pub(super) stop_timeout: SpanText,
    /// A number for the settings of all namespaces below that have none of their own: a lower one never overwrites a
    /// higher one. Default: none, which always applies.
    #[schemars(extend("examples" = [1]))]
    pub(super) revision: Option<u64>,
    /// TLS for the listener; both files or neither.
    pub(super) tls: TlsForm,
    /// The daemon's log, on its standard error.
    pub(super) log: LogForm,
    /// What a client may cost.
    pub(super) limits: LimitsForm,
    /// Who may use the API, each with a name of your choice. The secret itself stays outside of this file: give one of
    /// hash, secret_env and secret_file.
    pub(super) token: BTreeMap<String, TokenForm>,
    /// The namespaces this daemon creates or keeps as they stand here; others are left alone.
    pub(super) namespace: BTreeMap<String, NamespaceForm>,
}

impl Default for ConfigForm {
    fn default() -> Self {
        Self {
            store: None,
            store_password_file: None,
            listen: "127.0.0.1:7878".to_owned(),
            insecure: false,
            stop_timeout: "30s".into(),
            revision: None,
            tls: TlsForm::default(),
            log: LogForm::default(),
            limits: LimitsForm::default(),
            token: BTreeMap::new(),
            namespace: BTreeMap::new(),
        }
    }
}

impl ConfigForm {
    /// The defaults, with one token and one namespace, so that every key stands in it.
    pub(super) fn complete() -> Self {
        Self {
            token: BTreeMap::from([("ops".to_owned(), TokenForm::default())]),
            namespace: BTreeMap::from([("session".to_owned(), NamespaceForm::complete())]),
            ..Self::default()
        }
    }
}

/// The certificate of the listener.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TlsForm {
    /// The certificate and those of its issuers, in PEM. Default: none, which means plain HTTP.
    #[schemars(extend("examples" = ["/etc/forewarn/tls.crt"]))]
    pub(super) cert_file: Option<String>,
    /// Its private key, in PEM. Default: none.
    #[schemars(extend("examples" = ["/etc/forewarn/tls.key"]))]
    pub(super) key_file: Option<String>,
}

/// The log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogForm {
    /// Lines for people, or one JSON document each: "text" or "json".
    pub(super) format: LogFormat,
    /// What is logged: a level (error, warn, info, debug, trace), or levels by module. FOREWARN_LOG gives the same.
    pub(super) filter: String,
}

impl Default for LogForm {
    fn default() -> Self {
        Self { format: LogFormat::Text, filter: "info".to_owned() }
    }
}

/// Limits of the API.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsForm {
    /// The largest body of a request, in bytes. The default holds a batch of 1,000 entries of 4 KiB each.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub(super) max_body: u64,
    /// The largest head of a request, its path and headers, in bytes.
    #[schemars(range(min = 8192, max = 1_048_576))]
    pub(super) max_header: u32,
    /// How long a request may take, a duration; beyond it the answer is 503. Long polls and event streams have an end
    /// of their own.
    pub(super) request_timeout: SpanText,
    /// How long a client may take to send the head of a request, a duration; beyond it the connection is closed.
    pub(super) header_timeout: SpanText,
    /// Connections at the same time; one more is closed at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) max_connections: u32,
    /// Requests at the same time; one more is answered 429.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) max_requests: u32,
    /// Long polls and event streams at the same time; one more is answered 429.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) max_waiting: u32,
}

impl Default for LimitsForm {
    fn default() -> Self {
        Self {
            max_body: 4 * 1024 * 1024,
            max_header: 16 * 1024,
            request_timeout: "10s".into(),
            header_timeout: "10s".into(),
            max_connections: 1024,
            max_requests: 256,
            max_waiting: 512,
        }
    }
}

/// One token of the API.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TokenForm {
    /// The SHA-256 of the secret: "sha256:" and 64 hex digits, which printf %s "$SECRET" | sha256sum prints.
    #[schemars(extend("x-secret" = "all", "examples" = ["sha256:1adc1020e116b1c8f6b023b25747521bd04f2db83662f10abfee24202a610436"]))]
    pub(super) hash: Option<String>,
    /// Or: the environment variable that holds the secret.
    #[schemars(extend("examples" = ["OPS_TOKEN"]))]
    pub(super) secret_env: Option<String>,
    /// Or: the file that holds the secret; white space around it does not count.
    #[schemars(extend("examples" = ["/run/secrets/ops_token"]))]
    pub(super) secret_file: Option<String>,
    /// What it may do: "read", "write" (also read) or "admin" (everything).
    pub(super) scopes: Vec<Scope>,
    /// The namespaces it may use. Default: none named, which means all.
    #[schemars(extend("examples" = [["session"]]))]
    pub(super) namespaces: Option<Vec<String>>,
}

impl Default for TokenForm {
    fn default() -> Self {
        Self { hash: None, secret_env: None, secret_file: None, scopes: vec![Scope::Read], namespaces: None }
    }
}

/// One namespace.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct NamespaceForm {
    /// Its settings.
    #[serde(flatten)]
    pub(super) settings: SettingsForm,
    /// Consumers of its notices to add or to change: NAME, NAME:reminders or NAME:cleanups. Default: none given, which
    /// leaves them as they are; a namespace that is new gets "main".
    #[schemars(extend("examples" = [["main", "mail:reminders"]]))]
    pub(super) routes: Option<Vec<String>>,
    /// Whether ids that are inside a lead already when the namespace is new are reminded: "speak" or "silent".
    pub(super) first_start: FirstStart,
}

impl NamespaceForm {
    /// The defaults, written out.
    fn complete() -> Self {
        Self { settings: (&Settings::default()).into(), ..Self::default() }
    }
}
