//! The namespaces of a configuration, in the store: through the versioned configure, so that newer settings stay.

use std::fmt;

use crate::config::{Config, NamespaceConfig};
use crate::forewarn::Forewarn;
use crate::model::Name;
use crate::store::{Preview, StoreError};

/// What became of one namespace.
#[derive(Debug)]
pub struct AppliedNamespace {
    /// The namespace.
    pub name: Name,
    /// What applying did, or why it could not be done.
    pub result: Result<Effect, StoreError>,
}

/// What applying the settings of a namespace does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The namespace is new.
    Created,
    /// Settings or routes changed.
    Changed,
    /// All was so already.
    Unchanged,
    /// Newer settings are in force; nothing was touched.
    Outranked {
        /// The revision in force.
        in_force: u64,
        /// The revision of this configuration.
        given: u64,
    },
}

impl Effect {
    fn of(created: bool, changed: bool) -> Self {
        match (created, changed) {
            (true, _) => Self::Created,
            (false, true) => Self::Changed,
            (false, false) => Self::Unchanged,
        }
    }
}

impl fmt::Display for AppliedNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.result {
            Ok(Effect::Created) => write!(f, "namespace {name}: created"),
            Ok(Effect::Changed) => write!(f, "namespace {name}: changed"),
            Ok(Effect::Unchanged) => write!(f, "namespace {name}: unchanged"),
            Ok(Effect::Outranked { in_force, given }) => write!(
                f,
                "namespace {name}: newer settings (revision {in_force}) are in force, those given here ({given}) are \
                 not applied"
            ),
            Err(error) => write!(f, "namespace {name}: not applied: {error}"),
        }
    }
}

/// Applies the namespaces that the configuration names; others are left alone. One that cannot be applied keeps none of
/// the others from it.
pub async fn apply(forewarn: &Forewarn, config: &Config) -> Vec<AppliedNamespace> {
    let mut all = Vec::new();
    for one in &config.namespaces {
        all.push(AppliedNamespace { name: one.name.clone(), result: apply_one(forewarn, one).await });
    }
    all
}

/// What [`apply`] would do to one namespace, and what would speak at once; nothing of that if it is outranked. Changes
/// nothing.
///
/// # Errors
/// Those with which applying would fail.
pub async fn foresee(forewarn: &Forewarn, one: &NamespaceConfig) -> Result<(Effect, Option<Preview>), StoreError> {
    if let Some(outranked) = outranked(forewarn, one).await? {
        return Ok((outranked, None));
    }
    let preview = forewarn.namespace(one.name.clone()).preview(&one.change).await?;
    Ok((Effect::of(preview.created, preview.changed), Some(preview)))
}

async fn apply_one(forewarn: &Forewarn, one: &NamespaceConfig) -> Result<Effect, StoreError> {
    if let Some(outranked) = outranked(forewarn, one).await? {
        return Ok(outranked);
    }
    match forewarn.namespace(one.name.clone()).configure(&one.change).await {
        Ok(applied) => Ok(Effect::of(applied.created, applied.changed)),
        // Another daemon with newer settings may have been quicker; the store has refused these.
        Err(error @ StoreError::Conflict { .. }) => outranked(forewarn, one).await?.ok_or(error),
        Err(error) => Err(error),
    }
}

/// Whether newer settings are in force.
async fn outranked(forewarn: &Forewarn, one: &NamespaceConfig) -> Result<Option<Effect>, StoreError> {
    let present = match forewarn.namespace(one.name.clone()).configured().await {
        Ok(configured) => configured.settings.revision,
        Err(StoreError::Unconfigured { .. }) => None,
        Err(error) => return Err(error),
    };
    let given = one.change.settings.as_ref().and_then(|settings| settings.revision);
    Ok(match (present, given) {
        (Some(in_force), Some(given)) if given < in_force => Some(Effect::Outranked { in_force, given }),
        _ => None,
    })
}
