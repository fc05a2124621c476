//! Claims: taken by workers in any language, and settled by their tokens.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::object;
use crate::api::text::{Span, write_id, write_payload};
use crate::api::view::NoticeForm;
use crate::model::{Class, Invalid, Name, format_instant};
use crate::store::{Checked, Claim, DropReason, Dropped, Settled, Token};

/// What to claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(example = json!({"limit": 10, "wait": "1s"}))]
pub struct ClaimBody {
    /// For which route. Default: `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// At most this many, 1 to 500; 0 only looks. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 500)]
    pub limit: Option<u32>,
    /// How long they belong to the caller. Default: the lease of the namespace's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// How long to wait if nothing is due, at most 60 s. Default: 0, which answers at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
}

/// What was claimed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ClaimsForm {
    /// The store's clock at the claim (RFC 3339).
    pub now: String,
    /// The claims; none if nothing is due.
    pub claims: Vec<ClaimForm>,
    /// What comes next.
    pub state: NextForm,
    /// When the next thing is due (RFC 3339), if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due_at: Option<String>,
    /// When to ask again at the latest (RFC 3339): nothing that comes due later wakes the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_at: Option<String>,
    /// What was dropped on the way, by reason.
    pub dropped: Dropped,
    /// Ids moved to quarantine on the way, because their scores cannot be expiries.
    pub quarantined: u64,
    /// Notices that became dead letters on the way, because their workers vanished too often.
    pub lapsed: u64,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextForm {
    /// More is due: claim again at once.
    Backlog,
    /// Nothing is due before `next_due_at`.
    Wait,
    /// Everything this route could get is paused.
    Paused,
}

/// One claimed notice.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ClaimForm {
    /// The right to settle it, and only this claim of it.
    pub token: String,
    /// The id of the deadline, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id in base64 (RFC 4648, section 5), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_base64: Option<String>,
    /// The notice.
    pub notice: NoticeForm,
    /// When it was due (RFC 3339).
    pub due_at: String,
    /// When the claim ends, unless it is extended (RFC 3339).
    pub lease_until: String,
    /// The number of this attempt: 1 + recorded failures + lapses.
    pub attempt: u32,
    /// The failures recorded so far.
    pub failures: u32,
    /// Whether a set inside its lead caused it.
    pub on_set: bool,
    /// The payload of the deadline, if it is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// The payload in base64, if it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

impl ClaimForm {
    /// The form of a claim for `route` whose lease ends at `lease_until_ms`.
    pub fn new(claim: &Claim, route: &Name, lease_until_ms: i64) -> Self {
        let (id, id_base64) = write_id(&claim.notice.id);
        let (payload, payload_base64) = write_payload(claim.payload.as_deref());
        Self {
            token: Ticket::of(claim, route).to_string(),
            id,
            id_base64,
            notice: NoticeForm::from(&claim.notice),
            due_at: format_instant(claim.due_at_ms),
            lease_until: format_instant(lease_until_ms),
            attempt: claim.attempt,
            failures: claim.failures,
            on_set: claim.on_set,
            payload,
            payload_base64,
        }
    }
}

/// What a token of the API holds: the store's own token, and what settling needs besides, so that callers hand back one
/// text and no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The route it was claimed for.
    pub route: Name,
    /// The store's token.
    pub token: Token,
    /// When it was due, in ms.
    pub due_at_ms: i64,
    /// Whether a set inside its lead caused it.
    pub on_set: bool,
    /// The failures recorded before.
    pub failures: u32,
    /// Whether it is a reminder: its retries follow another policy.
    pub is_reminder: bool,
}

impl Ticket {
    /// The ticket of a claim for `route`.
    pub fn of(claim: &Claim, route: &Name) -> Self {
        Self {
            route: route.clone(),
            token: claim.token.clone(),
            due_at_ms: claim.due_at_ms,
            on_set: claim.on_set,
            failures: claim.failures,
            is_reminder: matches!(claim.notice.kind, crate::model::Kind::Reminder(_)),
        }
    }

    /// Reads a token of the API.
    ///
    /// # Errors
    /// Refuses what no claim has answered.
    pub fn read(text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("token", "is none that a claim has answered; give it back as it came");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let mut parts = bytes.splitn(6, |byte| *byte == b' ');
        let mut part = || parts.next().ok_or_else(wrong);
        let mut word = || std::str::from_utf8(part()?).map_err(|_| wrong());
        let route = Name::new("route", word()?).map_err(|_| wrong())?;
        let due_at_ms = word()?.parse().map_err(|_| wrong())?;
        let failures = word()?.parse().map_err(|_| wrong())?;
        let mut flag = || match word()? {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(wrong()),
        };
        let (on_set, is_reminder) = (flag()?, flag()?);
        let token = Token::from_bytes(part()?);
        Ok(Self { route, token, due_at_ms, on_set, failures, is_reminder })
    }
}

impl std::fmt::Display for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { route, token, due_at_ms, on_set, failures, is_reminder } = self;
        let mut bytes =
            format!("{route} {due_at_ms} {failures} {} {} ", u8::from(*on_set), u8::from(*is_reminder)).into_bytes();
        bytes.extend(token.as_bytes());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// Claims by their tokens.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokensBody {
    /// 1 to 1,000 tokens, as claims answered them.
    #[schema(min_items = 1, max_items = 1000)]
    pub tokens: Vec<String>,
}

/// Claims whose leases are to end later.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendBody {
    /// 1 to 1,000 tokens, as claims answered them.
    #[schema(min_items = 1, max_items = 1000)]
    pub tokens: Vec<String>,
    /// The lease from now on. Default: that of the namespace's settings. None ends earlier than it would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
}

/// Claims that failed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailBody {
    /// 1 to 1,000 of them.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "object::list")]
    pub claims: Vec<FailedClaim>,
}

/// One claim that failed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedClaim {
    /// The token, as the claim answered it.
    pub token: String,
    /// Retry: after this time; a reminder at the latest after a quarter of the window that is left. Default: cleanups after
    /// 30 s, 2 min, 10 min, then 30 min each time, with jitter; reminders after 1 s, doubling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Retry: whether a reminder, too, waits for exactly the given delay.
    #[serde(default)]
    pub exact: bool,
    /// Retry: the recorded failures at which it becomes a dead letter, this one included. Default: 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_failures: Option<u32>,
    /// The class of the failure. Default: `failed` for retry, `rejected` for reject, `conflict` for review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// Where it failed. Default: `deliver`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub stage: Option<String>,
    /// What happened, in a sentence; at most 1 KiB is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// What became of claims.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SettledAnswers {
    /// One for each, in their order.
    pub results: Vec<SettledAnswer>,
}

/// What became of one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettledAnswer {
    /// What became of it.
    pub result: SettledWord,
    /// For `dropped`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DropReason>,
    /// For `retry`: when the next attempt is allowed (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
}

/// What became of one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettledWord {
    /// Done as asked.
    Settled,
    /// It failed and will be handed out again.
    Retry,
    /// The claim was lost before; nothing was changed.
    Stale,
    /// The notice was void and was dropped.
    Dropped,
    /// It became a dead letter.
    Dead,
    /// It was parked for a person.
    Review,
    /// Checked: the claim holds.
    Current,
}

impl SettledAnswer {
    fn new(result: SettledWord) -> Self {
        Self { result, reason: None, next_attempt_at: None }
    }

    fn dropped(reason: DropReason) -> Self {
        Self { reason: Some(reason), ..Self::new(SettledWord::Dropped) }
    }

    /// What the store answered; `None` if this is no answer to a settlement.
    pub fn read(&self) -> Option<Settled> {
        match self.result {
            SettledWord::Settled => Some(Settled::Settled),
            SettledWord::Retry => {
                let at = crate::api::view::read_instant(self.next_attempt_at.as_deref()?).ok()?;
                Some(Settled::Retry { next_attempt_at_ms: at })
            }
            SettledWord::Stale => Some(Settled::Stale),
            SettledWord::Dropped => self.reason.map(Settled::Dropped),
            SettledWord::Dead => Some(Settled::Dead),
            SettledWord::Review => Some(Settled::Review),
            SettledWord::Current => None,
        }
    }

    /// What the store answered to a check; `None` if this is no answer to one.
    pub fn read_checked(&self) -> Option<Checked> {
        match self.result {
            SettledWord::Current => Some(Checked::Current),
            SettledWord::Stale => Some(Checked::Stale),
            SettledWord::Dropped => self.reason.map(Checked::Dropped),
            _ => None,
        }
    }
}

impl From<Settled> for SettledAnswer {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Settled => Self::new(SettledWord::Settled),
            Settled::Retry { next_attempt_at_ms } => {
                let next_attempt_at = Some(format_instant(next_attempt_at_ms));
                Self { next_attempt_at, ..Self::new(SettledWord::Retry) }
            }
            Settled::Stale => Self::new(SettledWord::Stale),
            Settled::Dropped(reason) => Self::dropped(reason),
            Settled::Dead => Self::new(SettledWord::Dead),
            Settled::Review => Self::new(SettledWord::Review),
        }
    }
}

impl From<Checked> for SettledAnswer {
    fn from(checked: Checked) -> Self {
        match checked {
            Checked::Current => Self::new(SettledWord::Current),
            Checked::Stale => Self::new(SettledWord::Stale),
            Checked::Dropped(reason) => Self::dropped(reason),
        }
    }
}
