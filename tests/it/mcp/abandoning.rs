//! Rounds that do not go on: what abandons a call of the modern era that was asked something.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use landline::mcp::{CallOptions, Error, Fault, Options, Sample};
use landline::{CancelToken, Delivery, RpcError};
use serde_json::{Map, Value, json};

use super::rounds::{call, done, named, options, tools};
use super::server::{ask_back, during, form, sampling};

/// Counts how often a handler runs.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn up(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Has a result ask for this; the call must fail without another sending.
fn fails(options: &Options, needs: Value) -> Error {
    let (client, mut script) = tools(options);
    let error = call(&client, || {
        let first = script.recv();
        ask_back(&mut script, &first, needs);
    })
    .unwrap_err();
    assert_eq!(error.delivery(), Delivery::Answered);
    drop(client);
    assert_eq!(script.rest(), "");
    error
}

/// What a result asked for that this client does not declare.
fn undeclared(error: &Error) -> &str {
    match error {
        Error::Invalid {
            fault: Fault::Undeclared(what),
            ..
        } => what,
        other => panic!("{other}"),
    }
}

#[test]
fn c058_what_was_not_declared_fails_the_call() {
    let url = json!({
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "m", "url": "https://example.com"},
    });
    let mut with_tools = sampling("s");
    with_tools["params"]["tools"] = json!([{"name": "x", "inputSchema": {}}]);
    let samples = options().sample(|_, _| panic!("it was not declared"));
    for (options, need, what) in [
        (options(), sampling("s"), "sampling/createMessage"),
        (options(), json!({"method": "roots/list"}), "roots/list"),
        (options(), url, "elicitation/create"),
        (samples, with_tools, "sampling/createMessage"),
        (options(), json!({"method": "ping"}), "ping"),
    ] {
        let error = fails(&options, json!({"inputRequests": {"a": need}}));
        assert_eq!(undeclared(&error), what, "{error}");
    }
}

#[test]
fn c058_nobody_is_asked_when_another_entry_cannot_be_answered() {
    let count = Count::default();
    let counting = count.clone();
    let options = Options::new("test", "1")
        .elicit_form(move |_, ask| {
            counting.up();
            named(ask)
        })
        .sample(|_, _| panic!("nor this one"));
    let mut no_schema = form("b");
    no_schema["params"]
        .as_object_mut()
        .unwrap()
        .remove("requestedSchema");
    for later in [
        // Not declared, malformed in three ways, and nothing that the protocol knows.
        json!({"method": "roots/list"}),
        no_schema,
        json!({"method": "sampling/createMessage", "params": {"messages": []}}),
        json!({"method": 7}),
        json!("elicitation/create"),
    ] {
        let error = fails(
            &options,
            json!({"inputRequests": {"a": form("a"), "z": later}}),
        );
        assert!(
            matches!(error, Error::Invalid { .. } | Error::Refused { .. }),
            "{error}"
        );
        assert_eq!(count.get(), 0, "{error}");
    }
}

#[test]
fn c059_a_refusal_of_the_model_abandons_the_call_here() {
    let options = options().sample(|_, _| Err(Sample::refused("the user said no")));
    let error = fails(&options, json!({"inputRequests": {"a": sampling("s")}}));
    let Error::Refused {
        method,
        asked,
        refusal,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (&**method, &**asked),
        ("tools/call", "sampling/createMessage")
    );
    assert_eq!((refusal.code, &*refusal.message), (-1, "the user said no"));
    assert!(error.rpc().is_none(), "nothing of it is the server's word");
}

#[test]
fn c059_a_handler_that_panics_abandons_the_call_and_nothing_else() {
    let options = Options::new("test", "1")
        .elicit_form(|_, ask| match &*ask.message() {
            "panic" => std::panic::panic_any(DropPanics),
            _ => named(ask),
        })
        .roots(|_| panic!("no roots"));
    let (client, mut script) = tools(&options);
    for need in [form("panic"), json!({"method": "roots/list"})] {
        let error = call(&client, || {
            let first = script.recv();
            ask_back(&mut script, &first, json!({"inputRequests": {"a": need}}));
        })
        .unwrap_err();
        let Error::Refused { asked, refusal, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(need["method"], **asked);
        assert_eq!(refusal.code, RpcError::INTERNAL_ERROR);
        assert_eq!(refusal.message, "the handler failed");
    }
    let result = call(&client, || {
        let first = script.recv();
        ask_back(
            &mut script,
            &first,
            json!({"inputRequests": {"a": form("a")}}),
        );
        let second = script.recv();
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

/// Panics once more when what was thrown is dropped.
struct DropPanics;

impl Drop for DropPanics {
    fn drop(&mut self) {
        assert!(thread::panicking(), "dropped after the panic was caught");
    }
}

#[test]
fn c061_the_rounds_are_capped_and_the_last_asks_nobody() {
    let count = Count::default();
    let counting = count.clone();
    let options = Options::new("test", "1")
        .elicit_form(move |_, ask| {
            counting.up();
            named(ask)
        })
        .round_limit(3);
    let (client, mut script) = tools(&options);
    let error = call(&client, || {
        for _ in 0..3 {
            let request = script.recv();
            ask_back(
                &mut script,
                &request,
                json!({"inputRequests": {"a": form("a")}}),
            );
        }
    })
    .unwrap_err();
    assert!(
        matches!(&error, Error::TooManyRounds { method, rounds: 3 } if **method == *"tools/call"),
        "{error}"
    );
    assert_eq!(count.get(), 2, "the third answer would go nowhere");
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c061_ten_rounds_are_the_default() {
    let (client, mut script) = tools(&options());
    let error = call(&client, || {
        for _ in 0..10 {
            let request = script.recv();
            ask_back(
                &mut script,
                &request,
                json!({"inputRequests": {"a": form("a")}}),
            );
        }
    })
    .unwrap_err();
    assert!(
        matches!(error, Error::TooManyRounds { rounds: 10, .. }),
        "{error}"
    );
}

#[test]
fn c061_one_total_limit_covers_all_rounds() {
    let options = options()
        .round_limit(u32::MAX)
        .request_timeout(Duration::from_secs(2));
    let (client, mut script) = tools(&options);
    let start = Instant::now();
    let error = during(
        || {
            let error = client.call_tool("t", ()).unwrap_err();
            drop(client);
            error
        },
        || {
            // Until the end of the connection, which comes with that of the call.
            while let Some(line) = script.line() {
                let request: Value = serde_json::from_str(&line).unwrap();
                if request["method"] == "tools/call" {
                    ask_back(&mut script, &request, json!({"requestState": "s"}));
                }
            }
        },
    );
    assert!(error.is_timeout(), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(2));
    assert!(error.to_string().contains("2s"), "the whole limit: {error}");
    assert_ne!(error.delivery(), Delivery::NotSent);
}

#[test]
fn c061_the_time_of_a_person_does_not_count() {
    let limit = Duration::from_secs(3);
    let options = Options::new("test", "1")
        .elicit_form(move |_, ask| {
            thread::sleep(limit + Duration::from_millis(100));
            named(ask)
        })
        .request_timeout(limit);
    let (client, mut script) = tools(&options);
    let result = call(&client, || {
        let first = script.recv();
        ask_back(
            &mut script,
            &first,
            json!({"inputRequests": {"a": form("a")}}),
        );
        let second = script.recv();
        script.answer(&second, done());
    });
    assert_eq!(result.unwrap().all_text(), "done");
}

#[test]
fn c061_a_person_has_the_human_limit_and_nobody_is_asked_beyond_the_total_one() {
    let limit = Duration::from_secs(2);
    let count = Count::default();
    let counting = count.clone();
    let options = Options::new("test", "1")
        .elicit_form(move |_, ask| {
            counting.up();
            thread::sleep(limit + Duration::from_millis(100));
            named(ask)
        })
        .request_timeout(limit)
        .human_timeout(Duration::ZERO);
    let error = fails_with(&options, json!({"a": form("a"), "b": form("b")}));
    let Error::OutOfTime {
        method,
        after,
        rounds: 1,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((&**method, *after), ("tools/call", limit));
    assert!(error.is_timeout());
    assert_eq!(count.get(), 1);
}

fn fails_with(options: &Options, needs: Value) -> Error {
    fails(options, json!({"inputRequests": needs}))
}

#[test]
fn c061_a_cancelled_call_asks_no_further_and_sends_no_more() {
    let token = CancelToken::new();
    let (cancel, count) = (token.clone(), Count::default());
    let counting = count.clone();
    let options = Options::new("test", "1").elicit_form(move |cx, ask| {
        counting.up();
        assert!(!cx.is_cancelled());
        cancel.cancel();
        assert!(cx.is_cancelled(), "the handler can know");
        named(ask)
    });
    let (client, mut script) = tools(&options);
    let error = during(
        || client.call_tool_with("t", (), CallOptions::new().cancel_token(&token)),
        || {
            let first = script.recv();
            let needs = json!({"a": form("a"), "b": form("b")});
            ask_back(&mut script, &first, json!({"inputRequests": needs}));
        },
    )
    .unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    assert_eq!(error.delivery(), Delivery::Answered);
    assert_eq!(count.get(), 1);
    drop(client);
    // Nothing is in flight between two rounds, so that there is nothing to tell.
    assert_eq!(script.rest(), "");
}

#[test]
fn c061_a_call_whose_connection_ends_asks_no_further() {
    let count = Count::default();
    let counting = count.clone();
    let transport = landline::Options::new().close_waits(Duration::ZERO, Duration::ZERO);
    let options = Options::new("test", "1").transport(transport);
    let options = options.elicit_form(move |cx, ask| {
        counting.up();
        cx.peer().close();
        assert!(cx.is_cancelled());
        named(ask)
    });
    let error = fails_with(&options, json!({"a": form("a"), "b": form("b")}));
    assert!(error.is_closed(), "{error}");
    assert_eq!(count.get(), 1);
}

#[test]
fn c061_a_retry_that_cannot_be_sent_says_that_the_call_was_seen() {
    // The queue of one request is held by another, so that the retry waits for room.
    let options = options()
        .transport(landline::Options::new().outgoing_limit(1))
        .timeout_for("tools/call", Duration::from_secs(2));
    let (client, mut script) = tools(&options);
    let error = thread::scope(|scope| {
        let calling = scope.spawn(|| client.call_tool("t", ()));
        let first = script.recv();
        let clog = script.clog(client.connection());
        // It takes the place in the queue: the writer is busy with the one before.
        let next = client.connection().start("next", ()).unwrap();
        ask_back(
            &mut script,
            &first,
            json!({"inputRequests": {"a": form("a")}}),
        );
        let error = calling.join().unwrap().unwrap_err();
        drop((clog, next));
        error
    });
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.delivery(), Delivery::Answered);
    assert!(error.to_string().contains("2s"), "{error}");
}

#[test]
fn questions_without_number_fail_the_call() {
    let needs: Map<_, _> = (0..1001)
        .map(|n| (n.to_string(), json!({"method": "roots/list"})))
        .collect();
    let options = Options::new("test", "1").roots(|_| panic!("nobody is asked"));
    let error = fails_with(&options, needs.into());
    assert!(
        matches!(
            error,
            Error::Invalid {
                fault: Fault::Input,
                ..
            }
        ),
        "{error}"
    );
}
