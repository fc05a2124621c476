//! The HTTP API of the daemon: deadlines, namespaces, claims, what is parked, and how the daemon is.
//!
//! Handlers turn requests into calls of the library and its answers into the forms of [`api`](crate::api); the OpenAPI
//! document is made from them.

mod app;
mod auth;
mod claims;
mod deadlines;
mod error;
mod extract;
mod feeds;
mod health;
mod load;
mod metrics;
mod namespaces;
mod notices;
mod parked;
mod pass;
mod problems;
mod router;
mod stored;

pub use app::App;
pub use auth::Keyring;
pub use health::Health;
pub use router::{openapi, router};
