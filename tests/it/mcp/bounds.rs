//! What an MCP client holds to: limits over several requests, what it may be made to send, and
//! pins.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use landline::ChildSpec;
use landline::mcp::{CallOptions, Client, Elicited, Era, Error, Fault, Options, Revision, Stop};
use landline::{Delivery, Framing};
use serde_json::{Value, json};

use super::server::{
    answer, code, connect, during, fence, form, legacy, modern, presentation, probed, refusal,
    refuse, with,
};
use crate::support::{HANG, Script, guarded};

fn options() -> Options {
    Options::new("test", "1")
}

/// A page of tools of about so many bytes, with a cursor of its own.
fn page(script: &mut Script, n: u32, bytes: usize) {
    let list = script.recv();
    assert_eq!(list["method"], "tools/list");
    let tool = json!({"name": format!("t{n}"), "description": "x".repeat(bytes)});
    script.answer(
        &list,
        json!({"tools": [tool], "nextCursor": format!("c{n}")}),
    );
}

#[test]
fn all_pages_of_a_list_share_the_limit_of_one_call() {
    let limit = Duration::from_millis(300);
    let options = options().request_timeout(limit).page_limit(usize::MAX);
    let (client, mut script) = legacy(&options, "2025-11-25", json!({"tools": {}}));
    let (over, stop) = mpsc::channel();
    let error = during(
        || {
            let tools = client.tools();
            over.send(()).unwrap();
            tools.unwrap_err()
        },
        || {
            for n in 0.. {
                page(&mut script, n, 10);
                thread::sleep(Duration::from_millis(10));
                if stop.try_recv().is_ok() {
                    break;
                }
                // The list has ended between two pages.
                if client.connection().survived().late_answers > 0 {
                    break;
                }
            }
        },
    );
    let Error::Call(landline::Error::Timeout { detail, .. }) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(detail.after, limit);
}

#[test]
fn a_list_over_its_size_keeps_what_was_collected_and_says_so() {
    let options = options().list_limit(5000);
    let (client, mut script) = legacy(&options, "2025-11-25", json!({"tools": {}}));
    let tools = during(
        || client.tools().unwrap(),
        || (0..3).for_each(|n| page(&mut script, n, 2000)),
    );
    assert_eq!(tools.stopped(), Some(Stop::SizeLimit));
    let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["t0", "t1", "t2"]);
}

#[test]
fn a_pin_holds_whatever_is_remembered_and_in_any_order() {
    for options in [
        options().era(Era::Modern).remembered(Era::Legacy),
        options().remembered(Era::Legacy).era(Era::Modern),
        options().era(Era::Modern).remembered(Era::Modern),
    ] {
        let error = refusal(&options, |script| {
            let probe = probed(script);
            refuse(script, &probe, -32601);
        });
        let text = error.to_string();
        assert!(text.contains("speaks no modern revision"), "{text}");
    }
    let pinned = options().revision(Revision::V2025_06_18);
    for options in [
        pinned.clone().remembered(Era::Modern),
        options()
            .remembered(Era::Modern)
            .revision(Revision::V2025_06_18),
    ] {
        let (client, _script) = connect(&options, |script| {
            let hello = script.recv();
            assert_eq!(hello["params"]["protocolVersion"], "2025-06-18");
            script.answer(
                &hello,
                json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}),
            );
        });
        assert_eq!(client.unwrap().server().era(), Era::Legacy);
    }
}

#[test]
fn no_version_of_the_legacy_era_is_spoken_in_the_modern_way() {
    let options = options().modern_versions(["2025-11-25", "2026-07-28"]);
    let (client, _script) = connect(&options, |script| {
        let probe = probed(script);
        let meta = &probe["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        let mut said = presentation(json!({}));
        said["supportedVersions"] = json!(["2025-11-25", "2026-07-28"]);
        script.answer(&probe, said);
    });
    assert_eq!(client.unwrap().server().version(), "2026-07-28");
}

#[test]
fn what_the_protocol_does_not_allow_in_params_is_not_sent() {
    let capabilities = json!({"tools": {}, "prompts": {}, "completions": {}});
    for (client, mut script) in [
        legacy(&options(), "2025-11-25", capabilities.clone()),
        modern(&options(), capabilities),
    ] {
        let refused = [
            client.call_tool("t", 5).unwrap_err(),
            client.call_tool("t", [1]).unwrap_err(),
            client.get_prompt("p", json!({"a": 1})).unwrap_err(),
            client.get_prompt("p", ["a"]).unwrap_err(),
            client
                .request::<Value>("tools/call", json!({"name": "t", "requestState": "mine"}))
                .unwrap_err(),
            client
                .request::<Value>("tools/call", json!({"name": "t", "inputResponses": {}}))
                .unwrap_err(),
        ];
        for error in refused {
            assert!(matches!(error, Error::Params { .. }), "{error:?}");
            assert_eq!(error.delivery(), Delivery::NotSent);
        }
        assert_eq!(fence(&client, &mut script), Vec::<Value>::new());
        drop(script);
    }
}

#[test]
fn a_form_that_is_no_flat_object_is_not_sent() {
    let nested = json!({"a": {"b": 1}});
    let chosen = json!({"a": ["x", "y"]});
    for (filled, revision, is_sent) in [
        (&nested, "2025-11-25", false),
        (&json!({"a": null}), "2025-11-25", false),
        (&json!({"a": [1]}), "2025-11-25", false),
        (&chosen, "2025-11-25", true),
        (&chosen, "2025-06-18", false),
        (&json!({"a": "x", "b": 1.5, "c": true}), "2025-06-18", true),
    ] {
        let content = filled.clone();
        let options = options().elicit_form(move |_, _| Elicited::fill(&content).unwrap());
        let (_client, mut script) = legacy(&options, revision, json!({}));
        let answered = answer(&mut script, &form("?"));
        if is_sent {
            assert_eq!(answered["result"]["content"], *filled);
        } else {
            assert_eq!(code(&answered), -32603);
        }
        drop(script);
    }
}

#[test]
fn a_page_to_visit_without_its_id_is_malformed_in_the_revision_that_has_ids() {
    let asked = mpsc::channel();
    let options = options().elicit_url(move |_, ask| {
        asked.0.send(ask.url().into_owned()).unwrap();
        Elicited::accept()
    });
    let page = json!({
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "?", "url": "https://example.com"},
    });
    let (_client, mut script) = legacy(&options, "2025-11-25", json!({}));
    assert_eq!(code(&answer(&mut script, &page)), -32602);
    let named = with(page, json!({"elicitationId": "e"}));
    assert_eq!(
        answer(&mut script, &named)["result"],
        json!({"action": "accept"})
    );
    assert_eq!(asked.1.recv().unwrap(), "https://example.com");
    drop(script);
}

#[test]
fn a_server_that_was_remembered_wrongly_and_ends_on_the_greeting_is_started_again_and_probed() {
    let said = presentation(json!({"tools": {}}));
    let script = format!(
        "read -r line; case $line in *server/discover*) \
         echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{said}}}'; cat >/dev/null;; *) exit 3;; esac"
    );
    let spec = ChildSpec::from_argv(["sh", "-c", &script]).unwrap();
    let client = guarded(move || options().remembered(Era::Legacy).spawn(&spec).unwrap());
    assert_eq!(client.server().era(), Era::Modern);
}

#[test]
fn the_versions_that_a_server_named_are_told_though_it_refuses_the_greeting_without_a_word() {
    let error = refusal(&options().accept_named_legacy(), |script| {
        let probe = probed(script);
        let mut said = presentation(json!({}));
        said["supportedVersions"] = json!(["2025-06-18"]);
        script.answer(&probe, said);
        let hello = script.recv();
        assert_eq!(hello["params"]["protocolVersion"], "2025-06-18");
        refuse(script, &hello, -32603);
    });
    assert_eq!(error.failure().unwrap().theirs, ["2025-06-18"]);
}

#[test]
fn the_servers_words_in_an_error_have_no_escapes() {
    let (client, mut script) = modern(&options(), json!({"tools": {}}));
    let error = during(
        || client.call_tool("t", ()).unwrap_err(),
        || {
            let call = script.recv();
            let odd = json!({"k": {"method": "\u{1b}[31mred\u{7}"}});
            script.answer(
                &call,
                json!({"resultType": "input_required", "inputRequests": odd}),
            );
        },
    );
    let Error::Invalid { fault, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(matches!(fault, Fault::Undeclared(_)));
    let text = error.to_string();
    assert!(text.contains("`red`") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn lines_are_spoken_whatever_framing_the_transport_names() {
    let transport = landline::Options::new().framing(Framing::ContentLength);
    let (client, _script) = modern(&options().transport(transport), json!({}));
    assert_eq!(client.server().era(), Era::Modern);
}

#[test]
fn a_gap_in_the_notifications_is_told_in_its_place() {
    let (told, seen) = mpsc::channel();
    let (go_on, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let lost = told.clone();
    let options = options()
        .transport(landline::Options::new().notifications_limit(500))
        .on_notification(move |_, notification| {
            told.send(notification.method().to_owned()).unwrap();
            // Ends with the test.
            let _ = gate.lock().unwrap().recv_timeout(HANG);
        })
        .on_lost(move |_, count| lost.send(format!("lost {count}")).unwrap());
    let (client, mut script) = legacy(&options, "2025-11-25", json!({}));
    let note = |method: &str| json!({"jsonrpc": "2.0", "method": method});
    script.send(note("first"));
    assert_eq!(seen.recv_timeout(HANG).unwrap(), "first");
    for n in 0..50 {
        script.send(note(&format!("n{n}")));
    }
    fence(&client, &mut script);
    drop(go_on);
    let dropped = client.connection().survived().dropped_notifications;
    assert!(dropped > 0);
    assert_eq!(seen.recv_timeout(HANG).unwrap(), format!("lost {dropped}"));
    assert_eq!(seen.recv_timeout(HANG).unwrap(), format!("n{dropped}"));
    drop(script);
}

#[test]
fn a_handler_that_is_ahead_of_the_greetings_end_can_call_back() {
    let (told, called) = mpsc::channel();
    let options = options().roots(move |cx| {
        let tools = cx.tools().map(|tools| tools.len());
        told.send(tools.map_err(|error| error.to_string())).unwrap();
        Vec::new()
    });
    let (client, mut script) = connect(&options, |script| {
        let probe = probed(script);
        refuse(script, &probe, -32601);
        let hello = script.recv();
        // The question stands right behind the answer to the greeting.
        let answered = json!({"jsonrpc": "2.0", "id": hello["id"], "result": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {},
        }});
        let asked = json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"});
        script.raw(format!("{answered}\n{asked}\n"));
        assert_eq!(script.recv()["method"], "notifications/initialized");
        let list = script.recv();
        assert_eq!(list["method"], "tools/list");
        script.answer(&list, json!({"tools": [{"name": "a"}]}));
    });
    let _client: Client = client.unwrap();
    assert_eq!(called.recv_timeout(HANG).unwrap(), Ok(1));
    assert_eq!(script.recv()["result"], json!({"roots": []}));
    drop(script);
}

/// Answers one call of a tool with what it needs, or has the server ask for it.
fn ask_for_a_name(script: &mut Script, call: &Value, is_modern: bool) {
    if is_modern {
        let needs = json!({"resultType": "input_required", "inputRequests": {"k": form("?")}});
        script.answer(call, needs);
    } else {
        super::server::ask(script, "q", &form("?"));
    }
}

#[test]
fn a_call_of_a_handlers_has_its_own_limit_while_a_person_is_asked() {
    for is_modern in [false, true] {
        let (told, nested) = mpsc::channel();
        let options = options()
            .request_timeout(HANG)
            .human_timeout(Duration::MAX)
            .elicit_form(move |cx, _| {
                let brief = CallOptions::new().timeout(Duration::from_millis(50));
                let error = cx.call_tool_with("silent", (), brief).unwrap_err();
                told.send(error.is_timeout()).unwrap();
                Elicited::Decline
            });
        let capabilities = json!({"tools": {}});
        let (client, mut script) = match is_modern {
            false => legacy(&options, "2025-11-25", capabilities),
            true => modern(&options, capabilities),
        };
        let result = during(
            || client.call_tool("t", ()),
            || {
                let call = script.recv();
                ask_for_a_name(&mut script, &call, is_modern);
                let silent = script.recv();
                assert_eq!(silent["params"]["name"], "silent");
                assert!(nested.recv_timeout(HANG).unwrap());
                assert_eq!(script.recv()["method"], "notifications/cancelled");
                let answered = script.recv();
                let call = if is_modern { &answered } else { &call };
                script.answer(call, json!({"content": []}));
            },
        );
        result.unwrap();
        drop(script);
    }
}

#[test]
fn a_question_before_the_greeting_is_answered_is_refused_and_does_not_stop_the_clock() {
    let limit = Duration::from_secs(3);
    let options = options().connect_timeout(limit).elicit_form(|_, _| {
        thread::sleep(HANG);
        Elicited::Decline
    });
    let (error, script) = guarded(move || {
        connect(&options, |script| {
            let probe = probed(script);
            refuse(script, &probe, -32601);
            assert_eq!(script.recv()["method"], "initialize");
            let refused = answer(script, &form("?"));
            assert_eq!(code(&refused), -32600);
        })
    });
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("cannot connect within 3s"), "{text}");
    drop(script);
}

#[test]
fn a_server_that_has_proved_to_be_modern_is_not_greeted() {
    let versions = ["2031-01-01", "2026-07-28"];
    let unsupported = |script: &mut Script| {
        let probe = probed(script);
        script.send(json!({"jsonrpc": "2.0", "id": probe["id"], "error": {
            "code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]},
        }}));
        probed(script)
    };
    // Silence after it is waited out.
    let brief = options()
        .modern_versions(versions)
        .probe_timeout(Duration::from_millis(20));
    let (client, _script) = connect(&brief, |script| {
        let second = unsupported(script);
        thread::sleep(Duration::from_millis(100));
        script.answer(&second, presentation(json!({})));
    });
    assert_eq!(client.unwrap().server().era(), Era::Modern);
    // Another refusal is told.
    let error = refusal(&brief, |script| {
        let second = unsupported(script);
        refuse(script, &second, -32603);
    });
    let text = error.to_string();
    assert!(text.contains("`server/discover` was refused"), "{text}");
}

#[test]
fn a_server_that_has_answered_the_greeting_and_ends_is_not_started_again() {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}});
    let starts = crate::process::Scratch::new();
    let log = starts.path("starts");
    let script = format!(
        "echo start >>{}; read -r p; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":-32601,\"message\":\"no\"}}}}'; \
         read -r i; echo '{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{hello}}}'; exit 0",
        log.display()
    );
    let spec = ChildSpec::from_argv(["sh", "-c", &script]).unwrap();
    // Whether it is still there when `initialized` is written is a race; it is not started twice.
    drop(guarded(move || options().spawn(&spec)));
    assert_eq!(std::fs::read_to_string(log).unwrap(), "start\n");
}

#[test]
fn what_is_null_in_a_result_is_as_good_as_absent() {
    let options = options().elicit_form(|_, _| Elicited::Decline);
    let (client, mut script) = modern(&options, json!({"tools": {}}));
    let result = during(
        || client.call_tool("t", ()).unwrap(),
        || {
            let call = script.recv();
            let asks = json!({"k": form("?")});
            script.answer(
                &call,
                json!({"resultType": "input_required", "inputRequests": asks, "requestState": null}),
            );
            let again = script.recv();
            assert!(again["params"].get("requestState").is_none());
            assert_eq!(again["params"]["inputResponses"]["k"]["action"], "decline");
            let kept = json!({"resultType": null, "content": [{"type": "text", "text": "kept"}]});
            script.answer(&again, kept);
        },
    );
    assert_eq!(result.all_text(), "kept");
}

#[test]
fn an_idle_limit_of_the_transport_is_none_of_connecting() {
    let transport = landline::Options::new().idle_timeout(Duration::from_millis(1));
    let (client, _script) = connect(&options().transport(transport), |script| {
        let probe = probed(script);
        thread::sleep(Duration::from_millis(50));
        script.answer(&probe, presentation(json!({})));
    });
    assert_eq!(client.unwrap().server().era(), Era::Modern);
}

#[test]
fn a_modern_server_that_was_remembered_wrongly_is_found_by_whatever_it_says_to_the_greeting() {
    for said in [
        json!({}),
        json!({"protocolVersion": "2026-07-28", "capabilities": {}}),
    ] {
        let (client, _script) = connect(&options().remembered(Era::Legacy), |script| {
            let hello = script.recv();
            assert_eq!(hello["method"], "initialize");
            script.answer(&hello, said.clone());
            let probe = probed(script);
            script.answer(&probe, presentation(json!({})));
        });
        assert_eq!(client.unwrap().server().era(), Era::Modern);
    }
}
