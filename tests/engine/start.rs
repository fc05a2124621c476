//! What a worker needs before it works.

use forewarn::{Route, Settings, StoreError, WorkerError};

use crate::harness::{Kind, Server};
use crate::stage::{Running, Seen, Stage, lead};

#[tokio::test]
async fn a_namespace_that_was_never_configured_is_refused() {
    let stage = Stage::unconfigured(Server::shared(Kind::Redis)).await;
    let ended = Running::launch(stage.builder().on_cleanup(|_| async {})).end().await;
    assert!(matches!(ended, Err(WorkerError::Store(StoreError::Unconfigured { .. }))), "{ended:?}");
}

#[tokio::test]
async fn a_missing_route_is_registered_for_the_kinds_that_have_a_handler() {
    let stage = Stage::new(Settings::default().remind(lead(1000))).await;
    let builder = || stage.builder().route("mailer").on_reminder(|_| async {});
    let running = Running::start(builder()).await;
    assert_eq!(running.count(|seen| *seen == Seen::Started { registered: true }), 1);
    let configured = stage.namespace.configured().await.unwrap();
    let route = configured.routes.iter().find(|route| route.name.as_str() == "mailer").unwrap();
    assert_eq!(*route, "mailer:reminders".parse::<Route>().unwrap());
    running.stop().await;

    let again = Running::start(builder()).await;
    assert_eq!(again.count(|seen| *seen == Seen::Started { registered: false }), 1);
    again.stop().await;
}

#[tokio::test]
async fn a_route_that_delivers_what_has_no_handler_is_refused() {
    let stage = Stage::new(Settings::default()).await;
    let ended = Running::launch(stage.builder().on_reminder(|_| async {})).end().await;
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("route \"main\"") && error.contains("has no on_cleanup handler"), "{error}");
    assert!(error.contains(".route(\"reminders\")"), "{error}");

    // Cleanups alone are enough where the settings make nothing else.
    Running::start(stage.builder().on_cleanup(|_| async {})).await.stop().await;
}

#[tokio::test]
async fn a_worker_that_cannot_work_is_not_built() {
    let stage = Stage::new(Settings::default()).await;
    let refused = |builder: forewarn::engine::WorkerBuilder| match builder.build().unwrap_err() {
        WorkerError::Invalid(invalid) => invalid.field().to_owned(),
        other => panic!("{other:?}"),
    };
    let ready = || stage.builder().on_cleanup(|_| async {});
    assert_eq!(refused(stage.builder()), "handler");
    assert_eq!(refused(ready().route("No Name")), "route");
    assert_eq!(refused(ready().concurrency(0)), "concurrency");
    assert_eq!(refused(ready().batch(501)), "batch");
    assert_eq!(refused(ready().max_poll(std::time::Duration::ZERO)), "max_poll");
    assert!(ready().batch(500).build().is_ok());
}
