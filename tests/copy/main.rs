//! Copies between stores: what is in the target afterwards behaves as it would have in the source.
//!
//! Redis and the embedded store, each under a clock of its own that stands still until a test turns it.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

#[allow(dead_code, reason = "the tests of the engine use the rest")]
#[path = "../engine/faulty_store.rs"]
mod faulty_store;

#[cfg(feature = "cli")]
#[allow(dead_code, reason = "the tests of the command line use the rest")]
#[path = "../cli/process.rs"]
mod process;

#[cfg(feature = "cli")]
mod command;
mod cut;
mod life;
mod raw;
mod refusal;
mod same;
mod stage;
