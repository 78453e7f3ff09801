//! A child's death and its stderr: told at once, explained, and nothing lost on the way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use landline::{
    Call, Cause, ChildSpec, Closed, Connection, Delivery, Error, Exit, Incoming, Options, Phase,
    RpcError, Step, Update,
};
use serde_json::{Value, json};

use crate::process::{AT_ONCE, Scratch, alive, host, peer, send_signal, serve};
use crate::support::{HANG, eventually, guarded};

fn closed(error: &Error) -> &Closed {
    error.closed().unwrap_or_else(|| panic!("{error:?}"))
}

fn exit_of(error: &Error) -> Exit {
    match closed(error).cause {
        Cause::Exited(exit) => exit,
        ref other => panic!("{other:?}"),
    }
}

/// Calls a child that dies before it answers anything, and gives the error's text.
fn dies_at_start(spec: &ChildSpec, exit: Exit) -> String {
    let server = Connection::spawn(spec).unwrap();
    let start = Instant::now();
    let error = server.request::<Value>("initialize", ()).unwrap_err();
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(exit_of(&error), exit);
    assert_eq!(closed(&error).phase, Phase::Starting);
    let end = server.close();
    assert_eq!((end.exit, end.step), (Some(exit), Step::AlreadyEnded));
    error.to_string()
}

#[test]
fn p02_a_death_at_the_start_is_told_at_once_and_explained() {
    for role in ["exits", "exits_reading"] {
        let text = dies_at_start(
            &peer(role, ["78", "FATAL: API_KEY missing"]),
            Exit::Code(78),
        );
        assert_eq!(
            text,
            "no answer to `initialize`: the process ended (exit code 78) before it sent any \
             message; stderr: FATAL: API_KEY missing"
        );
        let text = dies_at_start(&peer(role, ["0", ""]), Exit::Code(0));
        assert_eq!(
            text,
            "no answer to `initialize`: the process ended (exit code 0) before it sent any message"
        );
    }
    let text = dies_at_start(&peer("kills_itself", ["out of luck"]), Exit::Signal(9));
    assert_eq!(
        text,
        "no answer to `initialize`: the process ended (signal 9) before it sent any message; \
         stderr: out of luck"
    );
}

#[test]
fn p02_the_first_cause_is_kept_for_later_callers() {
    let server = serve(&Options::new());
    let exit = json!({"code": 101, "stderr": "panic: boom"});
    let first = server.request::<Value>("exit", exit).unwrap_err();
    assert_eq!(first.delivery(), Delivery::MaybeRun);
    assert_eq!(closed(&first).phase, Phase::Starting);
    let check = || {
        let later = server.request::<Value>("echo", ()).unwrap_err();
        assert_eq!(later.delivery(), Delivery::NotSent);
        assert!(std::ptr::eq(closed(&first), closed(&later)));
        let notified = server.notify("echo", ()).unwrap_err();
        assert_eq!(notified.delivery(), Delivery::NotSent);
        assert!(std::ptr::eq(closed(&first), closed(&notified)));
    };
    check();
    server.close();
    check();
}

#[test]
fn p02_words_after_the_end_of_stdout_are_still_in_the_tail() {
    let server = serve(&Options::new());
    server.request::<Value>("echo", ()).unwrap();
    let last = json!({"stderr": "panic: boom", "late": "late line", "code": 101});
    let error = server.request::<Value>("close_output", last).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no answer to `close_output`: the process ended (exit code 101); stderr: panic: boom\nlate line"
    );
    assert_eq!(closed(&error).stderr_tail, b"panic: boom\nlate line\n");
    assert_eq!(closed(&error).phase, Phase::Running);
    assert_eq!(server.stderr_tail(), b"panic: boom\nlate line\n");
}

#[test]
fn p03_an_answer_that_is_in_the_pipe_is_delivered_and_the_rest_fails() {
    for round in 0..20 {
        let server = serve(&Options::new());
        let calls: Vec<Call> = (0..8).map(|_| server.start("hold", ()).unwrap()).collect();
        let exit = json!({"release": 5, "code": 3});
        let error = server.request::<Value>("exit", exit).unwrap_err();
        assert_eq!(exit_of(&error), Exit::Code(3));
        for (place, call) in calls.into_iter().enumerate() {
            match call.wait::<String>() {
                Ok(answer) => assert!(place < 5 && answer == "late", "round {round}: {place}"),
                Err(error) => {
                    assert!(place >= 5, "round {round}: {place}: {error}");
                    assert_eq!(exit_of(&error), Exit::Code(3));
                }
            }
        }
    }
}

/// Lets nine threads wait for answers of a child that then dies of `exit`, and looks at what they
/// get.
fn dies_under_nine_callers(server: &Connection, exit: Value, as_what: Exit) {
    let calls: Vec<Call> = (0..8).map(|_| server.start("hold", ()).unwrap()).collect();
    // Its answer says that the child has read all of them.
    server.request::<Value>("echo", ()).unwrap();
    let start = Instant::now();
    let errors: Vec<Error> = thread::scope(|scope| {
        let threads: Vec<_> = calls
            .into_iter()
            .map(|call| scope.spawn(|| call.wait::<Value>().unwrap_err()))
            .collect();
        let last = server.request::<Value>("exit", exit).unwrap_err();
        let others = threads.into_iter().map(|thread| thread.join().unwrap());
        others.chain([last]).collect()
    });
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    for error in &errors {
        assert_eq!(exit_of(error), as_what);
        assert_eq!(error.delivery(), Delivery::MaybeRun);
        assert!(error.to_string().contains("stderr: panic: boom"), "{error}");
        assert!(std::ptr::eq(closed(error), closed(&errors[0])));
    }
}

#[test]
fn p01_a_call_without_a_limit_ends_when_its_peer_is_dead_however_it_is_waited_for() {
    let ways: [fn(Call) -> Error; 5] = [
        |call| call.wait::<Value>().unwrap_err(),
        |call| call.wait_with::<Value>(|_| {}).unwrap_err(),
        |mut call| call.wait_timeout::<Value>(Duration::MAX).unwrap_err(),
        |mut call| {
            assert!(matches!(call.next(), Update::Ended));
            call.wait::<Value>().unwrap_err()
        },
        |mut call| {
            assert_eq!(Call::wait_any([&mut call]), Some(0));
            call.wait::<Value>().unwrap_err()
        },
    ];
    guarded(move || {
        let server = serve(&Options::new().request_timeout(Duration::MAX));
        let waiting = ways.map(|way| {
            let call = server.start("hold", ()).unwrap();
            thread::spawn(move || way(call))
        });
        // Its answer says that the child has read all of them.
        server.request::<Value>("echo", ()).unwrap();
        send_signal(server.pid().unwrap(), libc::SIGKILL);
        for waiting in waiting {
            let error = waiting.join().unwrap();
            assert_eq!(exit_of(&error), Exit::Signal(9));
            assert_eq!(error.delivery(), Delivery::MaybeRun);
        }
        let late = server.request::<Value>("echo", ()).unwrap_err();
        assert_eq!(exit_of(&late), Exit::Signal(9));
        assert_eq!(late.delivery(), Delivery::NotSent);
    });
}

#[test]
fn p02_every_waiting_caller_learns_of_a_death_at_once() {
    let server = serve(&Options::new());
    let exit = json!({"code": 3, "stderr": "panic: boom"});
    dies_under_nine_callers(&server, exit, Exit::Code(3));
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(3)), Step::AlreadyEnded, false)
    );

    let server = serve(&Options::new());
    let exit = json!({"signal": 15, "stderr": "panic: boom"});
    dies_under_nine_callers(&server, exit, Exit::Signal(15));
}

#[test]
fn p02_every_waiting_caller_learns_of_a_death_while_a_grandchild_holds_the_pipes() {
    let server = serve(&Options::new());
    let stray: u32 = server.request("beget", ()).unwrap();
    let exit = json!({"code": 3, "stderr": "panic: boom"});
    dies_under_nine_callers(&server, exit, Exit::Code(3));
    eventually("the group is gone", || !alive(stray));
    assert!(!server.close().pipes_held);
}

#[test]
fn p02_every_waiting_caller_learns_of_a_death_while_a_stray_holds_the_pipes() {
    let server = serve(&Options::new());
    let stray: u32 = server.request("beget", json!({"session": true})).unwrap();
    let exit = json!({"code": 3, "stderr": "panic: boom"});
    dies_under_nine_callers(&server, exit, Exit::Code(3));
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Code(3)), Step::AlreadyEnded, true)
    );
    assert!(alive(stray), "a process that left the group is not ours");
    send_signal(stray, libc::SIGKILL);
}

#[test]
fn p02_a_program_that_waits_for_what_comes_learns_of_a_death_under_a_stray_too() {
    guarded(|| {
        let server = serve(&Options::new().queue_incoming());
        let stray: u32 = server.request("beget", json!({"session": true})).unwrap();
        server.notify("exit", json!({"code": 3})).unwrap();
        let landline::Incoming::Closed(why) = server.next_incoming() else {
            panic!("the server sends nothing");
        };
        assert!(matches!(why.cause, Cause::Exited(Exit::Code(3))), "{why}");
        send_signal(stray, libc::SIGKILL);
    });
}

/// Looks, by something that waits for nothing, whether a server has died whose child keeps its
/// pipes, in its group or in a session of its own; gives what was seen of it.
fn seen_under_a_grandchild<T>(look: impl Fn(&Connection) -> Option<T>) -> [T; 2] {
    [false, true].map(|session| {
        let server = serve(&Options::new());
        let grandchild: u32 = server
            .request("beget", json!({"session": session}))
            .unwrap();
        let exit = json!({"code": 3, "stderr": "panic: boom"});
        server.notify("exit", exit).unwrap();
        let (start, mut seen) = (Instant::now(), None);
        eventually("the death is seen", || {
            seen = look(&server);
            seen.is_some()
        });
        assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
        if session {
            assert!(alive(grandchild), "it holds the pipes");
            send_signal(grandchild, libc::SIGKILL);
        }
        eventually("the grandchild is gone", || !alive(grandchild));
        seen.unwrap()
    })
}

#[test]
fn p02_a_program_that_only_notifies_is_told_of_a_death_while_a_grandchild_holds_the_pipes() {
    for error in seen_under_a_grandchild(|server| server.notify("echo", ()).err()) {
        assert_eq!(exit_of(&error), Exit::Code(3));
        assert_eq!(error.delivery(), Delivery::NotSent);
        assert_eq!(
            error.to_string(),
            "`echo` was not sent: the process ended (exit code 3); stderr: panic: boom"
        );
    }
}

#[test]
fn p02_a_program_that_only_asks_is_told_of_a_death_while_a_grandchild_holds_the_pipes() {
    for why in seen_under_a_grandchild(|server| server.closed()) {
        assert!(matches!(why.cause, Cause::Exited(Exit::Code(3))), "{why}");
        assert_eq!(
            why.to_string(),
            "the process ended (exit code 3); stderr: panic: boom"
        );
    }
}

#[test]
fn p02_a_caller_that_waits_for_room_learns_of_a_death_while_a_stray_holds_the_pipes() {
    let ways: [fn(&Connection) -> Error; 2] = [
        |server| server.notify("late", ()).unwrap_err(),
        |server| server.request::<Value>("late", ()).unwrap_err(),
    ];
    for way in ways {
        let options = Options::new()
            .request_timeout(Duration::MAX)
            .outgoing_limit(1);
        let server = serve(&options);
        let stray: u32 = server.request("beget", json!({"session": true})).unwrap();
        server.request::<Value>("stop_reading", ()).unwrap();
        // One is being written, one fills the queue, and nobody waits for either.
        let large = ["x".repeat(1 << 20)];
        let blocked = server.start("echo", large).unwrap();
        let queued = server.start("echo", ()).unwrap();
        send_signal(server.pid().unwrap(), libc::SIGKILL);
        let error = guarded(move || {
            let error = way(&server);
            drop((blocked, queued));
            error
        });
        assert_eq!(exit_of(&error), Exit::Signal(9));
        assert_eq!(error.delivery(), Delivery::NotSent);
        send_signal(stray, libc::SIGKILL);
    }
}

#[test]
fn p15_strays_leave_no_thread_and_no_descriptor_once_they_end() {
    let came = host("host_strays", ["10"]);
    assert_eq!(came["held"], 10, "{came}");
    assert_eq!(came["before"], came["after"], "{came}");
    assert_eq!(came["children"], false, "{came}");
}

#[test]
fn a_server_that_closes_its_output_is_left_and_can_be_ended() {
    let server = serve(&Options::new());
    let pid = server.pid().unwrap();
    let held = server.start("hold", ()).unwrap();
    let start = Instant::now();
    let error = server.request::<Value>("close_output", ()).unwrap_err();
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert!(
        matches!(closed(&error).cause, Cause::OutputEnded),
        "{error}"
    );
    let held = held.wait::<Value>().unwrap_err();
    assert!(matches!(closed(&held).cause, Cause::OutputEnded), "{held}");
    let end = server.close();
    assert_eq!(end.exit, Some(Exit::Code(0)));
    assert!(!end.pipes_held && !alive(pid));
    let later = server.request::<Value>("echo", ()).unwrap_err();
    assert!(
        matches!(closed(&later).cause, Cause::OutputEnded),
        "{later}"
    );
}

#[test]
fn a_server_that_closes_its_input_can_still_answer_what_it_has_read() {
    let scratch = Scratch::new();
    let gate = scratch.path("gate");
    let server = serve(&Options::new().close_waits(Duration::ZERO, HANG));
    let held = server.start("hold", ()).unwrap();
    let until = json!({"until": gate.to_str()});
    server.request::<Value>("close_input", until).unwrap();

    let start = Instant::now();
    let first = server.request::<Value>("echo", ()).unwrap_err();
    let later = server.request::<Value>("echo", ()).unwrap_err();
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    for error in [&first, &later] {
        assert!(
            matches!(closed(error).cause, Cause::InputClosed(_)),
            "{error}"
        );
    }
    // The first was handed to the pipe.
    assert_eq!(first.delivery(), Delivery::MaybeRun);
    assert_eq!(later.delivery(), Delivery::NotSent);

    std::fs::write(&gate, "").unwrap();
    assert_eq!(held.wait::<String>().unwrap(), "late");
    let end = server.close();
    assert_eq!(
        (end.exit, end.step, end.pipes_held),
        (Some(Exit::Signal(15)), Step::Terminated, false)
    );
}

#[test]
fn p02_a_blocked_writer_does_not_hide_a_death() {
    for session in [None, Some(json!({"session": true}))] {
        let server = serve(&Options::new());
        // A stray keeps the reading end of stdin open, so that the writer stays blocked.
        let stray: Option<u32> = session.map(|session| server.request("beget", session).unwrap());
        server.request::<Value>("stop_reading", ()).unwrap();
        let big = json!(["x".repeat(1 << 20)]);
        let blocked = server.start("echo", big).unwrap();
        let queued = server.start("echo", ()).unwrap();
        let start = Instant::now();
        send_signal(server.pid().unwrap(), libc::SIGKILL);
        let blocked = blocked.wait::<Value>().unwrap_err();
        let queued = queued.wait::<Value>().unwrap_err();
        assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
        assert_eq!(exit_of(&blocked), Exit::Signal(9));
        assert_eq!(exit_of(&queued), Exit::Signal(9));
        assert_eq!(queued.delivery(), Delivery::NotSent);
        assert_eq!(server.close().pipes_held, stray.is_some());
        if let Some(stray) = stray {
            send_signal(stray, libc::SIGKILL);
        }
    }
}

#[test]
fn a_flood_on_stderr_delays_no_answer_and_keeps_to_its_bound() {
    for (options, limit) in [
        (Options::new(), 64 << 10),
        // A line whose beginning is gone is left out.
        (Options::new().stderr_tail(100), 64),
        (Options::new().stderr_tail(60), 0),
        (Options::new().stderr_tail(0), 0),
        (Options::new().on_stderr(|_| {}), 64 << 10),
    ] {
        let server = serve(&options);
        for _ in 0..4 {
            let flood = json!({"lines": 20_000});
            server.request::<Value>("flood", flood).unwrap();
        }
        let error = server.request::<Value>("exit", json!({"code": 3}));
        let line = format!("{}\n", "x".repeat(63));
        let tail = line.repeat(limit / line.len()).into_bytes();
        assert!(closed(&error.unwrap_err()).stderr_tail == tail);
        assert!(server.stderr_tail() == tail);
    }
}

#[test]
fn every_line_of_stderr_comes_once_and_in_order() {
    let (line, lines) = mpsc::channel();
    let options = Options::new().on_stderr(move |text| line.send(text.to_owned()).unwrap());
    let server = serve(&options);
    server
        .request::<Value>("lines", json!({"count": 1000}))
        .unwrap();
    for n in 1..=1000 {
        let line = lines.recv_timeout(HANG).unwrap();
        assert_eq!(line, format!("line {n}"));
    }
    assert_eq!(server.survived().dropped_stderr_lines, 0);
}

#[test]
fn the_last_words_on_stderr_reach_the_callback_after_a_close_and_after_a_death() {
    let script = "read a; cat >/dev/null; echo one >&2; printf two >&2";
    let dies = "read a; exec >&-; echo one >&2; printf two >&2";
    for (script, closes) in [(script, true), (dies, false)] {
        let (line, lines) = mpsc::channel();
        let options = Options::new().on_stderr(move |text| line.send(text.to_owned()).unwrap());
        let spec = ChildSpec::from_argv(["sh", "-c", script]).unwrap();
        let server = options.spawn(&spec).unwrap();
        let call = server.start("m", ()).unwrap();
        if closes {
            server.close();
        } else {
            assert_eq!(exit_of(&call.wait::<Value>().unwrap_err()), Exit::Code(0));
        }
        assert_eq!(lines.recv_timeout(HANG).unwrap(), "one");
        assert_eq!(lines.recv_timeout(HANG).unwrap(), "two");
        assert_eq!(server.survived().dropped_stderr_lines, 0);
    }
}

#[test]
fn a_line_callback_that_blocks_stalls_nothing_and_what_it_misses_is_counted() {
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let heard = Arc::new(AtomicU64::new(0));
    let counting = heard.clone();
    let options = Options::new()
        .notifications_limit(4 << 10)
        .on_stderr(move |_| {
            counting.fetch_add(1, Ordering::SeqCst);
            // Until the test lets go of the other end.
            let _ = gate.lock().unwrap().recv();
        });
    let server = serve(&options);
    for _ in 0..3 {
        let lines = json!({"count": 20_000});
        server.request::<Value>("lines", lines).unwrap();
    }
    eventually("the tail is drained", || {
        server.stderr_tail().ends_with(b"\nline 20000\n")
    });
    assert_eq!(heard.load(Ordering::SeqCst), 1);
    drop(release);
    eventually("every line is heard or counted", || {
        heard.load(Ordering::SeqCst) + server.survived().dropped_stderr_lines == 60_000
    });
    assert!(heard.load(Ordering::SeqCst) < 1000);
}

#[test]
fn stderr_goes_where_the_caller_says() {
    let run = |mode| {
        let mut command = peer("host_stderr", [mode]).to_command();
        command.stdin(std::process::Stdio::null());
        let said = crate::process::output(command);
        let words = crate::process::only_word(&said);
        assert_eq!(words["exit"], "exit code 0");
        let tail = words["tail"].as_str().unwrap().to_owned();
        (tail, String::from_utf8(said.stderr).unwrap())
    };
    let both = "line 1\nline 2\n".to_owned();
    assert_eq!(run("capture"), (both.clone(), String::new()));
    assert_eq!(run("inherit"), (String::new(), both));
    assert_eq!(run("discard"), (String::new(), String::new()));
}

#[test]
fn a_real_server_may_ask_back_while_its_caller_waits() {
    let options = Options::new()
        .on_notification(|peer, _| {
            peer.request::<Value>("echo", ()).unwrap();
        })
        .on_request(|peer, request| {
            match request.method() {
                "panics" => panic!("on purpose"),
                _ => peer.request::<Value>("echo", ["from the handler"]),
            }
            .map_err(|error| RpcError::new(RpcError::INTERNAL_ERROR, error.to_string()))
        });
    let server = serve(&options);
    let told = json!({"method": "changed"});
    server.request::<Value>("tell", told).unwrap();
    let ask = |method| {
        server
            .request::<Value>("ask", json!({"method": method}))
            .unwrap()
    };
    assert_eq!(ask("roots")["result"], json!(["from the handler"]));
    assert_eq!(ask("panics")["error"]["code"], -32603);
    assert_eq!(ask("roots")["result"], json!(["from the handler"]));
    assert_eq!(server.survived().handler_panics, 1);
    assert_eq!(server.close().exit, Some(Exit::Code(0)));
}

#[test]
fn p06_a_handler_that_blocks_delays_no_answer() {
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let (entered, inside) = mpsc::channel();
    let server = serve(&Options::new().on_notification(move |_, _| {
        entered.send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
    }));
    server
        .request::<Value>("tell", json!({"method": "changed"}))
        .unwrap();
    inside.recv_timeout(HANG).unwrap();
    for n in 0..100 {
        assert_eq!(server.request::<Value>("echo", [n]).unwrap(), json!([n]));
    }
    drop(release);
}

#[test]
fn the_first_cause_is_kept_when_a_server_that_closed_its_input_ends() {
    let scratch = Scratch::new();
    let gate = scratch.path("gate");
    let server = serve(&Options::new());
    let held = server.start("hold", ()).unwrap();
    let until = json!({"until": gate.to_str(), "code": 3});
    server.request::<Value>("close_input", until).unwrap();
    let first = server.request::<Value>("echo", ()).unwrap_err();
    assert!(
        matches!(closed(&first).cause, Cause::InputClosed(_)),
        "{first}"
    );

    std::fs::write(&gate, "").unwrap();
    assert_eq!(held.wait::<String>().unwrap(), "late");
    assert_eq!(server.close().exit, Some(Exit::Code(3)));
    let later = server.request::<Value>("echo", ()).unwrap_err();
    assert!(
        matches!(closed(&later).cause, Cause::InputClosed(_)),
        "{later}"
    );
    let kept = server.closed().unwrap();
    assert!(std::ptr::eq(closed(&first), &*kept));
}

#[test]
fn p03_an_answer_that_takes_long_to_read_is_delivered_though_its_server_is_gone() {
    // The server is gone long before 60 MiB of numbers are looked through.
    let size = 60 << 20;
    let script = format!(
        "read a; printf '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[0'; \
         head -c {size} /dev/zero | sed 's/\\x00\\x00/,1/g'; printf ']}}\\n'"
    );
    let server = Connection::spawn(&ChildSpec::from_argv(["sh", "-c", &script]).unwrap()).unwrap();
    let call = server.start("m", ()).unwrap();
    let raw: Box<serde_json::value::RawValue> = call.wait().unwrap();
    assert_eq!(raw.get().len(), size + 3);
}

/// A server that leaves a stray process on its stdout, whose pid is its first line, and ends with
/// this code when it is asked for anything.
fn leaving_a_stray(code: i32, options: &Options) -> (Connection, u32) {
    let script = format!("setsid sleep 600 </dev/null 2>/dev/null & echo $!; read x; exit {code}");
    let spec = ChildSpec::from_argv(["sh", "-c", &script]).unwrap();
    let server = options.spawn(&spec).unwrap();
    eventually("the stray is told", || server.survived().stray_lines == 1);
    let stray = server.survived().first_stray_lines[0].trim().parse();
    (server, stray.unwrap())
}

#[test]
fn p02_a_call_to_a_dead_process_under_a_stray_is_told_of_the_exit_and_not_of_the_pipe() {
    let (server, stray) = leaving_a_stray(7, &Options::new());
    let waiting = server.start("x", ()).unwrap();
    eventually("it has ended", || !alive(server.pid().unwrap()));
    // Its write fails, and its caller does not look.
    let late = server.start("y", ());
    let [waiting, late] = guarded(move || {
        let late = late.and_then(|call| call.wait::<Value>());
        [waiting.wait::<Value>().unwrap_err(), late.unwrap_err()]
    });
    assert_eq!(exit_of(&waiting), Exit::Code(7));
    assert_eq!(exit_of(&late), Exit::Code(7));
    send_signal(stray, libc::SIGKILL);
}

#[test]
fn p02_who_only_polls_is_told_of_a_death_under_a_stray() {
    let (server, stray) = leaving_a_stray(3, &Options::new().queue_incoming());
    let mut call = server.start("x", ()).unwrap();
    let error = guarded(move || {
        loop {
            match call.try_wait::<Value>() {
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                Ok(Some(answer)) => panic!("{answer}"),
                Err(error) => break error,
            }
        }
    });
    assert_eq!(exit_of(&error), Exit::Code(3));
    send_signal(stray, libc::SIGKILL);

    let (server, stray) = leaving_a_stray(4, &Options::new().queue_incoming());
    server.notify("x", ()).unwrap();
    let why = guarded(move || {
        loop {
            match server.try_next_incoming() {
                Some(Incoming::Closed(why)) => break why,
                _ => thread::sleep(Duration::from_millis(2)),
            }
        }
    });
    assert!(matches!(why.cause, Cause::Exited(Exit::Code(4))), "{why}");
    send_signal(stray, libc::SIGKILL);
}
