//! Calls: their answers, their limits, and what the peer can have seen of them.

use std::collections::HashMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use landline::{
    AnswerFault, Call, CallOptions, CancelToken, Cause, Connection, Delivery, Dialect, EncodeError,
    Error, Framing, Incoming, Limit, Options, Survived, Update,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{HANG, guarded, methods, pair};

// Answers in any order, from any thread.

#[test]
fn p04_ten_thousand_answers_in_any_order_reach_their_64_callers() {
    const CALLS: u64 = 10_000;
    let (connection, mut script) = pair(&Options::new());
    let peer = thread::spawn(move || {
        // All 64 callers stay in flight until the last request has come, so at least 32 can be held
        // back.
        let (mut held, mut random) = (Vec::new(), 0x2545_f491_4f6c_dd1d_u64);
        for come in 1..=CALLS {
            let request = script.recv();
            let (n, pad) = (&request["params"][0], request["params"][1].as_str());
            assert!(pad.unwrap().bytes().all(|byte| byte == b'x'), "{n}");
            held.push(request);
            while held.len() >= 32 || (come == CALLS && !held.is_empty()) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let request = held.swap_remove((random % held.len() as u64) as usize);
                script.answer(&request, request["params"][0].clone());
            }
        }
        script
    });
    let connection = Arc::new(connection);
    let next = Arc::new(AtomicU64::new(0));
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let (connection, next) = (connection.clone(), next.clone());
            thread::spawn(move || {
                let mut made = 0;
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= CALLS {
                        return made;
                    }
                    // Some frames are larger than what the pipe takes at once: they must not
                    // interleave.
                    let pad = "x".repeat(if n % 97 == 0 { 300_000 } else { 100 });
                    let answer: u64 = connection.request("echo", (n, pad)).unwrap();
                    assert_eq!(answer, n);
                    made += 1;
                }
            })
        })
        .collect();
    let made: u64 = callers
        .into_iter()
        .map(|caller| caller.join().unwrap())
        .sum();
    assert_eq!(made, CALLS);
    drop(peer.join().unwrap());
    assert_eq!(connection.survived(), Survived::default());
}

#[test]
fn p04_frames_never_interleave() {
    const THREADS: usize = 16;
    const EACH: usize = 30;
    const ASKED: usize = 40;
    /// What message `n` of a thread holds: some are far larger than what the pipe takes at once.
    fn text(thread: usize, n: usize) -> String {
        let letter = char::from(b'a' + ((thread * 7 + n) % 26) as u8);
        let len = if n % 3 == 0 { 300_000 + n } else { n };
        letter.to_string().repeat(len)
    }
    // Its replies go out between the others.
    let options = Options::new().on_request(|_, request| {
        let [n]: [usize; 1] = request.decode()?;
        Ok(json!(text(THREADS, n)))
    });
    let (connection, mut script) = pair(&options);
    let peer = thread::spawn(move || {
        let (mut next, mut replied) = ([0; THREADS], [false; ASKED]);
        for come in 0..THREADS * EACH + ASKED {
            if come < ASKED {
                script
                    .send(json!({"jsonrpc": "2.0", "id": come, "method": "ask", "params": [come]}));
            }
            // A line that does not parse panics.
            let message = script.recv();
            if message["method"].is_null() {
                let n = message["id"].as_u64().unwrap() as usize;
                let whole = json!({"jsonrpc": "2.0", "id": n, "result": text(THREADS, n)});
                assert!(message == whole, "the reply to {n}");
                assert!(!std::mem::replace(&mut replied[n], true), "{n} twice");
                continue;
            }
            let thread = message["params"][0].as_u64().unwrap() as usize;
            let n = next[thread];
            next[thread] += 1;
            let params = json!([thread, n, text(thread, n)]);
            let mut whole = json!({"jsonrpc": "2.0", "method": "n", "params": params});
            if n % 2 == 0 {
                whole["method"] = json!("r");
                whole["id"] = message["id"].clone();
                script.answer(&message, json!([thread, n]));
            }
            assert!(message == whole, "message {n} of thread {thread}");
        }
        assert_eq!((next, replied), ([EACH; THREADS], [true; ASKED]));
        script
    });
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let connection = &connection;
            scope.spawn(move || {
                let mut calls = Vec::new();
                for n in 0..EACH {
                    let params = (thread, n, text(thread, n));
                    if n % 2 == 0 {
                        calls.push((n, connection.start("r", params).unwrap()));
                    } else {
                        connection.notify("n", params).unwrap();
                    }
                }
                for (n, call) in calls {
                    assert_eq!(call.wait::<[usize; 2]>().unwrap(), [thread, n]);
                }
            });
        }
    });
    let script = peer.join().unwrap();
    drop(connection);
    assert_eq!(script.rest(), "");
}

#[test]
fn one_thread_holds_many_calls_and_takes_their_answers_in_its_own_order() {
    let (connection, mut script) = pair(&Options::new());
    let calls: Vec<Call> = (0..100)
        .map(|n| connection.start("n", [n]).unwrap())
        .collect();
    let requests: Vec<Value> = (0..100).map(|_| script.recv()).collect();
    for request in requests.iter().rev() {
        script.answer(request, request["params"][0].clone());
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!((call.id(), call.method()), (n as u64 + 1, "n"));
        assert_eq!(call.wait::<usize>().unwrap(), n);
    }
}

#[test]
fn p12_an_id_is_never_used_twice() {
    let (connection, mut script) = pair(&Options::new());
    let ids: Vec<u64> = (0..50)
        .map(|n| {
            let call = connection.start("m", ()).unwrap();
            let (id, request) = (call.id(), script.recv());
            assert_eq!(request["id"], id);
            match n % 3 {
                0 => drop(call),
                1 => call.forget(),
                _ => {
                    script.answer(&request, json!(n));
                    assert_eq!(call.wait::<u64>().unwrap(), n);
                }
            }
            id
        })
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
}

// Deadlines.

/// Waits for a call with a limit of 200 ms and checks that it ends by it, and not before.
fn ends_in_200_ms(call: impl FnOnce() -> Result<Value, Error>, delivery: Delivery) {
    let start = Instant::now();
    let error = call().unwrap_err();
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(200), "{took:?}");
    assert!(took < HANG / 2, "{took:?}");
    let Error::Timeout { method, detail } = &error else {
        panic!("{error:?}");
    };
    assert_eq!((&**method, detail.limit), ("slow", Limit::Total));
    assert_eq!((detail.after, detail.delivery), (SHORT, delivery));
    assert!(error.is_timeout() && error.delivery() == delivery);
}

const SHORT: Duration = Duration::from_millis(200);

fn short() -> CallOptions {
    CallOptions::new().timeout(SHORT)
}

#[test]
fn p01_a_call_ends_within_its_deadline_when_the_peer_is_silent() {
    let (connection, mut script) = pair(&Options::new());
    ends_in_200_ms(
        || {
            let call = connection.start_with("slow", &short(), |_| ())?;
            script.recv();
            call.wait()
        },
        Delivery::MaybeRun,
    );
    script.fence(&connection);
}

#[test]
fn p01_a_call_ends_within_its_deadline_when_half_a_frame_comes() {
    let (connection, mut script) = pair(&Options::new());
    ends_in_200_ms(
        || {
            let call = connection.start_with("slow", &short(), |_| ())?;
            let request = script.recv();
            script.raw(format!(r#"{{"jsonrpc":"2.0","id":{},"resu"#, request["id"]));
            call.wait()
        },
        Delivery::MaybeRun,
    );
    script.raw("lt\":1}\n");
    script.fence(&connection);
    assert_eq!(connection.survived().late_answers, 1);
}

#[test]
fn p01_a_call_ends_within_its_deadline_when_the_peer_floods() {
    let floods = [
        "INFO still starting\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":1}\n",
        "\n",
        // A line that never ends.
        "[[[[",
    ];
    for flood in floods {
        let (connection, mut script) = pair(&Options::new());
        let mut output = script.output.try_clone().unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        let piece = flood.repeat(1000);
        let flooding = thread::spawn(move || {
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                output.write_all(piece.as_bytes()).unwrap();
            }
        });
        ends_in_200_ms(
            || {
                let call = connection.start_with("slow", &short(), |_| ())?;
                script.recv();
                call.wait()
            },
            Delivery::MaybeRun,
        );
        drop(stop);
        flooding.join().unwrap();
        script.raw("\n");
        script.fence(&connection);
    }
}

#[test]
fn p01_a_call_ends_within_its_deadline_when_the_peer_does_not_read() {
    let (connection, mut script) = pair(&Options::new().outgoing_limit(1));
    let clog = script.clog(&connection);
    // One waits in the queue, one for room in it.
    let queued = connection.start_with("queued", &short(), |_| ()).unwrap();
    ends_in_200_ms(
        || connection.request_with("slow", (), &short()),
        Delivery::NotSent,
    );
    let error = queued.wait::<Value>().unwrap_err();
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert!(error.to_string().contains("was not sent"), "{error}");

    ends_in_200_ms(
        || connection.start_with("slow", &short(), |_| ())?.wait(),
        Delivery::NotSent,
    );
    // What was reported as not sent never reaches the peer when it starts to read.
    assert_eq!(methods(&script.fence(&connection)), ["clog"]);
    drop(clog);
    drop(connection);
    assert_eq!(script.rest(), "");
}

#[test]
fn p01_a_notification_too_waits_for_room_within_its_limit() {
    let options = Options::new().outgoing_limit(1).request_timeout(SHORT);
    let (connection, mut script) = pair(&options);
    let clog = script.clog(&connection);
    connection.notify("queued", ()).unwrap();
    let start = Instant::now();
    let error = connection.notify("late", ()).unwrap_err();
    assert!(start.elapsed() >= SHORT);
    assert!(
        error.is_timeout() && error.delivery() == Delivery::NotSent,
        "{error:?}"
    );
    assert_eq!(script.recv()["method"], "clog");
    assert_eq!(script.recv()["method"], "queued");
    drop(clog);
    drop(connection);
    assert_eq!(script.rest(), "");
}

#[test]
fn p11_an_answer_that_has_arrived_beats_a_clock_that_has_run_out() {
    let (connection, mut script) = pair(&Options::new());
    let limits = [
        CallOptions::new().timeout(Duration::ZERO),
        CallOptions::new().idle(Duration::ZERO),
        CallOptions::new()
            .timeout(Duration::ZERO)
            .idle(Duration::ZERO),
    ];
    for options in &limits {
        let answered = || {
            let call = connection.start_with("m", options, |_| ()).unwrap();
            (call.id(), call)
        };
        let mut calls: Vec<_> = (0..4).map(|_| answered()).collect();
        for (id, _) in &calls {
            script.send(json!({"jsonrpc": "2.0", "id": id, "result": id}));
        }
        let sent = script.fence(&connection);
        assert_eq!(methods(&sent), ["m"; 4]);

        let (id, call) = calls.remove(0);
        assert_eq!(call.wait::<u64>().unwrap(), id);
        let (id, mut call) = calls.remove(0);
        assert_eq!(call.try_wait::<u64>().unwrap(), Some(id));
        let (id, mut call) = calls.remove(0);
        assert_eq!(call.wait_timeout::<u64>(Duration::ZERO).unwrap(), Some(id));
        let (id, mut call) = calls.remove(0);
        assert!(matches!(call.try_next(), Some(Update::Ended)));
        assert_eq!(call.wait::<u64>().unwrap(), id);
    }
}

#[test]
fn p11_an_error_of_the_peer_that_has_arrived_beats_the_clock_as_well() {
    let (connection, mut script) = pair(&Options::new().request_timeout(Duration::ZERO));
    let call = connection.start("m", ()).unwrap();
    script.send(json!({"jsonrpc": "2.0", "id": call.id(), "error": {"code": 5, "message": "no"}}));
    let patient = CallOptions::new().timeout(HANG);
    // A fence of its own: the default limit is zero here.
    let fence = connection.start_with("fence", &patient, |_| ()).unwrap();
    script.send(json!({"jsonrpc": "2.0", "id": fence.id(), "result": 0}));
    assert_eq!(fence.wait::<u8>().unwrap(), 0);
    assert_eq!(call.wait::<Value>().unwrap_err().rpc().unwrap().code, 5);
}

#[test]
fn p11_any_duration_is_safe_as_a_limit() {
    guarded(|| {
        let long = [Duration::MAX, Duration::MAX - Duration::from_nanos(1)];
        for limit in long {
            let options = Options::new()
                .request_timeout(limit)
                .idle_timeout(limit)
                .human_timeout(limit)
                .close_waits(limit, limit)
                .drop_waits(limit, limit);
            let (connection, mut script) = pair(&options);
            let call_options = CallOptions::new().timeout(limit).idle(limit);
            let mut call = connection.start_with("m", &call_options, |_| ()).unwrap();
            let stopped = connection.stop_clocks();
            assert_eq!(call.try_wait::<Value>().unwrap(), None);
            assert!(call.next_timeout(Duration::ZERO).is_none());
            let request = script.recv();
            script.answer(&request, json!(1));
            assert!(matches!(call.next_timeout(limit), Some(Update::Ended)));
            assert_eq!(call.wait_timeout::<u8>(limit).unwrap(), Some(1));
            drop(stopped);
            connection.notify("n", ()).unwrap();
            script.fence(&connection);
            script.raw("{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
            drop(script);
            // The peer is gone, so even waits without a limit end.
            connection.close();
            assert!(connection.next_incoming_timeout(limit).is_some());
        }
    });
}

#[test]
fn p11_a_limit_of_zero_ends_at_once_whatever_it_limits() {
    guarded(|| {
        let zero = Duration::ZERO;
        let options = Options::new()
            .request_timeout(zero)
            .human_timeout(zero)
            .close_waits(zero, zero)
            .drop_waits(zero, zero);
        let (connection, script) = pair(&options);
        assert!(
            connection
                .request::<Value>("m", ())
                .unwrap_err()
                .is_timeout()
        );
        let stopped = connection.stop_clocks();
        assert!(
            connection
                .request::<Value>("m", ())
                .unwrap_err()
                .is_timeout()
        );
        drop(stopped);
        let idle = CallOptions::new().timeout(Duration::MAX).idle(zero);
        let error = connection
            .request_with::<Value>("m", (), &idle)
            .unwrap_err();
        let Error::Timeout { detail, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!((detail.limit, detail.after), (Limit::Idle, zero));
        assert!(connection.try_next_incoming().is_none());
        assert!(
            connection.close().pipes_held,
            "the peer still holds its side"
        );
        drop(script);
    });
}

// What goes out.

#[test]
fn params_are_made_knowing_the_id() {
    let (connection, mut script) = pair(&Options::new());
    let options = CallOptions::new();
    for _ in 0..3 {
        let call = connection
            .start_with("m", &options, |id| json!({"token": id}))
            .unwrap();
        let request = script.recv();
        assert_eq!(request["params"]["token"], call.id());
        assert_eq!(request["id"], call.id());
    }
}

#[test]
fn p10_what_is_written_is_one_compact_line() {
    let (connection, mut script) = pair(&Options::new());
    connection.notify("a\"\n", json!({"k": "v\nw"})).unwrap();
    let expected = r#"{"jsonrpc":"2.0","method":"a\"\n","params":{"k":"v\nw"}}"#;
    assert_eq!(script.line().unwrap(), format!("{expected}\n"));
    let call = connection.start("m", [1, 2]).unwrap();
    let expected = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1,2]}"#;
    assert_eq!(script.line().unwrap(), format!("{expected}\n"));
    call.forget();
}

#[test]
fn params_that_serialise_to_null_are_left_out() {
    let (connection, mut script) = pair(&Options::new());
    let raw_null = RawValue::from_string(" null ".into()).unwrap();
    connection.notify("n", ()).unwrap();
    connection.notify("n", None::<Vec<u8>>).unwrap();
    connection.notify("n", Value::Null).unwrap();
    connection.notify("n", &raw_null).unwrap();
    for _ in 0..4 {
        assert_eq!(
            script.line().unwrap(),
            "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n"
        );
    }
    let call = connection.start("m", ()).unwrap();
    assert_eq!(
        script.line().unwrap(),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n"
    );
    call.forget();
}

fn refused(error: Error) -> EncodeError {
    assert_eq!(error.delivery(), Delivery::NotSent);
    match error {
        Error::Encode { error, .. } => *error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn scalar_params_are_refused_and_nothing_is_sent() {
    let (connection, mut script) = pair(&Options::new());
    let raw = RawValue::from_string("1e5".into()).unwrap();
    for params in [
        json!(1),
        json!(-1.5),
        json!("s"),
        json!(""),
        json!(true),
        json!(raw),
    ] {
        let error = refused(connection.notify("n", &params).unwrap_err());
        assert!(matches!(error, EncodeError::Scalar), "{params}: {error:?}");
        let error = refused(connection.start("m", &params).unwrap_err());
        assert!(matches!(error, EncodeError::Scalar), "{params}: {error:?}");
    }
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
}

#[test]
fn params_that_do_not_serialise_are_refused_and_nothing_is_sent() {
    let (connection, mut script) = pair(&Options::new());
    let no_json = HashMap::from([(vec![1], 2)]);
    let error = refused(connection.notify("n", &no_json).unwrap_err());
    assert!(matches!(error, EncodeError::Serialize(_)), "{error:?}");
    let error = refused(connection.start("m", &no_json).unwrap_err());
    assert!(matches!(error, EncodeError::Serialize(_)), "{error:?}");
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
}

#[test]
fn params_over_the_frame_limit_are_refused_and_the_next_call_works() {
    let (connection, mut script) = pair(&Options::new().frame_limit(200));
    let large = ["x".repeat(200)];
    let error = refused(connection.request::<Value>("m", &large).unwrap_err());
    assert!(
        matches!(error, EncodeError::TooLarge { limit: 200 }),
        "{error:?}"
    );
    let error = refused(connection.notify("n", &large).unwrap_err());
    assert!(
        matches!(error, EncodeError::TooLarge { limit: 200 }),
        "{error:?}"
    );
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
}

#[test]
fn raw_params_over_several_lines_arrive_on_one() {
    let (connection, mut script) = pair(&Options::new());
    let value = json!({"a": [1, {"b": "two\nlines \"and\" \\"}], "c": {}});
    let pretty = serde_json::to_string_pretty(&value)
        .unwrap()
        .replace('\n', "\r\n\t");
    let pretty = RawValue::from_string(pretty).unwrap();
    connection.notify("n", &pretty).unwrap();
    let expected =
        r#"{"jsonrpc":"2.0","method":"n","params":{"a":[1,{"b":"two\nlines \"and\" \\"}],"c":{}}}"#;
    assert_eq!(script.line().unwrap(), format!("{expected}\n"));
}

#[test]
fn params_that_panic_while_they_are_made_leave_nothing_behind() {
    let dialect = Dialect::new().cancel_calls("cancel", "id");
    let (connection, mut script) = pair(&Options::new().dialect(dialect));
    let options = CallOptions::new();
    let start = AssertUnwindSafe(|| {
        connection.start_with("m", &options, |_| -> Value {
            std::panic::resume_unwind(Box::new(()))
        })
    });
    assert!(catch_unwind(start).is_err());
    // Neither the request nor its cancellation; the peer never heard of that id.
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
    script.send(json!({"jsonrpc": "2.0", "id": 1, "result": 1}));
    script.fence(&connection);
    assert_eq!(connection.survived().late_answers, 0);
}

// Forms of waiting.

#[test]
fn a_call_is_waited_for_in_three_forms_and_taken_once() {
    let (connection, mut script) = pair(&Options::new());
    let mut call = connection.start("m", ()).unwrap();
    assert_eq!(call.try_wait::<u8>().unwrap(), None);
    let start = Instant::now();
    assert_eq!(
        call.wait_timeout::<u8>(Duration::from_millis(30)).unwrap(),
        None
    );
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert!(call.try_next().is_none());
    let request = script.recv();
    script.answer(&request, json!(7));
    assert!(matches!(call.next(), Update::Ended));
    assert!(
        matches!(call.next(), Update::Ended),
        "the end stays until it is taken"
    );
    assert_eq!(call.wait_timeout::<u8>(HANG).unwrap(), Some(7));

    let taken = |error: Error| match error {
        Error::Answer { fault, .. } => matches!(*fault, AnswerFault::Taken { .. }),
        _ => false,
    };
    assert!(taken(call.try_wait::<u8>().unwrap_err()));
    assert!(taken(call.wait_timeout::<u8>(HANG).unwrap_err()));
    assert!(matches!(call.next(), Update::Ended));
    assert!(taken(call.wait::<u8>().unwrap_err()));
}

#[test]
fn a_failure_that_is_taken_again_says_the_same_of_the_peer() {
    let (connection, mut script) = pair(&Options::new());
    let brief = CallOptions::new().timeout(Duration::ZERO);
    let mut call = connection.start_with("m", &brief, |_| ()).unwrap();
    // It was written or withdrawn, whichever was first.
    let error = call.wait_timeout::<Value>(HANG).unwrap_err();
    assert!(error.is_timeout());
    let again = call.wait_timeout::<Value>(HANG).unwrap_err();
    assert!(matches!(again, Error::Answer { .. }), "{again:?}");
    assert_eq!(again.delivery(), error.delivery());
    assert_ne!(again.delivery(), Delivery::Answered);

    let mut call = connection.start("m", ()).unwrap();
    let request = loop {
        let request = script.recv();
        if request["id"] == call.id() {
            break request;
        }
    };
    script.answer(&request, json!(1));
    call.wait_timeout::<u8>(HANG).unwrap();
    let again = call.wait_timeout::<u8>(HANG).unwrap_err();
    assert_eq!(again.delivery(), Delivery::Answered);
}

#[test]
fn a_result_that_is_not_of_the_type_asked_for_is_an_answer_all_the_same() {
    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("m", ()).unwrap();
    let request = script.recv();
    script.answer(&request, json!("text"));
    let error = call.wait::<u8>().unwrap_err();
    assert_eq!(error.delivery(), Delivery::Answered);
    let Error::Answer { fault, .. } = error else {
        panic!("{error:?}");
    };
    assert!(matches!(*fault, AnswerFault::Decode(_)), "{fault:?}");
    script.fence(&connection);
}

#[test]
fn the_first_of_several_calls_is_found_across_connections() {
    let (one, mut script_one) = pair(&Options::new());
    let (two, script_two) = pair(&Options::new());
    let mut calls = vec![
        one.start("a", ()).unwrap(),
        two.start("b", ()).unwrap(),
        one.start("c", ()).unwrap(),
    ];
    assert_eq!(Call::wait_any([]), None);

    // One that is answered, as often as it is asked.
    assert_eq!(script_one.recv()["method"], "a");
    let request = script_one.recv();
    script_one.answer(&request, json!("c"));
    assert_eq!(Call::wait_any(&mut calls), Some(2));
    assert_eq!(Call::wait_any(&mut calls), Some(2));
    assert_eq!(calls.remove(2).wait::<String>().unwrap(), "c");

    // One whose connection has ended.
    drop(script_two);
    assert_eq!(Call::wait_any(&mut calls), Some(1));
    let error = calls.remove(1).wait::<Value>().unwrap_err();
    assert!(
        matches!(error.closed().unwrap().cause, Cause::OutputEnded),
        "{error:?}"
    );

    // One that runs out of time.
    let start = Instant::now();
    calls.push(one.start_with("slow", &short(), |_| ()).unwrap());
    assert_eq!(Call::wait_any(&mut calls), Some(1));
    assert!(start.elapsed() >= SHORT);
    assert!(calls.remove(1).wait::<Value>().unwrap_err().is_timeout());

    // One that has ended and was taken: waiting for it does not block either.
    let mut fence = one.start("fence", ()).unwrap();
    script_one.send(json!({"jsonrpc": "2.0", "id": fence.id(), "result": null}));
    assert_eq!(fence.wait_timeout::<()>(HANG).unwrap(), Some(()));
    calls.push(fence);
    assert_eq!(Call::wait_any(&mut calls), Some(1));
}

#[test]
fn the_first_of_two_answered_calls_is_the_first_in_the_slice() {
    let (connection, mut script) = pair(&Options::new());
    let mut calls: Vec<Call> = (0..3)
        .map(|n| connection.start("m", [n]).unwrap())
        .collect();
    for id in [3, 2] {
        script.send(json!({"jsonrpc": "2.0", "id": id, "result": id}));
    }
    script.fence(&connection);
    assert_eq!(Call::wait_any(&mut calls), Some(1));
}

// Answers that name their call end it at once.

/// What became of a call, in short.
fn outcome(result: Result<Value, Error>) -> String {
    match result {
        Ok(value) => format!("ok {value}"),
        Err(Error::Rpc { error, .. }) => {
            let data = error.data.as_deref().map_or("", RawValue::get);
            format!("rpc {} {:?} {data}", error.code, error.message)
        }
        Err(Error::Answer { fault, .. }) => match *fault {
            AnswerFault::TooLarge { len, limit } => format!("too large {len} {limit}"),
            AnswerFault::Malformed => "malformed".into(),
            AnswerFault::Empty => "empty".into(),
            AnswerFault::Decode(_) => "decode".into(),
            other => format!("{other:?}"),
        },
        Err(other) => format!("{other:?}"),
    }
}

#[test]
fn p05_an_answer_that_names_its_call_ends_it_at_once_whatever_is_wrong_with_the_rest() {
    // The frame, with the id as `$`; what becomes of the call; how many deviations are counted.
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":$,"result":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let table = [
        (
            r#"{"jsonrpc":"2.0","id":$,"result":{"a":[1]}}"#,
            r#"ok {"a":[1]}"#,
            0,
        ),
        (
            r#"{"result":"last","jsonrpc":"2.0","id":$}"#,
            r#"ok "last""#,
            0,
        ),
        // Null and nothing.
        (r#"{"jsonrpc":"2.0","id":$,"result":null}"#, "ok null", 0),
        (
            r#"{"jsonrpc":"2.0","id":$,"result":null,"error":null}"#,
            "ok null",
            0,
        ),
        (r#"{"jsonrpc":"2.0","id":$,"error":null}"#, "empty", 0),
        (r#"{"jsonrpc":"2.0","id":$}"#, "empty", 0),
        (
            r#"{"jsonrpc":"2.0","id":$,"params":{},"method":null}"#,
            "empty",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"method":null,"result":1}"#,
            "ok 1",
            0,
        ),
        // Both.
        (
            r#"{"jsonrpc":"2.0","id":$,"result":1,"error":{"code":1,"message":"m"}}"#,
            r#"rpc 1 "m" "#,
            1,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"result":null,"error":{"code":1,"message":"m"}}"#,
            r#"rpc 1 "m" "#,
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"result":1,"error":null}"#,
            "ok 1",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"result":1,"result":2}"#,
            "ok 2",
            0,
        ),
        // The version.
        (r#"{"id":$,"result":1}"#, "ok 1", 1),
        (r#"{"jsonrpc":"1.0","id":$,"result":1}"#, "ok 1", 1),
        (r#"{"jsonrpc":2.0,"id":$,"result":1}"#, "ok 1", 1),
        (
            r#"{"jsonrpc":null,"id":$,"error":{"code":1,"message":"m"}}"#,
            r#"rpc 1 "m" "#,
            1,
        ),
        // The id.
        (r#"{"jsonrpc":"2.0","id":"$","result":1}"#, "ok 1", 1),
        (r#"{"jsonrpc":"2.0","id":$.0,"result":1}"#, "ok 1", 1),
        (r#"{"jsonrpc":"2.0","id":$e0,"result":1}"#, "ok 1", 1),
        (r#"{"id":"$.0","result":1}"#, "ok 1", 2),
        // The error.
        (
            r#"{"jsonrpc":"2.0","id":$,"error":"no"}"#,
            r#"rpc 0 "no" "#,
            0,
        ),
        (r#"{"jsonrpc":"2.0","id":$,"error":5}"#, r#"rpc 0 "5" "#, 0),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":[1,2]}"#,
            r#"rpc 0 "[1,2]" "#,
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":false}"#,
            r#"rpc 0 "false" "#,
            0,
        ),
        (r#"{"jsonrpc":"2.0","id":$,"error":{}}"#, r#"rpc 0 "" "#, 0),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":{"code":"-32000","message":"m"}}"#,
            r#"rpc -32000 "m" "#,
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":{"code":-32000.0,"message":"m"}}"#,
            r#"rpc -32000 "m" "#,
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":{"code":"oops","message":7}}"#,
            r#"rpc 0 "7" "#,
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":{"code":1e300,"message":"m"}}"#,
            r#"rpc 9223372036854775807 "m" "#,
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":{"code":null,"message":null,"data":null}}"#,
            r#"rpc 0 "null" null"#,
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":{"code":1,"message":"m","data":{"k":1}}}"#,
            r#"rpc 1 "m" {"k":1}"#,
            0,
        ),
        // Text that JavaScript cut inside a surrogate pair.
        (
            r#"{"jsonrpc":"2.0","id":$,"result":"a\ud83db"}"#,
            "ok \"a\u{fffd}b\"",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"result":{"\udc00":"\ud83d\ude00\\ud800"}}"#,
            "ok {\"\u{fffd}\":\"\u{1f600}\\\\ud800\"}",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$,"error":{"code":1,"message":"\ud800"}}"#,
            "rpc 1 \"\u{fffd}\" ",
            0,
        ),
        // A name that is of no interest costs nothing.
        (
            r#"{"\ud800":0,"jsonrpc":"2.0","id":$,"result":1}"#,
            "ok 1",
            0,
        ),
        (
            r#"[{"\ud800":0,"jsonrpc":"2.0","id":$,"result":1}]"#,
            "ok 1",
            1,
        ),
        // What is no JSON.
        (r#"{"jsonrpc":"2.0","id":$,"result":{bad}}"#, "malformed", 0),
        (r#"{"jsonrpc":"2.0","result":tru,"id":$}"#, "malformed", 0),
        (r#"{"jsonrpc":"2.0","id":$,"result":[1,2"#, "malformed", 0),
        (r#"{"jsonrpc":"2.0","id":$,"result":"cut"#, "malformed", 0),
        (r#"{"jsonrpc":"2.0","id":$,"result":1}}"#, "malformed", 0),
        (
            r#"{"jsonrpc":"2.0","id":$,"result":1} trailing"#,
            "malformed",
            0,
        ),
        (r#"{"jsonrpc":"2.0","id":$,"result":NaN}"#, "malformed", 0),
        (
            r#"{"jsonrpc":"2.0","id":$,"result":'single'}"#,
            "malformed",
            0,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":\"raw\ttab\"}",
            "malformed",
            0,
        ),
        (r#"{"id":$,"error":{"code":1,}}"#, "malformed", 0),
        (r#"[{"jsonrpc":"2.0","id":$,"result":1},]"#, "malformed", 0),
        // What no `Value` holds.
        (r#"{"jsonrpc":"2.0","id":$,"result":1e999}"#, "decode", 0),
        (&deep, "decode", 0),
    ];
    let (connection, mut script) = pair(&Options::new());
    let mut deviations = 0;
    for (frame, expected, deviating) in table {
        let call = connection.start("m", ()).unwrap();
        script.recv();
        script.raw(format!("{}\n", frame.replace('$', &call.id().to_string())));
        assert_eq!(outcome(call.wait()), expected, "{frame}");
        deviations += deviating;
        assert_eq!(connection.survived().deviations, deviations, "{frame}");
        // Only that call fails.
        assert_eq!(script.fence(&connection), [Value::Null; 0], "{frame}");
    }
    let mut expected = Survived::default();
    expected.deviations = deviations;
    expected.repaired_text = 2;
    // What else stood in the array that could not be read is lost, and told.
    let survived = connection.survived();
    expected.stray_lines = 1;
    expected.first_stray_lines = survived.first_stray_lines.clone();
    assert!(expected.first_stray_lines[0].ends_with("\"result\":1},]"));
    assert_eq!(survived, expected);
}

#[test]
fn p05_an_answer_over_the_frame_limit_fails_its_own_call_at_once_wherever_its_id_stands() {
    for framing in [Framing::Lines, Framing::ContentLength] {
        let (connection, mut script) = pair(&Options::new().frame_limit(1000).framing(framing));
        let large = "x".repeat(5000);
        // The other call's id stands inside the results: only the frame's own counts.
        let frames = [
            r#"{"jsonrpc":"2.0","id":$,"result":{"id":1,"t":"~"}}"#,
            r#"{"result":{"jsonrpc":"2.0","id":1,"result":"~"},"jsonrpc":"2.0","id":$}"#,
            r#"{"error":{"code":1,"message":"~"},"id":"$"}"#,
            r#"{"jsonrpc":"2.0","id":$.0,"t":"~\"id\":1,"}"#,
        ];
        let other = connection.start("other", ()).unwrap();
        let other_id = other.id();
        assert_eq!(other_id, 1);
        for frame in frames {
            let call = connection.start("m", ()).unwrap();
            let frame = frame
                .replace('$', &call.id().to_string())
                .replace('~', &large);
            script.raw(framed(framing, &frame));
            let expected = format!("too large {} 1000", frame.len());
            assert_eq!(outcome(call.wait()), expected, "{}", &frame[..60]);
        }
        script.raw(framed(
            framing,
            &format!(r#"{{"jsonrpc":"2.0","id":{other_id},"result":1}}"#),
        ));
        assert_eq!(outcome(other.wait()), "ok 1");
        assert_eq!(connection.survived().oversized_frames, frames.len() as u64);
    }
}

fn framed(framing: Framing, body: &str) -> String {
    match framing {
        Framing::Lines => format!("{body}\n"),
        _ => format!("Content-Length: {}\r\n\r\n{body}", body.len()),
    }
}

#[test]
fn p05_an_answer_of_65_mib_whose_id_comes_last_fails_its_own_call_and_the_next_call_works() {
    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("large", ()).unwrap();
    script.recv();
    let head = r#"{"jsonrpc":"2.0","result":""#;
    let tail = format!(r#"","id":{}}}"#, call.id());
    let piece = vec![b'x'; 1 << 20];
    script.raw(head);
    for _ in 0..65 {
        script.raw(&piece);
    }
    script.raw(format!("{tail}\n"));
    let len = (65 << 20) + head.len() + tail.len();
    assert_eq!(
        outcome(call.wait()),
        format!("too large {len} {}", 64 << 20)
    );
    script.fence(&connection);
}

// What the peer can have seen.

#[test]
fn p13_an_answer_that_is_no_success_says_that_the_peer_answered() {
    let (connection, mut script) = pair(&Options::new().frame_limit(1000));
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":$,"result":"{}"}}"#,
        "x".repeat(2000)
    );
    for (frame, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":$,"error":{"code":-5,"message":"no"}}"#,
            "rpc -5 \"no\" ",
        ),
        (r#"{"jsonrpc":"2.0","id":$}"#, "empty"),
        (r#"{"jsonrpc":"2.0","id":$,"result":}"#, "malformed"),
        (r#"{"jsonrpc":"2.0","id":$,"result":1e999}"#, "decode"),
        (&large, "too large 2037 1000"),
    ] {
        let call = connection.start("m", ()).unwrap();
        assert_eq!(methods(&[script.recv()]), ["m"]);
        script.raw(format!("{}\n", frame.replace('$', &call.id().to_string())));
        let error = call.wait::<Value>().unwrap_err();
        assert_eq!(error.delivery(), Delivery::Answered, "{error:?}");
        assert_eq!(error.delivery().to_string(), "answered");
        assert_eq!(outcome(Err(error)), expected);
        // Nothing is retried.
        assert_eq!(script.fence(&connection), [Value::Null; 0]);
    }
}

#[test]
fn p13_a_call_that_was_written_may_have_run_however_it_ends() {
    fn maybe(error: Error) -> Error {
        assert_eq!(error.delivery(), Delivery::MaybeRun, "{error:?}");
        assert_eq!(error.delivery().to_string(), "may have run");
        error
    }
    let options = Options::new().close_waits(Duration::ZERO, Duration::ZERO);
    let (connection, mut script) = pair(&options);
    let token = CancelToken::new();
    let with = [
        CallOptions::new().timeout(Duration::from_millis(20)),
        CallOptions::new().idle(Duration::from_millis(20)),
        CallOptions::new().cancel_token(&token),
        CallOptions::new(),
    ];
    let [total, idle, cancelled, closed] = with.map(|options| {
        let call = connection.start_with("m", &options, |_| ()).unwrap();
        assert_eq!(script.recv()["id"], call.id());
        call
    });
    assert!(maybe(total.wait::<Value>().unwrap_err()).is_timeout());
    assert!(maybe(idle.wait::<Value>().unwrap_err()).is_timeout());
    token.cancel();
    assert!(maybe(cancelled.wait::<Value>().unwrap_err()).is_cancelled());
    // Nothing is retried.
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
    connection.close();
    assert!(maybe(closed.wait::<Value>().unwrap_err()).is_closed());
    assert_eq!(script.rest(), "");

    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("ended", ()).unwrap();
    assert_eq!(methods(&[script.recv()]), ["ended"]);
    drop(script);
    assert!(maybe(call.wait::<Value>().unwrap_err()).is_closed());
}

// Answers to nobody.

#[test]
fn p12_answers_that_nobody_waits_for_are_told_apart_and_counted() {
    let (connection, mut script) = pair(&Options::new());
    let answer = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": 1});
    let given_up = connection.start("m", ()).unwrap();
    let answered = connection.start("m", ()).unwrap();
    let pending = connection.start("m", ()).unwrap();
    let ids = (given_up.id(), answered.id(), pending.id());
    assert_eq!(ids, (1, 2, 3));
    (0..3).for_each(|_| drop(script.recv()));
    given_up.forget();
    let mut expected = Survived::default();

    script.send(answer(json!(1)));
    script.fence(&connection);
    expected.late_answers = 1;
    assert_eq!(connection.survived(), expected);

    // A second late answer is a duplicate, as is a second answer to a call that had its own.
    script.send(answer(json!(1)));
    script.send(answer(json!(2)));
    script.send(json!({"jsonrpc": "2.0", "id": 2, "error": {"code": 0, "message": "again"}}));
    script.fence(&connection);
    expected.duplicate_answers = 2;
    assert_eq!(connection.survived(), expected);
    assert_eq!(answered.wait::<u8>().unwrap(), 1);

    for id in [json!(999), json!(0), json!(-1), json!("nobody"), json!(1.5)] {
        script.send(answer(id));
    }
    script.fence(&connection);
    expected.unknown_answers = 5;
    let survived = connection.survived();
    // Those whose id can be none of ours are quoted.
    assert_eq!(survived.first_stray_lines.len(), 3);
    expected.first_stray_lines = survived.first_stray_lines.clone();
    assert_eq!(survived, expected);

    script.send(answer(json!(3)));
    assert_eq!(pending.wait::<u8>().unwrap(), 1);
}

#[test]
fn a_log_line_with_an_id_is_a_stray_line_while_that_call_is_pending() {
    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("m", ()).unwrap();
    let request = script.recv();
    assert_eq!(request["id"], 1);
    script.raw("{\"level\":\"info\",\"id\":1}\n");
    script.raw("{\"level\":\"info\",\"id\":1,\"result\n");
    script.raw("{\"method\":\"GET\",\"id\":1,\"result\":oops}\n");
    script.fence(&connection);
    script.answer(&request, json!("real"));
    assert_eq!(call.wait::<String>().unwrap(), "real");
    let survived = connection.survived();
    assert_eq!((survived.stray_lines, survived.duplicate_answers), (3, 0));
}

#[test]
fn an_error_without_an_id_answers_the_only_call_where_the_dialect_says_so() {
    let lone = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "what?"}});
    let nameless = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "who?"}});
    let (connection, mut script) = pair(&Options::new().dialect(Dialect::new().lone_errors(true)));
    for (error, code) in [(&lone, -32700), (&nameless, -32600)] {
        let call = connection.start("m", ()).unwrap();
        script.send(error.clone());
        assert_eq!(call.wait::<Value>().unwrap_err().rpc().unwrap().code, code);
    }
    assert!(connection.survived().is_empty());

    // With two calls pending it can be either's, with none it is nobody's.
    let calls = [
        connection.start("m", ()).unwrap(),
        connection.start("m", ()).unwrap(),
    ];
    script.send(lone.clone());
    assert_eq!(methods(&script.fence(&connection)), ["m"; 4]);
    assert_eq!(connection.survived().unknown_answers, 1);
    calls.into_iter().for_each(Call::forget);
    script.send(lone.clone());
    // No fence here: it would be the only call.
    script.send(json!({"jsonrpc": "2.0", "id": 1, "method": "refused"}));
    assert_eq!(script.recv()["error"]["code"], -32601);
    assert_eq!(connection.survived().unknown_answers, 2);

    let (connection, mut script) = pair(&Options::new());
    let mut call = connection.start("m", ()).unwrap();
    script.send(lone);
    script.send(nameless);
    script.fence(&connection);
    assert_eq!(call.try_wait::<Value>().unwrap(), None);
    assert_eq!(connection.survived().unknown_answers, 2);
}

#[test]
fn a_result_without_an_id_answers_nobody_in_any_dialect() {
    let (connection, mut script) = pair(&Options::new().dialect(Dialect::new().lone_errors(true)));
    let mut call = connection.start("m", ()).unwrap();
    script.raw("{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}\n");
    script.raw("{\"jsonrpc\":\"2.0\",\"result\":1}\n");
    script.fence(&connection);
    assert_eq!(call.try_wait::<Value>().unwrap(), None);
    let survived = connection.survived();
    assert_eq!((survived.unknown_answers, survived.stray_lines), (1, 1));
}

#[test]
fn text_that_is_not_utf_8_is_repaired_and_counted() {
    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("m", ()).unwrap();
    script.raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"caf\xe9\"}\n");
    assert_eq!(call.wait::<String>().unwrap(), "caf\u{fffd}");
    let call = connection.start("m", ()).unwrap();
    script.raw(b"INFO \xe9 {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"caf\xe9\"}\n");
    assert_eq!(call.wait::<String>().unwrap(), "caf\u{fffd}");
    let call = connection.start("m", ()).unwrap();
    script.raw(b"[{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"caf\xe9\"}]\n");
    assert_eq!(call.wait::<String>().unwrap(), "caf\u{fffd}");
    assert_eq!(connection.survived().repaired_text, 3);
    // A line that is nothing else either is a stray one, and nothing of it was used.
    script.raw(b"\xb4\xed\xce\xf3\n");
    script.fence(&connection);
    let survived = connection.survived();
    assert_eq!((survived.repaired_text, survived.stray_lines), (3, 2));
}

// The end.

#[test]
fn calls_end_at_once_when_the_peer_closes_its_output_and_later_ones_learn_the_same() {
    let (connection, mut script) = pair(&Options::new());
    script.fence(&connection);
    let calls: Vec<Call> = (0..3).map(|_| connection.start("m", ()).unwrap()).collect();
    (0..3).for_each(|_| drop(script.recv()));
    drop(script);
    let reasons: Vec<String> = calls.into_iter().map(closed_maybe_run).collect();
    let late = connection.start("late", ()).unwrap_err();
    assert_eq!(late.delivery(), Delivery::NotSent);
    assert!(matches!(late.closed().unwrap().cause, Cause::OutputEnded));
    let reason = late.closed().unwrap().to_string();
    assert_eq!(reason, "the peer closed its output");
    assert_eq!(reasons, [&*reason; 3]);
    assert!(connection.notify("late", ()).unwrap_err().is_closed());
}

fn closed_maybe_run(call: Call) -> String {
    let error = call.wait::<Value>().unwrap_err();
    assert_eq!(error.delivery(), Delivery::MaybeRun);
    error.closed().unwrap().to_string()
}

#[test]
fn p03_an_answer_that_is_in_the_pipe_at_the_end_is_still_delivered() {
    let (connection, mut script) = pair(&Options::new());
    let calls: Vec<Call> = (0..50)
        .map(|_| connection.start("m", ()).unwrap())
        .collect();
    for call in &calls {
        script.send(json!({"jsonrpc": "2.0", "id": call.id(), "result": call.id()}));
    }
    // The last one even without its line end.
    let last = connection.start("m", ()).unwrap();
    script.raw(format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":true}}"#,
        last.id()
    ));
    drop(script);
    for call in calls {
        let id = call.id();
        assert_eq!(call.wait::<u64>().unwrap(), id);
    }
    assert!(last.wait::<bool>().unwrap());
}

#[test]
fn half_an_answer_at_the_end_fails_its_call_as_malformed_where_it_names_it() {
    let (connection, mut script) = pair(&Options::new());
    let named = connection.start("m", ()).unwrap();
    let other = connection.start("m", ()).unwrap();
    script.raw(format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":[1,"#,
        named.id()
    ));
    drop(script);
    assert_eq!(outcome(named.wait()), "malformed");
    let error = other.wait::<Value>().unwrap_err();
    assert!(
        matches!(error.closed().unwrap().cause, Cause::OutputEnded),
        "{error:?}"
    );
}

#[test]
fn p04_a_connection_and_its_handles_serve_many_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Connection>();
    let (connection, mut script) = pair(&Options::new());
    let peer = connection.peer();
    let caller = thread::spawn(move || peer.request::<u8>("m", ()));
    let request = script.recv();
    script.answer(&request, json!(3));
    assert_eq!(caller.join().unwrap().unwrap(), 3);

    // A handle does not keep the connection open.
    let peer = connection.peer();
    drop(connection);
    let error = peer.request::<u8>("m", ()).unwrap_err();
    assert!(
        matches!(error.closed().unwrap().cause, Cause::ClosedHere),
        "{error:?}"
    );
    assert_eq!(script.rest(), "");
}

#[test]
fn the_first_cause_is_kept_when_the_peer_closes_first_its_input_and_then_its_output() {
    let (connection, script) = pair(&Options::new().queue_incoming());
    let (input, output) = (script.input, script.output);
    drop(input);
    // The write fails, which is told once it is clear that the peer lives on.
    let error = connection.request::<Value>("m", ()).unwrap_err();
    assert!(
        matches!(error.closed().unwrap().cause, Cause::InputClosed(_)),
        "{error:?}"
    );
    let first = connection.closed().unwrap().to_string();
    drop(output);
    let Incoming::Closed(why) = connection.next_incoming() else {
        panic!("nothing was sent");
    };
    assert_eq!(why.to_string(), first);
    assert_eq!(connection.closed().unwrap().to_string(), first);
    let late = connection.request::<Value>("m", ()).unwrap_err();
    assert_eq!(late.closed().unwrap().to_string(), first);
}

#[test]
fn a_stream_that_panics_ends_its_calls_at_once() {
    struct Panics;
    impl std::io::Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("reading")
        }
    }
    impl std::io::Write for Panics {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            panic!("writing")
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let endless = Options::new().request_timeout(Duration::MAX);
    let reads = endless.connect(Panics, std::io::sink()).unwrap();
    let error = guarded(move || reads.request::<Value>("m", ()).unwrap_err());
    assert!(error.to_string().contains("the stream panicked"), "{error}");

    let (silent, _keep) = std::os::unix::net::UnixStream::pair().unwrap();
    let writes = endless.connect(silent, Panics).unwrap();
    let error = guarded(move || writes.request::<Value>("m", ()).unwrap_err());
    assert!(error.to_string().contains("the stream panicked"), "{error}");
    assert_eq!(error.delivery(), Delivery::MaybeRun);
}

#[test]
fn p05_all_calls_that_an_unreadable_array_names_end_at_once() {
    let (connection, mut script) = pair(&Options::new());
    let calls: Vec<_> = (0..100)
        .map(|_| connection.start("m", ()).unwrap())
        .collect();
    let answers = calls
        .iter()
        .map(|call| format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":1}},", call.id()));
    script.raw(format!("[{}oops]\n", answers.collect::<String>()));
    for call in calls {
        let error = call.wait::<Value>().unwrap_err();
        assert_eq!(error.delivery(), Delivery::Answered);
    }
}

#[test]
fn p05_each_of_two_answers_on_one_line_ends_its_call() {
    let (connection, mut script) = pair(&Options::new());
    let [first, second] = [(); 2].map(|()| connection.start("m", ()).unwrap());
    script.raw(
        "{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":1}{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":2}\n",
    );
    let error = first.wait::<Value>().unwrap_err();
    assert_eq!(error.delivery(), Delivery::Answered);
    assert_eq!(second.wait::<u8>().unwrap(), 2);
}

#[test]
fn a_stream_that_claims_to_have_given_more_than_was_asked_for_ends_the_connection() {
    struct Boastful;
    impl std::io::Read for Boastful {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            Ok(buf.len() + 1)
        }
    }
    let connection = Options::new().connect(Boastful, std::io::sink()).unwrap();
    let error = guarded(move || connection.request::<Value>("m", ()).unwrap_err());
    let cause = &error.closed().unwrap().cause;
    assert!(matches!(cause, Cause::Framing(_)), "{cause:?}");
}
