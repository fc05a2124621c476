//! Random histories: whatever happens, the store holds and answers what the model says (I1 to I8, I10, I12).
//!
//! `FOREWARN_HISTORIES` sets how many are played in all.

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRunner};

use crate::ground::Ground;
use crate::harness::{Kind, Rights, Server, servers};
use crate::operation::{Case, Mix, Op, histories};
use crate::world::{Bench, play};

/// How many histories are played by default, all tests together.
const HISTORIES: u32 = 3_000;

pub(crate) fn share(percent: u32) -> u32 {
    let all = match std::env::var("FOREWARN_HISTORIES") {
        Ok(text) => text.parse().expect("FOREWARN_HISTORIES is a number"),
        Err(_) => HISTORIES,
    };
    (all * percent / 100).max(1)
}

/// Plays `count` histories of a kind; fails with the shortest that goes wrong, operation by operation.
pub(crate) fn check<'a>(ground: impl Into<Ground<'a>>, mix: Mix, small_steps: bool, count: u32) {
    let ground = ground.into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bench = std::cell::RefCell::new(runtime.block_on(Bench::with_rights(ground, rights(mix).as_ref())));
    let config = Config {
        cases: count,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        max_shrink_time: 30_000,
        rng_algorithm: RngAlgorithm::XorShift,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&histories(mix), |(case, ops)| {
        let played = runtime.block_on(play(&mut bench.borrow_mut(), &case, &ops, small_steps));
        played.map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(_, (case, mut ops))) => {
            let fails = |ops: &[Op]| runtime.block_on(play(&mut bench.borrow_mut(), &case, ops, small_steps)).err();
            // The runner shrinks what it drew; leaving out single operations often goes further.
            let mut at = ops.len();
            while at > 0 {
                at -= 1;
                let mut fewer = ops.clone();
                fewer.remove(at);
                if fails(&fewer).is_some() {
                    ops = fewer;
                }
            }
            let reason = fails(&ops).unwrap_or_default();
            panic!("on {}: {reason}\nto play it again:\n{}", ground, listing(&case, &ops))
        }
        Err(other) => panic!("on {}: {other}", ground),
    }
}

/// Where the ids are keys, more than the store's own.
fn rights(mix: Mix) -> Option<Rights> {
    let rights = mix.keys.then(Rights::documented)?;
    Some(if mix.manages { rights.with_managed_keys("*") } else { rights.with_keys("*") })
}

fn listing(case: &Case, ops: &[Op]) -> String {
    let ops: Vec<String> = ops.iter().map(|op| format!("    Op::{op:?},")).collect();
    format!("{case:?}\n[\n{}\n]", ops.join("\n"))
}

#[test]
fn any_history_of_scripted_calls_leaves_what_the_model_says() {
    check(Server::shared(Kind::Redis), Mix::default(), false, share(30));
}

#[test]
fn any_history_with_raw_writers_leaves_what_the_model_says() {
    let mix = Mix { raw: true, ..Mix::default() };
    check(Server::shared(Kind::Redis), mix, false, share(25));
}

#[test]
fn any_history_with_changing_settings_routes_and_pauses_leaves_what_the_model_says() {
    let mix = Mix { raw: true, changes: true, ..Mix::default() };
    check(Server::shared(Kind::Redis), mix, false, share(20));
}

#[test]
fn a_clock_that_steps_back_within_the_tolerance_repeats_and_loses_nothing() {
    let mix = Mix { back: true, ..Mix::default() };
    check(Server::shared(Kind::Redis), mix, true, share(10));
}

#[test]
fn a_clock_that_steps_back_beyond_the_tolerance_loses_nothing() {
    let mix = Mix { back: true, ..Mix::default() };
    check(Server::shared(Kind::Redis), mix, false, share(5));
}

#[test]
fn raw_scores_that_are_no_expiry_in_whole_milliseconds_disturb_nothing() {
    let mix = Mix { raw: true, odd: true, ..Mix::default() };
    check(Server::shared(Kind::Redis), mix, false, share(5));
}

#[test]
fn any_history_leaves_the_same_on_every_server_at_hand() {
    let mix = Mix { raw: true, changes: true, ..Mix::default() };
    for kind in servers().into_iter().filter(|kind| *kind != Kind::Redis) {
        check(Server::shared(kind), mix, false, share(5));
    }
}

#[test]
fn any_history_leaves_the_same_in_a_file() {
    let mix = Mix { raw: true, changes: true, ..Mix::default() };
    check(Ground::File, mix, false, share(10));
    check(Ground::File, Mix { back: true, ..Mix::default() }, true, share(5));
}

#[test]
fn any_history_leaves_the_same_through_a_daemon() {
    let mix = Mix { raw: true, changes: true, ..Mix::default() };
    check(Ground::Daemon(Server::shared(Kind::Redis)), mix, false, share(1));
}
