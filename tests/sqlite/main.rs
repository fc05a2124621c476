//! What only the embedded store has: a file that is right, wrong, older, newer, full or read-only; several processes on
//! it; and processes that are killed at any instant.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod crash;
mod feed;
mod file;
mod key_backed;
mod neighbour;
mod older;
mod process;
mod room;
mod span;
mod stage;
mod wake;
