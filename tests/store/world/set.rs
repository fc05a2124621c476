//! Sets, removals and raw writes.

use forewarn::model::{ExpiresAt, Renew, Track};

use super::{World, bytes, expiry, id, same};
use crate::ground::Peer;
use crate::operation::Op;
use crate::snapshot::key;
use crate::words::{Score, shard_of};

impl World<'_> {
    pub(super) async fn set(&mut self, op: &Op) -> Result<(), String> {
        let now = self.model.now;
        let (store, name) = (&self.bench.store, &self.name);
        match op {
            Op::Track { mode, id: index, ttl, payload } => {
                let (id, at, payload) = (id(*index), now + ttl, bytes(*payload));
                let entry = Track { id: id.clone(), expires_at: expiry(at), payload: payload.clone() };
                let answer = store.track(name, *mode, &[entry]).await.map_err(|error| format!("track: {error}"))?;
                let expected = vec![self.model.track(*mode, id.as_bytes(), at, payload.as_deref())];
                self.note(&answer);
                same("track", &answer, &expected)
            }
            Op::TrackMany { mode, entries } => {
                let tracks: Vec<Track> = (entries.iter())
                    .map(|(index, ttl)| Track { id: id(*index), expires_at: expiry(now + ttl), payload: None })
                    .collect();
                let answer = store.track(name, *mode, &tracks).await.map_err(|error| format!("track: {error}"))?;
                let model = &mut self.model;
                let expected = (tracks.iter())
                    .map(|track| model.track(*mode, track.id.as_bytes(), track.expires_at.as_millis(), None))
                    .collect();
                self.note(&answer);
                same("track", &answer, &expected)
            }
            Op::TrackSame { mode, id: index } => {
                let id = id(*index);
                let Some(at) = self.model.armed.get(id.as_bytes()).map(|e| e.floor()) else { return Ok(()) };
                let Ok(expires_at) = ExpiresAt::from_millis(at) else { return Ok(()) };
                let entry = Track { id: id.clone(), expires_at, payload: Some(b"same".to_vec()) };
                let answer = store.track(name, *mode, &[entry]).await.map_err(|error| format!("track: {error}"))?;
                let expected = vec![self.model.track(*mode, id.as_bytes(), at, Some(b"same"))];
                self.note(&answer);
                same("track", &answer, &expected)
            }
            Op::Replace { mode, new, old, ttl, payload } => {
                let (new, old, at, payload) = (id(*new), id(*old), now + ttl, bytes(*payload));
                if new == old {
                    return Ok(());
                }
                let entry = Track { id: new.clone(), expires_at: expiry(at), payload: payload.clone() };
                let answer =
                    store.replace(name, *mode, &entry, &old).await.map_err(|error| format!("replace: {error}"))?;
                let expected = self.model.replace(*mode, new.as_bytes(), at, payload.as_deref(), old.as_bytes());
                self.note(&answer);
                same("replace", &answer, &expected)
            }
            Op::Renew { id: index, ttl, payload } => {
                let (id, at, payload) = (id(*index), now + ttl, bytes(*payload));
                let entry = Renew { id: id.clone(), expires_at: expiry(at), payload: payload.clone() };
                let answer = store.renew(name, &[entry]).await.map_err(|error| format!("renew: {error}"))?;
                let expected = vec![self.model.renew(id.as_bytes(), at, payload.as_deref())];
                self.note(&answer);
                same("renew", &answer, &expected)
            }
            Op::RenewMany { entries } => {
                let renews: Vec<Renew> = (entries.iter())
                    .map(|(index, ttl)| Renew { id: id(*index), expires_at: expiry(now + ttl), payload: None })
                    .collect();
                let answer = store.renew(name, &renews).await.map_err(|error| format!("renew: {error}"))?;
                let model = &mut self.model;
                let expected = (renews.iter())
                    .map(|renew| model.renew(renew.id.as_bytes(), renew.expires_at.as_millis(), None))
                    .collect();
                self.note(&answer);
                same("renew", &answer, &expected)
            }
            Op::Remove { id: index } => {
                let id = id(*index);
                let answer =
                    store.remove(name, std::slice::from_ref(&id)).await.map_err(|error| format!("remove: {error}"))?;
                let expected = vec![self.model.remove(id.as_bytes())];
                self.note(&answer);
                same("remove", &answer, &expected)
            }
            Op::Expire { id: index } => {
                let id = id(*index);
                let answer =
                    store.expire(name, std::slice::from_ref(&id)).await.map_err(|error| format!("expire: {error}"))?;
                let expected = vec![self.model.expire(id.as_bytes())];
                self.note(&answer);
                same("expire", &answer, &expected)
            }
            other => Err(format!("{other:?} sets nothing")),
        }
    }

    pub(super) async fn write_raw(&mut self, op: &Op) {
        let (command, key_name, index) = match op {
            Op::RawSet { id, .. } | Op::RawScore { id, .. } => ("ZADD", "exp", *id),
            Op::RawRemove { id } => ("ZREM", "exp", *id),
            Op::Every { id, .. } => ("HSET", "every", *id),
            _ => return,
        };
        let id = id(index);
        let shard = shard_of(id.as_bytes(), self.model.rules.shards);
        self.raw.insert(id.as_bytes().to_vec());
        if let Peer::File(connection, _) = &self.bench.peer {
            let name = self.name.as_str();
            let run = |sql: &str, value: String| {
                connection.execute(sql, (name, id.as_bytes(), value)).expect("a row");
            };
            match op {
                Op::RawSet { ttl, .. } => {
                    let e = self.model.now + ttl;
                    self.model.raw_set(id.as_bytes(), Score::ms(e));
                    run(RAW_SET, e.to_string());
                }
                Op::RawRemove { .. } => {
                    self.model.raw_remove(id.as_bytes());
                    run(RAW_REMOVE, String::new());
                }
                Op::Every { period, .. } => {
                    self.model.every.insert(id.as_bytes().to_vec(), *period);
                    run(RAW_EVERY, period.to_string());
                }
                _ => {}
            }
            return;
        }
        let mut raw = redis::cmd(command);
        raw.arg(key("fw", self.name.as_str(), shard, key_name));
        match op {
            Op::RawSet { ttl, .. } => {
                let e = Score::ms(self.model.now + ttl);
                self.model.raw_set(id.as_bytes(), e);
                raw.arg(e.text()).arg(id.as_bytes());
            }
            Op::RawScore { score, .. } => {
                self.model.raw_set(id.as_bytes(), Score::new(*score));
                raw.arg(format!("{score:e}").replace("inf", "inf")).arg(id.as_bytes());
            }
            Op::Every { period, .. } => {
                self.model.every.insert(id.as_bytes().to_vec(), *period);
                raw.arg(id.as_bytes()).arg(*period);
            }
            _ => {
                self.model.raw_remove(id.as_bytes());
                raw.arg(id.as_bytes());
            }
        }
        let Peer::Server(connection) = &mut self.bench.peer else { return };
        let () = raw.query_async(connection).await.expect("a raw write");
    }
}

pub(crate) const RAW_SET: &str = "INSERT INTO armed (namespace, id, expires_at)
    SELECT key, ?2, CAST(?3 AS INTEGER) FROM namespace WHERE name = ?1
    ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at";
pub(crate) const RAW_REMOVE: &str = "DELETE FROM armed WHERE namespace = (SELECT key FROM namespace WHERE name = ?1)
    AND id = ?2 AND ?3 = ''";
pub(crate) const RAW_EVERY: &str = "INSERT OR REPLACE INTO every (namespace, id, period)
    SELECT key, ?2, ?3 FROM namespace WHERE name = ?1";
