//! The command line as a user runs it: the binary, a real store, exit status, stdout and stderr.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod deadlines;
mod demo;
mod documents;
mod embedded;
mod exec;
mod file;
mod help;
mod input;
mod namespaces;
mod process;
mod secrets;
mod sensitive;
mod server;
mod shelves;
mod tail;
mod tls;
mod work;
