//! Answers to the probe that come after its limit, when the greeting is on its way or over.

use std::thread;
use std::time::Duration;

use landline::mcp::{Era, Options};
use serde_json::json;

use super::connecting::{SOON, agree, connected, refuse_version, version_of};
use super::server::{during, presentation, probed, refuse};
use crate::support::HANG;

/// A limit that is to run out once, and within which an answer comes after that.
const LATER: Duration = Duration::from_secs(1);

fn options() -> Options {
    Options::new("test", "1")
}

#[test]
fn c050_a_late_answer_to_the_probe_counts_when_the_greeting_fails() {
    let options = options().probe_timeout(LATER);
    let discovered = || presentation(json!({"tools": {}}));
    // In the order in which it was asked, and in the other one.
    for probe_first in [true, false] {
        let (client, script) = connected(&options, |script| {
            let probe = probed(script);
            let initialize = script.recv();
            if probe_first {
                script.answer(&probe, discovered());
            }
            refuse(script, &initialize, -32601);
            if !probe_first {
                script.answer(&probe, discovered());
            }
        });
        assert_eq!(client.server().era(), Era::Modern);
        drop(client);
        assert_eq!(script.rest(), "");
    }
}

#[test]
fn c050_a_late_answer_to_the_probe_counts_when_the_greeting_is_not_answered() {
    let (client, script) = connected(&options().probe_timeout(SOON), |script| {
        let probe = probed(script);
        assert_eq!(script.recv()["method"], "initialize");
        script.answer(&probe, presentation(json!({})));
    });
    assert_eq!(client.server().era(), Era::Modern);
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c050_a_late_refusal_of_the_version_is_answered_with_another_one() {
    let options = options()
        .modern_versions(["2027-01-01", "2026-07-28"])
        .probe_timeout(LATER);
    let (client, script) = connected(&options, |script| {
        let probe = probed(script);
        let initialize = script.recv();
        refuse_version(script, &probe, json!(["2026-07-28"]));
        refuse(script, &initialize, -32601);
        let second = probed(script);
        assert_eq!(version_of(&second), "2026-07-28");
        script.answer(&second, presentation(json!({})));
    });
    assert_eq!(client.server().version(), "2026-07-28");
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c050_a_greeting_refused_in_the_modern_way_is_followed_by_a_probe() {
    let (client, script) = connected(&options().probe_timeout(LATER), |script| {
        let unanswered = probed(script);
        let initialize = script.recv();
        refuse_version(script, &initialize, json!(["2026-07-28"]));
        let probe = probed(script);
        assert_ne!(probe["id"], unanswered["id"]);
        script.answer(&probe, presentation(json!({})));
    });
    assert_eq!(client.server().era(), Era::Modern);
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c050_a_greeting_that_succeeds_keeps_the_server_legacy() {
    let (client, script) = connected(&options().probe_timeout(LATER), |script| {
        let probe = probed(script);
        let initialize = script.recv();
        script.answer(&probe, presentation(json!({})));
        agree(script, &initialize);
    });
    assert_eq!(client.server().era(), Era::Legacy);
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn a_late_refusal_of_the_probe_leaves_the_greeting_all_its_time() {
    // A slow start, as of a container: both are read when it is over, and answered in turn.
    let (client, script) = connected(&options().probe_timeout(SOON), |script| {
        let probe = probed(script);
        let initialize = script.recv();
        refuse(script, &probe, -32601);
        thread::sleep(SOON * 6);
        agree(script, &initialize);
    });
    assert_eq!(client.server().era(), Era::Legacy);
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c052_an_answer_to_the_probe_after_the_handshake_is_ignored() {
    let (client, mut script) = connected(&options().probe_timeout(SOON), |script| {
        let probe = probed(script);
        let initialize = script.recv();
        agree(script, &initialize);
        script.answer(&probe, presentation(json!({})));
    });
    let tools = during(
        || client.tools(),
        || {
            let list = script.recv();
            assert_eq!(list["method"], "tools/list");
            assert!(list["params"].is_null(), "a legacy request: {list}");
            script.answer(&list, json!({"tools": []}));
        },
    );
    assert!(tools.unwrap().is_empty());
    assert_eq!(client.server().era(), Era::Legacy);
    assert_eq!(client.connection().survived().late_answers, 1);
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn a_late_answer_is_waited_for_where_the_modern_era_is_pinned() {
    let options = options().era(Era::Modern).probe_timeout(Duration::ZERO);
    let (client, _script) = connected(&options.connect_timeout(HANG), |script| {
        let probe = probed(script);
        thread::sleep(SOON);
        script.answer(&probe, presentation(json!({})));
    });
    assert_eq!(client.server().era(), Era::Modern);
}

#[test]
fn a_late_error_without_an_id_leaves_the_greeting_alone() {
    let (client, script) = connected(&options().probe_timeout(SOON), |script| {
        probed(script);
        let initialize = script.recv();
        // It may be for the probe as well.
        let error = json!({"code": -32600, "message": "what?"});
        script.send(json!({"jsonrpc": "2.0", "id": null, "error": error}));
        agree(script, &initialize);
    });
    assert_eq!(client.server().era(), Era::Legacy);
    assert_eq!(client.connection().survived().unknown_answers, 1);
    drop(client);
    assert_eq!(script.rest(), "");
}
