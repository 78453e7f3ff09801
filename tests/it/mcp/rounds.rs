//! Rounds of the modern era: a result that asks, and the call sent once more with the answers.

use std::thread;

use landline::mcp::{
    CallOptions, Client, Elicited, Error, FormRequest, Options, Root, Sample, ToolResult,
};
use serde_json::{Map, Value, json};

use super::server::{ask_back, during, form, modern, sampling};
use crate::support::Script;

/// Fills in the name of whoever is asked for.
pub(super) fn named(ask: &FormRequest) -> Elicited {
    let answer = json!({"name": format!("{}!", ask.message())});
    Elicited::Accept(answer.as_object().unwrap().clone())
}

pub(super) fn options() -> Options {
    Options::new("test", "1").elicit_form(|_, ask| named(ask))
}

pub(super) fn tools(options: &Options) -> (Client, Script) {
    modern(options, json!({"tools": {}}))
}

pub(super) fn done() -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})
}

/// Calls the tool `t` while the server plays; gives how the call ended.
pub(super) fn call(client: &Client, play: impl FnOnce()) -> Result<ToolResult, Error> {
    during(|| client.call_tool("t", json!({"a": 1})), play)
}

/// The params of a retry without what every request carries.
fn bare(request: &Value) -> Value {
    let mut params = request["params"].clone();
    params.as_object_mut().unwrap().remove("_meta");
    params
}

#[test]
fn c053_a_retry_answers_every_key_with_the_original_params_and_a_new_id() {
    let options = options()
        .roots(|_| vec![Root::new("file:///home/me").unwrap().named("home")])
        .sample(|_, ask| {
            assert_eq!(ask.max_tokens(), Some(10));
            Ok(Sample::text("tiny", "a poem").stop_reason("endTurn"))
        });
    let (client, mut script) = tools(&options);
    let result = call(&client, || {
        let first = script.recv();
        assert_eq!(bare(&first), json!({"name": "t", "arguments": {"a": 1}}));
        let mut needs = Map::new();
        needs.insert("who".into(), form("octo"));
        // As the protocol has it, without params.
        needs.insert("where".into(), json!({"method": "roots/list"}));
        needs.insert("what".into(), sampling("write"));
        ask_back(&mut script, &first, json!({"inputRequests": needs}));
        let second = script.recv();
        assert_eq!(second["method"], "tools/call");
        assert_ne!(second["id"], first["id"]);
        assert_eq!(second["params"]["_meta"], first["params"]["_meta"]);
        assert_eq!(
            bare(&second),
            json!({
                "name": "t",
                "arguments": {"a": 1},
                "inputResponses": {
                    "who": {"action": "accept", "content": {"name": "octo!"}},
                    "where": {"roots": [{"uri": "file:///home/me", "name": "home"}]},
                    "what": {
                        "role": "assistant",
                        "content": {"type": "text", "text": "a poem"},
                        "model": "tiny",
                        "stopReason": "endTurn",
                    },
                },
            })
        );
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c053_of_a_key_that_comes_twice_the_last_is_asked_and_answered() {
    let (client, mut script) = tools(&options());
    let result = call(&client, || {
        let first = script.recv();
        let (id, one, two) = (&first["id"], form("one"), form("two"));
        script.raw(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"input_required\",\
             \"inputRequests\":{{\"a\":{one},\"a\":{two}}}}}}}\n"
        ));
        let line = script.line().unwrap();
        assert_eq!(line.matches("\"action\"").count(), 1, "{line}");
        let second: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            bare(&second)["inputResponses"],
            json!({"a": {"action": "accept", "content": {"name": "two!"}}})
        );
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c054_the_state_goes_back_byte_for_byte_and_only_where_it_was_given() {
    let (client, mut script) = tools(&options());
    // What any encoder that reads and writes it again would change.
    let states = [
        r#""""#,
        r#""  a b  ""#,
        r#""{\"json\": [1, 2 ]}""#,
        r#""\u00e9\/é\u0065\u0301""#,
        r#""\ud83d\ude00 \ud800""#,
    ];
    for state in states {
        let result = call(&client, || {
            let first = script.recv();
            let (id, who) = (&first["id"], form("a"));
            script.raw(format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"input_required\",\
                 \"requestState\":{state},\"inputRequests\":{{\"a\":{who}}}}}}}\n"
            ));
            let line = script.line().unwrap();
            let sent = format!("\"requestState\":{state}");
            assert!(line.contains(&sent), "{line} has no {sent}");
            // Nothing else of the line has an odd escape.
            let second: Value = serde_json::from_str(&line.replace("\\ud800", "")).unwrap();
            ask_back(
                &mut script,
                &second,
                json!({"inputRequests": {"b": form("b")}}),
            );
            let third = script.recv();
            assert_eq!(third["params"].get("requestState"), None);
            script.answer(&third, done());
        });
        assert_eq!(result.unwrap().all_text(), "done");
    }
}

#[test]
fn c055_a_round_of_state_alone_is_retried_without_responses() {
    let (client, mut script) = tools(&options());
    let result = call(&client, || {
        let first = script.recv();
        ask_back(&mut script, &first, json!({"requestState": "s"}));
        let second = script.recv();
        assert_eq!(
            bare(&second),
            json!({"name": "t", "arguments": {"a": 1}, "requestState": "s"})
        );
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c055_a_round_that_asks_for_nothing_is_answered_with_nothing() {
    let (client, mut script) = tools(&options());
    let result = call(&client, || {
        let first = script.recv();
        ask_back(&mut script, &first, json!({"inputRequests": {}}));
        let second = script.recv();
        assert_eq!(
            bare(&second),
            json!({"name": "t", "arguments": {"a": 1}, "inputResponses": {}})
        );
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c056_answers_are_not_collected_over_the_rounds() {
    let (client, mut script) = tools(&options());
    let result = call(&client, || {
        let first = script.recv();
        ask_back(
            &mut script,
            &first,
            json!({"inputRequests": {"a": form("a")}, "requestState": "1"}),
        );
        let second = script.recv();
        assert_eq!(second["params"]["requestState"], "1");
        ask_back(
            &mut script,
            &second,
            json!({"inputRequests": {"b": form("b")}, "requestState": "2"}),
        );
        let third = script.recv();
        assert_eq!(
            bare(&third),
            json!({
                "name": "t",
                "arguments": {"a": 1},
                "inputResponses": {"b": {"action": "accept", "content": {"name": "b!"}}},
                "requestState": "2",
            })
        );
        script.answer(&third, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c057_answers_and_state_go_into_no_other_call() {
    let (client, mut script) = tools(&options());
    let plain = json!({"name": "t", "arguments": {"a": 1}});
    let (one, two) = thread::scope(|scope| {
        let one = scope.spawn(|| client.call_tool("t", json!({"a": 1})));
        let first = script.recv();
        ask_back(
            &mut script,
            &first,
            json!({"inputRequests": {"a": form("a")}, "requestState": "mine"}),
        );
        let retry = script.recv();
        assert_eq!(retry["params"]["requestState"], "mine");
        // The same call from another thread, while that one is on its way.
        let two = scope.spawn(|| client.call_tool("t", json!({"a": 1})));
        let other = script.recv();
        assert_eq!(bare(&other), plain);
        script.answer(&retry, done());
        script.answer(&other, done());
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!(one.unwrap().all_text(), "done");
    assert_eq!(two.unwrap().all_text(), "done");
    // And once more afterwards.
    let result = call(&client, || {
        let later = script.recv();
        assert_eq!(bare(&later), plain);
        script.answer(&later, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c060_a_decline_and_a_cancel_are_answers() {
    let options = Options::new("test", "1").elicit_form(|_, ask| match &*ask.message() {
        "decline" => Elicited::Decline,
        _ => Elicited::Cancel,
    });
    let (client, mut script) = tools(&options);
    let result = call(&client, || {
        let first = script.recv();
        let needs = json!({"one": form("decline"), "two": form("cancel")});
        ask_back(&mut script, &first, json!({"inputRequests": needs}));
        let second = script.recv();
        assert_eq!(
            bare(&second)["inputResponses"],
            json!({"one": {"action": "decline"}, "two": {"action": "cancel"}})
        );
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c060_consent_to_a_page_is_sent_without_content() {
    let options = Options::new("test", "1").elicit_url(|_, ask| {
        assert_eq!(ask.url(), "https://example.com/login");
        assert_eq!(ask.elicitation_id(), None);
        Elicited::accept()
    });
    let (client, mut script) = tools(&options);
    let result = call(&client, || {
        let first = script.recv();
        let page = json!({"mode": "url", "message": "log in", "url": "https://example.com/login"});
        let page = json!({"method": "elicitation/create", "params": page});
        ask_back(&mut script, &first, json!({"inputRequests": {"p": page}}));
        let second = script.recv();
        assert_eq!(
            bare(&second)["inputResponses"],
            json!({"p": {"action": "accept"}})
        );
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c062_prompts_and_resources_ask_as_well() {
    let (client, mut script) = modern(&options(), json!({"prompts": {}, "resources": {}}));
    let answered = json!({"a": {"action": "accept", "content": {"name": "x!"}}});
    let asks = json!({"inputRequests": {"a": form("x")}, "requestState": "s"});
    let prompt = during(
        || client.get_prompt("p", json!({"k": "v"})),
        || {
            let first = script.recv();
            ask_back(&mut script, &first, asks.clone());
            let second = script.recv();
            assert_eq!(second["method"], "prompts/get");
            assert_eq!(
                bare(&second),
                json!({
                    "name": "p", "arguments": {"k": "v"},
                    "inputResponses": answered, "requestState": "s",
                })
            );
            let message = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
            script.answer(&second, json!({"messages": [message]}));
        },
    );
    let messages = prompt.unwrap().messages();
    assert_eq!(messages[0].content().as_text().unwrap(), "hi");
    let read = during(
        || client.read_resource("file:///x"),
        || {
            let first = script.recv();
            ask_back(&mut script, &first, asks.clone());
            let second = script.recv();
            assert_eq!(second["method"], "resources/read");
            assert_eq!(
                bare(&second),
                json!({"uri": "file:///x", "inputResponses": answered, "requestState": "s"})
            );
            let contents = json!([{"uri": "file:///x", "text": "read"}]);
            script.answer(&second, json!({"contents": contents}));
        },
    );
    assert_eq!(read.unwrap().contents()[0].as_text().unwrap(), "read");
}

#[test]
fn each_round_has_a_progress_token_of_its_own() {
    let (client, mut script) = tools(&options());
    let mut seen = Vec::new();
    let result = during(
        || {
            let options = CallOptions::new().progress(|progress| seen.push(progress.progress()));
            client.call_tool_with("t", (), options)
        },
        || {
            let mut request = script.recv();
            for round in 1..=3 {
                let token = &request["params"]["_meta"]["progressToken"];
                assert_eq!(*token, request["id"]);
                script.send(json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": round},
                }));
                if round == 3 {
                    return script.answer(&request, done());
                }
                ask_back(&mut script, &request, json!({"requestState": "s"}));
                request = script.recv();
            }
        },
    );
    assert_eq!(result.unwrap().all_text(), "done");
    assert_eq!(seen, [Some(1.0), Some(2.0), Some(3.0)]);
}

#[test]
fn a_handler_may_call_back_while_it_is_asked() {
    let options = Options::new("test", "1").elicit_form(|cx, _| {
        let tools = cx.tools().unwrap();
        let answer = json!({"name": tools[0].name()});
        Elicited::Accept(answer.as_object().unwrap().clone())
    });
    let (client, mut script) = tools(&options);
    let result = call(&client, || {
        let first = script.recv();
        ask_back(
            &mut script,
            &first,
            json!({"inputRequests": {"a": form("a")}, "requestState": "s"}),
        );
        let list = script.recv();
        assert_eq!(list["method"], "tools/list");
        assert_eq!(bare(&list), json!({}), "the state is the call's alone");
        script.answer(&list, json!({"tools": [{"name": "found"}]}));
        let second = script.recv();
        assert_eq!(
            bare(&second)["inputResponses"]["a"]["content"]["name"],
            "found"
        );
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}
