//! Tokens, versions and notices that must not be mistaken for one another.

use forewarn::model::{ExpiresAt, OnRearm, Renew, Route};
use forewarn::store::{Change, Checked, Claim, Renewed, Settled, Verdict};

use crate::ground::{beneath, forged, grounds};
use crate::operation::START;
use crate::scene::{LEASE, MINUTE, Scene, failing, id, reminding, route, words};

#[tokio::test]
async fn a_token_that_names_no_claim_settles_nothing() {
    for ground in grounds() {
        let scene = Scene::open(ground, reminding(&[])).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        assert_eq!(scene.release(&claims).await, [Settled::Settled]);
        // Handed out once and held by nobody: 1 * 64 + 0.
        let text = String::from_utf8(beneath(&claims[0].token)).unwrap();
        let (_, notice) = text.split_once(':').unwrap();
        let forged = [forged(&claims[0].token, format!("64:{notice}"))];
        let (name, main) = (&scene.name, &route("main"));
        assert_eq!(scene.store.ack(name, main, &forged).await.unwrap(), [Settled::Stale]);
        assert_eq!(scene.store.extend(name, main, &forged, LEASE).await.unwrap(), [Settled::Stale]);
        assert_eq!(scene.store.release(name, main, &forged).await.unwrap(), [Settled::Stale]);
        assert_eq!(scene.store.recheck(name, main, &forged).await.unwrap(), [Checked::Stale]);
        assert_eq!(words(&scene.claim().await), ["expired a"]);
    }
}

#[tokio::test]
async fn each_of_many_claims_in_a_row_has_a_token_that_settles_it() {
    for ground in grounds() {
        let scene = Scene::open(ground, reminding(&[])).await;
        for number in 0..70 {
            scene.track(&format!("a{number}"), 0).await;
            let claims = scene.claim().await;
            assert_eq!(scene.ack(&claims).await, [Settled::Settled], "claim {number}");
        }
        assert_eq!(scene.store.stats(&scene.name).await.unwrap().open, 0);
    }
}

#[tokio::test]
async fn a_claim_that_lapsed_is_told_from_the_next_though_their_numbers_meet_again() {
    for ground in grounds() {
        let scene = Scene::open(ground, reminding(&[])).await;
        let number = |claim: &Claim| {
            let text = String::from_utf8(beneath(&claim.token)).unwrap();
            text.split_once(':').unwrap().0.parse::<u16>().unwrap() % 64
        };
        scene.track("a", 0).await;
        let first = scene.claim().await;
        for other in 0..62 {
            scene.track(&format!("other-{other}"), 0).await;
            scene.handled().await;
        }
        scene.at(MINUTE);
        let second = scene.claim().await;
        assert_eq!((words(&second), number(&first[0])), (vec!["expired a".to_owned()], number(&second[0])));
        assert_eq!(scene.ack(&first).await, [Settled::Stale]);
        assert_eq!(scene.ack(&second).await, [Settled::Settled]);
    }
}

#[tokio::test]
async fn a_review_at_the_last_failure_allowed_is_a_review() {
    for ground in grounds() {
        let scene = Scene::open(ground, reminding(&[])).await;
        scene.track("a", 0).await;
        let claims = scene.claim().await;
        let failing = [failing(&claims[0], Verdict::Review, 1)];
        assert_eq!(scene.store.fail(&scene.name, &route("main"), &failing).await.unwrap(), [Settled::Review]);
    }
}

#[tokio::test]
async fn two_lives_that_end_at_the_same_instant_are_one_notice() {
    for ground in grounds() {
        let mut settings = reminding(&[]);
        settings.on_rearm = OnRearm::Deliver;
        let scene = Scene::open(ground, settings).await;
        scene.track("a", 4 * MINUTE).await;
        scene.at(4 * MINUTE);
        scene.track("a", 5 * MINUTE).await;
        scene.track("a", 4 * MINUTE).await;
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["expired a"]);
        // The same instant once more, while a worker holds it: swept, and ended by hand.
        scene.track("a", 4 * MINUTE).await;
        assert_eq!(scene.heard().await, [""; 0]);
        assert_eq!(scene.ack(&claims).await, [Settled::Settled]);

        scene.track("b", 9 * MINUTE).await;
        scene.expire("b").await;
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["ended b"]);
        scene.track("b", 9 * MINUTE).await;
        scene.expire("b").await;
        assert_eq!(scene.heard().await, [""; 0]);
        assert_eq!(scene.ack(&claims).await, [Settled::Settled]);
    }
}

#[tokio::test]
async fn changes_made_at_once_are_all_kept() {
    for ground in grounds() {
        let scene = Scene::open(ground, reminding(&[])).await;
        let changes: Vec<Change> =
            (0..6).map(|number| Change::add_route(Route::all(route(&format!("r{number}"))))).collect();
        let applied = changes.iter().map(|change| scene.store.configure(&scene.name, change));
        for applied in futures::future::join_all(applied).await {
            assert!(applied.unwrap().changed);
        }
        assert_eq!(scene.store.configured(&scene.name).await.unwrap().routes.len(), 7);
    }
}

#[tokio::test]
async fn a_batch_that_names_an_id_twice_answers_for_each_in_turn() {
    for ground in grounds() {
        let scene = Scene::open(ground, reminding(&["1m"])).await;
        scene.track("a", 60 * MINUTE).await;
        let expires_at = ExpiresAt::from_millis(START + 90 * MINUTE).unwrap();
        let renew = Renew { id: id("a"), expires_at, payload: None };
        let answers = scene.store.renew(&scene.name, &[renew.clone(), renew]).await.unwrap();
        assert_eq!(answers, [Renewed::Renewed, Renewed::Unchanged]);
    }
}

#[tokio::test]
async fn an_ack_by_a_client_that_does_not_know_a_new_route_leaves_that_route_its_cleanup() {
    for ground in grounds() {
        let scene = Scene::open(ground, reminding(&[])).await;
        let other = scene.beside().await;
        other.track("a", MINUTE).await;
        scene.configure(reminding(&[]), &["main", "mail"]).await;
        scene.at(MINUTE);
        let claims = scene.claim().await;
        assert_eq!(words(&claims), ["expired a"]);
        assert_eq!(other.ack(&claims).await, [Settled::Settled]);
        assert_eq!(scene.heard_on("mail").await, ["expired a"]);
    }
}
