//! What is paused in a namespace, and what flows slowly after a pause, as a whole and route by route.

use forewarn::{
    Name,
    model::{CatchingUp, Paused},
    store::Stats,
};
use serde::Serialize;

use super::output::paused_text;

/// What is paused in a namespace. To be flattened.
#[derive(Debug, Serialize)]
pub(super) struct Pauses {
    paused: Paused,
    paused_routes: Vec<PausedRoute>,
}

/// A route of which something is paused.
#[derive(Debug, Serialize)]
struct PausedRoute {
    route: Name,
    #[serde(flatten)]
    paused: Paused,
}

impl From<&Stats> for Pauses {
    fn from(stats: &Stats) -> Self {
        let paused_routes = stats.routes.iter().filter(|route| paused_text(&route.paused).is_some());
        let paused_routes =
            paused_routes.map(|route| PausedRoute { route: route.route.clone(), paused: route.paused.clone() });
        Self { paused: stats.paused.clone(), paused_routes: paused_routes.collect() }
    }
}

impl Pauses {
    /// A line for the namespace and for each route of which something is paused.
    pub(super) fn texts(&self) -> Vec<String> {
        let whole = paused_text(&self.paused).map(str::to_owned);
        let routes = self.paused_routes.iter().filter_map(|one| Some((paused_text(&one.paused)?, &one.route)));
        whole.into_iter().chain(routes.map(|(paused, route)| format!("{paused} on route {route}"))).collect()
    }

    /// The same as far as it touches one route.
    pub(super) fn only(self, route: &Name) -> Self {
        let paused_routes = self.paused_routes.into_iter().filter(|one| one.route == *route).collect();
        Self { paused_routes, ..self }
    }
}

/// What flows no faster than its resume allows. To be flattened.
#[derive(Debug, Serialize)]
pub(super) struct CatchUps {
    catching_up: CatchingUp,
    catching_up_routes: Vec<CatchUp>,
}

/// A route of which something flows slowly.
#[derive(Debug, Serialize)]
struct CatchUp {
    route: Name,
    #[serde(flatten)]
    rates: CatchingUp,
}

impl From<&Stats> for CatchUps {
    fn from(stats: &Stats) -> Self {
        let routes = stats.routes.iter().filter(|route| route.catching_up != CatchingUp::default());
        let routes = routes.map(|route| CatchUp { route: route.route.clone(), rates: route.catching_up });
        Self { catching_up: stats.catching_up, catching_up_routes: routes.collect() }
    }
}

impl CatchUps {
    /// A line for the namespace and for each route of which something flows slowly.
    pub(super) fn texts(&self) -> Vec<String> {
        let routes = self.catching_up_routes.iter();
        let routes = routes.filter_map(|one| Some(format!("{} on route {}", rates_text(one.rates)?, one.route)));
        rates_text(self.catching_up).into_iter().chain(routes).collect()
    }
}

/// At how many a second what is catching up flows, for people; `None` if nothing is limited.
pub(super) fn rates_text(rates: CatchingUp) -> Option<String> {
    let CatchingUp { reminders, cleanups } = rates;
    let texts = [("reminders", reminders), ("cleanups", cleanups)].map(|(class, rate)| Some((class, rate?)));
    let texts: Vec<String> =
        texts.into_iter().flatten().map(|(class, rate)| format!("{class} at {rate} a second")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}
