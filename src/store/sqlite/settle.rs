//! The ends of a claim: ack, fail, extend, release; and the recheck before a handler runs (D1 to D3).

use std::time::Duration;

use crate::model::{FailureRecord, Name, Notice};
use crate::store::{
    Checked, DropReason, Ending, Failing, Settled, Shelf, Token, Verdict,
    notation::{read_notice, split_token},
};

use super::{
    cleanup::Open,
    delivery::{Key, store_kind},
    error::Fault,
    failure::Failures,
    operation::Operation,
    scope::bounded_ms,
};

/// A claim that its token still holds.
struct Held {
    notice: Notice,
    kind: i64,
    at: i64,
    failures: Option<String>,
}

impl Held {
    fn key(&self) -> Key<'_> {
        Key { kind: self.kind, e: self.notice.expires_at_ms, id: self.notice.id.as_bytes() }
    }
}

impl Operation<'_> {
    pub(super) fn ack(&self, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, Fault> {
        self.scope.lane(route)?;
        let mut acked = 0;
        let mut answers = Vec::with_capacity(tokens.len());
        for token in tokens {
            let is_settled = self.ack_one(route, token)?;
            acked += u64::from(is_settled);
            answers.push(if is_settled { Settled::Settled } else { Settled::Stale });
        }
        self.count("acked", acked)?;
        Ok(answers)
    }

    fn ack_one(&self, route: &Name, token: &Token) -> Result<bool, Fault> {
        let Some(held) = self.held(route, token)? else { return Ok(false) };
        let key = held.key();
        let open = if key.is_cleanup() { self.open_of(key.id)? } else { None };
        self.drop_void(route.as_str(), key, open)?;
        let is_settled = !key.is_cleanup() || self.scope.delivers || open.is_some_and(|open| open.names(key));
        let ending = if is_settled { Ending::Delivered } else { Ending::Superseded };
        self.remember(ending, Some(route.as_str()), key)?;
        Ok(is_settled)
    }

    pub(super) fn fail(&mut self, route: &Name, failing: &[Failing]) -> Result<Vec<Settled>, Fault> {
        self.scope.lane(route)?;
        let answers = failing.iter().map(|failing| self.fail_one(route, failing)).collect::<Result<Vec<_>, _>>()?;
        let total = |counts: fn(&Settled) -> bool| answers.iter().filter(|answer| counts(answer)).count() as u64;
        self.count("dead", total(|answer| *answer == Settled::Dead))?;
        self.count("review", total(|answer| *answer == Settled::Review))?;
        self.count("failed", total(|answer| !matches!(answer, Settled::Stale | Settled::Dropped(_))))?;
        self.wake_route(route)?;
        Ok(answers)
    }

    fn fail_one(&mut self, route: &Name, failing: &Failing) -> Result<Settled, Fault> {
        let Some(held) = self.held(route, &failing.token)? else { return Ok(Settled::Stale) };
        let key = held.key();
        let (armed, open) = (self.armed(key.id)?, self.open_of(key.id)?);
        if let Some(reason) = self.reason_to_drop(key, armed, open) {
            return self.drop_as(route, key, open, reason).map(Settled::Dropped);
        }
        let mut failures = Failures::read(self, held.failures.as_deref())?;
        failures.failures += 1;
        let delay = match failing.verdict {
            Verdict::Review | Verdict::Dead => None,
            _ if failures.failures >= failing.max_failures => None,
            Verdict::Backoff(delay) if !key.is_cleanup() => Some(bounded_ms(delay).min(self.quarter_of_window(key))),
            Verdict::Backoff(delay) | Verdict::RetryAfter(delay) => Some(bounded_ms(delay)),
        };
        let next_attempt_at_ms = delay.map(|delay| self.now + delay);
        failures.add(FailureRecord {
            at_ms: self.now,
            attempt: failures.failures + failures.lapses,
            stage: failing.failure.stage.clone(),
            class: failing.failure.class,
            summary: failing.failure.summary.clone(),
            next_attempt_at_ms,
        });
        let Some(next_attempt_at_ms) = next_attempt_at_ms else {
            let (shelf, answer) = match failing.verdict {
                Verdict::Review => (Shelf::Review, Settled::Review),
                _ => (Shelf::Dead, Settled::Dead),
            };
            self.park(shelf, route.as_str(), key, open, &failures)?;
            return Ok(answer);
        };
        self.desk.run(
            "UPDATE due SET at = ?6, claim = 0, due_at = ?7, on_set = ?8, failures = ?9
             WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4 AND route = ?5",
            (
                self.scope.key,
                key.id,
                key.e,
                key.kind,
                route.as_str(),
                next_attempt_at_ms,
                failing.due_at_ms,
                failing.on_set,
                failures.write(self)?,
            ),
        )?;
        self.comes_due(next_attempt_at_ms);
        Ok(Settled::Retry { next_attempt_at_ms })
    }

    /// A quarter of the time in which a reminder may still speak.
    fn quarter_of_window(&self, key: Key<'_>) -> i64 {
        let next = self.leads.iter().find(|lead| lead.ms == key.kind).map_or(0, |lead| lead.next);
        (key.e - next - self.now).div_euclid(4)
    }

    pub(super) fn extend(&self, route: &Name, tokens: &[Token], lease: Duration) -> Result<Vec<Settled>, Fault> {
        self.scope.lane(route)?;
        let until = self.now + bounded_ms(lease);
        let extend = |token| {
            let Some(held) = self.held(route, token)? else { return Ok(Settled::Stale) };
            let key = held.key();
            // The window of a reminder may close while its handler runs; the handler goes on.
            if key.is_cleanup() {
                let (armed, open) = (self.armed(key.id)?, self.open_of(key.id)?);
                if let Some(reason) = self.reason_to_drop(key, armed, open) {
                    return self.drop_as(route, key, open, reason).map(Settled::Dropped);
                }
            }
            self.hold_until(route, &held, held.at.max(until))?;
            Ok(Settled::Settled)
        };
        tokens.iter().map(extend).collect()
    }

    fn hold_until(&self, route: &Name, held: &Held, at: i64) -> Result<(), Fault> {
        let key = held.key();
        self.desk.run(
            "UPDATE due SET at = ?6 WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4 AND route = ?5",
            (self.scope.key, key.id, key.e, key.kind, route.as_str(), at),
        )?;
        Ok(())
    }

    pub(super) fn release(&mut self, route: &Name, tokens: &[Token]) -> Result<Vec<Settled>, Fault> {
        self.scope.lane(route)?;
        let answers = tokens.iter().map(|token| self.release_one(route, token)).collect::<Result<_, _>>()?;
        self.wake_route(route)?;
        Ok(answers)
    }

    fn release_one(&mut self, route: &Name, token: &Token) -> Result<Settled, Fault> {
        let Some(held) = self.held(route, token)? else { return Ok(Settled::Stale) };
        let key = held.key();
        let (armed, open) = (self.armed(key.id)?, self.open_of(key.id)?);
        if let Some(reason) = self.reason_to_drop(key, armed, open) {
            return self.drop_as(route, key, open, reason).map(Settled::Dropped);
        }
        self.desk.run(
            "UPDATE due SET at = ?6, claim = 0
             WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4 AND route = ?5",
            (self.scope.key, key.id, key.e, key.kind, route.as_str(), self.now),
        )?;
        self.comes_due(self.now);
        Ok(Settled::Settled)
    }

    pub(super) fn recheck(&self, route: &Name, tokens: &[Token]) -> Result<Vec<Checked>, Fault> {
        self.scope.lane(route)?;
        let check = |token| {
            let Some(held) = self.held(route, token)? else { return Ok(Checked::Stale) };
            let key = held.key();
            let (armed, open) = (self.armed(key.id)?, self.open_of(key.id)?);
            // Only whether it is void is asked: a window that has closed since the claim does not matter.
            if !key.is_cleanup() && armed == Some(key.e) {
                return Ok(Checked::Current);
            }
            match self.reason_to_drop(key, armed, open) {
                Some(reason) => self.drop_as(route, key, open, reason).map(Checked::Dropped),
                None => Ok(Checked::Current),
            }
        };
        tokens.iter().map(check).collect()
    }

    /// The delivery a token holds, if it is still the current one. What is no token holds nothing.
    fn held(&self, route: &Name, token: &Token) -> Result<Option<Held>, Fault> {
        let parts = split_token(token).and_then(|(fence, stored)| {
            let notice = read_notice(&self.scope.namespace, stored)?;
            Some((i64::from(fence), notice))
        });
        let Some((fence, notice)) = parts.filter(|(fence, _)| fence % 64 != 0) else { return Ok(None) };
        let kind = store_kind(notice.kind);
        let found = self.desk.row(
            "SELECT at, failures FROM due
             WHERE namespace = ?1 AND id = ?2 AND expires_at = ?3 AND kind = ?4 AND route = ?5
               AND hand_outs = ?6 AND claim = ?7",
            (self.scope.key, notice.id.as_bytes(), notice.expires_at_ms, kind, route.as_str(), fence / 64, fence % 64),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        Ok(found.map(|(at, failures)| Held { notice, kind, at, failures }))
    }

    fn drop_as(&self, route: &Name, key: Key<'_>, open: Option<Open>, reason: DropReason) -> Result<DropReason, Fault> {
        self.drop_void(route.as_str(), key, open)?;
        self.remember(reason.into(), Some(route.as_str()), key)?;
        let name = match reason {
            DropReason::Superseded => "superseded",
            DropReason::Expired => "expired",
            DropReason::Coalesced => "coalesced",
            DropReason::Lead => "lead",
        };
        self.count(name, 1)?;
        Ok(reason)
    }
}
