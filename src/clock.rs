//! The only reader of wall time.
//!
//! Whether something is due is decided by the store's clock alone; this one serves what has no store at hand, such as
//! turning "in two hours" into an instant.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
