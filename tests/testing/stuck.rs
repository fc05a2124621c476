//! What is said when a test cannot go on: nobody works there, a handler hangs, a worker gives everything back.
//!
//! Most pause the runtime's clock, so that what is waited for in vain is over at once.

use std::time::Duration;

use forewarn::model::Route;
use forewarn::store::Change;
use forewarn::testing::{TestError, TestStore};
use forewarn::{Outcome, Settings, Worker, WorkerError};

use crate::stage::{HOUR, MINUTE, SECOND, carts, lines, willing};

#[tokio::test(start_paused = true)]
async fn a_due_notice_without_a_worker_is_an_error_that_names_the_route() {
    let (test, carts) = carts().await;
    let begin = test.now();
    carts.track_in("a", HOUR).await.unwrap();
    let error = test.advance(HOUR).await.unwrap_err();
    assert!(matches!(&error, TestError::NoWorker { route, .. } if route.as_str() == "main"), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("route \"main\" of namespace \"cart\"") && text.contains("attach"), "{text}");
    // The clock tells where.
    assert_eq!((test.now() - begin).num_minutes(), 50);
    test.attach(willing(&carts)).await.unwrap();
    assert_eq!(test.advance(10 * MINUTE).await.unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn of_two_routes_the_one_without_a_worker_is_named() {
    let (test, carts) = carts().await;
    carts.configure(&Change::add_route(Route::all("mail".parse().unwrap()))).await.unwrap();
    test.attach(willing(&carts)).await.unwrap();
    carts.track_in("a", HOUR).await.unwrap();
    let error = test.advance(HOUR).await.unwrap_err();
    assert!(matches!(&error, TestError::NoWorker { route, .. } if route.as_str() == "mail"), "{error:?}");
    assert_eq!(lines(&test.history()), ["reminder 10m of a: done"]);
}

#[tokio::test]
async fn a_handler_that_hangs_is_named_with_its_notice() {
    let (test, carts) = carts().await;
    let test = test.patience(Duration::from_millis(300));
    let worker = Worker::builder(&carts).on_reminder(|_| async {}).on_cleanup(|_| std::future::pending::<()>());
    test.attach(worker).await.unwrap();
    carts.track_in("a", HOUR).await.unwrap();
    let error = test.advance(HOUR).await.unwrap_err();
    assert!(matches!(&error, TestError::Hanging { held, .. } if held.len() == 1), "{error:?}");
    assert!(error.to_string().contains("cleanup of a: open (route \"main\" of namespace \"cart\")"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn slow_handlers_have_the_whole_time_each() {
    let (test, carts) = carts().await;
    carts.apply(Settings::default()).await.unwrap();
    // One after the other, together far longer than the ten seconds that are waited for one.
    let slow = Worker::builder(&carts).concurrency(1).on_reminder(|_| async {});
    test.attach(slow.on_cleanup(|_| tokio::time::sleep(4 * SECOND))).await.unwrap();
    for number in 0..8 {
        carts.track_in(format!("cart:{number}"), MINUTE).await.unwrap();
    }
    assert_eq!(test.advance(MINUTE).await.unwrap().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_gives_everything_back_is_told_apart_from_none() {
    let (test, carts) = carts().await;
    let unable = Worker::builder(&carts).on_reminder(|_| async { Outcome::Release }).on_cleanup(|_| async {});
    test.attach(unable).await.unwrap();
    carts.track_in("a", HOUR).await.unwrap();
    let error = test.advance(HOUR).await.unwrap_err();
    assert!(matches!(error, TestError::Unhandled { .. }), "{error:?}");
    assert!(lines(&test.history()).iter().all(|line| line == "reminder 10m of a: released"), "{:?}", test.history());
}

#[tokio::test]
async fn a_worker_that_cannot_start_says_why() {
    let (test, carts) = carts().await;
    let error = test.attach(Worker::builder(&carts).on_cleanup(|_| async {})).await.unwrap_err();
    assert!(matches!(error, TestError::Worker(WorkerError::NoHandler { kind: "reminder", .. })), "{error:?}");
    let error = test.attach(willing(&test.namespace("other"))).await.unwrap_err();
    assert!(error.to_string().contains("\"other\" is not configured"), "{error}");
    let error = test.attach(Worker::builder(&carts)).await.unwrap_err();
    assert!(matches!(error, TestError::Worker(WorkerError::Invalid(_))), "{error:?}");
}

#[tokio::test]
async fn a_worker_of_another_store_is_refused() {
    let (test, _) = carts().await;
    let (_other, elsewhere) = carts().await;
    let error = test.attach(willing(&elsewhere)).await.unwrap_err();
    assert!(matches!(error, TestError::Invalid(_)) && error.to_string().contains("another store"), "{error:?}");
}

#[tokio::test]
async fn an_instant_that_cannot_be_is_refused() {
    let error = TestStore::starting_at(chrono::DateTime::UNIX_EPOCH + SECOND).await.unwrap_err();
    assert!(matches!(error, TestError::Invalid(_)), "{error:?}");
}

#[tokio::test]
async fn no_clock_is_turned_beyond_what_can_expire() {
    let (test, carts) = carts().await;
    test.attach(willing(&carts)).await.unwrap();
    let error = test.advance(Duration::MAX).await.unwrap_err();
    assert!(matches!(&error, TestError::Invalid(invalid) if invalid.field() == "span"), "{error:?}");
    test.jump(Duration::MAX);
    assert_eq!(test.now().timestamp_millis(), forewarn::ExpiresAt::MAX_MS);
    test.settle().await.unwrap();
}
