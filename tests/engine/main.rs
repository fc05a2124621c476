//! The worker of one route on a real server: what it hands out, settles, keeps, gives back and lives through.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod alive;
mod book;
#[cfg(feature = "cli")]
mod chance;
#[cfg(feature = "cli")]
mod crash;
#[cfg(feature = "cli")]
mod crew;
#[cfg(feature = "cli")]
mod diary;
mod drill;
mod faulty_store;
#[cfg(feature = "cli")]
mod frozen;
mod gap;
mod lease;
mod outage;
mod outcome;
mod proxy;
mod stage;
mod start;
mod stop;
mod wake;
