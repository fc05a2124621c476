//! Notices and their failures in outputs: one form for `show`, `dead` and `review`, in JSON and for people.

use forewarn::{
    Kind, Reason,
    model::{EventId, FailureRecord, Notice},
};
use serde::Serialize;

use super::output::{instant, instant_and_distance, printable};

/// A notice in JSON, beside an id that is said elsewhere. To be flattened.
#[derive(Debug, Serialize)]
pub(super) struct NoticeJson {
    event_id: EventId,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lead_ms: Option<i64>,
    expires_at: String,
}

impl From<&Notice> for NoticeJson {
    fn from(notice: &Notice) -> Self {
        let (reason, lead_ms) = match notice.kind {
            Kind::Reminder(lead) => (None, Some(lead.as_millis())),
            Kind::Cleanup(reason) => (Some(reason), None),
        };
        Self {
            event_id: notice.event_id(),
            kind: notice.kind.as_str(),
            reason,
            lead_ms,
            expires_at: instant(notice.expires_at_ms),
        }
    }
}

/// A notice on one line for people, beside an id that is said elsewhere.
pub(super) fn notice_text(notice: &Notice) -> String {
    let at = instant(notice.expires_at_ms);
    match notice.kind {
        Kind::Reminder(lead) => format!("reminder {lead} before {at}"),
        Kind::Cleanup(reason) => format!("cleanup ({}) of {at}", reason.as_str()),
    }
}

/// A recorded failure in JSON.
#[derive(Debug, Serialize)]
pub(super) struct FailureJson {
    at: String,
    attempt: u32,
    stage: String,
    class: &'static str,
    summary: String,
    next_attempt_at: Option<String>,
}

impl From<&FailureRecord> for FailureJson {
    fn from(failure: &FailureRecord) -> Self {
        Self {
            at: instant(failure.at_ms),
            attempt: failure.attempt,
            stage: failure.stage.clone(),
            class: failure.class.as_str(),
            summary: failure.summary.clone(),
            next_attempt_at: failure.next_attempt_at_ms.map(instant),
        }
    }
}

/// A recorded failure on one line for people.
pub(super) fn failure_text(failure: &FailureRecord, now_ms: i64) -> String {
    let next = match failure.next_attempt_at_ms {
        Some(ms) if ms > now_ms => format!("; next attempt {}", instant_and_distance(ms, now_ms)),
        // Whether it has been made since is for the other lines to tell.
        Some(ms) => format!("; the next attempt was allowed from {} on", instant(ms)),
        None => String::new(),
    };
    format!(
        "{} attempt {} failed at {} ({}): {}{next}",
        instant(failure.at_ms),
        failure.attempt,
        printable(&failure.stage),
        failure.class,
        printable(&failure.summary),
    )
}

#[cfg(test)]
mod tests {
    use forewarn::Class;

    use super::*;

    #[test]
    fn an_attempt_of_the_past_is_not_announced() {
        let failure = |next_attempt_at_ms| FailureRecord {
            at_ms: 1_000,
            attempt: 2,
            stage: "deliver".to_owned(),
            class: Class::Timeout,
            summary: "no\nanswer".to_owned(),
            next_attempt_at_ms,
        };
        let begin = "1970-01-01T00:00:01.000Z attempt 2 failed at deliver (timeout): no\\nanswer";
        assert_eq!(failure_text(&failure(None), 5_000), begin);
        let next = "; next attempt 1970-01-01T00:00:06.000Z (in 1s)";
        assert_eq!(failure_text(&failure(Some(6_000)), 5_000), format!("{begin}{next}"));
        let past = "; the next attempt was allowed from 1970-01-01T00:00:04.000Z on";
        assert_eq!(failure_text(&failure(Some(4_000)), 5_000), format!("{begin}{past}"));
    }
}
