//! The HTTP API inside this process, on a store in a file: what needs no process of its own.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod notices;
mod stage;
