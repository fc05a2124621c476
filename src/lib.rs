//! forewarn warns before something expires and cleans up after it has.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")
)]

pub mod model;
