//! What `docs/http.md` tells to type is run as it stands there, but for the address.

use std::process::Stdio;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use crate::{
    harness::{eventually, within},
    stage::{Daemon, Setup},
};

/// The first block of the document in this language, for this daemon.
fn block(language: &str, daemon: &Daemon) -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/http.md")).unwrap();
    let begin = format!("```{language}\n");
    let block = text.split(begin.as_str()).nth(1).unwrap().split("```").next().unwrap();
    assert!(block.contains("http://127.0.0.1:7878"), "{block}");
    block.replace("http://127.0.0.1:7878", &daemon.url)
}

#[tokio::test]
async fn the_documented_commands_and_the_documented_worker_do_what_is_said() {
    let daemon = Setup::on_file().start().await;
    let commands =
        block("sh", &daemon).replace("forewarn serve &\n", "").replace("curl ", "curl --no-progress-meter -w '\\n' ");
    let output = Command::new("sh").args(["-ec", &commands]).env("NO_PROXY", "*").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let words: Vec<&str> = answers[1..].iter().map(|answer| answer["result"].as_str().unwrap_or("shown")).collect();
    assert_eq!(words, ["created", "renewed", "shown", "removed"], "{answers:?}");
    assert_eq!(answers[3]["payload"]["user"], 7);
    let namespace = daemon.get("/v1/namespaces/session").await.json(200);
    assert_eq!(namespace["settings"]["remind"].as_array().unwrap().len(), 2, "{namespace}");

    daemon.track_expired("session", &["a".to_owned()]).await;
    let mut worker = Command::new("python3");
    worker.args(["-uc", &block("python", &daemon)]).env("NO_PROXY", "*").stdout(Stdio::piped()).kill_on_drop(true);
    let mut worker = worker.spawn().unwrap();
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    let line = within("what the worker handles", lines.next_line()).await.unwrap();
    assert_eq!(line.as_deref(), Some("cleanup a None"));
    eventually("its acknowledgement", async || {
        let stats = daemon.get("/v1/namespaces/session/stats").await.json(200);
        (stats["open"] == 0).then_some(())
    })
    .await;
}
