//! A server in trouble: no memory left, keys of the wrong type, scripts flushed. Nothing is half-written, nothing is lost.

use forewarn::model::{ExpiresAt, Mode, Renew, Track};
use forewarn::store::{
    Claims, Expired, Next, ParkedQuery, Removed, Renewed, Settled, Shelf, StoreError, Tracked, Verdict,
};

use crate::ground::key;
use crate::harness::{Server, servers};
use crate::operation::START;
use crate::scene::{LEASE, MINUTE, Scene, failing, id, problem, reminding, route, words};

const SILENCE: [&str; 0] = [];

#[tokio::test]
async fn without_memory_nothing_new_is_tracked_and_everything_else_goes_on() {
    for kind in servers() {
        let server = Server::start_with(kind, &["--maxmemory-policy", "noeviction"]);
        let mut scene = Scene::bare(&server).await;
        scene.configure(reminding(&["10m"]), &[]).await;
        for (text, minutes) in [("a", 0), ("b", 20), ("c", 30), ("d", 40), ("e", 50), ("f", 60)] {
            scene.track_as(Mode::Upsert, text, minutes * MINUTE, Some("who")).await;
        }
        // A script that is not loaded could not be loaded now.
        let _: String = scene.raw(&["CONFIG", "SET", "maxmemory", "1mb"]).await;
        let before = scene.keyspace().await;
        let entry = Track { id: id("new"), expires_at: ExpiresAt::from_millis(START + MINUTE).unwrap(), payload: None };
        let refused = scene.store.track(&scene.name, Mode::Upsert, std::slice::from_ref(&entry)).await;
        assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
        assert!(problem(refused).contains("out of memory"));
        let replaced = scene.store.replace(&scene.name, Mode::Upsert, &entry, &id("f")).await;
        assert!(matches!(replaced, Err(StoreError::Full { .. })), "{replaced:?}");
        assert_eq!(scene.keyspace().await, before);

        assert_eq!(scene.renew("b", 25 * MINUTE).await, Renewed::Renewed);
        assert_eq!(scene.remove("f").await, Removed::Removed);
        assert_eq!(scene.expire("e").await, Expired::Ended);
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["10m b", "10m c", "ended e", "expired a"]);
        let retry = Verdict::RetryAfter(std::time::Duration::from_secs(1));
        assert!(matches!(scene.fail(&claims[..1], retry).await[..], [Settled::Retry { .. }]));
        assert_eq!(scene.extend(&claims[1..2], 2 * MINUTE).await, [Settled::Settled]);
        assert_eq!(scene.release(&claims[1..2]).await, [Settled::Settled]);
        assert_eq!(scene.ack(&claims[2..3]).await, [Settled::Settled]);
        assert!(scene.show("b").await.is_some());
        scene.store.stats(&scene.name).await.unwrap();
        scene.pause(None, true, true, true).await;
        scene.pause(None, true, true, false).await;
        scene.configure(reminding(&["5m"]), &[]).await;

        let _: String = scene.raw(&["CONFIG", "SET", "maxmemory", "0"]).await;
        assert_eq!(scene.track("new", 60 * MINUTE).await, Tracked::Created { already_expired: false });
    }
}

/// Everything that a shard's keys may be, beside the queue.
const KEYS: [&str; 15] = [
    "exp",
    "cur",
    "open",
    "skip",
    "crossed",
    "payload",
    "fail",
    "meta",
    "every",
    "bad",
    "dead",
    "dead_at",
    "review",
    "review_at",
    "due:main",
];

/// A namespace with something in most of its keys and something due of each class.
async fn busy(kind: crate::harness::Kind, shards: u16) -> Scene {
    let mut settings = reminding(&["10m", "1m"]).shards(shards);
    settings.max_deliveries = 2;
    let scene = Scene::open(kind, settings).await;
    for n in 0..12 {
        scene.track_as(Mode::Upsert, &format!("a{n:02}"), n * 3 * MINUTE, Some("who")).await;
    }
    scene.track("crossing", 60 * MINUTE).await;
    scene.renew("crossing", 5 * MINUTE).await;
    let claims = scene.claim().await;
    scene.fail(&claims, Verdict::RetryAfter(std::time::Duration::from_secs(60))).await;
    scene.at(10 * MINUTE);
    scene.track("inside", 15 * MINUTE).await;
    scene
}

/// Puts a string where the key should be; answers whether there was something to put aside.
async fn plant(scene: &mut Scene, key: &str) -> bool {
    let existed: i64 = scene.raw(&["EXISTS", key]).await;
    if existed == 1 {
        let _: String = scene.raw(&["RENAME", key, &format!("{key}:kept")]).await;
    }
    let _: String = scene.raw(&["SET", key, "somebody else's"]).await;
    existed == 1
}

async fn mend(scene: &mut Scene, key: &str, existed: bool) {
    let _: i64 = scene.raw(&["DEL", key]).await;
    if existed {
        let _: String = scene.raw(&["RENAME", &format!("{key}:kept"), key]).await;
    }
}

#[tokio::test]
async fn a_claim_that_meets_a_key_of_the_wrong_type_names_it_and_writes_nothing() {
    for kind in servers() {
        let mut undisturbed = busy(kind, 1).await;
        let expected = (undisturbed.heard().await, undisturbed.leftovers().await);
        assert!(expected.0.len() > 5, "{expected:?}");
        for name in KEYS {
            let mut scene = busy(kind, 1).await;
            let key = scene.key(name);
            let existed = plant(&mut scene, &key).await;
            let before = scene.keyspace().await;
            match scene.store.claim(&scene.name, &route("main"), 100, LEASE).await {
                // What a claim never touches may be of any type.
                Ok(claims) => {
                    assert!(["review", "review_at"].contains(&name), "a claim did not mind {name}");
                    assert_eq!(words(&claims.claims), expected.0);
                }
                Err(error) => {
                    let StoreError::WrongType { key: named, found, .. } = &error else { panic!("{name}: {error}") };
                    assert_eq!((named, found.as_str()), (&key, "string"));
                    assert!(error.to_string().contains(&key), "{error}");
                    assert_eq!(scene.keyspace().await, before, "{name}: a refused claim wrote something");
                    mend(&mut scene, &key, existed).await;
                    let found = (scene.heard().await, scene.leftovers().await);
                    assert_eq!(found, expected, "{name}: as if nothing had happened");
                }
            }
        }
    }
}

#[tokio::test]
async fn any_call_that_meets_a_key_of_the_wrong_type_names_it_and_writes_nothing() {
    const CALLS: [&str; 14] = [
        "track",
        "renew",
        "replace",
        "remove",
        "expire",
        "ack",
        "fail",
        "extend",
        "release",
        "recheck",
        "parked",
        "stats",
        "show",
        "configured",
    ];
    for kind in servers() {
        let mut wrong = Vec::new();
        for name in KEYS {
            let mut scene = busy(kind, 1).await;
            let claims = scene.claim().await;
            let key = scene.key(name);
            plant(&mut scene, &key).await;
            let entry = |text: &str| Track {
                id: id(text),
                expires_at: ExpiresAt::from_millis(START + 12 * MINUTE).unwrap(),
                payload: Some(b"what".to_vec()),
            };
            let renewal = Renew { id: id("inside"), expires_at: entry("x").expires_at, payload: None };
            let failing = [failing(&claims[0], Verdict::Dead, 1)];
            let tokens = |at: usize| [claims[at].token.clone()];
            let (main, mode) = (route("main"), Mode::Upsert);
            // Each on its own; one that is not concerned carries on.
            for call in CALLS {
                let before = scene.keyspace().await;
                let (store, namespace) = (&scene.store, &scene.name);
                let outcome = match call {
                    "track" => store.track(namespace, mode, &[entry("new")]).await.err(),
                    "renew" => store.renew(namespace, std::slice::from_ref(&renewal)).await.err(),
                    "replace" => store.replace(namespace, mode, &entry("other"), &id("a11")).await.err(),
                    "remove" => store.remove(namespace, &[id("a10")]).await.err(),
                    "expire" => store.expire(namespace, &[id("a09")]).await.err(),
                    "ack" => store.ack(namespace, &main, &tokens(1)).await.err(),
                    "fail" => store.fail(namespace, &main, &failing).await.err(),
                    "extend" => store.extend(namespace, &main, &tokens(2), LEASE * 2).await.err(),
                    "release" => store.release(namespace, &main, &tokens(2)).await.err(),
                    "recheck" => store.recheck(namespace, &main, &tokens(3)).await.err(),
                    "parked" => store.parked(namespace, Shelf::Dead, &ParkedQuery::default()).await.err(),
                    "stats" => store.stats(namespace).await.err(),
                    "show" => store.show(namespace, &id("inside")).await.err(),
                    _ => store.configured(namespace).await.err(),
                };
                let Some(error) = outcome else { continue };
                if !matches!(&error, StoreError::WrongType { key: named, .. } if *named == key) {
                    wrong.push(format!("{name}: {call} answers: {error}"));
                }
                if scene.keyspace().await != before {
                    wrong.push(format!("{name}: {call} is refused and writes something"));
                }
            }
        }
        assert!(wrong.is_empty(), "on {kind}:\n{}", wrong.join("\n"));
    }
}

#[tokio::test]
async fn a_bad_key_in_one_shard_holds_up_neither_the_others_nor_other_namespaces() {
    for kind in servers() {
        for name in ["exp", "due:main", "open", "cur"] {
            let mut scene = Scene::open(kind, reminding(&["10m"]).shards(3)).await;
            let other = Scene::open(kind, reminding(&["10m"])).await;
            other.track("o", 0).await;
            for n in 0..30 {
                scene.track(&format!("a{n}"), 0).await;
            }
            let bad = key("fw", scene.name.as_str(), 1, name);
            let kept = format!("{bad}:kept");
            let _: String = scene.raw(&["RENAME", &bad, &kept]).await;
            let _: String = scene.raw(&["SET", &bad, "x"]).await;
            // T4
            let claims: Claims = scene.claim_some("main", 100).await;
            assert!(
                matches!(&claims.faults[..], [StoreError::WrongType { key, .. }] if *key == bad),
                "{:?}",
                claims.faults
            );
            let first = words(&claims.claims);
            assert!((15..25).contains(&first.len()), "{first:?}");
            assert_eq!(other.handled().await, ["expired o"]);
            let _: i64 = scene.raw(&["DEL", &bad]).await;
            let _: String = scene.raw(&["RENAME", &kept, &bad]).await;
            let rest = scene.claim_some("main", 100).await;
            assert!(rest.faults.is_empty());
            assert_eq!(first.len() + rest.claims.len(), 30);
        }
    }
}

#[tokio::test]
async fn if_every_shard_fails_the_claim_fails() {
    for kind in servers() {
        let mut scene = Scene::open(kind, reminding(&["10m"]).shards(2)).await;
        for shard in 0..2 {
            let bad = key("fw", scene.name.as_str(), shard, "exp");
            let _: String = scene.raw(&["SET", &bad, "x"]).await;
        }
        let claims = scene.store.claim(&scene.name, &route("main"), 100, LEASE).await;
        assert!(matches!(claims, Err(StoreError::WrongType { .. })), "{claims:?}");
    }
}

#[tokio::test]
async fn flushed_scripts_are_sent_again_between_calls_and_within_them() {
    for kind in servers() {
        // A server of its own: a flush of the shared one would be everybody's.
        let server = Server::start_with(kind, &[]);
        let scene = Scene::bare(&server).await;
        scene.configure(reminding(&["10m"]).shards(16), &[]).await;
        let flushing = async {
            let mut connection = server.connection().await;
            for _ in 0..300 {
                let _: String = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut connection).await.expect("a flush");
                tokio::task::yield_now().await;
            }
        };
        let working = async {
            let mut heard = 0;
            for round in 0..15 {
                let entries: Vec<Track> = (0..40)
                    .map(|n| Track {
                        id: id(format!("{round}-{n}")),
                        expires_at: ExpiresAt::from_millis(START).unwrap(),
                        payload: None,
                    })
                    .collect();
                let created = Tracked::Created { already_expired: true };
                let answers =
                    scene.store.track(&scene.name, Mode::Upsert, &entries).await.expect("a flush is no error");
                assert!(answers.iter().all(|answer| *answer == created), "{answers:?}");
                loop {
                    let batch = scene.claim_some("main", 100).await;
                    assert!(batch.faults.is_empty(), "{:?}", batch.faults);
                    let settled = scene.ack(&batch.claims).await;
                    assert!(settled.iter().all(|answer| *answer == Settled::Settled));
                    heard += batch.claims.len();
                    if batch.next != Next::Backlog {
                        break;
                    }
                }
            }
            heard
        };
        let (heard, ()) = tokio::join!(working, flushing);
        assert_eq!(heard, 15 * 40);
        assert_eq!(scene.heard().await, SILENCE);
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named_without_secrets() {
    let server = Server::start();
    let url = format!("redis://:{}@127.0.0.1:{}", "hunter2", server.port());
    let scene = Scene::bare(&server).await;
    server.kill();
    let error = scene.store.namespaces().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }) && error.is_transient(), "{error:?}");
    let told = format!("{:?}", forewarn::store::redis::RedisStore::connect(&url).await.unwrap_err());
    assert!(!told.contains("hunter2"), "{told}");
    assert!(told.contains(&server.port().to_string()), "{told}");
}
