//! Track, replace, renew, remove, expire.

use redis::Pipeline;

use crate::model::{Id, Invalid, Mode, Name, Renew, Track};
use crate::store::plan::check_payload;
use crate::store::{Expired, Removed, Renewed, Replaced, StoreError, Tracked};

use super::{
    RedisStore,
    codec::Reader,
    connection::Args,
    gather::MAX_BYTES,
    keys,
    scope::{Scope, number},
    scripts,
};

impl RedisStore {
    pub(super) async fn track_all(
        &self,
        namespace: &Name,
        mode: Mode,
        entries: &[Track],
    ) -> Result<Vec<Tracked>, StoreError> {
        let scope = self.scope(namespace).await?;
        let reader = self.reader(namespace);
        let rejected: Vec<Option<Invalid>> =
            entries.iter().map(|track| check_payload(scope.settings(), track.payload.as_deref()).err()).collect();
        let good: Vec<&Track> =
            entries.iter().zip(&rejected).filter(|(_, invalid)| invalid.is_none()).map(|(track, _)| track).collect();
        let args = |scope: &Scope, chunk: &[&&Track]| {
            scope.check_managed()?;
            let mut own = vec![mode.as_str().into()];
            for track in chunk {
                own.extend(triple(&track.id, track.expires_at.as_millis(), track.payload.as_deref()));
            }
            Ok(scope.args(self.manual_now(), own))
        };
        let decode = |word| tracked(reader, word);
        let mut tracked = Vec::with_capacity(good.len());
        for part in parts(&good, |track| payload_len(track.payload.as_deref())) {
            tracked.extend(
                self.ask_each(namespace, &scripts::TRACK, part, |track| track.id.as_bytes(), args, decode).await?,
            );
        }
        let mut tracked = tracked.into_iter();
        let merged = rejected.into_iter().map(|invalid| invalid.map(Tracked::Rejected).or_else(|| tracked.next()));
        merged.map(|answer| answer.ok_or_else(|| reader.odd("an answer is missing"))).collect()
    }

    pub(super) async fn replace_one(
        &self,
        namespace: &Name,
        mode: Mode,
        new: &Track,
        old: &Id,
    ) -> Result<Replaced, StoreError> {
        if new.id == *old {
            return Err(Invalid::new("replaces", "names the id itself; name the old id").into());
        }
        let scope = self.scope(namespace).await?;
        if let Err(invalid) = check_payload(scope.settings(), new.payload.as_deref()) {
            return Ok(Replaced { tracked: Tracked::Rejected(invalid), replaced: false });
        }
        let reader = self.reader(namespace);
        let shard = |id: &Id| keys::shard_of(id.as_bytes(), scope.shards());
        if shard(&new.id) == shard(old) {
            let args = |scope: &Scope, (): &()| {
                scope.check_managed()?;
                let mut own = vec![old.as_bytes().to_vec(), mode.as_str().into()];
                own.extend(triple(&new.id, new.expires_at.as_millis(), new.payload.as_deref()));
                Ok(scope.args(self.manual_now(), own))
            };
            let mut replies = self.ask(namespace, &scripts::REPLACE, &[(shard(old), ())], args).await?;
            let mut fields = replies.pop().ok_or_else(|| reader.odd("no reply"))??.into_iter();
            let tracked = tracked(reader, fields.next().unwrap_or_default())?;
            return Ok(Replaced { tracked, replaced: reader.number(fields.next().unwrap_or_default())? == 1 });
        }
        // Two shards: NEW first, so that a crash in between leaves both rather than none.
        let mut new = new.clone();
        if new.payload.is_none() {
            new.payload = self.armed_payload(&scope, old).await?;
        }
        let tracked = self.track_all(namespace, mode, &[new]).await?.pop().ok_or_else(|| reader.odd("no reply"))?;
        if matches!(tracked, Tracked::Exists | Tracked::NoKey | Tracked::Rejected(_)) {
            return Ok(Replaced { tracked, replaced: false });
        }
        let removed = self.remove_all(namespace, std::slice::from_ref(old)).await?;
        Ok(Replaced { tracked, replaced: removed == [Removed::Removed] })
    }

    /// The payload of an id, if it is armed.
    async fn armed_payload(&self, scope: &Scope, id: &Id) -> Result<Option<Vec<u8>>, StoreError> {
        let keys = &scope.keys[usize::from(keys::shard_of(id.as_bytes(), scope.shards()))];
        let mut pipeline = Pipeline::new();
        pipeline.cmd("ZSCORE").arg(&keys[keys::EXP]).arg(id.as_bytes());
        pipeline.cmd("HGET").arg(&keys[keys::PAYLOAD]).arg(id.as_bytes());
        let reader = self.reader(&scope.namespace);
        let mut replies = self.0.connection.pipeline(&pipeline).await?.into_iter();
        let mut read = || reader.bytes(replies.next().unwrap_or_default());
        let (armed, payload) = (read()?, read()?);
        Ok(payload.filter(|_| armed.is_some()))
    }

    pub(super) async fn renew_all(&self, namespace: &Name, entries: &[Renew]) -> Result<Vec<Renewed>, StoreError> {
        let scope = self.scope(namespace).await?;
        let reader = self.reader(namespace);
        let rejected: Vec<Option<Invalid>> =
            entries.iter().map(|renew| check_payload(scope.settings(), renew.payload.as_deref()).err()).collect();
        let good: Vec<&Renew> =
            entries.iter().zip(&rejected).filter(|(_, invalid)| invalid.is_none()).map(|(renew, _)| renew).collect();
        let args = |scope: &Scope, chunk: &[&&Renew]| {
            scope.check_managed()?;
            let mut own = vec![b"renew".to_vec()];
            for renew in chunk {
                own.extend(triple(&renew.id, renew.expires_at.as_millis(), renew.payload.as_deref()));
            }
            Ok(scope.args(self.manual_now(), own))
        };
        let decode = |word| match reader.text(word)?.as_str() {
            "renewed" => Ok(Renewed::Renewed),
            "unchanged" => Ok(Renewed::Unchanged),
            "expired" => Ok(Renewed::Expired),
            "unknown" => Ok(Renewed::Unknown),
            "foreign" => Ok(Renewed::Rejected(foreign())),
            word => Err(reader.odd(format!("unknown word \"{word}\""))),
        };
        let mut renewed = Vec::with_capacity(good.len());
        for part in parts(&good, |renew| payload_len(renew.payload.as_deref())) {
            renewed.extend(
                self.ask_each(namespace, &scripts::RENEW, part, |renew| renew.id.as_bytes(), args, decode).await?,
            );
        }
        let mut renewed = renewed.into_iter();
        let merged = rejected.into_iter().map(|invalid| invalid.map(Renewed::Rejected).or_else(|| renewed.next()));
        merged.map(|answer| answer.ok_or_else(|| reader.odd("an answer is missing"))).collect()
    }

    /// Answers for each id, also why one is refused: several callers may share the call.
    pub(super) async fn remove_each(
        &self,
        namespace: &Name,
        ids: &[Id],
    ) -> Result<Vec<Result<Removed, Invalid>>, StoreError> {
        let reader = self.reader(namespace);
        let decode = |word| match reader.text(word)?.as_str() {
            "removed" => Ok(Ok(Removed::Removed)),
            "voided" => Ok(Ok(Removed::Voided)),
            "unknown" => Ok(Ok(Removed::Unknown)),
            "foreign" => Ok(Err(foreign())),
            word => Err(reader.odd(format!("unknown word \"{word}\""))),
        };
        let args = |scope: &Scope, chunk: &[&Id]| self.ids(scope, chunk);
        self.ask_each(namespace, &scripts::REMOVE, ids, Id::as_bytes, args, decode).await
    }

    pub(super) async fn remove_all(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Removed>, StoreError> {
        let answers = self.remove_each(namespace, ids).await?;
        Ok(answers.into_iter().collect::<Result<_, _>>()?)
    }

    pub(super) async fn expire_all(&self, namespace: &Name, ids: &[Id]) -> Result<Vec<Expired>, StoreError> {
        let reader = self.reader(namespace);
        let decode = |word| match reader.text(word)?.as_str() {
            "ended" => Ok(Expired::Ended),
            "open" => Ok(Expired::Open),
            "unknown" => Ok(Expired::Unknown),
            "foreign" => Err(foreign().into()),
            word => Err(reader.odd(format!("unknown word \"{word}\""))),
        };
        let args = |scope: &Scope, chunk: &[&Id]| self.ids(scope, chunk);
        self.ask_each(namespace, &scripts::EXPIRE, ids, Id::as_bytes, args, decode).await
    }

    fn ids(&self, scope: &Scope, ids: &[&Id]) -> Result<Args, StoreError> {
        scope.check_managed()?;
        Ok(scope.args(self.manual_now(), ids.iter().map(|id| id.as_bytes().to_vec())))
    }
}

pub(super) fn payload_len(payload: Option<&[u8]>) -> usize {
    payload.map_or(0, <[u8]>::len)
}

/// Entries in parts of which none has more payload than one call may have, unless it is a single entry.
fn parts<E>(entries: &[E], bytes_of: impl Fn(&E) -> usize) -> Vec<&[E]> {
    let mut bytes = entries.first().map_or(0, &bytes_of);
    let is_same = |_: &E, next: &E| {
        bytes += bytes_of(next);
        let fits = bytes <= MAX_BYTES;
        if !fits {
            bytes = bytes_of(next);
        }
        fits
    };
    entries.chunk_by(is_same).collect()
}

/// An id that cannot be a key of its namespace. Scripts tell: they know the settings in force.
fn foreign() -> Invalid {
    Invalid::new("id", "matches none of the namespace's key patterns, or is a key of forewarn's own; give another id")
}

/// Id, expiry and payload as scripts read them; a payload that is given is marked, for it may be empty.
fn triple(id: &Id, expires_at_ms: i64, payload: Option<&[u8]>) -> [Vec<u8>; 3] {
    let payload = payload.map_or_else(Vec::new, |bytes| [b"=", bytes].concat());
    [id.as_bytes().to_vec(), number(expires_at_ms), payload]
}

fn tracked(reader: Reader<'_>, word: redis::Value) -> Result<Tracked, StoreError> {
    match reader.text(word)?.as_str() {
        "created" => Ok(Tracked::Created { already_expired: false }),
        "created:already_expired" => Ok(Tracked::Created { already_expired: true }),
        "moved" => Ok(Tracked::Moved { already_expired: false }),
        "moved:already_expired" => Ok(Tracked::Moved { already_expired: true }),
        "unchanged" => Ok(Tracked::Unchanged),
        "exists" => Ok(Tracked::Exists),
        "kept" => Ok(Tracked::Kept),
        "no_key" => Ok(Tracked::NoKey),
        "foreign" => Ok(Tracked::Rejected(foreign())),
        word => Err(reader.odd(format!("unknown word \"{word}\""))),
    }
}
