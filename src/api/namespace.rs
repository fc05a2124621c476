//! Namespaces: their settings and routes, what applying some would do, pausing and resuming.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::object;
use crate::api::settings::SettingsForm;
use crate::model::{FirstStart, IdKey, Invalid, Name, Pause, Paused, Route, Settings};
use crate::store::{Applied, Change, Configured, Preview, Registered};

/// All namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamespaceList {
    /// By name.
    pub namespaces: Vec<Registered>,
}

/// A namespace: the settings in force and what is paused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NamespaceForm {
    /// The name.
    pub namespace: String,
    /// Changes with every change of settings or routes.
    pub version: String,
    /// The settings.
    pub settings: SettingsForm,
    /// The routes, in order.
    pub routes: Vec<Route>,
    /// What is paused for the whole namespace.
    pub paused: Paused,
    /// The key of its handles, in hex; for callers who are given ids, of scope `write` or `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_key: Option<String>,
}

impl NamespaceForm {
    /// The form of what is in force; `with_key`: for whoever is given ids, be they secrets or not.
    pub fn new(namespace: &Name, configured: &Configured, with_key: bool) -> Self {
        let Configured { version, settings, routes, paused, id_key } = configured;
        Self {
            id_key: id_key.as_ref().filter(|_| with_key).map(IdKey::to_hex),
            namespace: namespace.to_string(),
            version: version.clone(),
            settings: settings.into(),
            routes: routes.clone(),
            paused: paused.clone(),
        }
    }
}

/// A change of a namespace: whole settings, and routes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApplyBody {
    /// The settings, whole: what is left out has its default. Not given: they stay as they are.
    #[serde(deserialize_with = "object::optional", skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsForm>,
    /// What a namespace that is new says of ids already inside a lead. Default: `speak`.
    pub first_start: FirstStart,
    /// Routes to add, or to change where the name is taken. A new namespace without any gets `main`.
    #[serde(deserialize_with = "object::list")]
    pub routes: Vec<Route>,
    /// Names of routes to remove; their open cleanups are settled as dropped.
    pub drop_routes: Vec<String>,
    /// The key of handles of a namespace that has none yet, in hex. Default: one is made. One that is there is never replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_key: Option<String>,
}

impl ApplyBody {
    /// The change.
    ///
    /// # Errors
    /// Names the field that is wrong and the fix.
    pub fn read(self) -> Result<Change, Invalid> {
        let drop = |name| Name::new("drop_routes", name);
        Ok(Change {
            settings: self.settings.map(Settings::try_from).transpose()?,
            first_start: self.first_start,
            routes: self.routes,
            drop_routes: self.drop_routes.into_iter().map(drop).collect::<Result<_, _>>()?,
            id_key: self.id_key.as_deref().map(IdKey::from_hex).transpose()?,
        })
    }
}

impl From<&Change> for ApplyBody {
    fn from(change: &Change) -> Self {
        let Change { settings, first_start, routes, drop_routes, id_key } = change;
        Self {
            settings: settings.as_ref().map(SettingsForm::from),
            first_start: *first_start,
            routes: routes.clone(),
            drop_routes: drop_routes.iter().map(ToString::to_string).collect(),
            id_key: id_key.as_ref().map(IdKey::to_hex),
        }
    }
}

/// What a change did, or would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AppliedForm {
    /// Whether the namespace is new.
    pub created: bool,
    /// Whether anything changed.
    pub changed: bool,
    /// What is in force now; not of a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<NamespaceForm>,
    /// Of a dry run: for each lead time, smallest first, how many reminders would speak at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminders: Option<Vec<LeadCount>>,
    /// Of a dry run: how many cleanups would open at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanups: Option<u64>,
}

/// How many reminders of one lead would speak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeadCount {
    /// The lead time, in milliseconds.
    pub lead_ms: i64,
    /// How many.
    pub count: u64,
}

impl AppliedForm {
    /// What a change did.
    pub fn applied(namespace: &Name, applied: &Applied) -> Self {
        let form = NamespaceForm::new(namespace, &applied.configured, true);
        Self {
            created: applied.created,
            changed: applied.changed,
            namespace: Some(form),
            reminders: None,
            cleanups: None,
        }
    }

    /// What a change would do.
    pub fn preview(preview: &Preview) -> Self {
        let count =
            |(lead, count): &(crate::model::LeadTime, u64)| LeadCount { lead_ms: lead.as_millis(), count: *count };
        Self {
            created: preview.created,
            changed: preview.changed,
            namespace: None,
            reminders: Some(preview.reminders.iter().map(count).collect()),
            cleanups: Some(preview.cleanups),
        }
    }
}

/// What to pause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseBody {
    /// Only this route. Default: the whole namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Only reminders. Both or neither given: both kinds.
    pub reminders: bool,
    /// Only cleanups. Both or neither given: both kinds.
    pub cleanups: bool,
}

/// What to resume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeBody {
    /// Only this route. Default: the whole namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Only reminders. Both or neither given: both kinds.
    pub reminders: bool,
    /// Only cleanups. Both or neither given: both kinds.
    pub cleanups: bool,
    /// How many notices a second flow at most, of each kind, until what gathered during the pause is worked off; 0 does not limit
    /// them. Default: 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

impl PauseBody {
    /// The pause.
    ///
    /// # Errors
    /// Refuses what is no name of a route.
    pub fn read(&self) -> Result<Pause, Invalid> {
        let both = self.reminders == self.cleanups;
        Ok(Pause {
            route: self.route.as_ref().map(|route| Name::new("route", route.as_str())).transpose()?,
            reminders: both || self.reminders,
            cleanups: both || self.cleanups,
            paused: true,
            rate: None,
        })
    }
}

impl ResumeBody {
    /// The most that flows if nobody says how much.
    const RATE: u32 = 1000;

    /// The resume.
    ///
    /// # Errors
    /// Refuses what is no name of a route.
    pub fn read(self) -> Result<Pause, Invalid> {
        let Self { route, reminders, cleanups, rate } = self;
        let rate = NonZeroU32::new(rate.unwrap_or(Self::RATE));
        Ok(Pause { paused: false, rate, ..PauseBody { route, reminders, cleanups }.read()? })
    }
}

impl From<&Pause> for PauseBody {
    fn from(pause: &Pause) -> Self {
        let Pause { route, reminders, cleanups, .. } = pause;
        Self { route: route.as_ref().map(ToString::to_string), reminders: *reminders, cleanups: *cleanups }
    }
}

impl From<&Pause> for ResumeBody {
    fn from(pause: &Pause) -> Self {
        let PauseBody { route, reminders, cleanups } = pause.into();
        Self { route, reminders, cleanups, rate: Some(pause.rate.map_or(0, NonZeroU32::get)) }
    }
}
