//! Claim and recheck.

use std::{sync::atomic::Ordering, time::Duration};

use redis::{Pipeline, Value};

use crate::model::{Kind, Name, Notice, span_ms};
use crate::store::notation::{id_of_notice, id_of_token, split_token, stored_token, whole};
use crate::store::recurrence::next_by_cron;
use crate::store::{Checked, Claims, Dropped, Next, StoreError, Token};

use super::{
    RedisStore,
    codec::Reader,
    hand_out::read_hand_outs,
    keys,
    scope::{Scope, number},
    scripts,
};

/// The most notices one claim takes: a script that takes 2,000 holds the server up for about 5 ms.
const MAX_CLAIM: u32 = 500;

/// A recurring id whose next expiry the script cannot compute: its id, its expiry and the one after it ("" if none).
type NextByCron = [Vec<u8>; 3];

impl RedisStore {
    pub(super) async fn claim_due(
        &self,
        namespace: &Name,
        route: &Name,
        limit: u32,
        lease: Duration,
    ) -> Result<Claims, StoreError> {
        let limit = limit.min(MAX_CLAIM);
        let mut crons: Vec<Vec<NextByCron>> = Vec::new();
        let mut claims = self.claim_once(namespace, route, limit, lease, &mut crons).await?;
        // Ids that recur by a cron expression were left where they are; now their next expiry is known.
        if crons.iter().any(|shard| !shard.is_empty()) {
            let left = limit.saturating_sub(u32::try_from(claims.claims.len()).unwrap_or(u32::MAX)).max(1);
            match self.claim_once(namespace, route, left.min(limit), lease, &mut crons).await {
                Ok(more) => claims.merge(more),
                // What the first call claimed is ours and must not be lost with the second.
                Err(error) => claims.faults.push(error),
            }
        }
        Ok(claims)
    }

    async fn claim_once(
        &self,
        namespace: &Name,
        route: &Name,
        limit: u32,
        lease: Duration,
        crons: &mut Vec<Vec<NextByCron>>,
    ) -> Result<Claims, StoreError> {
        let shards = self.scope_of_route(namespace, route).await?.0.shards();
        crons.resize(usize::from(shards), Vec::new());
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
        let requests: Vec<(u16, u32)> = (0..shards).map(|shard| (shard, part(limit, shards, shard, turn))).collect();
        let known = std::mem::take(crons);
        let args = |scope: &Scope, share: &u32, shard: usize| {
            let mut own = vec![
                number(scope.route_number(route)?),
                number(share),
                number(span_ms(lease)),
                number(span_ms(self.0.max_poll)),
                number(scope.settings().max_deliveries),
            ];
            own.extend(known.get(shard).into_iter().flatten().flatten().cloned());
            Ok(scope.args(self.manual_now(), own))
        };
        let indexed: Vec<(u16, (u32, usize))> =
            requests.iter().map(|(shard, share)| (*shard, (*share, usize::from(*shard)))).collect();
        let replies =
            self.ask(namespace, &scripts::CLAIM, &indexed, |scope, (share, shard)| args(scope, share, *shard)).await?;
        crons.resize(usize::from(shards), Vec::new());
        let grace_ms = span_ms(self.scope(namespace).await?.settings().grace);
        let mut all: Option<Claims> = None;
        let mut faults = Vec::new();
        for ((shard, _), reply) in requests.into_iter().zip(replies) {
            let decoded = reply.and_then(|fields| decode(self.reader(namespace), fields, grace_ms));
            match decoded {
                Ok((claims, unresolved)) => {
                    crons[usize::from(shard)] = unresolved;
                    match &mut all {
                        Some(all) => all.merge(claims),
                        None => all = Some(claims),
                    }
                }
                Err(error) => faults.push(error),
            }
        }
        match (all, faults.pop()) {
            (Some(mut claims), fault) => {
                claims.faults.extend(fault.into_iter().chain(faults));
                Ok(claims)
            }
            (None, Some(fault)) => Err(fault),
            (None, None) => Err(self.0.connection.odd("no shard answered")),
        }
    }

    pub(super) async fn recheck_all(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
    ) -> Result<Vec<Checked>, StoreError> {
        // D3: two plain reads say of nearly all that they are current; only the others go to the script.
        let suspects = self.suspects(namespace, route, tokens).await?;
        let mut answers = vec![Checked::Current; tokens.len()];
        let asked: Vec<&Token> = suspects.iter().map(|at| &tokens[*at]).collect();
        let reader = self.reader(namespace);
        let decode = |word| match reader.text(word)?.as_str() {
            "current" => Ok(Checked::Current),
            "stale" => Ok(Checked::Stale),
            word => match word.strip_prefix("dropped:") {
                Some(reason) => Ok(Checked::Dropped(reader.drop_reason(reason)?)),
                None => Err(reader.odd(format!("unknown word \"{word}\""))),
            },
        };
        let args = |scope: &Scope, chunk: &[&&Token]| {
            let own = chunk.iter().map(|token| stored_token(token).to_vec());
            Ok(scope.args(self.manual_now(), std::iter::once(number(scope.route_number(route)?)).chain(own)))
        };
        let checked =
            self.ask_each(namespace, &scripts::RECHECK, &asked, |token| id_of_token(token), args, decode).await?;
        for (at, answer) in suspects.into_iter().zip(checked) {
            answers[at] = answer;
        }
        Ok(answers)
    }

    /// The places of tokens that do not look as they did when they were claimed.
    async fn suspects(&self, namespace: &Name, route: &Name, tokens: &[Token]) -> Result<Vec<usize>, StoreError> {
        let (scope, route) = self.scope_of_route(namespace, route).await?;
        let reader = self.reader(namespace);
        let mut pipeline = Pipeline::new();
        let (mut parts, mut suspects) = (Vec::new(), Vec::new());
        for (at, token) in tokens.iter().enumerate() {
            let read = split_token(token).and_then(|(fence, notice)| Some((fence, notice, id_of_notice(notice)?)));
            let Some((fence, notice, id)) = read else {
                suspects.push(at);
                continue;
            };
            let keys = &scope.keys[usize::from(keys::shard_of(id, scope.shards()))];
            pipeline.cmd("ZSCORE").arg(&keys[keys::SHARD_KEYS.len() + route - 1]).arg(notice);
            pipeline.cmd("ZSCORE").arg(&keys[keys::EXP]).arg(id);
            pipeline.cmd("HGET").arg(&keys[keys::OPEN]).arg(id);
            let is_key = scope.settings().key_backed && scope.is_key(id);
            if is_key {
                pipeline.cmd("PEXPIRETIME").arg(id);
            }
            parts.push((at, fence, notice, is_key));
        }
        if parts.is_empty() {
            return Ok(suspects);
        }
        let mut replies = self.0.connection.pipeline(&pipeline).await?.into_iter();
        let mut next = || replies.next().unwrap_or_default();
        let number = |bytes: Option<Vec<u8>>| -> Option<f64> { std::str::from_utf8(&bytes?).ok()?.parse().ok() };
        for (at, fence, notice, is_key) in parts {
            let (queued, armed) = (number(reader.bytes(next())?), number(reader.bytes(next())?));
            let entry = reader.bytes(next())?;
            let key_expiry = if is_key { Some(reader.number(next())?) } else { None };
            let is_current = fence % 64 != 0
                && queued.is_some_and(|queued| (queued.rem_euclid(1.0) * 1024.0 - f64::from(fence)).abs() < 0.5);
            let looks_valid = match reader.notice(notice)?.kind {
                Kind::Reminder(_) => armed.is_some_and(|armed| stored_e(notice) == Some(armed)),
                Kind::Cleanup(_) => {
                    armed.is_none() && entry.is_some_and(|entry| notice.starts_with(&[&entry[..], b":"].concat()))
                }
            };
            let key_agrees = match (key_expiry, reader.notice(notice)?) {
                (None, _) => true,
                (Some(at), Notice { kind: Kind::Reminder(_), expires_at_ms, .. }) => at == expires_at_ms,
                // PEXPIRETIME of a key that does not exist.
                (Some(at), _) => at == -2,
            };
            if !is_current || !looks_valid || !key_agrees {
                suspects.push(at);
            }
        }
        Ok(suspects)
    }
}

impl Claims {
    fn merge(&mut self, other: Self) {
        let Self { now_ms, claims, next, dropped, quarantined, lapsed, faults } = other;
        self.now_ms = self.now_ms.min(now_ms);
        self.claims.extend(claims);
        self.next = self.next.sooner(next);
        self.dropped.superseded += dropped.superseded;
        self.dropped.expired += dropped.expired;
        self.dropped.coalesced += dropped.coalesced;
        self.dropped.lead += dropped.lead;
        self.quarantined += quarantined;
        self.lapsed += lapsed;
        self.faults.extend(faults);
    }
}

impl Next {
    fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Backlog, _) | (_, Self::Backlog) => Self::Backlog,
            (Self::Paused { poll_at_ms: a }, Self::Paused { poll_at_ms: b }) => Self::Paused { poll_at_ms: a.min(b) },
            (Self::At { due_at_ms, poll_at_ms: a }, Self::Paused { poll_at_ms: b })
            | (Self::Paused { poll_at_ms: b }, Self::At { due_at_ms, poll_at_ms: a }) => {
                Self::At { due_at_ms, poll_at_ms: a.min(b) }
            }
            (Self::At { due_at_ms: a, poll_at_ms: poll_a }, Self::At { due_at_ms: b, poll_at_ms: poll_b }) => {
                let due_at_ms = a.into_iter().chain(b).min();
                Self::At { due_at_ms, poll_at_ms: poll_a.min(poll_b) }
            }
        }
    }
}

/// A shard's part of a limit: equal parts, the odd ones going round.
pub(super) fn part(limit: u32, shards: u16, shard: u16, turn: usize) -> u32 {
    let shards = u32::from(shards);
    let turn = u32::try_from(turn % usize::try_from(shards).unwrap_or(1)).unwrap_or_default();
    let place = (u32::from(shard) + shards - turn) % shards;
    limit / shards + u32::from(place < limit % shards)
}

/// The expiry in a stored notice, compared as a number.
fn stored_e(notice: &[u8]) -> Option<f64> {
    std::str::from_utf8(notice.splitn(3, |byte| *byte == b':').nth(1)?).ok()?.parse().ok()
}

fn decode(reader: Reader<'_>, fields: Vec<Value>, grace_ms: i64) -> Result<(Claims, Vec<NextByCron>), StoreError> {
    let mut fields = fields.into_iter();
    let mut field = || fields.next().unwrap_or_default();
    let now_ms = reader.number(field())?;
    let state = reader.text(field())?;
    let due = reader.text(field())?;
    let poll_at_ms = reader.number(field())?;
    let next = match state.as_str() {
        "backlog" => Next::Backlog,
        "paused" => Next::Paused { poll_at_ms },
        _ => Next::At { due_at_ms: whole(&due), poll_at_ms },
    };
    let (superseded, expired, coalesced, lead) =
        (reader.count(field())?, reader.count(field())?, reader.count(field())?, reader.count(field())?);
    let dropped = Dropped { superseded, expired, coalesced, lead };
    let (quarantined, lapsed) = (reader.count(field())?, reader.count(field())?);
    let fence = reader.number(field())?;
    let claims = read_hand_outs(reader, grace_ms, fence, [field(), field(), field()])?;
    let mut unresolved = Vec::new();
    let mut crons = reader.list(field())?.into_iter();
    while let Some(id) = crons.next() {
        let id = reader.some_bytes(id)?;
        let e = reader.text(crons.next().unwrap_or_default())?;
        let spec = reader.text(crons.next().unwrap_or_default())?;
        let next = next_by_cron(&spec, now_ms);
        if next.is_none() {
            tracing::warn!(period = %spec, "a recurring id has no next expiry by this expression; it does not recur any more");
        }
        unresolved.push([id, e.into_bytes(), next.map_or_else(Vec::new, |next| number(next.as_millis()))]);
    }
    let claims = Claims { now_ms, claims, next, dropped, quarantined, lapsed, faults: Vec::new() };
    Ok((claims, unresolved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_shards_add_up_to_the_limit_and_go_round() {
        for (limit, shards) in [(1, 1), (1, 3), (100, 32), (5, 3), (0, 4)] {
            for turn in 0..7 {
                let total: u32 = (0..shards).map(|shard| part(limit, shards, shard, turn)).sum();
                assert_eq!(total, limit, "{limit} over {shards} in turn {turn}");
            }
        }
        let first: Vec<u16> = (0..3).map(|turn| (0..3).find(|shard| part(1, 3, *shard, turn) == 1).unwrap()).collect();
        assert_eq!(first, [0, 1, 2]);
    }
}
