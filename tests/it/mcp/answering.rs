//! What a legacy server asks and tells, and who answers.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use landline::mcp::{Elicited, Options, Root, RootError, Sample};
use serde_json::{Value, json};

use super::server::{
    LEGACY, answer, answer_in, ask, code, connect, during, fence, form, legacy, modern, refuse,
    sampling, with,
};
use crate::support::HANG;

fn options() -> Options {
    Options::new("test", "1")
}

fn page(id: &str) -> Value {
    let mut page = json!({"mode": "url", "message": "log in", "url": "https://example.com/"});
    page["elicitationId"] = id.into();
    json!({"method": "elicitation/create", "params": page})
}

#[test]
fn c072_a_ping_is_answered_at_once_while_a_person_is_asked() {
    let (asked, asking) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let options = options().elicit_form(move |_, _| {
        asked.send(()).unwrap();
        released.lock().unwrap().recv_timeout(HANG).unwrap();
        Elicited::Decline
    });
    let (_client, mut script) = legacy(&options, "2025-06-18", json!({}));
    ask(&mut script, 1, &form("a"));
    asking.recv_timeout(HANG).unwrap();
    ask(&mut script, 2, &json!({"method": "ping"}));
    let pong = script.recv();
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    release.send(()).unwrap();
    let declined = script.recv();
    assert_eq!(
        declined,
        json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}})
    );
}

#[test]
fn c073_the_roots_are_given_in_every_legacy_revision() {
    let options = options().roots(|_| {
        vec![
            Root::new("file:///srv").unwrap(),
            Root::from_path("/home/me/ä b%").unwrap().named("mine"),
        ]
    });
    for revision in LEGACY {
        let answer = answer_in(&options, revision, &json!({"method": "roots/list"}));
        assert_eq!(
            answer["result"],
            json!({"roots": [
                {"uri": "file:///srv"},
                {"uri": "file:///home/me/%C3%A4%20b%25", "name": "mine"},
            ]})
        );
    }
}

#[test]
fn c073_only_a_file_uri_is_a_root() {
    for good in ["file:///", "file://host/share", "file:///a%20b?c#d"] {
        assert_eq!(Root::new(good).unwrap().uri(), good);
    }
    assert_eq!(Root::new("FILE:///c:/X").unwrap().uri(), "file:///c:/X");
    for bad in [
        "",
        "/home/me",
        "file:/home",
        "https://example.com",
        "file:///a b",
        "file:///ä",
        "file:///a\nb",
        "file:///a\"b",
        "file:///{a}",
    ] {
        let refused = RootError::NoFileUri { uri: bad.into() };
        assert_eq!(Root::new(bad).unwrap_err(), refused, "{bad:?}");
    }
    let relative = Root::from_path("src").unwrap_err();
    assert_eq!(relative.to_string(), "src is no absolute path");
}

#[test]
fn c074_what_is_not_declared_is_no_method() {
    for revision in LEGACY {
        let page = page("1");
        for question in [
            json!({"method": "roots/list"}),
            sampling("s"),
            form("f"),
            page,
        ] {
            let answer = answer_in(&options(), revision, &question);
            assert_eq!(code(&answer), -32601, "{revision} {question}");
        }
    }
    // Elicitation begins with 2025-06-18, and that by URL with 2025-11-25.
    let forms = options().elicit_form(|_, _| panic!("there is no such method"));
    for revision in ["2024-11-05", "2025-03-26"] {
        assert_eq!(code(&answer_in(&forms, revision, &form("f"))), -32601);
    }
    let pages = options().elicit_url(|_, _| panic!("there is no such mode"));
    for question in [form("f"), page("1")] {
        assert_eq!(code(&answer_in(&pages, "2025-06-18", &question)), -32601);
    }
}

#[test]
fn c075_a_change_of_the_roots_is_told_where_it_was_promised() {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let roots = || options().roots(|_| Vec::new());
    for revision in LEGACY {
        let (client, mut script) = connect(&roots(), |script| {
            let probe = script.recv();
            refuse(script, &probe, -32601);
            let hello = script.recv();
            assert_eq!(
                hello["params"]["capabilities"],
                json!({"roots": {"listChanged": true}})
            );
            script.answer(
                &hello,
                json!({"protocolVersion": revision, "capabilities": {}, "serverInfo": {}}),
            );
            assert_eq!(script.recv()["method"], "notifications/initialized");
        });
        let client = client.unwrap();
        client.roots_changed().unwrap();
        assert_eq!(script.recv(), changed);
        drop(script);
    }
    let (client, script) = legacy(&options(), "2025-11-25", json!({}));
    client.roots_changed().unwrap();
    drop(client);
    assert_eq!(script.rest(), "", "no roots were declared");
    let (client, script) = modern(&roots(), json!({}));
    client.roots_changed().unwrap();
    drop(client);
    assert_eq!(script.rest(), "", "a modern server asks each time");
}

#[test]
fn c079_accept_decline_and_cancel_are_results() {
    let given = json!({"name": "octo", "age": 8, "ok": true, "score": 0.5});
    let content = given.as_object().unwrap().clone();
    let options = options().elicit_form(move |_, ask| {
        let schema: Value = serde_json::from_str(ask.schema().get()).unwrap();
        assert_eq!(schema["properties"]["name"], json!({"type": "string"}));
        match &*ask.message() {
            "accept" => Elicited::Accept(content.clone()),
            "consent" => Elicited::accept(),
            "decline" => Elicited::Decline,
            _ => Elicited::Cancel,
        }
    });
    for revision in ["2025-06-18", "2025-11-25"] {
        for (words, result) in [
            ("accept", json!({"action": "accept", "content": given})),
            ("consent", json!({"action": "accept", "content": {}})),
            ("decline", json!({"action": "decline"})),
            ("cancel", json!({"action": "cancel"})),
        ] {
            let answer = answer_in(&options, revision, &form(words));
            assert_eq!(answer["result"], result, "{revision}");
        }
    }
}

#[test]
fn c080_no_mode_means_a_form() {
    let options = options()
        .elicit_form(|_, _| Elicited::Decline)
        .elicit_url(|_, _| Elicited::Cancel);
    let missing = form("f");
    let named = with(form("f"), json!({"mode": "form"}));
    let null = with(form("f"), json!({"mode": null}));
    for question in [missing, named, null] {
        let answer = answer_in(&options, "2025-11-25", &question);
        assert_eq!(answer["result"], json!({"action": "decline"}), "{question}");
    }
    let answer = answer_in(&options, "2025-11-25", &page("1"));
    assert_eq!(answer["result"], json!({"action": "cancel"}));
}

#[test]
fn c081_a_mode_that_was_not_declared_is_refused() {
    let forms = options().elicit_form(|_, _| panic!("it was no form"));
    let pages = options().elicit_url(|_, _| panic!("it was no page"));
    let unheard = with(form("f"), json!({"mode": "telepathy"}));
    for (options, question) in [(&forms, page("1")), (&pages, form("f")), (&forms, unheard)] {
        let answer = answer_in(options, "2025-11-25", &question);
        assert_eq!(code(&answer), -32602, "{question}");
    }
}

#[test]
fn malformed_params_are_refused_before_any_handler_runs() {
    let options = options()
        .elicit_form(|_, _| panic!("it is malformed"))
        .elicit_url(|_, _| panic!("it is malformed"))
        .sample(|_, _| panic!("it is malformed"));
    let create = |method: &str, params: Value| json!({"method": method, "params": params});
    for question in [
        json!({"method": "elicitation/create"}),
        create("elicitation/create", json!([])),
        create("elicitation/create", json!({"requestedSchema": {}})),
        create(
            "elicitation/create",
            json!({"message": 1, "requestedSchema": {}}),
        ),
        create(
            "elicitation/create",
            json!({"message": "m", "requestedSchema": []}),
        ),
        create("elicitation/create", json!({"mode": "url", "message": "m"})),
        json!({"method": "sampling/createMessage"}),
        create("sampling/createMessage", json!({"messages": []})),
        create(
            "sampling/createMessage",
            json!({"messages": {}, "maxTokens": 1}),
        ),
        create(
            "sampling/createMessage",
            json!({"messages": [], "maxTokens": 1.5}),
        ),
        create(
            "sampling/createMessage",
            json!({"messages": [], "maxTokens": "1"}),
        ),
    ] {
        let answer = answer_in(&options, "2025-11-25", &question);
        assert_eq!(code(&answer), -32602, "{question}");
    }
}

#[test]
fn c082_only_pages_that_were_asked_for_are_told_complete_and_each_once() {
    let done = Arc::new(Mutex::new(Vec::new()));
    let noting = done.clone();
    let options = options()
        .elicit_url(|_, _| Elicited::accept())
        .on_elicitation_complete(move |_, id| noting.lock().unwrap().push(id.to_owned()));
    let (client, mut script) = legacy(&options, "2025-11-25", json!({"tools": {}}));
    assert_eq!(
        answer(&mut script, &page("asked"))["result"],
        json!({"action": "accept"})
    );
    let error = during(
        || client.call_tool("t", ()),
        || {
            let request = script.recv();
            let pages = json!({"elicitations": [page("needed")["params"]]});
            let error = json!({"code": -32042, "message": "log in first", "data": pages});
            script.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
        },
    );
    assert_eq!(error.unwrap_err().url_elicitations().unwrap().len(), 1);
    for id in ["unknown", "needed", "asked", "asked", "needed"] {
        let params = json!({"elicitationId": id});
        let method = "notifications/elicitation/complete";
        script.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
    let method = "notifications/elicitation/complete";
    script.send(json!({"jsonrpc": "2.0", "method": method, "params": {"elicitationId": 5}}));
    script.send(json!({"jsonrpc": "2.0", "method": method}));
    // A request waits for the notifications before it.
    assert_eq!(code(&answer(&mut script, &form("f"))), -32602);
    assert_eq!(
        fence(&client, &mut script),
        Vec::<Value>::new(),
        "nothing is said to it"
    );
    drop(client);
    drop(script);
    crate::support::eventually("both are told", || done.lock().unwrap().len() == 2);
    assert_eq!(*done.lock().unwrap(), ["needed", "asked"]);
}

#[test]
fn c083_pages_to_be_visited_first_come_with_the_error() {
    let (client, mut script) = legacy(&options(), "2025-11-25", json!({"tools": {}}));
    let mut refuse = |code: i64, data: Value| {
        during(
            || client.call_tool("t", ()),
            || {
                let request = script.recv();
                let error = json!({"code": code, "message": "log in first", "data": data});
                script.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
            },
        )
        .unwrap_err()
    };
    let two = json!({"elicitations": [page("1")["params"], page("2")["params"]], "more": 1});
    let error = refuse(-32042, two);
    let pages = error.url_elicitations().unwrap();
    let shown: Vec<_> = pages
        .iter()
        .map(|page| (page.message(), page.url(), page.elicitation_id().unwrap()))
        .collect();
    let url = "https://example.com/";
    assert_eq!(
        shown,
        [
            ("log in".into(), url.into(), "1".into()),
            ("log in".into(), url.into(), "2".into())
        ]
    );
    assert_eq!(error.rpc().unwrap().code, -32042);
    for (code, data) in [
        (-32042, json!({})),
        (-32042, json!({"elicitations": "none"})),
        (-32041, json!({"elicitations": []})),
    ] {
        assert!(refuse(code, data).url_elicitations().is_none());
    }
}

#[test]
fn c084_the_task_of_a_question_is_named_in_its_answer() {
    let options = options()
        .elicit_form(|_, _| Elicited::Decline)
        .roots(|_| Vec::new());
    let task = json!({"io.modelcontextprotocol/related-task": {"taskId": "t", "x": [1.0]}});
    let other = json!({"com.example/x": 1});
    let mut both = task.clone();
    both["com.example/x"] = json!(1);
    let (_client, mut script) = legacy(&options, "2025-11-25", json!({}));
    let told = answer(&mut script, &with(form("f"), json!({"_meta": both})));
    assert_eq!(told["result"], json!({"action": "decline", "_meta": task}));
    let roots = json!({"method": "roots/list", "params": {"_meta": task}});
    let told = answer(&mut script, &roots);
    assert_eq!(told["result"], json!({"roots": [], "_meta": task}));
    let told = answer(&mut script, &with(form("f"), json!({"_meta": other})));
    assert_eq!(told["result"], json!({"action": "decline"}));
}

#[test]
fn c085_a_wish_for_a_task_is_ignored() {
    let options = options()
        .sample(|_, _| Ok(Sample::text("m", "plain")))
        .elicit_form(|_, _| Elicited::Cancel);
    let task = json!({"task": {"ttl": 60000}});
    let answer = answer_in(&options, "2025-11-25", &with(sampling("s"), task.clone()));
    assert_eq!(
        answer["result"],
        json!({
            "role": "assistant", "content": {"type": "text", "text": "plain"}, "model": "m",
        })
    );
    let answer = answer_in(&options, "2025-11-25", &with(form("f"), task));
    assert_eq!(answer["result"], json!({"action": "cancel"}));
}

#[test]
fn c086_a_question_that_the_server_withdraws_is_not_answered() {
    let (asked, asking) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let options = options().elicit_form(move |cx, _| {
        asked.send(()).unwrap();
        let start = Instant::now();
        while !cx.is_cancelled() {
            assert!(start.elapsed() < HANG);
            thread::sleep(Duration::from_millis(2));
        }
        end.send(()).unwrap();
        Elicited::accept()
    });
    let (client, mut script) = legacy(&options, "2025-11-25", json!({}));
    ask(&mut script, "q", &form("f"));
    asking.recv_timeout(HANG).unwrap();
    // One that is unknown and one without an id are ignored.
    for params in [
        json!({"requestId": "p"}),
        json!({}),
        json!({"requestId": "q"}),
    ] {
        let method = "notifications/cancelled";
        script.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
    ended.recv_timeout(HANG).unwrap();
    assert_eq!(fence(&client, &mut script), Vec::<Value>::new());
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn a_handler_that_panics_answers_with_an_internal_error_and_is_counted() {
    let options = options()
        .elicit_form(|_, _| panic!("no form"))
        .sample(|_, _| panic!("no model"))
        .roots(|_| panic!("no roots"));
    let (client, mut script) = legacy(&options, "2025-11-25", json!({}));
    for question in [form("f"), sampling("s"), json!({"method": "roots/list"})] {
        assert_eq!(code(&answer(&mut script, &question)), -32603);
    }
    assert_eq!(client.peer().survived().handler_panics, 3);
}

#[test]
fn the_time_of_a_person_does_not_count_for_the_call_that_waits() {
    let limit = Duration::from_secs(3);
    let options = options()
        .elicit_form(move |_, _| {
            thread::sleep(limit + Duration::from_millis(100));
            Elicited::Decline
        })
        .request_timeout(limit);
    let (client, mut script) = legacy(&options, "2025-11-25", json!({"tools": {}}));
    let result = during(
        || client.call_tool("t", ()),
        || {
            let request = script.recv();
            assert_eq!(
                answer(&mut script, &form("f"))["result"],
                json!({"action": "decline"})
            );
            script.answer(&request, json!({"content": []}));
        },
    );
    assert!(result.unwrap().content().is_empty());
}

#[test]
fn a_handler_calls_back_before_it_answers() {
    let options = options().roots(|cx| {
        let result = cx.call_tool("where", ()).unwrap();
        vec![Root::new(result.all_text()).unwrap()]
    });
    let (_client, mut script) = legacy(&options, "2025-11-25", json!({"tools": {}}));
    ask(&mut script, 7, &json!({"method": "roots/list"}));
    let request = script.recv();
    assert_eq!(request["params"], json!({"name": "where"}));
    let text = json!({"type": "text", "text": "file:///here"});
    script.answer(&request, json!({"content": [text]}));
    assert_eq!(
        script.recv()["result"],
        json!({"roots": [{"uri": "file:///here"}]})
    );
}
