//! Dead letters and reviews: parked, listed, put back, thrown away (F1, F7, A11).

use std::time::Duration;

use forewarn::model::{Class, Failure, Mode, OnRearm};
use forewarn::store::{Change, ParkedQuery, Requeued, Settled, Shelf, Verdict};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, failing, id, reminding, route, said, words};

const SILENCE: [&str; 0] = [];

#[tokio::test]
async fn a_parked_cleanup_comes_back_with_its_payload_whatever_its_bytes() {
    for kind in grounds() {
        for (shelf, verdict, answer) in
            [(Shelf::Dead, Verdict::Dead, Settled::Dead), (Shelf::Review, Verdict::Review, Settled::Review)]
        {
            let mut scene = Scene::open(kind, reminding(&[])).await;
            let every_byte: Vec<u8> = (0..=255).collect();
            let text = id([&b"a\n\xFF{}:\""[..], &[0]].concat());
            let entry = forewarn::model::Track {
                id: text.clone(),
                expires_at: forewarn::model::ExpiresAt::from_millis(START).unwrap(),
                payload: Some(every_byte.clone()),
            };
            scene.store.track(&scene.name, Mode::Upsert, &[entry]).await.unwrap();
            let claims = scene.claim().await;
            // F1
            assert_eq!(scene.fail(&claims, verdict).await, [answer]);
            let parked = scene.parked(shelf).await;
            assert_eq!(parked.len(), 1);
            assert_eq!((parked[0].notice.id.clone(), parked[0].parked_at_ms), (text, START));
            assert_eq!(parked[0].payload.as_ref(), Some(&every_byte));
            // A11
            let answers = scene.store.requeue(&scene.name, shelf, &parked).await.unwrap();
            assert_eq!(answers, [Requeued::Requeued]);
            let again = scene.claim().await;
            assert_eq!((again[0].attempt, again[0].failures), (1, 0));
            assert_eq!(again[0].payload.as_ref(), Some(&every_byte));
            assert_eq!(scene.ack(&again).await, [Settled::Settled]);
            assert_eq!(scene.store.requeue(&scene.name, shelf, &parked).await.unwrap(), [Requeued::Unknown]);
            assert_eq!(scene.leftovers().await, SILENCE);
        }
    }
}

#[tokio::test]
async fn a_parked_notice_that_is_void_by_now_stays_parked() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m", "1m"])).await;
        for (text, at) in [("armed", 0), ("open", 0), ("late", 10 * MINUTE), ("moved", 10 * MINUTE)] {
            scene.track_as(Mode::Upsert, text, at + 20 * MINUTE, None).await;
        }
        scene.at(20 * MINUTE);
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["10m late", "10m moved", "expired armed", "expired open"]);
        scene.fail(&claims, Verdict::Dead).await;
        scene.track("armed", 90 * MINUTE).await;
        scene.track("open", 21 * MINUTE).await;
        scene.at(21 * MINUTE);
        scene.claim().await;
        scene.renew("moved", 90 * MINUTE).await;
        scene.at(29 * MINUTE);
        let parked = scene.parked(Shelf::Dead).await;
        // A11
        let answers = scene.store.requeue(&scene.name, Shelf::Dead, &parked).await.unwrap();
        assert_eq!(answers, [Requeued::Superseded; 4]);
        assert_eq!(scene.parked(Shelf::Dead).await, parked);
    }
}

#[tokio::test]
async fn a_parked_reminder_comes_back_while_it_may_still_speak() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&["10m"])).await;
        scene.track_as(Mode::Upsert, "a", 30 * MINUTE, Some("who")).await;
        scene.at(20 * MINUTE);
        scene.fail(&scene.claim().await, Verdict::Review).await;
        scene.at(25 * MINUTE);
        let parked = scene.parked(Shelf::Review).await;
        assert_eq!(parked[0].payload.as_deref(), Some(&b"who"[..]));
        assert_eq!(scene.store.requeue(&scene.name, Shelf::Review, &parked).await.unwrap(), [Requeued::Requeued]);
        let again = scene.claim().await;
        assert_eq!((words(&again), again[0].due_at_ms), (vec!["10m a".to_owned()], START + 20 * MINUTE));
    }
}

#[tokio::test]
async fn where_lives_own_their_resources_a_parked_cleanup_comes_back_in_any_case() {
    for kind in grounds() {
        let mut settings = reminding(&[]);
        settings.on_rearm = OnRearm::Deliver;
        let mut scene = Scene::open(kind, settings).await;
        scene.track("a", 0).await;
        scene.fail(&scene.claim().await, Verdict::Dead).await;
        scene.track("a", 60 * MINUTE).await;
        let parked = scene.parked(Shelf::Dead).await;
        assert_eq!(scene.store.requeue(&scene.name, Shelf::Dead, &parked).await.unwrap(), [Requeued::Requeued]);
        assert_eq!(scene.handled().await, ["expired a"]);
        scene.remove("a").await;
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn parked_notices_are_listed_oldest_first_in_pages_and_by_route_and_event() {
    for kind in grounds() {
        let scene = Scene::with_routes(kind, reminding(&[]).shards(3), &["main", "mail"]).await;
        for n in 0..7 {
            scene.at(n * 1_000);
            scene.track(&format!("a{n}"), n * 1_000).await;
            scene.fail(&scene.claim().await, Verdict::Dead).await;
        }
        scene.fail_on("mail", &scene.claim_on("mail").await, Verdict::Dead).await;
        let page = async |query: ParkedQuery| {
            let page = scene.store.parked(&scene.name, Shelf::Dead, &query).await.unwrap();
            let words: Vec<_> =
                page.entries.iter().map(|parked| format!("{} {}", parked.route, said(&parked.notice))).collect();
            (words, page.total)
        };
        let main = |n: usize| format!("main expired a{n}");
        let first = ParkedQuery { limit: 3, ..ParkedQuery::default() };
        assert_eq!(page(first.clone()).await, (vec![main(0), main(1), main(2)], 14));
        let second = ParkedQuery { offset: 3, ..first };
        assert_eq!(page(second).await.0, [main(3), main(4), main(5)]);
        let of_mail = ParkedQuery { route: Some(route("mail")), ..ParkedQuery::default() };
        assert_eq!(page(of_mail).await.0.len(), 7);
        let event = scene.parked(Shelf::Dead).await[4].event_id();
        let of_event = ParkedQuery { event_id: Some(event), ..ParkedQuery::default() };
        assert_eq!(page(of_event).await.0, [main(4), "mail expired a4".to_owned()]);
    }
}

#[tokio::test]
async fn discarded_notices_are_gone() {
    for kind in grounds() {
        let mut scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 0).await;
        scene.fail(&scene.claim().await, Verdict::Dead).await;
        let parked = scene.parked(Shelf::Dead).await;
        assert_eq!(scene.store.discard(&scene.name, Shelf::Review, &parked).await.unwrap(), [false]);
        assert_eq!(scene.store.discard(&scene.name, Shelf::Dead, &parked).await.unwrap(), [true]);
        assert_eq!(scene.store.discard(&scene.name, Shelf::Dead, &parked).await.unwrap(), [false]);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}

#[tokio::test]
async fn a_notice_parked_for_a_route_that_is_gone_cannot_come_back() {
    for kind in grounds() {
        let scene = Scene::with_routes(kind, reminding(&[]), &["main", "mail"]).await;
        scene.track("a", 0).await;
        scene.fail_on("mail", &scene.claim_on("mail").await, Verdict::Dead).await;
        scene.handled().await;
        let change = Change { drop_routes: vec![route("mail")], ..Change::default() };
        scene.store.configure(&scene.name, &change).await.unwrap();
        let parked = scene.parked(Shelf::Dead).await;
        assert_eq!(scene.store.requeue(&scene.name, Shelf::Dead, &parked).await.unwrap(), [Requeued::NoRoute]);
        assert_eq!(scene.parked(Shelf::Dead).await, parked);
    }
}

#[tokio::test]
async fn only_the_last_ten_failures_are_kept() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        scene.track("a", 0).await;
        for n in 1..=15 {
            let claims = scene.claim().await;
            let mut failing = failing(&claims[0], Verdict::RetryAfter(Duration::ZERO), 15);
            failing.failure =
                Failure::new(Class::Failed, format!("number {n}: \"\u{7f}\u{e9}\\/\n")).at_stage("unlink");
            scene.store.fail(&scene.name, &route("main"), &[failing]).await.unwrap();
        }
        let parked = scene.parked(Shelf::Dead).await;
        // F7
        let summaries: Vec<_> = parked[0].failures.iter().map(|failure| failure.summary.clone()).collect();
        let expected: Vec<_> = (6..=15).map(|n| format!("number {n}: \"\u{7f}\u{e9}\\/\n")).collect();
        assert_eq!(summaries, expected);
        assert_eq!(parked[0].failures[0].stage, "unlink");
    }
}

#[tokio::test]
async fn of_what_is_parked_alike_only_what_is_named_is_put_back_or_thrown_away() {
    for kind in grounds() {
        let mut scene = Scene::with_routes(kind, reminding(&[]), &["main", "mail"]).await;
        // The same expiry twice, each on two routes.
        scene.track("a", 0).await;
        scene.track("b", 0).await;
        for name in ["main", "mail"] {
            scene.fail_on(name, &scene.claim_on(name).await, Verdict::Dead).await;
        }
        let parked = scene.parked(Shelf::Dead).await;
        assert_eq!(parked.len(), 4);
        let (store, namespace) = (&scene.store, &scene.name);
        let mut rest = parked.clone();
        let gone = [rest.remove(0)];
        assert_eq!(store.discard(namespace, Shelf::Dead, &gone).await.unwrap(), [true]);
        assert_eq!(scene.parked(Shelf::Dead).await, rest);
        assert_eq!(store.discard(namespace, Shelf::Dead, &gone).await.unwrap(), [false]);
        assert_eq!(store.requeue(namespace, Shelf::Dead, &gone).await.unwrap(), [Requeued::Unknown]);
        assert_eq!(store.requeue(namespace, Shelf::Review, &rest).await.unwrap(), [Requeued::Unknown; 3]);
        assert_eq!(scene.parked(Shelf::Dead).await, rest);
        assert_eq!(store.discard(namespace, Shelf::Dead, &rest).await.unwrap(), [true; 3]);
        assert_eq!(scene.leftovers().await, SILENCE);
    }
}
