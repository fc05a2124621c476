//! The namespaces of a configuration in the store: created, changed, left alone.

use forewarn::{
    Forewarn, StoreError,
    config::{AppliedNamespace, Effect, apply, foresee},
    testing::TestStore,
};

use crate::stage::config;

async fn apply_text(forewarn: &Forewarn, text: &str) -> Vec<String> {
    apply(forewarn, &config(text)).await.iter().map(ToString::to_string).collect()
}

async fn lease_of(store: &TestStore, namespace: &str) -> u64 {
    store.namespace(namespace).configured().await.unwrap().settings.lease.as_secs()
}

#[tokio::test]
async fn namespaces_are_created_changed_and_else_left_alone() {
    let store = TestStore::new().await.unwrap();
    let forewarn = store.forewarn();
    let both = "[namespace.a]\nremind = [\"1m\"]\n[namespace.b]\nroutes = [\"mail:reminders\"]";
    assert_eq!(apply_text(forewarn, both).await, ["namespace a: created", "namespace b: created"]);
    assert_eq!(apply_text(forewarn, both).await, ["namespace a: unchanged", "namespace b: unchanged"]);
    let routes = &store.namespace("b").configured().await.unwrap().routes;
    assert_eq!(routes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["mail:reminders"]);
    assert_eq!(apply_text(forewarn, "[namespace.a]\nlease = \"5s\"").await, ["namespace a: changed"]);
    assert_eq!((lease_of(&store, "a").await, lease_of(&store, "b").await), (5, 60));
    assert_eq!(forewarn.namespaces().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_lower_revision_never_overwrites_a_higher_one() {
    let store = TestStore::new().await.unwrap();
    let forewarn = store.forewarn();
    let with = |revision: u32, lease: u32| format!("revision = {revision}\n[namespace.a]\nlease = \"{lease}s\"");
    assert_eq!(apply_text(forewarn, &with(7, 7)).await, ["namespace a: created"]);
    assert_eq!(
        apply_text(forewarn, &with(6, 6)).await,
        ["namespace a: newer settings (revision 7) are in force, those given here (6) are not applied"]
    );
    assert_eq!(lease_of(&store, "a").await, 7);
    assert_eq!(apply_text(forewarn, &with(8, 8)).await, ["namespace a: changed"]);
    assert_eq!(lease_of(&store, "a").await, 8);
}

#[tokio::test]
async fn one_that_cannot_be_applied_keeps_none_of_the_others_from_it() {
    let store = TestStore::new().await.unwrap();
    apply_text(store.forewarn(), "[namespace.b]").await;
    let done = apply(store.forewarn(), &config("[namespace.a]\n[namespace.b]\nshards = 2\n[namespace.c]")).await;
    let [
        AppliedNamespace { result: Ok(Effect::Created), .. },
        conflict,
        AppliedNamespace { result: Ok(Effect::Created), .. },
    ] = &done[..]
    else {
        panic!("{done:?}")
    };
    assert!(matches!(conflict.result, Err(StoreError::Conflict { .. } | StoreError::Invalid(_))), "{conflict:?}");
}

#[tokio::test]
async fn what_applying_would_do_is_told_without_doing_it() {
    let store = TestStore::new().await.unwrap();
    let foreseen = config("revision = 2\n[namespace.a]\nremind = [\"1h\"]").namespaces.remove(0);
    let effect = async || foresee(store.forewarn(), &foreseen).await.unwrap().0;
    assert_eq!(effect().await, Effect::Created);
    assert!(store.forewarn().namespaces().await.unwrap().is_empty());
    apply_text(store.forewarn(), "[namespace.a]").await;
    assert_eq!(effect().await, Effect::Changed);
    apply_text(store.forewarn(), "revision = 3\n[namespace.a]").await;
    assert_eq!(effect().await, Effect::Outranked { in_force: 3, given: 2 });
}
