//! The modern era: what every request carries, and what results and refusals mean.

use landline::mcp::{
    Client, Elicited, Error, Fault, LogLevel, Options, Reference, Result, Session,
};
use serde_json::{Value, json};

use super::server::{connect, during, modern, probed};
use crate::support::Script;

fn options() -> Options {
    Options::new("test", "1")
}

/// What a server declares that can all that is called here.
fn everything() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}})
}

/// Makes a call whose every sending is answered in turn, and gives what was sent.
fn exchange<T: Send>(
    script: &mut Script,
    call: impl FnOnce() -> T + Send,
    answers: impl IntoIterator<Item = Value>,
) -> (T, Vec<Value>) {
    let mut sent = Vec::new();
    let given = during(call, || {
        for mut answer in answers {
            let request = script.recv();
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = request["id"].clone();
            script.send(answer);
            sent.push(request);
        }
    });
    (given, sent)
}

fn result(result: Value) -> Value {
    json!({"result": result})
}

fn refused_version(supported: Value) -> Value {
    let data = json!({"supported": supported, "requested": "x"});
    json!({"error": {"code": -32022, "message": "no", "data": data}})
}

fn done() -> Value {
    result(json!({"content": [{"type": "text", "text": "done"}]}))
}

fn asks() -> Value {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"message": "?", "requestedSchema": schema});
    let question = json!({"method": "elicitation/create", "params": params});
    result(json!({"resultType": "input_required", "inputRequests": {"q": question}}))
}

/// The `_meta` of a request, of a client with a name and a form handler.
fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

#[test]
fn c032_c033_every_request_names_its_version_and_its_sender() {
    for anonymous in [false, true] {
        let mut options = options().elicit_form(|_, _| Elicited::Decline);
        let mut expected = meta("2026-07-28");
        if anonymous {
            options = options.anonymous();
            let members = expected.as_object_mut().unwrap();
            members.remove("io.modelcontextprotocol/clientInfo");
        }
        let mut sent = Vec::new();
        let (client, mut script) = connect(&options, |script| {
            let probe = probed(script);
            script.answer(&probe, super::server::presentation(everything()));
            sent.push(probe);
        });
        let client = client.unwrap();
        let mut run = |call: &(dyn Fn(&Client) + Sync), answers: &[Value]| {
            let answers = answers.iter().cloned();
            sent.extend(exchange(&mut script, || call(&client), answers).1);
        };
        let page = |member: &str, next: Value| result(json!({member: [], "nextCursor": next}));
        let pages = |member: &str| [page(member, json!("2")), page(member, json!(null))];
        run(&|c| drop(c.tools().unwrap()), &pages("tools"));
        run(&|c| drop(c.resources().unwrap()), &pages("resources"));
        let templates = pages("resourceTemplates");
        run(&|c| drop(c.resource_templates().unwrap()), &templates);
        run(&|c| drop(c.prompts().unwrap()), &pages("prompts"));
        run(&|c| drop(c.call_tool("a", ()).unwrap()), &[asks(), done()]);
        let contents = result(json!({"contents": []}));
        run(
            &|c| drop(c.read_resource("file:///a").unwrap()),
            &[asks(), contents],
        );
        let messages = result(json!({"messages": []}));
        run(
            &|c| drop(c.get_prompt("a", ()).unwrap()),
            &[asks(), messages],
        );
        let completion = result(json!({"completion": {"values": []}}));
        let prompt = Reference::Prompt("p".into());
        run(
            &|c| drop(c.complete(&prompt, "a", "v", ()).unwrap()),
            &[completion],
        );
        let any = result(json!({}));
        run(
            &|c| drop(c.request::<Value>("server/discover", ()).unwrap()),
            std::slice::from_ref(&any),
        );
        run(
            &|c| drop(c.request::<Value>("com.example/x", json!({})).unwrap()),
            &[any],
        );
        assert_eq!(sent.len(), 18);
        for request in sent {
            assert_eq!(request["params"]["_meta"], expected, "{request}");
        }
    }
}

#[test]
fn c034_what_the_era_has_not_is_not_sent() {
    let options = options().roots(|_| Vec::new());
    let (client, script) = modern(&options, everything());
    let error = client.ping().unwrap_err();
    assert_eq!(error.to_string(), "revision 2026-07-28 has no `ping`");
    assert_eq!(error.delivery(), landline::Delivery::NotSent);
    client.roots_changed().unwrap();
    client.set_log_level(LogLevel::Info).unwrap();
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn the_log_level_goes_with_every_request_once_it_is_set() {
    const KEY: &str = "io.modelcontextprotocol/logLevel";
    let options = options().elicit_form(|_, _| Elicited::Decline);
    let (client, mut script) = modern(&options, everything());
    let call = || client.call_tool("a", ()).unwrap();
    let (_, before) = exchange(&mut script, call, [done()]);
    assert!(before[0]["params"]["_meta"].get(KEY).is_none());
    client.set_log_level(LogLevel::Warning).unwrap();
    let (_, after) = exchange(&mut script, call, [asks(), done()]);
    for request in after {
        assert_eq!(request["params"]["_meta"][KEY], "warning");
    }
}

#[test]
fn c035_a_result_without_a_type_is_complete() {
    let (client, mut script) = modern(&options(), everything());
    for result_ in [
        json!({"content": [{"type": "text", "text": "done"}]}),
        json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]}),
    ] {
        let answers = [result(result_)];
        let (given, _) = exchange(&mut script, || client.call_tool("a", ()), answers);
        assert_eq!(given.unwrap().all_text(), "done");
    }
}

type Calls = &'static [fn(&Session) -> Result<()>];

/// The calls whose results may ask for something, and those whose may not.
const ASKABLE: Calls = &[
    |s| s.call_tool("a", ()).map(drop),
    |s| s.read_resource("file:///a").map(drop),
    |s| s.get_prompt("a", ()).map(drop),
];
const OTHERS: Calls = &[
    |s| s.tools().map(drop),
    |s| s.resources().map(drop),
    |s| s.resource_templates().map(drop),
    |s| s.prompts().map(drop),
    |s| {
        let prompt = Reference::Prompt("p".into());
        s.complete(&prompt, "a", "v", ()).map(drop)
    },
    |s| s.request::<Value>("com.example/x", ()).map(drop),
];

#[test]
fn c036_a_result_of_an_unknown_type_is_invalid_and_costs_its_call_alone() {
    let (client, mut script) = modern(&options(), everything());
    for (word, shown) in [
        (json!("banana"), "banana"),
        // Known to an extension that is not declared.
        (json!("task"), "task"),
        (json!("Complete"), "Complete"),
        (json!(1), "1"),
    ] {
        for call in ASKABLE.iter().chain(OTHERS) {
            // All that any of them could want.
            let mut fields = json!({
                "content": [], "contents": [], "messages": [], "tools": [], "resources": [],
                "resourceTemplates": [], "prompts": [], "completion": {"values": []},
            });
            fields["resultType"] = word.clone();
            let answers = [result(fields)];
            let (given, _) = exchange(&mut script, || call(&client), answers);
            let error = given.unwrap_err();
            let Error::Invalid { fault, .. } = &error else {
                panic!("{error:?}");
            };
            assert_eq!(fault, &Fault::ResultType(shown.into()));
        }
    }
    let (given, _) = exchange(&mut script, || client.call_tool("a", ()), [done()]);
    assert_eq!(given.unwrap().all_text(), "done");
}

#[test]
fn c037_a_result_that_asks_where_it_may_not_or_for_nothing_is_invalid() {
    let options = options().elicit_form(|_, _| Elicited::Decline);
    let (client, mut script) = modern(&options, everything());
    let invalid = |script: &mut Script, call: fn(&Session) -> Result<()>, answer: Value| {
        let (given, sent) = exchange(script, || call(&client), [answer]);
        let error = given.unwrap_err();
        assert!(
            matches!(
                &error,
                Error::Invalid {
                    fault: Fault::Input,
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(sent.len(), 1);
    };
    for call in OTHERS {
        invalid(&mut script, *call, asks());
    }
    for call in ASKABLE {
        for empty in [
            json!({}),
            json!({"requestState": 1}),
            json!({"requestState": null}),
            json!({"inputRequests": []}),
            json!({"inputRequests": {"q": {}}}),
            json!({"inputRequests": {"q": "roots/list"}}),
        ] {
            let mut empty = empty;
            empty["resultType"] = json!("input_required");
            invalid(&mut script, *call, result(empty));
        }
    }
    drop(client);
    assert_eq!(script.rest(), "", "nothing is tried again");
}

/// Connects in a version that is newer than the one both speak.
fn ahead() -> (Client, Script) {
    let options = options()
        .modern_versions(["2027-01-01", "2026-07-28"])
        .elicit_form(|_, _| Elicited::Decline);
    let (client, script) = connect(&options, |script| {
        let probe = probed(script);
        let versions = ["2027-01-01", "2026-07-28"];
        script.answer(
            &probe,
            json!({"supportedVersions": versions, "capabilities": everything()}),
        );
    });
    (client.unwrap(), script)
}

#[test]
fn c038_a_version_refused_by_a_call_is_replaced_and_remembered() {
    let (client, mut script) = ahead();
    let call = || client.call_tool("a", json!({"b": 1})).unwrap();
    let answers = [refused_version(json!(["2026-07-28", "2025-11-25"])), done()];
    let (given, sent) = exchange(&mut script, call, answers);
    assert_eq!(given.all_text(), "done");
    assert_ne!(sent[0]["id"], sent[1]["id"]);
    for (request, version) in sent.iter().zip(["2027-01-01", "2026-07-28"]) {
        let expected = json!({"name": "a", "arguments": {"b": 1}, "_meta": meta(version)});
        assert_eq!(request["params"], expected);
    }
    let (_, sent) = exchange(&mut script, call, [done()]);
    assert_eq!(sent[0]["params"]["_meta"], meta("2026-07-28"));
}

#[test]
fn c038_a_version_refused_between_rounds_keeps_the_answers_of_the_round() {
    let (client, mut script) = ahead();
    let call = || client.call_tool("a", ()).unwrap();
    let mut question = asks();
    question["result"]["requestState"] = json!("s");
    let answers = [question, refused_version(json!(["2026-07-28"])), done()];
    let (_, sent) = exchange(&mut script, call, answers);
    for (request, version) in sent[1..].iter().zip(["2027-01-01", "2026-07-28"]) {
        let expected = json!({
            "name": "a",
            "inputResponses": {"q": {"action": "decline"}},
            "requestState": "s",
            "_meta": meta(version),
        });
        assert_eq!(request["params"], expected);
    }
}

#[test]
fn c039_a_version_is_sent_once_where_none_is_accepted() {
    for theirs in [
        json!(["2027-01-01", "2026-07-28"]),
        json!(["2026-07-28", "2027-01-01", 5]),
    ] {
        let (client, mut script) = ahead();
        let refusal = refused_version(theirs);
        let answers = [refusal.clone(), refusal.clone()];
        let (given, sent) = exchange(&mut script, || client.call_tool("a", ()), answers);
        let error = given.unwrap_err();
        assert!(matches!(error, Error::NoCommonVersion { .. }), "{error:?}");
        assert_eq!(sent.len(), 2);
        // The next call does not go round again.
        let (given, _) = exchange(&mut script, || client.call_tool("a", ()), [refusal]);
        assert!(matches!(given, Err(Error::NoCommonVersion { .. })));
        drop(client);
        assert_eq!(script.rest(), "");
    }
}

#[test]
fn c039_the_versions_of_both_sides_are_told_where_there_is_no_other() {
    let (client, mut script) = modern(&options(), everything());
    let answers = [refused_version(json!(["2030-01-01"]))];
    let (given, _) = exchange(&mut script, || client.tools(), answers);
    let error = given.unwrap_err();
    let Error::NoCommonVersion {
        method,
        theirs,
        ours,
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(&**method, "tools/list");
    assert_eq!(
        (&theirs[..], &ours[..]),
        (
            &["2030-01-01".to_owned()][..],
            &["2026-07-28".to_owned()][..]
        )
    );
    assert_eq!(
        error.to_string(),
        "the server speaks 2030-01-01, this client 2026-07-28"
    );
    // One that names none is an error as any other.
    let bare = json!({"error": {"code": -32022, "message": "no"}});
    let (given, _) = exchange(&mut script, || client.tools(), [bare]);
    assert_eq!(given.unwrap_err().rpc().unwrap().code, -32022);
}

#[test]
fn c040_the_capabilities_that_a_refusal_asks_for_are_told() {
    let (client, mut script) = modern(&options(), everything());
    let data = json!({"requiredCapabilities": {"sampling": {"tools": {}}}});
    let error = json!({"error": {"code": -32021, "message": "more", "data": data}});
    let (given, sent) = exchange(&mut script, || client.call_tool("a", ()), [error]);
    let error = given.unwrap_err();
    assert_eq!(
        error.required_capabilities().unwrap().get(),
        r#"{"sampling":{"tools":{}}}"#
    );
    assert_eq!(error.rpc().unwrap().code, -32021);
    assert_eq!(sent.len(), 1);
    let bare = json!({"error": {"code": -32021, "message": "more"}});
    let (given, _) = exchange(&mut script, || client.call_tool("a", ()), [bare]);
    assert!(given.unwrap_err().required_capabilities().is_none());
    drop(client);
    assert_eq!(script.rest(), "", "it is not tried again");
}

#[test]
fn c041_a_resource_that_is_not_there_is_told_by_either_code() {
    let (client, mut script) = modern(&options(), everything());
    let error = |code: i64| json!({"error": {"code": code, "message": "none"}});
    for (code, not_found) in [(-32002, true), (-32602, true), (-32603, false)] {
        let read = || client.read_resource("file:///a").unwrap_err();
        let (given, _) = exchange(&mut script, read, [error(code)]);
        assert_eq!(given.is_resource_not_found(), not_found, "{code}");
        // Of another method it means something else.
        let call = || client.call_tool("a", ()).unwrap_err();
        let (given, _) = exchange(&mut script, call, [error(code)]);
        assert!(!given.is_resource_not_found());
    }
}
