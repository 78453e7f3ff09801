//! Connecting: the era of a server, whatever it makes of the probe.

use std::net::Shutdown;
use std::time::Duration;

use landline::mcp::{Client, Era, Options, Revision};
use serde_json::{Value, json};

use super::server::{
    connect, during, greet_legacy, legacy, modern, presentation, probed, refusal, refuse,
};
use crate::support::Script;

fn options() -> Options {
    Options::new("test", "1")
}

/// Soon, for what is to run out.
pub(super) const SOON: Duration = Duration::from_millis(50);

/// Connects to a server that the greeting of its era follows.
pub(super) fn connected(
    options: &Options,
    greet: impl FnOnce(&mut Script) + Send,
) -> (Client, Script) {
    let (client, script) = connect(options, greet);
    (client.unwrap(), script)
}

/// Refuses a request in the way of modern servers.
pub(super) fn refuse_version(script: &mut Script, request: &Value, supported: Value) {
    let data = json!({"supported": supported, "requested": "x"});
    let error = json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
    script.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
}

pub(super) fn version_of(request: &Value) -> &str {
    let meta = &request["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"]
        .as_str()
        .unwrap()
}

#[test]
fn c042_the_probe_comes_first_in_the_preferred_version() {
    let (client, script) = connected(&options(), |script| {
        let line = script.line().unwrap();
        let probe: Value = serde_json::from_str(&line).unwrap();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        assert_eq!(
            probe,
            json!({
                "jsonrpc": "2.0",
                "id": probe["id"],
                "method": "server/discover",
                "params": {"_meta": meta},
            })
        );
        assert!(probe["id"].is_u64());
        script.answer(&probe, presentation(json!({})));
    });
    assert_eq!(client.server().era(), Era::Modern);
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c043_a_server_that_answers_the_probe_is_modern_and_is_not_greeted() {
    let (client, mut script) = modern(&options(), json!({"tools": {}}));
    assert_eq!(client.server().era(), Era::Modern);
    assert_eq!(client.server().revision(), Revision::V2026_07_28);
    assert_eq!(
        client.server().implementation().unwrap().name().unwrap(),
        "script"
    );
    let tools = during(
        || client.tools(),
        || {
            let list = script.recv();
            assert_eq!(list["method"], "tools/list");
            script.answer(&list, json!({"tools": [{"name": "a", "inputSchema": {}}]}));
        },
    );
    assert_eq!(tools.unwrap()[0].name(), "a");
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn a_modern_server_need_not_name_itself_and_may_do_so_at_the_top() {
    let bare = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
    let (client, _script) = connected(&options(), |script| {
        let probe = probed(script);
        script.answer(&probe, bare);
    });
    assert!(client.server().implementation().is_none());
    assert!(client.server().oddities().is_empty());

    let top = json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": {},
        "instructions": "be kind",
        "serverInfo": {"name": "candidate", "version": "2"},
    });
    let (client, _script) = connected(&options(), |script| {
        let probe = probed(script);
        script.answer(&probe, top);
    });
    let named = client.server().implementation().unwrap();
    assert_eq!(named.name().unwrap(), "candidate");
    assert_eq!(client.server().instructions().unwrap(), "be kind");
}

#[test]
fn the_version_is_chosen_by_the_clients_preference() {
    let options = options().modern_versions(["2027-01-01", "2026-07-28", "2026-01-01"]);
    let (client, _script) = connected(&options, |script| {
        let probe = probed(script);
        let versions = ["2025-11-25", "2026-01-01", "2026-07-28", "2028-01-01"];
        let result = json!({"supportedVersions": versions, "capabilities": {}});
        script.answer(&probe, result);
    });
    assert_eq!(client.server().version(), "2026-07-28");
}

#[test]
fn a_version_newer_than_the_library_is_spoken_by_the_newest_rules() {
    let options = options().modern_versions(["2027-01-01", "2026-07-28"]);
    let (client, mut script) = connected(&options, |script| {
        let probe = probed(script);
        let result = json!({"supportedVersions": ["2027-01-01"], "capabilities": {"tools": {}}});
        script.answer(&probe, result);
    });
    assert_eq!(client.server().version(), "2027-01-01");
    assert_eq!(client.server().revision(), Revision::V2026_07_28);
    let tools = during(
        || client.tools(),
        || {
            let list = script.recv();
            assert_eq!(version_of(&list), "2027-01-01");
            script.answer(&list, json!({"tools": []}));
        },
    );
    assert!(tools.unwrap().is_empty());
}

#[test]
fn c044_a_refused_version_is_replaced_by_one_of_both_and_nobody_is_greeted() {
    let options = options().modern_versions(["2027-01-01", "2026-07-28"]);
    let (client, script) = connected(&options, |script| {
        let first = probed(script);
        assert_eq!(version_of(&first), "2027-01-01");
        refuse_version(script, &first, json!(["2026-07-28"]));
        let second = probed(script);
        assert_eq!(version_of(&second), "2026-07-28");
        assert_ne!(first["id"], second["id"]);
        script.answer(&second, presentation(json!({})));
    });
    assert_eq!(client.server().version(), "2026-07-28");
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c044_a_server_that_refuses_what_it_names_is_asked_once_in_each_version() {
    let options = options().modern_versions(["2027-01-01", "2026-07-28"]);
    let error = refusal(&options, |script| {
        for version in ["2027-01-01", "2026-07-28"] {
            let probe = probed(script);
            assert_eq!(version_of(&probe), version);
            refuse_version(script, &probe, json!(["2027-01-01", "2026-07-28"]));
        }
    });
    assert_eq!(
        error.to_string(),
        "cannot connect: there is no common version; the server speaks 2027-01-01, 2026-07-28, \
         this client 2027-01-01, 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"
    );
}

#[test]
fn other_modern_errors_of_the_probe_are_told_and_nobody_is_greeted() {
    for code in [-32020, -32021] {
        let error = refusal(&options(), |script| {
            let probe = probed(script);
            let data = json!({"requiredCapabilities": {"roots": {}}});
            let error = json!({"code": code, "message": "not like this", "data": data});
            script.send(json!({"jsonrpc": "2.0", "id": probe["id"], "error": error}));
        });
        let rpc = error.failure().unwrap().rpc().unwrap();
        assert_eq!((rpc.code, &*rpc.message), (code, "not like this"));
        let data = rpc.data.as_ref().unwrap().get();
        assert_eq!(data, r#"{"requiredCapabilities":{"roots":{}}}"#);
    }
}

#[test]
fn c045_a_server_that_refuses_the_probe_is_greeted() {
    let (client, script) = legacy(&options(), "2025-11-25", json!({"tools": {}}));
    assert_eq!(client.server().era(), Era::Legacy);
    assert_eq!(client.server().version(), "2025-11-25");
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c045_whatever_else_a_server_makes_of_the_probe_it_is_greeted() {
    let codes = [
        -32700,
        -32601,
        -32602,
        -32600,
        -32603,
        -32000,
        -32001,
        -32002,
        -32003,
        -32004,
        -32019,
        -32022,
        -32023,
        -32042,
        -32099,
        -1,
        0,
        1,
        42,
        404,
        1_i64 << 40,
    ];
    let errors = codes.map(|code| json!({"id": 0, "error": {"code": code, "message": "no"}}));
    let data = |data: Value| json!({"code": -32022, "message": "no", "data": data});
    let others = [
        // A version refused without saying which are not.
        json!({"id": 0, "error": data(json!(null))}),
        json!({"id": 0, "error": data(json!({"supported": "2026-07-28"}))}),
        // The request was not understood so far as to have an id.
        json!({"id": null, "error": {"code": -32600, "message": "no"}}),
        json!({"error": {"code": -32700, "message": "no"}}),
        json!({"id": null, "error": {"code": -32601, "message": "no"}}),
        // Errors and results that are none.
        json!({"id": 0, "error": "no"}),
        json!({"id": 0, "error": {"message": "no"}}),
        json!({"id": 0, "error": {"code": "ERR", "message": "no"}}),
        json!({"id": 0, "error": null}),
        json!({"id": 0}),
        json!({"id": 0, "result": {}}),
        json!({"id": 0, "result": null}),
        json!({"id": 0, "result": []}),
        json!({"id": 0, "result": "no"}),
        json!({"id": 0, "result": {"supportedVersions": ["2026-07-28"]}}),
        json!({"id": 0, "result": {"supportedVersions": "2026-07-28", "capabilities": {}}}),
        json!({"id": 0, "result": {"supportedVersions": ["2026-07-28"], "capabilities": []}}),
        json!({"id": 0, "result": {"error": "Unknown method"}}),
    ];
    for mut answer in errors.into_iter().chain(others) {
        answer["jsonrpc"] = json!("2.0");
        let (client, script) = connected(&options(), |script| {
            let probe = probed(script);
            if answer["id"] == 0 {
                answer["id"] = probe["id"].clone();
            }
            script.send(answer.clone());
            let initialize = script.recv();
            assert_eq!(initialize["method"], "initialize", "{answer}");
            assert_eq!(
                initialize["params"]["protocolVersion"], "2025-11-25",
                "{answer}"
            );
            assert_ne!(initialize["id"], probe["id"], "{answer}");
            agree(script, &initialize);
        });
        assert_eq!(client.server().era(), Era::Legacy, "{answer}");
        // A close need not wait for a server that has ended.
        script.output.shutdown(Shutdown::Write).unwrap();
        drop(client);
        assert_eq!(script.rest(), "", "{answer}");
    }
}

#[test]
fn c045_an_answer_to_the_probe_that_cannot_be_read_is_one_of_a_legacy_server() {
    let broken = r#","result":{"supportedVersions":["2026-07-28"],"capabilities":}}"#;
    let large = format!(r#","result":{{"x":"{}"}}}}"#, "x".repeat(2000));
    let transport = landline::Options::new().frame_limit(1000);
    for rest in [broken, &large] {
        let options = options().transport(transport.clone());
        let (client, _script) = connected(&options, |script| {
            let id = &probed(script)["id"];
            script.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}{rest}\n"));
            let initialize = script.recv();
            agree(script, &initialize);
        });
        assert_eq!(client.server().era(), Era::Legacy);
    }
}

/// Agrees on the version that a greeting offers.
pub(super) fn agree(script: &mut Script, initialize: &Value) {
    assert_eq!(initialize["method"], "initialize");
    let version = &initialize["params"]["protocolVersion"];
    let server = json!({"name": "script", "version": "1"});
    let result = json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": server,
    });
    script.answer(initialize, result);
    assert_eq!(script.recv()["method"], "notifications/initialized");
}

#[test]
fn c046_a_server_that_does_not_answer_the_probe_is_greeted_on_the_same_streams() {
    let options = options().probe_timeout(SOON);
    let (client, script) = connected(&options, |script| {
        let probe = probed(script);
        // The next word is the greeting: a probe is not cancelled.
        let initialize = script.recv();
        assert_ne!(initialize["id"], probe["id"]);
        agree(script, &initialize);
    });
    assert_eq!(client.server().era(), Era::Legacy);
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c047_the_era_is_found_once() {
    let (client, mut script) = modern(&options(), json!({"tools": {}}));
    during(
        || {
            for _ in 0..10 {
                client.tools().unwrap();
            }
        },
        || {
            for _ in 0..10 {
                let list = script.recv();
                assert_eq!(list["method"], "tools/list");
                script.answer(&list, json!({"tools": []}));
            }
        },
    );
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c048_a_server_remembered_as_legacy_is_greeted_without_a_probe() {
    let options = options().remembered(Era::Legacy);
    let (client, script) = connected(&options, |script| {
        let initialize = script.recv();
        agree(script, &initialize);
    });
    assert_eq!(client.server().era(), Era::Legacy);
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c048_a_server_remembered_as_legacy_that_is_modern_is_found_out() {
    let options = options().remembered(Era::Legacy);
    for code in [-32601, -32602, -32000] {
        let (client, script) = connected(&options, |script| {
            let initialize = script.recv();
            assert_eq!(initialize["method"], "initialize");
            refuse(script, &initialize, code);
            let probe = probed(script);
            script.answer(&probe, presentation(json!({})));
        });
        assert_eq!(client.server().era(), Era::Modern);
        drop(client);
        assert_eq!(script.rest(), "");
    }
    let (client, _script) = connected(&options, |script| {
        let initialize = script.recv();
        refuse_version(script, &initialize, json!(["2026-07-28"]));
        let probe = probed(script);
        script.answer(&probe, presentation(json!({})));
    });
    assert_eq!(client.server().era(), Era::Modern);
}

#[test]
fn c048_a_server_remembered_as_modern_that_is_legacy_is_found_out() {
    let options = options().remembered(Era::Modern);
    let (client, _script) = connected(&options, |script| {
        greet_legacy(script, "2025-06-18", json!({}));
    });
    assert_eq!(client.server().revision(), Revision::V2025_06_18);
}

#[test]
fn c048_a_server_remembered_as_legacy_that_refuses_both_is_told_by_the_greeting() {
    let error = refusal(&options().remembered(Era::Legacy), |script| {
        let initialize = script.recv();
        refuse(script, &initialize, -32603);
        let probe = probed(script);
        refuse(script, &probe, -32601);
    });
    assert_eq!(
        error.to_string(),
        "cannot connect: `initialize` was refused: refused (code -32603); \
         `server/discover`: refused: refused (code -32601)"
    );
}

#[test]
fn a_pinned_legacy_era_is_greeted_at_once_and_may_agree_on_any_of_its_revisions() {
    let (client, _script) = connected(&options().era(Era::Legacy), |script| {
        let initialize = script.recv();
        assert_eq!(initialize["method"], "initialize");
        assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
        let result = json!({"protocolVersion": "2024-11-05", "capabilities": {}});
        script.answer(&initialize, result);
        assert_eq!(script.recv()["method"], "notifications/initialized");
    });
    assert_eq!(client.server().revision(), Revision::V2024_11_05);
}

#[test]
fn a_pinned_revision_is_offered_alone() {
    for revision in Revision::ALL {
        let options = options().revision(revision);
        let (client, script) = connected(&options, |script| {
            if revision.era() == Era::Modern {
                let probe = probed(script);
                assert_eq!(version_of(&probe), revision.as_str());
                return script.answer(&probe, presentation(json!({})));
            }
            let initialize = script.recv();
            assert_eq!(initialize["params"]["protocolVersion"], revision.as_str());
            agree(script, &initialize);
        });
        assert_eq!(client.server().revision(), revision);
        drop(client);
        assert_eq!(script.rest(), "");
    }
}

#[test]
fn a_named_legacy_version_is_greeted_in_where_the_caller_accepts_it() {
    let options = options().accept_named_legacy();
    let greeted = |script: &mut Script| {
        let initialize = script.recv();
        assert_eq!(initialize["params"]["protocolVersion"], "2025-06-18");
        agree(script, &initialize);
    };
    let (client, _script) = connected(&options, |script| {
        let probe = probed(script);
        let versions = ["2024-10-07", "2025-03-26", "2025-06-18"];
        let result = json!({"supportedVersions": versions, "capabilities": {}});
        script.answer(&probe, result);
        greeted(script);
    });
    assert_eq!(client.server().revision(), Revision::V2025_06_18);
    let (client, _script) = connected(&options, |script| {
        let probe = probed(script);
        refuse_version(script, &probe, json!(["2025-06-18"]));
        greeted(script);
    });
    assert_eq!(client.server().revision(), Revision::V2025_06_18);
}
