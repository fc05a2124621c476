//! Changes of the configuration while the daemon runs: on SIGHUP, or when what was read is no longer the same.
//!
//! Files are read again every few seconds and compared by their content, which also sees those that a mount swaps.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::config::{ConfigError, Layers, Loaded};

/// Yields the configuration each time it may have changed.
#[derive(Debug)]
pub struct Changes {
    layers: Layers,
    ticks: Interval,
    hangup: Hangup,
    /// What was loaded last.
    known: [u8; 32],
    /// What the last look found, where it differs: it counts when the next look finds the same, so that a file is not
    /// read while it is being written.
    fresh: Option<[u8; 32]>,
}

impl Changes {
    /// How often the files are read.
    pub const POLL_INTERVAL: Duration = Duration::from_secs(2);

    /// Watches what `layers` read. SIGHUP no longer ends the process. Make it before the first load, so that no change
    /// falls between the two.
    ///
    /// # Errors
    /// If the signal cannot be listened to.
    pub fn new(layers: Layers) -> std::io::Result<Self> {
        Self::every(layers, Self::POLL_INTERVAL)
    }

    /// The same with another interval.
    ///
    /// # Errors
    /// As for [`Changes::new`].
    pub fn every(layers: Layers, poll_interval: Duration) -> std::io::Result<Self> {
        let mut ticks = interval(poll_interval.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self { known: fingerprint(&layers), layers, ticks, hangup: Hangup::listen()?, fresh: None })
    }

    /// Waits for the next change; answers with the configuration as it is then, or with what is wrong with it. Cancel
    /// safe.
    ///
    /// # Errors
    /// Everything that is wrong; what is in force should stay so.
    pub async fn next(&mut self) -> Result<Loaded, ConfigError> {
        loop {
            let is_asked = tokio::select! {
                () = self.hangup.heard() => true,
                _ = self.ticks.tick() => false,
            };
            let found = fingerprint(&self.layers);
            let is_settled = self.fresh.replace(found) == Some(found);
            if is_asked || (is_settled && found != self.known) {
                self.known = found;
                return self.layers.load();
            }
        }
    }
}

/// A digest of everything that is read.
fn fingerprint(layers: &Layers) -> [u8; 32] {
    let mut digest = Sha256::new();
    for path in layers.files() {
        digest.update(path.as_os_str().as_encoded_bytes());
        match std::fs::read(&path) {
            Ok(content) => digest.update(Sha256::digest(content)),
            Err(error) => digest.update(error.to_string()),
        }
    }
    digest.finalize().into()
}

#[cfg(unix)]
#[derive(Debug)]
struct Hangup(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangup {
    fn listen() -> std::io::Result<Self> {
        Ok(Self(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?))
    }

    async fn heard(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending().await
        }
    }
}

#[cfg(not(unix))]
#[derive(Debug)]
struct Hangup;

#[cfg(not(unix))]
impl Hangup {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn heard(&mut self) {
        std::future::pending().await
    }
}
