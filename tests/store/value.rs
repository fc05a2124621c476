//! Values: ids of any bytes, the edges of the range, raw scores of any kind, payloads; and bad input, which writes nothing
//! (V1 to V6).

use forewarn::model::{ExpiresAt, Id, Mode, Renew, Track};
use forewarn::store::{Removed, Renewed, Settled, Tracked};

use crate::ground::grounds;
use crate::harness::servers;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, due_at, id, reminding, words};

const SILENCE: [&str; 0] = [];

fn strange_ids() -> Vec<Vec<u8>> {
    let mut ids: Vec<Vec<u8>> = [
        &b"{}"[..],
        b"{fw:session:0}:exp",
        b"a:b:c",
        b":",
        b"0:1000000000000:a",
        b"600000:1000000000000:a",
        b"a",
        b"line\nfeed",
        b"\r\n",
        b"\0",
        b"\xFF",
        b"\xFF\xFE",
        b"a b",
        b" ",
        b"%",
        b"*",
        b"v",
        b"-",
        b"+inf",
        b"1e3",
        b"\"quoted\"",
        b"back\\slash",
    ]
    .iter()
    .map(|bytes| bytes.to_vec())
    .collect();
    ids.push("⏰ é".as_bytes().to_vec());
    ids.extend([1, 64, 65, 66, 1023, 1024].map(|length| vec![b'~'; length]));
    ids.extend([vec![b'x'; 1024], vec![0; 1024], vec![0xFF; 1024]]);
    ids
}

#[tokio::test]
async fn an_id_may_be_any_bytes() {
    for kind in grounds() {
        for shards in [1, 3] {
            let mut scene = Scene::open(kind, reminding(&["10m"]).shards(shards)).await;
            let ids: Vec<Id> = strange_ids().into_iter().map(|bytes| Id::new(bytes).unwrap()).collect();
            let payload = |id: &Id| [b"of ", id.as_bytes()].concat();
            let entry = |id: &Id, at: i64| Track {
                id: id.clone(),
                expires_at: ExpiresAt::from_millis(START + at).unwrap(),
                payload: Some(payload(id)),
            };
            // V1
            let entries: Vec<Track> = ids.iter().map(|id| entry(id, 30 * MINUTE)).collect();
            let answers = scene.store.track(&scene.name, Mode::Upsert, &entries).await.unwrap();
            assert!(answers.iter().all(|answer| *answer == Tracked::Created { already_expired: false }), "{answers:?}");
            let listed = scene.store.list(&scene.name, &Default::default()).await.unwrap();
            let mut sorted = ids.clone();
            sorted.sort();
            assert_eq!(listed.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>(), sorted);
            for (after, length) in [(20 * MINUTE, 10 * MINUTE), (30 * MINUTE, 0)] {
                scene.at(after);
                let claims = scene.claim().await;
                let mut heard: Vec<Id> = claims.iter().map(|claim| claim.notice.id.clone()).collect();
                heard.sort();
                assert_eq!(heard, sorted);
                for claim in &claims {
                    assert_eq!(claim.notice.lead_ms(), length);
                    assert_eq!(claim.payload.as_ref(), Some(&payload(&claim.notice.id)));
                }
                assert!(scene.recheck(&claims).await.iter().all(|answer| *answer == forewarn::store::Checked::Current));
                assert!(scene.ack(&claims).await.iter().all(|answer| *answer == Settled::Settled));
            }
            assert!(scene.store.list(&scene.name, &Default::default()).await.unwrap().is_empty());
            let removed = scene.store.remove(&scene.name, &ids).await.unwrap();
            assert!(removed.iter().all(|answer| *answer == Removed::Unknown), "{removed:?}");
            if shards == 1 {
                assert_eq!(scene.leftovers().await, SILENCE);
            }
        }
    }
}

#[tokio::test]
async fn an_expiry_may_stand_at_either_edge_of_the_range() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        let (first, last) = (ExpiresAt::MIN_MS - START, ExpiresAt::MAX_MS - START);
        // V4
        assert_eq!(scene.track("first", first).await, Tracked::Created { already_expired: true });
        assert_eq!(scene.track("last", last).await, Tracked::Created { already_expired: false });
        assert_eq!(scene.handled().await, ["expired first"]);
        assert_eq!(due_at(scene.claim_some("main", 1).await.next), Some(last - 10 * MINUTE));
        assert_eq!(scene.renew("last", last - 1).await, Renewed::Renewed);
        assert_eq!(scene.show("last").await.unwrap().expires_at_ms, Some(ExpiresAt::MAX_MS - 1));
        assert_eq!(scene.expire("last").await, forewarn::store::Expired::Ended);
        let claims = scene.claim().await;
        assert_eq!(claims[0].notice.expires_at_ms, ExpiresAt::MAX_MS - 1);
        assert_eq!(scene.ack(&claims).await, [Settled::Settled]);
    }
}

#[tokio::test]
async fn a_raw_score_that_cannot_be_an_expiry_goes_to_quarantine_and_disturbs_nobody() {
    for kind in servers() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        for (text, score) in [
            ("seconds", "1796083200"),
            ("small", "0.5"),
            ("below", "99999999999"),
            ("micros", "1796083200000000"),
            ("beyond", "100000000000001"),
            ("never", "inf"),
        ] {
            scene.raw_score(text, score).await;
        }
        scene.track("good", 5 * MINUTE).await;
        scene.track("due", 0).await;
        // V5: at most `limit` of each kind a call
        let first = scene.claim_some("main", 2).await;
        assert_eq!(first.quarantined, 4);
        let heard: Vec<_> = words(&first.claims).into_iter().chain(scene.handled().await).collect();
        assert_eq!(heard, ["expired due"]);
        let stats = scene.store.stats(&scene.name).await.unwrap();
        assert_eq!((stats.quarantined, stats.armed, stats.counters.quarantined), (6, 1, 6));
        assert_eq!(scene.show("never").await.unwrap().quarantined.as_deref(), Some("inf"));
        assert_eq!(scene.renew("seconds", 5 * MINUTE).await, Renewed::Unknown);
        // until it is set again or removed
        assert_eq!(scene.track("seconds", 20 * MINUTE).await, Tracked::Created { already_expired: false });
        scene.raw_set("micros", 20 * MINUTE).await;
        assert_eq!(scene.remove("small").await, Removed::Removed);
        scene.at(10 * MINUTE);
        assert_eq!(scene.handled().await, ["10m micros", "10m seconds", "expired good"]);
        assert_eq!(scene.store.stats(&scene.name).await.unwrap().quarantined, 3);
    }
}

#[tokio::test]
async fn a_raw_score_that_is_not_after_1970_means_clean_up_now() {
    for kind in servers() {
        let mut scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        for (text, score) in [("a", "0"), ("b", "-0"), ("c", "-5"), ("d", "-1e300"), ("e", "-inf"), ("f", "-0.25")] {
            scene.raw_score(text, score).await;
        }
        let all = ["a", "b", "c", "d", "e", "f"].map(|text| format!("expired {text}"));
        // V5
        let claims = scene.claim().await;
        assert_eq!(words(&claims), all);
        assert!(claims.iter().all(|claim| claim.notice.expires_at_ms == 0));
        assert!(scene.ack(&claims).await.iter().all(|answer| *answer == Settled::Settled));
        assert_eq!(scene.handled_on("mail").await, all);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_fraction_of_a_millisecond_is_kept_and_cut_in_events() {
    for kind in servers() {
        let mut scene = Scene::with_routes(kind, reminding(&["10m"]), &["main", "mail"]).await;
        let e = START + 30 * MINUTE;
        for (text, fraction) in [("a", "25"), ("b", "5"), ("c", "999")] {
            scene.raw_score(text, &format!("{e}.{fraction}")).await;
        }
        scene.at(20 * MINUTE);
        assert_eq!(scene.heard().await, SILENCE, "never early");
        scene.at(20 * MINUTE + 1);
        // V5
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["10m a", "10m b", "10m c"]);
        assert!(claims.iter().all(|claim| claim.notice.expires_at_ms == e && claim.attempt == 1));
        assert!(scene.ack(&claims).await.iter().all(|answer| *answer == Settled::Settled));
        assert_eq!(scene.handled_on("mail").await.len(), 3);
        assert_eq!(scene.remove("c").await, Removed::Removed);
        scene.at(30 * MINUTE + 1);
        for name in ["main", "mail"] {
            let claims = scene.claim_on(name).await;
            assert_eq!(words(&claims), ["expired a", "expired b"]);
            assert!(claims.iter().all(|claim| claim.attempt == 1), "{claims:?}");
            assert!(scene.ack_on(name, &claims).await.iter().all(|answer| *answer == Settled::Settled));
        }
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_raw_id_that_is_none_disturbs_nobody() {
    for kind in servers() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.raw_set("", 0).await;
        scene.raw_set(&"x".repeat(1025), 0).await;
        scene.raw_set(&"~".repeat(1025), 0).await;
        scene.raw_set(&"y".repeat(70_000), 30 * MINUTE).await;
        scene.track("good", 30 * MINUTE).await;
        // V5: what is no id goes to quarantine, too
        assert_eq!(scene.handled().await, SILENCE);
        scene.at(20 * MINUTE);
        assert_eq!(scene.handled().await, ["10m good"]);
        scene.at(30 * MINUTE);
        assert_eq!(scene.handled().await, ["expired good"]);
        assert_eq!(scene.store.stats(&scene.name).await.unwrap().quarantined, 4);
    }
}

#[tokio::test]
async fn a_payload_over_the_limit_is_rejected_alone_and_nothing_is_written_for_it() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track_as(Mode::Upsert, "a", 30 * MINUTE, Some("who")).await;
        let before = scene.keyspace().await;
        let expires_at = ExpiresAt::from_millis(START + 40 * MINUTE).unwrap();
        let large = Some(vec![b'x'; 16 * 1024 + 1]);
        // V6
        let answers =
            scene.store.renew(&scene.name, &[Renew { id: id("a"), expires_at, payload: large.clone() }]).await;
        let Renewed::Rejected(invalid) = &answers.unwrap()[0] else { panic!("it should be rejected") };
        assert_eq!(invalid.to_string(), "payload has 16385 bytes; at most 16384 are allowed, keep the rest elsewhere");
        let entry = Track { id: id("b"), expires_at, payload: large };
        let replaced = scene.store.replace(&scene.name, Mode::Upsert, &entry, &id("a")).await.unwrap();
        assert!(matches!(replaced.tracked, Tracked::Rejected(_)) && !replaced.replaced);
        let good = Track { id: id("c"), payload: Some(vec![b'x'; 16 * 1024]), ..entry.clone() };
        let rejected = scene.store.track(&scene.name, Mode::Upsert, std::slice::from_ref(&entry)).await.unwrap();
        assert!(matches!(rejected[..], [Tracked::Rejected(_)]));
        assert_eq!(scene.keyspace().await, before);
        let answers = scene.store.track(&scene.name, Mode::Upsert, &[entry, good]).await.unwrap();
        assert!(matches!(answers[..], [Tracked::Rejected(_), Tracked::Created { .. }]), "{answers:?}");
        assert_eq!(scene.show("b").await, None);
    }
}

#[test]
fn bad_input_is_refused_by_field_before_any_store_is_asked() {
    // V1, V3, V4
    let problems = [
        Id::new("").unwrap_err(),
        Id::new(vec![b'x'; 1025]).unwrap_err(),
        ExpiresAt::from_millis(1_796_083_200).unwrap_err(),
        ExpiresAt::from_millis(i64::MAX).unwrap_err(),
        "15x".parse::<forewarn::model::LeadTime>().unwrap_err(),
    ];
    let fields: Vec<_> = problems.iter().map(forewarn::model::Invalid::field).collect();
    assert_eq!(fields, ["id", "id", "expires_at", "expires_at", "lead time"]);
}
