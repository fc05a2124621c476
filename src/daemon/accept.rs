//! Accepts connections, as many at once as allowed, and ends them in order.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    pin, select,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{either::Either, sync::CancellationToken, task::TaskTracker};
use tracing::warn;

use crate::config::Limits;

/// Serves one router on every connection that is accepted. Cheap to clone.
#[derive(Clone)]
pub(super) struct Front {
    router: Router,
    tls: Option<TlsAcceptor>,
    protocol: http1::Builder,
    header_timeout: Duration,
    places: Arc<Semaphore>,
    open: TaskTracker,
    /// Accepts nothing more, and each connection ends after the request it is at.
    draining: CancellationToken,
    /// Ends every connection now.
    cut: CancellationToken,
}

impl Front {
    pub(super) fn new(router: Router, tls: Option<TlsAcceptor>, limits: &Limits) -> Self {
        let size = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let mut protocol = http1::Builder::new();
        // Less than this the implementation of the protocol does not take.
        protocol.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout);
        protocol.max_buf_size(size(limits.max_header).max(8192));
        let places = size(limits.max_connections).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            router,
            tls,
            protocol,
            header_timeout: limits.header_timeout,
            places: Arc::new(Semaphore::new(places)),
            open: TaskTracker::new(),
            draining: CancellationToken::new(),
            cut: CancellationToken::new(),
        }
    }

    /// How many connections are open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Lets [`Front::serve`] end as soon as every connection has.
    pub(super) fn drain(&self) {
        self.draining.cancel();
    }

    /// Ends the connections that are left.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }

    /// Accepts connections until it drains, and waits for them.
    pub(super) async fn serve(&self, listener: TcpListener) {
        loop {
            let accepted = select! {
                accepted = listener.accept() => accepted,
                () = self.draining.cancelled() => break,
            };
            match accepted {
                // One too many is closed before it costs anything.
                Ok((stream, _)) => {
                    if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                        self.open.spawn(self.clone().connection(stream, place));
                    }
                }
                // The client's own trouble.
                Err(error) if is_of_client(&error) => {}
                Err(error) => {
                    // As when no file is left to be opened: it may pass.
                    warn!("a connection cannot be accepted: {error}");
                    sleep(Duration::from_secs(1)).await;
                }
            }
        }
        drop(listener);
        self.open.close();
        self.open.wait().await;
    }

    async fn connection(self, stream: TcpStream, _place: OwnedSemaphorePermit) {
        // An answer is written whole, so nothing is gained by waiting for more of it.
        drop(stream.set_nodelay(true));
        let stream = match &self.tls {
            None => Either::Left(stream),
            Some(tls) => match timeout(self.header_timeout, tls.accept(stream)).await {
                Ok(Ok(stream)) => Either::Right(stream),
                _ => return,
            },
        };
        let connection = self.protocol.serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.router));
        pin!(connection);
        select! {
            // Whatever ends it is the client's doing, and was answered if there was anybody to answer.
            _ = &mut connection => return,
            () = self.draining.cancelled() => connection.as_mut().graceful_shutdown(),
            () = self.cut.cancelled() => return,
        }
        select! {
            _ = &mut connection => {}
            () = self.cut.cancelled() => {}
        }
    }
}

fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
