//! forewarn warns before something expires and cleans up after it has.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")
)]

pub mod clock;
pub mod engine;
mod forewarn;
pub mod model;
pub mod store;

pub use crate::engine::{Delivery, Happening, Outcome, StopReport, Worker, WorkerError};
pub use crate::forewarn::{Forewarn, Namespace, RenewCall, TrackCall};
pub use crate::model::{
    Backoff, Class, ExpiresAt, Failure, Id, Invalid, Kind, LeadTime, Mode, Name, Reason, Route, Settings,
};
pub use crate::store::StoreError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
