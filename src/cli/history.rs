//! What `show` tells of notices that have ended, in JSON and for people.

use forewarn::{
    Id, LeadTime, Namespace, StoreError,
    model::Kind,
    store::{Ending, HistoryEntry, HistoryQuery},
};
use serde::Serialize;

use super::{
    notice::{NoticeJson, notice_text},
    output::{instant, instant_and_distance},
};

/// What is remembered of one id, the oldest first.
#[derive(Default)]
pub(super) struct History(Vec<HistoryEntry>);

impl History {
    /// Entries shown.
    const LIMIT: u32 = 100;

    /// Reads it. Of leads that were passed over only those that its expiries had are kept: `armed_until_ms`, and those
    /// of its ended notices.
    pub(super) async fn read(namespace: &Namespace, id: &Id, armed_until_ms: Option<i64>) -> Result<Self, StoreError> {
        let query = HistoryQuery { id: Some(id.clone()), limit: Self::LIMIT };
        let mut entries = namespace.history(&query).await?;
        entries.reverse();
        let ended = entries.iter().filter_map(|entry| match entry {
            HistoryEntry::Ended { notice, .. } => Some(notice.expires_at_ms),
            _ => None,
        });
        let expiries: Vec<i64> = ended.chain(armed_until_ms).collect();
        entries.retain(|entry| match entry {
            HistoryEntry::PassedOver { .. } => expiries.iter().any(|e| is_passed(entry, *e)),
            _ => true,
        });
        Ok(Self(entries))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How the reminder of this lead ended, if it has.
    pub(super) fn of_reminder(&self, lead: LeadTime, e: i64) -> Option<Ending> {
        self.0.iter().rev().find_map(|entry| match entry {
            HistoryEntry::Ended { notice, ending, .. } => {
                (notice.kind == Kind::Reminder(lead) && notice.expires_at_ms == e).then_some(*ending)
            }
            HistoryEntry::PassedOver { lead: passed, .. } => {
                (*passed == lead && is_passed(entry, e)).then_some(Ending::Coalesced)
            }
            _ => None,
        })
    }

    pub(super) fn json(&self) -> Vec<HistoryJson> {
        self.0.iter().map(HistoryJson::from).collect()
    }

    /// One line for each.
    pub(super) fn texts(&self, now_ms: i64) -> Vec<String> {
        let text = |entry: &HistoryEntry| {
            let at = instant_and_distance(entry.at_ms(), now_ms);
            match entry {
                HistoryEntry::Ended { route, notice, ending, .. } => {
                    let notice = notice_text(notice);
                    let route = route.as_ref().map(|route| format!(" on route {route}")).unwrap_or_default();
                    format!("{notice}{route}: {} {at}", ending_text(*ending))
                }
                HistoryEntry::PassedOver { lead, count, .. } => {
                    let ids = if *count == 1 { "1 id".to_owned() } else { format!("{count} ids") };
                    format!(
                        "reminders {lead} before of {ids}, maybe this one: passed while nobody claimed, noticed {at}"
                    )
                }
                _ => format!("something this version does not know {at}"),
            }
        };
        self.0.iter().map(text).collect()
    }
}

fn is_passed(entry: &HistoryEntry, e: i64) -> bool {
    match entry {
        HistoryEntry::PassedOver { after_ms, upto_ms, .. } => after_ms.is_none_or(|after| e > after) && e <= *upto_ms,
        _ => false,
    }
}

/// An ending in words that say what happened.
pub(super) fn ending_text(ending: Ending) -> &'static str {
    match ending {
        Ending::Delivered => "delivered",
        Ending::Dead => "given up",
        Ending::Review => "parked for a person",
        Ending::Superseded => "void by a renewal, a removal or a new life",
        Ending::Expired => "too late, its deadline came first",
        Ending::Coalesced => "coalesced, a tighter lead speaks in its place",
        Ending::Lead => "void, its lead time was taken away",
        Ending::Skipped => "silent, the deadline was set inside the lead",
        _ => "ended in a way this version does not know",
    }
}

/// One entry.
#[derive(Debug, Serialize)]
pub(super) struct HistoryJson {
    at: String,
    ending: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    #[serde(flatten)]
    notice: Option<NoticeJson>,
    #[serde(flatten)]
    passed: Option<PassedJson>,
}

#[derive(Debug, Serialize)]
struct PassedJson {
    lead_ms: i64,
    expires_after: Option<String>,
    expires_upto: String,
    ids: u64,
}

impl From<&HistoryEntry> for HistoryJson {
    fn from(entry: &HistoryEntry) -> Self {
        let at = instant(entry.at_ms());
        match entry {
            HistoryEntry::Ended { route, notice, ending, .. } => Self {
                at,
                ending: ending.as_str(),
                route: route.as_ref().map(ToString::to_string),
                notice: Some(NoticeJson::from(notice)),
                passed: None,
            },
            HistoryEntry::PassedOver { lead, after_ms, upto_ms, count, .. } => {
                let passed = PassedJson {
                    lead_ms: lead.as_millis(),
                    expires_after: after_ms.map(instant),
                    expires_upto: instant(*upto_ms),
                    ids: *count,
                };
                Self { at, ending: "passed_over", route: None, notice: None, passed: Some(passed) }
            }
            _ => Self { at, ending: "unknown", route: None, notice: None, passed: None },
        }
    }
}
