//! The actions of an MCP client against the embedded server, in both eras.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use super::{Output, error, guarded, inspect, request, server, start, told};

const ERAS: [&str; 2] = ["modern", "legacy"];

/// Runs an action against the embedded server in one era.
fn act(era: &str, words: &[&str]) -> Output {
    inspect(&[&["--era", era], words, &["--"], &server()].concat())
}

/// Runs an action and decodes its document.
fn document(era: &str, words: &[&str]) -> (Option<i32>, Value) {
    let output = act(era, &[&["--json"], words].concat());
    assert_eq!(output.lines().len(), 1, "{output:?}");
    let document = serde_json::from_str(&output.stdout).unwrap();
    (output.code, document)
}

/// What a result has beside its own members in the modern era.
fn result(era: &str, mut result: Value) -> Value {
    if era == "modern" {
        let me = json!({"name": "landline-inspect", "version": env!("CARGO_PKG_VERSION")});
        result["resultType"] = json!("complete");
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": me});
    }
    json!({ "ok": result })
}

#[test]
fn info_says_who_the_server_is_and_what_it_speaks() {
    let version = env!("CARGO_PKG_VERSION");
    for (era, revision) in [("modern", "2026-07-28"), ("legacy", "2025-11-25")] {
        let words = format!(
            "landline-inspect {version}\nspeaks: revision {revision}, the {era} era\n\
             has: prompts, resources, tools\nsays: A server to try a client on.\n"
        );
        told(&act(era, &["info"]), 0, &words, "");
        let known = json!({
            "era": era,
            "revision": revision,
            "server": {"name": "landline-inspect", "version": version},
            "capabilities": {"prompts": {}, "resources": {}, "tools": {}},
            "instructions": "A server to try a client on.",
        });
        assert_eq!(document(era, &["info"]), (Some(0), json!({ "ok": known })));
    }
}

#[test]
fn the_era_is_found_and_a_revision_can_be_pinned() {
    let revision = |words: &[&str]| {
        let output = inspect(&[words, &["--json", "info", "--"], &server()].concat());
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        document["ok"]["revision"].clone()
    };
    assert_eq!(revision(&[]), "2026-07-28");
    assert_eq!(revision(&["--era", "auto"]), "2026-07-28");
    for pinned in [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ] {
        assert_eq!(revision(&["--revision", pinned]), pinned);
    }
}

#[test]
fn tools_are_listed_with_their_arguments() {
    let words = "echo(text: string)\n    gives back a text\n\
                 add(a: number, b: number)\n    adds two numbers\n\
                 sleep(seconds: number)\n    answers after some seconds and tells its progress\n\
                 fail()\n    fails\n\
                 greet()\n    asks the user for a name and greets\n\
                 roots()\n    asks in which directories it may work and lists them\n";
    for era in ERAS {
        told(&act(era, &["tools"]), 0, words, "");
        let (code, document) = document(era, &["tools"]);
        let list = document["ok"]["tools"].as_array().unwrap();
        let names: Vec<_> = list
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        let all = ["echo", "add", "sleep", "fail", "greet", "roots"];
        assert_eq!((code, names), (Some(0), all.to_vec()));
        let add = json!({
            "name": "add",
            "description": "adds two numbers",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        });
        assert_eq!(list[1], add);
    }
}

#[test]
fn a_call_prints_what_the_tool_says() {
    for era in ERAS {
        let words = ["call", "add", r#"{"a":19,"b":23}"#];
        told(&act(era, &words), 0, "42\n", "");
        let content = json!({"content": [{"type": "text", "text": "42"}]});
        assert_eq!(document(era, &words), (Some(0), result(era, content)));
    }
}

#[test]
fn a_tool_that_fails_is_answered_and_no_success() {
    for era in ERAS {
        let output = act(era, &["call", "fail"]);
        let note = "the tool says that it failed\n";
        told(&output, 1, "this tool always fails\n", note);
        let content = json!({"content": [{"type": "text", "text": "this tool always fails"}], "isError": true});
        assert_eq!(
            document(era, &["call", "fail"]),
            (Some(1), result(era, content))
        );
    }
}

#[test]
fn a_refused_call_is_told_with_its_code() {
    for era in ERAS {
        let refused = "`tools/call` was refused: there is no tool fly (code -32602)\n";
        told(&act(era, &["call", "fly"]), 1, "", refused);
        let error = json!({"kind": "rpc", "message": "there is no tool fly", "delivery": "answered", "code": -32602});
        assert_eq!(
            document(era, &["call", "fly"]),
            (Some(1), json!({ "error": error }))
        );
    }
}

#[test]
fn a_long_call_tells_its_progress_in_lines() {
    for era in ERAS {
        let output = act(
            era,
            &["--idle", "50", "call", "sleep", r#"{"seconds":0.5}"#],
        );
        let lines = "progress: 1 of 2\nprogress: 2 of 2\n";
        told(&output, 0, "slept well\n", lines);
    }
}

#[test]
fn resources_are_listed_with_their_templates_and_read() {
    let usage = inspect(&["--help"]).stdout;
    for era in ERAS {
        let words = format!(
            "inspect:usage usage (text/plain, {} bytes)\n    the command line of this program\n\
             inspect:tool/{{name}} tool (application/json)\n    the definition of a tool\n",
            usage.len()
        );
        told(&act(era, &["resources"]), 0, &words, "");
        let lists = json!({
            "resources": [{
                "uri": "inspect:usage",
                "name": "usage",
                "description": "the command line of this program",
                "mimeType": "text/plain",
                "size": usage.len(),
            }],
            "resourceTemplates": [{
                "uriTemplate": "inspect:tool/{name}",
                "name": "tool",
                "description": "the definition of a tool",
                "mimeType": "application/json",
            }],
        });
        let listed = document(era, &["resources"]);
        assert_eq!(listed, (Some(0), json!({ "ok": lists })));

        let words = format!("{usage}\n");
        told(&act(era, &["read", "inspect:usage"]), 0, &words, "");
        let (code, read) = document(era, &["read", "inspect:tool/fail"]);
        let text = read["ok"]["contents"][0]["text"].as_str().unwrap();
        let tool: Value = serde_json::from_str(text).unwrap();
        assert_eq!((code, &tool["description"]), (Some(0), &json!("fails")));

        let code = if era == "modern" { -32602 } else { -32002 };
        let error = json!({
            "kind": "rpc",
            "message": "resource not found",
            "delivery": "answered",
            "code": code,
            "data": {"uri": "inspect:tool/fly"},
        });
        assert_eq!(
            document(era, &["read", "inspect:tool/fly"]),
            (Some(1), json!({ "error": error }))
        );
    }
}

#[test]
fn prompts_are_listed_and_got() {
    for era in ERAS {
        let words = "haiku(topic, mood?)\n    has a haiku written\n";
        told(&act(era, &["prompts"]), 0, words, "");
        let list = json!([{
            "name": "haiku",
            "description": "has a haiku written",
            "arguments": [
                {"name": "topic", "description": "what it is about", "required": true},
                {"name": "mood", "description": "how it sounds"},
            ],
        }]);
        let listed = document(era, &["prompts"]);
        assert_eq!(listed, (Some(0), json!({"ok": {"prompts": list}})));

        let get = ["prompt", "haiku", r#"{"topic":"rain","mood":"stormy"}"#];
        let words = "user: Write a haiku about rain.\nassistant: A stormy one:\n";
        told(&act(era, &get), 0, words, "");
        let got = json!({
            "description": "has a haiku written",
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Write a haiku about rain."}},
                {"role": "assistant", "content": {"type": "text", "text": "A stormy one:"}},
            ],
        });
        assert_eq!(document(era, &get), (Some(0), result(era, got)));
        let refused = "`prompts/get` was refused: `topic` is a string (code -32602)\n";
        told(&act(era, &["prompt", "haiku"]), 1, "", refused);
    }
}

#[test]
fn a_question_for_the_user_is_declined_where_there_is_no_terminal() {
    for era in ERAS {
        let note = "declined, as there is no terminal to ask at: Who is to be greeted?\n";
        let words = "Nobody is greeted: the user declined.\n";
        told(&act(era, &["call", "greet"]), 0, words, note);
    }
    // Revisions that have no such question declare no such capability.
    let words = ["--revision", "2025-03-26", "call", "greet", "--"];
    let output = inspect(&[&words[..], &server()].concat());
    let refused = "this client does not declare `elicitation`\n";
    told(&output, 1, refused, "the tool says that it failed\n");
}

#[test]
fn a_server_may_work_in_the_roots_that_are_given() {
    let dir = std::env::temp_dir().join(format!("landline inspect %{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let path = fs::canonicalize(&dir).unwrap();
    for era in ERAS {
        let roots = ["--roots", dir.to_str().unwrap(), "--roots", "/"];
        let output = act(era, &[&roots[..], &["call", "roots"]].concat());
        let uri = path
            .to_str()
            .unwrap()
            .replace('%', "%25")
            .replace(' ', "%20");
        told(&output, 0, &format!("file://{uri}\nfile:///\n"), "");
    }
    fs::remove_dir(&dir).unwrap();
    // Without any, the client cannot be asked for them.
    let refused = "this client does not declare `roots`\n";
    let output = act("legacy", &["call", "roots"]);
    told(&output, 1, refused, "the tool says that it failed\n");
    let error = json!({
        "kind": "rpc",
        "message": "the client must declare a capability",
        "delivery": "answered",
        "code": -32021,
        "data": {"requiredCapabilities": {"roots": {}}},
    });
    assert_eq!(
        document("modern", &["call", "roots"]),
        (Some(1), json!({ "error": error }))
    );
}

#[test]
fn the_embedded_server_withdraws_its_question_with_the_call() {
    let mut child = start(&["--serve"]);
    guarded(move || {
        let mut stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut hear = || -> Value {
            let line = lines.next().unwrap().unwrap();
            serde_json::from_str(&line).unwrap()
        };
        let mut say = |message: Value| writeln!(stdin, "{message}").unwrap();
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}});
        say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
        assert_eq!(hear()["result"]["protocolVersion"], "2025-11-25");
        let greet = json!({"name": "greet", "arguments": {}});
        say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": greet}));
        let question = hear();
        assert_eq!(question["method"], "elicitation/create");

        let cancelled = |id: Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        say(cancelled(json!(2)));
        assert_eq!(hear(), cancelled(question["id"].clone()));
        // An answer that crossed it is of no use, and no error.
        say(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
        say(json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
        assert_eq!(hear(), json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
        drop(stdin);
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn the_embedded_server_takes_its_state_back_unchanged_or_not_at_all() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let mut params = json!({"name": "greet", "arguments": {}, "_meta": meta});
    let asked = request("tools/call", &params);
    let asked: Value = serde_json::from_str(&asked.stdout).unwrap();
    let asked = &asked["ok"];
    assert_eq!(asked["resultType"], "input_required");
    let question = &asked["inputRequests"]["question"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Who is to be greeted?");

    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    params["inputResponses"] = json!({ "question": answer });
    params["requestState"] = asked["requestState"].clone();
    let greeted = request("tools/call", &params);
    let greeted: Value = serde_json::from_str(&greeted.stdout).unwrap();
    assert_eq!(greeted["ok"]["content"][0]["text"], "Hello, Ada!");

    params["requestState"] = json!("something else");
    let (code, refused) = error(&request("tools/call", &params));
    assert_eq!((code, &refused["code"]), (Some(1), &json!(-32602)));
}
