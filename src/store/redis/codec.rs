//! Reads what scripts answer: words, numbers, notices and tokens.

use redis::Value;
use serde::{Deserialize, Deserializer};

use crate::model::{FailureRecord, Name, Notice};
use crate::store::notation::{read_notice, whole};
use crate::store::{DropReason, StoreError};

use super::connection::Connection;

/// Reads values, and names the server when one is not what it should be.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    connection: &'a Connection,
    namespace: &'a Name,
}

impl<'a> Reader<'a> {
    pub(super) fn new(connection: &'a Connection, namespace: &'a Name) -> Self {
        Self { connection, namespace }
    }

    pub(super) fn odd(&self, problem: impl Into<String>) -> StoreError {
        self.connection.odd(problem)
    }

    pub(super) fn list(&self, value: Value) -> Result<Vec<Value>, StoreError> {
        match value {
            Value::Array(list) => Ok(list),
            other => Err(self.odd(format!("a list expected, got {}", kind_of(&other)))),
        }
    }

    /// Bytes, or nothing.
    pub(super) fn bytes(&self, value: Value) -> Result<Option<Vec<u8>>, StoreError> {
        match value {
            Value::BulkString(bytes) => Ok(Some(bytes)),
            Value::SimpleString(text) => Ok(Some(text.into_bytes())),
            Value::Int(number) => Ok(Some(number.to_string().into_bytes())),
            Value::Nil => Ok(None),
            other => Err(self.odd(format!("a string expected, got {}", kind_of(&other)))),
        }
    }

    pub(super) fn some_bytes(&self, value: Value) -> Result<Vec<u8>, StoreError> {
        self.bytes(value)?.ok_or_else(|| self.odd("a string expected, got nothing"))
    }

    pub(super) fn text(&self, value: Value) -> Result<String, StoreError> {
        String::from_utf8(self.some_bytes(value)?).map_err(|_| self.odd("text expected, got other bytes"))
    }

    /// A whole number; the fraction of a score is cut.
    pub(super) fn number(&self, value: Value) -> Result<i64, StoreError> {
        match value {
            Value::Int(number) => Ok(number),
            other => {
                let text = self.text(other)?;
                whole(&text).ok_or_else(|| self.odd(format!("a number expected, got \"{text}\"")))
            }
        }
    }

    pub(super) fn count(&self, value: Value) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.number(value)?).unwrap_or_default())
    }

    /// A notice as the queues hold it: `<kind>:<e>:<id>`.
    pub(super) fn notice(&self, stored: &[u8]) -> Result<Notice, StoreError> {
        read_notice(self.namespace, stored).ok_or_else(|| self.odd(unreadable("notice", stored)))
    }

    /// What was recorded of failures; nothing stored is an empty record.
    pub(super) fn failures(&self, json: &[u8]) -> Result<StoredFailures, StoreError> {
        if json.is_empty() {
            return Ok(StoredFailures::default());
        }
        serde_json::from_slice(json).map_err(|error| self.odd(format!("a failure record cannot be read: {error}")))
    }

    pub(super) fn drop_reason(&self, word: &str) -> Result<DropReason, StoreError> {
        match word {
            "superseded" => Ok(DropReason::Superseded),
            "expired" => Ok(DropReason::Expired),
            "coalesced" => Ok(DropReason::Coalesced),
            "lead" => Ok(DropReason::Lead),
            other => Err(self.odd(format!("unknown reason \"{other}\""))),
        }
    }
}

/// Says of what cannot be read how long it is: it may hold an id, and an id may be a secret.
pub(super) fn unreadable(what: &str, bytes: &[u8]) -> String {
    format!("a {what} of {} bytes that cannot be read", bytes.len())
}

/// What a value is, without what it holds.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nothing",
        Value::Int(_) => "a number",
        Value::BulkString(_) | Value::SimpleString(_) | Value::VerbatimString { .. } => "a string",
        Value::Array(_) | Value::Set(_) | Value::Map(_) => "a list",
        Value::ServerError(_) => "an error",
        _ => "something else",
    }
}

/// The JSON in `fail`, and the part of it that `dead` and `review` share.
#[derive(Debug, Default, Deserialize)]
pub(super) struct StoredFailures {
    #[serde(default, deserialize_with = "lenient_count")]
    pub(super) failures: u32,
    #[serde(default, deserialize_with = "lenient_count")]
    pub(super) lapses: u32,
    #[serde(default)]
    pub(super) due_at_ms: Option<String>,
    #[serde(default)]
    pub(super) on_set: bool,
    #[serde(default)]
    pub(super) last: Vec<FailureRecord>,
    /// Raw bytes: the server's JSON encoder passes them through, UTF-8 or not.
    #[serde(default)]
    pub(super) payload: Option<serde_bytes::ByteBuf>,
}

/// The server's JSON encoder may write a whole number as a float.
fn lenient_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count; the cast saturates")]
    f64::deserialize(deserializer).map(|number| number as u32)
}
