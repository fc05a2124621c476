//! What people look at: one deadline with all that hangs on it, notices and failures.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::text::{Instant, WrittenId, read_payload, write_payload};
use crate::model::{Class, FailureRecord, Id, IdMask, Invalid, Kind, LeadTime, Name, Notice, Reason, format_instant};
use crate::store::{DeadlineView, DeliveryState, DeliveryView};

/// A notice, beside an id that is said elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoticeForm {
    /// The same for every attempt: the key to idempotency (32 hex digits).
    pub event_id: String,
    /// `reminder` or `cleanup`.
    pub kind: KindForm,
    /// Of a cleanup: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Of a reminder: how long before expiry it speaks, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_ms: Option<i64>,
    /// The expiry it speaks of (RFC 3339).
    pub expires_at: String,
}

/// The two kinds of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindForm {
    /// Before expiry.
    Reminder,
    /// After it.
    Cleanup,
}

impl From<&Notice> for NoticeForm {
    fn from(notice: &Notice) -> Self {
        let (kind, reason, lead_ms) = match notice.kind {
            Kind::Reminder(lead) => (KindForm::Reminder, None, Some(lead.as_millis())),
            Kind::Cleanup(reason) => (KindForm::Cleanup, Some(reason), None),
        };
        let expires_at = format_instant(notice.expires_at_ms);
        Self { event_id: notice.event_id().to_string(), kind, reason, lead_ms, expires_at }
    }
}

impl NoticeForm {
    /// The notice of this id.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub fn read(&self, namespace: &Name, id: Id) -> Result<Notice, Invalid> {
        let kind = match (self.kind, self.lead_ms, self.reason) {
            (KindForm::Reminder, Some(lead), _) => Kind::Reminder(LeadTime::from_millis(lead)?),
            (KindForm::Cleanup, _, Some(reason)) => Kind::Cleanup(reason),
            (KindForm::Reminder, None, _) => return Err(Invalid::new("lead_ms", "is missing")),
            (KindForm::Cleanup, ..) => return Err(Invalid::new("reason", "is missing")),
        };
        Ok(Notice { namespace: namespace.clone(), kind, expires_at_ms: read_instant(&self.expires_at)?, id })
    }
}

/// Milliseconds of an instant as this API writes it; any, not only those that may be an expiry.
pub(crate) fn read_instant(text: &str) -> Result<i64, Invalid> {
    match chrono::DateTime::parse_from_rfc3339(text) {
        Ok(at) => Ok(at.timestamp_millis()),
        Err(_) => Instant::Text(text.to_owned()).read().map(|at| at.as_millis()),
    }
}

/// A recorded failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureForm {
    /// When, by the store's clock (RFC 3339).
    pub at: String,
    /// Which attempt failed; the first is 1.
    pub attempt: u32,
    /// Where it failed: `deliver`, or a name the worker gave.
    pub stage: String,
    /// Its class.
    pub class: Class,
    /// What happened.
    pub summary: String,
    /// When the next attempt is allowed (RFC 3339); `null` if there is none.
    pub next_attempt_at: Option<String>,
}

impl From<&FailureRecord> for FailureForm {
    fn from(failure: &FailureRecord) -> Self {
        Self {
            at: format_instant(failure.at_ms),
            attempt: failure.attempt,
            stage: failure.stage.clone(),
            class: failure.class,
            summary: failure.summary.clone(),
            next_attempt_at: failure.next_attempt_at_ms.map(format_instant),
        }
    }
}

impl FailureForm {
    fn read(self) -> Result<FailureRecord, Invalid> {
        Ok(FailureRecord {
            at_ms: read_instant(&self.at)?,
            attempt: self.attempt,
            stage: self.stage,
            class: self.class,
            summary: self.summary,
            next_attempt_at_ms: self.next_attempt_at.as_deref().map(read_instant).transpose()?,
        })
    }
}

pub(super) fn read_failures(failures: Vec<FailureForm>) -> Result<Vec<FailureRecord>, Invalid> {
    failures.into_iter().map(FailureForm::read).collect()
}

/// Everything known of one id.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeadlineForm {
    /// The id, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id in base64 (RFC 4648, section 5), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_base64: Option<String>,
    /// In place of the id, if ids of the namespace are sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// When it expires (RFC 3339); `null` if it is not armed.
    pub expires_at: Option<String>,
    /// Its payload or that of its open cleanup, if that is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// The payload in base64, if it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// Its unsettled cleanup, if one is open.
    pub open: Option<NoticeForm>,
    /// The score with which it was quarantined.
    pub quarantined: Option<String>,
    /// Its period, if it recurs: milliseconds, or `cron:` and an expression.
    pub every: Option<String>,
    /// Its deliveries in flight or waiting.
    pub deliveries: Vec<DeliveryForm>,
}

/// One delivery in flight or waiting.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeliveryForm {
    /// The route.
    pub route: String,
    /// The notice.
    pub notice: NoticeForm,
    /// Ready, waiting or leased.
    pub state: DeliveryState,
    /// When the lease ends or when it may be handed out (RFC 3339).
    pub at: String,
    /// How often it was handed out; it stays at 15 once there.
    pub hand_outs: u8,
    /// What was recorded of its failures, newest last.
    pub failures: Vec<FailureForm>,
}

impl DeadlineForm {
    /// The form of what is known, the id shown as `mask` says.
    pub fn new(view: &DeadlineView, mask: &IdMask) -> Self {
        let WrittenId { id, id_base64, handle } = WrittenId::new(&mask.show(&view.id));
        let (payload, payload_base64) = write_payload(view.payload.as_deref());
        Self {
            id,
            id_base64,
            handle,
            expires_at: view.expires_at_ms.map(format_instant),
            payload,
            payload_base64,
            open: view.open.as_ref().map(NoticeForm::from),
            quarantined: view.quarantined.clone(),
            every: view.every.clone(),
            deliveries: view.deliveries.iter().map(|delivery| DeliveryForm::new(delivery, mask)).collect(),
        }
    }
}

impl DeliveryForm {
    fn new(delivery: &DeliveryView, mask: &IdMask) -> Self {
        let mut failures = delivery.failures.clone();
        mask.scrub_failures(&delivery.notice.id, &mut failures);
        Self {
            route: delivery.route.to_string(),
            notice: NoticeForm::from(&delivery.notice),
            state: delivery.state,
            at: format_instant(delivery.at_ms),
            hand_outs: delivery.hand_outs,
            failures: failures.iter().map(FailureForm::from).collect(),
        }
    }
}

impl DeadlineForm {
    /// What is known of `id`.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub fn read(self, namespace: &Name, id: &Id) -> Result<DeadlineView, Invalid> {
        let delivery = |delivery: DeliveryForm| {
            Ok(DeliveryView {
                route: Name::new("route", delivery.route)?,
                notice: delivery.notice.read(namespace, id.clone())?,
                state: delivery.state,
                at_ms: read_instant(&delivery.at)?,
                hand_outs: delivery.hand_outs,
                failures: read_failures(delivery.failures)?,
            })
        };
        Ok(DeadlineView {
            id: id.clone(),
            expires_at_ms: self.expires_at.as_deref().map(read_instant).transpose()?,
            payload: read_payload(self.payload.as_deref(), self.payload_base64.as_deref())?,
            open: self.open.map(|open| open.read(namespace, id.clone())).transpose()?,
            quarantined: self.quarantined,
            every: self.every,
            deliveries: self.deliveries.into_iter().map(delivery).collect::<Result<_, Invalid>>()?,
        })
    }
}
