//! A namespace under one version of its settings, with what follows from them.

use std::{sync::Arc, time::Duration};

use crate::model::{Late, Name, OnRearm, Settings, span_ms};
use crate::store::{Configured, StoreError};

/// One namespace under one version of its settings.
#[derive(Debug)]
pub(super) struct Scope {
    /// What rows name the namespace by.
    pub(super) key: i64,
    pub(super) namespace: Name,
    /// Everything but `paused`, which changes under the same version.
    pub(super) configured: Arc<Configured>,
    /// In ms, ascending.
    pub(super) leads: Vec<i64>,
    pub(super) lanes: Vec<Lane>,
    pub(super) grace_ms: i64,
    pub(super) tolerance_ms: i64,
    pub(super) late: Late,
    /// Cleanups of earlier lives run in any case.
    pub(super) delivers: bool,
}

/// One route and what it wants.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) name: Name,
    /// For each lead, in order.
    pub(super) reminders: Vec<bool>,
    pub(super) cleanups: bool,
}

impl Scope {
    pub(super) fn new(key: i64, namespace: &Name, configured: Arc<Configured>) -> Self {
        let settings = &configured.settings;
        let leads = settings.leads();
        let lanes = configured.routes.iter().map(|route| Lane {
            name: route.name.clone(),
            reminders: leads.iter().map(|lead| route.wants_reminder(*lead)).collect(),
            cleanups: settings.cleanup && route.cleanups,
        });
        Self {
            key,
            namespace: namespace.clone(),
            lanes: lanes.collect(),
            leads: leads.iter().map(|lead| lead.as_millis()).collect(),
            grace_ms: bounded_ms(settings.grace),
            tolerance_ms: bounded_ms(settings.clock_tolerance),
            late: settings.late,
            delivers: settings.on_rearm == OnRearm::Deliver,
            configured,
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.configured.settings
    }

    /// The route of this name.
    pub(super) fn lane(&self, route: &Name) -> Result<&Lane, StoreError> {
        self.lanes
            .iter()
            .find(|lane| lane.name == *route)
            .ok_or_else(|| StoreError::NoRoute { namespace: self.namespace.clone(), route: route.clone() })
    }

    /// Whether any route wants cleanups.
    pub(super) fn wants_cleanups(&self) -> bool {
        self.lanes.iter().any(|lane| lane.cleanups)
    }
}

/// A span in ms, at most so long that instants and spans add up to what an `i64` holds.
pub(super) fn bounded_ms(span: Duration) -> i64 {
    const LONGEST: i64 = 1_000_000_000_000_000;
    span_ms(span).min(LONGEST)
}
