//! forewarn warns before something expires and cleans up after it has.
//!
//! You tell it until when a thing is alive: that is a [*deadline*](model::ExpiresAt), an id in a [`Namespace`]. You move it
//! while the thing is used, and remove it when the thing ends in good order. Before a deadline expires your program gets a
//! *reminder*, at each of the namespace's [lead times](LeadTime); after it has, a *cleanup*. Both are notices, handed to the
//! handlers of a [`Worker`] at least once, in any process that works on the same store.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use forewarn::{Delivery, Forewarn, Settings, Worker};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let forewarn = Forewarn::connect("sqlite:forewarn.db").await?; // or "redis://127.0.0.1/"
//! let sessions = forewarn.namespace("session");
//! sessions.apply(Settings::default().remind("10m".parse()?).remind("1m".parse()?)).await?;
//!
//! let half_an_hour = Duration::from_secs(30 * 60);
//! sessions.track_in("user_session:wang2024", half_an_hour).await?; // logged in
//! sessions.renew_in("user_session:wang2024", half_an_hour).await?; // active
//! sessions.remove("user_session:wang2024").await?; // logged out: nothing more is said
//!
//! // Elsewhere, for as long as it runs: what to do about those that do not log out.
//! Worker::builder(&sessions)
//!     .on_reminder(|notice: Delivery| async move { println!("{} is about to expire", notice.id()) })
//!     .on_cleanup(|notice: Delivery| async move { println!("{} has expired", notice.id()) })
//!     .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! # Where to look
//!
//! - [`Forewarn`] opens a store by its URL; [`Namespace`] has settings, deadlines, what is parked, and counts.
//! - [`Settings`] say when to remind, how long to wait before the cleanup, and what is done about late ones.
//! - [`Worker`] runs handlers; a handler gets a [`Delivery`] and answers with an [`Outcome`]. A [`Failure`] has a
//!   [`Class`], a [`Backoff`] says when it is tried again.
//! - [`model`] holds the words and rules, [`store`] the port to where deadlines rest and its adapters, [`engine`] the running
//!   parts.
//! - [`testing`] is for tests of your own handlers: a store without a server, and a clock that the test turns.
//!
//! What exactly is promised is in `docs/semantics.md` of the repository; what an event holds, in `docs/events.md`.
//!
//! # Features
//!
//! - `cli` (default): the command line. A program that only uses the library leaves it out with
//!   `default-features = false`.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")
)]

#[cfg(feature = "daemon")]
pub mod api;
pub mod clock;
#[cfg(feature = "daemon")]
pub mod config;
#[cfg(feature = "daemon")]
pub mod daemon;
pub mod engine;
mod forewarn;
#[cfg(feature = "daemon")]
pub mod http;
pub mod model;
pub mod store;
pub mod testing;

pub use crate::engine::{Delivery, Happening, Outcome, StopReport, Worker, WorkerError};
pub use crate::forewarn::{Forewarn, Namespace, RenewCall, TrackCall};
pub use crate::model::{
    Backoff, Class, ExpiresAt, Failure, Id, Invalid, Kind, LeadTime, Mode, Name, Reason, Route, Settings,
};
pub use crate::store::StoreError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
