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

/// An operation: its script, and the one for namespaces whose ids are keys, where that differs.
#[derive(Debug)]
pub(super) struct Operation {
    plain: Script,
    keyed: Option<Script>,
}

impl Operation {
    /// The script for a namespace.
    pub(super) fn script(&self, is_key_backed: bool) -> &Script {
        self.keyed.as_ref().filter(|_| is_key_backed).unwrap_or(&self.plain)
    }
}

/// Joins flags, shared parts and the operation itself.
macro_rules! script {
    ($flags:literal, [$($part:literal),*], $body:literal) => {{
        const TEXT: &str = concat!(
            "#!lua", $flags, "\n",
            $(include_str!(concat!("../../../scripts/lib/", $part, ".lua")),)*
            include_str!(concat!("../../../scripts/", $body, ".lua")),
        );
        Script { text: TEXT, hash: LazyLock::new(|| redis::Script::new(TEXT).get_hash().to_owned()) }
    }};
}

/// One line of the table: name, flags, parts, where they differ those for key-backed ids, the operation itself.
macro_rules! operation {
    ($name:ident, $flags:literal, $parts:tt, $body:literal) => {
        pub(super) static $name: Operation = Operation { plain: script!($flags, $parts, $body), keyed: None };
    };
    ($name:ident, $flags:literal, $parts:tt, keyed $keyed:tt, $body:literal) => {
        pub(super) static $name: Operation =
            Operation { plain: script!($flags, $parts, $body), keyed: Some(script!($flags, $keyed, $body)) };
    };
}

// None for what may create, so that the server refuses it before it writes when memory is full.
operation!(
    TRACK,
    "",
    ["shard", "fast", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "unkeyed", "set"],
    keyed ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "keyed", "set"],
    "track"
);
operation!(
    REPLACE,
    "",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "unkeyed", "set", "removal"],
    keyed ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "keyed", "set", "removal"],
    "replace"
);
operation!(
    REQUEUE,
    "",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "cleanup", "validity"],
    "requeue"
);
// allow-oom for what keeps a full server going.
operation!(
    RENEW,
    " flags=allow-oom",
    ["shard", "fast", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "unkeyed", "set"],
    keyed ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "keyed", "set"],
    "renew"
);
operation!(
    REMOVE,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "unkeyed", "removal"],
    keyed ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "keyed", "removal"],
    "remove"
);
operation!(
    EXPIRE,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "unkeyed"],
    keyed ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "keyed"],
    "expire"
);
operation!(
    CLAIM,
    " flags=allow-oom",
    [
        "shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "validity", "failure", "rank", "share",
        "quarantine", "observers", "catch_up", "unkeyed"
    ],
    keyed [
        "shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "validity", "failure", "rank", "share",
        "quarantine", "observers", "catch_up", "keyed", "due_keys"
    ],
    "claim"
);
operation!(
    RECHECK,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "cleanup", "validity", "token", "unkeyed"],
    keyed ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "validity", "token", "keyed"],
    "recheck"
);
operation!(
    RESYNC,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "lead", "cleanup", "rank", "keyed"],
    "resync"
);
operation!(ACK, " flags=allow-oom", [], "ack");
operation!(
    FAIL,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "cleanup", "validity", "token", "failure"],
    "fail"
);
operation!(
    EXTEND,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "cleanup", "validity", "token"],
    "extend"
);
operation!(
    RELEASE,
    " flags=allow-oom",
    ["shard", "codec", "cursor", "size", "wake", "history", "delivery", "cleanup", "validity", "token"],
    "release"
);
operation!(DISCARD, " flags=allow-oom", ["shard"], "discard");
operation!(PAUSE, " flags=allow-oom", ["shard", "codec", "cursor", "wake", "catch_up"], "pause");
operation!(
    CONFIGURE,
    " flags=allow-oom",
    ["shard", "codec", "size", "wake", "history", "delivery", "cleanup", "plan", "catch_up"],
    "configure"
);
// no-writes for what only looks.
operation!(SHOW, " flags=no-writes", ["shard", "codec", "cursor"], "show");
operation!(LIST, " flags=no-writes", ["shard", "codec", "rank"], "list");
operation!(STATS, " flags=no-writes", ["shard", "codec"], "stats");
operation!(PREVIEW, " flags=no-writes", ["shard", "codec", "rank", "plan"], "preview");
