//! Connecting that fails: what is tried with a real process, within which limits, and what is said.

use std::error::Error as _;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use landline::mcp::{ConnectError, ConnectFailure, ConnectPhase, Era, Options, Reason, Revision};
use landline::{ChildSpec, Exit, Limit, Step};
use serde_json::json;

use super::server::{probed, refusal, refuse};
use crate::process::{AT_ONCE, Scratch, peer};
use crate::support::{HANG, guarded};

fn options() -> Options {
    Options::new("test", "1")
}

/// A legacy server as a process that meets the probe in these ways, and its notes.
struct Server {
    scratch: Scratch,
    ways: &'static [&'static str],
}

impl Server {
    fn new(ways: &'static [&'static str]) -> Self {
        let scratch = Scratch::new();
        Server { scratch, ways }
    }

    fn spec(&self) -> ChildSpec {
        let notes = self.scratch.path("notes");
        peer("mcp_legacy", [notes])
            .with_args(self.ways.iter().copied())
            .unwrap()
    }

    /// Its starts and the methods that it was sent, in order.
    fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.scratch.path("notes")).unwrap();
        let method = |line: &str| match serde_json::from_str::<serde_json::Value>(line) {
            Ok(message) => message["method"].as_str().unwrap().to_owned(),
            Err(_) => line.to_owned(),
        };
        notes.lines().map(method).collect()
    }
}

/// Becomes a client of a server that is started twice, and gives what the server was sent.
fn started_twice(server: &Server, options: &Options) -> Vec<String> {
    let start = Instant::now();
    let client = options.spawn(&server.spec()).unwrap();
    assert!(start.elapsed() < AT_ONCE);
    assert_eq!(client.server().era(), Era::Legacy);
    assert_eq!(client.tools().unwrap()[0].name(), "a");
    client.close();
    server.notes()
}

fn failure(error: &ConnectError) -> &ConnectFailure {
    error.failure().unwrap_or_else(|| panic!("{error:?}"))
}

#[test]
fn c051_a_server_that_exits_on_the_probe_is_started_once_more_and_greeted() {
    let server = Server::new(&["exits_on_the_probe"]);
    let notes = [
        "start",
        "server/discover",
        "start",
        "initialize",
        "notifications/initialized",
        "tools/list",
    ];
    assert_eq!(started_twice(&server, &options()), notes);
    // As with commands of the caller's own making.
    let server = Server::new(&["exits_on_the_probe"]);
    let made = AtomicUsize::new(0);
    let command = || {
        made.fetch_add(1, Ordering::SeqCst);
        server.spec().to_command()
    };
    let client = options().spawn_command(command).unwrap();
    assert_eq!(client.server().era(), Era::Legacy);
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

#[test]
fn c051_so_is_one_that_exits_when_it_has_answered_the_probe() {
    let server = Server::new(&["answers_the_probe_and_exits"]);
    let notes = started_twice(&server, &options());
    // The greeting may have been written before the exit was seen, and is not read then.
    assert_eq!(notes[..3], ["start", "server/discover", "start"]);
    assert_eq!(notes[3..5], ["initialize", "notifications/initialized"]);
}

#[test]
fn c051_so_is_one_that_exits_on_the_greeting_after_a_probe() {
    let server = Server::new(&["exits_after_the_probe"]);
    let options = options().probe_timeout(Duration::from_millis(50));
    let notes = started_twice(&server, &options);
    let first = ["start", "server/discover", "initialize", "start"];
    assert_eq!(notes[..4], first);
    assert_eq!(notes[4..6], ["initialize", "notifications/initialized"]);
}

#[test]
fn c051_a_second_start_that_fails_is_the_last_and_both_are_told() {
    let server = Server::new(&[
        "exits_on_the_probe",
        "second_start_fails",
        "prints_a_banner",
    ]);
    let error = options().spawn(&server.spec()).unwrap_err();
    assert_eq!(server.notes(), ["start", "server/discover", "start"]);
    assert_eq!(
        error.to_string(),
        "cannot connect: no answer to `initialize`: the process ended (exit code 9) before it sent \
         any message; stderr: no second start; the first process: \
         exit code 3, already ended; `server/discover`: no answer before the end; stderr: expected \
         `initialize`; first stray line on stdout: Welcome to the server!"
    );
    let failure = failure(&error);
    assert_eq!(failure.phase, ConnectPhase::Handshake);
    let [first, second] = &failure.attempts[..] else {
        panic!("{failure:?}");
    };
    assert_eq!(first.ended.exit, Some(Exit::Code(3)));
    assert_eq!(first.ended.step, Step::AlreadyEnded);
    assert_eq!(first.stderr_tail, b"expected `initialize`\n");
    assert_eq!(first.stray_lines, ["Welcome to the server!"]);
    assert!(first.handshake.is_none());
    assert_eq!(second.ended.exit, Some(Exit::Code(9)));
    assert_eq!(second.stderr_tail, b"no second start\n");
    assert!(second.probe.is_none());
}

#[test]
fn a_server_that_cannot_be_started_again_is_told_with_what_was_known_of_it() {
    let server = Server::new(&["exits_on_the_probe"]);
    let starts = AtomicUsize::new(0);
    let command = || match starts.fetch_add(1, Ordering::SeqCst) {
        0 => server.spec().to_command(),
        _ => Command::new("landline-no-such-program"),
    };
    let error = options().spawn_command(command).unwrap_err();
    assert_eq!(starts.load(Ordering::SeqCst), 2);
    assert!(matches!(failure(&error).reason, Reason::Restart(_)));
    let text = error.to_string();
    assert!(
        text.starts_with(
            "cannot connect: cannot start landline-no-such-program: program not found; the first \
             process: exit code 3, already ended; `server/discover`: no answer before the end"
        ),
        "{text}"
    );
    assert!(text.ends_with("; stderr: expected `initialize`"), "{text}");
    assert!(error.source().is_some());
}

#[test]
fn a_server_that_exits_is_not_started_again_where_the_probe_is_not_to_blame() {
    // Without a probe, and where nothing else may be tried.
    for (options, phase) in [
        (options().era(Era::Legacy), ConnectPhase::Handshake),
        (options().era(Era::Modern), ConnectPhase::Probe),
    ] {
        let error = options
            .spawn(&peer("exits_reading", ["78", "FATAL: API_KEY missing"]))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot connect: no answer to {phase}: the process ended (exit code 78) before it \
                 sent any message; stderr: FATAL: API_KEY missing"
            )
        );
        let failure = failure(&error);
        assert_eq!((failure.phase, failure.attempts.len()), (phase, 1));
    }
}

#[test]
fn a_program_that_does_not_exist_is_a_failed_start() {
    let spec = ChildSpec::new("landline-no-such-program").unwrap();
    let error = options().spawn(&spec).unwrap_err();
    assert!(matches!(error, ConnectError::Spawn(_)), "{error:?}");
    assert_eq!(
        error.to_string(),
        "cannot start landline-no-such-program: program not found"
    );
}

#[test]
fn the_limit_of_connecting_ends_all_of_it_and_names_the_step() {
    let limit = Duration::from_millis(200);
    let (probe, handshake) = (ConnectPhase::Probe, ConnectPhase::Handshake);
    for (options, phases) in [
        // Half of it is left for the greeting, unless the machine is too slow to get there.
        (
            options().connect_timeout(limit),
            &[handshake, probe] as &[_],
        ),
        (
            options().connect_timeout(limit).era(Era::Legacy),
            &[handshake],
        ),
        (options().connect_timeout(limit).era(Era::Modern), &[probe]),
    ] {
        let spec = peer::<&str>("linger", []);
        let transport = landline::Options::new();
        let options = options.transport(transport.close_waits(Duration::ZERO, Duration::ZERO));
        let (error, took) = guarded(move || {
            let start = Instant::now();
            (options.spawn(&spec).unwrap_err(), start.elapsed())
        });
        assert!(took >= limit);
        let failure = failure(&error);
        let phase = failure.phase;
        assert!(phases.contains(&phase), "{failure:?}");
        let Reason::Call(landline::Error::Timeout { detail, .. }) = &failure.reason else {
            panic!("{failure:?}");
        };
        assert_eq!((detail.limit, detail.after), (Limit::Total, limit));
        let [attempt] = &failure.attempts[..] else {
            panic!("{failure:?}");
        };
        assert!(attempt.ended.exit.is_some(), "it is closed: {attempt:?}");
        let text = error.to_string();
        let begin = format!("cannot connect within 200ms: no answer to {phase};");
        assert!(text.starts_with(&begin), "{text}");
    }
}

#[test]
fn the_limit_of_connecting_counts_from_the_start_and_not_from_the_probes_end() {
    let limit = Duration::from_secs(2);
    let probe = Duration::from_millis(20);
    let options = options().connect_timeout(limit).probe_timeout(probe);
    let error = refusal(&options, |script| {
        probed(script);
        assert_eq!(script.recv()["method"], "initialize");
    });
    assert_eq!(failure(&error).phase, ConnectPhase::Handshake);
    assert_eq!(
        error.to_string(),
        "cannot connect within 2s: no answer to `initialize`; it runs and has sent no message: \
         perhaps it is no MCP server; `server/discover`: no answer within 20.0ms"
    );
}

#[test]
fn any_limit_is_safe() {
    let server = Server::new(&[]);
    for limit in [Duration::MAX, HANG] {
        let options = options()
            .connect_timeout(limit)
            .probe_timeout(Duration::MAX);
        let client = options.spawn(&server.spec()).unwrap();
        assert_eq!(client.server().era(), Era::Legacy);
    }
    let options = options().connect_timeout(Duration::ZERO);
    let error = options.spawn(&server.spec()).unwrap_err();
    assert_eq!(failure(&error).phase, ConnectPhase::Probe);
}

#[test]
fn c012_stderr_neither_blocks_nor_is_an_error() {
    let server = Server::new(&["floods_stderr"]);
    let spec = server.spec();
    guarded(move || {
        let client = options().spawn(&spec).unwrap();
        for _ in 0..3 {
            assert_eq!(client.tools().unwrap()[0].name(), "a");
        }
        assert_eq!(client.close().exit, Some(Exit::Code(0)));
    });
}

#[test]
fn c049_a_pinned_modern_era_that_is_refused_is_told_and_nobody_is_greeted() {
    let error = refusal(&options().era(Era::Modern), |script| {
        let probe = probed(script);
        refuse(script, &probe, -32601);
    });
    assert_eq!(
        error.to_string(),
        "cannot connect: the server speaks no modern revision (`server/discover` was refused: \
         refused (code -32601))"
    );
    let failure = failure(&error);
    assert_eq!(failure.phase, ConnectPhase::Probe);
    assert_eq!(failure.ours, ["2026-07-28"]);
    assert_eq!(failure.rpc().unwrap().code, -32601);

    let error = refusal(&options().era(Era::Modern), |script| {
        let probe = probed(script);
        script.answer(&probe, json!({}));
    });
    assert_eq!(
        error.to_string(),
        "cannot connect: the server speaks no modern revision"
    );
}

#[test]
fn a_named_legacy_version_is_an_error_unless_it_is_accepted() {
    let result = json!({"supportedVersions": ["2025-06-18", "2025-03-26"], "capabilities": {}});
    for options in [options(), options().era(Era::Modern).accept_named_legacy()] {
        let error = refusal(&options, |script| {
            let probe = probed(script);
            script.answer(&probe, result.clone());
        });
        let failure = failure(&error);
        assert!(matches!(failure.reason, Reason::NoCommonVersion));
        assert_eq!(failure.phase, ConnectPhase::Probe);
        let ours = failure.ours.join(", ");
        assert_eq!(
            error.to_string(),
            format!(
                "cannot connect: there is no common version; the server speaks 2025-06-18, \
                 2025-03-26, this client {ours}"
            )
        );
    }
}

#[test]
fn streams_that_end_on_the_probe_are_told() {
    let error = refusal(&options(), |script| {
        probed(script);
        script.raw("Goodbye\n");
        script.output.shutdown(std::net::Shutdown::Write).unwrap();
    });
    assert_eq!(
        error.to_string(),
        "cannot connect: no answer to `server/discover`: the peer closed its output before it sent \
         any message; first stray line on stdout: Goodbye"
    );
    assert_eq!(failure(&error).phase, ConnectPhase::Probe);
}

#[test]
fn what_the_server_says_is_fit_for_a_terminal() {
    let error = refusal(&options().revision(Revision::V2025_06_18), |script| {
        let initialize = script.recv();
        let result = json!({"protocolVersion": "\u{1b}[31m1999\u{7}", "capabilities": {}});
        script.answer(&initialize, result);
    });
    assert_eq!(
        error.to_string(),
        "cannot connect: there is no common version; the server speaks 1999, this client 2025-06-18"
    );
}
