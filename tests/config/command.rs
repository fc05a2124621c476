//! `forewarn config`: as a user runs it.

use std::process::Command;

use crate::harness::{Kind, Server, namespace};
use crate::stage::Stage;

/// The exit status, stdout and stderr of `config` with these words and nothing of the tester's own environment.
fn run(words: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn"));
    command.arg("config").args(words).env_clear().env("HOME", "/nonexistent");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_example_is_a_configuration_that_works() {
    let (code, example, err) = run(&["example"], &[]);
    assert_eq!((code, err.as_str()), (0, ""));
    let stage = Stage::new();
    let file = stage.write("forewarn.toml", &example);
    let store = format!("sqlite:{}", stage.path("forewarn.db").display());
    let (code, out, err) = run(&["check", "--config", file.to_str().unwrap(), "--store", &store], &[]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("the file is missing"), "{out}");
    assert!(!stage.path("forewarn.db").exists(), "check changes nothing");
}

#[test]
fn a_check_tells_every_mistake_and_exits_with_2() {
    let stage = Stage::new();
    let file = stage.write("forewarn.toml", "listn = 1\n[limits]\nmax_body = 1\n");
    let (code, out, err) = run(&["check", "--config", file.to_str().unwrap()], &[("FOREWARN_INSECURE", "maybe")]);
    assert_eq!((code, out.as_str()), (2, ""));
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), 3, "{err}");
    assert_eq!(lines[0], format!("error: {}:1: listn is unknown; did you mean listen?", file.display()));
    let (code, _, err) = run(&["check"], &[("FOREWARN_LOG__FILTER", "[[[")]);
    assert_eq!((code, err.contains("log.filter")), (2, true), "{err}");
}

#[test]
fn a_check_reaches_the_store_and_tells_what_applying_would_do() {
    let server = Server::shared(Kind::Redis);
    let (known, fresh) = (namespace(), namespace());
    let stage = Stage::new();
    let file = stage.write(
        "forewarn.toml",
        &format!("revision = 1\n[namespace.{known}]\nremind = [\"10m\"]\n[namespace.{fresh}]\n"),
    );
    let words = ["check", "--config", file.to_str().unwrap()];
    let url = server.url();
    let environment = [("FOREWARN_STORE", url.as_str())];
    let apply = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn"));
        command.args(["namespace", "apply", &known]).args(words).env_clear().env("FOREWARN_STORE", &url);
        assert!(command.output().unwrap().status.success());
    };
    apply(&["--remind", "1m"]);
    let (code, out, err) = run(&words, &environment);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains(&format!("namespace {known}: would be changed")), "{out}");
    assert!(out.contains(&format!("namespace {fresh}: would be created")), "{out}");
    apply(&["--revision", "7"]);
    let (_, out, _) = run(&words, &environment);
    assert!(out.contains(&format!("namespace {known}: would be left alone: newer settings (revision 7)")), "{out}");
    let (code, _, err) = run(&words, &[("FOREWARN_STORE", "redis://127.0.0.1:1")]);
    assert_eq!(code, 1, "{err}");
    let (code, _, err) = run(&words, &[("FOREWARN_STORE", "http://h")]);
    assert_eq!(code, 2, "{err}");
}

#[test]
fn show_tells_where_values_came_from_and_no_secret() {
    let secret = "s3cretpassw0rd12345";
    let stage = Stage::new();
    stage.write("token", secret);
    let digits = "0123456789abcdef".repeat(4);
    let file = stage.write(
        "forewarn.toml",
        &format!("stop_timeout = \"5s\"\n[token.a]\nsecret_file = \"token\"\n[token.b]\nhash = \"sha256:{digits}\"\n"),
    );
    let store = format!("redis://user:{secret}@h");
    let environment = [("FOREWARN_CONFIG", file.to_str().unwrap()), ("FOREWARN_STORE", &store), ("FOREWARN_PORT", "1")];
    let (code, out, err) = run(&["show"], &environment);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("FOREWARN_PORT"), "{err}");
    assert!(!out.contains(secret) && !out.contains(&digits), "{out}");
    let line =
        |key: &str| out.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("no {key} in {out}"));
    assert!(line("store =").contains("\"redis://user:***@h\"") && line("store =").ends_with("# FOREWARN_STORE"));
    assert!(line("stop_timeout").ends_with(&format!("# {}:1", file.display())));
    assert!(line("listen").ends_with("# default"));
    assert!(line("token.b.hash").contains("\"***\""));
    let (_, json, _) = run(&["show", "--json"], &environment);
    assert!(!json.contains(secret) && !json.contains(&digits), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let values = json["values"].as_array().unwrap();
    let value = values.iter().find(|value| value["key"] == "stop_timeout").unwrap();
    assert_eq!((&value["value"], &value["origin"]["line"]), (&"5s".into(), &1.into()));
    let (_, out, _) = run(&["show", "--store", "sqlite:x.db"], &environment);
    assert!(out.contains("store = \"sqlite:x.db\"") && out.contains("# --store"), "{out}");
}
