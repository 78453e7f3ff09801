//! Programs that use the library, with habits of their own: each is a process of its own, and
//! prints nothing but its own words.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use landline::{Exit, Incoming, Options, ProcessGroup};
use serde_json::{Value, json};

use crate::process::{Scratch, alive, host, only_word, output, peer, serve};
use crate::support::eventually;

#[test]
fn p19_an_idle_connection_wakes_no_thread() {
    let came = host::<&str>("host_idle", []);
    assert_eq!(came["threads"], 4, "{came}");
    assert_eq!(came["before"], came["after"], "{came}");
}

#[test]
fn p19_a_queue_at_which_nobody_waits_wakes_no_thread() {
    const ALONE: &str = "LANDLINE_TEST_ALONE";
    let name = "hosts::p19_a_queue_at_which_nobody_waits_wakes_no_thread";
    if env::var_os(ALONE).is_none() {
        // In a process of its own, in which all threads of the library are this test's.
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", name]).env(ALONE, "1");
        let said = output(command);
        let words = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success(), "{words}");
        assert!(words.contains("1 passed"), "{words}");
        return;
    }
    let server = serve(&Options::new().queue_incoming());
    // A notification in the queue and a call in flight, and nobody who waits for either.
    let held = server.start("hold", ()).unwrap();
    let tell = json!({"method": "changed"});
    server.request::<Value>("tell", tell).unwrap();
    // The threads go to sleep once more after the answer; on a busy machine they may have to wait
    // for their turn to do so.
    let mut before = switches();
    eventually("they sleep", || {
        let last = std::mem::replace(&mut before, switches());
        last == before && before.iter().all(|(_, state, _)| state == "S (sleeping)")
    });
    let names: Vec<_> = before.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(
        names,
        ["landline-reader", "landline-stderr", "landline-writer"]
    );
    thread::sleep(Duration::from_secs(2));
    assert_eq!(switches(), before);

    let Some(Incoming::Notification(changed)) = server.try_next_incoming() else {
        panic!("it was in the queue");
    };
    assert_eq!(changed.method(), "changed");
    held.forget();
    assert_eq!(server.close().exit, Some(Exit::Code(0)));
}

/// The threads of the library in this process: the name of each, its state, and how often it gave
/// up its processor to wait.
fn switches() -> Vec<(String, String, u64)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let mut switches: Vec<_> = tasks
        .map(|task| {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let field = |name: &str| {
                let mut values = status.lines().filter_map(|line| line.strip_prefix(name));
                values.next().unwrap().trim().to_owned()
            };
            let count = field("voluntary_ctxt_switches:").parse().unwrap();
            (field("Name:"), field("State:"), count)
        })
        .filter(|(name, ..)| name.starts_with("landline-"))
        .collect();
    switches.sort();
    switches
}

#[test]
fn p18_a_host_with_sigpipe_at_its_default_survives_a_child_that_reads_no_more() {
    let scratch = Scratch::new();
    let came = host("host_sigpipe", [scratch.path("gate")]);
    let text = "no answer to `echo`: the peer closed its input: Broken pipe (os error 32)";
    assert_eq!(came["deaf"], text);
    // Whether the frame was still queued when the child died is a race.
    let dead = came["dead"].as_str().unwrap();
    let (opening, why) = dead.split_once(": ").unwrap();
    assert!(["no answer to `echo`", "`echo` was not sent"].contains(&opening));
    assert_eq!(why, "the process ended (signal 9)");
}

#[test]
fn p18_a_host_that_ignores_sigchld_is_told_that_the_status_is_unknown() {
    let came = host::<&str>("host_sigchld_ignored", []);
    let outcome = json!({
        "died": "the process ended (status unknown) before it sent any message",
        "step": "already ended",
    });
    assert_eq!(came["outcomes"], json!([outcome, outcome]));
    assert_eq!(came["closed"], json!(["status unknown", "stdin closed"]));
    assert_eq!(
        came["missing"],
        json!({
            "kind": "ProgramNotFound",
            "text": "cannot start landline-no-such-program: program not found",
            "source": "No such file or directory (os error 2)",
        })
    );
}

#[test]
fn a_failed_start_is_an_error_in_a_host_that_ignores_sigchld_and_sets_a_hook() {
    let said = output(peer::<&str>("host_sigchld_hook", []).to_command());
    assert_eq!(
        only_word(&said)["text"],
        "cannot start landline-no-such-program"
    );
}

#[test]
fn p18_a_host_that_reaps_every_child_is_told_the_truth_or_that_it_is_unknown() {
    let came = host("host_reaper", ["20"]);
    let [died, closed] = ["died", "closed"].map(|what| came[what].as_array().unwrap());
    assert_eq!((died.len(), closed.len()), (20, 20));
    for text in died {
        let [known, unknown] = ["exit code 3", "status unknown"]
            .map(|exit| format!("the process ended ({exit}) before it sent any message"));
        assert!(*text == known || *text == unknown, "{text}");
    }
    for text in closed {
        assert!(
            *text == "exit code 0" || *text == "status unknown",
            "{text}"
        );
    }
}

#[test]
fn a_child_leads_its_own_group_or_stays_in_its_hosts() {
    let group = |group| {
        let server = serve(&Options::new().process_group(group));
        let who: Value = server.request("who", ()).unwrap();
        assert_eq!(who["pid"], server.pid().unwrap());
        assert_eq!(server.close().exit, Some(Exit::Code(0)));
        (who["pid"].as_i64().unwrap(), who["group"].as_i64().unwrap())
    };
    let (pid, own) = group(ProcessGroup::Own);
    assert_eq!(own, pid);
    let (pid, inherited) = group(ProcessGroup::Inherit);
    assert_ne!(inherited, pid);
    assert_eq!(inherited, our_group());
}

fn our_group() -> i64 {
    // The fifth field; the second is a name that may hold anything.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap();
    fields.split_whitespace().nth(2).unwrap().parse().unwrap()
}

#[test]
fn a_child_that_shares_the_hosts_group_is_ended_and_the_host_is_not() {
    let options = Options::new()
        .process_group(ProcessGroup::Inherit)
        .close_waits(Duration::ZERO, Duration::ZERO);
    let server = options.spawn(&peer::<&str>("ignores_all", [])).unwrap();
    server.request::<Value>("echo", ()).unwrap();
    assert_eq!(server.close().exit, Some(Exit::Signal(9)));
}

#[test]
fn a_child_sees_the_end_of_a_host_that_is_killed() {
    let scratch = Scratch::new();
    let (file, gate) = (scratch.path("file"), scratch.path("gate"));
    let mut host = peer("host_killed", [&file, &gate])
        .to_command()
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut words = String::new();
    let mut stdout = BufReader::new(host.stdout.take().unwrap());
    stdout.read_line(&mut words).unwrap();
    let words: Value = serde_json::from_str(&words).unwrap();
    let child = u32::try_from(words["pid"].as_u64().unwrap()).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(alive(child));
    fs::write(gate, "").unwrap();
    eventually("the child ended", || !alive(child));
    assert_eq!(fs::read_to_string(file).unwrap(), "end");
}
