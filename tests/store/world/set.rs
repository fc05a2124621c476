//! Sets, removals and raw writes.

use forewarn::model::{ExpiresAt, Renew, Track};

use super::{World, bytes, expiry, id, same};
use crate::ground::Entry;
use crate::operation::Op;
use crate::words::Score;

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
        let (id, entry) = match op {
            Op::RawSet { id: index, ttl } => {
                let (id, e) = (id(*index), Score::ms(self.model.now + ttl));
                self.model.raw_set(id.as_bytes(), e);
                (id, Entry::Armed(e.text()))
            }
            Op::RawScore { id: index, score } => {
                let id = id(*index);
                self.model.raw_set(id.as_bytes(), Score::new(*score));
                (id, Entry::Armed(format!("{score:e}")))
            }
            Op::RawRemove { id: index } => {
                let id = id(*index);
                self.model.raw_remove(id.as_bytes());
                (id, Entry::Disarmed)
            }
            Op::Every { id: index, period } => {
                let id = id(*index);
                self.model.every.insert(id.as_bytes().to_vec(), *period);
                (id, Entry::Every(period.to_string()))
            }
            _ => return,
        };
        self.raw.insert(id.as_bytes().to_vec());
        self.bench.peer.write(&self.name, self.model.rules.shards, id.as_bytes(), entry).await;
    }
}
