//! Mistakes: all told at once, each with its place, its key and the fix.

use crate::stage::{Stage, keeps, layers, problems, with_env, with_flag};

fn of_file(text: &str) -> Vec<String> {
    problems(Stage::new().layers(text).load())
}

fn of_variable(name: &str, value: &str) -> String {
    problems(with_env(layers(), &[(name, value)]).load()).join("\n")
}

#[test]
fn all_mistakes_are_told_at_once_where_they_are() {
    let text = "\
listn = \"127.0.0.1:1\"
stop_timeout = 30

[limits]
max_body = \"4 MiB\"
max_requests = 0

[namespace.session]
remind = [\"10m\", 60]
late = \"crosing\"
lease = \"60\"
retries = 3

[namespace.Upload]
[namespace.job]
shards = 2
manage_keys = true
[token.ops]
";
    let stage = Stage::new();
    let wrong = with_env(stage.layers(text), &[("FOREWARN_LOG__FORMAT", "jsn"), ("FOREWARN_INSECURE", "yes")]);
    let wrong = with_flag(wrong, "--listen", "listen", "localhost");
    let expected = [
        "forewarn.toml:1: listn is unknown; did you mean listen?",
        "forewarn.toml:2: stop_timeout is the number 30; write a duration as text, as in \"30s\"",
        "forewarn.toml:5: limits.max_body is text; write a whole number from 1024 to 1073741824",
        "forewarn.toml:6: limits.max_requests is 0; write a whole number from 1 to 1000000",
        "forewarn.toml:9: namespace.session.remind entry 2 is the number 60; write a duration as text, as in \"10m\"",
        "forewarn.toml:10: namespace.session.late \"crosing\": did you mean \"crossing\"? use \"crossing\", \"skip\" or \"fire\"",
        "forewarn.toml:11: namespace.session.lease \"60\" has no unit; use ms, s, m, h or d, as in 10m",
        "forewarn.toml:12: namespace.session.retries is unknown; the nearest known name is ",
        "FOREWARN_INSECURE: insecure \"yes\": write true or false",
        "FOREWARN_LOG__FORMAT: log.format \"jsn\": did you mean \"json\"? use \"text\" or \"json\"",
        "--listen: listen \"localhost\" has no port; write it as in 127.0.0.1:7878, [::1]:7878 or localhost:0",
        "forewarn.toml:18: token.ops has none of hash, secret_env and secret_file; give one of them",
        "forewarn.toml:14: namespace.Upload name \"Upload\": use 1 to 64 of a-z",
        "forewarn.toml:17: namespace.job.manage_keys is only for key-backed ids; set key_backed, too",
    ];
    let found = problems(wrong.load());
    assert!(found[0].contains("listn") && found[13].contains("--listen"), "not in order: {found:#?}");
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for expected in expected {
        assert!(found.iter().any(|one| one.starts_with(expected)), "no {expected:?} in {found:#?}");
    }
}

#[test]
fn a_key_below_the_wrong_heading_is_told_where_it_belongs() {
    let found = of_file("[limits]\nfilter = \"debug\"\n[namespace.a]\nmax_body = 5");
    assert_eq!(found[0], "forewarn.toml:2: limits.filter is unknown here; did you mean log.filter?");
    assert_eq!(found[1], "forewarn.toml:4: namespace.a.max_body is unknown here; did you mean limits.max_body?");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let found = of_file("listen = \"127.0.0.1:1\"\nstore = redis\n");
    assert!(found[0].starts_with("forewarn.toml:2: is no TOML: "), "{found:?}");
    let found = of_file("[limits]\n[limits]\n");
    assert!(found[0].starts_with("forewarn.toml:2: is no TOML: "), "{found:?}");
}

#[test]
fn a_missing_file_is_told_by_its_name() {
    let mut layers = layers();
    layers.file = Some("/nonexistent/forewarn.toml".into());
    let found = problems(layers.load());
    assert!(found[0].starts_with("the file /nonexistent/forewarn.toml cannot be read"), "{found:?}");
}

#[test]
fn an_unknown_variable_is_refused_if_it_looks_like_a_slip() {
    for (name, meant) in [
        ("FOREWARN_LISTN", "FOREWARN_LISTEN"),
        ("FOREWARN_STORES", "FOREWARN_STORE"),
        ("FOREWARN_LOGS", "FOREWARN_LOG"),
        ("FOREWARN_LIMITS__MAX_BDY", "FOREWARN_LIMITS__MAX_BODY"),
        ("FOREWARN_LIMIT__MAX_BODY", "FOREWARN_LIMITS__MAX_BODY"),
        ("FOREWARN_NAMESPACE__UPLOAD__LEASES", "FOREWARN_NAMESPACE__UPLOAD__LEASE"),
        ("FOREWARN_TOKENS__OPS__HASH", "FOREWARN_TOKEN__OPS__HASH"),
    ] {
        assert_eq!(of_variable(name, "1"), format!("{name}: is unknown; did you mean {meant}?"));
    }
    assert!(of_variable("FOREWARN_LIMITS", "1").starts_with("FOREWARN_LIMITS: is a table; name a key in it"));
}

#[test]
fn other_variables_are_only_warned_of_and_our_own_not_even_that() {
    let foreign = [("FOREWARN_PORT", "tcp://10.0.0.1:80"), ("FOREWARN_SERVICE_HOST", "10.0.0.1"), ("PATH", "x")];
    let loaded = with_env(layers(), &foreign).load().unwrap();
    assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].contains("FOREWARN_PORT"));
    let own = ["CONFIG", "SERVER", "TOKEN", "NAMESPACE", "ROUTE", "KIND", "ATTEMPT", "EVENT_ID", "ID", "ID_BASE64"];
    let own: Vec<String> = own.iter().skip(1).map(|name| format!("FOREWARN_{name}")).collect();
    let own: Vec<(&str, &str)> = own.iter().map(|name| (name.as_str(), "x")).collect();
    assert_eq!(with_env(layers(), &own).load().unwrap().warnings, Vec::<String>::new());
}

#[test]
fn two_variables_for_one_key_are_refused() {
    let both = with_env(layers(), &[("FOREWARN_LOG", "debug"), ("FOREWARN_LOG__FILTER", "info")]);
    assert_eq!(
        problems(both.load()),
        ["FOREWARN_LOG__FILTER: log.filter is given by FOREWARN_LOG, too; give one of them"]
    );
    assert_eq!(with_env(layers(), &[("FOREWARN_LOG", "debug")]).load().unwrap().config.log.filter, "debug");
}

#[test]
fn an_open_address_needs_a_token_or_a_word() {
    let open = "listen = \"0.0.0.0:7878\"\n";
    let found = of_file(open);
    assert!(
        found[0].starts_with("forewarn.toml:1: listen is 0.0.0.0:7878, which other machines can reach"),
        "{found:?}"
    );
    assert!(found[0].contains("--insecure"));
    assert!(Stage::new().layers(&format!("{open}insecure = true")).load().is_ok());
    let token = format!("{open}[token.ops]\nsecret_env = \"OPS\"");
    let loaded = with_env(Stage::new().layers(&token), &[("OPS", "0123456789abcdef")]).load().unwrap();
    assert!(loaded.warnings[0].contains("plain text"), "{:?}", loaded.warnings);
    for loopback in ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1"] {
        assert!(Stage::new().layers(&format!("listen = \"{loopback}\"")).load().is_ok(), "{loopback}");
    }
    for reachable in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1"] {
        assert!(Stage::new().layers(&format!("listen = \"{reachable}\"")).load().is_err(), "{reachable}");
    }
}

#[test]
fn tokens_that_cannot_serve_are_refused() {
    let token = |text: &str| {
        let stage = Stage::new();
        stage.write("short", "tooshort");
        stage.write("empty", " \n");
        problems(with_env(stage.layers(&format!("[token.ops]\n{text}")), &[("SPACED", "0123456789 abcdef")]).load())
            .join("\n")
    };
    assert!(token("hash = \"sha256:12\"").contains("token.ops.hash is no hash; write sha256: and 64 hex digits"));
    assert!(token("secret_env = \"MISSING\"").contains("names the variable \"MISSING\", which is not set"));
    assert!(token("secret_env = \"SPACED\"").contains("holds spaces"));
    assert!(token("secret_file = \"short\"").contains("fewer than 16 characters"));
    assert!(token("secret_file = \"empty\"").contains("is empty"));
    assert!(token("secret_file = \"missing\"").contains("cannot be read"));
    assert!(
        token("secret_file = \"a\"\nsecret_env = \"B\"").contains("more than one of hash, secret_env and secret_file")
    );
    assert_eq!(token("hash = 5").lines().count(), 1, "what is wrong is not missing");
    assert!(token("secret_env = \"A\"\nscopes = []").contains("scopes is empty"));
    let twice = "[token.a]\nsecret_env = \"S\"\n[token.b]\nsecret_env = \"S\"";
    let found = problems(with_env(Stage::new().layers(twice), &[("S", "0123456789abcdef")]).load());
    assert_eq!(found, ["forewarn.toml:3: token.b has the same secret as token a; give each its own"]);
}

#[test]
fn no_error_shows_a_secret_at_the_wrong_place() {
    let secret = "s3cretpassw0rd";
    let text = format!(
        "store = [\"redis://:{secret}@h\"]\ninsecure = \"{secret}\"\n[token.a]\nhash = \"{secret}\"\nscopes = \"{secret}\""
    );
    let error = Stage::new().layers(&text).load().unwrap_err();
    keeps(secret, &[&error]);
    assert_eq!(error.problems.len(), 4, "{error}");
}

#[test]
fn half_a_certificate_and_a_password_without_a_place_are_refused() {
    assert!(of_file("[tls]\ncert_file = \"a\"")[0].contains("tls.cert_file is given without tls.key_file"));
    assert!(of_file("[tls]\nkey_file = \"a\"")[0].contains("tls.key_file is given without tls.cert_file"));
    let stage = Stage::new();
    stage.write("password", "p");
    let found = problems(stage.layers("store_password_file = \"password\"").load());
    assert!(found[0].contains("store_password_file is given for a store without passwords"), "{found:?}");
}
