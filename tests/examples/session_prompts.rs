//! `session_prompts`: users are asked before their sessions end, and may stay.
//!
//! The sessions here last twenty seconds and are reminded of almost from their beginning. So a machine that stands still for
//! a while hides nothing; when one is to end, the test shortens its time.

use std::time::Duration;

use forewarn::{Forewarn, Namespace};
use redis::Commands as _;

use crate::browser::Browser;
use crate::harness::{Rights, Server, eventually};
use crate::process::{Running, example};

/// The application on a Redis of its own.
struct Site {
    server: Server,
    app: Running,
    address: String,
    sessions: Namespace,
}

impl Site {
    async fn open() -> Self {
        let server = Server::start();
        // It keeps its sessions where it has its deadlines.
        let own = "~user_session:* ~data_of:user_session:* +psetex +getex +pttl +hincrby";
        let url = server.url_with(&Rights::documented().and(own));
        let mut command = example("session_prompts");
        command.args(["--store", &url, "--listen", "127.0.0.1:0", "--ttl", "20s", "--remind", "19500ms"]);
        let mut app = Running::start(command);
        let address = app.says("listening on http://").replace("listening on http://", "");
        let sessions = Forewarn::connect(&url).await.unwrap().namespace("session");
        Self { server, app, address, sessions }
    }

    /// What the sessions have in Redis.
    fn keys(&self) -> Vec<String> {
        self.server.blocking_connection().keys("*user_session:*").unwrap()
    }

    /// The key of the only session.
    fn session(&self) -> String {
        self.keys().into_iter().find(|key| key.starts_with("user_session:")).unwrap()
    }

    /// Has the deadline of the session pass now.
    async fn end_deadline(&self, key: &str) {
        self.sessions.renew_in(key, Duration::from_millis(1)).await.unwrap();
    }

    /// Has the session end now.
    async fn end_session(&self, key: &str) {
        let _: bool = self.server.blocking_connection().pexpire(key, 1).unwrap();
        self.end_deadline(key).await;
    }
}

#[tokio::test]
async fn a_user_is_asked_stays_is_asked_again_and_is_logged_out() {
    let mut site = Site::open().await;
    let mut browser = Browser::new(&site.address);
    assert!(browser.get("/").body.contains("action=\"/login\""));
    assert_eq!(browser.post("/login", "user=%3Cb%3EWang").status, 303);
    let page = browser.get("/").body;
    assert!(page.contains("Hello &lt;b&gt;Wang. This is visit 1"), "{page}");

    let mut events = browser.listen();
    assert_eq!(events.next().as_deref(), Some("reminder"));
    assert_eq!(browser.post("/stay", "").status, 204);
    assert_eq!(events.next().as_deref(), Some("reminder"));
    // A page that is opened now was not there when that was told.
    assert_eq!(browser.listen().next().as_deref(), Some("reminder"));
    site.end_session(&site.session()).await;
    assert_eq!(events.next().as_deref(), Some("ended"));

    assert_eq!(site.keys(), [""; 0]);
    assert_eq!(browser.post("/stay", "").status, 401);
    assert!(browser.get("/").body.contains("action=\"/login\""));
    site.app.says("<b>Wang is logged out");
}

#[tokio::test]
async fn who_logs_out_is_not_asked_any_more() {
    let site = Site::open().await;
    let (mut one, mut other) = (Browser::new(&site.address), Browser::new(&site.address));
    one.post("/login", "user=Li");
    one.get("/");
    let mut events = one.listen();
    assert_eq!(events.next().as_deref(), Some("reminder"));
    let key = site.session();
    assert_eq!(one.post("/logout", "").status, 303);
    assert_eq!(site.keys(), [""; 0]);
    assert_eq!(site.sessions.show(&*key).await.unwrap(), None);
    // What comes later is for somebody else.
    other.post("/login", "user=Zhao");
    assert_eq!(other.listen().next().as_deref(), Some("reminder"));
    // The page of the first one is still open; that does not hold up the end.
    site.app.signal("INT");
    let (code, lines) = site.app.end();
    assert_eq!(code, 0, "{lines:#?}");
    assert_eq!(events.next(), None);
    let told = lines.iter().filter(|line| line.contains("Li will be logged out")).count();
    assert_eq!((told, lines.contains(&"Li is logged out".to_owned())), (1, false), "{lines:#?}");
}

#[tokio::test]
async fn a_session_that_its_key_outlives_is_not_cleaned_up() {
    let mut site = Site::open().await;
    let mut browser = Browser::new(&site.address);
    browser.post("/login", "user=Sun");
    browser.get("/");
    let key = site.session();
    // As if the application had died between prolonging the key and telling so.
    let deadline = async || site.sessions.show(&*key).await.unwrap().and_then(|deadline| deadline.expires_at_ms);
    site.end_deadline(&key).await;
    let ended_at_ms = site.sessions.store().now().await.unwrap();
    eventually("a new deadline", async || deadline().await.filter(|at_ms| *at_ms > ended_at_ms + 10_000)).await;
    assert_eq!(site.keys().len(), 2);
    site.end_session(&key).await;
    site.app.says("Sun is logged out");
    assert_eq!(site.keys(), [""; 0]);
}
