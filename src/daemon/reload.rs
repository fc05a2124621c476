//! Changes while the daemon runs: of the configuration, taken over as far as that can be, and of the store, should it lose the
//! namespaces of the configuration.

use std::{collections::HashSet, future::pending, sync::Arc, time::Duration};

use tokio::{
    select,
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tracing::{error, info, warn};

use crate::config::{Changes, Config, Effect, Loaded, Reload, apply};
use crate::forewarn::Forewarn;
use crate::http::App;
use crate::model::Name;

/// Takes over another log filter; answers with what is wrong with it.
pub type SetFilter = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Keeps a running daemon in step with its configuration.
pub(super) struct Reloader {
    pub(super) app: App,
    pub(super) config: Config,
    pub(super) changes: Option<Changes>,
    pub(super) set_filter: Option<SetFilter>,
    pub(super) stop_timeout: watch::Sender<Duration>,
    /// Namespaces that could not be applied yet.
    pub(super) owed: HashSet<Name>,
}

impl Reloader {
    /// How soon a namespace that is missing is applied again.
    const INTERVAL: Duration = Duration::from_secs(2);

    /// Applies what the configuration says, and again what changes, for as long as it is polled.
    pub(super) async fn run(&mut self) {
        let mut ticks = interval(Self::INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.app.health().tick("reload", Duration::from_secs(60));
            let change = async {
                match &mut self.changes {
                    Some(changes) => changes.next().await,
                    None => pending().await,
                }
            };
            let loaded = select! {
                loaded = change => Some(loaded),
                _ = ticks.tick() => None,
            };
            match loaded {
                Some(Ok(loaded)) => self.take_over(loaded).await,
                Some(Err(broken)) => {
                    for problem in &broken.problems {
                        error!(%problem, "the configuration cannot be used; the one before stays in force");
                    }
                }
                None => self.put_back().await,
            }
        }
    }

    async fn take_over(&mut self, loaded: Loaded) {
        let Loaded { config: new, warnings, .. } = loaded;
        let difference = self.config.difference(&new);
        warnings.iter().for_each(|warning| warn!("{warning}"));
        if difference.is_empty() {
            info!("the configuration was read again: nothing changed");
            return;
        }
        let needs_restart = difference.keys(Reload::Restart).next().is_some();
        if needs_restart {
            warn!("the configuration was read again: {difference}")
        } else {
            info!("the configuration was read again: {difference}")
        }
        if let Some(set_filter) = self.set_filter.as_ref().filter(|_| new.log.filter != self.config.log.filter)
            && let Err(problem) = set_filter(&new.log.filter)
        {
            error!(%problem, "log.filter is no log filter; the one before stays in force");
        }
        self.app.keyring().replace(new.tokens.clone());
        self.app.set_limits(new.limits.clone());
        self.stop_timeout.send_replace(new.stop_timeout);
        let is_known = |name: &Name| self.config.namespaces.iter().any(|known| known.name == *name);
        let differs =
            |one: &&crate::config::NamespaceConfig| !is_known(&one.name) || !self.config.namespaces.contains(one);
        self.owed.extend(new.namespaces.iter().filter(differs).map(|one| one.name.clone()));
        self.config = new;
        self.pay().await;
    }

    /// Applies again what the store has lost, and what could not be applied before.
    async fn put_back(&mut self) {
        if self.config.namespaces.is_empty() {
            return;
        }
        let Ok(present) = self.app.forewarn().namespaces().await else { return };
        let missing = self.config.namespaces.iter().map(|one| &one.name);
        let missing: Vec<Name> =
            missing.filter(|name| !present.iter().any(|present| present.name == **name)).cloned().collect();
        self.owed.extend(missing);
        self.pay().await;
    }

    async fn pay(&mut self) {
        if !self.owed.is_empty() {
            let mut owed = self.config.clone();
            owed.namespaces.retain(|one| self.owed.contains(&one.name));
            self.owed = apply_all(self.app.forewarn(), &owed).await;
        }
    }
}

/// Applies the namespaces of a configuration; answers with those that are to be tried again.
pub(super) async fn apply_all(forewarn: &Forewarn, config: &Config) -> HashSet<Name> {
    let mut owed = HashSet::new();
    for applied in apply(forewarn, config).await {
        match &applied.result {
            Ok(Effect::Unchanged | Effect::Created | Effect::Changed) => info!("{applied}"),
            Ok(_) => warn!("{applied}"),
            Err(error) => {
                error!("{applied}");
                if error.is_transient() {
                    owed.insert(applied.name.clone());
                }
            }
        }
    }
    owed
}
