//! Giving up: what the peer is told, and what it can have seen.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use landline::{Call, CallOptions, CancelToken, Delivery, Dialect, Error, Options, Survived};
use serde_json::{Value, json};

use crate::support::{HANG, guarded, methods, pair};

fn cancelling() -> Options {
    Options::new().dialect(Dialect::new().cancel_calls("notifications/cancelled", "requestId"))
}

fn cancelled(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

const NOTHING: [Value; 0] = [];

fn assert_cancelled(error: &Error, expected: Delivery) {
    match error {
        Error::Cancelled { delivery, .. } => assert_eq!(*delivery, expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn p12_a_timeout_tells_the_peer_once_with_the_id_of_the_call() {
    let (connection, mut script) = pair(&cancelling());
    script.fence(&connection);
    let short = CallOptions::new().timeout(Duration::from_millis(20));
    let call = connection.start_with("m", &short, |_| ()).unwrap();
    let (id, request) = (call.id(), script.recv());
    let error = call.wait::<Value>().unwrap_err();
    assert!(
        error.is_timeout() && error.delivery() == Delivery::MaybeRun,
        "{error:?}"
    );
    assert_eq!(script.recv(), cancelled(id));
    script.answer(&request, json!("late"));
    assert_eq!(script.fence(&connection), NOTHING);
    let mut expected = Survived::default();
    expected.late_answers = 1;
    assert_eq!(connection.survived(), expected);
}

#[test]
fn p12_the_idle_limit_tells_the_peer_as_well() {
    let (connection, mut script) = pair(&cancelling());
    let short = CallOptions::new().idle(Duration::from_millis(20));
    let call = connection.start_with("m", &short, |_| ()).unwrap();
    let (id, _) = (call.id(), script.recv());
    assert!(call.wait::<Value>().unwrap_err().is_timeout());
    assert_eq!(script.recv(), cancelled(id));
}

#[test]
fn a_quiet_call_is_given_up_without_telling_the_peer() {
    let (connection, mut script) = pair(&cancelling());
    let short = CallOptions::new()
        .timeout(Duration::from_millis(20))
        .quiet();
    let call = connection.start_with("timeout", &short, |_| ()).unwrap();
    script.recv();
    assert!(call.wait::<Value>().unwrap_err().is_timeout());
    let token = CancelToken::new();
    let quiet = CallOptions::new().quiet().cancel_token(&token);
    let by_token = connection.start_with("token", &quiet, |_| ()).unwrap();
    let by_drop = connection.start_with("drop", &quiet, |_| ()).unwrap();
    assert_eq!(methods(&[script.recv(), script.recv()]), ["token", "drop"]);
    drop(by_drop);
    token.cancel();
    assert!(by_token.wait::<Value>().unwrap_err().is_cancelled());
    assert_eq!(script.fence(&connection), NOTHING);
    for id in 1..=3 {
        script.send(json!({"jsonrpc": "2.0", "id": id, "result": 1}));
    }
    script.fence(&connection);
    assert_eq!(connection.survived().late_answers, 3);
}

#[test]
fn p12_a_drop_and_a_cancel_tell_the_peer_and_a_forget_does_not() {
    let (connection, mut script) = pair(&cancelling());
    let calls: Vec<Call> = (0..3).map(|_| connection.start("m", ()).unwrap()).collect();
    (0..3).for_each(|_| drop(script.recv()));
    let [one, two, three] = calls.try_into().unwrap();
    drop(one);
    two.cancel();
    three.forget();
    assert_eq!(script.fence(&connection), [cancelled(1), cancelled(2)]);
}

#[test]
fn in_the_bare_dialect_nothing_is_told() {
    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("m", ()).unwrap();
    script.recv();
    call.ask_to_cancel();
    call.cancel();
    assert_eq!(script.fence(&connection), NOTHING);
}

#[test]
fn after_its_answer_no_call_is_cancelled() {
    let (connection, mut script) = pair(&cancelling());
    let token = CancelToken::new();
    let options = CallOptions::new().cancel_token(&token);
    let mut calls: Vec<Call> = (0..5)
        .map(|_| connection.start_with("m", &options, |_| ()).unwrap())
        .collect();
    for _ in 0..5 {
        let request = script.recv();
        script.answer(&request, json!("answered"));
    }
    script.fence(&connection);
    calls[0].ask_to_cancel();
    token.cancel();
    drop(calls.pop());
    calls.pop().unwrap().cancel();
    for call in calls {
        assert_eq!(call.wait::<String>().unwrap(), "answered");
    }
    assert_eq!(script.fence(&connection), NOTHING);
    assert_eq!(connection.survived(), Survived::default());
}

#[test]
fn a_token_cancels_a_waiting_call_from_another_thread() {
    let (connection, mut script) = pair(&cancelling());
    let token = CancelToken::new();
    let options = CallOptions::new()
        .timeout(Duration::MAX)
        .cancel_token(&token);
    let call = connection.start_with("m", &options, |_| ()).unwrap();
    script.recv();
    let other = token.clone();
    let waiting = thread::spawn(move || call.wait::<Value>().unwrap_err());
    other.cancel();
    let error = guarded(move || waiting.join().unwrap());
    assert_cancelled(&error, Delivery::MaybeRun);
    assert!(error.is_cancelled() && token.is_cancelled());
    assert_eq!(error.to_string(), "`m` was cancelled");
    assert_eq!(script.fence(&connection), [cancelled(1)]);
}

#[test]
fn a_token_cancels_all_its_calls_those_to_come_included() {
    let (one, mut script_one) = pair(&cancelling());
    let (two, mut script_two) = pair(&cancelling());
    let token = CancelToken::new();
    let options = CallOptions::new().cancel_token(&token);
    let calls = [
        one.start_with("m", &options, |_| ()).unwrap(),
        one.start_with("m", &options, |_| ()).unwrap(),
        two.start_with("m", &options, |_| ()).unwrap(),
    ];
    let other = one.start("other", ()).unwrap();
    let [_, _, other_request] = [script_one.recv(), script_one.recv(), script_one.recv()];
    script_two.recv();
    token.cancel();
    token.cancel();
    for call in calls {
        assert_eq!(
            call.wait::<Value>().unwrap_err().delivery(),
            Delivery::MaybeRun
        );
    }
    assert_eq!(script_one.fence(&one), [cancelled(1), cancelled(2)]);
    assert_eq!(script_two.fence(&two), [cancelled(1)]);

    // A call that comes later is not sent at all.
    let error = one.start_with("m", &options, |_| ()).unwrap_err();
    assert_cancelled(&error, Delivery::NotSent);
    assert_eq!(script_one.fence(&one), NOTHING);
    script_one.answer(&other_request, json!(1));
    assert_eq!(other.wait::<u8>().unwrap(), 1);
}

#[test]
fn a_token_cancels_a_call_that_waits_in_the_queue_or_for_room_in_it() {
    let (connection, mut script) = pair(&cancelling().outgoing_limit(1));
    let clog = script.clog(&connection);
    let queued_token = CancelToken::new();
    let options = CallOptions::new()
        .timeout(Duration::MAX)
        .cancel_token(&queued_token);
    let queued = connection.start_with("queued", &options, |_| ()).unwrap();
    for _ in 0..20 {
        let token = CancelToken::new();
        let options = CallOptions::new()
            .timeout(Duration::MAX)
            .cancel_token(&token);
        let (tell, told) = mpsc::channel();
        let peer = connection.peer();
        let starting = thread::spawn(move || {
            let params = |_| tell.send(()).unwrap();
            peer.start_with("blocked", &options, params)
                .map(|call| call.id())
        });
        told.recv_timeout(HANG).unwrap();
        token.cancel();
        let error = guarded(move || starting.join().unwrap().unwrap_err());
        assert_cancelled(&error, Delivery::NotSent);
    }
    queued_token.cancel();
    let error = queued.wait::<Value>().unwrap_err();
    assert_cancelled(&error, Delivery::NotSent);
    // Neither they nor any cancellation of theirs.
    assert_eq!(methods(&script.fence(&connection)), ["clog"]);
    clog.forget();
    drop(connection);
    assert_eq!(script.rest(), "");
}

#[test]
fn p13_a_call_that_is_given_up_in_the_queue_is_never_sent_nor_cancelled() {
    let (connection, mut script) = pair(&cancelling());
    let clog = script.clog(&connection);
    let short = CallOptions::new().timeout(Duration::from_millis(20));
    let timed_out = connection.start_with("timeout", &short, |_| ()).unwrap();
    let dropped = connection.start("drop", ()).unwrap();
    let forgotten = connection.start("forget", ()).unwrap();
    let kept = connection.start("kept", ()).unwrap();
    let error = timed_out.wait::<Value>().unwrap_err();
    assert!(
        error.is_timeout() && error.delivery() == Delivery::NotSent,
        "{error:?}"
    );
    dropped.cancel();
    forgotten.forget();
    // The one that is being written may have run, and the peer is told behind it, ahead of the
    // rest.
    let id = clog.id();
    drop(clog);
    assert_eq!(script.recv()["method"], "clog");
    assert_eq!(script.recv(), cancelled(id));
    assert_eq!(methods(&script.fence(&connection)), ["kept"]);
    drop(kept);
}

#[test]
fn p13_what_was_reported_as_not_sent_never_reaches_a_peer_that_reads_again() {
    fn not_sent(error: Error) {
        assert_eq!(error.delivery(), Delivery::NotSent, "{error:?}");
        assert_eq!(error.delivery().to_string(), "not sent");
    }
    let brief = Duration::from_millis(20);
    let total = CallOptions::new().timeout(brief);
    // In the queue.
    let (connection, mut script) = pair(&cancelling());
    let clog = script.clog(&connection);
    let token = CancelToken::new();
    let by_token = CallOptions::new().cancel_token(&token);
    let idle = CallOptions::new().idle(brief);
    let calls = [&total, &idle, &by_token]
        .map(|options| connection.start_with("queued", options, |_| ()).unwrap());
    token.cancel();
    for call in calls {
        not_sent(call.wait::<Value>().unwrap_err());
    }
    not_sent(
        connection
            .start_with("late", &by_token, |_| ())
            .unwrap_err(),
    );
    not_sent(connection.request::<Value>("scalar", 1).unwrap_err());
    not_sent(connection.notify("scalar", 1).unwrap_err());
    assert_eq!(methods(&script.fence(&connection)), ["clog"]);
    clog.forget();
    drop(connection);
    assert_eq!(script.rest(), "");

    // Before the queue, which is full.
    let (connection, mut script) = pair(&cancelling().outgoing_limit(1).request_timeout(brief));
    let clog = script.clog(&connection);
    let patient = CallOptions::new().timeout(Duration::MAX);
    let full = connection.start_with("full", &patient, |_| ()).unwrap();
    not_sent(connection.request::<Value>("room", ()).unwrap_err());
    not_sent(connection.notify("room", ()).unwrap_err());
    assert_eq!(methods(&[script.recv(), script.recv()]), ["clog", "full"]);
    clog.forget();
    full.forget();
    drop(connection);
    assert_eq!(script.rest(), "");

    // When the connection was closed meanwhile; what was queued before is another matter for a
    // notification, which was not reported so.
    let waits = cancelling().close_waits(Duration::ZERO, Duration::ZERO);
    let (connection, mut script) = pair(&waits);
    let clog = script.clog(&connection);
    let queued = connection.start("queued", ()).unwrap();
    connection.notify("accepted", ()).unwrap();
    connection.close();
    not_sent(queued.wait::<Value>().unwrap_err());
    not_sent(connection.request::<Value>("late", ()).unwrap_err());
    not_sent(connection.notify("late", ()).unwrap_err());
    assert_eq!(
        methods(&[script.recv(), script.recv()]),
        ["clog", "accepted"]
    );
    assert_eq!(script.rest(), "");
    let error = clog.wait::<Value>().unwrap_err();
    assert_eq!(error.delivery(), Delivery::MaybeRun);
}

#[test]
fn a_call_can_be_asked_to_be_cancelled_and_is_still_waited_for() {
    let (connection, mut script) = pair(&cancelling());
    let call = connection.start("m", ()).unwrap();
    let request = script.recv();
    call.ask_to_cancel();
    assert_eq!(script.recv(), cancelled(call.id()));
    script.send(
        json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32800, "message": "ok"}}),
    );
    assert_eq!(
        call.wait::<Value>().unwrap_err().rpc().unwrap().code,
        -32800
    );
    assert_eq!(script.fence(&connection), NOTHING);
}

#[test]
fn p12_a_cancellation_never_overtakes_its_request() {
    let (connection, mut script) = pair(&cancelling());
    let clog = script.clog(&connection);
    let calls: Vec<Call> = (0..3).map(|_| connection.start("m", ()).unwrap()).collect();
    calls[1].ask_to_cancel();
    calls[2].ask_to_cancel();
    let id = calls[1].id();
    // Withdrawn: neither it nor its cancellation is sent.
    let [one, two, three] = calls.try_into().unwrap();
    three.cancel();
    let sent = script.fence(&connection);
    assert_eq!(
        methods(&sent),
        ["clog", "m", "m", "notifications/cancelled"]
    );
    assert_eq!(sent[3], cancelled(id));
    drop((clog, one, two));
}

#[test]
fn p12_a_cancel_that_races_the_answer_has_exactly_one_outcome() {
    let (connection, mut script) = pair(&cancelling());
    let (mut gave_up, mut answered) = (Vec::new(), 0);
    let mut told = Vec::new();
    for round in 0..500 {
        let token = CancelToken::new();
        let options = CallOptions::new().cancel_token(&token);
        let call = connection.start_with("m", &options, |_| ()).unwrap();
        let id = call.id();
        let request = loop {
            match script.recv() {
                message if message["method"] == "m" => break message,
                message => told.push(message),
            }
        };
        let canceller = thread::spawn(move || {
            // Wherever the threads meet, over the rounds.
            (0..round % 50).for_each(|_| thread::yield_now());
            token.cancel();
        });
        script.answer(&request, json!(id));
        match call.wait::<u64>() {
            Ok(result) => {
                assert_eq!(result, id);
                answered += 1;
            }
            Err(error) => {
                assert_cancelled(&error, Delivery::MaybeRun);
                gave_up.push(cancelled(id));
            }
        }
        canceller.join().unwrap();
    }
    told.extend(script.fence(&connection));
    assert_eq!(told, gave_up);
    assert_eq!(answered + gave_up.len(), 500);
    let mut expected = Survived::default();
    expected.late_answers = gave_up.len() as u64;
    assert_eq!(connection.survived(), expected);
}

#[test]
fn p12_the_last_1024_calls_that_were_given_up_are_remembered() {
    let (connection, mut script) = pair(&Options::new());
    for _ in 0..1100 {
        let call = connection.start("m", ()).unwrap();
        script.recv();
        call.forget();
    }
    for id in 1..=1100 {
        script.send(json!({"jsonrpc": "2.0", "id": id, "result": id}));
    }
    script.fence(&connection);
    let mut expected = Survived::default();
    expected.late_answers = 1024;
    expected.duplicate_answers = 1100 - 1024;
    assert_eq!(connection.survived(), expected);
}

#[test]
fn a_call_on_a_closed_connection_is_not_sent_whatever_its_token() {
    let (connection, script) = pair(&cancelling());
    let token = CancelToken::new();
    let options = CallOptions::new().cancel_token(&token);
    let call = connection.start_with("m", &options, |_| ()).unwrap();
    drop(script);
    assert!(call.wait::<Value>().unwrap_err().is_closed());
    let error = connection.start_with("m", &options, |_| ()).unwrap_err();
    assert!(
        error.is_closed() && error.delivery() == Delivery::NotSent,
        "{error:?}"
    );
    token.cancel();
}
