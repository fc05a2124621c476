//! Claims and what becomes of them.

use std::collections::BTreeMap;

use forewarn::model::{Class, Failure, Name};
use forewarn::store::{Failing, Next, ParkedQuery, Shelf, Token, Verdict};

use super::{Held, World, ms, same};
use crate::ground::beneath;
use crate::ledger::Hand;
use crate::model::Place;
use crate::operation::{Op, Verb};
use crate::snapshot::Snapshot;
use crate::words::{Notice, parse_token, shard_of};

impl World<'_> {
    pub(super) async fn claim(&mut self, route: usize, limit: u32, lease: i64) -> Result<Snapshot, String> {
        let routes = self.model.lanes.len();
        let route = self.model.lanes[route % routes].name.clone();
        let name = Name::new("route", route.clone()).expect("a good name");
        let reply = (self.bench.store.claim(&self.name, &name, limit, ms(lease)).await)
            .map_err(|error| format!("claim: {error}"))?;
        let told: Vec<String> = reply.claims.iter().map(|claim| format!("{:?}", claim.token)).collect();
        self.note(&format_args!("{route}: {} {:?}", told.join(" "), reply.next));
        let store = self.snapshot().await;
        let before = self.model.armed.clone();
        self.model.claim(&route, limit, lease, &reply, &store)?;
        let hand = if self.model.rules.keyed.is_some() { Hand::Raw } else { Hand::Recurrence };
        self.ledger.note_sets(&before, &self.model, hand);
        for claim in &reply.claims {
            self.note_token(&route, &claim.token, &store)?;
        }
        let now = self.model.now;
        let is_drained = match reply.next {
            Next::Backlog => false,
            Next::At { due_at_ms, .. } => due_at_ms.is_none_or(|due_at| due_at > now),
            Next::Paused { .. } => true,
        };
        if is_drained {
            self.ledger.check_drained(&self.model, &route, self.latest)?;
        }
        self.sleeping.insert(route.clone(), is_drained);
        self.held.extend(reply.claims.into_iter().map(|claim| Held {
            route: route.clone(),
            token: claim.token,
            due_at_ms: claim.due_at_ms,
            on_set: claim.on_set,
        }));
        Ok(store)
    }

    /// I5: within 63 claims of a shard no token is given out twice.
    fn note_token(&mut self, route: &str, token: &Token, store: &Snapshot) -> Result<(), String> {
        let bytes = beneath(token);
        let (n, _, notice) = parse_token(&bytes).ok_or("odd token")?;
        let shard = shard_of(&notice.id, self.model.rules.shards);
        let claims = store.claims.get(&shard).copied().unwrap_or_default();
        let last = self.given.insert((route.to_owned(), bytes), claims);
        if last.is_some_and(|last| claims - last < 63) {
            return Err(format!("I5: {token:?} was given out twice within 63 claims"));
        }
        if n == 1 { self.ledger.note_hand_out(&notice, route) } else { Ok(()) }
    }

    pub(super) async fn settle(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Settle { verb, pick, is_stale } => {
                let pool = if *is_stale { &self.spent } else { &self.held };
                if pool.is_empty() {
                    return Ok(());
                }
                let held = pool[usize::from(*pick) % pool.len()].clone();
                self.apply(*verb, &held.route.clone(), vec![held]).await
            }
            Op::SettleAll { verb } => {
                let mut by_route = BTreeMap::<String, Vec<Held>>::new();
                for held in self.held.clone() {
                    by_route.entry(held.route.clone()).or_default().push(held);
                }
                for (route, held) in by_route {
                    self.apply(*verb, &route, held).await?;
                }
                Ok(())
            }
            other => Err(format!("{other:?} settles nothing")),
        }
    }

    async fn apply(&mut self, verb: Verb, route: &str, held: Vec<Held>) -> Result<(), String> {
        let tokens: Vec<Token> = held.iter().map(|held| held.token.clone()).collect();
        let (store, name) = (&self.bench.store, &self.name);
        let lane = Name::new("route", route).expect("a good name");
        let mut expected = Vec::new();
        let verdict = match verb {
            Verb::Backoff(delay) => Some(Verdict::Backoff(ms(delay))),
            Verb::RetryAfter(delay) => Some(Verdict::RetryAfter(ms(delay))),
            Verb::Dead => Some(Verdict::Dead),
            Verb::Review => Some(Verdict::Review),
            _ => None,
        };
        let failing = |verdict| {
            let failing = |held: &Held| Failing {
                token: held.token.clone(),
                verdict,
                failure: Failure::new(Class::Timeout, "too slow"),
                max_failures: 3,
                due_at_ms: held.due_at_ms,
                on_set: held.on_set,
            };
            held.iter().map(failing).collect::<Vec<_>>()
        };
        let answer = match (verb, verdict) {
            (_, Some(verdict)) => store.fail(name, &lane, &failing(verdict)).await,
            (Verb::Ack, _) => store.ack(name, &lane, &tokens).await,
            (Verb::Extend(lease), _) => store.extend(name, &lane, &tokens, ms(lease)).await,
            (Verb::Release, _) => store.release(name, &lane, &tokens).await,
            _ => {
                let answer = store.recheck(name, &lane, &tokens).await.map_err(|error| format!("recheck: {error}"))?;
                let expected = tokens.iter().map(|token| self.model.recheck(route, &beneath(token))).collect();
                self.note(&answer);
                return same("recheck", &answer, &expected);
            }
        };
        let answer = answer.map_err(|error| format!("{verb:?}: {error}"))?;
        for token in &tokens {
            let token = &beneath(token)[..];
            expected.push(match (verb, verdict) {
                (_, Some(verdict)) => self.model.fail(route, token, verdict, 3),
                (Verb::Extend(lease), _) => self.model.extend(route, token, lease),
                (Verb::Release, _) => self.model.release(route, token),
                _ => self.model.ack(route, token),
            });
        }
        self.note(&answer);
        same(&format!("{verb:?}"), &answer, &expected)?;
        if !matches!(verb, Verb::Extend(_)) {
            let gone = |held: &mut Held| held.route == route && tokens.contains(&held.token);
            self.spent.extend(self.held.extract_if(.., gone));
        }
        Ok(())
    }

    pub(super) async fn unpark(&mut self, is_requeue: bool, place: Place, pick: usize) -> Result<(), String> {
        let shelf = if place == Place::Dead { Shelf::Dead } else { Shelf::Review };
        let page = (self.bench.store.parked(&self.name, shelf, &ParkedQuery::default()).await)
            .map_err(|error| format!("parked: {error}"))?;
        let known = self.model.parked.keys().filter(|(at, _, _)| *at == place).count();
        if page.entries.len() != known || page.total != known as u64 {
            return Err(format!("{} of {} parked are listed, {known} are there", page.entries.len(), page.total));
        }
        if page.entries.is_empty() {
            return Ok(());
        }
        let entry = page.entries[pick % page.entries.len()].clone();
        let mut members = self.model.parked.iter().filter(|((at, route, notice), _)| {
            *at == place && *route == entry.route.as_str() && is_same(notice, &entry.notice)
        });
        let Some(((_, route, notice), stored)) = members.next().map(|(key, stored)| (key.clone(), stored.clone()))
        else {
            return Err(format!("{entry:?} is parked and should not be"));
        };
        same("the parked payload", &entry.payload, &stored.payload)?;
        same("the parking", &entry.parked_at_ms, &stored.at)?;
        same("the failures", &entry.failures.len(), &((stored.failures + stored.lapses).min(10) as usize))?;
        let (store, name) = (&self.bench.store, &self.name);
        if is_requeue {
            let answer = store.requeue(name, shelf, &[entry]).await.map_err(|error| format!("requeue: {error}"))?;
            let expected = vec![self.model.requeue(place, &route, &notice)];
            self.ledger.note_requeue(&notice, &route);
            self.note(&answer);
            same("requeue", &answer, &expected)
        } else {
            let answer = store.discard(name, shelf, &[entry]).await.map_err(|error| format!("discard: {error}"))?;
            let expected = vec![self.model.discard(place, &route, &notice)];
            same("discard", &answer, &expected)
        }
    }
}

/// Whether the model and the port mean the same notice.
fn is_same(model: &Notice, port: &forewarn::model::Notice) -> bool {
    let told = (port.kind.to_stored(), port.expires_at_ms, port.id.as_bytes());
    told == (model.kind.text(), model.e.floor(), &model.id[..])
}
