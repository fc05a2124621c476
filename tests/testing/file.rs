//! What is on the disk: a directory of its own for each store, and nothing when it is dropped.

use std::path::{Path, PathBuf};

use forewarn::testing::TestStore;
use tokio::runtime::Builder;

use crate::stage::{HOUR, carts, willing};

fn directory(test: &TestStore) -> PathBuf {
    let place = test.forewarn().store().place();
    Path::new(place.strip_prefix("sqlite:").unwrap()).parent().unwrap().to_owned()
}

#[test]
fn nothing_is_left_when_the_test_is_over() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let directory = runtime.block_on(async {
        let (test, carts) = carts().await;
        test.attach(willing(&carts)).await.unwrap();
        carts.track_in("a", HOUR).await.unwrap();
        test.advance(HOUR).await.unwrap();
        let directory = directory(&test);
        assert!(directory.join("forewarn.db").is_file());
        directory
    });
    drop(runtime);
    assert!(!directory.exists(), "{} is left", directory.display());
}

#[test]
fn nothing_is_left_when_the_test_fails() {
    let (tell, told) = std::sync::mpsc::channel();
    let failing = std::thread::spawn(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let (test, carts) = carts().await;
            test.attach(willing(&carts)).await.unwrap();
            tell.send(directory(&test)).unwrap();
            std::panic::resume_unwind(Box::new("the test fails"));
        });
    });
    assert!(failing.join().is_err());
    let directory = told.recv().unwrap();
    assert!(!directory.exists(), "{} is left", directory.display());
}

#[tokio::test]
async fn two_stores_know_nothing_of_each_other() {
    let (one, carts_of_one) = carts().await;
    let (other, _) = carts().await;
    carts_of_one.track_in("a", HOUR).await.unwrap();
    assert_ne!(directory(&one), directory(&other));
    assert_eq!(other.namespace("cart").stats().await.unwrap().armed, 0);
    assert_eq!(other.advance(HOUR).await.unwrap(), []);
}
