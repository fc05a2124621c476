//! Spans of any length: nothing overflows, and the thread that serves all lives on.

use std::time::Duration;

use forewarn::Settings;
use forewarn::model::{Class, ExpiresAt, Failure, Mode};
use forewarn::store::sqlite::SqliteOptions;
use forewarn::store::{Change, Failing, ListQuery, Settled, Store as _, Verdict};

use crate::stage::{PAST, Place, name, track};

#[tokio::test]
async fn the_longest_spans_of_all_are_borne() {
    let place = Place::new();
    let store = place.open_with(SqliteOptions { max_poll: Duration::MAX, ..SqliteOptions::default() }).await;
    let (session, main) = (name("session"), name("main"));
    let mut settings = Settings::default().grace(Duration::MAX).lease(Duration::MAX);
    settings.clock_tolerance = Duration::MAX;
    settings.min_repeat = Some(Duration::MAX);
    settings.remind = vec!["999y".parse().unwrap(), "1ms".parse().unwrap()];
    store.configure(&session, &Change::settings(settings.clone())).await.unwrap();
    store.preview(&session, &Change::settings(settings.clone())).await.unwrap();
    let entries = [track("past", PAST), track("last", ExpiresAt::MAX_MS)];
    store.track(&session, Mode::Upsert, &entries).await.unwrap();
    store.track(&session, Mode::Upsert, &[track("last", ExpiresAt::MAX_MS - 1)]).await.unwrap();
    store.claim(&session, &main, 10, Duration::MAX).await.unwrap();
    store.list(&session, &ListQuery { within: Some(Duration::MAX), ..ListQuery::default() }).await.unwrap();

    settings.grace = Duration::ZERO;
    store.configure(&session, &Change::settings(settings)).await.unwrap();
    let mut claims = store.claim(&session, &main, 10, Duration::MAX).await.unwrap().claims;
    claims.retain(|claim| claim.notice.id.as_text() == Some("past"));
    let claim = claims.pop().unwrap();
    let extended = store.extend(&session, &main, std::slice::from_ref(&claim.token), Duration::MAX).await.unwrap();
    assert_eq!(extended, [Settled::Settled]);
    let failing = Failing {
        token: claim.token,
        verdict: Verdict::RetryAfter(Duration::MAX),
        failure: Failure::new(Class::Timeout, "never again"),
        max_failures: 9,
        due_at_ms: claim.due_at_ms,
        on_set: false,
    };
    let retry = store.fail(&session, &main, &[failing]).await.unwrap();
    assert!(matches!(retry[..], [Settled::Retry { .. }]), "{retry:?}");
    assert_eq!(store.stats(&session).await.unwrap().routes[0].pending, 1);
}
