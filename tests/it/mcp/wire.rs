//! What stands on the wire, both ways: lines, ids, arrays, and who answers whom.

use std::collections::HashSet;
use std::io::{BufRead, Write};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use landline::Delivery;
use landline::mcp::{Client, Elicited, Era, Error, Options, Revision, Root};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::server::{connect, during, legacy, modern, probed, refuse};
use crate::process::AT_ONCE;
use crate::support::{Script, guarded};

fn options() -> Options {
    Options::new("test", "1")
}

/// A client and its server, by revision.
fn of(revision: Revision, options: &Options) -> (Client, Script) {
    let capabilities = json!({"tools": {}});
    let options = options.clone().revision(revision);
    match revision.era() {
        Era::Modern => modern(&options, capabilities),
        _ => legacy(&options, revision.as_str(), capabilities),
    }
}

/// One of each era.
const ERAS: [Revision; 2] = [Revision::V2026_07_28, Revision::V2025_11_25];

/// Lists the tools, which shows that the connection lives, and gives what was written before.
fn lives(client: &Client, script: &mut Script) -> Vec<Value> {
    let mut before = Vec::new();
    let tools = during(
        || client.tools(),
        || {
            let list = loop {
                match script.recv() {
                    message if message["method"] == "tools/list" => break message,
                    message => before.push(message),
                }
            };
            script.answer(
                &list,
                json!({"tools": [{"name": "alive", "inputSchema": {}}]}),
            );
        },
    );
    assert_eq!(tools.unwrap()[0].name(), "alive");
    before
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[test]
fn c001_a_message_is_one_line_whatever_stands_in_it() {
    let arguments = json!({"text": "a\nb\r\nc\u{2028}d\u{2029}e\u{85}f", "k\ney": null});
    // Text of the caller's own making may be laid out over lines.
    let raw = RawValue::from_string("{\n  \"text\": [1,\n2]\r\n}".into()).unwrap();
    for revision in ERAS {
        let (client, mut script) = of(revision, &options());
        let result = during(
            || client.call_tool("say", &arguments),
            || {
                let line = script.line().unwrap();
                assert_eq!(line.find(['\n', '\r']), Some(line.len() - 1));
                let call: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(call["params"]["arguments"], arguments);
                script.answer(&call, said("first"));
            },
        );
        assert_eq!(result.unwrap().all_text(), "first");
        let result = during(
            || client.call_tool("say", &raw),
            || {
                let line = script.line().unwrap();
                assert_eq!(line.find(['\n', '\r']), Some(line.len() - 1));
                let call: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(call["params"]["arguments"], json!({"text": [1, 2]}));
                script.answer(&call, said("second"));
            },
        );
        assert_eq!(result.unwrap().all_text(), "second");
    }
}

#[test]
fn c002_text_is_utf8_without_a_mark_or_a_header() {
    let (client, _script) = connect(&options().title("Prüfer 🦀"), |script| {
        let line = script.line().unwrap();
        assert!(line.starts_with(r#"{"jsonrpc":"2.0","#), "{line}");
        assert!(line.contains(r#""title":"Prüfer 🦀""#), "{line}");
        let probe = serde_json::from_str(&line).unwrap();
        refuse(script, &probe, -32601);
        let line = script.line().unwrap();
        assert!(line.starts_with(r#"{"jsonrpc":"2.0","#), "{line}");
        assert!(line.contains(r#""title":"Prüfer 🦀""#), "{line}");
        let initialize = serde_json::from_str(&line).unwrap();
        script.answer(&initialize, json!({"protocolVersion": "2025-11-25"}));
    });
    client.unwrap();
}

#[test]
fn c005_no_id_is_used_twice() {
    guarded(|| {
        let mut seen = HashSet::new();
        let (client, mut script) = connect(&options(), |script| {
            let probe = probed(script);
            seen.insert(probe["id"].as_u64().unwrap());
            refuse(script, &probe, -32601);
            let initialize = script.recv();
            assert!(seen.insert(initialize["id"].as_u64().unwrap()));
            script.answer(&initialize, json!({"protocolVersion": "2025-11-25"}));
            script.recv();
        });
        let client = client.unwrap();
        during(
            || (0..1000).for_each(|_| client.ping().unwrap()),
            || {
                for _ in 0..1000 {
                    let ping = script.recv();
                    assert!(seen.insert(ping["id"].as_u64().unwrap()), "{ping}");
                    script.answer(&ping, json!({}));
                }
            },
        );
        assert_eq!(seen.len(), 1002);
    });
}

#[test]
fn c006_calls_in_flight_and_their_retries_have_ids_of_their_own() {
    let options = options().elicit_form(|_, _| Elicited::Decline);
    let (client, mut script) = of(Revision::V2026_07_28, &options);
    let asks = json!({
        "resultType": "input_required",
        "inputRequests": {"q": {
            "method": "elicitation/create",
            "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
        }},
    });
    during(
        || {
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| client.call_tool("a", ()).unwrap());
                }
            });
        },
        || {
            let first: Vec<_> = (0..8).map(|_| script.recv()).collect();
            for call in &first {
                script.answer(call, asks.clone());
            }
            let second: Vec<_> = (0..8).map(|_| script.recv()).collect();
            for call in &second {
                assert!(call["params"]["inputResponses"].is_object(), "{call}");
                script.answer(call, said("done"));
            }
            let ids: HashSet<_> = first
                .iter()
                .chain(&second)
                .map(|call| &call["id"])
                .collect();
            assert_eq!(ids.len(), 16);
        },
    );
}

#[test]
fn c007_answers_find_their_calls_in_any_order() {
    for revision in ERAS {
        let (client, mut script) = of(revision, &options());
        during(
            || {
                thread::scope(|scope| {
                    for name in ["a", "b", "c"] {
                        let client = &client;
                        scope.spawn(move || {
                            let result = client.call_tool(name, ()).unwrap();
                            assert_eq!(result.all_text(), name);
                        });
                    }
                });
            },
            || {
                let calls: Vec<_> = (0..3).map(|_| script.recv()).collect();
                for call in calls.iter().rev() {
                    script.answer(call, said(call["params"]["name"].as_str().unwrap()));
                }
            },
        );
    }
}

#[test]
fn c008_an_id_in_another_form_is_overlooked_and_counted() {
    for revision in ERAS {
        let (client, mut script) = of(revision, &options());
        let result = during(
            || client.call_tool("a", ()),
            || {
                let call = script.recv();
                let id = call["id"].to_string();
                script.send(json!({"jsonrpc": "2.0", "id": id, "result": said("yes")}));
            },
        );
        assert_eq!(result.unwrap().all_text(), "yes");
        assert_eq!(client.connection().survived().deviations, 1);
    }
}

#[test]
fn c009_answers_to_nothing_do_no_harm() {
    for revision in ERAS {
        let (client, mut script) = of(revision, &options());
        let result = during(
            || client.call_tool("a", ()),
            || {
                let call = script.recv();
                // While a call waits, which is not to be ended by these.
                script.send(json!({"jsonrpc": "2.0", "id": 4711, "result": {}}));
                script.send(json!({"jsonrpc": "2.0", "id": "x", "result": {}}));
                let error = json!({"code": -32700, "message": "Parse error"});
                script.send(json!({"jsonrpc": "2.0", "id": null, "error": error}));
                script.send(json!({"jsonrpc": "2.0", "error": error}));
                script.answer(&call, said("here"));
            },
        );
        assert_eq!(result.unwrap().all_text(), "here");
        assert_eq!(client.connection().survived().unknown_answers, 4);
        assert!(lives(&client, &mut script).is_empty());
    }
}

#[test]
fn c010_what_is_unknown_is_ignored() {
    for revision in ERAS {
        let (client, mut script) = of(revision, &options());
        script.send(json!({"jsonrpc": "2.0", "method": "notifications/zzz", "params": {"a": 1}}));
        script.send(json!({"jsonrpc": "2.0", "method": "zzz", "x": 1}));
        let tools = during(
            || client.tools(),
            || {
                let list = script.recv();
                assert_eq!(list["method"], "tools/list");
                let tool = json!({"name": "a", "inputSchema": {"x-y": 1}, "zzz": [1]});
                let result = json!({"tools": [tool], "zzz": {"a": null}, "_meta": {"x/y": 1}});
                let id = &list["id"];
                script.send(json!({"jsonrpc": "2.0", "id": id, "result": result, "zzz": 1}));
            },
        );
        let tools = tools.unwrap();
        assert_eq!((tools.len(), &*tools[0].name()), (1, "a"));
        assert!(
            lives(&client, &mut script).is_empty(),
            "nothing is answered"
        );
    }
}

#[test]
fn c011_banners_blank_lines_and_other_line_ends_are_survived() {
    let (client, mut script) = connect(&options(), |script| {
        script.raw("Server v1.0 starting...\n\n\r\n");
        let probe = probed(script);
        let error = r#""error":{"code":-32601,"message":"no"}"#;
        script.raw(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},{error}}}\r\n",
            probe["id"]
        ));
        script.raw(b"\xff\xfe not text\n[1, 2\n");
        let initialize = script.recv();
        assert_eq!(initialize["method"], "initialize");
        let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
        let id = &initialize["id"];
        script.raw(format!(
            "\n{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\r\n"
        ));
        assert_eq!(script.recv()["method"], "notifications/initialized");
    });
    let client = client.unwrap();
    let survived = client.connection().survived();
    assert_eq!(survived.stray_lines, 3, "{survived}");
    assert_eq!(
        survived.first_stray_lines[0].trim(),
        "Server v1.0 starting..."
    );
    assert!(lives(&client, &mut script).is_empty());
}

#[test]
fn c013_a_server_that_writes_before_it_reads_does_not_deadlock() {
    guarded(|| {
        for revision in ERAS {
            let (client, mut script) = of(revision, &options().on_log(|_, _| ()));
            let large = "x".repeat(1 << 20);
            let result = during(
                || client.call_tool("a", json!({"text": large})),
                || {
                    let params = json!({"level": "info", "data": "y".repeat(1000)});
                    let log = json!({
                        "jsonrpc": "2.0",
                        "method": "notifications/message",
                        "params": params,
                    });
                    // It has begun to write, and the server reads nothing of it.
                    assert!(!script.input.fill_buf().unwrap().is_empty());
                    for _ in 0..1100 {
                        script
                            .output
                            .write_all(format!("{log}\n").as_bytes())
                            .unwrap();
                    }
                    let call = script.recv();
                    assert_eq!(call["params"]["arguments"]["text"], large);
                    script.answer(&call, said("done"));
                },
            );
            assert_eq!(result.unwrap().all_text(), "done");
        }
    });
}

fn request(id: impl Into<Value>, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method})
}

#[test]
fn c014_a_batch_is_answered_by_one_array() {
    let options = options().roots(|_| vec![Root::new("file:///r").unwrap()]);
    let (client, mut script) = of(Revision::V2025_03_26, &options);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/zzz"});
    script.send(json!([request(1, "ping"), request("2", "ping"), note]));
    let mut answers = script.recv();
    let pong = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": {}});
    sort(&mut answers);
    assert_eq!(answers, json!([pong(json!("2")), pong(json!(1))]));
    // One that runs a handler, one that is refused.
    script.send(json!([
        request(3, "roots/list"),
        request(4, "foo/bar"),
        request(5, "ping")
    ]));
    let mut answers = script.recv();
    sort(&mut answers);
    assert_eq!(
        answers[0]["result"],
        json!({"roots": [{"uri": "file:///r"}]})
    );
    assert_eq!(answers[1]["error"]["code"], -32601);
    assert_eq!(answers[2], pong(json!(5)));
    // Nothing in it to be answered, and nothing at all.
    script.send(json!([note, note]));
    script.send(json!([]));
    assert!(script.fence(client.connection()).is_empty());
    assert_eq!(client.connection().survived().deviations, 0);
    // Answers in it.
    let result = during(
        || client.call_tool("a", ()),
        || {
            let call = script.recv();
            let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": said("in a batch")});
            script.send(json!([answer, request(6, "ping")]));
            assert_eq!(script.recv(), json!([pong(json!(6))]));
        },
    );
    assert_eq!(result.unwrap().all_text(), "in a batch");
}

fn sort(answers: &mut Value) {
    let answers = answers.as_array_mut().expect("an array");
    answers.sort_by_key(|answer| answer["id"].to_string());
}

#[test]
fn c015_the_greeting_is_in_no_batch() {
    let (client, _script) = connect(&options().revision(Revision::V2025_03_26), |script| {
        let line = script.line().unwrap();
        let initialize: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(initialize["method"], "initialize", "{line}");
        script.answer(&initialize, json!({"protocolVersion": "2025-03-26"}));
        // Nor is what follows it.
        assert_eq!(script.recv()["method"], "notifications/initialized");
    });
    client.unwrap();
}

#[test]
fn c016_where_there_are_no_batches_an_array_is_unpacked_and_counted() {
    for revision in Revision::ALL {
        if revision == Revision::V2025_03_26 {
            continue;
        }
        let (client, mut script) = of(revision, &options());
        let result = during(
            || client.call_tool("a", ()),
            || {
                let call = script.recv();
                let answer =
                    json!({"jsonrpc": "2.0", "id": call["id"], "result": said("unpacked")});
                script.send(json!([answer, request("p", "ping")]));
            },
        );
        assert_eq!(result.unwrap().all_text(), "unpacked");
        let written = script.fence(client.connection());
        let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}});
        // A modern client writes no answers.
        let expected = if revision.era() == Era::Modern {
            vec![]
        } else {
            vec![pong]
        };
        assert_eq!(written, expected, "{revision}");
        assert_eq!(client.connection().survived().deviations, 1);
        assert!(lives(&client, &mut script).is_empty());
    }
}

#[test]
fn c017_every_request_of_the_server_is_answered_once_with_its_id() {
    let (started, starts) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let options = options().roots(move |_| {
        started.send(()).unwrap();
        // All of them run before any is answered.
        wait.lock().unwrap().recv().unwrap();
        vec![Root::new("file:///r").unwrap()]
    });
    let (client, mut script) = of(Revision::V2025_11_25, &options);
    let ids = [
        json!("a"),
        json!(5),
        json!("5"),
        json!(0),
        json!(-3),
        json!(""),
    ];
    for id in &ids {
        script.send(request(id.clone(), "roots/list"));
    }
    ids.iter().for_each(|_| starts.recv().unwrap());
    ids.iter().for_each(|_| go.send(()).unwrap());
    let mut answers: Vec<Value> = ids.iter().map(|_| script.recv()).collect();
    let roots = json!({"roots": [{"uri": "file:///r"}]});
    let mut expected: Vec<Value> = ids
        .iter()
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "result": roots}))
        .collect();
    for list in [&mut answers, &mut expected] {
        list.sort_by_key(|answer| answer["id"].to_string());
    }
    assert_eq!(answers, expected);
    assert!(lives(&client, &mut script).is_empty());
}

#[test]
fn c018_an_unknown_method_of_the_servers_is_refused() {
    let (client, mut script) = of(Revision::V2025_11_25, &options());
    script.send(request(9, "foo/bar"));
    let refusal = script.recv();
    assert_eq!(refusal["id"], 9);
    assert_eq!(refusal["error"]["code"], -32601);
    assert!(refusal.get("result").is_none());
    assert!(lives(&client, &mut script).is_empty());
}

#[test]
fn c019_a_modern_client_answers_nothing() {
    let (ran, runs) = mpsc::channel();
    let options = options().roots(move |_| {
        ran.send(()).unwrap();
        Vec::new()
    });
    let (client, mut script) = of(Revision::V2026_07_28, &options);
    script.send(request(1, "ping"));
    script.send(request("2", "roots/list"));
    script.send(request(3, "foo/bar"));
    script.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
    assert!(script.fence(client.connection()).is_empty());
    assert!(lives(&client, &mut script).is_empty());
    assert_eq!(client.connection().survived().unanswered_requests, 3);
    drop(client);
    assert_eq!(script.rest(), "");
    assert!(runs.try_recv().is_err(), "no handler has run");
}

#[test]
fn c020_the_servers_error_is_verbatim_and_told_from_ones_own() {
    for revision in ERAS {
        let (client, mut script) = of(revision, &options());
        let error = during(
            || client.call_tool("a", ()).unwrap_err(),
            || {
                let call = script.recv();
                let error =
                    json!({"code": -32001, "message": "Tiger\u{1b}[1m!", "data": {"a": [1]}});
                script.send(json!({"jsonrpc": "2.0", "id": call["id"], "error": error}));
            },
        );
        let rpc = error.rpc().unwrap();
        assert_eq!((rpc.code, &*rpc.message), (-32001, "Tiger\u{1b}[1m!"));
        assert_eq!(rpc.data.as_ref().unwrap().get(), r#"{"a":[1]}"#);
        assert_eq!(error.delivery(), Delivery::Answered);
        assert!(!error.is_timeout() && !error.is_closed() && !error.is_cancelled());
        assert_eq!(
            error.to_string(),
            "`tools/call` was refused: Tiger! (code -32001)"
        );
        // The server goes: no error of its own.
        let start = Instant::now();
        let error = during(
            || client.call_tool("a", ()).unwrap_err(),
            || {
                script.recv();
                script.output.shutdown(std::net::Shutdown::Write).unwrap();
            },
        );
        assert!(start.elapsed() < AT_ONCE);
        assert!(error.rpc().is_none() && error.is_closed());
        assert_eq!(error.delivery(), Delivery::MaybeRun);
    }
    // Nor is a limit.
    let (client, mut script) = of(
        Revision::V2025_11_25,
        &options().request_timeout(Duration::from_millis(50)),
    );
    let error = during(
        || client.call_tool("a", ()).unwrap_err(),
        || drop(script.recv()),
    );
    assert!(error.rpc().is_none() && error.is_timeout());
    assert!(matches!(
        error,
        Error::Call(landline::Error::Timeout { .. })
    ));
}
