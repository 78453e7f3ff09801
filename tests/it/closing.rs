//! The closing ladder, from every side: what each step ends, who may climb it, and what is left
//! behind.

use std::fs;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use landline::{Cause, ChildSpec, Connection, Delivery, Exit, Options, Step};
use serde_json::{Value, json};

use crate::process::{AT_ONCE, PEER, Scratch, alive, host, peer, send_signal, serve};
use crate::support::{HANG, eventually, guarded};

/// A server that has shown that it is ready: its handlers are installed.
fn ready(options: &Options, spec: &ChildSpec) -> Connection {
    let server = options.spawn(spec).unwrap();
    server.request::<Value>("echo", ()).unwrap();
    server
}

/// Waits that only a hang reaches.
fn patient() -> Options {
    Options::new().close_waits(HANG, HANG)
}

const SHORT: Duration = Duration::from_millis(200);

/// A file for `minds_sigterm` to note signals in.
fn minds(role: &str, scratch: &Scratch) -> ChildSpec {
    peer(role, [scratch.path("notes")])
}

fn notes(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.path("notes")).unwrap()
}

#[test]
fn p14_a_server_that_obeys_the_end_of_its_input_gets_no_signal() {
    let scratch = Scratch::new();
    let server = ready(&patient(), &minds("minds_sigterm", &scratch));
    let pid = server.pid().unwrap();
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(0)), Step::StdinClosed, false)
    );
    assert_eq!(end.to_string(), "exit code 0, stdin closed");
    assert_eq!(notes(&scratch), "");
    assert!(!alive(pid));
    let why = server.closed().unwrap();
    assert!(matches!(why.cause, Cause::ClosedHere), "{why}");
}

#[test]
fn p14_a_server_that_needs_sigterm_gets_it_and_its_time() {
    let scratch = Scratch::new();
    let options = Options::new().close_waits(SHORT, HANG);
    let server = ready(&options, &minds("waits_for_sigterm", &scratch));
    let start = Instant::now();
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(7)), Step::Terminated, false)
    );
    assert_eq!(end.to_string(), "exit code 7, SIGTERM");
    assert!(start.elapsed() >= SHORT);
    assert_eq!(notes(&scratch), "SIGTERM\n");
}

#[test]
fn p14_a_server_that_ignores_both_is_killed_in_time() {
    let options = Options::new().close_waits(SHORT, SHORT);
    let server = ready(&options, &peer::<&str>("ignores_all", []));
    let pid = server.pid().unwrap();
    let start = Instant::now();
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Signal(9)), Step::Killed, false)
    );
    assert_eq!(end.to_string(), "signal 9, SIGKILL");
    let took = start.elapsed();
    assert!((SHORT * 2..AT_ONCE).contains(&took), "{took:?}");
    assert!(!alive(pid));
}

#[test]
fn p14_the_default_waits_end_a_server_that_ignores_both_too() {
    let server = ready(&Options::new(), &peer::<&str>("ignores_all", []));
    let start = Instant::now();
    let end = server.close();
    assert_eq!((end.exit, end.step), (Some(Exit::Signal(9)), Step::Killed));
    let took = start.elapsed();
    assert!(
        (Duration::from_secs(4)..AT_ONCE).contains(&took),
        "{took:?}"
    );
}

#[test]
fn p11_waits_of_zero_kill_at_once() {
    let options = Options::new().close_waits(Duration::ZERO, Duration::ZERO);
    let server = ready(&options, &peer::<&str>("ignores_all", []));
    let end = server.close();
    assert_eq!((end.exit, end.step), (Some(Exit::Signal(9)), Step::Killed));
}

#[test]
fn p11_waits_without_end_are_allowed() {
    let options = Options::new().close_waits(Duration::MAX, Duration::MAX);
    let server = ready(&options, &peer::<&str>("serve", []));
    let end = guarded(move || server.close());
    assert_eq!(
        (end.exit, end.step),
        (Some(Exit::Code(0)), Step::StdinClosed)
    );
}

/// Closes or drops on a thread of its own, and tells what comes of it.
fn elsewhere<T: Send + 'static>(end: impl FnOnce() -> T + Send + 'static) -> mpsc::Receiver<T> {
    let (tell, told) = mpsc::channel();
    // The test may have failed meanwhile.
    thread::spawn(move || drop(tell.send(end())));
    told
}

#[test]
fn p02_a_reason_for_the_close_is_told_to_every_caller() {
    let server = ready(&patient(), &peer::<&str>("serve", []));
    let held = server.start("hold", ()).unwrap();
    let end = server.close_because("it lies");
    assert_eq!(
        (end.exit, end.step),
        (Some(Exit::Code(0)), Step::StdinClosed)
    );
    let later = server.request::<Value>("echo", ()).unwrap_err();
    for error in [held.wait::<Value>().unwrap_err(), later] {
        let why = error.closed().unwrap();
        assert!(matches!(&why.cause, Cause::GivenUp(reason) if reason == "it lies"));
        let words = "the connection was closed on this side: it lies";
        assert_eq!(why.to_string(), words);
    }
    // The first cause is kept.
    assert_eq!(server.close_because("it is late").exit, Some(Exit::Code(0)));
    assert!(
        matches!(&server.closed().unwrap().cause, Cause::GivenUp(reason) if reason == "it lies")
    );
}

#[test]
fn p11_a_close_that_may_wait_for_ever_for_the_end_of_stdin_sends_no_signal() {
    let scratch = Scratch::new();
    let options = Options::new().close_waits(Duration::MAX, Duration::MAX);
    let server = ready(&options, &minds("waits_for_sigterm", &scratch));
    let peer = server.peer();
    let closed = elsewhere(move || peer.close());
    assert!(closed.recv_timeout(SHORT * 3).is_err());
    assert_eq!(notes(&scratch), "");
    send_signal(server.pid().unwrap(), libc::SIGTERM);
    let end = closed.recv_timeout(HANG).unwrap();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(7)), Step::StdinClosed, false)
    );
    assert_eq!(notes(&scratch), "SIGTERM\n", "there was none but ours");
}

#[test]
fn p11_a_close_that_may_wait_for_ever_after_sigterm_does_not_kill() {
    let scratch = Scratch::new();
    let script = r#"trap 'echo SIGTERM >> "$0"' TERM; echo ready; while :; do sleep 1; done"#;
    let spec = ChildSpec::from_argv(["sh", "-c", script])
        .unwrap()
        .with_arg(scratch.path("notes"))
        .unwrap();
    let options = Options::new().close_waits(Duration::ZERO, Duration::MAX);
    let server = options.spawn(&spec).unwrap();
    eventually("it is ready", || server.survived().stray_lines == 1);
    let peer = server.peer();
    let closed = elsewhere(move || peer.close());
    eventually("it has got SIGTERM", || scratch.path("notes").exists());
    assert!(closed.recv_timeout(SHORT * 3).is_err());
    send_signal(server.pid().unwrap(), libc::SIGKILL);
    let end = closed.recv_timeout(HANG).unwrap();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Signal(9)), Step::Terminated, false)
    );
    assert_eq!(notes(&scratch), "SIGTERM\n");
}

#[test]
fn p11_a_drop_waits_for_as_long_as_its_limits_say() {
    let scratch = Scratch::new();
    let options = Options::new().drop_waits(Duration::MAX, Duration::MAX);
    let server = ready(&options, &minds("waits_for_sigterm", &scratch));
    let pid = server.pid().unwrap();
    let dropped = elsewhere(move || drop(server));
    // More than twice the default.
    assert!(dropped.recv_timeout(SHORT * 3).is_err());
    assert_eq!(notes(&scratch), "");
    send_signal(pid, libc::SIGTERM);
    dropped.recv_timeout(HANG).unwrap();
    assert!(!alive(pid));
    assert_eq!(notes(&scratch), "SIGTERM\n", "there was none but ours");

    // The waits of a close are not those of a drop.
    let options = patient().drop_waits(Duration::ZERO, Duration::ZERO);
    let server = ready(&options, &peer::<&str>("ignores_all", []));
    let pid = server.pid().unwrap();
    elsewhere(move || drop(server))
        .recv_timeout(AT_ONCE)
        .unwrap();
    assert!(!alive(pid));
}

#[test]
fn p14_a_server_that_has_ended_is_reported_so() {
    let server = serve(&patient());
    server
        .request::<Value>("exit", json!({"code": 3}))
        .unwrap_err();
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(3)), Step::AlreadyEnded, false)
    );
    assert_eq!(end.to_string(), "exit code 3, already ended");
}

#[test]
fn p14_closing_again_gives_the_same_report() {
    let scratch = Scratch::new();
    let options = Options::new().close_waits(SHORT, HANG);
    let server = ready(&options, &minds("waits_for_sigterm", &scratch));
    let first = server.close();
    assert_eq!(server.close(), first);
    assert_eq!(server.peer().close(), first);
    drop(server);
    assert_eq!(notes(&scratch), "SIGTERM\n", "nothing is signalled twice");
}

#[test]
fn p14_closers_at_once_wait_for_the_first_and_get_its_report() {
    let options = Options::new().close_waits(SHORT, SHORT);
    let server = ready(&options, &peer::<&str>("ignores_all", []));
    let pid = server.pid().unwrap();
    let ends: Vec<_> = thread::scope(|scope| {
        let close = || {
            let end = server.close();
            assert!(!alive(pid), "a closer returned before the end");
            end
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(close)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    assert_eq!(ends[0].exit, Some(Exit::Signal(9)));
}

#[test]
fn p14_pending_calls_end_at_once_however_long_the_ladder_takes() {
    let server = ready(&patient(), &peer::<&str>("ignores_all", []));
    let held = server.start("hold", ()).unwrap();
    server.request::<Value>("echo", ()).unwrap();
    thread::scope(|scope| {
        let closing = scope.spawn(|| server.close());
        let error = held.wait::<Value>().unwrap_err();
        assert_eq!(error.delivery(), Delivery::MaybeRun);
        let why = error.closed().unwrap();
        assert!(matches!(why.cause, Cause::ClosedHere), "{why}");
        let later = server.request::<Value>("echo", ()).unwrap_err();
        assert_eq!(later.delivery(), Delivery::NotSent);
        assert!(!closing.is_finished());
        // The ladder would take two minutes from here.
        send_signal(server.pid().unwrap(), libc::SIGKILL);
        let end = closing.join().unwrap();
        assert_eq!(
            (end.exit, end.step),
            (Some(Exit::Signal(9)), Step::StdinClosed)
        );
    });
}

#[test]
fn p07_a_handler_may_close_a_server_and_gets_the_report_of_every_closer() {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let (notified, asked) = (ends.clone(), ends.clone());
    let options = patient()
        .on_notification(move |peer, _| notified.lock().unwrap().push(peer.close()))
        .on_request(move |peer, _| {
            asked.lock().unwrap().push(peer.close());
            Ok(Value::Null)
        });
    for (method, params) in [
        ("tell", json!({"method": "bye"})),
        ("ask", json!({"method": "bye"})),
    ] {
        let server = serve(&options);
        // The child answers the first right after the notification, which may come in time.
        let held = server.start("hold", ()).unwrap();
        let call = server.start(method, params).unwrap();
        let why = held.wait::<Value>().unwrap_err();
        let why = why.closed().unwrap();
        assert!(matches!(why.cause, Cause::ClosedHere), "{why}");
        drop(call);
        let end = server.close();
        assert_eq!(
            (end.exit, end.step, end.pipes_held),
            (Some(Exit::Code(0)), Step::StdinClosed, false)
        );
        eventually("the handler's close returned", || {
            ends.lock().unwrap().pop() == Some(end)
        });
    }
}

#[test]
fn p14_a_drop_takes_the_same_steps_in_less_time() {
    let scratch = Scratch::new();
    let server = ready(&patient(), &minds("minds_sigterm", &scratch));
    let pid = server.pid().unwrap();
    drop(server);
    assert!(!alive(pid));
    assert_eq!(notes(&scratch), "", "it ended by itself");

    let server = ready(&patient(), &minds("waits_for_sigterm", &scratch));
    let pid = server.pid().unwrap();
    drop(server);
    assert!(!alive(pid));
    assert_eq!(notes(&scratch), "SIGTERM\n");

    let server = ready(&patient(), &peer::<&str>("ignores_all", []));
    let pid = server.pid().unwrap();
    let start = Instant::now();
    drop(server);
    let took = start.elapsed();
    assert!(!alive(pid));
    assert!(took < AT_ONCE, "{took:?}");
}

#[test]
fn p14_a_connection_dropped_with_a_call_in_flight_ends_it() {
    let server = serve(&Options::new());
    let held = server.start("hold", ()).unwrap();
    drop(server);
    let why = held.wait::<Value>().unwrap_err();
    let why = why.closed().unwrap();
    assert!(matches!(why.cause, Cause::ClosedHere), "{why}");
}

#[test]
fn p14_queued_notifications_are_written_before_the_input_ends() {
    let scratch = Scratch::new();
    let (file, gate) = (scratch.path("file"), scratch.path("gate"));
    let server = patient().spawn(&peer("records", [&file, &gate])).unwrap();
    // Far more than a pipe holds, while nobody reads.
    let text = "x".repeat(1000);
    for n in 0..1000 {
        server
            .notify("note", json!({"n": n, "text": text}))
            .unwrap();
    }
    let call = server.start("never sent", ()).unwrap();
    let end = thread::scope(|scope| {
        let closing = scope.spawn(|| server.close());
        let error = call.wait::<Value>().unwrap_err();
        assert_eq!(error.delivery(), Delivery::NotSent);
        fs::write(&gate, "").unwrap();
        closing.join().unwrap()
    });
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(0)), Step::StdinClosed, false)
    );
    let read = fs::read_to_string(&file).unwrap();
    let mut lines = read.lines();
    for n in 0..1000 {
        let line: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(line["params"]["n"], n);
    }
    assert_eq!(lines.collect::<Vec<_>>(), ["end"]);
}

#[test]
fn p14_a_server_that_never_reads_is_closed_within_the_ladder() {
    let options = Options::new().close_waits(SHORT, HANG);
    let server = options.spawn(&peer::<&str>("linger", [])).unwrap();
    for _ in 0..100 {
        server.notify("note", ["x".repeat(10_000)]).unwrap();
    }
    let start = Instant::now();
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Signal(15)), Step::Terminated, false)
    );
    let took = start.elapsed();
    assert!((SHORT..AT_ONCE).contains(&took), "{took:?}");
}

/// A shell that runs the helper program in a role and waits for it, as `npx` does.
fn wrapped(role: &str) -> ChildSpec {
    let script = r#""$0" "$1"; true"#;
    ChildSpec::from_argv(["sh", "-c", script, PEER, role]).unwrap()
}

fn pid_behind(server: &Connection) -> u32 {
    let who: Value = server.request("who", ()).unwrap();
    let pid = u32::try_from(who["pid"].as_u64().unwrap()).unwrap();
    assert_ne!(server.pid(), Some(pid));
    pid
}

#[test]
fn p15_a_wrapper_and_the_server_behind_it_end_together() {
    let server = patient().spawn(&wrapped("serve")).unwrap();
    let behind = pid_behind(&server);
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(0)), Step::StdinClosed, false)
    );
    assert!(!alive(behind));

    let options = Options::new().close_waits(SHORT, HANG);
    let server = options.spawn(&wrapped("ignores_all")).unwrap();
    let behind = pid_behind(&server);
    let end = server.close();
    // The shell obeys SIGTERM; what it leaves behind is killed with its group.
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Signal(15)), Step::Terminated, false)
    );
    eventually("the server behind is gone", || !alive(behind));

    let server = options.spawn(&wrapped("ignores_all")).unwrap();
    let behind = pid_behind(&server);
    drop(server);
    eventually("the server behind is gone", || !alive(behind));
}

#[test]
fn p15_a_grandchild_that_ignores_sigterm_is_gone_afterwards() {
    for close in [true, false] {
        let server = serve(&patient());
        let grandchild: u32 = server.request("beget", ()).unwrap();
        assert!(alive(grandchild));
        if close {
            let end = server.close();
            assert_eq!(
                (end.exit, end.step, end.pipes_held),
                (Some(Exit::Code(0)), Step::StdinClosed, false)
            );
        }
        drop(server);
        eventually("the grandchild is gone", || !alive(grandchild));
    }
}

#[test]
fn p15_a_stray_that_keeps_the_pipes_delays_no_close() {
    let server = serve(&patient());
    let stray: u32 = server.request("beget", json!({"session": true})).unwrap();
    let start = Instant::now();
    let end = server.close();
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(0)), Step::StdinClosed, true)
    );
    assert_eq!(
        end.to_string(),
        "exit code 0, stdin closed; someone else keeps a pipe open"
    );
    assert!(alive(stray));
    drop(server);
    send_signal(stray, libc::SIGKILL);
}

#[test]
fn p14_a_handler_that_blocks_delays_no_close() {
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let (entered, inside) = mpsc::channel();
    let server = serve(&patient().on_notification(move |_, _| {
        entered.send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
    }));
    let tell = json!({"method": "changed"});
    server.request::<Value>("tell", tell).unwrap();
    inside.recv_timeout(HANG).unwrap();
    let start = Instant::now();
    let end = server.close();
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(0)), Step::StdinClosed, false)
    );
    drop(release);
}

#[test]
fn p15_two_hundred_rounds_leave_nothing_behind() {
    let came = host("host_rounds", ["200"]);
    assert_eq!(came["odd"], json!([]), "{came}");
    assert_eq!(came["before"], came["after"], "{came}");
    assert_eq!(came["children"], false, "{came}");
}

#[test]
fn p14_a_drop_is_not_held_up_by_a_patient_closer() {
    let patient = Options::new().close_waits(Duration::MAX, Duration::MAX);
    let spec = ChildSpec::from_argv(["sleep", "600"]).unwrap();
    let server = patient.spawn(&spec).unwrap();
    let peer = server.peer();
    let pending = server.start("m", ()).unwrap();
    let closer = thread::spawn(move || peer.close());
    // The closer has begun when the pending call has ended.
    assert!(pending.wait::<Value>().unwrap_err().is_closed());
    guarded(move || drop(server));
    assert!(closer.join().unwrap().exit.is_some());
}

#[test]
fn a_close_takes_no_longer_for_a_hundred_thousand_queued_calls() {
    let server = Options::new()
        .close_waits(Duration::ZERO, Duration::ZERO)
        .spawn(&ChildSpec::from_argv(["sleep", "600"]).unwrap())
        .unwrap();
    let mut calls: Vec<_> = (0..100_000)
        .map(|_| server.start("m", ()).unwrap())
        .collect();
    // Given up from the newest on, then closed on the rest: each in the time of one.
    let start = Instant::now();
    calls.drain(50_000..).rev().for_each(drop);
    // SIGTERM may end it before the SIGKILL that follows at once.
    let step = server.close().step;
    assert!(matches!(step, Step::Terminated | Step::Killed), "{step}");
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
}

#[test]
fn p14_the_step_is_the_highest_that_any_closer_took() {
    let patient = Options::new().close_waits(HANG, HANG);
    let sleeping = ChildSpec::from_argv(["sh", "-c", "exec sleep 600"]).unwrap();
    let server = patient.spawn(&sleeping).unwrap();
    let peer = server.peer();
    let first = thread::spawn(move || peer.close());
    eventually("the first closer waits", || server.closed().is_some());
    // The drop waits less and takes the next step for both.
    drop(server);
    let ended = first.join().unwrap();
    assert_eq!(ended.exit, Some(Exit::Signal(15)));
    assert_eq!(ended.step, Step::Terminated);
}
