//! What is paused in a namespace, as a whole and route by route.

use forewarn::{Name, model::Paused, store::Stats};
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
