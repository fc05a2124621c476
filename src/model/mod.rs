//! Pure data and rules: what a deadline, a lead time, a notice and a namespace's settings are.
//!
//! Nothing here awaits, reads a clock or knows a store. Input from outside is checked once, when one of
//! these types is made; what holds such a value need not check it again.

mod backoff;
mod cursor;
mod deadline;
mod event;
mod expiry;
mod failure;
mod handle;
mod id;
mod id_mask;
mod invalid;
mod lead_time;
mod name;
mod notice;
mod pattern;
mod pause;
mod payload;
mod route;
mod settings;
mod span;

pub use backoff::Backoff;
pub use cursor::Cursor;
pub use deadline::{Mode, Renew, Track};
pub use event::{Event, HandOut};
pub use expiry::{ExpiresAt, format_instant, to_datetime};
pub use failure::{Class, Failure, FailureRecord};
pub use handle::{Handle, IdKey};
pub use id::Id;
pub use id_mask::{IdMask, ShownId};
pub use invalid::Invalid;
pub use lead_time::LeadTime;
pub use name::Name;
pub use notice::{EventId, Kind, Notice, Reason};
pub use pattern::KeyPattern;
pub(crate) use pattern::Piece;
pub use pause::{CatchingUp, Pause, Paused};
pub use payload::PayloadJson;
pub use route::Route;
pub use settings::{FirstStart, Late, OnGone, OnRearm, Settings};
pub use span::{format_span, parse_span, span_ms};
