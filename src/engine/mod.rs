//! The running parts: they know the ports, never an adapter.
//!
//! [`Worker`] works for one route of one namespace. Inside it, a dispatcher claims and starts handlers, a lease keeper
//! holds on to what takes long, a settler tells the store how things ended, a listener wakes the dispatcher early, and a
//! reconciler has the keys of key-backed ids looked at again. What happens is told to one witness, which counts it, logs it and passes it on.

mod builder;
mod delivery;
mod dispatcher;
mod error;
mod handler;
mod lease;
mod listener;
mod log;
mod outage;
mod outcome;
mod reconciler;
mod report;
mod route_store;
mod runner;
mod settle;
mod suspect;
mod tick;
mod worker;

pub use builder::{WorkerBuilder, Workplace};
pub use delivery::Delivery;
pub use error::WorkerError;
pub use outcome::Outcome;
pub use report::{Happening, Loss, StopReport, Totals};
#[cfg(feature = "daemon")]
pub(crate) use tick::{Alarm, Patience, StoreClock};
pub use worker::Worker;
