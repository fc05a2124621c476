//! Deadlines: to be tracked, renewed, removed and expired, one by one or in batches, and the lists of them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::object;
use crate::api::text::{
    Instant, Span, WrittenId, id_from_base64, read_id, read_payload, write_id, write_payload_exactly,
};
use crate::model::{ExpiresAt, Id, IdMask, Invalid, Mode, Renew, Track, format_instant, span_ms};
use crate::store::Listed;

/// Until when something is alive, and what its handlers are given: the body of track and renew.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"ttl": "30m", "payload": {"user": 7}}))]
pub struct DeadlineBody {
    /// When it expires. Give this or `ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
    /// How long from now by the store's clock it expires: more than nothing. Give this or `expires_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Any JSON, handed to the handlers of its notices. Not given: a living deadline keeps what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// The payload in base64 (RFC 4648), if it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

/// Many deadlines in one call.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"action": "track", "entries": [{"id": "session 1", "ttl": "30m"}, {"id_base64": "_w", "ttl": 90}]}))]
pub struct BatchBody {
    /// What is to be done with all of them.
    #[serde(default)]
    pub action: Action,
    /// For `track`: what is done with an id that is armed already.
    #[serde(default)]
    pub mode: ModeForm,
    /// 1 to 1,000 of them; each is answered for itself, in this order.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "object::list")]
    pub entries: Vec<BatchEntry>,
}

/// What a batch does with its entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Tracks them.
    #[default]
    Track,
    /// Moves those that are armed.
    Renew,
    /// Removes them.
    Remove,
    /// Ends them now.
    Expire,
}

/// What `track` does with an id that is armed already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModeForm {
    /// Moves it to the new expiry.
    #[default]
    Upsert,
    /// Leaves it and answers `exists`.
    Create,
    /// Moves it only to a later expiry, else answers `kept`.
    ExtendOnly,
}

impl From<ModeForm> for Mode {
    fn from(mode: ModeForm) -> Self {
        match mode {
            ModeForm::Upsert => Self::Upsert,
            ModeForm::Create => Self::Create,
            ModeForm::ExtendOnly => Self::ExtendOnly,
        }
    }
}

impl From<Mode> for ModeForm {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Upsert => Self::Upsert,
            Mode::Create => Self::Create,
            Mode::ExtendOnly => Self::ExtendOnly,
        }
    }
}

/// One deadline of a batch. To be removed or expired it is named by its id alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchEntry {
    /// The id, if it is text: 1 to 1,024 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id in base64 (RFC 4648), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_base64: Option<String>,
    /// When it expires. Give this or `ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
    /// How long from now by the store's clock it expires: more than nothing. Give this or `expires_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Any JSON, handed to the handlers of its notices. Not given: a living deadline keeps what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// The payload in base64 (RFC 4648), if it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// For `track`: in place of this id, which is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The same in base64 (RFC 4648), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces_base64: Option<String>,
}

/// Reads the id in whose place another is tracked.
///
/// # Errors
/// Refuses both forms, and what is no id.
pub fn read_replaces(replaces: Option<&str>, replaces_base64: Option<&str>) -> Result<Option<Id>, Invalid> {
    match (replaces, replaces_base64) {
        (None, None) => Ok(None),
        (Some(id), None) => Id::new(id).map(Some),
        (None, Some(text)) => id_from_base64(text).map(Some),
        (Some(_), Some(_)) => Err(Invalid::new("replaces", "is given together with replaces_base64; give one of them")),
    }
}

/// The most entries of one batch.
pub const MAX_BATCH: usize = 1000;

/// Reads an expiry. `now_ms`, the store's clock, is only asked for by a `ttl`.
fn read_expiry(
    expires_at: Option<&Instant>,
    ttl: Option<&Span>,
    now_ms: impl FnOnce() -> i64,
) -> Result<ExpiresAt, Invalid> {
    match (expires_at, ttl) {
        (Some(at), None) => at.read(),
        (None, Some(ttl)) => {
            let span = ttl.read("ttl")?;
            if span.is_zero() {
                let problem = "is 0; give the time it still lives, as in \"30m\", or expire it";
                return Err(Invalid::new("ttl", problem));
            }
            ExpiresAt::from_millis(now_ms().saturating_add(span_ms(span)))
        }
        (Some(_), Some(_)) => Err(Invalid::new("expires_at", "is given together with ttl; give one of them")),
        (None, None) => Err(Invalid::new("expires_at", "is missing; give expires_at or ttl")),
    }
}

impl DeadlineBody {
    /// The deadline to track.
    ///
    /// # Errors
    /// Names the field that is wrong and the fix.
    pub fn into_track(self, id: Id, now_ms: i64) -> Result<Track, Invalid> {
        let expires_at = read_expiry(self.expires_at.as_ref(), self.ttl.as_ref(), || now_ms)?;
        let payload = read_payload(self.payload.as_deref(), self.payload_base64.as_deref())?;
        Ok(Track { id, expires_at, payload })
    }
}

impl BatchEntry {
    /// The entry that names this id.
    pub fn of(id: &Id) -> Self {
        let (id, id_base64) = write_id(id);
        Self { id, id_base64, ..Self::default() }
    }

    /// The entry that tracks this.
    pub fn track(track: &Track) -> Self {
        let (payload, payload_base64) = write_payload_exactly(track.payload.as_deref());
        let expires_at = Some(Instant::Millis(track.expires_at.as_millis()));
        Self { expires_at, payload, payload_base64, ..Self::of(&track.id) }
    }

    /// The id in whose place it is tracked.
    ///
    /// # Errors
    /// Refuses both forms, and what is no id.
    pub fn read_replaces(&self) -> Result<Option<Id>, Invalid> {
        read_replaces(self.replaces.as_deref(), self.replaces_base64.as_deref())
    }

    /// The id it names.
    ///
    /// # Errors
    /// Refuses both forms, none, and what is no id.
    pub fn read_id(&self) -> Result<Id, Invalid> {
        read_id(self.id.as_deref(), self.id_base64.as_deref())
    }

    /// The deadline to track.
    ///
    /// # Errors
    /// Names the field that is wrong and the fix.
    pub fn read_track(&self, now_ms: i64) -> Result<Track, Invalid> {
        let id = self.read_id()?;
        let expires_at = read_expiry(self.expires_at.as_ref(), self.ttl.as_ref(), || now_ms)?;
        let payload = read_payload(self.payload.as_deref(), self.payload_base64.as_deref())?;
        Ok(Track { id, expires_at, payload })
    }

    /// The id to remove or expire.
    ///
    /// # Errors
    /// Refuses what such an entry has no use for, and what is no id.
    pub fn read_bare(&self) -> Result<Id, Invalid> {
        let Self { id: _, id_base64: _, expires_at, ttl, payload, payload_base64, replaces, replaces_base64 } = self;
        let given = [
            ("replaces", replaces.is_some() || replaces_base64.is_some()),
            ("expires_at", expires_at.is_some()),
            ("ttl", ttl.is_some()),
            ("payload", payload.is_some()),
            ("payload_base64", payload_base64.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((field, _)) => Err(Invalid::new(field, "has no meaning here; name the id alone")),
            None => self.read_id(),
        }
    }
}

impl From<&Renew> for BatchEntry {
    fn from(renew: &Renew) -> Self {
        let Renew { id, expires_at, payload } = renew.clone();
        Self::track(&Track { id, expires_at, payload })
    }
}

/// One armed deadline in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListedForm {
    /// The id, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id in base64 (RFC 4648, section 5), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_base64: Option<String>,
    /// In place of the id, if ids of the namespace are sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// When it expires (RFC 3339).
    pub expires_at: String,
}

impl ListedForm {
    /// The form of an entry, its id shown as `mask` says.
    pub fn new(listed: &Listed, mask: &IdMask) -> Self {
        let WrittenId { id, id_base64, handle } = WrittenId::new(&mask.show(&listed.id));
        Self { id, id_base64, handle, expires_at: format_instant(listed.expires_at_ms) }
    }
}

/// A page of armed deadlines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadlinePage {
    /// By expiry, then id.
    pub deadlines: Vec<ListedForm>,
    /// The cursor of the next page, if there may be one.
    pub next: Option<String>,
}

/// An id: one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IdForm {
    /// The id, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id in base64 (RFC 4648, section 5), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_base64: Option<String>,
}

impl From<&Id> for IdForm {
    fn from(id: &Id) -> Self {
        let (id, id_base64) = write_id(id);
        Self { id, id_base64 }
    }
}
