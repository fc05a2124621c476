//! Random histories of key-backed ids: whatever their owner, the server and the workers do, I11 and B1 to B8 hold.
//!
//! Each test has a server of its own, because the ids are its keys.

use crate::harness::{Kind, Server, servers};
use crate::histories::{check, share};
use crate::operation::Mix;

const KEYS: Mix = Mix { back: false, changes: false, raw: true, odd: false, keys: true, manages: false };

#[test]
fn any_history_of_keys_leaves_what_the_model_says() {
    check(&Server::start(), KEYS, false, share(10));
}

#[test]
fn any_history_of_managed_keys_leaves_what_the_model_says() {
    check(&Server::start(), Mix { manages: true, ..KEYS }, false, share(12));
}

#[test]
fn any_history_of_keys_with_changing_settings_routes_and_pauses_leaves_what_the_model_says() {
    check(&Server::start(), Mix { manages: true, changes: true, ..KEYS }, false, share(8));
}

#[test]
fn a_clock_that_steps_back_loses_nothing_of_a_key() {
    let server = Server::start();
    let mix = Mix { manages: true, back: true, ..KEYS };
    check(&server, mix, true, share(4));
    check(&server, mix, false, share(2));
}

#[test]
fn any_history_of_keys_leaves_the_same_on_every_server_at_hand() {
    let mix = Mix { manages: true, changes: true, ..KEYS };
    for kind in servers().into_iter().filter(|kind| *kind != Kind::Redis) {
        check(&Server::start_with(kind, &[]), mix, false, share(3));
    }
}
