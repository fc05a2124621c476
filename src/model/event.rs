//! The CloudEvents 1.0 form of a notice, as workers, sinks and streams carry it.
//!
//! Source: the CloudEvents 1.0.2 specification and its JSON event format.

use serde::Serialize;

use crate::model::{EventId, IdMask, Kind, Notice, PayloadJson, Reason, ShownId, format_instant};

/// A notice as a CloudEvent: serialize it to get the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    specversion: &'static str,
    /// `forewarn.reminder` or `forewarn.cleanup`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The stable event id.
    id: EventId,
    source: String,
    subject: String,
    time: String,
    datacontenttype: &'static str,
    data: Data,
}

#[derive(Debug, Clone, Serialize)]
struct Data {
    namespace: String,
    #[serde(flatten)]
    id: ShownId,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lead_ms: Option<i64>,
    remaining_ms: i64,
    due_at: String,
    sent_at: String,
    lateness_ms: i64,
    attempt: u32,
    on_set: bool,
    #[serde(flatten)]
    payload: PayloadJson,
}

/// What an event tells of one hand-out beside the notice itself.
#[derive(Debug, Clone, Copy)]
pub struct HandOut<'a> {
    /// The number of this attempt; the first is 1.
    pub attempt: u32,
    /// When the notice was due, in milliseconds.
    pub due_at_ms: i64,
    /// When it is handed over, in milliseconds.
    pub sent_at_ms: i64,
    /// Whether a set inside its lead caused it.
    pub on_set: bool,
    /// The payload of the deadline, if it has one.
    pub payload: Option<&'a [u8]>,
}

impl Event {
    /// The event of `notice` as it is handed over.
    pub fn new(notice: &Notice, hand_out: HandOut<'_>) -> Self {
        Self::masked(notice, hand_out, &IdMask::none())
    }

    /// The same for people and logs, which are shown the id as `mask` says.
    pub fn masked(notice: &Notice, hand_out: HandOut<'_>, mask: &IdMask) -> Self {
        let (kind, reason, lead_ms) = match notice.kind {
            Kind::Reminder(lead) => ("forewarn.reminder", None, Some(lead.as_millis())),
            Kind::Cleanup(reason) => ("forewarn.cleanup", Some(reason), None),
        };
        let id = mask.show(&notice.id);
        let subject = match &id {
            ShownId::Id(id) => id.as_text().map_or_else(|| id.to_base64(), str::to_owned),
            ShownId::Handle(handle) => handle.to_string(),
        };
        Self {
            specversion: "1.0",
            kind,
            id: notice.event_id(),
            source: format!("/forewarn/{}", notice.namespace),
            subject,
            time: format_instant(hand_out.sent_at_ms),
            datacontenttype: "application/json",
            data: Data {
                namespace: notice.namespace.to_string(),
                id,
                kind: notice.kind.as_str(),
                reason,
                expires_at: format_instant(notice.expires_at_ms),
                lead_ms,
                remaining_ms: notice.expires_at_ms.saturating_sub(hand_out.sent_at_ms).max(0),
                due_at: format_instant(hand_out.due_at_ms),
                sent_at: format_instant(hand_out.sent_at_ms),
                lateness_ms: hand_out.sent_at_ms.saturating_sub(hand_out.due_at_ms).max(0),
                attempt: hand_out.attempt,
                on_set: hand_out.on_set,
                payload: PayloadJson::from(hand_out.payload),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::model::{Id, LeadTime, Name};

    fn event(id: &[u8], payload: Option<&[u8]>) -> Value {
        let notice = Notice {
            namespace: Name::new("namespace", "session").unwrap(),
            kind: Kind::Reminder(LeadTime::from_millis(600_000).unwrap()),
            expires_at_ms: 1_796_083_200_000,
            id: Id::new(id).unwrap(),
        };
        let hand_out =
            HandOut { attempt: 1, due_at_ms: 1_796_082_600_000, sent_at_ms: 1_796_082_600_002, on_set: false, payload };
        serde_json::to_value(Event::new(&notice, hand_out)).unwrap()
    }

    #[test]
    fn an_event_is_a_cloud_event_with_everything_a_handler_needs() {
        let event = event(b"a", Some(b"{\"user\":1}"));
        assert_eq!(event["specversion"], "1.0");
        assert_eq!(event["type"], "forewarn.reminder");
        assert_eq!(event["source"], "/forewarn/session");
        assert_eq!(event["subject"], "a");
        let data = &event["data"];
        assert_eq!(data["expires_at"], "2026-12-01T00:00:00.000Z");
        assert_eq!(data["due_at"], "2026-11-30T23:50:00.000Z");
        assert_eq!(data["sent_at"], "2026-11-30T23:50:00.002Z");
        assert_eq!((data["remaining_ms"].as_i64(), data["lateness_ms"].as_i64()), (Some(599_998), Some(2)));
        assert_eq!(data["payload"]["user"], 1);
    }

    #[test]
    fn bytes_that_are_no_text_travel_as_base64() {
        let event = event(b"\xFF", Some(b"\xFF"));
        assert_eq!(event["data"]["id_base64"], "_w");
        assert_eq!(event["data"]["payload_base64"], "/w==");
        assert_eq!(event["data"].get("id"), None);
    }
}
