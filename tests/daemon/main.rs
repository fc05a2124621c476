//! The daemon as its clients meet it: real processes, real HTTP, real stores.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod document;
mod guide;
mod hostile;
mod ids;
mod life;
mod metrics;
mod outage;
mod pair;
mod raw;
mod refusal;
mod reload;
mod secret;
mod stage;
mod token;
