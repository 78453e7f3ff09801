//! Everything is bounded in bytes: frames, what waits to be written, and what that costs in time.

use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use landline::{
    AnswerFault, CallOptions, Cause, Delivery, Dialect, EncodeError, Error, Framing, Options,
};
use serde_json::{Value, json};

use crate::support::{eventually, guarded, methods, pair};

#[test]
fn one_frame_may_always_enter_an_empty_queue_however_large() {
    let (connection, mut script) = pair(&Options::new().outgoing_limit(100));
    let clog = script.clog(&connection);
    let impatient = CallOptions::new().timeout(Duration::ZERO);
    let large = connection.start("large", ["x".repeat(1000)]).unwrap();
    let error = connection
        .start_with("small", &impatient, |_| ())
        .unwrap_err();
    assert!(
        error.is_timeout() && error.delivery() == Delivery::NotSent,
        "{error:?}"
    );
    assert_eq!(methods(&[script.recv(), script.recv()]), ["clog", "large"]);
    drop((clog, large));
}

#[test]
fn p09_frames_wait_within_the_byte_budget_and_not_beyond() {
    let frame = "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n";
    let options = Options::new()
        .outgoing_limit(frame.len() * 10)
        .request_timeout(Duration::ZERO);
    let (connection, mut script) = pair(&options);
    let clog = script.clog(&connection);
    for _ in 0..10 {
        connection.notify("n", ()).unwrap();
    }
    let error = connection.notify("n", ()).unwrap_err();
    assert!(
        error.is_timeout() && error.delivery() == Delivery::NotSent,
        "{error:?}"
    );
    let Error::Timeout { detail, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(detail.after, Duration::ZERO);
    assert_eq!(script.recv()["method"], "clog");
    for _ in 0..10 {
        assert_eq!(script.line().unwrap(), frame);
    }
    drop(clog);
    drop(connection);
    assert_eq!(script.rest(), "");
}

#[test]
fn callers_that_wait_for_room_go_on_when_the_peer_reads() {
    let (connection, mut script) = pair(&Options::new().outgoing_limit(1));
    let clog = script.clog(&connection);
    let callers: Vec<_> = (0..8)
        .map(|n| {
            let peer = connection.peer();
            std::thread::spawn(move || peer.request::<u64>("m", [n]))
        })
        .collect();
    assert_eq!(script.recv()["method"], "clog");
    for _ in 0..8 {
        let request = script.recv();
        script.answer(&request, request["params"][0].clone());
    }
    for (n, caller) in (0..).zip(callers) {
        assert_eq!(caller.join().unwrap().unwrap(), n);
    }
    drop(clog);
}

fn pinging() -> Options {
    Options::new().dialect(Dialect::new().answer_at_once("ping", json!({})))
}

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

#[test]
fn p09_replies_wait_up_to_their_bound_and_go_ahead_of_requests() {
    let (connection, mut script) = pair(&pinging().replies_limit(PONG.len() * 100));
    let clog = script.clog(&connection);
    let queued = connection.start("queued", ()).unwrap();
    script.raw(PING.repeat(100));
    // Their replies are in the queue once this is read.
    script.send(json!({"jsonrpc": "2.0", "id": clog.id(), "result": null}));
    clog.wait::<()>().unwrap();
    assert_eq!(script.recv()["method"], "clog");
    for _ in 0..100 {
        assert_eq!(script.line().unwrap(), PONG);
    }
    assert_eq!(script.recv()["method"], "queued");
    script.fence(&connection);
    drop(queued);
}

#[test]
fn p09_a_peer_that_lets_replies_pile_up_unread_is_closed_with_that_reason() {
    let one_mib = 1 << 20;
    for (options, limit) in [
        (pinging().replies_limit(PONG.len() * 100), PONG.len() * 100),
        (pinging(), one_mib),
    ] {
        let (connection, mut script) = pair(&options);
        let clog = script.clog(&connection);
        let queued = connection.start("queued", ()).unwrap();
        script.raw(PING.repeat(limit / PONG.len() + 1));
        let error = guarded(move || clog.wait::<Value>().unwrap_err());
        assert_eq!(error.delivery(), Delivery::MaybeRun);
        let cause = &error.closed().unwrap().cause;
        assert!(
            matches!(cause, Cause::RepliesUnread { limit: told } if *told == limit),
            "{cause:?}"
        );
        assert_eq!(
            queued.wait::<Value>().unwrap_err().delivery(),
            Delivery::NotSent
        );
        let late = connection.notify("late", ()).unwrap_err();
        assert_eq!(
            late.to_string(),
            format!(
                "`late` was not sent: the peer left over {limit} bytes of replies and cancellations unread"
            )
        );
        // What is still queued may be written, the request not.
        drop(connection);
        let mut rest = String::new();
        script.input.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("queued"));
    }
}

#[test]
fn p09_cancellations_that_pile_up_unread_count_as_replies() {
    let dialect = Dialect::new().cancel_calls("cancel", "id");
    let (connection, mut script) = pair(&Options::new().dialect(dialect).replies_limit(1000));
    let calls: Vec<_> = (0..30)
        .map(|_| connection.start("m", ()).unwrap())
        .collect();
    (0..30).for_each(|_| drop(script.recv()));
    let clog = script.clog(&connection);
    drop(calls);
    let error = clog.wait::<Value>().unwrap_err();
    let cause = &error.closed().unwrap().cause;
    assert!(
        matches!(cause, Cause::RepliesUnread { limit: 1000 }),
        "{cause:?}"
    );
}

#[test]
fn p09_the_frame_limit_is_exact_for_what_comes_in() {
    const LIMIT: usize = 2000;
    for framing in [Framing::Lines, Framing::ContentLength] {
        let (connection, mut script) = pair(&Options::new().frame_limit(LIMIT).framing(framing));
        for size in [LIMIT - 1, LIMIT, LIMIT + 1, LIMIT - 1] {
            let call = connection.start("m", ()).unwrap();
            let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":""#, call.id());
            let text = "x".repeat(size - head.len() - 2);
            let body = format!("{head}{text}\"}}");
            assert_eq!(body.len(), size);
            match framing {
                Framing::Lines => script.raw(format!("{body}\r\n")),
                _ => script.raw(format!("Content-Length: {size}\r\n\r\n{body}")),
            }
            match call.wait::<String>() {
                Ok(result) => assert!(result == text && size <= LIMIT),
                Err(Error::Answer { fault, .. }) => {
                    let AnswerFault::TooLarge { len, limit } = *fault else {
                        panic!("{fault:?}");
                    };
                    assert_eq!((len, limit, size), (size as u64, LIMIT, LIMIT + 1));
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(connection.survived().oversized_frames, 1);
    }
}

#[test]
fn p09_the_frame_limit_is_exact_for_what_goes_out() {
    const LIMIT: usize = 2000;
    let head = r#"{"jsonrpc":"2.0","method":"n","params":[""#;
    let (connection, mut script) = pair(&Options::new().frame_limit(LIMIT));
    for size in [LIMIT - 1, LIMIT, LIMIT + 1, LIMIT - 1] {
        let text = "x".repeat(size - head.len() - 3);
        match connection.notify("n", [&text]) {
            Ok(()) => {
                assert!(size <= LIMIT);
                assert_eq!(script.line().unwrap().len(), size + 1);
            }
            Err(error) => {
                let Error::Encode { error, .. } = error else {
                    panic!("{error:?}");
                };
                assert!(
                    matches!(*error, EncodeError::TooLarge { limit: LIMIT }),
                    "{error:?}"
                );
                assert_eq!(size, LIMIT + 1);
            }
        }
    }
    // The params that are left out do not count.
    let name = "m".repeat(LIMIT - r#"{"jsonrpc":"2.0","method":""}"#.len());
    connection.notify(&name, ()).unwrap();
    assert_eq!(script.line().unwrap().len(), LIMIT + 1);
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
}

/// How long a call takes whose answer has so many bytes, from the first of them to the decoded
/// result.
fn time_of(bytes: usize) -> Duration {
    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("m", ()).unwrap();
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":""#, call.id());
    let text = "x".repeat(bytes - head.len() - 2);
    let frame = format!("{head}{text}\"}}\n");
    let start = Instant::now();
    let writing = std::thread::spawn(move || {
        script.raw(frame);
        script
    });
    let result: String = call.wait().unwrap();
    let took = start.elapsed();
    assert!(result == text);
    drop(writing.join().unwrap());
    took
}

#[test]
#[expect(clippy::print_stdout, reason = "a measurement is there to be read")]
fn an_answer_of_64_mib_arrives_and_time_is_linear_in_the_size() {
    time_of(64 << 20);
    // Others use the machine too, so one pair that ran undisturbed is enough; quadratic time would
    // be 16.
    let mut best = f64::MAX;
    for _ in 0..20 {
        let (small, large) = (time_of(8 << 20), time_of(32 << 20));
        let ratio = large.as_secs_f64() / small.as_secs_f64();
        println!("8 MiB: {small:?}, 32 MiB: {large:?}, ratio {ratio:.1}");
        best = best.min(ratio);
        if best < 6.0 {
            break;
        }
    }
    assert!(best < 8.0, "{best}");
}

#[test]
fn notifications_that_the_peer_will_not_read_are_counted() {
    let (connection, mut script) = pair(&Options::new());
    let clog = script.clog(&connection);
    for n in 0..3 {
        connection.notify("lost", [n]).unwrap();
    }
    let queued = connection.start("queued", ()).unwrap();
    drop(script.input);
    let error = guarded(move || queued.wait::<Value>().unwrap_err());
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(
        clog.wait::<Value>().unwrap_err().delivery(),
        Delivery::MaybeRun
    );
    eventually("they are counted", || {
        connection.survived().unsent_notifications == 3
    });
}

/// Tells the length of each `write`.
struct Lengths(mpsc::Sender<usize>);

impl Write for Lengths {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The test may be over by then.
        let _ = self.0.send(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_frame_goes_out_in_one_write_and_a_large_one_in_pieces_that_show_its_progress() {
    for framing in [Framing::Lines, Framing::ContentLength] {
        let (told, lengths) = mpsc::channel();
        let (silent, _open) = std::os::unix::net::UnixStream::pair().unwrap();
        let options = Options::new().framing(framing);
        let connection = options.connect(silent, Lengths(told)).unwrap();
        connection.notify("m", ()).unwrap();
        let bare = lengths.recv().unwrap();
        for (text, expected) in [(10, 1), ((64 << 10) - 100, 1), (1 << 20, 17)] {
            connection.notify("m", ["x".repeat(text)]).unwrap();
            let mut written = 0;
            for _ in 0..expected {
                written += lengths.recv().unwrap();
            }
            // Brackets, quotes, a name, and in one framing some digits more.
            assert!((0..40).contains(&(written - text - bare)), "{written}");
        }
        drop(connection);
        assert_eq!(lengths.iter().count(), 0);
    }
}
