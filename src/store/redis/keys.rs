//! The only speller of keys: which keys a shard has, and which shard an id belongs to.

use crate::model::Name;
use crate::store::Shelf;

/// The keys of a shard beside its queues: name and type, in the order in which scripts get them.
pub(super) const SHARD_KEYS: [(&str, &str); 14] = [
    ("exp", "zset"),
    ("cur", "hash"),
    ("open", "hash"),
    ("skip", "zset"),
    ("crossed", "zset"),
    ("payload", "hash"),
    ("fail", "hash"),
    ("meta", "hash"),
    ("every", "hash"),
    ("bad", "zset"),
    ("dead", "hash"),
    ("dead_at", "zset"),
    ("review", "hash"),
    ("review_at", "zset"),
];

/// Places of the keys that are also read or written without a script.
pub(super) const EXP: usize = 0;
pub(super) const CUR: usize = 1;
pub(super) const OPEN: usize = 2;
pub(super) const SKIP: usize = 3;
pub(super) const CROSSED: usize = 4;
pub(super) const PAYLOAD: usize = 5;
pub(super) const FAIL: usize = 6;
pub(super) const EVERY: usize = 8;
pub(super) const BAD: usize = 9;

/// The places of a shelf: what is parked, and when it was.
pub(super) fn shelf(shelf: Shelf) -> (usize, usize) {
    match shelf {
        Shelf::Dead => (10, 11),
        Shelf::Review => (12, 13),
    }
}

/// The key of a namespace's settings and of what else is said of it as a whole.
pub(super) fn meta(prefix: &Name, namespace: &Name) -> String {
    format!("{}meta", stem(prefix, namespace, 0))
}

/// What all keys of a shard begin with: its hash tag and a colon.
pub(super) fn stem(prefix: &Name, namespace: &Name, shard: u16) -> String {
    format!("{{{prefix}:{namespace}:{shard}}}:")
}

/// What every key with a hash tag begins with.
pub(super) fn own(prefix: &Name) -> String {
    format!("{{{prefix}:")
}

/// The stream of a shard that remembers ended notices; no key of the scripts' calls.
pub(super) fn history(stem: &str) -> String {
    format!("{stem}history")
}

/// The channel on which the claims of a shard tell observers what they hand out.
pub(super) fn tail(stem: &str) -> String {
    format!("{stem}tail")
}

/// The registry of namespaces.
pub(super) fn registry(prefix: &Name) -> String {
    format!("{prefix}:namespaces")
}

/// All keys of a shard in the order scripts expect: the fixed ones, then the queue of each route.
pub(super) fn shard_keys(stem: &str, routes: &[Name]) -> Vec<String> {
    let fixed = SHARD_KEYS.iter().map(|(name, _)| format!("{stem}{name}"));
    fixed.chain(routes.iter().map(|route| format!("{stem}due:{route}"))).collect()
}

/// The type a key must have.
pub(super) fn expected_type(key: &str) -> &'static str {
    match key.split_once("}:") {
        // The registry is the only key without a hash tag, and the queues are all that is not in the table.
        None => "hash",
        Some((_, "history")) => "stream",
        Some((_, name)) => SHARD_KEYS.iter().find(|(known, _)| *known == name).map_or("zset", |(_, kind)| kind),
    }
}

/// The shard of an id: CRC-32 (IEEE) of its bytes, modulo the number of shards.
pub(super) fn shard_of(id: &[u8], shards: u16) -> u16 {
    let shard = crc32fast::hash(id) % u32::from(shards.max(1));
    u16::try_from(shard).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_shard_share_its_hash_tag() {
        let name = |text: &str| Name::new("name", text).unwrap();
        let stem = stem(&name("fw"), &name("session"), 3);
        let keys = shard_keys(&stem, &[name("main")]);
        assert_eq!(keys[0], "{fw:session:3}:exp");
        assert_eq!(keys[14], "{fw:session:3}:due:main");
        assert!(keys.iter().all(|key| key.starts_with("{fw:session:3}:")));
        let types = [&keys[0], &keys[1], &keys[14], &registry(&name("fw"))].map(|key| expected_type(key));
        assert_eq!(types, ["zset", "hash", "zset", "hash"]);
    }

    #[test]
    fn the_shard_is_the_standard_crc32_of_the_id() {
        // python3 -c 'import zlib; print(zlib.crc32(b"user_session:wang2024") % 32)'
        assert_eq!(shard_of(b"user_session:wang2024", 32), 6);
        assert_eq!(shard_of(b"123456789", 1), 0);
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
    }
}
