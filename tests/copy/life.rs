//! A namespace in the middle of its life, with something of everything; and what it says from then on.

use std::time::Duration;

use forewarn::model::{Class, Failure, OnRearm, Settings};
use forewarn::store::{Change, Claim, Failing, ParkedQuery, Shelf, Verdict};

use crate::stage::{MINUTE, World, id, name, ns, said};

/// The routes of the namespace.
pub(crate) const ROUTES: [&str; 2] = ["main", "audit"];
/// Bytes that are no text, and all that JSON has to escape.
pub(crate) const ODD: &[u8] = b"a:b \"\\\n\x00\x7F\xFF";

/// How a namespace comes to be.
pub(crate) async fn configure(world: &World, settings: Settings) {
    let mut change = Change::settings(settings);
    change.routes = ROUTES.iter().map(|text| text.parse().unwrap()).collect();
    world.store.configure(&ns(), &change).await.unwrap();
}

pub(crate) fn settings(shards: u16) -> Settings {
    let lead = |text: &str| text.parse().unwrap();
    Settings::default().remind(lead("10m")).remind(lead("1m")).grace(Duration::from_secs(5)).shards(shards)
}

fn failing(claim: &Claim, verdict: Verdict) -> Failing {
    Failing {
        token: claim.token.clone(),
        verdict,
        failure: Failure::new(Class::Timeout, "no answer \"at all\"\n").at_stage("verify"),
        max_failures: 8,
        due_at_ms: claim.due_at_ms,
        on_set: claim.on_set,
    }
}

/// Fails or acks what was claimed, by the first letter of its id: `d` is given up, `v` wants a person, `w` waits for another
/// try, `l` stays leased.
async fn settle(world: &World, route: &str, claims: &[Claim]) {
    for claim in claims {
        let verdict = match claim.notice.id.as_bytes()[0] {
            b'd' => Verdict::Dead,
            b'v' => Verdict::Review,
            b'w' => Verdict::RetryAfter(Duration::from_secs(100)),
            b'l' => continue,
            _ => {
                world.ack(route, std::slice::from_ref(claim)).await;
                continue;
            }
        };
        world.store.fail(&ns(), &name(route), &[failing(claim, verdict)]).await.unwrap();
    }
}

async fn work(world: &World) {
    for route in ROUTES {
        let claims = world.claim(route).await;
        settle(world, route, &claims).await;
    }
}

/// Leads the namespace to an instant at which there is something of everything.
pub(crate) async fn live(world: &World, shards: u16, on_rearm: OnRearm) {
    let mut settings = settings(shards);
    settings.on_rearm = on_rearm;
    configure(world, settings).await;
    let payload = Some(ODD);
    work(world).await;
    // Reminders and cleanups of every fate; both leads are still to come for those of the first row.
    for letter in ["a", "d", "v", "w", "l"] {
        for number in 0..3 {
            world.track(format!("{letter}{number}"), 11 * MINUTE + number * 250, payload).await;
            world.track(format!("{letter}-gone{number}"), 12 * MINUTE - number * 250, None).await;
        }
    }
    world.track(ODD, 20 * MINUTE, payload).await;
    world.track("far", 100_000 * MINUTE, None).await;
    world.track("recurs", 11 * MINUTE, payload).await;
    world.recur("recurs", "300000").await;
    world.track("w-recurs", 11 * MINUTE, payload).await;
    world.recur("w-recurs", "300000").await;
    world.track("cron", 12 * MINUTE, None).await;
    world.recur("cron", "cron:*/7 * * * *").await;
    for minute in 1..=2 {
        world.at(minute * MINUTE + 10_000);
        work(world).await;
    }
    // The life of these ends: their cleanups wait, are leased, given up or still to be swept.
    world.store.expire(&ns(), &["l-gone0", "w-gone0", "d-gone0", "a-gone0"].map(id)).await.unwrap();
    work(world).await;
    world.at(12 * MINUTE + 30_000);
    work(world).await;
    // Since the last sweep: silent for the longer lead, although its sweep is still to meet it.
    world.at(12 * MINUTE + 34_000);
    for (text, left) in [("silent", 10 * MINUTE - 1000), ("inside", 9 * MINUTE), ("near", 40_000), ("l-near", 70_000)] {
        world.track(text, 12 * MINUTE + 34_000 + left, payload).await;
    }
    // From outside to inside: speaks at once, and not again for a while.
    world.track("crosses", 60 * MINUTE, payload).await;
    world.renew("crosses", 15 * MINUTE).await;
    world.track("l-crosses", 60 * MINUTE, payload).await;
    world.renew("l-crosses", 15 * MINUTE).await;
    // A crowd at one instant, a part of which is swept; on one of the routes nothing is handed out.
    for number in 0..40 {
        world.track(format!("crowd{number}"), 22 * MINUTE + 40_000, None).await;
    }
    world.at(12 * MINUTE + 41_000);
    let claims = world.claim_some("main", 17).await;
    settle(world, "main", &claims).await;
    world.pause(Some("audit"), true, false, true).await;
}

/// The step of a story at which the reminders of one of its routes are resumed.
const RESUMES: i64 = 20;

/// What a namespace says from now on, each line with its time, route, attempt and all that a claim tells.
///
/// `leased`: these were leased when it began. Where that counts as a lapse once the lease ends, the line is told as if not.
pub(crate) async fn story(world: &World, leased: &[(String, String)], counts_lapses: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let begin = world.now();
    for step in 0..240 {
        world.at(begin + step * 5000);
        if step == RESUMES {
            world.pause(Some("audit"), true, false, false).await;
        }
        set(world, step).await;
        // Nobody asks for what is paused: when that was due is told differently by the stores.
        let asking = ROUTES.iter().filter(|route| **route == "main" || step >= RESUMES);
        for route in asking {
            let claims = world.claim(route).await;
            let mut told: Vec<String> =
                claims.iter().map(|claim| tell(world, route, claim, leased, counts_lapses)).collect();
            told.sort();
            lines.extend(told);
            let (again, done): (Vec<Claim>, Vec<Claim>) =
                claims.into_iter().partition(|claim| claim.notice.id.as_bytes()[0] == b'w' && claim.failures < 3);
            let again: Vec<Failing> =
                again.iter().map(|claim| failing(claim, Verdict::RetryAfter(Duration::from_secs(17)))).collect();
            world.store.fail(&ns(), &name(route), &again).await.unwrap();
            world.ack(route, &done).await;
        }
    }
    lines
}

/// What happens to deadlines during a story: the marks that came along decide what is said of it.
async fn set(world: &World, step: i64) {
    match step {
        // Out and in again, within the time in which no further crossing speaks.
        3 => world.renew("crosses", world.now() + 60 * MINUTE).await,
        5 => world.renew("crosses", world.now() + 9 * MINUTE).await,
        // Silent for the longer lead until it has been outside.
        6 => world.renew("silent", world.now() + 10 * MINUTE + 3000).await,
        // Was handed its reminder, or not, for the old expiry.
        8 => world.renew("inside", world.now() + 8 * MINUTE).await,
        9 => world.renew("crowd7", world.now() + 9 * MINUTE).await,
        10 => world.renew("l-near", world.now() + 55_000).await,
        11 => {
            world.store.remove(&ns(), &["w-gone1", "l-gone1", "crowd8"].map(id)).await.unwrap();
        }
        12 => world.track("w-gone2", world.now() + 2 * MINUTE, None).await,
        _ => {}
    }
}

fn tell(world: &World, route: &str, claim: &Claim, leased: &[(String, String)], counts_lapses: bool) -> String {
    let Claim { attempt, failures, due_at_ms, on_set, .. } = claim;
    let was_leased = leased.contains(&(route.to_owned(), said(claim)));
    let attempt = attempt - u32::from(was_leased && counts_lapses);
    let payload = claim.payload.as_ref().map(|bytes| bytes.escape_ascii().to_string());
    format!(
        "{:>7} {route} {} of {} attempt {attempt} after {failures}, due {due_at_ms}, on set {on_set}, {payload:?}",
        world.now(),
        said(claim),
        claim.notice.expires_at_ms
    )
}

/// What is parked: all of it, in an order that is the same everywhere.
pub(crate) async fn parked(world: &World) -> Vec<String> {
    let mut lines = Vec::new();
    for shelf in [Shelf::Dead, Shelf::Review] {
        for parked in world.store.parked(&ns(), shelf, &ParkedQuery::default()).await.unwrap().entries {
            let (route, notice, at) = (parked.route, parked.notice, parked.parked_at_ms);
            lines.push(format!("{shelf:?} {route} {notice:?} {at} {:?} {:?}", parked.payload, parked.failures));
        }
    }
    lines.sort();
    lines
}

/// What is leased now, by route and in words.
pub(crate) async fn leased(world: &World) -> Vec<(String, String)> {
    let mut leased = Vec::new();
    for listed in
        world.store.list(&ns(), &forewarn::store::ListQuery { limit: 10_000, ..Default::default() }).await.unwrap()
    {
        leased.extend(leased_of(world, &listed.id).await);
    }
    for number in 0..3 {
        for text in [format!("l{number}"), format!("l-gone{number}")] {
            leased.extend(leased_of(world, &id(text)).await);
        }
    }
    leased.sort();
    leased.dedup();
    leased
}

async fn leased_of(world: &World, id: &forewarn::model::Id) -> Vec<(String, String)> {
    let Some(view) = world.store.show(&ns(), id).await.unwrap() else { return Vec::new() };
    let held = view.deliveries.into_iter().filter(|delivery| delivery.state == forewarn::store::DeliveryState::Leased);
    held.map(|delivery| (delivery.route.to_string(), crate::stage::words(&delivery.notice))).collect()
}
