//! The programs in `examples/`, run as a user runs them: what one sees, and what they leave behind.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "../harness/mod.rs"]
mod harness;

mod browser;
mod job_timeouts;
mod process;
mod session;
mod session_prompts;
mod uploads;
