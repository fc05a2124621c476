//! Layers: every key by every way in, the stronger one first, and where each value came from.

use std::{path::PathBuf, time::Duration};

use forewarn::config::{Config, Layers, Loaded, LogFormat, Origin, Scope, StorePlace, Token, TokenHash, example};
use forewarn::model::{FirstStart, Late, OnGone, OnRearm, Settings};

use crate::stage::{Stage, config, layers, text, value, with_env, with_flag};

const HASH: &str = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";
const SECRET: &str = "0123456789abcdef";

/// Every key with a value that is not its default: as TOML writes it, and as a variable or a flag does.
const KEYS: &[(&str, &str, &str)] = &[
    ("store", r#""redis://h:1/2""#, "redis://h:1/2"),
    ("listen", r#""[::1]:0""#, "[::1]:0"),
    ("insecure", "true", "true"),
    ("stop_timeout", r#""1m 5s""#, "1m 5s"),
    ("revision", "3", "3"),
    ("log.format", r#""json""#, "json"),
    ("log.filter", r#""debug""#, "debug"),
    ("limits.max_body", "2048", "2048"),
    ("limits.max_header", "8192", "8192"),
    ("limits.request_timeout", r#""1s""#, "1s"),
    ("limits.header_timeout", r#""2s""#, "2s"),
    ("limits.max_connections", "1", "1"),
    ("limits.max_requests", "2", "2"),
    ("limits.max_waiting", "3", "3"),
    ("token.ops.hash", "HASH", "HASH"),
    ("token.ops.scopes", r#"["read", "write"]"#, "read,write"),
    ("token.ops.namespaces", r#"["a", "b"]"#, "a, b"),
    ("namespace.session.remind", r#"["10m", "1m 30s"]"#, "10m,1m 30s"),
    ("namespace.session.cleanup", "false", "false"),
    ("namespace.session.grace", r#""4s""#, "4s"),
    ("namespace.session.late", r#""fire""#, "fire"),
    ("namespace.session.on_rearm", r#""deliver""#, "deliver"),
    ("namespace.session.min_repeat", r#""5s""#, "5s"),
    ("namespace.session.lease", r#""6s""#, "6s"),
    ("namespace.session.clock_tolerance", r#""7s""#, "7s"),
    ("namespace.session.max_deliveries", "8", "8"),
    ("namespace.session.max_payload", "9", "9"),
    ("namespace.session.shards", "10", "10"),
    ("namespace.session.key_backed", "true", "true"),
    ("namespace.session.keys", r#"["a,:*"]"#, r#"["a,:*"]"#),
    ("namespace.session.manage_keys", "true", "true"),
    ("namespace.session.on_gone", r#""drop""#, "drop"),
    ("namespace.session.recheck_interval", r#""11s""#, "11s"),
    ("namespace.session.history", "12", "12"),
    ("namespace.session.sensitive_ids", "true", "true"),
    ("namespace.session.revision", "13", "13"),
    ("namespace.session.routes", r#"["main", "mail:reminders"]"#, "main,mail:reminders"),
    ("namespace.session.first_start", r#""silent""#, "silent"),
];

/// Keys that stand in the place of others, or only together.
const APART: &[&str] =
    &["store_password_file", "tls.cert_file", "tls.key_file", "token.ops.secret_env", "token.ops.secret_file"];

fn variable(key: &str) -> String {
    format!("FOREWARN_{}", key.to_uppercase().replace('.', "__"))
}

fn assert_all(config: &Config) {
    assert_eq!(config.store, StorePlace::Url("redis://h:1/2".to_owned()));
    assert_eq!((config.listen.to_string().as_str(), config.insecure), ("[::1]:0", true));
    assert_eq!(config.stop_timeout, Duration::from_secs(65));
    assert_eq!((config.log.format, config.log.filter.as_str()), (LogFormat::Json, "debug"));
    let limits = &config.limits;
    assert_eq!((limits.max_body, limits.max_header), (2048, 8192));
    assert_eq!((limits.request_timeout, limits.header_timeout), (Duration::from_secs(1), Duration::from_secs(2)));
    assert_eq!((limits.max_connections, limits.max_requests, limits.max_waiting), (1, 2, 3));
    let Token { name, hash, scope, namespaces } = &config.tokens[0];
    assert_eq!((name.as_str(), *hash, *scope), ("ops", TokenHash::of(b"secret for the test"), Scope::Write));
    assert_eq!(namespaces.as_ref().unwrap().iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let namespace = &config.namespaces[0];
    let mut settings = Settings::default()
        .remind("10m".parse().unwrap())
        .remind("90s".parse().unwrap())
        .cleanup(false)
        .grace(Duration::from_secs(4))
        .late(Late::Fire)
        .lease(Duration::from_secs(6))
        .shards(10)
        .key_backed(true)
        .keys("a,:*".parse().unwrap())
        .manage_keys(true)
        .on_gone(OnGone::Drop)
        .history(12);
    settings.on_rearm = OnRearm::Deliver;
    settings.min_repeat = Some(Duration::from_secs(5));
    settings.clock_tolerance = Duration::from_secs(7);
    settings.max_deliveries = 8;
    settings.max_payload = 9;
    settings.recheck_interval = Duration::from_secs(11);
    settings.sensitive_ids = true;
    settings.revision = Some(13);
    assert_eq!(namespace.name.as_str(), "session");
    assert_eq!(namespace.change.settings.as_ref(), Some(&settings));
    assert_eq!(namespace.change.first_start, FirstStart::Silent);
    let routes: Vec<String> = namespace.change.routes.iter().map(ToString::to_string).collect();
    assert_eq!(routes, ["main", "mail:reminders"]);
}

fn hashed(text: &str) -> String {
    let hash: String =
        TokenHash::of(b"secret for the test").as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    text.replace("HASH", &format!("sha256:{hash}"))
}

fn as_toml(text: &str) -> String {
    if text == "HASH" { format!("\"{}\"", hashed(text)) } else { text.to_owned() }
}

#[track_caller]
fn origins(loaded: &Loaded, wanted: impl Fn(&str, &Origin) -> bool) {
    for (key, _, _) in KEYS {
        let origin = &value(loaded, key).origin;
        assert!(wanted(key, origin), "{key}: {origin:?}");
    }
}

#[test]
fn every_key_is_read_from_a_file() {
    let stage = Stage::new();
    let lines: Vec<String> = KEYS.iter().map(|(key, toml, _)| format!("{key} = {}", as_toml(toml))).collect();
    let loaded = stage.layers(&lines.join("\n")).load().unwrap();
    assert_all(&loaded.config);
    origins(&loaded, |key, origin| {
        let line = KEYS.iter().position(|(one, _, _)| *one == key).unwrap() + 1;
        *origin == Origin::File(stage.path("forewarn.toml"), line)
    });
}

#[test]
fn every_key_is_read_from_the_environment() {
    let mut layers = layers();
    for (key, _, text) in KEYS {
        layers.env.push((variable(key).into(), hashed(text).into()));
    }
    let loaded = layers.load().unwrap();
    assert_all(&loaded.config);
    origins(&loaded, |key, origin| *origin == Origin::Env(variable(key)));
}

#[test]
fn every_key_is_read_from_flags_and_they_win() {
    let stage = Stage::new();
    let mut layers =
        with_env(stage.layers("listen = \"h:1\"\n[limits]\nmax_body = 4096"), &[("FOREWARN_LISTEN", "h:2")]);
    for (key, _, text) in KEYS {
        layers = with_flag(layers, "--set", key, &hashed(text));
    }
    let loaded = layers.load().unwrap();
    assert_all(&loaded.config);
    origins(&loaded, |_, origin| *origin == Origin::Flag("--set"));
}

#[test]
fn no_key_is_forgotten_in_these_tests() {
    let stage = Stage::new();
    let loaded = stage
        .layers("[token.ops]\nhash = \"HASH\"\n[namespace.session]".replace("HASH", HASH).as_str())
        .load()
        .unwrap();
    let tested: Vec<&str> = KEYS.iter().map(|(key, _, _)| *key).chain(APART.iter().copied()).collect();
    let mut known: Vec<&str> = loaded.values.iter().map(|value| value.key.as_str()).collect();
    assert!(known.iter().all(|key| tested.contains(key)), "{known:?}");
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), tested.len());
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let stage = Stage::new();
    let file = stage.layers("[limits]\nmax_requests = 1\nmax_waiting = 1\nmax_connections = 1");
    let env = [("FOREWARN_LIMITS__MAX_REQUESTS", "2"), ("FOREWARN_LIMITS__MAX_WAITING", "2"), ("FOREWARN_LISTEN", "")];
    let all = with_flag(with_env(file, &env), "--max-requests", "limits.max_requests", "3");
    let loaded = all.load().unwrap();
    let limits = &loaded.config.limits;
    assert_eq!((limits.max_requests, limits.max_waiting, limits.max_connections), (3, 2, 1));
    assert_eq!(value(&loaded, "listen").origin, Origin::Default);
    assert_eq!(loaded.config.listen.to_string(), "127.0.0.1:7878");
}

#[test]
fn a_variable_finds_the_name_that_looks_like_it() {
    let stage = Stage::new();
    let layers = stage.layers("[namespace.\"up-load.x\"]\n[namespace.a__b]");
    let env = [
        ("FOREWARN_NAMESPACE__UP_LOAD_X__LEASE", "5s"),
        ("FOREWARN_NAMESPACE__A__B__LEASE", "6s"),
        ("FOREWARN_NAMESPACE__NEW__LEASE", "7s"),
    ];
    let loaded = with_env(layers, &env).load().unwrap();
    let leases: Vec<(&str, u64)> = loaded
        .config
        .namespaces
        .iter()
        .map(|one| (one.name.as_str(), one.change.settings.as_ref().unwrap().lease.as_secs()))
        .collect();
    assert_eq!(leases, [("a__b", 6), ("new", 7), ("up-load.x", 5)]);
    assert_eq!(value(&loaded, "namespace.\"up-load.x\".lease").text(), "\"5s\"");
}

#[test]
fn without_a_name_the_file_is_the_users_own() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("forewarn")).unwrap();
    let path = stage.write("forewarn/forewarn.toml", "listen = \"localhost:1\"");
    let named = stage.write("named.toml", "listen = \"localhost:2\"");
    let home = stage.path("").to_str().unwrap().to_owned();
    let found = with_env(layers(), &[("XDG_CONFIG_HOME", &home)]);
    let loaded = found.load().unwrap();
    assert_eq!((loaded.config.listen.port, loaded.file.as_ref()), (1, Some(&path)));
    let found = with_env(found, &[("FOREWARN_CONFIG", named.to_str().unwrap())]);
    assert_eq!(found.load().unwrap().config.listen.port, 2);
    assert_eq!(Layers { file: Some(path), ..found }.load().unwrap().config.listen.port, 1);
}

#[test]
fn the_store_is_a_file_of_the_user_where_none_is_named() {
    let loaded = with_env(layers(), &[("XDG_DATA_HOME", "/data")]).load().unwrap();
    assert_eq!(loaded.config.store, StorePlace::File(PathBuf::from("/data/forewarn/forewarn.db")));
    assert_eq!(value(&loaded, "store").text(), "\"sqlite:/data/forewarn/forewarn.db\"");
}

#[test]
fn passwords_and_secrets_come_from_files_and_variables() {
    let stage = Stage::new();
    stage.write("password", "p@ss\n");
    stage.write("token", &format!("  {SECRET}\n"));
    let text = "
        store = \"redis://user@host\"\nstore_password_file = \"password\"
        [token.a]\nsecret_file = \"token\"\nscopes = [\"admin\"]
        [token.b]\nsecret_env = \"FOREWARN_B_SECRET\"";
    let loaded = with_env(stage.layers(text), &[("FOREWARN_B_SECRET", "fedcba9876543210")]).load().unwrap();
    assert_eq!(loaded.config.store, StorePlace::Url("redis://user:p%40ss@host".to_owned()));
    assert_eq!(loaded.config.tokens[0].hash, TokenHash::of(SECRET.as_bytes()));
    assert_eq!(loaded.config.tokens[1].hash, TokenHash::of(b"fedcba9876543210"));
    assert_eq!(loaded.warnings, Vec::<String>::new());
    crate::stage::keeps("p%40ss", &[&loaded]);
    crate::stage::keeps(SECRET, &[&loaded]);
    let layers = with_flag(with_env(layers(), &[("FOREWARN_STORE", SECRET)]), "--store", "store", SECRET);
    crate::stage::keeps(SECRET, &[&layers]);
}

#[test]
fn the_example_gives_the_defaults_and_has_every_key() {
    let example = example();
    assert_eq!(config(&example), config(""));
    let uncommented: Vec<&str> = example
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(code) if code.starts_with('[') || code.split_once(" = ").is_some_and(|(key, _)| is_key(key)) => code,
            _ => line,
        })
        .filter(|line| !["secret_env", "secret_file", "store_password_file"].iter().any(|key| line.starts_with(key)))
        .collect();
    let stage = Stage::new();
    // The examples of some keys suit only namespaces of another kind.
    let text = uncommented.join("\n").replace("key_backed = false", "key_backed = true");
    let loaded = stage.layers(&text).load().unwrap_or_else(|error| panic!("{error}"));
    for value in &loaded.values {
        let is_file = matches!(value.origin, Origin::File(..));
        assert!(is_file || APART.contains(&value.key.as_str()), "{} is not in the example", value.key);
    }
    for key in APART {
        assert!(example.contains(&format!("# {} = ", key.rsplit('.').next().unwrap())), "{key}");
    }
}

fn is_key(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

#[test]
fn revisions_of_namespaces_are_those_of_the_file_unless_they_have_their_own() {
    let loaded = Stage::new().layers("revision = 5\n[namespace.a]\n[namespace.b]\nrevision = 6").load().unwrap();
    let revisions: Vec<Option<u64>> =
        loaded.config.namespaces.iter().map(|one| one.change.settings.as_ref().unwrap().revision).collect();
    assert_eq!(revisions, [Some(5), Some(6)]);
    assert_eq!(value(&loaded, "namespace.a.revision").text(), "5");
}

#[test]
fn scopes_include_each_other() {
    let namespaces = "[token.a]\nhash = \"HASH\"\nscopes = [\"write\"]\nnamespaces = [\"s\"]".replace("HASH", HASH);
    let token = config(&namespaces).tokens.remove(0);
    let (here, there) = ("s".parse().unwrap(), "t".parse().unwrap());
    assert!(token.allows(Scope::Read, Some(&here)) && token.allows(Scope::Write, Some(&here)));
    assert!(!token.allows(Scope::Admin, Some(&here)) && !token.allows(Scope::Read, Some(&there)));
    assert!(token.allows(Scope::Read, None) && !token.allows(Scope::Write, None));
}

#[test]
fn a_path_in_a_file_is_meant_from_where_the_file_is() {
    let stage = Stage::new();
    let tls = stage.layers("[tls]\ncert_file = \"a.crt\"\nkey_file = \"/b.key\"").load().unwrap().config.tls.unwrap();
    assert_eq!((tls.cert_file, tls.key_file), (stage.path("a.crt"), PathBuf::from("/b.key")));
    assert!(text(&stage.path("forewarn.toml")).contains("a.crt"));
}
