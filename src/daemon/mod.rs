//! The daemon: one store served over HTTP, from start-up through reloads to an orderly end.
//!
//! Its stages are types: a [`Daemon`] listens, [`Daemon::run`] serves until it is told to stop, and what comes out says how it
//! ended.

mod accept;
mod keys;
mod notify;
mod reload;
mod tls;

use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use tokio::{join, select, sync::watch, time::sleep};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{Changes, Config};
use crate::forewarn::Forewarn;
use crate::http::{App, Keyring, router};
use crate::model::format_span;

use accept::Front;
pub use reload::SetFilter;
use reload::{Reloader, apply_all};

/// Why a daemon could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// It cannot listen there.
    #[error("cannot listen on {address}; give another address as listen, or end what listens there")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// A file of the listener's TLS cannot be used.
    #[error("tls: {file} cannot be used: {problem}")]
    Tls {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// How a daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Connections that were cut because their requests took longer than a stop waits.
    pub cut: usize,
}

/// A daemon that listens and does not serve yet.
pub struct Daemon {
    app: App,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    config: Config,
    changes: Option<Changes>,
    set_filter: Option<SetFilter>,
}

impl Daemon {
    /// Takes its address, so that who comes after can be told where it is.
    ///
    /// # Errors
    /// [`DaemonError::Listen`] if the address is taken, [`DaemonError::Tls`] for files that cannot be used.
    pub fn bind(forewarn: Forewarn, config: Config) -> Result<Self, DaemonError> {
        let failed = |source| DaemonError::Listen { address: config.listen.to_string(), source };
        let tls = config.tls.as_ref().map(tls::load).transpose()?;
        let listener = TcpListener::bind((config.listen.host.as_str(), config.listen.port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let keyring = Keyring::new(config.tokens.clone());
        let app = App::new(forewarn, keyring, config.limits.clone(), config.listen.is_loopback());
        Ok(Self { app, listener, address, tls, config, changes: None, set_filter: None })
    }

    /// Takes over changes of the configuration while it runs.
    #[must_use]
    pub fn reloading(self, changes: Changes, set_filter: Option<SetFilter>) -> Self {
        Self { changes: Some(changes), set_filter, ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Applies the namespaces of its configuration and serves until `shutdown` resolves. Then waiting claims are answered at
    /// once, event streams end, claims that nobody got are given back, and requests have until the stop time-out.
    ///
    /// # Errors
    /// [`DaemonError::Listen`] if the listener cannot be used any more.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Ended, DaemonError> {
        let Self { app, listener, address, tls, config, changes, set_filter } = self;
        let (stop_timeout, stop_timeouts) = watch::channel(config.stop_timeout);
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|source| DaemonError::Listen { address: address.to_string(), source })?;
        let front = Front::new(router(app.clone()), tls, &config.limits);
        let serving = front.serve(listener);
        let owed = apply_all(app.forewarn(), &config).await;
        let mut reloader =
            Reloader { app: app.clone(), config: config.clone(), changes, set_filter, stop_timeout, owed };
        let ended = CancellationToken::new();
        let agents = async {
            select! {
                ((), (), (), ()) = async {
                    join!(app.health().probe(&app), keys::resync(&app), notify::watchdog(&app), reloader.run())
                } => {}
                () = ended.cancelled() => {}
            }
        };
        let stopping = async {
            shutdown.await;
            notify::stopping();
            let wait = *stop_timeouts.borrow();
            info!(connections = front.open(), "stopping: requests may take up to {} to finish", format_span(wait));
            app.stop();
            front.drain();
            sleep(wait).await;
            let cut = front.open();
            front.cut();
            cut
        };
        let serving = async {
            serving.await;
            ended.cancel();
        };
        let stopping = async {
            select! {
                cut = stopping => cut,
                () = ended.cancelled() => 0,
            }
        };
        notify::ready();
        let ((), (), cut) = join!(serving, agents, stopping);
        app.stop();
        if !app.settle(Duration::from_secs(5)).await {
            warn!("claims that nobody got could not be given back; they are handed out again when their leases end");
        }
        Ok(Ended { cut })
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("address", &self.address).field("config", &self.config).finish_non_exhaustive()
    }
}
