//! Examples of B7 and B8: which keys are ever touched, and commands that act on them.

use forewarn::Settings;
use forewarn::model::Mode;
use forewarn::store::{Expired, Removed, Renewed, Replaced, StoreError, Tracked};

use super::Keys;
use crate::ground::Ground;
use crate::harness::{self, Rights, servers};
use crate::operation::{FAR, START};
use crate::scene::{MINUTE, Scene, id, problem, reminding};

#[tokio::test]
async fn only_ids_that_match_the_patterns_are_read() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"]).manage_keys(true)).await;
        let foreign = format!("x{}", keys.scene.name);
        let _: () = keys.scene.raw(&["SET", &foreign, "data"]).await;
        keys.scene.raw_set(&foreign, FAR + MINUTE).await;
        let own = keys.scene.key("meta");
        keys.scene.raw_set(&own, FAR + MINUTE).await;
        keys.at(2 * MINUTE).await;
        assert!(keys.heard().await.is_empty());
        for id in [&foreign, &own] {
            assert!(keys.scene.show(id).await.unwrap().quarantined.is_some(), "{id}");
        }
        assert_eq!(keys.counters().await.quarantined, 2);
        // Nor are they changed by commands.
        let refused = keys.scene.track(&foreign, FAR + 9 * MINUTE).await;
        assert!(matches!(&refused, Tracked::Rejected(invalid) if invalid.field() == "id"), "{refused:?}");
        let name = keys.scene.name.clone();
        // Out of quarantine, and no more.
        assert_eq!(keys.scene.remove(&own).await, Removed::Removed);
        assert!(problem(keys.scene.store.remove(&name, &[id(&own)]).await).contains("patterns"));
        assert!(problem(keys.scene.store.expire(&name, &[id(&foreign)]).await).contains("patterns"));
        let there: i64 = keys.scene.raw(&["EXISTS", &foreign, &own]).await;
        assert_eq!(there, 2);
        let _: i64 = keys.scene.raw(&["DEL", &foreign]).await;
    }
}

#[tokio::test]
async fn own_keys_are_no_ids_whatever_the_pattern() {
    for kind in servers() {
        let scene =
            Scene::open(kind, Settings::default().key_backed(true).keys("*".parse().unwrap()).manage_keys(true)).await;
        for own in [scene.key("meta"), "{fw:other:0}:exp".to_owned(), "fw:namespaces".to_owned()] {
            assert!(problem(scene.store.remove(&scene.name, &[id(&own)]).await).contains("patterns"), "{own}");
        }
    }
}

#[tokio::test]
async fn commands_are_refused_unless_they_may_manage_the_keys() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"])).await;
        keys.arm("a", 30 * MINUTE).await;
        let (a, name) = (keys.name("a"), keys.scene.name.clone());
        let before = keys.scene.keyspace().await;
        let scene = &keys.scene;
        let entry = forewarn::model::Track {
            id: id(&a),
            expires_at: forewarn::model::ExpiresAt::from_millis(START + FAR).unwrap(),
            payload: None,
        };
        let errors = [
            scene.store.track(&name, Mode::Upsert, std::slice::from_ref(&entry)).await.unwrap_err(),
            scene.store.replace(&name, Mode::Upsert, &entry, &id(keys.name("b"))).await.unwrap_err(),
            scene.store.remove(&name, &[id(&a)]).await.unwrap_err(),
            scene.store.expire(&name, &[id(&a)]).await.unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, StoreError::KeyBacked { .. }), "{error}");
        }
        assert_eq!(keys.scene.keyspace().await, before);
        assert_eq!(keys.expiry_of_key("a").await, Some(30 * MINUTE));
    }
}

#[tokio::test]
async fn managed_keys_are_moved_and_deleted_with_their_ids() {
    for kind in servers() {
        let mut keys = Keys::open(kind, reminding(&["10m"]).manage_keys(true)).await;
        let a = keys.name("a");
        assert_eq!(keys.scene.track(&a, FAR + 30 * MINUTE).await, Tracked::NoKey);
        keys.slide("a", 5 * MINUTE).await;
        keys.persist("a").await;
        assert_eq!(keys.scene.track(&a, FAR + 30 * MINUTE).await, Tracked::Created { already_expired: false });
        assert_eq!(keys.expiry_of_key("a").await, Some(30 * MINUTE));
        assert_eq!(keys.scene.renew(&a, FAR + 40 * MINUTE).await, Renewed::Renewed);
        assert_eq!(keys.expiry_of_key("a").await, Some(40 * MINUTE));
        // Somebody else moves the key; what a command compares with is the key.
        keys.slide("a", 60 * MINUTE).await;
        let kept = keys.scene.track_as(Mode::ExtendOnly, &a, FAR + 50 * MINUTE, None).await;
        assert_eq!((kept, keys.armed("a").await), (Tracked::Kept, Some(60 * MINUTE)));
        assert_eq!(keys.scene.renew(&a, FAR + 60 * MINUTE).await, Renewed::Unchanged);
        assert_eq!(keys.scene.remove(&a).await, Removed::Removed);
        assert_eq!(keys.expiry_of_key("a").await, None);
        assert_eq!(keys.scene.remove(&a).await, Removed::Unknown);
        keys.slide("a", 5 * MINUTE).await;
        assert_eq!(keys.scene.remove(&a).await, Removed::Removed, "the key was there");
        assert_eq!(keys.scene.renew(&a, FAR + 9 * MINUTE).await, Renewed::Unknown);

        keys.slide("b", 30 * MINUTE).await;
        let b = keys.name("b");
        keys.scene.track(&b, FAR + 30 * MINUTE).await;
        assert_eq!(keys.scene.expire(&b).await, Expired::Ended);
        assert_eq!(keys.expiry_of_key("b").await, None);
        assert_eq!(keys.scene.renew(&b, FAR + 40 * MINUTE).await, Renewed::Expired);
        assert_eq!(keys.handled().await, ["ended b"]);

        keys.slide("old", 30 * MINUTE).await;
        keys.slide("new", 30 * MINUTE).await;
        let (old, new) = (keys.name("old"), keys.name("new"));
        keys.scene.track(&old, FAR + 30 * MINUTE).await;
        let replaced = keys.scene.replace(Mode::Upsert, &new, FAR + 20 * MINUTE, None, &old).await;
        assert_eq!(replaced, Replaced { tracked: Tracked::Created { already_expired: false }, replaced: true });
        assert_eq!((keys.expiry_of_key("old").await, keys.expiry_of_key("new").await), (None, Some(20 * MINUTE)));
        let missing = keys.name("missing");
        let replaced = keys.scene.replace(Mode::Upsert, &missing, FAR + 20 * MINUTE, None, &new).await;
        assert_eq!(replaced, Replaced { tracked: Tracked::NoKey, replaced: false });
        assert_eq!(keys.armed("new").await, Some(20 * MINUTE));
    }
}

#[tokio::test]
async fn a_client_that_does_not_know_yet_that_ids_are_keys_touches_none_that_match_no_pattern() {
    for kind in servers() {
        let name = harness::namespace();
        let rights = Rights::documented().with_managed_keys(&format!("{name}:*"));
        let plain = Scene::of(Ground::from(kind).peer_with(Some(&rights)).await, name).await;
        plain.configure(reminding(&["10m"]), &[]).await;
        plain.at(FAR);
        plain.track("before", FAR + MINUTE).await;
        let mut other = plain.beside().await;
        let pattern = format!("{}:*", plain.name).parse().unwrap();
        let (secret, own) = (format!("secret {}", plain.name), format!("{}:a", plain.name));
        for key in [&secret, &own] {
            let _: () = other.raw(&["SET", key, "data"]).await;
        }
        other.configure(reminding(&["10m"]).key_backed(true).manage_keys(true).keys(pattern), &[]).await;

        // Each of these clients was there before the settings changed.
        let is_refused = |tracked: &Tracked| matches!(tracked, Tracked::Rejected(invalid) if invalid.field() == "id");
        let tracked = plain.track(&secret, FAR + MINUTE).await;
        assert!(is_refused(&tracked), "{tracked:?}");
        let replaced = plain.replace(Mode::Upsert, &own, FAR + MINUTE, None, &secret).await;
        assert!(is_refused(&replaced.tracked) && !replaced.replaced, "{replaced:?}");
        let secrets = [id(&secret)];
        let (refused, removed) = tokio::join!(plain.store.remove(&plain.name, &secrets), plain.remove(&own));
        assert!(problem(refused).contains("patterns"));
        assert_eq!(removed, Removed::Removed, "the key was there, and it is no concern of its neighbour in the call");
        assert!(problem(plain.store.expire(&plain.name, &[id(&secret)]).await).contains("patterns"));
        let ttl: i64 = other.raw(&["TTL", &secret]).await;
        assert_eq!(ttl, -1, "{secret} is as it was");
        let _: i64 = other.raw(&["DEL", &secret]).await;
    }
}
