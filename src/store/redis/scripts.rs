//! The table of scripts: what each is made of. Their text lives in `scripts/`, one operation a file.

use std::sync::LazyLock;

/// A script as the server gets it.
#[derive(Debug)]
pub(super) struct Script {
    /// The whole text.
    pub(super) text: &'static str,
    /// Its SHA-1, by which it is called once it is loaded.
    pub(super) hash: LazyLock<String>,
}

/// Joins flags, shared parts and the operation itself.
macro_rules! script {
    ($name:ident, $flags:literal, [$($part:literal),*], $body:literal) => {
        pub(super) static $name: Script = {
            const TEXT: &str = concat!(
                "#!lua", $flags, "\n",
                $(include_str!(concat!("../../../scripts/lib/", $part, ".lua")),)*
                include_str!(concat!("../../../scripts/", $body, ".lua")),
            );
            Script { text: TEXT, hash: LazyLock::new(|| redis::Script::new(TEXT).get_hash().to_owned()) }
        };
    };
}

// None for what may create, so that the server refuses it before it writes when memory is full.
script!(TRACK, "", ["shard", "fast", "codec", "cursor", "size", "wake", "delivery", "lead", "cleanup", "set"], "track");
script!(
    REPLACE,
    "",
    ["shard", "codec", "cursor", "size", "wake", "delivery", "lead", "cleanup", "set", "removal"],
    "replace"
);
script!(REQUEUE, "", ["shard", "codec", "cursor", "size", "wake", "delivery", "cleanup", "validity"], "requeue");
// allow-oom for what keeps a full server going.
script!(
    RENEW,
    " flags=allow-oom",
    ["shard", "fast", "codec", "cursor", "size", "wake", "delivery", "lead", "cleanup", "set"],
    "renew"
);
script!(
    REMOVE,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "delivery", "lead", "cleanup", "removal"],
    "remove"
);
script!(
    EXPIRE,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "delivery", "lead", "cleanup"],
    "expire"
);
script!(
    CLAIM,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "delivery", "lead", "cleanup", "validity", "failure", "rank"],
    "claim"
);
script!(
    RECHECK,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "delivery", "cleanup", "validity", "token"],
    "recheck"
);
script!(ACK, " flags=allow-oom", [], "ack");
script!(
    FAIL,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "delivery", "cleanup", "validity", "token", "failure"],
    "fail"
);
script!(
    EXTEND,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "delivery", "cleanup", "validity", "token"],
    "extend"
);
script!(
    RELEASE,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "delivery", "cleanup", "validity", "token"],
    "release"
);
script!(DISCARD, " flags=allow-oom", ["shard"], "discard");
script!(PAUSE, " flags=allow-oom", ["shard", "codec", "cursor", "wake"], "pause");
script!(CONFIGURE, " flags=allow-oom", ["shard", "codec", "size", "wake", "delivery", "cleanup", "plan"], "configure");
// no-writes for what only looks.
script!(SHOW, " flags=no-writes", ["shard", "codec", "cursor"], "show");
script!(LIST, " flags=no-writes", ["shard", "codec", "rank"], "list");
script!(STATS, " flags=no-writes", ["shard", "codec"], "stats");
script!(PREVIEW, " flags=no-writes", ["shard", "codec", "rank", "plan"], "preview");
