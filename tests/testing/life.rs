//! Workers that come and go: those a test runs itself, those that vanish, and handlers that are told to give up.

use forewarn::testing::Ending;
use forewarn::{Delivery, Settings, Worker};
use tokio_util::sync::CancellationToken;

use crate::harness::within;
use crate::stage::{Gate, HOUR, MINUTE, carts, lines, willing};

#[tokio::test]
async fn a_worker_that_the_program_runs_itself_serves_as_well() {
    let (test, carts) = carts().await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(willing(&carts).run(stop.clone().cancelled_owned()));
    carts.track_in("a", HOUR).await.unwrap();
    assert_eq!(test.advance(HOUR).await.unwrap().len(), 3);
    stop.cancel();
    assert_eq!(within("its end", running).await.unwrap().unwrap().totals.done, 3);
}

#[tokio::test]
async fn what_a_vanished_worker_had_is_handed_out_again_when_its_lease_ends() {
    let (test, carts) = carts().await;
    carts.apply(Settings::default().lease(5 * MINUTE)).await.unwrap();
    let gate = Gate::default();
    let stuck = gate.clone();
    let worker = Worker::builder(&carts).on_reminder(|_| async {}).on_cleanup(move |_| stuck.clone().pass());
    let running = tokio::spawn(worker.run(std::future::pending()));
    carts.track_in("a", MINUTE).await.unwrap();
    test.jump(MINUTE);
    gate.begun().await;
    // Another one is there all the time, and one comes later.
    test.attach(willing(&carts)).await.unwrap();
    running.abort();
    assert!(within("its end", running).await.unwrap_err().is_cancelled());
    test.attach(willing(&carts)).await.unwrap();
    let handled = test.advance(HOUR).await.unwrap();
    assert_eq!(lines(&handled), ["cleanup of a: open", "cleanup of a, attempt 2: done"]);
    assert_eq!((handled[1].at - handled[0].at).num_minutes(), 5);
}

#[tokio::test]
async fn a_stopping_worker_gives_back_what_the_next_one_gets() {
    let (test, carts) = carts().await;
    carts.apply(Settings::default()).await.unwrap();
    let (gate, stop) = (Gate::default(), CancellationToken::new());
    let stuck = gate.clone();
    let worker = Worker::builder(&carts).stop_timeout(std::time::Duration::ZERO).on_reminder(|_| async {});
    let worker = worker.on_cleanup(move |delivery: Delivery| {
        let gate = stuck.clone();
        async move {
            gate.tell_begun();
            delivery.cancelled().await;
            Err::<(), _>("given up")
        }
    });
    let running = tokio::spawn(worker.run(stop.clone().cancelled_owned()));
    carts.track_in("a", MINUTE).await.unwrap();
    test.jump(MINUTE);
    gate.begun().await;
    stop.cancel();
    assert_eq!(within("its end", running).await.unwrap().unwrap().released, 1);
    test.attach(willing(&carts)).await.unwrap();
    let handled = test.settle().await.unwrap();
    assert_eq!(lines(&handled), ["cleanup of a: released", "cleanup of a: done"]);
}

#[tokio::test]
async fn a_test_may_act_while_a_handler_runs() {
    let (test, carts) = carts().await;
    let gate = Gate::default();
    let held = gate.clone();
    let worker = Worker::builder(&carts).on_reminder(move |_| held.clone().pass()).on_cleanup(|_| async {});
    test.attach(worker).await.unwrap();
    carts.track_in("a", HOUR).await.unwrap();
    let logout = async {
        gate.begun().await;
        carts.remove("a").await.unwrap();
        gate.go.notify_one();
    };
    let (handled, ()) = tokio::join!(test.advance(HOUR), logout);
    let handled = handled.unwrap();
    assert_eq!(handled.len(), 1);
    assert_eq!(handled[0].ending, Ending::Void);
}

#[tokio::test]
async fn two_namespaces_are_turned_together() {
    let (test, carts) = carts().await;
    let uploads = test.namespace("upload");
    uploads.apply(Settings::default()).await.unwrap();
    test.attach(willing(&carts)).await.unwrap();
    test.attach(willing(&uploads)).await.unwrap();
    carts.track_in("a", HOUR).await.unwrap();
    uploads.track_in("b", 55 * MINUTE).await.unwrap();
    let handled = test.advance(2 * HOUR).await.unwrap();
    let order = ["reminder 10m of a: done", "cleanup of b: done", "reminder 1m of a: done", "cleanup of a: done"];
    assert_eq!(lines(&handled), order);
}
