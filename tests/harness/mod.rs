//! What integration tests stand on: servers of their own, fresh names, and waiting with an end.
//!
//! Included by each test binary with `mod harness;` or `#[path = "../harness/mod.rs"] mod harness;`. Nothing here
//! knows what is being tested, and nothing skips: what is missing stops the run and says what to do.
#![allow(dead_code, reason = "each test binary uses a part")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod process;
mod rights;
mod server;
mod wait;

use std::sync::atomic::{AtomicU32, Ordering};

#[allow(unused_imports, reason = "each test binary uses a part")]
pub(crate) use process::{Beside, signal};
#[allow(unused_imports, reason = "each test binary uses a part")]
pub(crate) use rights::{PASSWORD, Rights, as_forewarn, documented_rights};
#[allow(unused_imports, reason = "each test binary uses a part")]
pub(crate) use server::{Kind, Server, free_port, servers};
#[allow(unused_imports, reason = "each test binary uses a part")]
pub(crate) use wait::{Inbox, PATIENCE, eventually, within};

/// A name that no other test of this run has: for a namespace, a route or a prefix.
pub(crate) fn namespace() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
