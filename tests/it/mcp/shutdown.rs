//! The end of a server: how it is closed, and what its own end does to the calls.

use std::thread;
use std::time::{Duration, Instant};

use landline::mcp::{Client, Era, Options};
use landline::{Cause, Delivery, Exit, Step};
use serde_json::{Value, json};

use super::server::legacy;
use crate::process::{AT_ONCE, alive, peer, send_signal};
use crate::support::{HANG, eventually, guarded};

/// A client of the helper program in a role.
fn client(role: &str, args: &[&str], transport: landline::Options) -> Client {
    let options = Options::new("test", "1").era(Era::Legacy);
    let client = options.transport(transport).spawn(&peer(role, args));
    client.unwrap()
}

#[test]
fn c110_stdin_is_closed_first_then_come_sigterm_and_sigkill() {
    let short = Duration::from_millis(200);
    let scratch = crate::process::Scratch::new();
    let notes = scratch.path("notes");
    let notes = notes.to_str().unwrap();
    let waits = |stdin, term| landline::Options::new().close_waits(stdin, term);

    let obeys = client("minds_sigterm", &[notes], waits(HANG, HANG));
    let pid = obeys.peer().pid().unwrap();
    let ended = obeys.close();
    assert_eq!(
        (ended.exit, ended.step),
        (Some(Exit::Code(0)), Step::StdinClosed)
    );
    assert!(!alive(pid));
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "", "no signal");

    let needs_sigterm = client("waits_for_sigterm", &[notes], waits(short, HANG));
    let ended = needs_sigterm.close();
    assert_eq!(
        (ended.exit, ended.step),
        (Some(Exit::Code(7)), Step::Terminated)
    );
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "SIGTERM\n");

    let start = Instant::now();
    let ignores_all = client("ignores_all", &[], waits(short, short));
    let pid = ignores_all.peer().pid().unwrap();
    let ended = ignores_all.close();
    assert_eq!(
        (ended.exit, ended.step),
        (Some(Exit::Signal(9)), Step::Killed)
    );
    assert!(start.elapsed() < AT_ONCE);
    assert!(!alive(pid));
}

#[test]
fn c110_a_dropped_client_ends_its_server() {
    let dropped = client("ignores_all", &[], landline::Options::new());
    let pid = dropped.peer().pid().unwrap();
    guarded(move || drop(dropped));
    assert!(!alive(pid));
}

#[test]
fn c111_the_end_of_the_process_fails_every_call_at_once() {
    let server = client("serve", &[], landline::Options::new());
    let pid = server.peer().pid().unwrap();
    let start = Instant::now();
    let errors = thread::scope(|scope| {
        let hold = || server.request::<Value>("hold", ()).unwrap_err();
        let holding = [scope.spawn(hold), scope.spawn(hold), scope.spawn(hold)];
        let last_words = json!({"code": 3, "stderr": "out of disk"});
        let exiting = server.request::<Value>("exit", last_words).unwrap_err();
        let held = holding.map(|call| call.join().unwrap());
        held.into_iter().chain([exiting]).collect::<Vec<_>>()
    });
    assert!(start.elapsed() < AT_ONCE, "no limit had to run out");
    for error in &errors {
        let landline::mcp::Error::Call(error) = error else {
            panic!("{error}")
        };
        let why = error.closed().unwrap();
        assert!(matches!(why.cause, Cause::Exited(Exit::Code(3))), "{why}");
        assert!(why.to_string().contains("out of disk"), "{why}");
    }
    assert_eq!(errors.len(), 4);
    assert_eq!(server.close().step, Step::AlreadyEnded);
    assert!(!alive(pid));
}

#[test]
fn c111_three_callers_in_flight_learn_of_the_end_of_the_output() {
    let options = Options::new("test", "1");
    let (client, mut script) = legacy(&options, "2025-11-25", json!({"tools": {}}));
    let errors = thread::scope(|scope| {
        let call = || client.call_tool("t", ()).unwrap_err();
        let calling = [scope.spawn(call), scope.spawn(call), scope.spawn(call)];
        for _ in 0..3 {
            assert_eq!(script.recv()["method"], "tools/call");
        }
        drop(script);
        calling.map(|call| call.join().unwrap())
    });
    for error in errors {
        assert!(error.is_closed(), "{error}");
        assert_eq!(error.delivery(), Delivery::MaybeRun);
    }
    let later = client.call_tool("t", ()).unwrap_err();
    assert!(later.is_closed(), "{later}");
    assert_eq!(later.delivery(), Delivery::NotSent);
}

#[test]
fn c114_a_grandchild_that_holds_the_output_does_not_hold_up_the_close() {
    for session in [false, true] {
        let waits = landline::Options::new().close_waits(AT_ONCE, AT_ONCE);
        let server = client("serve", &[], waits);
        let begotten = server.request::<u32>("beget", json!({"session": session}));
        let grandchild = begotten.unwrap();
        assert!(alive(grandchild));
        let start = Instant::now();
        let ended = guarded(move || server.close());
        assert!(start.elapsed() < AT_ONCE);
        assert_eq!(
            (ended.exit, ended.step),
            (Some(Exit::Code(0)), Step::StdinClosed)
        );
        // One in the group goes with it; one that left it is told of.
        assert_eq!(ended.pipes_held, session);
        if session {
            assert!(alive(grandchild));
            send_signal(grandchild, libc::SIGKILL);
        }
        eventually("it is gone", || !alive(grandchild));
    }
}
