//! What people look at: one deadline with all that hangs on it, lists, and how much there is of what.

use serde::{Deserialize, Serialize};

use crate::model::{CatchingUp, FailureRecord, Id, Name, Notice, Paused};
use crate::store::Dropped;

/// One armed deadline in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The id.
    pub id: Id,
    /// When it expires, in ms.
    pub expires_at_ms: i64,
}

/// Everything known of one id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlineView {
    /// The id.
    pub id: Id,
    /// When it expires, if it is armed.
    pub expires_at_ms: Option<i64>,
    /// Its payload, or that of its open cleanup.
    pub payload: Option<Vec<u8>>,
    /// Its unsettled cleanup, if one is open.
    pub open: Option<Notice>,
    /// The score with which it was quarantined, as text.
    pub quarantined: Option<String>,
    /// Its period, if it recurs: milliseconds, or `cron:` and an expression.
    pub every: Option<String>,
    /// Its deliveries in flight or waiting.
    pub deliveries: Vec<DeliveryView>,
}

/// One delivery in flight or waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    /// The route.
    pub route: Name,
    /// The notice.
    pub notice: Notice,
    /// Ready, waiting or leased.
    pub state: DeliveryState,
    /// When the lease ends or when it may be handed out, in ms.
    pub at_ms: i64,
    /// How often it was handed out (it stays at 15 once there).
    pub hand_outs: u8,
    /// What was recorded of its failures, newest last.
    pub failures: Vec<FailureRecord>,
}

/// The states of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Never handed out.
    Ready,
    /// Handed out before and due later.
    Waiting,
    /// Under a lease.
    Leased,
}

/// How much of what there is in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
pub struct Stats {
    /// The namespace.
    pub namespace: Name,
    /// Armed deadlines.
    pub armed: u64,
    /// Armed deadlines whose expiry and grace have passed and which no worker has swept yet.
    pub overdue: u64,
    /// Unsettled cleanups.
    pub open: u64,
    /// Dead letters.
    pub dead: u64,
    /// Reviews.
    pub review: u64,
    /// Quarantined ids.
    pub quarantined: u64,
    /// What is paused for the whole namespace.
    pub paused: Paused,
    /// What is swept no faster than a resume of the namespace allows.
    pub catching_up: CatchingUp,
    /// Each route.
    pub routes: Vec<RouteStats>,
    /// Running totals.
    pub counters: Counters,
}

/// How much of what there is on one route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
pub struct RouteStats {
    /// The route.
    pub route: Name,
    /// Deliveries in flight or waiting.
    pub pending: u64,
    /// Those that may be handed out now.
    pub due: u64,
    /// How long the oldest of those has been due, in ms.
    pub oldest_due_ms: Option<i64>,
    /// What is paused on this route.
    pub paused: Paused,
    /// What this route's queue hands out no faster than a resume of the route allows.
    pub catching_up: CatchingUp,
}

/// Running totals since the namespace was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
pub struct Counters {
    /// Hand-outs, first and repeated.
    pub handed_out: u64,
    /// Claims settled as done.
    pub acked: u64,
    /// Failures recorded.
    pub failed: u64,
    /// Hand-outs whose worker vanished.
    pub lapsed: u64,
    /// Notices parked as dead letters.
    pub dead: u64,
    /// Notices parked for a person.
    pub review: u64,
    /// Deliveries dropped, by reason.
    pub dropped: Dropped,
    /// Reminders that stay silent because their deadline was set inside their lead.
    pub skipped: u64,
    /// Ids moved to quarantine.
    pub quarantined: u64,
    /// Key-backed: expiries corrected because the key had another one.
    pub resynced: u64,
    /// Key-backed: ids disarmed because their key has no TTL any more.
    pub persisted: u64,
    /// Key-backed: ids whose key vanished before its time.
    pub gone: u64,
}

impl Counters {
    /// Adds to the total of this name; what a newer version counts is left out.
    pub(crate) fn add(&mut self, name: &str, value: u64) {
        let Counters {
            handed_out,
            acked,
            failed,
            lapsed,
            dead,
            review,
            dropped,
            skipped,
            quarantined,
            resynced,
            persisted,
            gone,
        } = self;
        let Dropped { superseded, expired, coalesced, lead } = dropped;
        let counter = match name {
            "handed_out" => handed_out,
            "acked" => acked,
            "failed" => failed,
            "lapsed" => lapsed,
            "dead" => dead,
            "review" => review,
            "superseded" => superseded,
            "expired" => expired,
            "coalesced" => coalesced,
            "lead" => lead,
            "skipped" => skipped,
            "quarantined" => quarantined,
            "resynced" => resynced,
            "persisted" => persisted,
            "gone" => gone,
            _ => return,
        };
        *counter += value;
    }
}
