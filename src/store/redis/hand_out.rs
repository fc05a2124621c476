//! Reads what a claim has handed out: from its reply, or from what it tells observers.

use redis::Value;

use crate::model::{Kind, Notice};
use crate::store::notation::{split_token, whole, write_token};
use crate::store::{Claim, StoreError, Token};

use super::codec::Reader;

/// Reads `again`, `first` and `payloads` of a claim; `fence` is that of what it handed out first.
pub(super) fn read_hand_outs(
    reader: Reader<'_>,
    grace_ms: i64,
    fence: i64,
    [again, first, payloads]: [Value; 3],
) -> Result<Vec<Claim>, StoreError> {
    let mut claims = Vec::new();
    let mut again = reader.list(again)?.into_iter();
    while let Some(token) = again.next() {
        let token = Token::from_bytes(reader.some_bytes(token)?);
        let ready_at = reader.text(again.next().unwrap_or_default())?;
        let failures = reader.failures(&reader.some_bytes(again.next().unwrap_or_default())?)?;
        let notice = reader.notice(split_token(&token).ok_or_else(|| reader.odd("no token"))?.1)?;
        let usual = usual_due_at(&notice, grace_ms);
        // A delivery that was ready at another instant than its usual one was put there by a set or an early end.
        let recorded = failures.due_at_ms.as_deref().and_then(whole);
        let due_at_ms = whole(&ready_at).or(recorded).unwrap_or(usual);
        let on_set = match notice.kind {
            Kind::Reminder(_) if ready_at.is_empty() => failures.on_set,
            Kind::Reminder(_) => due_at_ms != usual,
            Kind::Cleanup(_) => false,
        };
        let attempt = 1 + failures.failures + failures.lapses;
        claims.push(Claim { token, notice, attempt, failures: failures.failures, due_at_ms, on_set, payload: None });
    }
    for stored in reader.list(first)? {
        let stored = reader.some_bytes(stored)?;
        let notice = reader.notice(&stored)?;
        let due_at_ms = usual_due_at(&notice, grace_ms);
        claims.push(Claim {
            token: write_token(fence, &stored),
            notice,
            attempt: 1,
            failures: 0,
            due_at_ms,
            on_set: false,
            payload: None,
        });
    }
    for (claim, payload) in claims.iter_mut().zip(reader.list(payloads)?) {
        claim.payload = reader.bytes(payload)?;
    }
    Ok(claims)
}

/// When a notice is due that no set and no early end has brought about.
pub(super) fn usual_due_at(notice: &Notice, grace_ms: i64) -> i64 {
    match notice.kind {
        Kind::Reminder(lead) => notice.expires_at_ms.saturating_sub(lead.as_millis()),
        Kind::Cleanup(_) => notice.expires_at_ms.saturating_add(grace_ms),
    }
}
