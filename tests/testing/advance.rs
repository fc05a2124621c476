//! Turning the clock: each notice at its instant, retries at theirs, and nothing left over when it returns.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use chrono::{TimeDelta, TimeZone, Utc};
use forewarn::model::Backoff;
use forewarn::testing::{Ending, TestError, TestStore};
use forewarn::{Delivery, Kind, Outcome, Settings, Worker};
use tokio::sync::Barrier;

use crate::stage::{HOUR, MINUTE, SECOND, carts, failure, lines, timed, willing};

#[tokio::test]
async fn one_advance_stops_at_every_instant_at_which_something_is_due() {
    let (test, carts) = carts().await;
    test.attach(willing(&carts)).await.unwrap();
    let begin = test.now();
    carts.track_in("a", HOUR).await.unwrap();
    carts.track_in("b", HOUR + SECOND).await.unwrap();
    let handled = test.advance(2 * HOUR).await.unwrap();
    assert_eq!(
        timed(&handled, begin),
        [
            "3000 reminder 10m of a: done",
            "3001 reminder 10m of b: done",
            "3540 reminder 1m of a: done",
            "3541 reminder 1m of b: done",
            "3600 cleanup of a: done",
            "3601 cleanup of b: done",
        ]
    );
    assert_eq!(test.now() - begin, TimeDelta::hours(2));
}

#[tokio::test]
async fn nothing_speaks_a_millisecond_before_its_time() {
    let (test, carts) = carts().await;
    test.attach(willing(&carts)).await.unwrap();
    carts.track_in("a", HOUR).await.unwrap();
    let almost = test.advance(50 * MINUTE - Duration::from_millis(1)).await.unwrap();
    assert_eq!(lines(&almost), [""; 0]);
    let exactly = test.advance(Duration::from_millis(1)).await.unwrap();
    assert_eq!(lines(&exactly), ["reminder 10m of a: done"]);
}

#[tokio::test]
async fn retries_come_at_their_instants_until_the_notice_is_a_dead_letter() {
    let (test, carts) = carts().await;
    carts.apply(Settings::default()).await.unwrap();
    let backoff = Backoff::new(vec![30 * SECOND, 120 * SECOND], 3).unwrap();
    let worker = Worker::builder(&carts).backoff(backoff).on_reminder(|_| async {});
    test.attach(worker.on_cleanup(|_| async { Err::<(), _>("no route to host") })).await.unwrap();
    carts.track_in("a", MINUTE).await.unwrap();
    let handled = test.advance(HOUR).await.unwrap();
    assert_eq!(
        lines(&handled),
        [
            "cleanup of a: retry (no route to host)",
            "cleanup of a, attempt 2: retry (no route to host)",
            "cleanup of a, attempt 3: dead (no route to host)",
        ]
    );
    let waited = |place: usize| (handled[place].at - handled[place - 1].at).num_milliseconds();
    assert!((27_000..=33_000).contains(&waited(1)) && (108_000..=132_000).contains(&waited(2)), "{handled:#?}");
    assert!(matches!(&handled[0].ending, Ending::Retry { at, .. } if *at == handled[1].at), "{handled:#?}");
    assert_eq!(carts.stats().await.unwrap().dead, 1);
}

#[tokio::test]
async fn every_outcome_is_told_apart() {
    let (test, carts) = carts().await;
    carts.apply(Settings::default()).await.unwrap();
    let worker = Worker::builder(&carts).on_reminder(|_| async {});
    test.attach(worker.on_cleanup(|delivery: Delivery| async move {
        match delivery.id().as_text().unwrap_or_default() {
            "noted" => Outcome::noted("gone already"),
            "later" if delivery.attempt() == 1 => Outcome::retry_after(5 * SECOND, failure("busy")),
            "dead" => Outcome::Reject(failure("denied")),
            "review" => Outcome::Review(failure("odd")),
            _ => Outcome::Done,
        }
    }))
    .await
    .unwrap();
    for id in ["noted", "later", "dead", "review", "removed"] {
        carts.track_in(id, MINUTE).await.unwrap();
    }
    carts.remove("removed").await.unwrap();
    carts.track_in("ended", MINUTE).await.unwrap();
    carts.expire("ended").await.unwrap();
    let mut seen = lines(&test.advance(2 * MINUTE).await.unwrap());
    seen.sort();
    assert_eq!(
        seen,
        [
            "cleanup (ended) of ended: done",
            "cleanup of dead: dead (denied)",
            "cleanup of later, attempt 2: done",
            "cleanup of later: retry (busy)",
            "cleanup of noted: done",
            "cleanup of review: review (odd)",
        ]
    );
}

#[tokio::test]
async fn a_handler_that_renews_its_deadline_is_called_again_for_the_new_expiry() {
    let (test, carts) = carts().await;
    let (renewed, times) = (carts.clone(), Arc::new(AtomicU32::new(0)));
    let worker = Worker::builder(&carts).on_cleanup(|_| async {}).on_reminder(move |delivery: Delivery| {
        let (carts, times) = (renewed.clone(), Arc::clone(&times));
        async move {
            let is_first = times.fetch_add(1, Ordering::Relaxed) == 0;
            if is_first {
                carts.renew_in(delivery.id().as_bytes(), HOUR).await?;
            }
            anyhow::Ok(())
        }
    });
    test.attach(worker).await.unwrap();
    carts.track_in("a", HOUR).await.unwrap();
    let handled = test.advance(3 * HOUR).await.unwrap();
    assert_eq!(
        lines(&handled),
        ["reminder 10m of a: void", "reminder 10m of a: done", "reminder 1m of a: done", "cleanup of a: done"]
    );
}

#[tokio::test]
async fn it_returns_only_when_all_handlers_have_ended() {
    let (test, carts) = carts().await;
    carts.apply(Settings::default()).await.unwrap();
    // Each waits for all the others, and only then counts.
    let (ended, barrier) = (Arc::new(AtomicU32::new(0)), Arc::new(Barrier::new(16)));
    let count = Arc::clone(&ended);
    let worker = Worker::builder(&carts).on_reminder(|_| async {}).on_cleanup(move |_| {
        let (ended, barrier) = (Arc::clone(&count), Arc::clone(&barrier));
        async move {
            barrier.wait().await;
            tokio::task::yield_now().await;
            ended.fetch_add(1, Ordering::SeqCst);
        }
    });
    test.attach(worker).await.unwrap();
    for number in 0..160 {
        carts.track_in(format!("cart:{number}"), MINUTE).await.unwrap();
    }
    let handled = test.advance(MINUTE).await.unwrap();
    assert_eq!((handled.len(), ended.load(Ordering::SeqCst)), (160, 160));
    assert!(handled.iter().all(|handled| handled.ending == Ending::Done));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_works_with_several_threads_and_several_routes() {
    let (test, carts) = carts().await;
    test.attach(willing(&carts)).await.unwrap();
    test.attach(willing(&carts).route("mail")).await.unwrap();
    for number in 0..20 {
        carts.track_in(format!("cart:{number}"), HOUR).await.unwrap();
    }
    let handled = test.advance(HOUR).await.unwrap();
    for route in ["main", "mail"] {
        let of_route = handled.iter().filter(|handled| handled.route.as_str() == route);
        assert_eq!(of_route.filter(|handled| handled.ending == Ending::Done).count(), 60, "{route}");
    }
    assert_eq!(handled.len(), 120);
}

#[tokio::test(start_paused = true)]
async fn it_works_while_the_clock_of_the_runtime_is_paused() {
    let (test, carts) = carts().await;
    let begun = tokio::time::Instant::now();
    let worker = Worker::builder(&carts).on_reminder(|_| async {});
    // A minute that passes at once, because nothing else is to be done.
    test.attach(worker.on_cleanup(|_| tokio::time::sleep(Duration::from_secs(60)))).await.unwrap();
    let test = test.patience(2 * MINUTE);
    carts.track_in("a", HOUR).await.unwrap();
    let handled = test.advance(HOUR).await.unwrap();
    assert_eq!(lines(&handled), ["reminder 10m of a: done", "reminder 1m of a: done", "cleanup of a: done"]);
    let passed = begun.elapsed();
    assert!((MINUTE..MINUTE + 5 * SECOND).contains(&passed), "{passed:?}");
}

#[tokio::test]
async fn what_was_passed_at_once_is_told_as_after_a_downtime() {
    let (test, carts) = carts().await;
    carts.track_in("a", HOUR).await.unwrap();
    test.jump(HOUR - 30 * SECOND);
    test.attach(willing(&carts)).await.unwrap();
    let handled = test.settle().await.unwrap();
    assert_eq!(lines(&handled), ["reminder 1m of a: done"]);
}

#[tokio::test]
async fn each_hand_out_is_told_once_and_stands_in_the_history() {
    let (test, carts) = carts().await;
    test.attach(willing(&carts)).await.unwrap();
    carts.track_in("a", HOUR).await.unwrap();
    assert_eq!(test.advance(50 * MINUTE).await.unwrap().len(), 1);
    let handled = test.advance(10 * MINUTE).await.unwrap();
    assert_eq!(lines(&handled), ["reminder 1m of a: done", "cleanup of a: done"]);
    assert!(handled[1].lead().is_none() && matches!(handled[1].kind(), Kind::Cleanup(_)));
    assert_eq!(test.settle().await.unwrap(), []);
    assert_eq!(test.history().len(), 3);
}

#[tokio::test]
async fn the_clock_starts_where_the_test_wants_it_and_goes_only_forward() {
    let instant = Utc.with_ymd_and_hms(2031, 2, 3, 4, 5, 6).unwrap();
    let test = TestStore::starting_at(instant).await.unwrap();
    let carts = test.namespace("cart");
    carts.apply(Settings::default()).await.unwrap();
    test.attach(willing(&carts)).await.unwrap();
    assert_eq!(test.now(), instant);
    carts.track("a", instant + TimeDelta::minutes(5)).await.unwrap();
    let handled = test.advance_to(instant + TimeDelta::minutes(7)).await.unwrap();
    assert_eq!(handled[0].at, instant + TimeDelta::minutes(5));
    let error = test.advance_to(instant).await.unwrap_err();
    assert!(matches!(error, TestError::Invalid(_)), "{error}");
    assert_eq!(test.now(), instant + TimeDelta::minutes(7));
}
