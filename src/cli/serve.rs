//! `serve`: the daemon in the foreground, until a signal.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Args;
use forewarn::{
    Forewarn, StoreError,
    config::{Changes, Config, Flag, Layers, Loaded},
    daemon::{Daemon, SetFilter},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    config::refuse,
    exit::Exit,
    log::{self, SetLog},
    output::say,
    signals::Signals,
};

/// Serve the HTTP API: deadlines, claims, namespaces, metrics
///
/// The configuration is a TOML file, FOREWARN_ variables and flags; forewarn config example prints one with every key. What
/// changes in the file is taken over while it runs, as on SIGHUP. SIGTERM or Ctrl-C ends it in good order; a second one at once.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The configuration file [default: the one FOREWARN_CONFIG names, else forewarn/forewarn.toml in the user's or the
    /// machine's configuration directory, else none]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen, as in 127.0.0.1:7878 or [::1]:7878; port 0 takes any that is free
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Serve an address that others can reach without tokens
    #[arg(long)]
    insecure: bool,
    /// How long a stop waits for requests, as in 30s
    #[arg(long, value_name = "SPAN")]
    stop_timeout: Option<String>,
    /// How the log is written: text or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl ServeArgs {
    fn layers(self, store: Option<String>) -> Layers {
        let Self { config, listen, insecure, stop_timeout, log_format } = self;
        let given = [
            ("--store", "store", store),
            ("--listen", "listen", listen),
            ("--insecure", "insecure", insecure.then(|| "true".to_owned())),
            ("--stop-timeout", "stop_timeout", stop_timeout),
            ("--log-format", "log.format", log_format),
        ];
        let mut layers = Layers::of_process();
        layers.file = config;
        layers.flags.extend(given.into_iter().filter_map(|(flag, key, value)| Some(Flag { flag, key, value: value? })));
        layers
    }
}

/// Carries out `serve`.
pub(super) async fn serve(args: ServeArgs, store: Option<String>) -> anyhow::Result<Exit> {
    let layers = args.layers(store);
    // Before the first look at the file, so that no change falls between the two.
    let changes = Changes::new(layers.clone()).context("SIGHUP cannot be listened to")?;
    let Loaded { config, warnings, file, .. } = match layers.load() {
        Ok(loaded) => loaded,
        Err(error) => return Ok(refuse(&error)),
    };
    let set_log = log::start(&config.log.filter, config.log.format)?;
    warnings.iter().for_each(|warning| warn!("{warning}"));
    let mut signals = Signals::listen()?;
    let forewarn = tokio::select! {
        forewarn = open(&config) => forewarn?,
        () = signals.next() => return Ok(Exit::Done),
    };
    let namespaces = forewarn.namespaces().await.map(|all| all.len()).unwrap_or_default();
    let (place, tokens) = (config.store.to_string(), config.tokens.len());
    let daemon = Daemon::bind(forewarn, config)?.reloading(changes, Some(filter(set_log)));
    info!(
        version = env!("CARGO_PKG_VERSION"),
        url = daemon.url(),
        store = place,
        namespaces,
        tokens,
        file = file.map(|file| file.display().to_string()),
        "forewarn serves"
    );
    let stop = CancellationToken::new();
    let twice = async {
        signals.next().await;
        stop.cancel();
        signals.next().await;
    };
    let ended = tokio::select! {
        ended = daemon.run(stop.cancelled()) => ended?,
        () = twice => {
            say("stopped at once; requests were cut");
            return Ok(Exit::Failed);
        }
    };
    info!(cut = ended.cut, "forewarn has stopped");
    Ok(Exit::Done)
}

/// Opens the store, and waits for one that does not answer yet.
async fn open(config: &Config) -> anyhow::Result<Forewarn> {
    let mut delay = Duration::from_millis(500);
    loop {
        match config.store.open().await {
            Ok(forewarn) => return Ok(forewarn),
            Err(error @ StoreError::Unavailable { .. }) => {
                warn!("{error:#}; trying again, nothing is served until then");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(Duration::from_secs(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn filter(set_log: SetLog) -> SetFilter {
    Arc::new(move |filter| set_log.set(filter).map_err(|error| error.to_string()))
}
