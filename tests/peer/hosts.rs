//! Programs that use the library: what a test cannot see from a process that runs other tests
//! beside it.
//!
//! Each prints one JSON value on stdout when it is done, and nothing else; stderr stays empty.

use std::env;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use landline::{ChildSpec, Connection, Error, Exit, Options, SpawnError, Stderr};
use serde_json::{Value, json};

use crate::c;
use crate::server::linger;

/// N: so many times spawns, calls and closes.
pub(crate) fn rounds(args: &[OsString]) {
    let mut ends = Vec::new();
    let mut before = None;
    for round in 0..number(&args[0]) {
        let server = Connection::spawn(&peer("serve")).unwrap();
        let answer: [u64; 1] = server.request("echo", [round]).unwrap();
        assert_eq!(answer, [round]);
        ends.push(server.close());
        drop(server);
        // Whatever the first round leaves for the whole life of the process is no leak.
        before.get_or_insert_with(settled);
    }
    let odd = ends
        .iter()
        .filter(|end| !end.exit.is_some_and(Exit::success) || end.pipes_held);
    let odd: Vec<_> = odd.map(|end| format!("{end:?}")).collect();
    report(json!({"odd": odd, "before": before, "after": settled(), "children": has_children()}));
}

/// N: so many times lets a server die while its child, in a session of its own, keeps the pipes;
/// closes; and then ends that child.
pub(crate) fn strays(args: &[OsString]) {
    let (mut held, mut before) = (0, None);
    for _ in 0..number(&args[0]) {
        let server = Connection::spawn(&peer("serve")).unwrap();
        let stray: u32 = server.request("beget", json!({"session": true})).unwrap();
        let error = server
            .request::<Value>("exit", json!({"code": 3}))
            .unwrap_err();
        assert!(error.to_string().contains("exit code 3"), "{error}");
        held += u64::from(server.close().pipes_held);
        drop(server);
        c::send_signal(stray, c::SIGKILL);
        before.get_or_insert_with(settled);
    }
    report(json!({"held": held, "before": before, "after": settled(), "children": has_children()}));
}

/// N: so many times fails to start.
pub(crate) fn failed_starts(args: &[OsString]) {
    let missing = ChildSpec::new("landline-no-such-program").unwrap();
    let before = settled();
    for _ in 0..number(&args[0]) {
        Connection::spawn(&missing).unwrap_err();
    }
    let leaked: usize = settled().iter().sum::<usize>() - before.iter().sum::<usize>();
    report(json!({"leaked": leaked, "children": has_children()}));
}

/// Keeps a connection open, quiet for two seconds, and counts how often its threads were woken.
pub(crate) fn idle(_: &[OsString]) {
    let options = Options::new().on_notification(|_, _| {}).on_stderr(|_| {});
    let server = options.spawn(&peer("serve")).unwrap();
    server.request::<Value>("echo", ()).unwrap();
    // They go to sleep once more after the answer, each when it gets a processor.
    let start = eventually_equal(|| {
        loop {
            match switches() {
                (seen, true) => break seen,
                _ => thread::sleep(Duration::from_millis(10)),
            }
        }
    });
    thread::sleep(Duration::from_secs(2));
    let (end, _) = switches();
    server.close();
    report(json!({"threads": start.len(), "before": start, "after": end}));
}

/// K: starts a server with room for K threads.
pub(crate) fn starved(args: &[OsString]) {
    // Set by the test: every thread needs that much, and no allocator takes any of it.
    let stack: u64 = env::var("RUST_MIN_STACK").unwrap().parse().unwrap();
    let pages: u64 = fs::read_to_string("/proc/self/statm")
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    c::limit_addresses(pages * 4096 + number(&args[0]) * (stack + SLACK) + stack / 2);
    let started = Connection::spawn(&peer("serve"));
    let outcome = match &started {
        Ok(server) => server.request("echo", ["started"]).unwrap(),
        Err(error) => refusal(error),
    };
    drop(started);
    let threads = eventually_equal(|| count("/proc/self/task"));
    report(json!({"outcome": outcome, "threads": threads, "children": has_children()}));
}

/// Writes to a child that reads no more, with SIGPIPE at its default, which ends a process.
pub(crate) fn sigpipe(args: &[OsString]) {
    c::default_signal(c::SIGPIPE);
    let server = Connection::spawn(&peer("serve")).unwrap();
    server
        .request::<Value>("close_input", json!({"until": args[0].to_str()}))
        .unwrap();
    let deaf = server.request::<Value>("echo", ()).unwrap_err();
    drop(server);

    // And one whose write is under way when its reader dies.
    let server = Connection::spawn(&peer("serve")).unwrap();
    server.request::<Value>("stop_reading", ()).unwrap();
    let call = server.start("echo", ["x".repeat(1 << 20)]).unwrap();
    c::send_signal(server.pid().unwrap(), c::SIGKILL);
    let dead = call.wait::<Value>().unwrap_err();
    report(json!({"deaf": deaf.to_string(), "dead": dead.to_string()}));
}

/// Ignores SIGCHLD, so that the system reaps its children before anyone can ask for their status.
pub(crate) fn sigchld_ignored(_: &[OsString]) {
    c::ignore_signal(c::SIGCHLD);
    let plain = peer("serve").to_command();
    let mut hooked = peer("serve").to_command();
    c::detach(&mut hooked, false);
    let mut outcomes = Vec::new();
    for command in [plain, hooked] {
        let server = Options::new().spawn_command(command).unwrap();
        let died = died_of(server.request("exit", json!({"code": 3})));
        outcomes.push(json!({"died": died, "step": server.close().step.to_string()}));
    }
    let server = Connection::spawn(&peer("serve")).unwrap();
    server.request::<Value>("echo", ()).unwrap();
    let closed = server.close();
    let missing =
        Connection::spawn(&ChildSpec::new("landline-no-such-program").unwrap()).unwrap_err();
    report(json!({
        "outcomes": outcomes,
        "closed": [closed.exit.map(|exit| exit.to_string()), Some(closed.step.to_string())],
        "missing": refusal(&missing),
    }));
}

/// Ignores SIGCHLD and starts a program that is missing with a hook set, which std answers with a
/// panic.
pub(crate) fn sigchld_hook(_: &[OsString]) {
    c::ignore_signal(c::SIGCHLD);
    let mut command = Command::new("landline-no-such-program");
    c::detach(&mut command, false);
    report(refusal(&Options::new().spawn_command(command).unwrap_err()));
}

/// Reaps every child on a thread of its own, for N children that die and N that are closed.
pub(crate) fn reaper(args: &[OsString]) {
    thread::spawn(|| {
        loop {
            if c::reap_any(true).is_none() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let (mut died, mut closed) = (Vec::new(), Vec::new());
    for _ in 0..number(&args[0]) {
        let server = Connection::spawn(&peer("serve")).unwrap();
        died.push(died_of(server.request("exit", json!({"code": 3}))));
        let server = Connection::spawn(&peer("serve")).unwrap();
        server.request::<Value>("echo", ()).unwrap();
        closed.push(server.close().exit.unwrap().to_string());
    }
    report(json!({"died": died, "closed": closed}));
}

/// FILE GATE: starts a recorder, says so, and lives on.
pub(crate) fn killed(args: &[OsString]) {
    let recorder = peer("records").with_args(args).unwrap();
    let server = Connection::spawn(&recorder).unwrap();
    report(json!({"pid": server.pid()}));
    linger();
}

/// MODE: has a server write to its stderr.
pub(crate) fn stderr(args: &[OsString]) {
    let mode = match args[0].to_str() {
        Some("inherit") => Stderr::Inherit,
        Some("discard") => Stderr::Discard,
        _ => Stderr::Capture,
    };
    let server = Options::new().stderr(mode).spawn(&peer("serve")).unwrap();
    server
        .request::<Value>("lines", json!({"count": 2}))
        .unwrap();
    let end = server.close();
    let tail = String::from_utf8(server.stderr_tail()).unwrap();
    report(json!({"tail": tail, "exit": end.exit.map(|exit| exit.to_string())}));
}

fn peer(role: &str) -> ChildSpec {
    ChildSpec::new(env::current_exe().unwrap())
        .unwrap()
        .with_arg(role)
        .unwrap()
}

fn number(arg: &OsStr) -> u64 {
    arg.to_str().unwrap().parse().unwrap()
}

fn report(value: Value) {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}").and_then(|()| out.flush()).unwrap();
}

fn died_of(result: Result<Value, Error>) -> String {
    let error = result.unwrap_err();
    error
        .closed()
        .unwrap_or_else(|| panic!("{error}"))
        .to_string()
}

/// The kind of a failed start, its text, and that of its source.
fn refusal(error: &SpawnError) -> Value {
    let kind = match error {
        SpawnError::ProgramNotFound { .. } => "ProgramNotFound",
        SpawnError::NoResources { .. } => "NoResources",
        _ => "another",
    };
    json!({"kind": kind, "text": error.to_string(), "source": error.source().map(ToString::to_string)})
}

/// Threads and descriptors of this process, once they stay the same.
fn settled() -> [usize; 2] {
    eventually_equal(|| [count("/proc/self/task"), count("/proc/self/fd")])
}

fn count(dir: &str) -> usize {
    fs::read_dir(Path::new(dir)).unwrap().count()
}

/// Looks until the same is seen twice, a little apart.
fn eventually_equal<T: PartialEq>(look: impl Fn() -> T) -> T {
    let start = Instant::now();
    let mut last = look();
    loop {
        thread::sleep(Duration::from_millis(100));
        let next = look();
        if next == last || start.elapsed() > Duration::from_secs(30) {
            return next;
        }
        last = next;
    }
}

/// How often each thread of the library gave up its processor to wait, by thread; and whether all
/// of them sleep.
fn switches() -> (Vec<(String, u64)>, bool) {
    let threads = fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut all_asleep = true;
    let mut switches: Vec<_> = threads
        .map(|thread| {
            let name = fs::read_to_string(thread.join("comm"))
                .unwrap()
                .trim()
                .to_owned();
            let status = fs::read_to_string(thread.join("status")).unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            all_asleep &= !name.starts_with("landline-")
                || name == "landline-peer"
                || status.contains("State:\tS");
            (name, line.unwrap().trim().parse().unwrap())
        })
        .filter(|(name, _): &(String, u64)| {
            name.starts_with("landline-") && name != "landline-peer"
        })
        .collect();
    switches.sort();
    (switches, all_asleep)
}

/// Whether this process has any child, zombies included.
fn has_children() -> bool {
    c::reap_any(false).is_some()
}

// For what a thread needs beside its stack.
const SLACK: u64 = 1 << 20;
