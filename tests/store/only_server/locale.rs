//! I12: nothing in the scripts may depend on how the server's locale sorts.

use std::process::Command;

use tempfile::TempDir;

use crate::harness::{Kind, Server, servers};
use crate::histories::{check, share};
use crate::operation::Mix;
use crate::scene::{Scene, reminding, words};

/// Printable characters whose order in most locales is not that of their bytes.
const LETTERS: &str = "!#+-.0159:=@ABCMXYZ_abcmxyz{|}~";

/// A server under a locale that sorts otherwise than by bytes, and the directory that locale lies in.
fn server(kind: Kind) -> (TempDir, Server) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let made = Command::new("localedef")
        .args(["-i", "en_US", "-f", "UTF-8"])
        .arg(directory.path().join("en_US.UTF-8"))
        .output()
        .expect("localedef runs; it comes with the C library");
    assert!(made.status.success(), "no locale en_US (package locales): {}", String::from_utf8_lossy(&made.stderr));
    let path = directory.path().to_str().expect("text");
    let server = Server::start_under(kind, &[], &[("LOCPATH", path), ("LC_ALL", "en_US.UTF-8")]);
    let sorts_otherwise: bool = redis::cmd("EVAL")
        .arg("return ('a' < 'B') and 1 or 0")
        .arg(0)
        .query(&mut server.blocking_connection())
        .expect("an answer");
    assert!(sorts_otherwise, "{kind} does not sort as the locale says, so this would prove nothing");
    (directory, server)
}

#[test]
fn any_history_leaves_the_same_under_a_locale_that_sorts_otherwise() {
    for kind in servers() {
        let (_directory, server) = server(kind);
        check(&server, Mix { raw: true, changes: true, ..Mix::default() }, false, share(5));
    }
}

#[tokio::test]
async fn a_sweep_goes_on_within_a_tie_though_the_id_it_had_come_to_is_gone() {
    for kind in servers() {
        let (_directory, server) = server(kind);
        let mut scene = Scene::bare(&server).await;
        scene.configure(reminding(&["10ms"]), &[]).await;
        for letter in LETTERS.chars() {
            scene.track(&letter.to_string(), 100).await;
        }
        scene.at(90);
        let mut heard = String::new();
        for _ in LETTERS.chars() {
            let claims = scene.claim_some("main", 1).await.claims;
            let id = claims[0].notice.id.to_string();
            scene.ack(&claims).await;
            // C3: the place of an id that is gone is found by the bytes of its neighbours
            scene.raw_remove(&id).await;
            heard.push_str(&id);
        }
        assert_eq!(heard, LETTERS);
        assert!(scene.heard().await.is_empty());
    }
}

#[tokio::test]
async fn a_set_within_a_tie_knows_whether_the_sweep_has_passed_it() {
    for kind in servers() {
        let (_directory, server) = server(kind);
        let scene = Scene::bare(&server).await;
        scene.configure(reminding(&["10ms"]), &[]).await;
        scene.track("B", 100).await;
        scene.track("~", 100).await;
        scene.at(90);
        assert_eq!(words(&scene.claim_some("main", 1).await.claims), ["10ms B"]);
        // W3.2: created inside the lead, on either side of the place the sweep has come to
        for letter in ["A", "a", "_", "-", "C", "b"] {
            scene.track(letter, 100).await;
        }
        assert_eq!(scene.heard().await, ["10ms ~"]);
    }
}
