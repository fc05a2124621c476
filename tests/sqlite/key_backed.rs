//! Key-backed namespaces: there are none in a file, and it says so.

use forewarn::Settings;
use forewarn::store::{Change, Store as _, StoreError};

use crate::stage::{Place, configure, name};

#[tokio::test]
async fn a_key_backed_namespace_is_refused_with_the_store_that_can_have_it() {
    let place = Place::new();
    let store = place.open().await;
    let mut settings = Settings::default();
    settings.key_backed = true;
    let change = Change::settings(settings);
    let (session, upload) = (name("session"), name("upload"));
    configure(&store, Settings::default()).await;
    let before = store.configured(&session).await.unwrap();
    // Whether it is new or was there before, for a preview as for the change itself.
    for namespace in [&session, &upload] {
        for error in [
            store.configure(namespace, &change).await.map(drop).unwrap_err(),
            store.preview(namespace, &change).await.map(drop).unwrap_err(),
        ] {
            assert!(matches!(&error, StoreError::Invalid(invalid) if invalid.field() == "key_backed"), "{error:?}");
            let said =
                "no keys with a time to live of their own; keep such a namespace in Redis, with --store redis://";
            assert!(error.to_string().contains(said), "{error}");
        }
    }
    assert_eq!(store.configured(&session).await.unwrap(), before);
    assert_eq!(store.namespaces().await.unwrap().len(), 1);
}
