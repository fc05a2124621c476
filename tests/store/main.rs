//! The port `Store` against its contract: a reference model under random histories, and readable examples of each clause.
//!
//! Runs on every store at hand: servers, and a file. Time is virtual except where a test is about the server itself.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod catch_up;
mod cleanup;
mod crowd;
mod deadline;
mod feed;
mod fence;
mod ground;
mod handle;
mod histories;
mod history;
mod ledger;
mod model;
mod only_server;
mod operation;
mod pause;
mod regression;
mod reminder;
mod route;
mod scene;
mod settings;
mod settle;
mod shelf;
mod snapshot;
mod value;
mod view;
mod wake;
mod words;
mod world;
