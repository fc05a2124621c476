//! Ack, fail, extend, release.

use std::time::Duration;

use redis::Value;

use crate::model::{Name, span_ms};
use crate::store::notation::{id_of_token, split_token, stored_token, whole};
use crate::store::{Failing, Settled, StoreError, Token, Verdict};

use super::{
    RedisStore,
    codec::Reader,
    connection::Args,
    scope::{Scope, number},
    scripts,
};

impl RedisStore {
    pub(super) async fn ack_all(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
    ) -> Result<Vec<Settled>, StoreError> {
        self.scope_of_route(namespace, route).await?;
        let reader = self.reader(namespace);
        let args = |scope: &Scope, chunk: &[&Token]| {
            let configured = &scope.configured;
            let mut own = vec![
                configured.version.clone().into_bytes(),
                configured.settings.on_rearm.as_str().into(),
                number(scope.route_number(route)?),
                number(configured.settings.history),
                self.manual_now().map(number).unwrap_or_default(),
            ];
            own.extend(groups(chunk));
            Ok(Args { own, ..Args::default() })
        };
        let decode = |value| Ok(if reader.number(value)? == 1 { Settled::Settled } else { Settled::Stale });
        self.ask_each(namespace, &scripts::ACK, tokens, id_of_token, args, decode).await
    }

    pub(super) async fn fail_all(
        &self,
        namespace: &Name,
        route: &Name,
        failing: &[Failing],
    ) -> Result<Vec<Settled>, StoreError> {
        self.scope_of_route(namespace, route).await?;
        let reader = self.reader(namespace);
        let args = |scope: &Scope, chunk: &[&Failing]| {
            let mut own = vec![number(scope.route_number(route)?)];
            own.extend(chunk.iter().flat_map(|failing| record(failing)));
            Ok(scope.args(self.manual_now(), own))
        };
        self.ask_each(
            namespace,
            &scripts::FAIL,
            failing,
            |failing| id_of_token(&failing.token),
            args,
            |word| settled(reader, word),
        )
        .await
    }

    pub(super) async fn extend_all(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
        lease: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        self.scope_of_route(namespace, route).await?;
        let reader = self.reader(namespace);
        let args = |scope: &Scope, chunk: &[&Token]| {
            let own = [number(scope.route_number(route)?), number(span_ms(lease))];
            Ok(scope.args(self.manual_now(), own.into_iter().chain(bytes(chunk))))
        };
        self.ask_each(namespace, &scripts::EXTEND, tokens, id_of_token, args, |word| settled(reader, word)).await
    }

    pub(super) async fn release_all(
        &self,
        namespace: &Name,
        route: &Name,
        tokens: &[Token],
    ) -> Result<Vec<Settled>, StoreError> {
        self.scope_of_route(namespace, route).await?;
        let reader = self.reader(namespace);
        let args = |scope: &Scope, chunk: &[&Token]| {
            let own = [number(scope.route_number(route)?)];
            Ok(scope.args(self.manual_now(), own.into_iter().chain(bytes(chunk))))
        };
        self.ask_each(namespace, &scripts::RELEASE, tokens, id_of_token, args, |word| settled(reader, word)).await
    }
}

/// Tokens as scripts read them.
fn bytes(tokens: &[&Token]) -> impl Iterator<Item = Vec<u8>> {
    tokens.iter().map(|token| stored_token(token).to_vec())
}

/// One failure as the script reads it.
fn record(failing: &Failing) -> [Vec<u8>; 9] {
    let Failing { token, verdict, failure, max_failures, due_at_ms, on_set } = failing;
    let (word, delay) = match verdict {
        Verdict::Backoff(delay) => ("backoff", *delay),
        Verdict::RetryAfter(delay) => ("retry", *delay),
        Verdict::Dead => ("dead", Duration::ZERO),
        Verdict::Review => ("review", Duration::ZERO),
    };
    [
        stored_token(token).to_vec(),
        word.into(),
        number(span_ms(delay)),
        number(max_failures),
        failure.stage.clone().into_bytes(),
        failure.class.as_str().into(),
        failure.summary.clone().into_bytes(),
        number(due_at_ms),
        number(u8::from(*on_set)),
    ]
}

fn settled(reader: Reader<'_>, word: Value) -> Result<Settled, StoreError> {
    let word = reader.text(word)?;
    match word.split_once(':') {
        Some(("retry", at)) => {
            let next_attempt_at_ms = whole(at).ok_or_else(|| reader.odd(format!("no instant: \"{at}\"")))?;
            Ok(Settled::Retry { next_attempt_at_ms })
        }
        Some(("dropped", reason)) => Ok(Settled::Dropped(reader.drop_reason(reason)?)),
        _ => match word.as_str() {
            "settled" => Ok(Settled::Settled),
            "stale" => Ok(Settled::Stale),
            "dead" => Ok(Settled::Dead),
            "review" => Ok(Settled::Review),
            word => Err(reader.odd(format!("unknown word \"{word}\""))),
        },
    }
}

/// Tokens as neighbours that share a fence: the fence, how many, their notices. One claim's tokens share theirs, and the
/// script need not take each apart. What is no token has a fence that nothing has.
fn groups(tokens: &[&Token]) -> Vec<Vec<u8>> {
    let parts: Vec<(u32, &[u8])> = tokens.iter().map(|token| split_token(token).unwrap_or((0, b"-"))).collect();
    let mut args = Vec::with_capacity(parts.len() + 2);
    for group in parts.chunk_by(|(a, _), (b, _)| a == b) {
        args.extend([number(group[0].0), number(group.len())]);
        args.extend(group.iter().map(|(_, notice)| notice.to_vec()));
    }
    args
}
