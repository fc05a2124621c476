//! What the settings of a namespace make of a change or of a payload: the same for every store.

use crate::model::{IdKey, Invalid, Name, Route, Settings};
use crate::store::{Change, Configured, StoreError};

/// What is in force after a change, or why the change is refused.
pub(crate) fn merge(
    namespace: &Name,
    change: &Change,
    present: Option<&Configured>,
) -> Result<(Settings, Vec<Route>), StoreError> {
    let refuse = |reason: String| StoreError::Conflict { namespace: namespace.clone(), reason };
    let mut settings = match (&change.settings, present) {
        (Some(settings), _) => settings.clone(),
        (None, Some(present)) => present.settings.clone(),
        (None, None) => return Err(StoreError::Unconfigured { namespace: namespace.clone() }),
    };
    // One order, so that the same settings written in another one are no change.
    settings.remind.sort_unstable_by(|a, b| b.cmp(a));
    if let Some(present) = present {
        let (old, new) = (present.settings.shards, settings.shards);
        if old != new {
            return Err(refuse(format!(
                "it has {old} shards for good, not {new}; use a new namespace for another number"
            )));
        }
        if let (Some(old), Some(new)) = (present.settings.revision, settings.revision)
            && new < old
        {
            return Err(refuse(format!("revision {old} is in force, which is newer than {new}")));
        }
    }
    let mut routes = present.map(|present| present.routes.clone()).unwrap_or_default();
    for route in &change.routes {
        match routes.iter_mut().find(|known| known.name == route.name) {
            Some(known) => *known = route.clone(),
            None => routes.push(route.clone()),
        }
    }
    for name in &change.drop_routes {
        let before = routes.len();
        routes.retain(|route| route.name != *name);
        if routes.len() == before {
            return Err(StoreError::NoRoute { namespace: namespace.clone(), route: name.clone() });
        }
    }
    if routes.is_empty() && present.is_none() {
        routes.push(Route::main()?);
    }
    if routes.is_empty() {
        return Err(Invalid::new("drop_route", "would remove the last route; add another one first").into());
    }
    Ok((settings, routes))
}

/// The key of handles after a change: that in force, or the one given, or a new one.
pub(crate) fn id_key(change: &Change, present: Option<&Configured>) -> Result<IdKey, StoreError> {
    let known = present.and_then(|present| present.id_key.clone()).or_else(|| change.id_key.clone());
    known.map_or_else(new_id_key, Ok)
}

fn new_id_key() -> Result<IdKey, StoreError> {
    let mut bytes = [0; 16];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).map_err(|_| StoreError::Unexpected {
        address: "this machine".to_owned(),
        problem: "it has no random numbers to make a key from".to_owned(),
    })?;
    Ok(IdKey::from_bytes(bytes))
}

/// Refuses a payload that is longer than the settings allow.
pub(crate) fn check_payload(settings: &Settings, payload: Option<&[u8]>) -> Result<(), Invalid> {
    let limit = settings.max_payload;
    match payload.map_or(0, <[u8]>::len) {
        len if u32::try_from(len).is_ok_and(|len| len <= limit) => Ok(()),
        len => Err(Invalid::new(
            "payload",
            format!("has {len} bytes; at most {limit} are allowed, keep the rest elsewhere"),
        )),
    }
}
