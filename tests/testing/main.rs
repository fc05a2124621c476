//! The store for tests of one's own handlers: what `advance` does, what it waits for, and what it says when it cannot.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod advance;
mod file;
mod life;
mod stage;
mod stuck;
