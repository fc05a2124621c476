//! Settings and routes: reading, changing, previewing, pausing; and the server's clock and version.

use std::{
    num::NonZeroU32,
    sync::{Arc, PoisonError},
};

use redis::{Cmd, Pipeline, Value};

use crate::model::{FirstStart, IdKey, LeadTime, Name, Pause, Paused};
use crate::store::plan;
use crate::store::{Applied, Change, Configured, Preview, Registered, StoreError};

use super::{
    RedisStore,
    claim::part,
    connection::{Call, Connection},
    keys,
    scope::{Scope, number},
    scripts,
};

/// Refuses servers older than Redis 7.0 or Valkey 7.2.
pub(super) async fn check_server(connection: &Connection) -> Result<(), StoreError> {
    let reply = connection.command(Cmd::new().arg("INFO").arg("server")).await?;
    let info = match &reply {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::VerbatimString { text, .. } => text.clone(),
        other => return Err(connection.odd(format!("INFO expected, got {other:?}"))),
    };
    // Valkey names the Redis version it is compatible with in this very field, so one check serves both.
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default().trim();
    let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default();
    if major < 7 {
        return Err(connection.odd(format!("it is version {version}; Redis 7.0 or Valkey 7.2 is needed")));
    }
    Ok(())
}

impl RedisStore {
    pub(super) async fn read_now(&self) -> Result<i64, StoreError> {
        let time = match self.0.connection.command(Cmd::new().arg("TIME")).await? {
            Value::Array(parts) => {
                parts.into_iter().map(redis::from_redis_value::<i64>).collect::<Result<Vec<i64>, _>>()
            }
            other => return Err(self.0.connection.odd(format!("TIME expected, got {other:?}"))),
        };
        match time.as_deref() {
            Ok([seconds, micros]) => Ok(seconds * 1000 + micros / 1000),
            _ => Err(self.0.connection.odd("TIME is no pair of numbers")),
        }
    }

    pub(super) async fn read_namespaces(&self) -> Result<Vec<Registered>, StoreError> {
        let reply = self.0.connection.command(Cmd::new().arg("HGETALL").arg(keys::registry(&self.0.prefix))).await?;
        let fields: Vec<(String, String)> =
            redis::from_redis_value(reply).map_err(|error| self.0.connection.odd(error.to_string()))?;
        let mut namespaces = Vec::with_capacity(fields.len());
        for (name, entry) in fields {
            let shards = entry.split(' ').next().and_then(|shards| shards.parse().ok());
            let shards =
                shards.ok_or_else(|| self.0.connection.odd(format!("the registry says \"{entry}\" of {name}")))?;
            namespaces.push(Registered { name: Name::new("namespace", name)?, shards });
        }
        namespaces.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(namespaces)
    }

    /// Reads settings, routes and pauses from shard 0.
    pub(super) async fn read_configured(&self, namespace: &Name) -> Result<Arc<Configured>, StoreError> {
        let meta = format!("{}meta", keys::stem(&self.0.prefix, namespace, 0));
        let mut command = Cmd::new();
        command
            .arg("HMGET")
            .arg(meta)
            .arg("version")
            .arg("settings")
            .arg("routes")
            .arg("paused:reminders")
            .arg("paused:cleanups")
            .arg("id_key");
        let reader = self.reader(namespace);
        let mut fields = reader.list(self.0.connection.command(&command).await?)?.into_iter();
        let mut field = || reader.bytes(fields.next().unwrap_or_default());
        let (version, settings, routes) = (field()?, field()?, field()?);
        let paused = Paused { reminders: field()?.is_some(), cleanups: field()?.is_some() };
        let id_key = field()?;
        let (Some(version), Some(settings), Some(routes)) = (version, settings, routes) else {
            return Err(StoreError::Unconfigured { namespace: namespace.clone() });
        };
        let unreadable = |error: serde_json::Error| {
            reader.odd(format!("the settings of {namespace} cannot be read: {error}; a newer forewarn may have written them: upgrade this one"))
        };
        Ok(Arc::new(Configured {
            version: String::from_utf8_lossy(&version).into_owned(),
            settings: serde_json::from_slice(&settings).map_err(unreadable)?,
            routes: serde_json::from_slice(&routes).map_err(unreadable)?,
            paused,
            id_key: id_key.map(|key| IdKey::from_hex(&String::from_utf8_lossy(&key))).transpose()?,
        }))
    }

    pub(super) async fn apply_change(&self, namespace: &Name, change: &Change) -> Result<Applied, StoreError> {
        if let Some(settings) = &change.settings {
            settings.check()?;
        }
        for _ in 0..super::ask::MAX_RELOADS {
            let present = self.present(namespace).await?;
            let (settings, routes) = plan::merge(namespace, change, present.as_deref())?;
            let is_same = present.as_ref().is_some_and(|now| now.settings == settings && now.routes == routes);
            // Without a key it is applied once more: an older version had no such thing.
            if let Some(present) = present.as_ref().filter(|present| is_same && present.id_key.is_some()) {
                self.register(namespace, present, true).await?;
                return Ok(Applied { created: false, changed: false, configured: Arc::clone(present) });
            }
            let paused = present.as_ref().map(|present| present.paused.clone()).unwrap_or_default();
            let version = format!("{:016x}", fastrand::u64(..));
            let id_key = Some(plan::id_key(change, present.as_deref())?);
            let configured = Configured { version, settings, routes, paused, id_key };
            let scope = Scope::new(&self.0.prefix, namespace, Arc::new(configured));
            // The registry first: a crash in between leaves a name without settings, which the next apply mends.
            self.register(namespace, &scope.configured, present.is_some()).await?;
            let expected = present.as_ref().map(|present| present.version.clone()).unwrap_or_default();
            if !self.configure_shard(&scope, 0, &expected, change.first_start).await? {
                continue;
            }
            for shard in 1..scope.shards() {
                self.configure_shard(&scope, shard, "*", change.first_start).await?;
            }
            let configured = Arc::clone(&scope.configured);
            self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace.clone(), Arc::new(scope));
            return Ok(Applied { created: present.is_none(), changed: !is_same, configured });
        }
        Err(StoreError::Conflict {
            namespace: namespace.clone(),
            reason: "others keep changing them; try again".to_owned(),
        })
    }

    /// Gives shards that are behind the settings in force.
    pub(super) async fn bring_up(&self, scope: &Scope, shards: &[u16]) -> Result<(), StoreError> {
        for shard in shards {
            self.configure_shard(scope, *shard, "*", FirstStart::Speak).await?;
        }
        Ok(())
    }

    pub(super) async fn preview_change(&self, namespace: &Name, change: &Change) -> Result<Preview, StoreError> {
        if let Some(settings) = &change.settings {
            settings.check()?;
        }
        let present = self.present(namespace).await?;
        let (settings, routes) = plan::merge(namespace, change, present.as_deref())?;
        let created = present.is_none();
        let changed = present.is_none_or(|present| present.settings != settings || present.routes != routes);
        let (version, paused) = (String::new(), Paused::default());
        let planned = Configured { version, settings, routes, paused, id_key: None };
        let scope = Scope::new(&self.0.prefix, namespace, Arc::new(planned));
        let mut reminders: Vec<(LeadTime, u64)> = scope.settings().leads().into_iter().map(|lead| (lead, 0)).collect();
        let mut cleanups = 0;
        let reader = self.reader(namespace);
        let own = || [change.first_start.as_str().into()];
        let calls: Vec<Call> = scope
            .keys
            .iter()
            .map(|keys| Call { keys: Arc::clone(keys), args: scope.args(self.manual_now(), own()) })
            .collect();
        for reply in self.0.connection.run(scripts::PREVIEW.script(false), &calls).await? {
            let mut fields = reader.list(reply?)?.into_iter().skip(1);
            let mut field = || fields.next().unwrap_or_default();
            for ((_, total), count) in reminders.iter_mut().zip(reader.list(field())?) {
                *total += reader.count(count)?;
            }
            cleanups += reader.count(field())?;
        }
        if !scope.settings().cleanup {
            cleanups = 0;
        }
        Ok(Preview { created, changed, reminders, cleanups })
    }

    pub(super) async fn delete_namespace(&self, namespace: &Name) -> Result<bool, StoreError> {
        let mut pipeline = Pipeline::new();
        if let Some(present) = self.present(namespace).await? {
            let scope = Scope::new(&self.0.prefix, namespace, present);
            for (shard, keys) in (0..).zip(&scope.keys) {
                let history = keys::history(&keys::stem(&self.0.prefix, namespace, shard));
                pipeline.cmd("UNLINK").arg(keys.as_slice()).arg(history);
            }
        }
        pipeline.cmd("HDEL").arg(keys::registry(&self.0.prefix)).arg(namespace.as_str());
        let replies = self.0.connection.pipeline(&pipeline).await?;
        self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner).remove(namespace);
        Ok(replies.len() > 1 || replies.last() == Some(&Value::Int(1)))
    }

    pub(super) async fn set_pause(&self, namespace: &Name, pause: &Pause) -> Result<(), StoreError> {
        let scope = self.reload(namespace).await?;
        if let Some(route) = &pause.route {
            scope.route_number(route)?;
        }
        let flag = |is_set: bool| if is_set { b"1".to_vec() } else { b"0".to_vec() };
        let route = pause.route.as_ref().map_or_else(Vec::new, |route| route.as_str().into());
        let own = [route, flag(pause.reminders), flag(pause.cleanups), flag(pause.paused)];
        let rate = pause.rate.filter(|_| !pause.paused).map(NonZeroU32::get);
        let rate_of =
            |shard| rate.map(|rate| part(rate, scope.shards(), shard, 0).max(1)).map_or_else(Vec::new, number);
        let shards: Vec<(u16, Vec<u8>)> = (0..scope.shards()).map(|shard| (shard, rate_of(shard))).collect();
        let args = |scope: &Scope, rate: &Vec<u8>| {
            Ok(scope.args(self.manual_now(), own.iter().cloned().chain([rate.clone()])))
        };
        let replies = self.ask(namespace, &scripts::PAUSE, &shards, args).await?;
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }

    async fn present(&self, namespace: &Name) -> Result<Option<Arc<Configured>>, StoreError> {
        match self.read_configured(namespace).await {
            Ok(configured) => Ok(Some(configured)),
            Err(StoreError::Unconfigured { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn register(&self, namespace: &Name, configured: &Configured, is_known: bool) -> Result<(), StoreError> {
        let entry = format!("{} {}", configured.settings.shards, configured.version);
        let mut command = Cmd::new();
        command.arg("HSET").arg(keys::registry(&self.0.prefix)).arg(namespace.as_str()).arg(entry);
        match self.0.connection.command(&command).await {
            // Settings may change on a full server; then the registry goes on with the version it knows.
            Err(StoreError::Full { .. }) if is_known => Ok(()),
            registered => registered.map(drop),
        }
    }

    /// Whether the shard took the settings; not if it no longer has the expected version.
    async fn configure_shard(
        &self,
        scope: &Scope,
        shard: u16,
        expected: &str,
        first: FirstStart,
    ) -> Result<bool, StoreError> {
        let reader = self.reader(&scope.namespace);
        let json = |result: Result<Vec<u8>, serde_json::Error>| result.map_err(|error| reader.odd(error.to_string()));
        let own = [
            expected.into(),
            json(serde_json::to_vec(scope.settings()))?,
            json(serde_json::to_vec(&scope.configured.routes))?,
            first.as_str().into(),
            scope.configured.id_key.as_ref().filter(|_| shard == 0).map_or_else(Vec::new, |key| key.to_hex().into()),
        ];
        let keys = Arc::clone(&scope.keys[usize::from(shard)]);
        let call = Call { keys, args: scope.args(self.manual_now(), own) };
        let mut replies = self.0.connection.run(scripts::CONFIGURE.script(false), &[call]).await?;
        let reply = replies.pop().ok_or_else(|| reader.odd("no reply"))??;
        let word = reader.list(reply)?.into_iter().next().unwrap_or_default();
        match reader.text(word)?.as_str() {
            "ok" => Ok(true),
            "conflict" => Ok(false),
            word => Err(reader.odd(format!("unknown word \"{word}\""))),
        }
    }
}
