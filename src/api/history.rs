//! The history: notices that have ended, and leads that passed while nobody claimed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::text::WrittenId;
use crate::api::view::{NoticeForm, read_instant};
use crate::model::{Id, IdMask, Invalid, LeadTime, Name, format_instant};
use crate::store::{Ending, HistoryEntry};

/// One thing that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryForm {
    /// When (RFC 3339).
    pub at: String,
    /// How it ended; `passed_over`: nobody claimed while this lead passed.
    pub ending: String,
    /// Where it was delivered or would have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The id, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id in base64 (RFC 4648, section 5), if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_base64: Option<String>,
    /// In place of the id, if ids of the namespace are sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<NoticeForm>,
    /// For `passed_over`: which lead, of how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<PassedForm>,
}

/// A lead that passed while nobody claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PassedForm {
    /// The lead, in milliseconds.
    pub lead_ms: i64,
    /// It was passed for deadlines that expire after this (RFC 3339; `null`: all) …
    pub expires_after: Option<String>,
    /// … and up to this.
    pub expires_upto: String,
    /// For how many of them.
    pub ids: u64,
}

/// What is remembered, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryPage {
    /// The entries.
    pub entries: Vec<HistoryForm>,
}

impl HistoryForm {
    /// The form of an entry, its id shown as `mask` says.
    pub fn new(entry: &HistoryEntry, mask: &IdMask) -> Self {
        let at = format_instant(entry.at_ms());
        let bare = |ending: &str| Self {
            at: at.clone(),
            ending: ending.to_owned(),
            route: None,
            id: None,
            id_base64: None,
            handle: None,
            notice: None,
            passed: None,
        };
        match entry {
            HistoryEntry::Ended { route, notice, ending, .. } => {
                let WrittenId { id, id_base64, handle } = WrittenId::new(&mask.show(&notice.id));
                let (route, notice) = (route.as_ref().map(ToString::to_string), Some(NoticeForm::from(notice)));
                Self { route, id, id_base64, handle, notice, ..bare(ending.as_str()) }
            }
            HistoryEntry::PassedOver { lead, after_ms, upto_ms, count, .. } => {
                let passed = PassedForm {
                    lead_ms: lead.as_millis(),
                    expires_after: after_ms.map(format_instant),
                    expires_upto: format_instant(*upto_ms),
                    ids: *count,
                };
                Self { passed: Some(passed), ..bare("passed_over") }
            }
        }
    }
}

impl HistoryForm {
    /// The entry, about this id if it is about one.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub fn read(self, namespace: &Name, id: Option<Id>) -> Result<HistoryEntry, Invalid> {
        let at_ms = read_instant(&self.at)?;
        if let Some(passed) = self.passed {
            return Ok(HistoryEntry::PassedOver {
                at_ms,
                lead: LeadTime::from_millis(passed.lead_ms)?,
                after_ms: passed.expires_after.as_deref().map(read_instant).transpose()?,
                upto_ms: read_instant(&passed.expires_upto)?,
                count: passed.ids,
            });
        }
        let notice = self.notice.ok_or_else(|| Invalid::new("notice", "is missing"))?;
        Ok(HistoryEntry::Ended {
            at_ms,
            route: self.route.map(|route| Name::new("route", route)).transpose()?,
            notice: notice.read(namespace, id.ok_or_else(|| Invalid::new("id", "is missing"))?)?,
            ending: Ending::from_word(&self.ending).ok_or_else(|| Invalid::new("ending", "is unknown"))?,
        })
    }
}
