//! Histories of keys that once went wrong, as the runner shrank them.

use forewarn::model::Mode;

use crate::harness::{Rights, Server, servers};
use crate::operation::{Case, Op, Verb};
use crate::words::Keyed;
use crate::world::{Bench, play};

/// Plays a history on every server at hand, on one of its own: the ids are its keys.
async fn replay(case: Case, ops: &[Op]) {
    for kind in servers() {
        let server = Server::start_with(kind, &[]);
        let rights = Rights::documented();
        let manages = case.keyed.is_some_and(|keyed| keyed.manages);
        let rights = if manages { rights.with_managed_keys("*") } else { rights.with_keys("*") };
        let mut bench = Bench::with_rights(&server, Some(&rights)).await;
        if let Err(problem) = play(&mut bench, &case, ops, false).await {
            panic!("on {kind}: {problem}");
        }
    }
}

fn keys() -> Case {
    Case { keyed: Some(Keyed { manages: true, drops: false, has_pattern: false }), ..Case::default() }
}

fn two_routes() -> Case {
    Case { routes: vec![(true, true, None), (true, true, None)], ..keys() }
}

fn claim(route: u8, limit: u32) -> Op {
    Op::Claim { route, limit, lease: 1 }
}

fn forward(ms: i64) -> Op {
    Op::Forward { ms }
}

fn track(id: u8, ttl: i64) -> Op {
    Op::Track { mode: Mode::Upsert, id, ttl, payload: None }
}

#[tokio::test]
async fn a_life_that_ends_without_a_notice_voids_what_an_earlier_one_left_open() {
    let ops =
        [Op::RawSet { id: 0, ttl: 8 }, claim(0, 1), Op::RawSet { id: 0, ttl: 1 }, Op::KeySet { id: 0, ttl: None }];
    replay(keys(), &ops).await;
}

#[tokio::test]
async fn at_the_very_instant_it_expires_a_key_may_still_be_moved_and_renewed() {
    replay(keys(), &[Op::KeyArm { id: 1, ttl: 0 }, track(1, 1)]).await;
    let renew = Op::Renew { id: 2, ttl: 1, payload: None };
    replay(keys(), &[Op::KeyArm { id: 2, ttl: 1 }, track(2, 0), renew]).await;
}

#[tokio::test]
async fn a_cleanup_of_a_vanished_key_goes_on_once_another_route_was_handed_it() {
    let ops = [Op::RawSet { id: 6, ttl: 1 }, claim(0, 1), forward(1000), claim(0, 1), Op::KeyArm { id: 6, ttl: 1 }];
    replay(Case { delivers: true, ..two_routes() }, &ops).await;
}

#[tokio::test]
async fn what_moves_up_in_a_queue_behind_a_void_notice_is_looked_at_before_it_goes_out() {
    let back = |id| Op::KeySet { id, ttl: Some(30) };
    let dead = [Op::KeyArm { id: 0, ttl: 1 }, Op::KeyArm { id: 1, ttl: 1 }, forward(2), claim(0, 100)];
    let ops = [&dead[..], &[back(0), back(1), claim(1, 1)]].concat();
    replay(two_routes(), &ops).await;
}

#[tokio::test]
async fn a_clock_that_stepped_back_is_noticed_by_whoever_resyncs_a_key() {
    let slide = |ttl| Op::KeySet { id: 0, ttl: Some(ttl) };
    let before = [Op::KeyArm { id: 0, ttl: 9 }, claim(0, 1), Op::Back { ms: 20 }, slide(40)];
    for after in [Op::Expire { id: 0 }, Op::SettleAll { verb: Verb::Recheck }] {
        replay(keys(), &[&before[..], &[after]].concat()).await;
    }
}
