//! The configuration changes while the daemon runs, and the store loses what the configuration says.

use serde_json::json;

use crate::{
    harness::{Server, eventually},
    stage::{Daemon, Setup},
};

async fn lease(daemon: &Daemon) -> String {
    daemon.get("/v1/namespaces/session").await.json(200)["settings"]["lease"].to_string()
}

#[tokio::test]
async fn what_can_be_changed_is_changed_and_what_cannot_is_told() {
    let begin = "[namespace.session]\nlease = \"5s\"\n";
    let daemon = Setup::on_file().config(begin).start().await;
    assert_eq!(lease(&daemon).await, "\"5s\"");
    daemon.process.edit(
        "stop_timeout = \"7s\"\n[namespace.session]\nlease = \"7s\"\n[namespace.upload]\n[limits]\nmax_body = 1024\n\
         max_connections = 9\n[log]\nfilter = \"debug\"\n",
    );
    daemon.process.signal("HUP");
    let told = daemon.process.says("read again").await;
    assert!(told.contains("WARN") && told.contains("limits.max_connections") && told.contains("restart"), "{told}");
    eventually("the new settings", async || (lease(&daemon).await == "\"7s\"").then_some(())).await;
    eventually("the new namespace", async || (daemon.get("/v1/namespaces/upload").await.status == 200).then_some(()))
        .await;
    let large = json!({"ttl": "1h", "payload": "x".repeat(2000)});
    daemon.put("/v1/namespaces/session/deadlines/a", large).await.problem(413);
    daemon.process.says("DEBUG").await;
}

#[tokio::test]
async fn a_change_of_the_file_alone_is_noticed() {
    let daemon = Setup::on_file().config("[namespace.session]\nlease = \"5s\"\n").start().await;
    daemon.process.edit("[namespace.session]\nlease = \"9s\"\n");
    daemon.process.says("read again").await;
    eventually("the new settings", async || (lease(&daemon).await == "\"9s\"").then_some(())).await;
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_told() {
    let daemon = Setup::on_file().config("[namespace.session]\nlease = \"5s\"\n").start().await;
    for (broken, part) in [
        ("[namespace.session]\nlease = \"9s\"\nleas = \"9s\"\n", "leas"),
        ("[namespace.session\n", ".toml:1:"),
        ("[namespace.session]\nlease = \"soon\"\n", "lease"),
        ("[log]\nfilter = \"=,=\"\n[namespace.session]\nlease = \"5s\"\n", "log.filter"),
    ] {
        daemon.process.edit(broken);
        daemon.process.signal("HUP");
        let told = daemon.process.says("stays in force").await;
        assert!(told.contains("ERROR") && told.contains(part), "{told}");
        assert_eq!(lease(&daemon).await, "\"5s\"");
    }
    // And it goes on from there.
    daemon.process.edit("[namespace.session]\nlease = \"6s\"\n");
    daemon.process.signal("HUP");
    eventually("the new settings", async || (lease(&daemon).await == "\"6s\"").then_some(())).await;
}

#[tokio::test]
async fn what_the_store_has_lost_of_the_configuration_is_put_back() {
    let server = Server::start();
    let config = "[namespace.session]\nlease = \"5s\"\n[namespace.upload]\n";
    let daemon = Setup::on(server.url()).config(config).start().await;
    daemon.put("/v1/namespaces/upload/deadlines/a", json!({"ttl": "1h"})).await.json(201);
    let _: () = redis::cmd("FLUSHALL").query_async(&mut server.connection().await).await.unwrap();
    for name in ["session", "upload"] {
        let path = format!("/v1/namespaces/{name}");
        eventually("the namespace", async || (daemon.get(&path).await.status == 200).then_some(())).await;
    }
    assert_eq!(lease(&daemon).await, "\"5s\"");
    daemon.put("/v1/namespaces/upload/deadlines/a", json!({"ttl": "1h"})).await.json(201);
    // What was made by hand is not in the file and is gone.
    daemon.get("/v1/namespaces/other").await.problem(404);
}
