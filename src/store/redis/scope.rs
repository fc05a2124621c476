//! What the store knows of a namespace between calls: its settings, and the keys and arguments that follow from them.

use std::sync::Arc;

use crate::model::{Name, Settings};
use crate::store::{Configured, StoreError};

use super::{connection::Args, keyed, keys};

/// One namespace under one version of its settings.
#[derive(Debug)]
pub(super) struct Scope {
    prefix: Name,
    pub(super) namespace: Name,
    pub(super) configured: Arc<Configured>,
    /// The keys of each shard.
    pub(super) keys: Vec<Arc<Vec<String>>>,
    /// The common arguments of every script after the first one, the time.
    common: Arc<[Vec<u8>]>,
}

impl Scope {
    pub(super) fn new(prefix: &Name, namespace: &Name, configured: Arc<Configured>) -> Self {
        let routes: Vec<Name> = configured.routes.iter().map(|route| route.name.clone()).collect();
        let keys = (0..configured.settings.shards)
            .map(|shard| Arc::new(keys::shard_keys(&keys::stem(prefix, namespace, shard), &routes)))
            .collect();
        let common = common_args(&configured).into();
        Self { prefix: prefix.clone(), namespace: namespace.clone(), configured, keys, common }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.configured.settings
    }

    pub(super) fn shards(&self) -> u16 {
        self.configured.settings.shards
    }

    /// Refuses what would act on the keys behind the ids, unless the settings let it.
    pub(super) fn check_managed(&self) -> Result<(), StoreError> {
        let Settings { key_backed, manage_keys, .. } = self.settings();
        match *key_backed && !manage_keys {
            true => Err(StoreError::KeyBacked { namespace: self.namespace.clone() }),
            false => Ok(()),
        }
    }

    /// Whether a key-backed namespace may read or write the key behind this id.
    pub(super) fn is_key(&self, id: &[u8]) -> bool {
        keyed::is_id(&self.prefix, self.settings(), id)
    }

    /// The number scripts know a route by, from 1.
    pub(super) fn route_number(&self, route: &Name) -> Result<usize, StoreError> {
        let place = self.configured.routes.iter().position(|known| known.name == *route);
        place
            .map(|place| place + 1)
            .ok_or_else(|| StoreError::NoRoute { namespace: self.namespace.clone(), route: route.clone() })
    }

    /// The arguments of a call: the common ones, then its own.
    pub(super) fn args(&self, now_ms: Option<i64>, own: impl IntoIterator<Item = Vec<u8>>) -> Args {
        let now = Some(now_ms.map(number).unwrap_or_default());
        Args { now, common: Arc::clone(&self.common), own: own.into_iter().collect() }
    }
}

/// A number as scripts read it.
pub(super) fn number(number: impl ToString) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn common_args(configured: &Configured) -> Vec<Vec<u8>> {
    let Configured { version, settings, routes, .. } = configured;
    let leads = settings.leads();
    let mut wants = Vec::new();
    for route in routes {
        wants.extend(leads.iter().map(|lead| if route.wants_reminder(*lead) { b'1' } else { b'0' }));
        wants.push(if settings.cleanup && route.cleanups { b'1' } else { b'0' });
    }
    let span = |span| number(crate::model::span_ms(span));
    let mut args = vec![
        version.clone().into_bytes(),
        settings.late.as_str().into(),
        span(settings.grace),
        settings.on_rearm.as_str().into(),
        settings.min_repeat.map_or_else(|| number(-1), span),
        span(settings.clock_tolerance),
        wants,
        keyed::rules(settings),
        number(settings.history),
        number(leads.len()),
    ];
    args.extend(leads.into_iter().map(|lead| number(lead.as_millis())));
    args
}
