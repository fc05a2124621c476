//! The configuration: what layers make of each other, what is refused and how, what is shown, what reaches the store.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod apply;
mod change;
mod command;
mod deploy;
mod document;
mod layer;
mod mistake;
mod stage;
