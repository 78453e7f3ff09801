//! What every call has: limits, cancellation, progress; and logs, and lists of many pages.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use landline::mcp::{CallOptions, Client, Cursor, Error, LogLevel, Options, Stop};
use landline::{CancelToken, Delivery, Limit};
use serde_json::{Value, json};

use super::server::{LEGACY, during, fence, legacy, modern};
use crate::support::{HANG, Script, eventually};

fn options() -> Options {
    Options::new("test", "1")
}

/// A client of each era.
fn both(options: &Options, declared: &Value) -> [(Client, Script); 2] {
    [
        legacy(options, "2025-11-25", declared.clone()),
        modern(options, declared.clone()),
    ]
}

fn tools(options: &Options) -> [(Client, Script); 2] {
    both(options, &json!({"tools": {}}))
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn progress(token: &Value, progress: Value) -> Value {
    let params = json!({"progressToken": token, "progress": progress});
    notification("notifications/progress", params)
}

/// Makes a call that works.
fn works(client: &Client, script: &mut Script) {
    let result = during(
        || client.call_tool("t", ()),
        || {
            let request = script.recv();
            script.answer(
                &request,
                json!({"content": [{"type": "text", "text": "fine"}]}),
            );
        },
    );
    assert_eq!(result.unwrap().all_text(), "fine");
}

/// Which limit ran out.
fn limit(error: &Error) -> (Limit, Duration) {
    match error {
        Error::Call(landline::Error::Timeout { detail, .. }) => (detail.limit, detail.after),
        other => panic!("{other}"),
    }
}

#[test]
fn c087_a_call_out_of_time_is_cancelled_and_its_late_answer_dropped() {
    let total = Duration::from_secs(1);
    for (client, mut script) in tools(&options().timeout_for("tools/call", total)) {
        let error = during(
            || client.call_tool("t", ()).unwrap_err(),
            || {
                let request = script.recv();
                let cancelled = script.recv();
                assert_eq!(cancelled["method"], "notifications/cancelled");
                assert_eq!(cancelled["params"]["requestId"], request["id"]);
                assert_eq!(cancelled.get("id"), None);
                script.answer(&request, json!({"content": []}));
            },
        );
        assert_eq!(limit(&error), (Limit::Total, total));
        assert_eq!(error.delivery(), Delivery::MaybeRun);
        assert_eq!(fence(&client, &mut script), Vec::<Value>::new());
        assert_eq!(client.peer().survived().late_answers, 1);
    }
}

#[test]
fn c088_a_call_is_cancelled_from_another_thread() {
    for (client, mut script) in tools(&options()) {
        let token = CancelToken::new();
        let error = during(
            || client.call_tool_with("t", (), CallOptions::new().cancel_token(&token)),
            || {
                let request = script.recv();
                token.cancel();
                let cancelled = script.recv();
                assert_eq!(cancelled["method"], "notifications/cancelled");
                assert_eq!(cancelled["params"]["requestId"], request["id"]);
                script.answer(&request, json!({"content": []}));
            },
        )
        .unwrap_err();
        assert!(error.is_cancelled(), "{error}");
        // Another call with the same token is not even sent.
        let options = CallOptions::new().cancel_token(&token);
        let error = client.call_tool_with("t", (), options).unwrap_err();
        assert_eq!(error.delivery(), Delivery::NotSent);
        works(&client, &mut script);
        assert_eq!(client.peer().survived().late_answers, 1);
    }
}

#[test]
fn c089_progress_extends_the_idle_limit_and_never_the_total_one() {
    let (total, idle) = (Duration::from_secs(3), Duration::from_secs(2));
    let flood = |(client, mut script): (Client, Script)| {
        let start = Instant::now();
        let error = thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let options = CallOptions::new().timeout(total).idle(idle);
                client.call_tool_with("t", (), options).unwrap_err()
            });
            let request = script.recv();
            let token = &request["params"]["_meta"]["progressToken"];
            assert_eq!(*token, request["id"], "an idle limit needs it");
            let mut step = 0;
            while !calling.is_finished() {
                step += 1;
                script.send(progress(token, step.into()));
                thread::sleep(Duration::from_millis(50));
            }
            calling.join().unwrap()
        });
        assert_eq!(limit(&error), (Limit::Total, total));
        assert!(start.elapsed() >= total);
    };
    thread::scope(|scope| {
        for pair in tools(&options()) {
            scope.spawn(|| flood(pair));
        }
    });
}

#[test]
fn c089_a_call_without_progress_ends_by_its_idle_limit() {
    let idle = Duration::from_secs(1);
    for (client, mut script) in tools(&options().idle_for("tools/call", idle)) {
        let error = during(
            || client.call_tool("t", ()).unwrap_err(),
            || {
                let request = script.recv();
                assert_eq!(script.recv()["params"]["requestId"], request["id"]);
            },
        );
        assert_eq!(limit(&error), (Limit::Idle, idle));
    }
}

#[test]
fn c089_the_limits_of_a_call_go_before_those_of_its_method_and_those_before_all_others() {
    let short = Duration::from_secs(1);
    let options = options()
        .request_timeout(HANG)
        .timeout_for("ping", short)
        .timeout_for("tools/call", HANG);
    let (client, mut script) = legacy(&options, "2025-11-25", json!({"tools": {}}));
    let mut lost = |call: &(dyn Fn() -> Error + Sync)| {
        let error = during(call, || {
            script.recv();
            assert_eq!(script.recv()["method"], "notifications/cancelled");
        });
        limit(&error)
    };
    let by_method = lost(&|| client.ping().unwrap_err());
    let by_call = lost(&|| {
        let options = CallOptions::new().timeout(short);
        client.call_tool_with("t", (), options).unwrap_err()
    });
    assert_eq!([by_method, by_call], [(Limit::Total, short); 2]);
}

#[test]
fn c090_progress_finds_its_call_by_a_token_of_its_own() {
    for (client, mut script) in tools(&options()) {
        let call = || {
            let mut seen = Vec::new();
            let options = CallOptions::new().progress(|progress| {
                seen.push(progress.progress().unwrap());
            });
            let result = client.call_tool_with("t", (), options);
            result.unwrap();
            seen
        };
        let (one, two) = thread::scope(|scope| {
            let one = scope.spawn(call);
            let first = script.recv();
            let two = scope.spawn(call);
            let second = script.recv();
            let token = |request: &Value| request["params"]["_meta"]["progressToken"].clone();
            let (a, b) = (token(&first), token(&second));
            assert_ne!(a, b);
            for message in [
                progress(&b, json!(1)),
                progress(&json!("bogus"), json!(3)),
                progress(&json!(12345), json!(4)),
                progress(&a, json!(2)),
                // Of no use, and no harm.
                notification("notifications/progress", json!({"progress": 5})),
                notification("notifications/progress", json!(null)),
            ] {
                script.send(message);
            }
            for request in [&first, &second] {
                script.answer(request, json!({"content": []}));
            }
            // Too late.
            script.send(progress(&a, json!(6)));
            (one.join().unwrap(), two.join().unwrap())
        });
        assert_eq!((one, two), (vec![2.0], vec![1.0]));
        works(&client, &mut script);
    }
}

#[test]
fn c091_progress_is_told_in_order_and_before_the_call_returns() {
    for (client, mut script) in tools(&options()) {
        let mut seen = Vec::new();
        let caller = Mutex::new(None);
        let result = during(
            || {
                let id = thread::current().id();
                *caller.lock().unwrap() = Some(id);
                let options = CallOptions::new().progress(|progress| {
                    assert_eq!(thread::current().id(), id, "on the thread that waits");
                    seen.push(progress.progress().unwrap());
                });
                client.call_tool_with("t", (), options)
            },
            || {
                let request = script.recv();
                let token = &request["params"]["_meta"]["progressToken"];
                let mut all = String::new();
                // One that does not grow is delivered like the others.
                for step in [1, 2, 2] {
                    all += &format!("{}\n", progress(token, json!(step)));
                }
                let result = json!({"content": [{"type": "text", "text": "done"}]});
                let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
                script.raw(format!("{all}{answer}\n"));
            },
        );
        assert_eq!(result.unwrap().all_text(), "done");
        assert_eq!(seen, [1.0, 2.0, 2.0]);
    }
}

#[test]
fn c092_progress_may_be_a_fraction_and_have_words() {
    for (client, mut script) in tools(&options()) {
        let mut seen = Vec::new();
        let result = during(
            || {
                let options = CallOptions::new().progress(|progress| {
                    let message = progress.message().map(|words| words.into_owned());
                    seen.push((progress.progress(), progress.total(), message));
                });
                client.call_tool_with("t", (), options)
            },
            || {
                let request = script.recv();
                let token = &request["params"]["_meta"]["progressToken"];
                let mut half = progress(token, json!(0.5));
                half["params"]["total"] = json!(1.0);
                half["params"]["message"] = json!("half of it");
                script.send(half);
                let mut odd = progress(token, json!("most"));
                odd["params"]["total"] = json!(null);
                odd["params"]["message"] = json!(["a"]);
                script.send(odd);
                script.answer(&request, json!({"content": []}));
            },
        );
        assert!(!result.unwrap().is_error());
        let words = Some("half of it".to_owned());
        assert_eq!(seen, [(Some(0.5), Some(1.0), words), (None, None, None)]);
    }
}

#[test]
fn a_call_that_wants_no_progress_sends_no_token() {
    for (client, mut script) in tools(&options()) {
        let result = during(
            || client.call_tool("t", ()),
            || {
                let request = script.recv();
                let meta = &request["params"]["_meta"];
                assert_eq!(meta.get("progressToken"), None);
                // In the legacy era there is nothing to say there at all.
                assert_eq!(meta.is_null(), request["params"] == json!({"name": "t"}));
                script.answer(&request, json!({"content": []}));
            },
        );
        assert!(result.unwrap().content().is_empty());
    }
}

const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

#[test]
fn c093_a_legacy_server_is_asked_for_each_level() {
    assert_eq!(LogLevel::ALL.map(LogLevel::as_str), LEVELS);
    assert!(LogLevel::ALL.is_sorted());
    for revision in LEGACY {
        let (client, mut script) = legacy(&options(), revision, json!({"logging": {}}));
        for level in LogLevel::ALL {
            let set = during(
                || client.set_log_level(level),
                || {
                    let request = script.recv();
                    assert_eq!(request["method"], "logging/setLevel");
                    assert_eq!(request["params"], json!({"level": level.as_str()}));
                    script.answer(&request, json!({}));
                },
            );
            set.unwrap();
        }
    }
}

#[test]
fn c093_a_server_without_logging_is_not_asked() {
    for (client, script) in both(&options(), &json!({})) {
        let error = client.set_log_level(LogLevel::Info).unwrap_err();
        assert!(
            matches!(&error, Error::NotSupported { method, capability: "logging" }
                if **method == *"logging/setLevel"),
            "{error}"
        );
        drop(client);
        assert_eq!(script.rest(), "");
    }
}

#[test]
fn c094_a_modern_request_names_the_level_once_it_was_asked_for() {
    let (client, mut script) = modern(&options(), json!({"logging": {}, "tools": {}}));
    let mut level_with = |options: fn() -> CallOptions<'static>| {
        let mut level = None;
        let result = during(
            || client.call_tool_with("t", (), options()),
            || {
                let request = script.recv();
                assert_eq!(request["method"], "tools/call");
                let meta = &request["params"]["_meta"];
                level = meta.get("io.modelcontextprotocol/logLevel").cloned();
                script.answer(&request, json!({"content": []}));
            },
        );
        result.unwrap();
        level
    };
    assert_eq!(level_with(CallOptions::new), None);
    for wanted in LogLevel::ALL {
        client.set_log_level(wanted).unwrap();
        assert_eq!(level_with(CallOptions::new), Some(json!(wanted.as_str())));
    }
    // A call may have its own.
    let own = || CallOptions::new().log_level(LogLevel::Debug);
    assert_eq!(level_with(own), Some(json!("debug")));
    assert_eq!(level_with(CallOptions::new), Some(json!("emergency")));
}

#[test]
fn c095_a_log_message_holds_any_value() {
    let logs = Arc::new(Mutex::new(Vec::new()));
    let noting = logs.clone();
    let options = options().on_log(move |_, log| {
        let logger = log.logger().map(|name| name.into_owned());
        let data = log.data().map(|raw| raw.get().to_owned());
        noting.lock().unwrap().push((log.level(), logger, data));
    });
    let data = [
        r#""text""#,
        "null",
        "true",
        "-1.50",
        "[1, null]",
        r#"{"a": {"b": []}}"#,
        r#""\ud800""#,
    ];
    for (client, mut script) in both(&options, &json!({"logging": {}})) {
        for data in data {
            script.raw(format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\
                 \"params\":{{\"level\":\"alert\",\"logger\":\"db\",\"data\":{data}}}}}\n"
            ));
        }
        script.send(notification(
            "notifications/message",
            json!({"level": "loud"}),
        ));
        script.send(json!({"jsonrpc": "2.0", "method": "notifications/message"}));
        eventually("all were told", || {
            logs.lock().unwrap().len() == data.len() + 2
        });
        let told = std::mem::take(&mut *logs.lock().unwrap());
        for (told, data) in told.iter().zip(data) {
            let expected = (Some(LogLevel::Alert), Some("db".into()), Some(data.into()));
            assert_eq!(*told, expected);
        }
        assert_eq!(told[data.len()..], [(None, None, None), (None, None, None)]);
        assert_eq!(fence(&client, &mut script), Vec::<Value>::new());
    }
}

/// Plays the pages of one list: what each request must hold as its cursor, and what is answered.
fn pages(script: &mut Script, method: &str, pages: &[(Option<&str>, Value)]) {
    for (cursor, page) in pages {
        let request = script.recv();
        assert_eq!(request["method"], method);
        assert_eq!(
            request["params"].get("cursor"),
            cursor.map(Value::from).as_ref()
        );
        script.answer(&request, page.clone());
    }
}

fn page(names: &[&str], next: Value) -> Value {
    let tools: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"tools": tools, "nextCursor": next})
}

/// Lists the tools over these pages: their names, and why there may be more.
fn listed(
    client: &Client,
    script: &mut Script,
    all: &[(Option<&str>, Value)],
) -> (Vec<String>, Option<Stop>) {
    let list = during(|| client.tools(), || pages(script, "tools/list", all));
    let list = list.unwrap();
    let names = list.iter().map(|tool| tool.name().into_owned());
    (names.collect(), list.stopped())
}

#[test]
fn c096_a_list_follows_its_cursors_as_they_came() {
    let odd = "  a\u{e9}\"\\\n\u{1f600}==";
    for (client, mut script) in tools(&options()) {
        let seen = listed(
            &client,
            &mut script,
            &[
                (None, page(&["a", "b"], json!(odd))),
                (Some(odd), page(&[], json!(""))),
                (Some(""), page(&["c"], json!(null))),
            ],
        );
        assert_eq!(seen, (vec!["a".into(), "b".into(), "c".into()], None));
        let absent = json!({"tools": [{"name": "z"}]});
        let seen = listed(&client, &mut script, &[(None, absent)]);
        assert_eq!(seen, (vec!["z".into()], None));
    }
}

#[test]
fn c096_a_list_that_goes_in_circles_keeps_what_it_has_and_says_so() {
    for (client, mut script) in tools(&options().page_limit(4)) {
        let seen = listed(
            &client,
            &mut script,
            &[
                (None, page(&["a"], json!("1"))),
                (Some("1"), page(&["b"], json!("2"))),
                (Some("2"), page(&["c"], json!("1"))),
            ],
        );
        let all = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<_>>();
        assert_eq!(seen, (all(&["a", "b", "c"]), Some(Stop::RepeatedCursor)));
        let seen = listed(
            &client,
            &mut script,
            &[
                (None, page(&["a"], json!("1"))),
                (Some("1"), page(&["b"], json!("2"))),
                (Some("2"), page(&["c"], json!("3"))),
                (Some("3"), page(&["d"], json!("4"))),
            ],
        );
        assert_eq!(seen, (all(&["a", "b", "c", "d"]), Some(Stop::PageLimit)));
        let numbered = page(&["a"], json!(2));
        let seen = listed(&client, &mut script, &[(None, numbered)]);
        assert_eq!(seen, (all(&["a"]), Some(Stop::UnusableCursor)));
        assert_eq!(fence(&client, &mut script), Vec::<Value>::new());
    }
}

#[test]
fn c096_every_list_has_pages_one_by_one() {
    let declared = json!({"tools": {}, "resources": {}, "prompts": {}});
    for (client, mut script) in both(&options(), &declared) {
        let at = Cursor::new("here");
        let result = |member: &str, item: Value| json!({member: [item], "nextCursor": "there"});
        let mut page = |method: &str, result: Value, call: &(dyn Fn() -> Option<Cursor> + Sync)| {
            let next = during(call, || {
                pages(&mut script, method, &[(Some("here"), result)])
            });
            assert_eq!(next.unwrap().as_str(), "there", "{method}");
        };
        page("tools/list", result("tools", json!({"name": "n"})), &|| {
            let page = client.tools_page(Some(&at)).unwrap();
            assert_eq!(page.items[0].name(), "n");
            page.next
        });
        let resource = result("resources", json!({"uri": "u:1", "name": "n"}));
        page("resources/list", resource, &|| {
            let page = client.resources_page(Some(&at)).unwrap();
            assert_eq!(
                (page.items[0].uri(), page.items[0].name()),
                ("u:1".into(), "n".into())
            );
            page.next
        });
        let template = result(
            "resourceTemplates",
            json!({"uriTemplate": "u:{x}", "name": "n"}),
        );
        page("resources/templates/list", template, &|| {
            let page = client.resource_templates_page(Some(&at)).unwrap();
            assert_eq!(page.items[0].uri_template(), "u:{x}");
            page.next
        });
        page(
            "prompts/list",
            result("prompts", json!({"name": "n"})),
            &|| {
                let page = client.prompts_page(Some(&at)).unwrap();
                assert_eq!(page.items[0].name(), "n");
                page.next
            },
        );
    }
}
