//! Signs of life: the ping of the legacy era, and the keep-alive.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use landline::mcp::{Client, Error, Options};
use landline::{Cause, Delivery};
use serde_json::json;

use super::server::{LEGACY, during, legacy, modern, refuse};
use crate::support::{HANG, Script, eventually, guarded};

fn options() -> Options {
    Options::new("test", "1")
}

#[test]
fn c115_a_ping_is_of_the_legacy_era_alone() {
    for revision in LEGACY {
        let (client, mut script) = legacy(&options(), revision, json!({}));
        let pong = during(
            || client.ping(),
            || {
                let ping = script.recv();
                assert_eq!(ping["method"], "ping");
                assert_eq!(ping.get("params"), None);
                script.answer(&ping, json!({}));
            },
        );
        pong.unwrap();
    }
    let (client, script) = modern(&options(), json!({}));
    let error = client.ping().unwrap_err();
    assert_eq!(error.to_string(), "revision 2026-07-28 has no `ping`");
    assert_eq!(error.delivery(), Delivery::NotSent);
    drop(client);
    assert_eq!(script.rest(), "");
}

const INTERVAL: Duration = Duration::from_millis(20);

#[test]
fn c115_the_keep_alive_pings_and_a_missed_answer_ends_the_connection_with_that_reason() {
    let limit = Duration::from_secs(2);
    let (closed, closing) = mpsc::channel();
    let options = options()
        .keep_alive(INTERVAL)
        .timeout_for("ping", limit)
        .on_closed(move |why| closed.send(why.to_string()).unwrap());
    let (client, mut script) = legacy(&options, "2025-11-25", json!({"tools": {}}));
    for round in 0..5 {
        let ping = script.recv();
        assert_eq!(ping["method"], "ping");
        // A refusal is a sign of life as well.
        match round % 2 {
            0 => script.answer(&ping, json!({})),
            _ => refuse(&mut script, &ping, -32601),
        }
    }
    assert_eq!(script.recv()["method"], "ping");
    // Not answered. A caller that waits learns why it has no answer.
    let error = during(|| client.call_tool("t", ()).unwrap_err(), || {});
    assert!(error.is_closed(), "{error}");
    let Error::Call(error) = &error else {
        panic!("{error}")
    };
    let reason = "no answer to the keep-alive `ping` within 2s";
    let cause = &error.closed().unwrap().cause;
    assert!(
        matches!(cause, Cause::GivenUp(why) if why == reason),
        "{cause:?}"
    );
    let words = format!("the connection was closed on this side: {reason}");
    assert_eq!(closing.recv_timeout(HANG).unwrap(), words);
    let later = client.ping().unwrap_err();
    assert_eq!(later.to_string(), format!("`ping` was not sent: {words}"));
    // The end was told to the server by that of its input.
    drop(client);
    assert!(script.rest().contains("tools/call"));
}

#[test]
fn c115_the_keep_alive_is_off_unless_it_was_asked_for() {
    let never = [options(), options().keep_alive(Duration::ZERO)];
    for options in never {
        let (client, script) = legacy(&options, "2025-11-25", json!({}));
        thread::sleep(INTERVAL * 5);
        drop(client);
        assert_eq!(script.rest(), "");
    }
    let (client, script) = modern(&options().keep_alive(INTERVAL), json!({}));
    thread::sleep(INTERVAL * 5);
    drop(client);
    assert_eq!(script.rest(), "", "a modern server knows no ping");
}

#[test]
fn c115_the_keep_alive_ends_with_the_connection_however_that_ends() {
    // Ends it, and gives back what is to live on.
    type End = fn(Client, Script) -> Option<(Client, Script)>;
    let ends: [End; 3] = [
        |client, script| {
            drop(client);
            drop(script);
            None
        },
        |client, script| {
            client.close();
            Some((client, script))
        },
        |client, mut script| {
            script.output.shutdown(std::net::Shutdown::Both).unwrap();
            assert_eq!(script.line(), None);
            Some((client, script))
        },
    ];
    for end in ends {
        let before = alive();
        let transport = landline::Options::new().close_waits(Duration::ZERO, Duration::ZERO);
        let options = options()
            .transport(transport)
            .keep_alive(Duration::from_secs(3600));
        let (client, script) = legacy(&options, "2025-11-25", json!({}));
        let mut started = Vec::new();
        eventually("its thread has its name", || {
            started = alive();
            started.retain(|thread| !before.contains(thread));
            !started.is_empty()
        });
        let left = end(client, script);
        // Those of other tests may be among them, and end with these.
        eventually("they end", || {
            let alive = alive();
            !started.iter().any(|thread| alive.contains(thread))
        });
        drop(left);
    }
}

/// The threads of this process that keep connections alive.
fn alive() -> Vec<std::ffi::OsString> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let threads = threads.filter_map(|thread| {
        let thread = thread.ok()?;
        let name = std::fs::read_to_string(thread.path().join("comm")).ok()?;
        (name.trim() == "landline-alive").then(|| thread.file_name())
    });
    threads.collect()
}

#[test]
fn a_keep_alive_of_any_length_is_safe() {
    for interval in [Duration::MAX, Duration::MAX - Duration::from_nanos(1)] {
        guarded(move || {
            let options = options().keep_alive(interval);
            let (client, script) = legacy(&options, "2025-11-25", json!({}));
            drop(client);
            assert_eq!(script.rest(), "");
        });
    }
}
