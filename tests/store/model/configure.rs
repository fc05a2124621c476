//! Changes of the leads and of the routes (C5, C6, R1), and pausing (R0).

use super::Model;
use crate::words::{Frontier, Kind, Lane, Rules};

impl Model {
    /// New settings. A new lead begins where the nearest smaller lead that goes had come to, at most at its own edge.
    pub(crate) fn configure(&mut self, rules: Rules) {
        let old = std::mem::replace(&mut self.rules, rules);
        let new = self.rules.leads.clone();
        let gone: Vec<i64> = old.leads.iter().copied().filter(|lead| !new.contains(lead)).collect();
        for shard in 0..self.rules.shards {
            for lead in new.iter().copied().filter(|lead| !old.leads.contains(lead)) {
                let edge = Frontier::all((self.now + lead) as f64);
                let begins = match gone.iter().copied().filter(|other| *other < lead).max() {
                    None => Some(edge),
                    Some(other) => self.frontiers.get(&(shard, other)).map(|frontier| edge.min(frontier.clone())),
                };
                if let Some(begins) = begins {
                    self.frontiers.insert((shard, lead), begins);
                }
            }
        }
        self.frontiers.retain(|(_, lead), _| !gone.contains(lead));
        self.silent.retain(|(lead, _), _| !gone.contains(lead));
        self.crossed.retain(|(lead, _), _| !gone.contains(lead));
        let is_gone = |kind| matches!(kind, Kind::Reminder(lead) if gone.contains(&lead));
        for queue in self.queues.values_mut() {
            queue.retain(|notice, _| !is_gone(notice.kind));
        }
        self.records.retain(|(_, notice), _| !is_gone(notice.kind));
    }

    pub(crate) fn set_route(&mut self, lane: Lane) {
        self.queues.entry(lane.name.clone()).or_default();
        match self.lanes.iter_mut().find(|known| known.name == lane.name) {
            Some(known) => *known = Lane { paused: known.paused, ..lane },
            None => self.lanes.push(lane),
        }
    }

    /// Its cleanups are settled and its queue goes.
    pub(crate) fn drop_route(&mut self, route: &str) {
        self.lanes.retain(|lane| lane.name != route);
        let queue = self.queues.remove(route).unwrap_or_default();
        self.records.retain(|(name, _), _| name != route);
        for notice in queue.into_keys().filter(|notice| notice.kind.is_cleanup()) {
            self.close_if_last(&notice);
        }
    }

    pub(crate) fn pause(&mut self, route: Option<&str>, reminders: bool, cleanups: bool, paused: bool) {
        let stopped = match route {
            None => Some(&mut self.stopped),
            Some(route) => self.lanes.iter_mut().find(|lane| lane.name == route).map(|lane| &mut lane.paused),
        };
        if let Some(stopped) = stopped {
            if reminders {
                stopped.reminders = paused;
            }
            if cleanups {
                stopped.cleanups = paused;
            }
        }
    }
}
