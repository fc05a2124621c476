//! What a handler gets: the notice, what is known of this hand-out, and word when the right to it is lost.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::model::{Event, EventId, HandOut, Id, Kind, Name, Notice, to_datetime};
use crate::store::Claim;

/// One notice as it is handed to a handler. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Delivery {
    claim: Arc<Claim>,
    sent_at_ms: i64,
    cancelled: CancellationToken,
}

impl Delivery {
    pub(crate) fn new(claim: Arc<Claim>, sent_at_ms: i64, cancelled: CancellationToken) -> Self {
        Self { claim, sent_at_ms, cancelled }
    }

    /// The notice.
    pub fn notice(&self) -> &Notice {
        &self.claim.notice
    }

    /// The id of the deadline.
    pub fn id(&self) -> &Id {
        &self.claim.notice.id
    }

    /// The namespace.
    pub fn namespace(&self) -> &Name {
        &self.claim.notice.namespace
    }

    /// Which reminder it is, or why the cleanup.
    pub fn kind(&self) -> Kind {
        self.claim.notice.kind
    }

    /// The stable id of the notice, the same at every attempt: a key for what must happen only once.
    pub fn event_id(&self) -> EventId {
        self.claim.notice.event_id()
    }

    /// When the deadline expires, or expired.
    pub fn expires_at(&self) -> DateTime<Utc> {
        to_datetime(self.claim.notice.expires_at_ms)
    }

    /// The number of this attempt; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.claim.attempt
    }

    /// The payload of the deadline, if it has one.
    pub fn payload(&self) -> Option<&[u8]> {
        self.claim.payload.as_deref()
    }

    /// The payload read as JSON. A deadline without payload reads as `null`, so take an `Option` where that is usual.
    ///
    /// # Errors
    /// If the payload is not JSON, or not of that type.
    pub fn payload_json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(self.payload().unwrap_or(b"null"))
    }

    /// The notice as a CloudEvent. `sent_at` is when it was handed over, by an estimate of the store's clock.
    pub fn event(&self) -> Event {
        let Claim { notice, attempt, due_at_ms, on_set, payload, .. } = &*self.claim;
        Event::new(
            notice,
            HandOut {
                attempt: *attempt,
                due_at_ms: *due_at_ms,
                sent_at_ms: self.sent_at_ms,
                on_set: *on_set,
                payload: payload.as_deref(),
            },
        )
    }

    /// Waits until the handler should give up: the lease is lost, or the worker stops and its time is over.
    ///
    /// After a lost lease the outcome counts for nothing; somebody else may be handling the notice. After a stop a
    /// finished outcome still counts, and a failure is given back without burning an attempt.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Whether the handler should give up.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::Reason;
    use crate::store::Token;

    /// A claim of a cleanup, with `payload`.
    pub(crate) fn claim(id: &str, payload: Option<&[u8]>) -> Claim {
        Claim {
            token: Token::from_bytes(id),
            notice: Notice {
                namespace: Name::new("namespace", "session").unwrap(),
                kind: Kind::Cleanup(Reason::Expired),
                expires_at_ms: 1_796_083_200_000,
                id: Id::new(id).unwrap(),
            },
            attempt: 2,
            failures: 1,
            due_at_ms: 1_796_083_200_000,
            on_set: false,
            payload: payload.map(<[u8]>::to_vec),
        }
    }

    fn delivery(payload: Option<&[u8]>) -> Delivery {
        Delivery::new(Arc::new(claim("a", payload)), 1_796_083_200_007, CancellationToken::new())
    }

    #[test]
    fn a_payload_is_read_as_json_and_none_as_null() {
        assert_eq!(delivery(Some(b"[1,2]")).payload_json::<Vec<u8>>().unwrap(), [1, 2]);
        assert_eq!(delivery(None).payload_json::<Option<u8>>().unwrap(), None);
        assert!(delivery(Some(b"\xFF")).payload_json::<u8>().is_err());
    }

    #[test]
    fn the_event_tells_the_attempt_and_how_late_it_is() {
        let event = serde_json::to_value(delivery(None).event()).unwrap();
        assert_eq!((event["data"]["attempt"].as_u64(), event["data"]["lateness_ms"].as_i64()), (Some(2), Some(7)));
    }
}
