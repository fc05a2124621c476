//! Handles: one key for all processes and for good, ids found again by what stands for them, lists that go on (I1 to I3).

use forewarn::model::{Cursor, Handle, Id, IdKey, ShownId};
use forewarn::store::{Change, ListQuery, Shelf, Verdict};
use forewarn::{Forewarn, Namespace};

use crate::ground::grounds;
use crate::operation::START;
use crate::scene::{MINUTE, Scene, id, reminding};

async fn key(scene: &Scene) -> Option<IdKey> {
    scene.store.configured(&scene.name).await.unwrap().id_key.clone()
}

fn namespace(scene: &Scene) -> Namespace {
    Forewarn::with_store(scene.store.clone()).namespace(scene.name.as_str())
}

async fn handle(scene: &Scene, id: &Id) -> Handle {
    key(scene).await.unwrap().handle(id)
}

#[tokio::test]
async fn a_namespace_has_one_key_for_everybody_and_for_good() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[]).shards(3)).await;
        let first = key(&scene).await;
        assert!(first.is_some() && first != Some(IdKey::default()));
        // I2
        assert_eq!(key(&scene.beside().await).await, first);
        let given = Change { id_key: Some(IdKey::from_bytes([9; 16])), ..Change::default() };
        for change in [
            Change::settings(reminding(&["1m"]).shards(3).sensitive_ids(true)),
            Change::add_route("mail".parse().unwrap()),
            given,
        ] {
            let applied = scene.store.configure(&scene.name, &change).await.unwrap();
            assert_eq!((applied.configured.id_key.clone(), key(&scene).await), (first.clone(), first.clone()));
        }
        assert!(scene.store.configured(&scene.name).await.unwrap().settings.sensitive_ids);
        assert_ne!(key(&Scene::open(kind, reminding(&[])).await).await, first);
    }
}

#[tokio::test]
async fn a_new_namespace_takes_the_key_it_is_given() {
    for kind in grounds() {
        let scene = Scene::bare(kind).await;
        let given = Some(IdKey::from_bytes([9; 16]));
        let change = Change { id_key: given.clone(), ..Change::settings(reminding(&[])) };
        scene.store.preview(&scene.name, &change).await.unwrap();
        let applied = scene.store.configure(&scene.name, &change).await.unwrap();
        assert_eq!((applied.configured.id_key.clone(), key(&scene).await), (given.clone(), given));
    }
}

#[tokio::test]
async fn ids_are_masked_where_the_settings_say_so_and_nowhere_else() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[])).await;
        let secret = id("secret-session");
        // I1
        assert_eq!(namespace(&scene).id_mask().await.unwrap().show(&secret), ShownId::Id(secret.clone()));
        scene.configure(reminding(&[]).sensitive_ids(true), &[]).await;
        let shown = namespace(&scene).id_mask().await.unwrap().show(&secret);
        assert_eq!(shown, ShownId::Handle(handle(&scene, &secret).await));
    }
}

#[tokio::test]
async fn an_id_is_found_by_its_handle_wherever_it_stands() {
    for kind in grounds() {
        for shards in [1, 3] {
            let scene = Scene::open(kind, reminding(&[]).shards(shards).sensitive_ids(true)).await;
            for text in ["dead", "review", "open", "leased"] {
                scene.track(text, 0).await;
            }
            for n in 0..1_050 {
                scene.track(&format!("armed-{n}"), 5 * MINUTE + n % 3).await;
            }
            for claim in scene.claim().await {
                match claim.notice.id.as_text().unwrap() {
                    "dead" => drop(scene.fail(&[claim], Verdict::Dead).await),
                    "review" => drop(scene.fail(&[claim], Verdict::Review).await),
                    "open" => drop(scene.release(&[claim]).await),
                    _ => {}
                }
            }
            assert_eq!((scene.parked(Shelf::Dead).await.len(), scene.parked(Shelf::Review).await.len()), (1, 1));
            let namespace = namespace(&scene);
            // I3
            for text in ["armed-0", "armed-1049", "dead", "review", "open", "leased"] {
                let (id, handle) = (id(text), handle(&scene, &id(text)).await);
                assert_eq!(namespace.find(&handle).await.unwrap(), Some(id.clone()), "{text}");
                assert_eq!(namespace.find(&handle.bare()).await.unwrap(), Some(id), "{text}");
            }
            assert_eq!(namespace.find(&handle(&scene, &id("nobody")).await).await.unwrap(), None);
        }
    }
}

#[tokio::test]
async fn a_list_of_masked_ids_goes_on_where_it_was() {
    for kind in grounds() {
        for shards in [1, 3] {
            let scene = Scene::open(kind, reminding(&[]).shards(shards).sensitive_ids(true)).await;
            for n in 0..20 {
                scene.track(&format!("id-{n:02}"), n / 7 * MINUTE).await;
            }
            let namespace = namespace(&scene);
            let (mask, all) = (namespace.id_mask().await.unwrap(), ListQuery::default());
            let all: Vec<Id> = namespace.list(&all).await.unwrap().into_iter().map(|one| one.id).collect();
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = namespace.list(&ListQuery { after, limit: 3, ..ListQuery::default() }).await.unwrap();
                let Some(last) = page.last() else { break };
                let cursor = Cursor { expires_at_ms: last.expires_at_ms, last: mask.show(&last.id) };
                let written: Cursor = cursor.to_string().parse().unwrap();
                after = Some(namespace.place_of(&written).await.unwrap());
                seen.extend(page.into_iter().map(|one| one.id));
            }
            assert_eq!((seen.len(), seen), (20, all));
        }
    }
}

#[tokio::test]
async fn a_list_whose_last_entry_is_gone_repeats_its_instant_and_leaves_nothing_out() {
    for kind in grounds() {
        let scene = Scene::open(kind, reminding(&[]).sensitive_ids(true)).await;
        for (text, at) in [("early", 0), ("a", MINUTE), ("b", MINUTE), ("c", MINUTE), ("late", 2 * MINUTE)] {
            scene.track(text, at).await;
        }
        let namespace = namespace(&scene);
        let last = ShownId::Handle(handle(&scene, &id("b")).await);
        let cursor = Cursor { expires_at_ms: START + MINUTE, last };
        scene.remove("b").await;
        let after = Some(namespace.place_of(&cursor).await.unwrap());
        let page = namespace.list(&ListQuery { after, ..ListQuery::default() }).await.unwrap();
        let ids: Vec<String> = page.iter().map(|one| one.id.to_string()).collect();
        assert_eq!(ids, ["a", "c", "late"]);
    }
}
