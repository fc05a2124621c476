//! Script calls under settings that may change at any time: a shard that knows other ones is asked again.

use std::sync::{Arc, PoisonError};

use redis::Value;

use crate::model::Name;
use crate::store::StoreError;

use super::{
    RedisStore,
    connection::{Args, Call},
    keys,
    scope::Scope,
    scripts::Operation,
};

/// How often a call follows settings that change under it.
pub(super) const MAX_RELOADS: usize = 8;
/// The most entries in one script call: a longer one would hold the server up.
const MAX_BATCH: usize = 500;

impl RedisStore {
    /// The namespace as last seen, or read now.
    pub(super) async fn scope(&self, namespace: &Name) -> Result<Arc<Scope>, StoreError> {
        let known = self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner).get(namespace).cloned();
        match known {
            Some(scope) => Ok(scope),
            None => self.reload(namespace).await,
        }
    }

    /// The namespace and the number of a route that somebody else may have just added.
    pub(super) async fn scope_of_route(
        &self,
        namespace: &Name,
        route: &Name,
    ) -> Result<(Arc<Scope>, usize), StoreError> {
        let scope = self.scope(namespace).await?;
        if let Ok(number) = scope.route_number(route) {
            return Ok((scope, number));
        }
        let scope = self.reload(namespace).await?;
        let number = scope.route_number(route)?;
        Ok((scope, number))
    }

    pub(super) async fn reload(&self, namespace: &Name) -> Result<Arc<Scope>, StoreError> {
        let read = self.read_configured(namespace).await;
        let mut scopes = self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(configured) => {
                let scope = Arc::new(Scope::new(&self.0.prefix, namespace, configured));
                scopes.insert(namespace.clone(), Arc::clone(&scope));
                Ok(scope)
            }
            Err(error) => {
                if matches!(error, StoreError::Unconfigured { .. }) {
                    scopes.remove(namespace);
                }
                Err(error)
            }
        }
    }

    /// Runs `operation` for each request on its shard, all in one round trip, and answers for each what follows the word `ok`.
    ///
    /// A shard that knows other settings than we do is asked again under those in force; one that is behind shard 0 is
    /// brought up first. `args` makes the arguments of a request under the settings it is given.
    pub(super) async fn ask<T>(
        &self,
        namespace: &Name,
        operation: &Operation,
        requests: &[(u16, T)],
        args: impl Fn(&Scope, &T) -> Result<Args, StoreError>,
    ) -> Result<Vec<Result<Vec<Value>, StoreError>>, StoreError> {
        let reader = self.reader(namespace);
        let mut answers: Vec<Option<Result<Vec<Value>, StoreError>>> = requests.iter().map(|_| None).collect();
        let mut scope = self.scope(namespace).await?;
        for _ in 0..MAX_RELOADS {
            let pending: Vec<usize> = (0..requests.len()).filter(|at| answers[*at].is_none()).collect();
            if pending.is_empty() {
                break;
            }
            let mut calls = Vec::with_capacity(pending.len());
            for at in &pending {
                let (shard, request) = &requests[*at];
                let keys =
                    scope.keys.get(usize::from(*shard)).ok_or_else(|| reader.odd(format!("no shard {shard}")))?;
                calls.push(Call { keys: Arc::clone(keys), args: args(&scope, request)? });
            }
            let mut behind = Vec::new();
            for (at, reply) in pending
                .into_iter()
                .zip(self.0.connection.run(operation.script(scope.settings().key_backed), &calls).await?)
            {
                match reply {
                    Err(error) => answers[at] = Some(Err(error)),
                    Ok(value) => {
                        let mut list = reader.list(value)?;
                        if list.is_empty() {
                            return Err(reader.odd("an empty reply"));
                        }
                        match reader.text(list.remove(0))?.as_str() {
                            "ok" => answers[at] = Some(Ok(list)),
                            "reload" | "unconfigured" => behind.push(requests[at].0),
                            word => return Err(reader.odd(format!("unknown word \"{word}\""))),
                        }
                    }
                }
            }
            if !behind.is_empty() {
                let fresh = self.reload(namespace).await?;
                if fresh.configured.version == scope.configured.version {
                    self.bring_up(&fresh, &behind).await?;
                }
                scope = fresh;
            }
        }
        let conflict = || StoreError::Conflict {
            namespace: namespace.clone(),
            reason: "they keep changing; try again".to_owned(),
        };
        answers.into_iter().map(|answer| answer.ok_or_else(conflict)).collect()
    }

    /// [`RedisStore::ask`] for batches: entries are sent to their shards and answered in the order given.
    pub(super) async fn ask_each<E, A>(
        &self,
        namespace: &Name,
        operation: &Operation,
        entries: &[E],
        id: impl Fn(&E) -> &[u8],
        args: impl Fn(&Scope, &[&E]) -> Result<Args, StoreError>,
        decode: impl Fn(Value) -> Result<A, StoreError>,
    ) -> Result<Vec<A>, StoreError> {
        let shards = self.scope(namespace).await?.shards();
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); usize::from(shards)];
        for (at, entry) in entries.iter().enumerate() {
            parts[usize::from(keys::shard_of(id(entry), shards))].push(at);
        }
        let mut requests = Vec::new();
        for (shard, part) in (0..).zip(&parts) {
            requests.extend(part.chunks(MAX_BATCH).map(|chunk| (shard, chunk)));
        }
        let pick = |chunk: &[usize]| chunk.iter().map(|at| &entries[*at]).collect::<Vec<&E>>();
        let replies = self.ask(namespace, operation, &requests, |scope, chunk| args(scope, &pick(chunk))).await?;
        let mut answers: Vec<Option<A>> = entries.iter().map(|_| None).collect();
        let reader = self.reader(namespace);
        for ((_, chunk), reply) in requests.iter().zip(replies) {
            let list = reply?.into_iter().next().ok_or_else(|| reader.odd("no answers"))?;
            for (at, value) in chunk.iter().zip(reader.list(list)?) {
                answers[*at] = Some(decode(value)?);
            }
        }
        answers.into_iter().map(|answer| answer.ok_or_else(|| reader.odd("an answer is missing"))).collect()
    }
}
