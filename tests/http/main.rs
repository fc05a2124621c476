//! The HTTP API inside this process, on a store in a file: what needs no process of its own.

#[path = "../harness/mod.rs"]
mod harness;

mod notices;
mod stage;
