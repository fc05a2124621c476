//! Dead letters and reviews: their names, what is known of them, what is done with them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::object;
use crate::api::text::{WrittenId, read_payload, write_payload};
use crate::api::view::{FailureForm, NoticeForm, read_failures, read_instant};
use crate::model::{EventId, Id, IdMask, Invalid, Name, format_instant};
use crate::store::{Parked, Requeued};

/// One parked notice.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ParkedForm {
    /// The route it was for.
    pub route: String,
    /// The id, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id in base64 (RFC 4648, section 5), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_base64: Option<String>,
    /// In place of the id, if ids of the namespace are sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The notice.
    pub notice: NoticeForm,
    /// When it was parked (RFC 3339).
    pub parked_at: String,
    /// Its payload, if that is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// The payload in base64, if it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// The last failures, at most 10, newest last.
    pub failures: Vec<FailureForm>,
}

impl ParkedForm {
    /// The form of a parked notice, its id shown as `mask` says.
    pub fn new(parked: &Parked, mask: &IdMask) -> Self {
        let WrittenId { id, id_base64, handle } = WrittenId::new(&mask.show(&parked.notice.id));
        let mut failures = parked.failures.clone();
        mask.scrub_failures(&parked.notice.id, &mut failures);
        let (payload, payload_base64) = write_payload(parked.payload.as_deref());
        Self {
            route: parked.route.to_string(),
            id,
            id_base64,
            handle,
            notice: NoticeForm::from(&parked.notice),
            parked_at: format_instant(parked.parked_at_ms),
            payload,
            payload_base64,
            failures: failures.iter().map(FailureForm::from).collect(),
        }
    }
}

impl ParkedForm {
    /// The parked notice of this id; `key` is how the reader's store calls it.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub(crate) fn read(self, namespace: &Name, id: Id, key: Vec<u8>) -> Result<Parked, Invalid> {
        Ok(Parked {
            route: Name::new("route", self.route)?,
            notice: self.notice.read(namespace, id)?,
            parked_at_ms: read_instant(&self.parked_at)?,
            payload: read_payload(self.payload.as_deref(), self.payload_base64.as_deref())?,
            failures: read_failures(self.failures)?,
            key,
        })
    }
}

/// A page of parked notices.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ParkedPageForm {
    /// The oldest first.
    pub entries: Vec<ParkedForm>,
    /// How many there are in all, whatever was asked for.
    pub total: u64,
}

/// One parked notice by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParkedName {
    /// The event id of the notice (32 hex digits).
    #[schema(pattern = "^[0-9a-fA-F]{32}$")]
    pub event_id: String,
    /// The route it was for.
    pub route: String,
}

impl ParkedName {
    /// The event id and the route.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub fn read(&self) -> Result<(EventId, Name), Invalid> {
        let event_id = self.event_id.parse().map_err(|invalid: Invalid| Invalid::new("event_id", invalid.problem()))?;
        Ok((event_id, Name::new("route", self.route.as_str())?))
    }
}

/// Many parked notices in one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParkedBatch {
    /// What is to be done with all of them.
    pub action: ParkedAction,
    /// 1 to 1,000 of them; each is answered for itself, in this order.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "object::list")]
    pub entries: Vec<ParkedName>,
}

/// What is done with parked notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParkedAction {
    /// Puts them back to be delivered again.
    Requeue,
    /// Deletes them for good.
    Drop,
}

/// The answers to a batch of parked notices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ParkedAnswers {
    /// One for each entry, in their order.
    pub results: Vec<ParkedAnswer>,
}

/// What became of one parked notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ParkedAnswer {
    /// What became of it.
    pub result: ParkedWord,
}

/// What became of a parked notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParkedWord {
    /// It is ready again.
    Requeued,
    /// It is void: the id has another life, or the reminder's time has passed. It stays parked.
    Superseded,
    /// Its route is gone. It stays parked.
    NoRoute,
    /// It is deleted.
    Dropped,
    /// It is not parked.
    Unknown,
}

impl From<Requeued> for ParkedWord {
    fn from(requeued: Requeued) -> Self {
        match requeued {
            Requeued::Requeued => Self::Requeued,
            Requeued::Superseded => Self::Superseded,
            Requeued::NoRoute => Self::NoRoute,
            Requeued::Unknown => Self::Unknown,
        }
    }
}
