//! A hand-out as watchers get it: a CloudEvent with its route.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::text::{read_id, read_payload};
use crate::api::view::{KindForm, NoticeForm, read_instant};
use crate::model::{Invalid, Name, Reason};
use crate::store::Handed;

/// A hand-out: a CloudEvent, and the route it was handed out on.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NoticeEvent {
    /// `1.0`
    pub specversion: String,
    /// `forewarn.reminder` or `forewarn.cleanup`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same for every attempt (32 hex digits).
    pub id: String,
    /// `/forewarn/` and the namespace.
    pub source: String,
    /// The deadline's id, in base64 if it is no text; its handle, if ids of the namespace are sensitive.
    pub subject: String,
    /// When it was handed out (RFC 3339).
    pub time: String,
    /// The route.
    pub route: String,
    /// What there is to know.
    pub data: NoticeData,
}

/// What there is to know of a hand-out.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NoticeData {
    /// The namespace.
    pub namespace: String,
    /// The id, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id in base64 (RFC 4648, section 5), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_base64: Option<String>,
    /// In place of the id, if ids of the namespace are sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// `reminder` or `cleanup`.
    pub kind: KindForm,
    /// Of a cleanup: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Of a reminder: how long before expiry it speaks, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_ms: Option<i64>,
    /// The expiry (RFC 3339).
    pub expires_at: String,
    /// When it was due (RFC 3339).
    pub due_at: String,
    /// When it was handed out (RFC 3339).
    pub sent_at: String,
    /// How much later than due, in milliseconds.
    pub lateness_ms: i64,
    /// How long until it expires, in milliseconds.
    pub remaining_ms: i64,
    /// The number of this attempt; the first is 1.
    pub attempt: u32,
    /// Whether a set inside its lead caused it.
    pub on_set: bool,
    /// The payload, if it is JSON; `null` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// The payload in base64, if it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

impl NoticeEvent {
    /// The hand-out; `None` for the id where its handle stands.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub(crate) fn read(self, namespace: &Name) -> Result<Option<Handed>, Invalid> {
        let NoticeData { id, id_base64, handle, kind, reason, lead_ms, expires_at, .. } = self.data;
        if handle.is_some() {
            return Ok(None);
        }
        let id = read_id(id.as_deref(), id_base64.as_deref())?;
        let form = NoticeForm { event_id: self.id, kind, reason, lead_ms, expires_at };
        // There is none if it is null, or if somebody's payload is.
        let payload = self.data.payload.filter(|json| json.get() != "null");
        Ok(Some(Handed {
            at_ms: read_instant(&self.data.sent_at)?,
            route: Name::new("route", self.route)?,
            notice: form.read(namespace, id)?,
            attempt: self.data.attempt,
            due_at_ms: read_instant(&self.data.due_at)?,
            on_set: self.data.on_set,
            payload: read_payload(payload.as_deref(), self.data.payload_base64.as_deref())?,
        }))
    }
}
