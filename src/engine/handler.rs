//! Handlers with their types forgotten, and what becomes of one that panics.

use std::{any::Any, fmt, panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, future::BoxFuture};

use crate::engine::{Delivery, Outcome};
use crate::model::{Class, Failure, Kind};

type HandlerFn = dyn Fn(Delivery) -> BoxFuture<'static, Outcome> + Send + Sync;

/// One handler, whatever its own type.
#[derive(Clone)]
pub(crate) struct Handler(Arc<HandlerFn>);

impl Handler {
    pub(crate) fn new<F, Fut>(handler: F) -> Self
    where
        F: Fn(Delivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Into<Outcome>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        Self(Arc::new(move |delivery| {
            let handler = Arc::clone(&handler);
            // Called inside the future, so that a panic before its first await is caught like any other.
            async move { handler(delivery).await.into() }.boxed()
        }))
    }

    /// Runs it. A panic is a failure like any other: retried, the worker lives on.
    pub(crate) async fn run(&self, delivery: Delivery) -> Outcome {
        let running = AssertUnwindSafe((self.0)(delivery));
        match running.catch_unwind().await {
            Ok(outcome) => outcome,
            Err(panic) => {
                let text = panic_text(&*panic);
                Outcome::retry(Failure::new(Class::Failed, format!("the handler panicked: {text}")))
            }
        }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

/// The handlers of a worker, by kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) reminder: Option<Handler>,
    pub(crate) cleanup: Option<Handler>,
}

impl Handlers {
    /// Runs the handler for this delivery. The start refuses a route that delivers what has no handler; one that was
    /// changed later must not lose notices either, so they fail, visibly.
    pub(crate) async fn run(&self, delivery: Delivery) -> Outcome {
        let handler = match delivery.kind() {
            Kind::Reminder(_) => &self.reminder,
            Kind::Cleanup(_) => &self.cleanup,
        };
        match handler {
            Some(handler) => handler.run(delivery).await,
            None => {
                let summary = format!("this worker has no on_{} handler", delivery.kind().as_str());
                Outcome::retry(Failure::new(Class::Failed, summary).at_stage("dispatch"))
            }
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with a value that is no text")
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::engine::delivery::tests::claim;

    fn delivery() -> Delivery {
        Delivery::new(Arc::new(claim("a", None)), 0, CancellationToken::new())
    }

    #[tokio::test]
    async fn a_panic_is_a_retry_that_tells_the_text() {
        let handler = Handler::new(|delivery: Delivery| async move {
            assert!(delivery.is_cancelled(), "attempt {}", delivery.attempt());
        });
        let Outcome::Retry { failure, after: None } = handler.run(delivery()).await else { panic!("not a retry") };
        assert_eq!((failure.class, failure.summary.as_str()), (Class::Failed, "the handler panicked: attempt 2"));
    }

    #[tokio::test]
    async fn a_kind_without_a_handler_is_never_taken_for_done() {
        let Outcome::Retry { failure, .. } = Handlers::default().run(delivery()).await else { panic!("not a retry") };
        assert_eq!((failure.stage.as_str(), failure.summary.contains("on_cleanup")), ("dispatch", true));
    }
}
