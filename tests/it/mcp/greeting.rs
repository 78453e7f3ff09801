//! The handshake of the legacy era, and what it settles.

use std::sync::mpsc;
use std::time::Duration;

use landline::mcp::{
    ConnectPhase, Elicited, Era, Error, LogLevel, Options, Reason, Reference, Revision, Root,
    Sample, Session,
};
use serde_json::{Value, json};

use super::server::{connect, during, legacy, presentation, probed, refusal, refuse};
use crate::support::Script;

const LEGACY: [Revision; 4] = [
    Revision::V2025_11_25,
    Revision::V2025_06_18,
    Revision::V2025_03_26,
    Revision::V2024_11_05,
];

/// Options with which the handshake comes first.
fn options() -> Options {
    Options::new("test", "1").era(Era::Legacy)
}

fn initialize(script: &mut Script) -> Value {
    let initialize = script.recv();
    assert_eq!(initialize["method"], "initialize");
    initialize
}

/// Answers a greeting with this result and gives the line that follows.
fn greet_with(script: &mut Script, result: Value) -> String {
    let initialize = initialize(script);
    script.answer(&initialize, result);
    script.line().unwrap()
}

fn initialized() -> String {
    format!(
        "{}\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
    )
}

#[test]
fn c021_c022_the_greeting_comes_first_with_all_that_it_must_have() {
    let (client, _script) = connect(&options().title("Test"), |script| {
        let line = script.line().unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            greeting,
            json!({
                "jsonrpc": "2.0",
                "id": greeting["id"],
                "method": "initialize",
                "params": {
                    // The newest of the legacy era, and never a modern one.
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "test", "title": "Test", "version": "1"},
                },
            })
        );
        assert!(greeting["id"].is_u64());
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        script.answer(&greeting, result);
        assert_eq!(script.line().unwrap(), initialized());
    });
    assert_eq!(client.unwrap().server().version(), "2025-11-25");
}

#[test]
fn the_client_is_named_in_the_words_of_the_revision_offered() {
    for revision in LEGACY {
        let (client, _script) = connect(&options().title("Test").revision(revision), |script| {
            let greeting = initialize(script);
            let with_title = revision >= Revision::V2025_06_18;
            let expected = if with_title {
                json!({"name": "test", "title": "Test", "version": "1"})
            } else {
                json!({"name": "test", "version": "1"})
            };
            assert_eq!(greeting["params"]["clientInfo"], expected, "{revision}");
            let version = revision.as_str();
            let result = json!({"protocolVersion": version, "capabilities": {}});
            script.answer(&greeting, result);
            assert_eq!(script.line().unwrap(), initialized());
        });
        assert!(client.is_ok());
    }
}

#[test]
fn c023_the_client_says_that_it_is_ready_before_it_calls() {
    let (client, mut script) = connect(&options(), |script| {
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}});
        let greeting = initialize(script);
        script.answer(&greeting, result);
    });
    let client = client.unwrap();
    let tools = during(
        || client.tools(),
        || {
            assert_eq!(script.line().unwrap(), initialized());
            let list = script.recv();
            assert_eq!(list["method"], "tools/list");
            script.answer(&list, json!({"tools": []}));
        },
    );
    assert!(tools.unwrap().is_empty());
}

#[test]
fn c024_nothing_is_called_before_the_handshake_is_over() {
    let (told, errors) = mpsc::channel();
    let options = options().roots(move |cx| {
        told.send((cx.tools().unwrap_err(), cx.ping().unwrap_err()))
            .unwrap();
        assert!(cx.presentation().is_none());
        vec![Root::new("file:///here").unwrap()]
    });
    let (client, script) = connect(&options, |script| {
        let greeting = initialize(script);
        // A server that does not wait is answered all the same.
        script.send(json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}));
        let roots = json!({"roots": [{"uri": "file:///here"}]});
        let answer = json!({"jsonrpc": "2.0", "id": "r", "result": roots});
        assert_eq!(script.recv(), answer, "the first word after the greeting");
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}});
        script.answer(&greeting, result);
        assert_eq!(script.line().unwrap(), initialized());
    });
    let (tools, ping) = errors.recv().unwrap();
    assert_eq!(
        tools.to_string(),
        "`tools/list` came before the connection was open"
    );
    assert!(matches!(&ping, Error::NotReady { method } if &**method == "ping"));
    drop(client.unwrap());
    assert_eq!(script.rest(), "");
}

#[test]
fn c025_the_version_that_the_server_answers_with_is_spoken() {
    for revision in LEGACY {
        let capabilities = json!({"tools": {}, "completions": {}});
        let (client, mut script) = legacy(&options(), revision.as_str(), capabilities);
        assert_eq!(client.server().revision(), revision);
        let tools = during(
            || client.tools(),
            || {
                let list = script.recv();
                let expected = json!({"jsonrpc": "2.0", "id": list["id"], "method": "tools/list"});
                assert_eq!(list, expected);
                script.answer(&list, json!({"tools": []}));
            },
        );
        assert!(tools.unwrap().is_empty());
        let prompt = Reference::Prompt("p".into());
        let completion = during(
            || client.complete(&prompt, "a", "v", json!({"b": "w"})),
            || {
                let complete = script.recv();
                let mut params = json!({
                    "ref": {"type": "ref/prompt", "name": "p"},
                    "argument": {"name": "a", "value": "v"},
                });
                if revision >= Revision::V2025_06_18 {
                    params["context"] = json!({"arguments": {"b": "w"}});
                }
                assert_eq!(complete["params"], params, "{revision}");
                script.answer(&complete, json!({"completion": {"values": ["vw"]}}));
            },
        );
        assert_eq!(completion.unwrap().values, ["vw"]);
    }
}

#[test]
fn c026_an_unknown_version_is_refused_and_both_sides_versions_are_told() {
    for version in ["1999-01-01", "2026-07-28", ""] {
        let error = refusal(&options(), |script| {
            let greeting = initialize(script);
            let result = json!({"protocolVersion": version, "capabilities": {}});
            script.answer(&greeting, result);
        });
        assert_eq!(
            error.to_string(),
            format!(
                "cannot connect: there is no common version; the server speaks {version}, this \
                 client 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"
            )
        );
        let failure = error.failure().unwrap();
        assert_eq!(failure.phase, ConnectPhase::Handshake);
        assert!(matches!(failure.reason, Reason::NoCommonVersion));
        assert_eq!(failure.theirs, [version]);
    }
}

#[test]
fn c026_a_pinned_revision_is_not_negotiated_away() {
    let error = refusal(&options().revision(Revision::V2025_06_18), |script| {
        let greeting = initialize(script);
        let result = json!({"protocolVersion": "2025-03-26", "capabilities": {}});
        script.answer(&greeting, result);
    });
    assert_eq!(
        error.to_string(),
        "cannot connect: there is no common version; the server speaks 2025-03-26, this client \
         2025-06-18"
    );
}

#[test]
fn c027_an_error_is_a_failed_handshake_and_kept_verbatim() {
    let error = refusal(&options(), |script| {
        let greeting = initialize(script);
        let data = json!({"supported": ["1.0"], "requested": "2025-11-25"});
        let error = json!({"code": -32602, "message": "Unsupported version", "data": data});
        script.send(json!({"jsonrpc": "2.0", "id": greeting["id"], "error": error}));
    });
    assert_eq!(
        error.to_string(),
        "cannot connect: `initialize` was refused: Unsupported version (code -32602); the server \
         speaks 1.0, this client 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"
    );
    let rpc = error.failure().unwrap().rpc().unwrap();
    assert_eq!((rpc.code, &*rpc.message), (-32602, "Unsupported version"));
    let data = r#"{"requested":"2025-11-25","supported":["1.0"]}"#;
    assert_eq!(rpc.data.as_ref().unwrap().get(), data);
}

#[test]
fn c027_a_version_that_a_refusal_names_is_offered_in_turn() {
    let refuse = |script: &mut Script, greeting: &Value, supported: Value| {
        let data = json!({"supported": supported});
        let error = json!({"code": -32602, "message": "no", "data": data});
        script.send(json!({"jsonrpc": "2.0", "id": greeting["id"], "error": error}));
    };
    let (client, script) = connect(&options(), |script| {
        let first = initialize(script);
        refuse(
            script,
            &first,
            json!(["2024-11-05", "2025-06-18", "2030-01-01"]),
        );
        let second = initialize(script);
        assert_eq!(second["params"]["protocolVersion"], "2025-06-18");
        assert_ne!(first["id"], second["id"]);
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
        script.answer(&second, result);
        assert_eq!(script.line().unwrap(), initialized());
    });
    let client = client.unwrap();
    assert_eq!(client.server().revision(), Revision::V2025_06_18);
    drop(client);
    assert_eq!(script.rest(), "");
    // Each once, though the server goes on naming them.
    refusal(&options(), |script| {
        for version in ["2025-11-25", "2025-06-18", "2024-11-05"] {
            let greeting = initialize(script);
            assert_eq!(greeting["params"]["protocolVersion"], version);
            refuse(script, &greeting, json!(["2024-11-05", "2025-06-18"]));
        }
    });
}

#[test]
fn c027_an_error_without_an_id_refuses_the_greeting_too() {
    for refusal_ in [
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "what?"}}),
        json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "what?"}}),
    ] {
        let error = refusal(&Options::new("test", "1"), |script| {
            let probe = probed(script);
            refuse(script, &probe, -32601);
            initialize(script);
            script.send(refusal_.clone());
        });
        assert_eq!(
            error.to_string(),
            "cannot connect: `initialize` was refused: what? (code -32600); `server/discover`: \
             refused: refused (code -32601)"
        );
    }
}

#[test]
fn c028_a_greeting_is_not_cancelled() {
    let options = options().connect_timeout(Duration::from_secs(1));
    // `refusal` sees that nothing but the end follows.
    let error = refusal(&options, |script| drop(initialize(script)));
    assert_eq!(
        error.to_string(),
        "cannot connect within 1s: no answer to `initialize`; it runs and has sent no message: \
         perhaps it is no MCP server"
    );
}

#[test]
fn c029_pings_and_log_messages_are_served_during_the_handshake() {
    let (told, logs) = mpsc::channel();
    let options = options().on_log(move |_, log| {
        told.send((log.level(), log.data().unwrap().get().to_owned()))
            .unwrap();
    });
    let (client, _script) = connect(&options, |script| {
        let greeting = initialize(script);
        let params = json!({"level": "info", "data": "starting"});
        script.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
        script.send(json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}));
        let pong = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
        assert_eq!(script.recv(), pong);
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        script.answer(&greeting, result);
        assert_eq!(script.line().unwrap(), initialized());
    });
    client.unwrap();
    let log = logs.recv().unwrap();
    assert_eq!(log, (Some(LogLevel::Info), "\"starting\"".into()));
}

/// Every call that a capability stands before, and that capability.
type Gated = (&'static str, fn(&Session) -> Error);

const GATED: &[Gated] = &[
    ("tools", |s| s.tools().unwrap_err()),
    ("tools", |s| s.tools_page(None).unwrap_err()),
    ("tools", |s| s.call_tool("a", ()).unwrap_err()),
    ("prompts", |s| s.prompts().unwrap_err()),
    ("prompts", |s| s.prompts_page(None).unwrap_err()),
    ("prompts", |s| s.get_prompt("a", ()).unwrap_err()),
    ("resources", |s| s.resources().unwrap_err()),
    ("resources", |s| s.resources_page(None).unwrap_err()),
    ("resources", |s| s.resource_templates().unwrap_err()),
    ("resources", |s| {
        s.resource_templates_page(None).unwrap_err()
    }),
    ("resources", |s| s.read_resource("file:///a").unwrap_err()),
    ("logging", |s| s.set_log_level(LogLevel::Info).unwrap_err()),
    ("completions", |s| {
        let prompt = Reference::Prompt("p".into());
        s.complete(&prompt, "a", "v", ()).unwrap_err()
    }),
];

#[test]
fn c030_what_the_server_does_not_declare_fails_before_anything_is_sent() {
    // Declared is what is there as an object, or as true.
    for nothing in [
        json!({}),
        json!(null),
        json!({"tools": null, "prompts": false, "resources": 0, "logging": [], "completions": ""}),
    ] {
        let (client, script) = legacy(&options(), "2025-11-25", nothing);
        for (capability, call) in GATED {
            let error = call(&client);
            let Error::NotSupported {
                capability: named, ..
            } = &error
            else {
                panic!("{error:?}");
            };
            assert_eq!(named, capability);
            let text = format!("needs the capability `{capability}`, which the server does not");
            assert!(error.to_string().contains(&text), "{error}");
            assert_eq!(error.delivery(), landline::Delivery::NotSent);
        }
        drop(client);
        assert_eq!(script.rest(), "");
    }
}

#[test]
fn c030_modern_servers_are_held_to_what_they_declare_too() {
    let (client, script) = connect(&Options::new("test", "1"), |script| {
        let probe = probed(script);
        script.answer(&probe, presentation(json!({})));
    });
    let client = client.unwrap();
    for (capability, call) in GATED {
        let error = call(&client);
        assert!(
            matches!(&error, Error::NotSupported { capability: named, .. } if named == capability),
            "{error:?}"
        );
    }
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn undeclared_methods_are_called_where_the_caller_wants_it() {
    let (client, mut script) = legacy(&options().ungated(), "2025-11-25", json!({}));
    let tools = during(
        || client.tools(),
        || {
            let list = script.recv();
            script.answer(&list, json!({"tools": [{"name": "a"}]}));
        },
    );
    assert_eq!(tools.unwrap()[0].name(), "a");
}

#[test]
fn completions_need_no_capability_in_the_revision_that_has_none() {
    let (client, mut script) = legacy(&options(), "2024-11-05", json!({}));
    let prompt = Reference::Prompt("p".into());
    let completion = during(
        || client.complete(&prompt, "a", "v", ()),
        || {
            let complete = script.recv();
            script.answer(&complete, json!({"completion": {"values": ["v1"]}}));
        },
    );
    assert_eq!(completion.unwrap().values, ["v1"]);
}

/// Declares something, and what each revision calls it, the newest first.
type Declaration = (fn(Options) -> Options, [Value; 5]);

#[test]
fn c031_what_is_declared_is_what_handlers_are_installed_for() {
    let form = json!({"elicitation": {"form": {}}});
    let url = json!({"elicitation": {"url": {}}});
    let both = json!({"elicitation": {"form": {}, "url": {}}});
    let plain = json!({"elicitation": {}});
    let sampling = json!({"sampling": {}});
    let tools = json!({"sampling": {"tools": {}}});
    let roots = json!({"roots": {"listChanged": true}});
    let none = || json!({});
    let every = |declared: &Value| std::array::from_fn(|_| declared.clone());
    let declarations: [Declaration; 7] = [
        (|o| o, every(&none())),
        (
            |o| o.roots(|_| Vec::new()),
            [
                json!({"roots": {}}),
                roots.clone(),
                roots.clone(),
                roots.clone(),
                roots,
            ],
        ),
        (
            |o| o.elicit_form(|_, _| Elicited::Cancel),
            [form.clone(), form, plain.clone(), none(), none()],
        ),
        (
            |o| o.elicit_url(|_, _| Elicited::Cancel),
            [url.clone(), url, none(), none(), none()],
        ),
        (
            |o| {
                o.elicit_form(|_, _| Elicited::Cancel)
                    .elicit_url(|_, _| Elicited::Cancel)
            },
            [both.clone(), both, plain, none(), none()],
        ),
        (
            |o| o.sample(|_, _| Err(Sample::refused("no"))),
            every(&sampling),
        ),
        (
            |o| o.sample_with_tools(|_, _| Err(Sample::refused("no"))),
            [
                tools.clone(),
                tools,
                sampling.clone(),
                sampling.clone(),
                sampling,
            ],
        ),
    ];
    for (install, expected) in declarations {
        for (revision, expected) in Revision::ALL.into_iter().zip(expected) {
            // Handlers of what merely comes in declare nothing.
            let options = install(options().on_log(|_, _| ()).on_list_changed(|_, _| ()));
            let options = options.revision(revision);
            let (client, script) = connect(&options, |script| {
                let first = script.recv();
                if revision.era() == Era::Modern {
                    let declared =
                        &first["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
                    assert_eq!(declared, &expected, "{revision}");
                    return script.answer(&first, presentation(json!({})));
                }
                assert_eq!(first["params"]["capabilities"], expected, "{revision}");
                let version = revision.as_str();
                script.answer(&first, json!({"protocolVersion": version}));
                assert_eq!(script.line().unwrap(), initialized());
            });
            // A close need not wait for a server that has ended.
            drop(script);
            assert_eq!(client.unwrap().server().revision(), revision);
        }
    }
}

#[test]
fn a_greeting_answered_sloppily_is_taken_and_told() {
    let unnamed = "it does not name itself";
    let undeclared = "it declares no capabilities";
    for (result, oddities) in [
        (json!({"capabilities": {}}), vec![unnamed]),
        (
            json!({"serverInfo": {"name": "script", "version": "1"}}),
            vec![undeclared],
        ),
        (
            json!({"capabilities": null, "serverInfo": "script"}),
            vec![undeclared, unnamed],
        ),
        (json!({}), vec![undeclared, unnamed]),
        (
            json!({"capabilities": {}, "serverInfo": {}, "instructions": 5, "more": true}),
            vec![],
        ),
    ] {
        let mut answer = result.clone();
        answer["protocolVersion"] = json!("2025-06-18");
        let (client, script) = connect(&options(), |script| {
            assert_eq!(greet_with(script, answer.clone()), initialized());
        });
        let client = client.unwrap();
        assert_eq!(client.server().oddities(), oddities, "{result}");
        assert_eq!(client.server().revision(), Revision::V2025_06_18);
        assert!(client.server().instructions().is_none());
        assert!(!client.server().capabilities().has("tools"));
        let raw: Value = serde_json::from_str(client.server().raw().get()).unwrap();
        assert_eq!(raw, answer);
        drop(client);
        assert_eq!(script.rest(), "");
    }
}

#[test]
fn a_greeting_answered_without_a_version_is_not_taken() {
    for result in [
        json!({}),
        json!(null),
        json!([]),
        json!("2025-11-25"),
        json!({"protocolVersion": null, "capabilities": {}}),
        json!({"protocolVersion": 20251125, "capabilities": {}}),
    ] {
        let error = refusal(&options(), |script| {
            let greeting = initialize(script);
            script.answer(&greeting, result.clone());
        });
        assert_eq!(
            error.to_string(),
            "cannot connect: the answer to `initialize` has no usable `protocolVersion`",
            "{result}"
        );
    }
}

#[test]
fn what_the_server_says_of_itself_is_kept() {
    let result = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}},
        "serverInfo": {"name": "script", "title": "Script", "version": "1.2"},
        "instructions": "line one\nline two",
    });
    let (client, _script) = connect(&options(), |script| {
        assert_eq!(greet_with(script, result), initialized());
    });
    let client = client.unwrap();
    let server = client.server();
    let name = server.implementation().unwrap();
    assert_eq!(name.name().unwrap(), "script");
    assert_eq!(name.title().unwrap(), "Script");
    assert_eq!(name.version().unwrap(), "1.2");
    assert_eq!(server.instructions().unwrap(), "line one\nline two");
    let declared = server.capabilities();
    for path in [
        "tools",
        "tools.listChanged",
        "resources",
        "resources.subscribe",
    ] {
        assert!(declared.has(path), "{path}");
    }
    for path in [
        "prompts",
        "resources.listChanged",
        "tools.listChanged.x",
        "",
    ] {
        assert!(!declared.has(path), "{path}");
    }
}
