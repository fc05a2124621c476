//! Histories that once went wrong, as the runner shrank them.

use forewarn::model::{Late, Mode};

use crate::ground::{Ground, grounds};
use crate::model::Place;
use crate::operation::{Case, Op, Verb};
use crate::world::{Bench, play};

/// Plays a history on every store at hand.
async fn replay(case: Case, ops: &[Op]) {
    for ground in grounds() {
        replay_on(ground, &case, ops).await;
    }
}

/// Plays a history on one.
pub(crate) async fn replay_on(ground: Ground<'_>, case: &Case, ops: &[Op]) {
    let mut bench = Bench::open(ground).await;
    let steps_are_small = ops.iter().any(|op| matches!(op, Op::Back { .. }));
    if let Err(problem) = play(&mut bench, case, ops, steps_are_small).await {
        panic!("on {ground}: {problem}");
    }
}

pub(crate) fn track(id: u8, ttl: i64) -> Op {
    Op::Track { mode: Mode::Upsert, id, ttl, payload: None }
}

pub(crate) fn claim(limit: u32) -> Op {
    Op::Claim { route: 0, limit, lease: 1 }
}

#[tokio::test]
async fn a_recurring_deadline_set_inside_a_lead_is_silent_though_no_sweep_has_moved() {
    let ops = [track(1, 1), Op::Every { id: 1, period: 1 }, claim(1), Op::Forward { ms: 4 }];
    replay(Case::default(), &ops).await;
}

#[tokio::test]
async fn a_recurring_deadline_under_fire_speaks_right_after_its_cleanup() {
    let ops = [track(2, 1), Op::Forward { ms: 6 }, Op::Every { id: 2, period: 1 }];
    replay(Case { late: Late::Fire, ..Case::default() }, &ops).await;
}

#[tokio::test]
async fn two_lives_with_the_same_expiry_are_one_notice_and_one_claim_hands_it_out_once() {
    let ops = [track(2, 4), Op::Forward { ms: 4 }, track(2, 1), track(2, 0)];
    replay(Case { delivers: true, ..Case::default() }, &ops).await;
}

#[tokio::test]
async fn a_notice_under_a_lease_is_not_handed_out_for_another_life_with_the_same_expiry() {
    let ops = [track(1, 17), Op::Forward { ms: 18 }, claim(1), track(1, -1)];
    replay(Case { delivers: true, ..Case::default() }, &ops).await;
}

#[tokio::test]
async fn a_notice_in_flight_stays_as_it_is_when_its_dead_letter_comes_back() {
    let requeue = Op::Requeue { place: Place::Dead, pick: 0 };
    let dead = Op::SettleAll { verb: Verb::Dead };
    let ops = [track(0, 0), claim(1), dead, track(0, 5), track(0, 0), Op::Forward { ms: 1 }, claim(1), requeue];
    replay(Case { delivers: true, ..Case::default() }, &ops).await;
}

#[tokio::test]
async fn the_next_due_instant_counts_what_is_left_of_a_tie_when_the_clock_steps_back() {
    let ops = [track(2, 4), track(3, 4), claim(1), Op::Back { ms: 1 }];
    replay(Case::default(), &ops).await;
}

#[tokio::test]
async fn a_life_moved_to_an_earlier_instant_wakes_a_worker_that_sleeps_beyond_it() {
    let ops = [claim(1), track(8, 33), Op::Renew { id: 8, ttl: 16, payload: None }];
    replay(Case::default(), &ops).await;
}

#[tokio::test]
async fn an_id_in_another_shard_does_not_inherit_the_payload_of_an_open_cleanup() {
    let paid = Op::Track { mode: Mode::Upsert, id: 1, ttl: 1, payload: Some(0) };
    let replace = Op::Replace { mode: Mode::Upsert, new: 2, old: 1, ttl: 1, payload: None };
    let ops = [paid, Op::Forward { ms: 1 }, track(1, 1), replace];
    replay(Case { delivers: true, shards: 3, ..Case::default() }, &ops).await;
}

#[tokio::test]
async fn what_a_paused_route_puts_off_comes_after_the_pause() {
    let pause = |paused| Op::Pause { route: Some(0), reminders: true, cleanups: true, paused };
    let ops = [pause(true), Op::RawSet { id: 0, ttl: 1 }, claim(1), claim(1), pause(false), claim(1)];
    replay(Case::default(), &ops).await;
}

#[tokio::test]
async fn a_claim_that_gives_a_notice_up_may_hand_it_out_for_another_life() {
    let life = Op::RawSet { id: 1, ttl: 0 };
    let ops = [life, claim(1), Op::Forward { ms: 1 }, claim(1), Op::Forward { ms: 1 }, Op::RawSet { id: 1, ttl: -2 }];
    replay(Case { delivers: true, max_deliveries: 2, ..Case::default() }, &ops).await;
}
