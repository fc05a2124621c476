//! The raw way in, driven by clients that are not this library: redis-cli, and a few lines of Python on a socket.
//!
//! Clauses Z and N are those of `docs/redis-protocol.md`, the others those of `docs/semantics.md`.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod harness;

use std::{
    io::Write,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use forewarn::model::{FirstStart, Kind, Mode, Name, Reason, Settings};
use forewarn::store::redis::{RedisOptions, RedisStore};
use forewarn::store::{
    Change, Checked, Claim, Claims, DropReason, ListQuery, Next, Removed, Renewed, Settled, Tracked,
};
use forewarn::{Forewarn, Namespace};
use harness::{Kind as ServerKind, Server, servers};

/// Where virtual time starts: far enough ahead for the server not to expire what the clients write with PXAT.
const START: i64 = 4_000_000_000_000;
const MINUTE: i64 = 60_000;
const LEASE: Duration = Duration::from_secs(60);
const PAGE: &str = include_str!("../docs/redis-protocol.md");

/// A namespace under virtual time, and the raw clients that write to it.
struct Raw {
    server: &'static Server,
    clock: Arc<AtomicI64>,
    namespace: Namespace,
    shards: u16,
}

impl Raw {
    /// A namespace with reminders ten minutes and one minute before expiry.
    async fn new(kind: ServerKind, shards: u16) -> Self {
        let raw = Self::unconfigured(kind, shards).await;
        raw.configure(FirstStart::Speak).await;
        raw
    }

    #[expect(clippy::field_reassign_with_default, reason = "the options may grow, so they cannot be written out here")]
    async fn unconfigured(kind: ServerKind, shards: u16) -> Self {
        let server = Server::shared(kind);
        let clock = Arc::new(AtomicI64::new(START));
        let mut options = RedisOptions::default();
        options.manual_clock = Some(Arc::clone(&clock));
        let store = RedisStore::open(&server.url(), options).await.unwrap();
        let namespace = Forewarn::with_store(Arc::new(store)).namespace(harness::namespace());
        Self { server, clock, namespace, shards }
    }

    async fn configure(&self, first_start: FirstStart) {
        let leads = ["10m", "1m"].map(|lead| lead.parse().unwrap());
        let settings = leads.into_iter().fold(Settings::default().shards(self.shards), Settings::remind);
        self.namespace.configure(&Change { first_start, ..Change::settings(settings) }).await.unwrap();
        // A cursor stands where a worker has looked; until then everything is new to it (W3.6).
        self.claim(0).await;
    }

    fn name(&self) -> &Name {
        self.namespace.name().unwrap()
    }

    /// The key of one part of a shard, spelled as the page says.
    fn key(&self, shard: u16, part: &str) -> String {
        format!("{{fw:{}:{shard}}}:{part}", self.name().as_str())
    }

    fn at(&self, ms: i64) {
        self.clock.store(START + ms, Ordering::SeqCst);
    }

    async fn claim(&self, limit: u32) -> Claims {
        let route = Name::new("route", "main").unwrap();
        let claims = self.namespace.store().claim(self.name(), &route, limit, LEASE).await.unwrap();
        assert!(claims.faults.is_empty(), "{:?}", claims.faults);
        claims
    }

    /// Claims all that is due, as "10m of a", and settles it.
    async fn handled(&self) -> Vec<String> {
        let claims = self.claim(100).await.claims;
        let said = claims.iter().map(said).collect();
        for settled in self.ack(claims).await {
            assert_eq!(settled, Settled::Settled);
        }
        said
    }

    async fn ack(&self, claims: Vec<Claim>) -> Vec<Settled> {
        let tokens: Vec<_> = claims.into_iter().map(|claim| claim.token).collect();
        let route = Name::new("route", "main").unwrap();
        self.namespace.store().ack(self.name(), &route, &tokens).await.unwrap()
    }

    /// Runs commands through redis-cli; answers with its output.
    fn redis_cli(&self, commands: &str) -> String {
        redis_cli(self.server, commands)
    }

    /// Runs the Python client.
    fn python(&self, verb: &[&str]) -> String {
        let arguments = [self.server.port().to_string(), self.name().to_string(), self.shards.to_string()];
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/raw_client.py");
        let output = Command::new("python3").arg(script).args(arguments).args(verb).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

fn redis_cli(server: &Server, commands: &str) -> String {
    let mut cli = Command::new("redis-cli");
    let pipes = cli.args(["-p", &server.port().to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(!["ERR", "WRONG", "EXECABORT"].iter().any(|error| output.contains(error)), "{commands}\n{output}");
    output
}

fn said(claim: &Claim) -> String {
    let id = &claim.notice.id;
    match claim.notice.kind {
        Kind::Reminder(lead) => format!("{lead} of {id}"),
        Kind::Cleanup(reason) => format!("{} of {id}", reason.as_str()),
    }
}

#[tokio::test]
async fn an_entry_written_by_redis_cli_is_reminded_and_cleaned_up() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        let (exp, e) = (raw.key(0, "exp"), START + 30 * MINUTE);
        raw.redis_cli(&format!("MULTI\nSET data:a:{exp} \"some data\" PXAT {e}\nZADD {exp} {e} a\nEXEC\n"));

        raw.at(20 * MINUTE - 1);
        let early = raw.claim(100).await;
        assert_eq!(early.claims, [], "Z2, W1: nothing is early");
        assert_eq!(early.next, Next::At { due_at_ms: Some(e - 10 * MINUTE), poll_at_ms: e - 10 * MINUTE });
        raw.at(20 * MINUTE);
        assert_eq!(raw.handled().await, ["10m of a"]);
        raw.at(29 * MINUTE);
        assert_eq!(raw.handled().await, ["1m of a"]);
        raw.at(30 * MINUTE);
        assert_eq!(raw.handled().await, ["expired of a"]);
        assert_eq!(raw.redis_cli(&format!("ZCARD {exp}\n")), "0\n");
        assert_eq!(raw.namespace.stats().await.unwrap().open, 0);
    }
}

#[tokio::test]
async fn entries_written_in_python_speak_from_the_shards_it_computed() {
    for kind in servers() {
        let raw = Raw::new(kind, 32).await;
        let ids: [&[u8]; 5] = [b"a", b"user_session:wang2024", "é{}\n".as_bytes(), &[0xFF], &[b'x'; 1024]];
        let e = START + 30 * MINUTE;
        for id in ids {
            raw.python(&["save", &hex(id), &e.to_string(), "{\"user\":7}"]);
            let view = raw.namespace.show(id).await.unwrap().unwrap();
            assert_eq!((view.expires_at_ms, view.payload.as_deref()), (Some(e), Some(&b"{\"user\":7}"[..])));
        }
        for (minute, kind) in [(20, "reminder"), (29, "reminder"), (30, "cleanup")] {
            raw.at(minute * MINUTE);
            let claims = raw.claim(100).await.claims;
            assert_eq!(claims.len(), ids.len());
            for claim in &claims {
                assert!(ids.contains(&claim.notice.id.as_bytes()));
                assert_eq!((claim.notice.kind.as_str(), claim.notice.expires_at_ms), (kind, e));
                assert_eq!(claim.payload.as_deref(), Some(&b"{\"user\":7}"[..]));
            }
            raw.ack(claims).await;
        }
    }
}

#[tokio::test]
async fn an_entry_removed_raw_is_silent_even_when_it_was_claimed() {
    for kind in servers() {
        let raw = Raw::new(kind, 4).await;
        let e = (START + 30 * MINUTE).to_string();
        for id in [b"a", b"b"] {
            raw.python(&["save", &hex(id), &e, "payload"]);
        }
        raw.python(&["log_out", &hex(b"a")]);
        raw.at(20 * MINUTE);
        let claims = raw.claim(100).await.claims;
        assert_eq!(claims.iter().map(said).collect::<Vec<_>>(), ["10m of b"], "Z3");

        // It logs out between the claim and the handler.
        raw.python(&["log_out", &hex(b"b")]);
        let route = Name::new("route", "main").unwrap();
        let tokens: Vec<_> = claims.into_iter().map(|claim| claim.token).collect();
        let checked = raw.namespace.store().recheck(raw.name(), &route, &tokens).await.unwrap();
        assert_eq!(checked, [Checked::Dropped(DropReason::Superseded)], "W8");
        raw.at(40 * MINUTE);
        assert_eq!(raw.handled().await, [""; 0]);
    }
}

#[tokio::test]
async fn a_raw_renewal_voids_what_was_handed_out_and_is_reminded_anew() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        let exp = raw.key(0, "exp");
        raw.redis_cli(&format!("ZADD {exp} {} a\n", START + 30 * MINUTE));
        raw.at(20 * MINUTE);
        assert_eq!(raw.claim(100).await.claims.len(), 1);
        raw.redis_cli(&format!("ZADD {exp} GT {} a\n", START + 60 * MINUTE));
        // The lease of the first reminder has run out; it is dropped instead of being handed out again.
        raw.at(22 * MINUTE);
        let claims = raw.claim(100).await;
        assert_eq!((claims.claims.len(), claims.dropped.superseded), (0, 1), "Z4");
        raw.at(50 * MINUTE);
        assert_eq!(raw.handled().await, ["10m of a"]);
    }
}

#[tokio::test]
async fn an_entry_written_inside_a_lead_is_silent_for_it() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        raw.redis_cli(&format!("ZADD {} {} a\n", raw.key(0, "exp"), START + 5 * MINUTE));
        assert_eq!(raw.handled().await, [""; 0], "N1, W3.6");
        raw.at(4 * MINUTE);
        assert_eq!(raw.handled().await, ["1m of a"]);
    }
}

#[tokio::test]
async fn raw_writes_and_the_library_mix_on_one_id() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        let exp = raw.key(0, "exp");
        let at = |minutes| forewarn::ExpiresAt::from_millis(START + minutes * MINUTE).unwrap();
        let tracked = raw.namespace.track("a", at(30)).await.unwrap();
        assert_eq!(tracked, Tracked::Created { already_expired: false });
        raw.redis_cli(&format!("ZADD {exp} XX {} a\n", START + 40 * MINUTE));
        assert_eq!(raw.namespace.renew("a", at(40)).await.unwrap(), Renewed::Unchanged, "W2, Z5");
        let kept = raw.namespace.track("a", at(35)).mode(Mode::ExtendOnly).await.unwrap();
        assert_eq!(kept, Tracked::Kept);
        raw.redis_cli(&format!("ZREM {exp} a\n"));
        assert_eq!(raw.namespace.renew("a", at(50)).await.unwrap(), Renewed::Unknown);
        assert_eq!(raw.namespace.remove("a").await.unwrap(), Removed::Unknown);
    }
}

#[tokio::test]
async fn scores_that_are_no_milliseconds_are_quarantined_and_those_not_after_1970_are_cleaned_up() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        let exp = raw.key(0, "exp");
        let scores =
            [("seconds", "4000000000"), ("micros", "4e15"), ("never", "+inf"), ("zero", "0"), ("minus", "-inf")];
        for (id, score) in scores {
            raw.redis_cli(&format!("ZADD {exp} {score} {id}\n"));
        }
        let mut said = raw.handled().await;
        said.extend(raw.handled().await);
        said.sort();
        assert_eq!(said, ["expired of minus", "expired of zero"], "N5, V5");
        assert_eq!(raw.namespace.stats().await.unwrap().quarantined, 3);
        let view = raw.namespace.show("seconds").await.unwrap().unwrap();
        assert_eq!(view.quarantined.as_deref(), Some("4000000000"));

        raw.redis_cli(&format!("ZADD {exp} {} seconds\n", START + 30 * MINUTE));
        raw.at(20 * MINUTE);
        assert_eq!(raw.handled().await, ["10m of seconds"], "set again, it leaves the quarantine");
        assert_eq!(raw.namespace.remove("micros").await.unwrap(), Removed::Removed, "A5");
        assert_eq!(raw.namespace.stats().await.unwrap().quarantined, 1);
    }
}

#[tokio::test]
async fn a_fraction_of_a_millisecond_is_kept_and_cut_in_notices() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        let e = START + 30 * MINUTE;
        raw.redis_cli(&format!("ZADD {} {e}.5 a\n", raw.key(0, "exp")));
        raw.at(30 * MINUTE + 1);
        let claims = raw.claim(100).await.claims;
        assert_eq!(claims.len(), 1);
        assert_eq!((claims[0].notice.kind, claims[0].notice.expires_at_ms), (Kind::Cleanup(Reason::Expired), e));
        assert_eq!(raw.ack(claims).await, [Settled::Settled]);
    }
}

#[tokio::test]
async fn an_id_that_is_too_long_or_empty_stops_nobody_else() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        let (exp, e) = (raw.key(0, "exp"), START + 30 * MINUTE);
        raw.redis_cli(&format!("ZADD {exp} {e} \"\" {e} a {e} {}\n", "x".repeat(1025)));
        let listed = raw.namespace.list(&ListQuery::default()).await.unwrap();
        assert_eq!(listed.iter().map(|it| it.id.to_string()).collect::<Vec<_>>(), ["a"]);
        raw.at(20 * MINUTE);
        assert_eq!(raw.handled().await, ["10m of a"]);
        let stats = raw.namespace.stats().await.unwrap();
        assert_eq!((stats.quarantined, stats.armed), (2, 1), "N5");
        raw.redis_cli(&format!("ZADD {exp} {e} \"\"\n"));
        raw.at(30 * MINUTE);
        assert_eq!(raw.handled().await, ["expired of a"]);
        let stats = raw.namespace.stats().await.unwrap();
        assert_eq!((stats.quarantined, stats.armed), (2, 0), "met as a cleanup, it is quarantined as well");
    }
}

#[tokio::test]
async fn a_removal_by_zrem_does_not_reach_an_open_cleanup_but_the_library_does() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        let exp = raw.key(0, "exp");
        raw.redis_cli(&format!("ZADD {exp} {} a\n", START + MINUTE));
        raw.at(2 * MINUTE);
        let claims = raw.claim(100).await.claims;
        assert_eq!(claims.iter().map(said).collect::<Vec<_>>(), ["expired of a"]);
        raw.redis_cli(&format!("ZREM {exp} a\n"));
        raw.at(4 * MINUTE);
        let claims = raw.claim(100).await.claims;
        assert_eq!(claims.iter().map(said).collect::<Vec<_>>(), ["expired of a"], "N4");
        assert_eq!(raw.namespace.remove("a").await.unwrap(), Removed::Voided);
        assert_eq!(raw.ack(claims).await, [Settled::Stale], "W5.3");
    }
}

#[tokio::test]
async fn a_raw_set_after_expiry_saves_what_no_worker_has_noticed() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        let exp = raw.key(0, "exp");
        raw.redis_cli(&format!("ZADD {exp} {} a\n", START + MINUTE));
        raw.at(2 * MINUTE);
        raw.redis_cli(&format!("ZADD {exp} {} a\n", START + 30 * MINUTE));
        assert_eq!(raw.handled().await, [""; 0], "N2");
        raw.at(30 * MINUTE);
        assert_eq!(raw.handled().await, ["expired of a"]);
        assert_eq!(raw.redis_cli(&format!("ZADD {exp} XX CH {} a\n", START + 90 * MINUTE)), "0\n", "N2");
    }
}

#[tokio::test]
async fn entries_older_than_their_namespace_are_reminded_when_it_comes() {
    for kind in servers() {
        let raw = Raw::unconfigured(kind, 1).await;
        raw.redis_cli(&format!("ZADD {} {} a\n", raw.key(0, "exp"), START + 5 * MINUTE));
        raw.configure(FirstStart::Speak).await;
        assert_eq!(raw.handled().await, ["10m of a"], "S4");
    }
}

#[tokio::test]
async fn entries_older_than_a_namespace_that_starts_silent_are_not_reminded() {
    for kind in servers() {
        let raw = Raw::unconfigured(kind, 1).await;
        raw.redis_cli(&format!("ZADD {} {} a\n", raw.key(0, "exp"), START + 5 * MINUTE));
        raw.configure(FirstStart::Silent).await;
        assert_eq!(raw.handled().await, [""; 0], "S4");
        raw.at(4 * MINUTE);
        assert_eq!(raw.handled().await, ["1m of a"]);
    }
}

#[tokio::test]
async fn a_worker_looks_for_raw_writes_at_least_once_a_second() {
    for kind in servers() {
        let raw = Raw::new(kind, 1).await;
        assert_eq!(raw.claim(100).await.next, Next::At { due_at_ms: None, poll_at_ms: START + 1_000 }, "Z2, T2");
    }
}

#[tokio::test]
async fn the_shards_in_the_page_are_those_of_the_library() {
    let (four, many) = (Raw::new(ServerKind::Redis, 4).await, Raw::new(ServerKind::Redis, 32).await);
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && line.contains("` | `"));
    let mut checked = 0;
    for row in rows.chain(PAGE.lines().filter(|line| line.starts_with("| one byte"))) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, hex, _, of_four, of_many] = cells[..] else { continue };
        let Some(id) = unhex(hex) else { continue };
        for (raw, shard) in [(&four, of_four), (&many, of_many)] {
            let tracked = raw.namespace.track(id.clone(), at_the_hour()).await.unwrap();
            assert_eq!(tracked, Tracked::Created { already_expired: false });
            let mut connection = raw.server.connection().await;
            let exp = raw.key(shard.parse().unwrap(), "exp");
            let score: Option<f64> =
                redis::cmd("ZSCORE").arg(&exp).arg(&id).query_async(&mut connection).await.unwrap();
            assert!(score.is_some(), "{row}: not in {exp}");
        }
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[tokio::test]
async fn the_redis_cli_example_of_the_page_works_as_it_stands() {
    let server = Server::start();
    let forewarn = Forewarn::connect(&server.url()).await.unwrap();
    let sessions = forewarn.namespace("session");
    sessions.apply(Settings::default().remind("10m".parse().unwrap())).await.unwrap();
    let example = example_of("sh", "expires_at=");
    let (save, log_out) = example.split_at(example.find("redis-cli ZREM").unwrap());

    run_on(&server, save);
    let view = sessions.show("user_session:wang2024").await.unwrap().unwrap();
    let expires_in = view.expires_at_ms.unwrap() - forewarn::clock::now_ms();
    assert!((29 * MINUTE..=30 * MINUTE).contains(&expires_in), "{expires_in}");
    let mut connection = server.connection().await;
    let ttl: i64 = redis::cmd("PTTL").arg("user_session:wang2024").query_async(&mut connection).await.unwrap();
    assert!((29 * MINUTE..=30 * MINUTE).contains(&ttl), "{ttl}");

    run_on(&server, log_out);
    assert_eq!(sessions.show("user_session:wang2024").await.unwrap(), None);
}

#[test]
fn the_python_example_of_the_page_spells_the_key_of_the_shard() {
    let example = example_of("python", "import time, zlib, redis");
    let (function, _) = example.split_once("\ndef save").unwrap();
    let function = function.replace(", redis\n", "\n").replace("store = redis.Redis()\n", "");
    let program = format!("{function}\nprint(key(b'user_session:wang2024', 'exp'))");
    let output = Command::new("python3").args(["-c", &program]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "{fw:session:6}:exp");
}

/// Runs a shell script in which redis-cli speaks to this server instead of the default port.
fn run_on(server: &Server, script: &str) {
    let function = format!("redis() {{ redis-cli -p {} \"$@\"; }}\n", server.port());
    let script = function + &script.replace("redis-cli ", "redis ");
    let status = Command::new("sh").args(["-ec", &script]).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{script}");
}

/// The example of the page in this language that begins so.
fn example_of(language: &str, begin: &str) -> &'static str {
    let mut blocks = PAGE.split("```").skip(1).step_by(2);
    blocks
        .find_map(|block| block.strip_prefix(language)?.strip_prefix('\n').filter(|text| text.starts_with(begin)))
        .unwrap()
}

fn at_the_hour() -> forewarn::ExpiresAt {
    forewarn::ExpiresAt::from_millis(START + 60 * MINUTE).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok());
    pairs.collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty())
}
