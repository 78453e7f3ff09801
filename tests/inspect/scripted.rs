//! The actions of an MCP client against scripted servers: the odd ones and those that fail.

use std::fs;
use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use super::{Output, SILENT, error, finish, guarded, inspect, shell, start, told};

/// A server of the legacy era: refuses the probe, request 1, and is greeted with request 2. The
/// rest of it starts with request 3.
fn legacy(capabilities: &str, rest: &str) -> String {
    let hello = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"script","version":"1"}}}}"#
    );
    format!(
        r#"say() {{ printf '%s\n' "$1"; }}
answer() {{ read -r request; say '{{"jsonrpc":"2.0","id":'"$1"',"result":'"$2"'}}'; }}
read -r probe; say '{{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"what?"}}}}'
answer 2 '{hello}'; read -r initialized
{rest}
{SILENT}"#
    )
}

fn against(words: &[&str], peer: &str) -> Output {
    inspect(&[words, &["--"], &shell(peer)].concat())
}

#[test]
fn a_server_that_refuses_the_probe_is_greeted() {
    let words = "script 1\nspeaks: revision 2025-11-25, the legacy era\nhas: nothing\n";
    told(&against(&["info"], &legacy("{}", "")), 0, words, "");
}

#[test]
fn a_program_that_is_no_server_is_told_with_all_that_is_known() {
    let peer = "read -r probe; echo 'cannot open the database' >&2; exit 3";
    let (code, error) = error(&against(&["--json", "tools"], peer));
    assert_eq!(
        (code, &error["kind"], &error["delivery"], &error["code"]),
        (Some(1), &json!("connect"), &json!("not_sent"), &Value::Null)
    );
    let message = error["message"].as_str().unwrap();
    for known in [
        "cannot connect: ",
        "`initialize`",
        "exit code 3",
        "cannot open the database",
        "the first process: ",
    ] {
        assert!(message.contains(known), "{known}: {message}");
    }

    let output = against(&["tools"], peer);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    let mut lines = output.stderr.lines();
    let told = lines.any(|line| line.starts_with("cannot connect: "));
    assert!(told, "{output:?}");
}

#[test]
fn a_silent_program_is_given_up_within_the_limit() {
    let output = against(&["--json", "--timeout", "0.5", "info"], SILENT);
    let (code, error) = error(&output);
    assert_eq!((code, &error["kind"]), (Some(1), &json!("connect")));
    let message = error["message"].as_str().unwrap();
    // Which step had no answer in time, or was not even sent, depends on how fast it started.
    let is_late = message.starts_with("cannot connect within 500ms: ");
    assert!(is_late, "{message}");
}

#[test]
fn a_program_that_does_not_start_is_told_like_any_other() {
    let line = r#"{"error":{"kind":"spawn","message":"cannot start /no/such/program: program not found: No such file or directory (os error 2)","delivery":"not_sent"}}"#;
    let output = inspect(&["--json", "tools", "--", "/no/such/program"]);
    told(&output, 1, &format!("{line}\n"), "");
}

#[test]
fn a_pinned_era_is_held_to() {
    let (code, modern) = error(&against(
        &["--json", "--era", "modern", "info"],
        &legacy("{}", ""),
    ));
    let message = "cannot connect: the server speaks no modern revision (`server/discover` was refused: what? (code -32601))";
    assert_eq!(
        (code, &modern["kind"], &modern["message"], &modern["code"]),
        (Some(1), &json!("connect"), &json!(message), &json!(-32601))
    );

    // One that speaks nothing but the modern era.
    let peer = format!(
        r#"read -r hello; printf '{{"jsonrpc":"2.0","id":1,"error":{{"code":-32022,"message":"gone","data":{{"supported":["2026-07-28"],"requested":"2025-11-25"}}}}}}\n'; {SILENT}"#
    );
    let (code, legacy) = error(&against(&["--json", "--era", "legacy", "info"], &peer));
    assert_eq!(
        (code, &legacy["kind"], &legacy["code"], &legacy["data"]),
        (
            Some(1),
            &json!("connect"),
            &json!(-32022),
            &json!({"supported": ["2026-07-28"], "requested": "2025-11-25"})
        )
    );
}

#[test]
fn what_the_server_does_not_declare_is_not_asked_for() {
    let peer = legacy(r#"{"tools":{}}"#, "");
    for (action, method, capability) in [
        (&["prompts"][..], "prompts/list", "prompts"),
        (&["prompt", "x"], "prompts/get", "prompts"),
        (&["resources"], "resources/list", "resources"),
        (&["read", "x:y"], "resources/read", "resources"),
    ] {
        let output = against(&[&["--json"], action].concat(), &peer);
        let message = format!(
            "`{method}` needs the capability `{capability}`, which the server does not declare"
        );
        assert_eq!(
            error(&output),
            (
                Some(1),
                json!({"kind": "not_supported", "message": message, "delivery": "not_sent"})
            )
        );
    }
}

#[test]
fn an_item_that_cannot_be_used_does_not_cost_its_list() {
    let page = r#"{"tools":[{"name":"a","size":1.00},{"title":"nameless"}],"nextCursor":"x"}"#;
    let rest = format!(r#"answer 3 '{page}'; answer 4 '{{"tools":[],"nextCursor":"x"}}'"#);
    let peer = legacy(r#"{"tools":{}}"#, &rest);
    let notes = "one of the tools has no `name`: {\"title\":\"nameless\"}\n\
                 the pages of tools go round in a circle\n";
    told(&against(&["tools"], &peer), 0, "a()\n", notes);
    let line = r#"{"ok":{"tools":[{"name":"a","size":1.00}],"unusable":[{"title":"nameless"}]}}"#;
    let output = against(&["--json", "tools"], &peer);
    told(&output, 0, &format!("{line}\n"), notes);

    let peer = legacy(r#"{"tools":{}}"#, r#"answer 3 '{"tools":[]}'"#);
    told(&against(&["tools"], &peer), 0, "no tools\n", "");
}

#[test]
fn a_list_that_may_not_be_complete_says_why() {
    for (answer, words, note) in [
        (
            r#"answer 3 '{"tools":[{"name":"a"}],"nextCursor":7}'"#,
            "a()\n",
            "there are more tools, but the cursor to them is no string\n",
        ),
        (
            r#"read -r list; say '{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"?"}}'"#,
            "no tools\n",
            "the server declares tools and does not list them\n",
        ),
    ] {
        let peer = legacy(r#"{"tools":{}}"#, answer);
        told(&against(&["tools"], &peer), 0, words, note);
    }
}

#[test]
fn arguments_keep_their_order_and_may_be_optional() {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":["integer","null"]},"any":true},"required":["path"]}"#;
    let list = format!(r#"{{"tools":[{{"name":"read","inputSchema":{schema}}}]}}"#);
    let peer = legacy(r#"{"tools":{}}"#, &format!("answer 3 '{list}'"));
    let words = "read(path: string, lines?: integer|null, any?: any)\n";
    told(&against(&["tools"], &peer), 0, words, "");
}

#[test]
fn every_kind_of_content_is_shown() {
    let blocks = [
        r#"{"type":"text","text":"a text"}"#,
        r#"{"type":"image","data":"AAEC","mimeType":"image/png"}"#,
        r#"{"type":"audio","data":"AAE=","mimeType":"audio/wav"}"#,
        r#"{"type":"resource","resource":{"uri":"x:y","text":"inside"}}"#,
        r#"{"type":"resource","resource":{"uri":"x:z","mimeType":"a/b","blob":"AA=="}}"#,
        r#"{"type":"resource_link","uri":"x:l","name":"link"}"#,
        r#"{"type":"smell","of":1.0}"#,
    ];
    let result = format!(
        r#"{{"content":[{}],"structuredContent":{{"n":1.00}}}}"#,
        blocks.join(",")
    );
    let peer = legacy(r#"{"tools":{}}"#, &format!("answer 3 '{result}'"));
    let words = r#"a text
[image: image/png, 3 bytes]
[audio: audio/wav, 2 bytes]
[x:y]
inside
[x:z]
[x:z: a/b, 1 bytes]
[x:l link]
{
  "type": "smell",
  "of": 1.0
}
structured: {
  "n": 1.00
}
"#;
    told(&against(&["call", "t"], &peer), 0, words, "");
    let output = against(&["--json", "call", "t"], &peer);
    told(&output, 0, &format!("{{\"ok\":{result}}}\n"), "");
}

#[test]
fn a_structured_result_that_is_a_text_too_is_shown_once() {
    let result =
        r#"{"content":[{"type":"text","text":"{ \"n\": [1] }"}],"structuredContent":{"n":[1]}}"#;
    let peer = legacy(r#"{"tools":{}}"#, &format!("answer 3 '{result}'"));
    told(&against(&["call", "t"], &peer), 0, "{ \"n\": [1] }\n", "");
}

#[test]
fn a_servers_words_do_not_move_the_cursor() {
    let text = r#"{"content":[{"type":"text","text":"red\u001b[2J\u0007\r\ttab\nline\u009b"}]}"#;
    let peer = legacy(r#"{"tools":{}}"#, &format!("answer 3 '{text}'"));
    told(&against(&["call", "t"], &peer), 0, "red\ttab\nline\n", "");

    // Nor by a sequence without an end do they take the words of others away.
    let tools = r#"{"tools":[{"name":"a","description":"\u001b]0;on and"},{"name":"b"}]}"#;
    let peer = legacy(r#"{"tools":{}}"#, &format!("answer 3 '{tools}'"));
    told(&against(&["tools"], &peer), 0, "a()\n    \nb()\n", "");

    // Raw, JSON may hold some of what terminals obey.
    let peer =
        "read -r request; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\\302\\233b\"}\\n'";
    told(&against(&["request", "r"], peer), 0, "\"ab\"\n", "");
}

#[test]
fn arguments_pass_digit_for_digit() {
    let args = r#"{"a":1.00,"b":12345678901234567890123}"#;
    let rest = r#"read -r request; say '{"jsonrpc":"2.0","id":3,"result":{"content":[],"seen":['"$request"']}}'"#;
    let peer = legacy(r#"{"tools":{}}"#, rest);
    let output = against(&["--json", "call", "t", args], &peer);
    assert_eq!(output.code, Some(0), "{output:?}");
    let sent = format!(r#""params":{{"name":"t","arguments":{args},"_meta":"#);
    assert!(output.stdout.contains(&sent), "{}", output.stdout);
}

#[test]
fn an_invalid_result_is_told_as_such() {
    let peer = legacy(r#"{"tools":{}}"#, "answer 3 '{}'");
    let message = "the result of `tools/call` is invalid: `content` is missing or of another type";
    assert_eq!(
        error(&against(&["--json", "call", "t"], &peer)),
        (
            Some(1),
            json!({"kind": "invalid", "message": message, "delivery": "answered"})
        )
    );
}

#[test]
fn the_end_of_the_server_ends_the_call() {
    let peer = legacy(r#"{"tools":{}}"#, "read -r request; exit 7");
    let (code, error) = error(&against(&["--json", "call", "t"], &peer));
    assert_eq!(
        (code, &error["kind"], &error["delivery"]),
        (Some(1), &json!("closed"), &json!("maybe_run"))
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exit code 7"), "{message}");
}

#[test]
fn a_call_without_progress_ends_at_the_idle_limit() {
    let peer = legacy(r#"{"tools":{}}"#, "");
    let output = against(&["--json", "--idle", "0.2", "call", "t"], &peer);
    let (code, error) = error(&output);
    assert_eq!((code, &error["kind"]), (Some(1), &json!("timeout")));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("200ms"), "{message}");
}

#[test]
fn what_the_server_tells_unasked_is_shown() {
    let file = std::env::temp_dir().join(format!("landline-inspect-told-{}", std::process::id()));
    let rest = format!(
        r#"read -r request; echo oops >&2
say '{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"warning","logger":"db","data":{{"n":1.00}}}}}}'
say '{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}'
while ! [ -e '{}' ]; do sleep 0.05; done
say '{{"jsonrpc":"2.0","id":3,"result":{{"content":[]}}}}'"#,
        file.display()
    );
    let peer = legacy(r#"{"tools":{}}"#, &rest);
    let mut child = start(&[&["call", "t", "--"], &shell(&peer)[..]].concat());
    let notes = child.stderr.take().unwrap();
    // The answer comes when these have been shown, and not before.
    let mut shown = guarded(move || {
        let lines = BufReader::new(notes).lines();
        lines.take(3).collect::<Result<Vec<_>, _>>().unwrap()
    });
    fs::write(&file, "").unwrap();
    let output = finish(child);
    fs::remove_file(&file).unwrap();
    // stderr is another pipe than stdout, and may be read sooner or later.
    shown.sort();
    assert_eq!(
        shown,
        [
            r#"log: warning db: {"n":1.00}"#,
            "notification: notifications/tools/list_changed",
            "stderr: oops",
        ]
    );
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "\n"));
}
