//! The connection: sends scripts and commands in one round trip, and says in our words what went wrong.

use std::{sync::Arc, time::Duration};

use redis::{
    Arg, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline, RedisError,
    ServerErrorKind, Value,
    aio::{ConnectionManager, ConnectionManagerConfig, PubSub},
};

use crate::model::Invalid;
use crate::store::StoreError;

use super::{keys, scripts::Script};

/// How long a call may take before it is given up. A claim of a full batch takes milliseconds, but a server that saves,
/// fails over or runs somebody's slow command may stand still for seconds, and a lost reply costs a lease.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long connecting may take.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);

/// One script call: the keys of its shard, then the arguments.
pub(super) struct Call {
    pub(super) keys: Arc<Vec<String>>,
    pub(super) args: Args,
}

/// The arguments of a call: for most scripts the time and what all calls of a namespace have in common, then its own.
#[derive(Default)]
pub(super) struct Args {
    pub(super) now: Option<Vec<u8>>,
    pub(super) common: Arc<[Vec<u8>]>,
    pub(super) own: Vec<Vec<u8>>,
}

/// A connection that comes back by itself.
#[derive(Clone)]
pub(super) struct Connection {
    client: Client,
    manager: ConnectionManager,
    /// Where the server is, without secrets.
    pub(super) address: String,
}

impl Connection {
    /// Connects to `url`, which has no parameters of ours any more.
    pub(super) async fn open(url: &str) -> Result<Self, StoreError> {
        let info: ConnectionInfo = url.into_connection_info().map_err(|error| {
            let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
            Invalid::new(
                "store",
                format!("is no Redis URL{detail}; write it as redis://[user:password@]host[:port][/db]"),
            )
        })?;
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            // Refused if the program has installed one of its own, which is as good.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let address = info.addr().to_string();
        // A name for lists of clients is not worth a right: without it each connection would be a line in the log of denials.
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        let info = info.set_redis_settings(settings);
        let client = Client::open(info).map_err(|error| classify(&address, error))?;
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(RESPONSE_TIMEOUT))
            .set_connection_timeout(Some(CONNECTION_TIMEOUT))
            // Callers have a back-off of their own; a second one in here would only hide the outage from them.
            .set_number_of_retries(0);
        let manager = ConnectionManager::new_with_config(client.clone(), config)
            .await
            .map_err(|error| classify(&address, error))?;
        Ok(Self { client, manager, address })
    }

    /// Sends one command.
    pub(super) async fn command(&self, command: &Cmd) -> Result<Value, StoreError> {
        let reply = self.manager.clone().send_packed_command(command).await;
        match reply.and_then(Value::extract_error) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.explain(error, key_of(command).as_slice()).await),
        }
    }

    /// Sends commands in one round trip; the first error is that of all.
    pub(super) async fn pipeline(&self, pipeline: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let mut values = Vec::new();
        for (reply, command) in self.send(pipeline).await?.into_iter().zip(pipeline.cmd_iter()) {
            match reply.extract_error() {
                Ok(value) => values.push(value),
                Err(error) => return Err(self.explain(error, key_of(command).as_slice()).await),
            }
        }
        Ok(values)
    }

    /// Runs a script for each call, in one round trip. Calls that met an unloaded script, and only those, are sent again
    /// with the text, which cannot miss.
    pub(super) async fn run(
        &self,
        script: &Script,
        calls: &[Call],
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let mut replies: Vec<Result<Value, RedisError>> =
            self.send_calls("EVALSHA", script.hash.as_bytes(), calls.iter()).await?;
        let missed: Vec<usize> =
            (0..replies.len()).filter(|at| matches!(&replies[*at], Err(error) if is_unloaded(error))).collect();
        if !missed.is_empty() {
            let again = self.send_calls("EVAL", script.text.as_bytes(), missed.iter().map(|at| &calls[*at])).await?;
            for (at, reply) in missed.into_iter().zip(again) {
                replies[at] = reply;
            }
        }
        let mut answers = Vec::with_capacity(replies.len());
        for (reply, call) in replies.into_iter().zip(calls) {
            answers.push(match reply {
                Ok(value) => Ok(value),
                Err(error) => Err(self.explain(error, &with_history(&call.keys)).await),
            });
        }
        Ok(answers)
    }

    async fn send_calls<'a>(
        &self,
        command: &str,
        script: &[u8],
        calls: impl Iterator<Item = &'a Call>,
    ) -> Result<Vec<Result<Value, RedisError>>, StoreError> {
        let mut pipeline = Pipeline::new();
        for call in calls {
            let eval = pipeline.cmd(command).arg(script).arg(call.keys.len());
            for key in call.keys.iter() {
                eval.arg(key);
            }
            let Args { now, common, own } = &call.args;
            for arg in now.iter().chain(&**common).chain(own) {
                eval.arg(arg);
            }
        }
        Ok(self.send(&pipeline).await?.into_iter().map(Value::extract_error).collect())
    }

    async fn send(&self, pipeline: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let count = pipeline.cmd_iter().count();
        self.manager
            .clone()
            .send_packed_commands(pipeline, 0, count)
            .await
            .map_err(|error| classify(&self.address, error))
    }

    /// What an error means. The server does not say which key is of the wrong type, so look.
    async fn explain(&self, error: RedisError, keys: &[String]) -> StoreError {
        if error.code() == Some("WRONGTYPE") {
            let mut pipeline = Pipeline::new();
            for key in keys {
                pipeline.cmd("TYPE").arg(key);
            }
            let types = self.send(&pipeline).await.unwrap_or_default();
            for (key, found) in keys.iter().zip(types) {
                let expected = keys::expected_type(key);
                if let Value::SimpleString(found) = found
                    && found != "none"
                    && found != expected
                {
                    return StoreError::WrongType { key: key.clone(), expected, found };
                }
            }
        }
        classify(&self.address, error)
    }

    /// A connection of its own for listening.
    pub(super) async fn subscribe(&self, channels: &[String]) -> Result<PubSub, StoreError> {
        let listening = async {
            let mut pubsub = self.client.get_async_pubsub().await?;
            pubsub.subscribe(channels).await?;
            Ok(pubsub)
        };
        match tokio::time::timeout(CONNECTION_TIMEOUT, listening).await {
            Ok(pubsub) => pubsub.map_err(|error| classify(&self.address, error)),
            Err(elapsed) => Err(StoreError::Unavailable { address: self.address.clone(), source: elapsed.into() }),
        }
    }

    /// The server and its database as a URL, without secrets.
    pub(super) fn place(&self) -> String {
        let (info, address) = (self.client.get_connection_info(), &self.address);
        let database = info.redis_settings().db();
        match info.addr() {
            ConnectionAddr::Unix(_) => format!("redis+unix://{address}?db={database}"),
            ConnectionAddr::TcpTls { .. } => format!("rediss://{address}/{database}"),
            _ => format!("redis://{address}/{database}"),
        }
    }

    /// An answer this version does not understand.
    pub(super) fn odd(&self, problem: impl Into<String>) -> StoreError {
        StoreError::Unexpected { address: self.address.clone(), problem: problem.into() }
    }
}

/// Neither client nor manager may show the password they hold.
impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The key of a plain command: its first argument.
/// The keys a script may touch: those of the call, and the history beside them.
fn with_history(keys: &[String]) -> Vec<String> {
    let stem = keys.first().and_then(|key| key.split_once("}:")).map(|(tag, _)| format!("{tag}}}:"));
    keys.iter().cloned().chain(stem.map(|stem| keys::history(&stem))).collect()
}

fn key_of(command: &Cmd) -> Option<String> {
    match command.args_iter().nth(1) {
        Some(Arg::Simple(key)) => Some(String::from_utf8_lossy(key).into_owned()),
        _ => None,
    }
}

fn is_unloaded(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

fn classify(address: &str, error: RedisError) -> StoreError {
    let address = address.to_owned();
    match error.code() {
        Some("OOM") => StoreError::Full { address },
        Some("NOAUTH" | "WRONGPASS" | "NOPERM" | "NOPROTO") => StoreError::Denied { address, source: error.into() },
        Some(
            "LOADING" | "READONLY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" | "MISCONF" | "NOREPLICAS",
        ) => StoreError::Unavailable { address, source: error.into() },
        Some(_) => StoreError::Unexpected { address, problem: error.to_string() },
        None => match error.kind() {
            ErrorKind::AuthenticationFailed => StoreError::Denied { address, source: error.into() },
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
                StoreError::Unexpected { address, problem: error.to_string() }
            }
            _ => StoreError::Unavailable { address, source: error.into() },
        },
    }
}
