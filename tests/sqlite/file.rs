//! The file: made, found, refused. Whatever is refused stays as it was, byte by byte.

use std::{
    fs::{self, Permissions},
    io::Read as _,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
};

use forewarn::store::sqlite::{SqliteOptions, SqliteStore};
use forewarn::store::{Store as _, StoreError};
use forewarn::{Forewarn, Settings};

use crate::stage::{Place, START, armed, claim, configure, face, inner, inner_path, name, say, track_one, turn};

#[tokio::test]
async fn a_store_is_opened_by_its_url_and_keeps_what_it_was_told() {
    let place = Place::new();
    for url in [format!("sqlite:{}", place.file().display()), format!("sqlite://{}", place.file().display())] {
        let forewarn = Forewarn::connect(&url).await.unwrap();
        let sessions = forewarn.namespace("session");
        sessions.apply(Settings::default()).await.unwrap();
        sessions.track("wang", forewarn::ExpiresAt::from_millis(99_000_000_000_000).unwrap()).await.unwrap();
    }
    let again = place.open().await;
    assert_eq!(armed(&again).await, 1);
    assert_eq!(again.namespaces().await.unwrap()[0].name, name("session"));
}

#[tokio::test]
async fn a_url_that_names_no_file_is_refused_with_the_fix() {
    for url in ["sqlite:", "sqlite::memory:", "sqlite://host/x.db", "mysql://h"] {
        let error = Forewarn::connect(url).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{url}: {error}");
        assert!(error.to_string().contains("sqlite:"), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_new_file_is_for_its_owner_only() {
    let place = Place::new();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    for suffix in ["", "-wal", "-shm"] {
        let file = format!("{}{suffix}", place.file().display());
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file} has mode {mode:o}");
    }
}

#[tokio::test]
async fn a_directory_is_made_only_if_that_is_wanted() {
    let place = Place::new();
    let path = place.directory().join("a/b/forewarn.db");
    let error = SqliteStore::open(&path, SqliteOptions::default()).await.unwrap_err();
    assert!(error.to_string().ends_with("its directory does not exist; make it first"), "{error}");
    assert!(!path.parent().unwrap().exists());
    let options = SqliteOptions { create_parent: true, ..SqliteOptions::default() };
    SqliteStore::open(&path, options).await.unwrap();
    assert!(path.exists());
}

/// Opens the file, expects the refusal and looks that not a byte has changed and nothing was left beside it.
async fn refused(place: &Place, problem: &str) {
    let before = fs::read(place.file()).unwrap();
    let error = place.refusal().await;
    assert!(matches!(error, StoreError::Unusable { .. }), "{error:?}");
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(text.contains(problem) && text.contains(place.file().to_str().unwrap()), "{text}");
    assert_eq!(fs::read(place.file()).unwrap(), before);
    let beside: Vec<_> = fs::read_dir(place.directory()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["forewarn.db"]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_untouched() {
    for contents in [&b"[namespace.session]\nremind = [\"10m\"]\n"[..], &[0; 8192], b"SQLite format 3\0", b"x"] {
        let place = Place::new();
        fs::write(place.file(), contents).unwrap();
        refused(&place, "it is no SQLite database").await;
    }
}

#[tokio::test]
async fn a_database_with_a_damaged_page_is_refused_and_untouched() {
    let place = Place::new();
    let mut bytes = vec![0xA5; 4096];
    bytes[..16].copy_from_slice(b"SQLite format 3\0");
    bytes[68..72].copy_from_slice(&0x6672_776E_u32.to_be_bytes());
    bytes[60..64].copy_from_slice(&1_u32.to_be_bytes());
    fs::write(place.file(), bytes).unwrap();
    refused(&place, "it is no SQLite database").await;
}

#[tokio::test]
async fn the_database_of_another_application_is_refused_and_untouched() {
    let place = Place::new();
    place.connection().execute_batch("CREATE TABLE cookie (name TEXT); INSERT INTO cookie VALUES ('a');").unwrap();
    refused(&place, "it is the database of another application").await;

    let place = Place::new();
    place.connection().execute_batch("PRAGMA application_id = 7; PRAGMA user_version = 1; VACUUM;").unwrap();
    refused(&place, "it is the database of another application").await;
}

#[tokio::test]
async fn a_file_that_a_newer_version_wrote_is_refused_and_untouched() {
    let place = Place::new();
    configure(&place.open().await, Settings::default()).await;
    closed(&place).await;
    place.connection().execute_batch("PRAGMA user_version = 1000").unwrap();
    refused(&place, "a newer version of forewarn wrote it (layout 1000, this program knows").await;
}

#[tokio::test]
async fn a_file_that_a_newer_version_changes_meanwhile_is_written_no_more() {
    let place = Place::new();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    place.connection().execute_batch("PRAGMA user_version = 1000").unwrap();
    let error = store.forget(&name("session")).await.unwrap_err();
    assert!(error.to_string().contains("a newer version of forewarn"), "{error}");
    assert_eq!(store.namespaces().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_directory_in_place_of_the_file_is_refused() {
    let place = Place::new();
    fs::create_dir(place.file()).unwrap();
    let error = place.refusal().await;
    assert!(error.to_string().ends_with("it is a directory; give the path of a file"), "{error}");
}

#[tokio::test]
async fn a_read_only_file_or_directory_is_refused_and_untouched() {
    if let Some(path) = inner_path() {
        let error = SqliteStore::open(path, SqliteOptions::default()).await.map(drop).unwrap_err();
        say(format_args!("refused: {error}"));
        return;
    }
    let refusal = |place: &Place| {
        let mut command = inner("file::a_read_only_file_or_directory_is_refused_and_untouched", &place.file());
        // Nothing is read-only for root.
        if rustix::process::geteuid().is_root() {
            command.uid(65_534);
        }
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        said.lines().find_map(|line| line.strip_prefix("refused: ")).unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let set_mode = |path: &std::path::Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();

    let place = Place::new();
    configure(&place.open().await, Settings::default()).await;
    closed(&place).await;
    let before = fs::read(place.file()).unwrap();
    set_mode(&place.file(), 0o444);
    set_mode(place.directory(), 0o777);
    let said = refusal(&place);
    assert!(said.contains("it is read-only; make it writable"), "{said}");
    assert_eq!(fs::read_dir(place.directory()).unwrap().count(), 1);

    set_mode(&place.file(), 0o666);
    set_mode(place.directory(), 0o555);
    let said = refusal(&place);
    assert!(said.contains("its directory") && said.contains("writable"), "{said}");
    assert_eq!(fs::read(place.file()).unwrap(), before);

    let place = Place::new();
    set_mode(place.directory(), 0o555);
    let said = refusal(&place);
    assert!(said.contains("it cannot be made: Permission denied"), "{said}");
}

#[tokio::test]
async fn a_file_cut_off_while_it_was_made_is_made_anew() {
    let place = Place::new();
    fs::write(place.file(), b"").unwrap();
    let store = place.open().await;
    configure(&store, Settings::default()).await;
    assert_eq!(armed(&store).await, 0);
}

#[tokio::test]
async fn a_store_that_is_dropped_lets_go_of_its_file() {
    let place = Place::new();
    let (store, clock) = place.open_still().await;
    configure(&store, Settings::default()).await;
    track_one(&store, "wang", START + 10).await;
    turn(&clock, 10);
    assert_eq!(claim(&store).await.claims.len(), 1);
    drop(face(store));
    closed(&place).await;
}

/// Waits until the last connection has tidied up.
async fn closed(place: &Place) {
    let wal = place.directory().join("forewarn.db-wal");
    crate::harness::eventually("the file to be let go", async || (!wal.exists()).then_some(())).await;
}
