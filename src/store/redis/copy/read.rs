//! Reads what plain commands answer: members with their scores, the parts of members, what a score says of a delivery.

use redis::Value;

use crate::model::{Id, Kind, LeadTime, Name, Notice};
use crate::store::copy::Failed;
use crate::store::{StoreError, notation::whole};

use super::super::{
    codec::{Reader, StoredFailures},
    hand_out::usual_due_at,
};

/// A member of a ZSET with its score.
#[derive(Debug)]
pub(super) struct Scored {
    pub(super) member: Vec<u8>,
    pub(super) score: f64,
    /// The score as the server wrote it.
    pub(super) text: String,
}

/// The answer to a range with scores: one list, or under RESP3 a list of pairs.
pub(super) fn scored(reader: Reader<'_>, reply: Value) -> Result<Vec<Scored>, StoreError> {
    let mut flat = Vec::new();
    for value in reader.list(reply)? {
        match value {
            Value::Array(pair) => flat.extend(pair),
            value => flat.push(value),
        }
    }
    let mut values = flat.into_iter();
    let mut entries = Vec::with_capacity(values.len() / 2);
    while let Some(member) = values.next() {
        let (text, score) =
            number(reader, values.next().unwrap_or_default())?.ok_or_else(|| reader.odd("a member without a score"))?;
        entries.push(Scored { member: reader.some_bytes(member)?, score, text });
    }
    Ok(entries)
}

/// The answer to ZMSCORE.
pub(super) fn scores(reader: Reader<'_>, reply: Value) -> Result<Vec<Option<f64>>, StoreError> {
    let read = |value| Ok(number(reader, value)?.map(|(_, score)| score));
    reader.list(reply)?.into_iter().map(read).collect()
}

fn number(reader: Reader<'_>, value: Value) -> Result<Option<(String, f64)>, StoreError> {
    let text = match value {
        Value::Nil => return Ok(None),
        Value::Double(score) => score.to_string(),
        value => reader.text(value)?,
    };
    let score = text.parse().map_err(|_| reader.odd(format!("a score that is no number: \"{text}\"")))?;
    Ok(Some((text, score)))
}

/// A score in whole milliseconds; the fraction is cut.
pub(super) fn whole_ms(score: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates, and beyond 2^53 no instant is meant")]
    let ms = score.floor() as i64;
    ms
}

/// When a delivery may be handed out, and how often it was; who holds it does not matter here.
pub(super) fn time_and_hand_outs(score: f64) -> (i64, u8) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the fraction of a score is below 1024/1024"
    )]
    let fence = (score.rem_euclid(1.0) * 1024.0) as u32;
    (whole_ms(score), u8::try_from(fence / 64).unwrap_or(15))
}

/// When a notice was due, and whether a set caused it. `ready_at`: when it became ready, if it was never handed out.
pub(super) fn due(notice: &Notice, grace_ms: i64, ready_at: Option<i64>, stored: &StoredFailures) -> (i64, bool) {
    let usual = usual_due_at(notice, grace_ms);
    let recorded = stored.due_at_ms.as_deref().and_then(whole);
    let due_at_ms = ready_at.or(recorded).unwrap_or(usual);
    let is_reminder = matches!(notice.kind, Kind::Reminder(_));
    let on_set = is_reminder && if ready_at.is_some() { due_at_ms != usual } else { stored.on_set };
    (due_at_ms, on_set)
}

pub(super) fn failed(stored: StoredFailures) -> Failed {
    let StoredFailures { failures, lapses, last, .. } = stored;
    Failed { failures, lapses, last }
}

/// `<lead>:<id>`.
pub(super) fn split_lead(member: &[u8]) -> Option<(LeadTime, Id)> {
    let (lead, id) = split(member)?;
    Some((LeadTime::from_millis(lead.parse().ok()?).ok()?, Id::new(id).ok()?))
}

/// `<route>:<notice>`.
pub(super) fn split_route(member: &[u8]) -> Option<(Name, &[u8])> {
    let (route, notice) = split(member)?;
    Some((Name::new("route", route).ok()?, notice))
}

fn split(member: &[u8]) -> Option<(&str, &[u8])> {
    let colon = member.iter().position(|byte| *byte == b':')?;
    Some((std::str::from_utf8(&member[..colon]).ok()?, &member[colon + 1..]))
}
