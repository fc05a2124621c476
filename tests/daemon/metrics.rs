//! Figures for Prometheus: in its format, and true.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::json;

use crate::{
    harness::{Kind, Server, eventually},
    stage::{Client, Daemon, Setup},
};

/// A scrape that was read strictly.
struct Scrape {
    types: HashMap<String, String>,
    /// By name and labels in order.
    samples: BTreeMap<(String, Vec<(String, String)>), f64>,
}

impl Scrape {
    async fn of(client: &Client) -> Self {
        let reply = client.get("/metrics").await;
        reply.is(200);
        assert_eq!(reply.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
        Self::read(&reply.text)
    }

    /// As OpenMetrics 1.0 says: families whole and one after the other, each with its help and type first; `# EOF` last.
    fn read(text: &str) -> Self {
        let (mut types, mut helps, mut samples) = (HashMap::new(), HashSet::new(), BTreeMap::new());
        let mut family = String::new();
        let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("it does not end in # EOF: {text}"));
        assert!(!body.contains("# EOF"), "{text}");
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(!help.is_empty() && helps.insert(name.to_owned()), "{line}");
                family = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, family, "{line}");
                assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{line}");
                assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line} twice");
            } else {
                let (name, labels, value) = sample(line);
                let kind = types.get(&family).unwrap_or_else(|| panic!("{line} before its type"));
                let suffixes: &[&str] = match kind.as_str() {
                    "counter" => &["_total"],
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                assert!(suffixes.iter().any(|suffix| name == format!("{family}{suffix}")), "{line} in {kind} {family}");
                let source = labels.iter().find(|(label, _)| label == "source").map(|(_, value)| value.as_str());
                assert!(matches!(source, Some("store" | "process")), "{line}");
                assert!(samples.insert((name, labels), value).is_none(), "{line} twice");
            }
        }
        for name in types.keys() {
            assert!(helps.contains(name) && name.starts_with("forewarn_"), "{name}");
        }
        Self { types, samples }
    }

    /// The sum of all samples of this name that have these labels.
    fn get(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |all: &[(String, String)]| {
            labels.iter().all(|(n, v)| all.iter().any(|(name, value)| name == n && value == v))
        };
        let of_name = self.samples.iter().filter(|((sample, all), _)| sample == name && has(all));
        of_name.map(|(_, value)| value).sum()
    }
}

fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, rest) = series.split_once('{').unwrap();
    assert!(name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_'), "{line}");
    let mut labels = Vec::new();
    for label in rest.strip_suffix('}').unwrap().split("\",") {
        let (name, value) = label.split_once("=\"").unwrap();
        labels.push((name.to_owned(), value.trim_end_matches('"').to_owned()));
    }
    labels.sort();
    assert!(labels.windows(2).all(|pair| pair[0].0 != pair[1].0), "{line}");
    (name.to_owned(), labels, value.parse().unwrap_or_else(|e| panic!("{line}: {e}")))
}

#[tokio::test]
async fn figures_follow_what_happens() {
    let daemon = Setup::shared().start().await;
    let namespace = daemon.apply(json!({"remind": ["1h"], "late": "fire", "lease": "200ms"})).await;
    let base = format!("/v1/namespaces/{namespace}");
    let here = [("namespace", namespace.as_str())];
    let names: Vec<String> = (0..5).map(|i| format!("id {i}")).collect();
    daemon.track_expired(&namespace, &names).await;
    daemon.put(&format!("{base}/deadlines/soon"), json!({"ttl": "30m"})).await.json(201);
    let scrape = Scrape::of(&daemon).await;
    assert_eq!(scrape.get("forewarn_armed_deadlines", &here), 6.0);
    assert_eq!(scrape.get("forewarn_overdue_deadlines", &here), 5.0);
    assert_eq!(scrape.get("forewarn_store_up", &[]), 1.0);
    // One by one, with a lease that does not end meanwhile.
    let (mut claims, mut full) = (Vec::new(), 0.0);
    while claims.len() < 6 {
        let answer = daemon.post(&format!("{base}/claims"), json!({"limit": 1, "lease": "10m"})).await.json(200);
        let more = answer["claims"].as_array().unwrap();
        full += if more.is_empty() { 0.0 } else { 1.0 };
        claims.extend(more.clone());
    }
    daemon.post(&format!("{base}/claims"), json!({"limit": 2})).await.json(200);
    daemon.post(&format!("{base}/claims"), json!({"limit": 0})).await.json(200);
    let (reminders, cleanups): (Vec<_>, Vec<_>) =
        claims.into_iter().partition(|claim| claim["notice"]["kind"] == "reminder");
    assert_eq!((reminders.len(), cleanups.len()), (1, 5));
    let scrape = Scrape::of(&daemon).await;
    assert_eq!(scrape.get("forewarn_pending_deliveries", &here), 6.0);
    assert_eq!(scrape.get("forewarn_open_cleanups", &here), 5.0);
    assert_eq!(scrape.get("forewarn_armed_deadlines", &here), 1.0);
    assert_eq!(scrape.get("forewarn_claims_full_total", &here), full);
    for (kind, count) in [("reminder", 1.0), ("cleanup", 5.0)] {
        let of_kind = [here[0], ("kind", kind)];
        assert_eq!(scrape.get("forewarn_notices_handed_out_total", &of_kind), count);
        assert_eq!(scrape.get("forewarn_notice_lateness_seconds_count", &of_kind), count);
    }
    // Their cleanups were due in 2001.
    let on_time = [here[0], ("kind", "cleanup"), ("le", "3600.0")];
    assert_eq!(scrape.get("forewarn_notice_lateness_seconds_bucket", &on_time), 0.0);

    daemon.ack(&namespace, &reminders).await;
    let fail = async |verb: &str, claim: &serde_json::Value| {
        let body = json!({"claims": [{"token": claim["token"]}]});
        daemon.post(&format!("{base}/claims/{verb}"), body).await.json(200);
    };
    fail("retry", &cleanups[0]).await;
    fail("reject", &cleanups[1]).await;
    fail("review", &cleanups[2]).await;
    let scrape = Scrape::of(&daemon).await;
    assert_eq!(scrape.get("forewarn_consecutive_failures", &here), 2.0);
    assert_eq!((scrape.get("forewarn_dead_letters", &here), scrape.get("forewarn_reviews", &here)), (1.0, 1.0));
    daemon.ack(&namespace, &cleanups[3..4]).await;
    daemon
        .delete(&format!("{base}/deadlines/{}", cleanups[4]["id"].as_str().unwrap().replace(' ', "%20")))
        .await
        .json(200);
    let late = json!({"tokens": [cleanups[4]["token"]]});
    daemon.post(&format!("{base}/claims/ack"), late).await.json(200);
    let scrape = Scrape::of(&daemon).await;
    assert_eq!(scrape.get("forewarn_consecutive_failures", &here), 0.0);
    for (kind, outcome, count) in [
        ("reminder", "done", 1.0),
        ("cleanup", "done", 1.0),
        ("cleanup", "retry", 1.0),
        ("cleanup", "dead", 1.0),
        ("cleanup", "review", 1.0),
        ("cleanup", "stale", 1.0),
    ] {
        let labels = [here[0], ("kind", kind), ("outcome", outcome)];
        assert_eq!(scrape.get("forewarn_notices_settled_total", &labels), count, "{kind} {outcome}");
    }
    assert_eq!(scrape.get("forewarn_acked_total", &here), 2.0);
    assert_eq!(scrape.get("forewarn_failed_total", &here), 3.0);
    assert_eq!(scrape.get("forewarn_dead_lettered_total", &here), 1.0);

    // A worker that vanishes.
    daemon.track_expired(&namespace, &["lost".to_owned()]).await;
    assert_eq!(daemon.claim(&namespace, 1).await[0]["id"], "lost");
    eventually("the end of its lease", async || {
        let due = Scrape::of(&daemon).await;
        (due.get("forewarn_due_deliveries", &here) == 1.0 && due.get("forewarn_oldest_due_seconds", &here) > 0.0)
            .then_some(())
    })
    .await;
    assert_eq!(daemon.claim(&namespace, 1).await[0]["attempt"], 2);
    assert_eq!(Scrape::of(&daemon).await.get("forewarn_lease_expired_total", &here), 1.0);
    daemon.post(&format!("{base}/pause"), json!({})).await.is(204);
    let scrape = Scrape::of(&daemon).await;
    assert_eq!(scrape.get("forewarn_paused", &[here[0], ("route", ""), ("kind", "cleanup")]), 1.0);
    let requests = [("method", "POST"), ("path", "/v1/namespaces/{ns}/claims/reject"), ("status", "200")];
    assert_eq!(scrape.get("forewarn_http_requests_total", &requests), 1.0);
    assert!(scrape.types.len() > 25, "{:?}", scrape.types);
}

#[tokio::test]
async fn figures_are_told_even_while_the_store_is_away() {
    let server = Server::start_with(Kind::Redis, &[]);
    let daemon: Daemon = Setup::on(server.url()).config("[namespace.session]\n").start().await;
    let up = async || Scrape::of(&daemon).await.get("forewarn_store_up", &[("source", "process")]);
    eventually("the store", async || (up().await == 1.0).then_some(())).await;
    server.kill();
    assert_eq!(up().await, 0.0);
    let scrape = Scrape::of(&daemon).await;
    assert_eq!(scrape.get("forewarn_build_info", &[]), 1.0);
    server.restart();
    eventually("the store", async || (up().await == 1.0).then_some(())).await;
}
