//! Tests of your own handlers, without a server and without waiting.
//!
//! A [`TestStore`] is a store of its own with a clock that stands still until the test turns it. The rest is as in
//! production: the same [`Forewarn`](crate::Forewarn) and [`Namespace`](crate::Namespace), the same
//! [`Worker`](crate::Worker) with your handlers, the same retries and dead letters.
//!
//! ```
//! use std::time::Duration;
//!
//! use forewarn::testing::TestStore;
//! use forewarn::{Delivery, Namespace, Settings, Worker};
//!
//! // The program under test: warns twice, then empties the cart, at the second attempt.
//! fn worker(carts: &Namespace) -> forewarn::engine::WorkerBuilder {
//!     Worker::builder(carts)
//!         .on_reminder(|notice: Delivery| async move { println!("{} will be emptied", notice.id()) })
//!         .on_cleanup(|notice: Delivery| async move {
//!             if notice.attempt() == 1 { Err("the shelf is locked") } else { Ok(()) }
//!         })
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anyhow::Result<()> {
//! let test = TestStore::new().await?;
//! let carts = test.namespace("cart");
//! carts.apply(Settings::default().remind("10m".parse()?).remind("1m".parse()?)).await?;
//! test.attach(worker(&carts)).await?;
//!
//! let hour = Duration::from_secs(3600);
//! carts.track_in("cart:7", hour).await?;
//! let handled = test.advance(hour * 2).await?;
//!
//! let lines: Vec<String> = handled.iter().map(ToString::to_string).collect();
//! assert_eq!(lines, [
//!     "reminder 10m of cart:7: done",
//!     "reminder 1m of cart:7: done",
//!     "cleanup of cart:7: retry (the shelf is locked)",
//!     "cleanup of cart:7, attempt 2: done",
//! ]);
//! # Ok(()) }
//! ```
//!
//! - [`advance`](TestStore::advance) stops at every instant at which something is due, and returns when the handlers have
//!   ended and their outcomes are stored. Where nothing ends for a while it fails and says what it waits for.
//! - [`jump`](TestStore::jump) turns the clock at once: what a worker finds that was down. [`settle`](TestStore::settle)
//!   leaves it: for what is due already.
//! - The clock is the store's. `track_in` and `renew_in` count by it; a program that reads its machine's clock does not see it
//!   turn, and [`now`](TestStore::now) is what a test gives it instead.
//! - It works under `#[tokio::test]`, also with several threads, also with `start_paused`. Timers of tokio go on as they do
//!   without it: turning one clock does not turn the other.
//! - The store is a file among the temporary ones, and is gone when the last connection to it is dropped.

mod book;
mod error;
mod handled;
mod scratch;
mod test_store;
mod watched;

pub use error::TestError;
pub use handled::{Ending, Handled};
pub use test_store::TestStore;
