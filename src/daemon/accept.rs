//! A limit on connections: one too many is closed before it costs anything.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum_server::accept::Accept;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

/// Accepts as many connections at once as there are places.
#[derive(Debug, Clone)]
pub(super) struct Limited<A> {
    places: Arc<Semaphore>,
    inner: A,
}

/// The service of one connection, with its place.
#[derive(Debug, Clone)]
pub(super) struct Placed<S> {
    service: S,
    _place: Arc<OwnedSemaphorePermit>,
}

impl<A> Limited<A> {
    pub(super) fn new(places: usize, inner: A) -> Self {
        Self { places: Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS))), inner }
    }
}

impl<A, I, S> Accept<I, S> for Limited<A>
where
    A: Accept<I, S, Future: Send + 'static, Stream: Send, Service: Send>,
    I: Send,
    S: Send,
{
    type Stream = A::Stream;
    type Service = Placed<A::Service>;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Box::pin(async { Err(io::Error::other("more connections than limits.max_connections allows")) });
        };
        let accepting = self.inner.accept(stream, service);
        Box::pin(async move {
            let (stream, service) = accepting.await?;
            Ok((stream, Placed { service, _place: Arc::new(place) }))
        })
    }
}

impl<S: Service<R>, R> Service<R> for Placed<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.service.call(request)
    }
}
