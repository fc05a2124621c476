//! Values: ids of any bytes, the edges of the range, payloads; and bad input, which writes nothing (V1 to V4, V6).

use forewarn::model::{ExpiresAt, Id, Mode, Renew, Track};
use forewarn::store::{Removed, Renewed, Settled, Tracked};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, due_at, id, reminding};

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

#[tokio::test]
async fn a_payload_of_any_bytes_comes_to_the_store_as_it_is() {
    for ground in grounds() {
        let mut scene = Scene::open(ground, reminding(&["10m"])).await;
        for (text, payload) in
            [("null", &b"null"[..]), ("blanks", b" {\"a\": 1 }\n"), ("none", b""), ("bytes", b"\0\xFF")]
        {
            let expires_at = ExpiresAt::from_millis(START + 40 * MINUTE).unwrap();
            let entry = Track { id: id(text), expires_at, payload: Some(payload.to_vec()) };
            scene.store.track(&scene.name, Mode::Upsert, &[entry]).await.unwrap();
            let snapshot = scene.peer.snapshot(&scene.name, 1, &[]).await;
            assert_eq!(snapshot.payloads.get(text.as_bytes()).map(Vec::as_slice), Some(payload), "{text} on {ground}");
            let shown = scene.show(text).await.unwrap().payload.unwrap();
            let bare =
                |bytes: &[u8]| bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<_>>();
            assert_eq!(bare(&shown), bare(payload), "{text} on {ground}");
        }
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
