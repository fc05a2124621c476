//! I7: the store holds exactly what the model says.

use std::{collections::BTreeMap, fmt::Debug};

use super::Model;
use crate::snapshot::{Snapshot, Square};
use crate::words::{Bytes, Notice};

impl Model {
    /// Compares everything stored; then takes over what the contract leaves to the store.
    pub(crate) fn compare(&mut self, store: &Snapshot) -> Result<(), String> {
        let mut wrong = Vec::new();
        differ(&mut wrong, "exp", &self.armed, &store.armed);
        let queues: BTreeMap<&String, BTreeMap<&Notice, Square>> = (self.queues.iter())
            .map(|(route, queue)| {
                (
                    route,
                    queue.iter().map(|(notice, delivery)| (notice, (delivery.at, delivery.n, delivery.c))).collect(),
                )
            })
            .collect();
        for (route, expected) in &queues {
            let found = store.queues.get(*route).cloned().unwrap_or_default();
            let found: BTreeMap<&Notice, Square> = found.iter().map(|(notice, square)| (notice, *square)).collect();
            differ(&mut wrong, &format!("due:{route}"), expected, &found);
        }
        differ(&mut wrong, "open", &self.open, &store.open);
        let mut payloads = self.payloads.clone();
        payloads.extend(self.moved.iter().map(|(notice, payload)| (notice.to_bytes(), payload.clone())));
        differ(&mut wrong, "payload", &payloads, &store.payloads);
        differ(&mut wrong, "fail", &self.records, &store.records);
        differ(&mut wrong, "every", &self.every, &store.every);
        differ(&mut wrong, "bad", &self.bad, &store.bad);
        differ(&mut wrong, "dead and review", &self.parked, &store.parked);
        let until: BTreeMap<_, _> = self.crossed.iter().filter(|(_, until)| **until > self.now).collect();
        let found: BTreeMap<_, _> = store.crossed.iter().filter(|(_, until)| **until > self.now).collect();
        differ(&mut wrong, "crossed", &until, &found);
        differ(&mut wrong, "the keys", &self.keys, &store.keys);
        if self.looked != store.looked {
            wrong.push(format!("{:?} is counted, not {:?}", store.looked, self.looked));
        }
        self.compare_marks(store, &mut wrong);
        if self.frontiers != store.frontiers {
            differ(&mut wrong, "cur", &self.frontiers, &store.frontiers);
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// A mark counts while its id is armed with that very expiry and the sweep has not come by; any other may go or stay.
    fn compare_marks(&mut self, store: &Snapshot, wrong: &mut Vec<String>) {
        let counts =
            |place: &(i64, Bytes), e| self.armed.get(&place.1) == Some(e) && !self.is_swept(place.0, *e, &place.1);
        let expected: BTreeMap<_, _> = self.silent.iter().filter(|(place, e)| counts(place, e)).collect();
        let found: BTreeMap<_, _> = store.silent.iter().filter(|(place, e)| counts(place, e)).collect();
        differ(wrong, "skip", &expected, &found);
        self.silent.clone_from(&store.silent);
    }

    /// Nothing of any life is left over, when all is settled.
    pub(crate) fn check_empty(&self, store: &Snapshot) -> Result<(), String> {
        let mut wrong = Vec::new();
        let nothing = BTreeMap::new();
        for (route, queue) in &store.queues {
            differ(&mut wrong, &format!("due:{route}"), &BTreeMap::new(), queue);
        }
        differ(&mut wrong, "open", &BTreeMap::new(), &store.open);
        differ(&mut wrong, "skip", &BTreeMap::new(), &store.silent);
        differ(&mut wrong, "crossed", &BTreeMap::new(), &store.crossed);
        differ(&mut wrong, "fail", &BTreeMap::new(), &store.records);
        let moved: BTreeMap<_, _> = store
            .payloads
            .iter()
            .filter(|(field, _)| self.moved.keys().any(|notice| notice.to_bytes() == **field))
            .collect();
        differ(&mut wrong, "moved payloads", &nothing, &moved);
        if wrong.is_empty() { Ok(()) } else { Err(format!("I7: left over when all is settled\n{}", wrong.join("\n"))) }
    }
}

/// Says what is missing and what is too much, entry by entry.
fn differ<K: Ord + Debug, V: PartialEq + Debug>(
    wrong: &mut Vec<String>,
    what: &str,
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
) {
    for (key, value) in expected {
        match found.get(key) {
            None => wrong.push(format!("I7: {what} lacks {key:?} = {value:?}")),
            Some(other) if other != value => wrong.push(format!("I7: {what} holds {key:?} = {other:?}, not {value:?}")),
            Some(_) => {}
        }
    }
    for (key, value) in found {
        if !expected.contains_key(key) {
            wrong.push(format!("I7: {what} holds {key:?} = {value:?}, which should not be there"));
        }
    }
}
