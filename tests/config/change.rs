//! Changes while the daemon runs: a file that is written, a signal, and what differs.

use std::time::Duration;

use forewarn::config::{Changes, Loaded, Reload};

use crate::harness::within;
use crate::stage::{Stage, config, keeps};

/// Waits for a configuration that is as wished. A signal that is meant for another test may bring others before it.
async fn wait_for(changes: &mut Changes, what: &str, wished: impl Fn(&Loaded) -> bool) -> Loaded {
    within(what, async {
        loop {
            match changes.next().await {
                Ok(loaded) if wished(&loaded) => return loaded,
                _ => {}
            }
        }
    })
    .await
}

fn watch(stage: &Stage, text: &str) -> Changes {
    Changes::every(stage.layers(text), Duration::from_millis(5)).unwrap()
}

#[tokio::test]
async fn a_file_that_changes_is_loaded_again() {
    let stage = Stage::new();
    let mut changes = watch(&stage, "listen = \"localhost:1\"");
    stage.write("forewarn.toml", "listen = \"localhost:2\"");
    wait_for(&mut changes, "the new port", |loaded| loaded.config.listen.port == 2).await;
    std::fs::rename(stage.write("next.toml", "listen = \"localhost:3\""), stage.path("forewarn.toml")).unwrap();
    wait_for(&mut changes, "the file put in its place", |loaded| loaded.config.listen.port == 3).await;
}

#[tokio::test]
async fn a_broken_file_is_told_and_a_mended_one_loaded() {
    let stage = Stage::new();
    let mut changes = watch(&stage, "");
    stage.write("forewarn.toml", "listn = 1");
    let error = within("the mistake", async {
        loop {
            if let Err(error) = changes.next().await {
                return error;
            }
        }
    });
    assert!(error.await.to_string().contains("did you mean listen?"));
    stage.write("forewarn.toml", "insecure = true");
    wait_for(&mut changes, "the mended file", |loaded| loaded.config.insecure).await;
}

#[tokio::test]
async fn a_secret_that_changes_is_loaded_again() {
    let stage = Stage::new();
    stage.write("token", "0123456789abcdef");
    let text = "[token.a]\nsecret_file = \"token\"";
    let before = stage.layers(text).load().unwrap().config;
    let mut changes = watch(&stage, text);
    stage.write("token", "fedcba9876543210");
    let after = wait_for(&mut changes, "the new secret", |loaded| loaded.config.tokens != before.tokens).await.config;
    assert_eq!(before.difference(&after).to_string(), "in force now: token.a");
    keeps("fedcba9876543210", &[&after]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_hangup_loads_again_what_has_not_changed() {
    let stage = Stage::new();
    let layers = stage.layers("listen = \"localhost:7\"");
    // Far longer than the test may take, so that only the signal can bring it.
    let mut changes = Changes::every(layers, Duration::from_secs(3_600)).unwrap();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP).unwrap();
    wait_for(&mut changes, "the signal", |loaded| loaded.config.listen.port == 7).await;
}

#[test]
fn the_difference_tells_what_needs_a_restart() {
    let hash = |digit: &str| format!("hash = \"sha256:{}\"", digit.repeat(64));
    let old = config(&format!("[token.a]\n{}\n[token.b]\n{}\n[namespace.s]", hash("0"), hash("1")));
    assert!(old.difference(&old).is_empty());
    let new = config(&format!(
        "store = \"redis://h\"\nlisten = \"localhost:1\"\nstop_timeout = \"1s\"
        [log]\nformat = \"json\"\nfilter = \"debug\"
        [limits]\nmax_body = 2048\nmax_header = 9000\nrequest_timeout = \"1s\"\nheader_timeout = \"1s\"
        max_connections = 1\nmax_requests = 1\nmax_waiting = 1
        [tls]\ncert_file = \"a\"\nkey_file = \"b\"
        [token.a]\n{}\n[token.c]\n{}\n[namespace.s]\nlease = \"1s\"\n[namespace.t]",
        hash("2"),
        hash("1")
    ));
    let difference = old.difference(&new);
    assert_eq!(
        difference.keys(Reload::Restart).collect::<Vec<_>>(),
        [
            "store",
            "listen",
            "tls",
            "log.format",
            "limits.max_header",
            "limits.header_timeout",
            "limits.max_connections"
        ]
    );
    assert_eq!(
        difference.keys(Reload::Now).collect::<Vec<_>>(),
        [
            "log.filter",
            "stop_timeout",
            "limits.max_body",
            "limits.request_timeout",
            "limits.max_requests",
            "limits.max_waiting",
            "token.a",
            "token.c",
            "token.b (removed)",
            "namespace.s",
            "namespace.t"
        ]
    );
    assert!(difference.to_string().starts_with("in force now: log.filter, "), "{difference}");
    assert!(difference.to_string().contains("; needs a restart: store, listen, tls"), "{difference}");
}
