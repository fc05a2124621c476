//! The forms of the HTTP API: what its bodies and answers look like, shared by the daemon and its clients.
//!
//! Reads what comes from outside into the words of the model, once, with errors that name the field; knows nothing of HTTP
//! itself but the statuses of problems.

mod answer;
mod claim;
mod deadline;
mod history;
mod namespace;
mod notice;
mod object;
mod parked;
mod problem;
mod settings;
mod text;
mod view;

pub use answer::{Answer, Answers, FieldError, Word};
pub use claim::{
    ClaimBody, ClaimForm, ClaimsForm, ExtendBody, FailBody, FailedClaim, NextForm, SettledAnswer, SettledAnswers,
    SettledWord, Ticket, TokensBody,
};
pub use deadline::{
    Action, BatchBody, BatchEntry, DeadlineBody, DeadlinePage, IdForm, ListedForm, MAX_BATCH, ModeForm, read_replaces,
};
pub use history::{HistoryForm, HistoryPage, PassedForm};
pub use namespace::{AppliedForm, ApplyBody, LeadCount, NamespaceForm, NamespaceList, PauseBody, ResumeBody};
pub use notice::{NoticeData, NoticeEvent};
pub(crate) use object::Object;
pub use parked::{
    ParkedAction, ParkedAnswer, ParkedAnswers, ParkedBatch, ParkedForm, ParkedName, ParkedPageForm, ParkedWord,
};
pub use problem::{Code, Problem};
pub use settings::{SettingsForm, SpanText};
pub(crate) use text::read_payload;
pub use text::{Instant, Span, id_from_base64, read_id};
pub(crate) use view::read_instant;
pub use view::{DeadlineForm, DeliveryForm, FailureForm, KindForm, NoticeForm};
