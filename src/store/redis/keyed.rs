//! Key-backed ids: what their scripts are told, and looking at the keys again.

use std::time::Duration;

use crate::model::{Name, Piece, Settings, span_ms};
use crate::store::StoreError;

use super::{
    RedisStore, keys,
    scope::{Scope, number},
    scripts,
};

/// Ids looked at in one script call.
const MAX_LOOKED_AT: usize = 500;

impl RedisStore {
    /// Looks at the keys of what is inside the largest lead; answers when that is wanted again.
    pub(super) async fn resync_all(&self, namespace: &Name) -> Result<Duration, StoreError> {
        let scope = self.scope(namespace).await?;
        let interval = scope.settings().recheck_interval;
        if !scope.settings().key_backed {
            return Ok(interval);
        }
        let reader = self.reader(namespace);
        let mut pending: Vec<(u16, ())> = (0..scope.shards()).map(|shard| (shard, ())).collect();
        let mut soonest = interval;
        while !pending.is_empty() {
            let args = |scope: &Scope, (): &()| {
                // What a key that differs costs grows with the leads and the routes.
                let size = scope.settings().remind.len() * scope.configured.routes.len();
                let limit = (MAX_LOOKED_AT / (1 + size / 4)).max(20);
                let own = [number(span_ms(scope.settings().recheck_interval)), number(limit)];
                Ok(scope.args(self.manual_now(), own))
            };
            let replies = self.ask(namespace, &scripts::RESYNC, &pending, args).await?;
            let mut unfinished = Vec::new();
            for (request, reply) in pending.into_iter().zip(replies) {
                match reader.count(reply?.into_iter().next().unwrap_or_default())? {
                    0 => unfinished.push(request),
                    wait_ms => soonest = soonest.min(Duration::from_millis(wait_ms)),
                }
            }
            pending = unfinished;
        }
        Ok(soonest)
    }
}

/// What scripts are told of the keys: `on_gone`, then each pattern as a list of Lua patterns to be found one after the
/// other. Empty where the ids are no keys.
pub(super) fn rules(settings: &Settings) -> Vec<u8> {
    if !settings.key_backed {
        return Vec::new();
    }
    let mut json = vec![b'[', b'"'];
    json.extend(settings.on_gone.as_str().bytes());
    json.push(b'"');
    for pattern in &settings.keys {
        let segments = pattern.segments();
        let last = segments.len() - 1;
        for (at, segment) in segments.iter().enumerate() {
            json.extend(if at == 0 { &b",[\""[..] } else { &b",\""[..] });
            let mut lua = if at == 0 { vec![b'^'] } else { Vec::new() };
            segment.iter().for_each(|piece| write_lua(piece, &mut lua));
            if at == last {
                lua.push(b'$');
            }
            lua.iter().for_each(|byte| write_json(*byte, &mut json));
            json.push(b'"');
        }
        json.push(b']');
    }
    json.push(b']');
    json
}

/// Whether a key may be an id: it matches a pattern, if there are any, and is none of the store's own.
pub(super) fn is_id(prefix: &Name, settings: &Settings, key: &[u8]) -> bool {
    let own = [keys::own(prefix), keys::registry(prefix)];
    let is_own = key.starts_with(own[0].as_bytes()) || key == own[1].as_bytes();
    !is_own && (settings.keys.is_empty() || settings.keys.iter().any(|pattern| pattern.matches(key)))
}

/// Writes one piece in the notation of Lua 5.1, in which a zero byte cannot stand in a pattern.
fn write_lua(piece: &Piece, lua: &mut Vec<u8>) {
    let literal = |byte: u8, lua: &mut Vec<u8>| match byte {
        0 => lua.extend(b"%z"),
        byte if byte.is_ascii_punctuation() => lua.extend([b'%', byte]),
        byte => lua.push(byte),
    };
    match piece {
        Piece::Byte(byte) => literal(*byte, lua),
        Piece::Any => lua.push(b'.'),
        Piece::Set { is_outside, ranges } => {
            // Ranges one by one: which bytes lie between two others must not depend on the server's locale.
            let mut members: Vec<u8> = ranges.iter().flat_map(|(first, last)| *first..=*last).collect();
            members.sort_unstable();
            members.dedup();
            match (members.is_empty(), is_outside) {
                (true, true) => lua.push(b'.'),
                (true, false) => lua.extend(b"[^%z\x01-\xff]"),
                (false, _) => {
                    lua.extend(if *is_outside { &b"[^"[..] } else { b"[" });
                    members.into_iter().for_each(|byte| literal(byte, lua));
                    lua.push(b']');
                }
            }
        }
    }
}

fn write_json(byte: u8, json: &mut Vec<u8>) {
    match byte {
        b'"' | b'\\' | 0..0x20 => json.extend(format!("\\u{byte:04x}").bytes()),
        byte => json.push(byte),
    }
}
