//! `session`: the whole library in one page.

use forewarn::Forewarn;

use crate::harness::{Kind, Server};
use crate::process::{Running, example};

#[tokio::test]
async fn the_session_ends_with_its_payload_and_leaves_nothing() {
    let server = Server::shared(Kind::Redis);
    let mut command = example("session");
    command.env("FOREWARN_STORE", server.url());
    let (code, lines) = Running::start(command).end();
    assert_eq!(code, 0, "{lines:#?}");
    let told = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(told("has expired; its payload was Ok(Object {\"user\": Number(7)})"), 1, "{lines:#?}");
    assert_eq!(told("notices handled"), 1, "{lines:#?}");
    let left = Forewarn::connect(&server.url()).await.unwrap().namespaces().await.unwrap();
    assert!(left.iter().all(|namespace| namespace.name.as_str() != "example-session"), "{left:?}");
}
