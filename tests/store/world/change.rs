//! Changes of leads and routes, and pauses.

use forewarn::model::{Name, Pause};
use forewarn::store::Change;

use super::{World, lane, route, settings};
use crate::operation::{LEADS, Op, ROUTES};
use crate::words::Rules;

impl World<'_> {
    pub(super) async fn change(&mut self, op: &Op) -> Result<(), String> {
        let mut change = Change::default();
        match op {
            Op::Leads { set } => {
                let rules = Rules { leads: LEADS[usize::from(*set)].to_vec(), ..self.model.rules.clone() };
                change = Change::settings(settings(&rules));
                self.model.configure(rules);
                self.ledger.note_leads();
            }
            Op::Route { route: index, reminders, cleanups, only } => {
                let lane = lane(ROUTES[usize::from(*index)], *reminders, *cleanups, *only);
                change.routes = vec![route(&lane)];
                self.model.set_route(lane);
                self.ledger.note_change();
            }
            Op::DropRoute { route } => {
                let name = ROUTES[usize::from(*route)];
                if self.model.lane(name).is_none() || self.model.lanes.len() == 1 {
                    return Ok(());
                }
                change.drop_routes = vec![Name::new("route", name).expect("a good name")];
                self.model.drop_route(name);
                self.ledger.note_change();
                self.sleeping.remove(name);
                self.held.retain(|held| held.route != name);
                self.spent.retain(|spent| spent.route != name);
            }
            Op::Pause { route, reminders, cleanups, paused } => {
                let name = route.map(|index| ROUTES[usize::from(index)]);
                if name.is_some_and(|name| self.model.lane(name).is_none()) {
                    return Ok(());
                }
                let pause = Pause {
                    route: name.map(|name| Name::new("route", name).expect("a good name")),
                    reminders: *reminders,
                    cleanups: *cleanups,
                    paused: *paused,
                    rate: None,
                };
                self.model.pause(name, *reminders, *cleanups, *paused);
                self.ledger.note_change();
                return self.bench.store.pause(&self.name, &pause).await.map_err(|error| format!("pause: {error}"));
            }
            other => return Err(format!("{other:?} changes nothing")),
        }
        let applied = self.bench.store.configure(&self.name, &change).await;
        applied.map(drop).map_err(|error| format!("configure: {error}"))
    }
}
