//! Lenient in, strict out, and loud about it: what is survived, what is counted, and that garbage
//! is never answered.

use std::collections::HashSet;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use landline::{
    Arrays, CallOptions, Cause, Connection, Delivery, Dialect, FrameError, Framing, Options,
    RpcError, Survived,
};
use serde_json::{Value, json};

use crate::support::{HANG, Script, guarded, methods, pair};

/// Answers the peer's requests with their method.
fn echoing() -> Options {
    Options::new().on_request(|_, request| match request.method() {
        "fail" => Err(RpcError::new(1, "failed")),
        method => Ok(json!(method)),
    })
}

/// Checks that nothing was written but the fence, and gives what was survived.
fn survived_silently(connection: &Connection, script: &mut Script) -> Survived {
    assert_eq!(
        script.fence(connection),
        [Value::Null; 0],
        "garbage was answered"
    );
    connection.survived()
}

#[test]
fn p10_garbage_is_never_answered_and_is_counted_exactly() {
    let (connection, mut script) = pair(&echoing());
    let call = connection.start("m", ()).unwrap();
    let request = script.recv();
    let strays: [&[u8]; 16] = [
        b"Starting v1.2",
        b"\x1b[32mready\x1b[0m",
        b"42",
        b"null",
        b"\"s\"",
        b"[",
        b"{\"level\":\"info\"}",
        b"{not json",
        b"{}",
        b"[]",
        b"true",
        b"{\"jsonrpc\":\"2.0\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"m\"}",
        b"\xff\xfe\xfd",
    ];
    for stray in strays {
        script.raw(stray);
        script.raw("\n");
    }
    let mut expected = Survived::default();
    expected.stray_lines = 16;
    expected.first_stray_lines = [
        "Starting v1.2",
        "ready",
        "42",
        "null",
        "\"s\"",
        "[",
        "{\"level\":\"info\"}",
        "{not json",
    ]
    .map(String::from)
    .into();
    assert_eq!(survived_silently(&connection, &mut script), expected);
    assert!(!expected.is_empty());
    assert_eq!(
        expected.to_string(),
        "stray lines: 16\n  stray: Starting v1.2\n  stray: ready\n  stray: 42\n  stray: null\n  \
         stray: \"s\"\n  stray: [\n  stray: {\"level\":\"info\"}\n  stray: {not json"
    );
    script.answer(&request, json!("fine"));
    assert_eq!(call.wait::<String>().unwrap(), "fine");
    drop(connection);
    assert_eq!(script.rest(), "");
}

#[test]
fn what_peers_put_around_a_message_is_taken_off_and_is_no_stray_line() {
    let (connection, mut script) = pair(&Options::new());
    let around: [(&[u8], &[u8]); 8] = [
        (b"\xef\xbb\xbf", b"\n"),
        (b"", b"\r\n"),
        (b"\n\n\r\n", b"\n"),
        (b"   ", b"  \n"),
        (b"\t", b"\t\r\n"),
        (b"\0\0", b"\0\n"),
        (b"\n \n\0\n\xef\xbb\xbf\n", b"\n"),
        (b"\xef\xbb\xbf \0", b"\r\r\n"),
    ];
    for (before, after) in around {
        let call = connection.start("m", ()).unwrap();
        script.raw(before);
        script.raw(json!({"jsonrpc": "2.0", "id": call.id(), "result": "ok"}).to_string());
        script.raw(after);
        assert_eq!(call.wait::<String>().unwrap(), "ok", "{before:?}");
    }
    // Marks and NULs around three of them; blanks and empty lines are none.
    let mut expected = Survived::default();
    expected.deviations = 3;
    assert_eq!(connection.survived(), expected);
}

#[test]
fn a_message_behind_other_text_on_its_line_is_read_and_the_text_is_stray() {
    let (connection, mut script) = pair(&echoing());
    let call = connection.start("m", ()).unwrap();
    assert_eq!(script.recv()["method"], "m");
    script.raw("INFO: 50% {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n");
    assert_eq!(call.wait::<u8>().unwrap(), 7);
    // A peer that logs what it reads shows our own messages, and is not answered.
    script.raw("é> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n");
    script.raw("é> {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n");
    // What stands behind it is none.
    script.raw("sent {\"jsonrpc\":\"2.0\",\"method\":\"x\"} to you\n");
    script.raw("sent {\"jsonrpc\n");
    let mut expected = Survived::default();
    expected.stray_lines = 5;
    expected.deviations = 1;
    expected.first_stray_lines = vec![
        "INFO: 50% ".into(),
        "é> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}".into(),
        "é> {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}".into(),
        "sent {\"jsonrpc\":\"2.0\",\"method\":\"x\"} to you".into(),
        "sent {\"jsonrpc".into(),
    ];
    assert_eq!(survived_silently(&connection, &mut script), expected);
}

#[test]
fn json_over_several_lines_is_stray_and_named_in_the_timeout() {
    let (connection, mut script) = pair(&Options::new());
    let mut call = connection.start("m", ()).unwrap();
    let request = script.recv();
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"a": 1}});
    let pretty = serde_json::to_string_pretty(&answer).unwrap();
    script.raw(format!("{pretty}\n"));
    script.fence(&connection);
    assert_eq!(
        call.try_wait::<Value>().unwrap(),
        None,
        "nothing is stitched together"
    );
    assert_eq!(
        connection.survived().stray_lines,
        pretty.lines().count() as u64
    );
    let impatient = CallOptions::new().timeout(Duration::ZERO);
    let error = connection
        .request_with::<Value>("m", (), &impatient)
        .unwrap_err();
    let hint = "the peer seems to write its JSON over several lines";
    assert!(error.to_string().contains(hint), "{error}");
}

// Arrays.

const ANSWERS: &str =
    r#"[{"jsonrpc":"2.0","id":2,"result":"two"},{"jsonrpc":"2.0","id":1,"result":"one"}]"#;
const ASKED: &str = r#"[{"jsonrpc":"2.0","id":"a","method":"x"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":7,"method":"fail"}]"#;

#[test]
fn an_array_is_unpacked_by_default_and_its_requests_are_answered_singly() {
    let (connection, mut script) = pair(&echoing());
    let calls = [
        connection.start("m", ()).unwrap(),
        connection.start("m", ()).unwrap(),
    ];
    assert_eq!(methods(&[script.recv(), script.recv()]), ["m", "m"]);
    script.raw(format!("{ANSWERS}\n"));
    let answers = calls.map(|call| call.wait::<String>().unwrap());
    assert_eq!(answers, ["one", "two"]);

    script.raw(format!("{ASKED}\n"));
    let mut replies = [script.recv(), script.recv()];
    replies.sort_by_key(|reply| reply["id"].is_string());
    assert_eq!(
        replies[0],
        json!({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "failed"}})
    );
    assert_eq!(
        replies[1],
        json!({"jsonrpc": "2.0", "id": "a", "result": "x"})
    );
    let mut expected = Survived::default();
    expected.deviations = 2;
    assert_eq!(survived_silently(&connection, &mut script), expected);
}

#[test]
fn a_batch_is_answered_by_one_array_once_all_its_replies_are_ready() {
    let dialect = Dialect::new()
        .arrays(Arrays::Batch)
        .answer_at_once("ping", json!({}));
    let (go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let options = Options::new()
        .dialect(dialect)
        .on_request(move |_, request| {
            if request.method() == "slow" {
                wait.lock().unwrap().recv_timeout(HANG).unwrap();
            }
            Ok(json!(request.method()))
        });
    let (connection, mut script) = pair(&options);
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"slow"},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"x"}]"#;
    script.raw(format!("{batch}\n"));
    // Nothing goes out before the slow one is ready; the others' calls go on.
    assert_eq!(
        survived_silently(&connection, &mut script),
        Survived::default()
    );
    go.send(()).unwrap();
    let line = script.line().unwrap();
    let mut replies: Vec<Value> = serde_json::from_str(&line).unwrap();
    replies.sort_by_key(|reply| reply["id"].as_u64());
    let reply = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    assert_eq!(
        replies,
        [
            reply(1, json!("slow")),
            reply(2, json!({})),
            reply(3, json!("x"))
        ]
    );

    // Notifications and answers alone write nothing; no deviation is counted in this dialect.
    let call = connection.start("m", ()).unwrap();
    let request = script.recv();
    script.send(json!([{"jsonrpc": "2.0", "method": "n"}, {"jsonrpc": "2.0", "id": request["id"], "result": 1}]));
    assert_eq!(call.wait::<u8>().unwrap(), 1);
    script.send(json!([{"jsonrpc": "2.0", "method": "n"}, {"jsonrpc": "2.0", "method": "n"}]));
    assert_eq!(
        survived_silently(&connection, &mut script),
        Survived::default()
    );
    drop(connection);
    assert_eq!(script.rest(), "");
}

#[test]
fn replies_that_are_too_large_for_one_array_are_still_sent() {
    let dialect = Dialect::new().arrays(Arrays::Batch);
    let options = Options::new()
        .dialect(dialect)
        .frame_limit(1000)
        .on_request(|_, _| Ok(json!("x".repeat(600))));
    let (connection, mut script) = pair(&options);
    script.raw("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"m\"}]\n");
    let mut ids = [script.recv()["id"].as_u64(), script.recv()["id"].as_u64()];
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2)]);
    assert_eq!(
        survived_silently(&connection, &mut script),
        Survived::default()
    );
}

#[test]
fn an_array_is_a_stray_line_where_the_dialect_refuses_it() {
    let options = echoing().dialect(Dialect::new().arrays(Arrays::Refuse));
    let (connection, mut script) = pair(&options);
    script.raw(format!("{ASKED}\n"));
    let survived = survived_silently(&connection, &mut script);
    assert_eq!((survived.stray_lines, survived.deviations), (1, 0));
    // It still names the calls that it should have answered, which need not wait for their limit.
    let call = connection.start("m", ()).unwrap();
    script.send(json!([{"jsonrpc": "2.0", "id": call.id(), "result": 1}]));
    assert!(
        call.wait::<Value>()
            .unwrap_err()
            .to_string()
            .contains("cannot be read as a message")
    );
}

#[test]
fn arrays_of_nothing_and_of_arrays_are_stray() {
    for arrays in [Arrays::Unpack, Arrays::Batch, Arrays::Refuse] {
        let (connection, mut script) = pair(&echoing().dialect(Dialect::new().arrays(arrays)));
        script.raw(
            "[]\n[[]]\n[[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]]\n[INFO] started\n[{}]\n",
        );
        let survived = survived_silently(&connection, &mut script);
        assert_eq!(survived.stray_lines, 5, "{arrays:?}");
        let deviations = if arrays == Arrays::Unpack { 3 } else { 0 };
        assert_eq!(survived.deviations, deviations, "{arrays:?}");
    }
}

// The other framing.

#[test]
fn text_before_and_between_headers_is_stray_and_bodies_are_never_searched() {
    let (connection, mut script) = pair(&Options::new().framing(Framing::ContentLength));
    let text = "Content-Length: 5\r\n\r\nhello";
    script.raw("Listening...\n\x1b[1mWARN: x\x1b[0m\n  \r\n");
    for (id, between) in [(1, ""), (2, "debug: 1\n"), (3, "\r\n\n")] {
        let call = connection.start("m", ()).unwrap();
        let body = json!({"jsonrpc": "2.0", "id": id, "result": text}).to_string();
        script.raw(format!(
            "{between}content-length :  {}\r\nX-Other: y\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!(call.wait::<String>().unwrap(), text);
    }
    let survived = connection.survived();
    // The three lines of text, and the header that frames nothing, thrice.
    assert_eq!(survived.stray_lines, 3 + 3);
    assert_eq!(
        survived.first_stray_lines[..3],
        ["Listening...", "WARN: x", "X-Other: y"]
    );
}

#[test]
fn bodies_that_are_no_message_are_skipped_and_counted() {
    let (connection, mut script) = pair(&Options::new().framing(Framing::ContentLength));
    let call = connection.start("m", ()).unwrap();
    for body in ["null", "[]", "{}", "{\"jsonrpc\":\"2.0\"}", ""] {
        script.raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    }
    let body = json!({"jsonrpc": "2.0", "id": call.id(), "result": 1}).to_string();
    script.raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    assert_eq!(call.wait::<u8>().unwrap(), 1);
    assert_eq!(connection.survived().stray_lines, 5);
}

#[test]
fn what_is_written_with_headers_is_exactly_one_frame() {
    let (connection, script) = pair(&Options::new().framing(Framing::ContentLength));
    connection.notify("n", ["é"]).unwrap();
    drop(connection);
    let body = r#"{"jsonrpc":"2.0","method":"n","params":["é"]}"#;
    assert_eq!(
        script.rest(),
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    );
}

#[test]
fn a_peer_of_the_other_framing_is_told_at_once_both_ways() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    // Neither sends another byte: what is there must be enough.
    let headed = format!("Content-Length: {}\r\n\r\n{answer}", answer.len());
    let lined = format!("{answer}\n");
    for (framing, bytes) in [(Framing::Lines, headed), (Framing::ContentLength, lined)] {
        let (connection, mut script) = pair(&Options::new().framing(framing));
        let call = connection.start("m", ()).unwrap();
        script.raw(bytes);
        let error = call.wait::<Value>().unwrap_err();
        let Cause::Framing(FrameError::Mismatch { expected }) = &error.closed().unwrap().cause
        else {
            panic!("{error:?}");
        };
        assert_eq!(*expected, framing);
        assert!(
            connection
                .request::<Value>("m", ())
                .unwrap_err()
                .is_closed()
        );
    }
}

// Exhaustively.

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":$,"result":{"k":["a\n",-1.5e3,null]}}"#;

/// Sends an answer that was changed, then a good one: the call must end by one of the two.
fn survives(connection: &Connection, script: &mut Script, change: impl FnOnce(&mut Vec<u8>)) {
    let call = connection.start("m", ()).unwrap();
    let good = ANSWER.replace('$', &call.id().to_string());
    let mut changed = good.clone().into_bytes();
    change(&mut changed);
    script.raw(&changed);
    script.raw(format!("\n{good}\n"));
    let result = call.wait::<Value>();
    let answered = match &result {
        Ok(_) => true,
        Err(error) => error.delivery() == Delivery::Answered,
    };
    let changed = String::from_utf8_lossy(&changed);
    assert!(answered, "{changed:?}: {result:?}");
}

#[test]
fn any_byte_of_an_answer_may_be_wrong_and_the_connection_lives() {
    guarded(|| {
        let (connection, mut script) = pair(&Options::new());
        for at in 0..ANSWER.len() {
            for byte in 0..=255 {
                survives(&connection, &mut script, |answer| answer[at] = byte);
            }
            // Read on, or the requests would fill the pipe.
            assert_eq!(methods(&script.fence(&connection)), ["m"; 256]);
        }
    });
}

#[test]
fn an_answer_may_be_cut_anywhere_and_the_connection_lives() {
    let (connection, mut script) = pair(&Options::new());
    for end in 0..ANSWER.len() {
        survives(&connection, &mut script, |answer| answer.truncate(end));
    }
    assert_eq!(
        methods(&script.fence(&connection)),
        [["m"]; ANSWER.len()].concat()
    );
    // Wherever it was cut, no other id was read into it.
    assert_eq!(connection.survived().unknown_answers, 0);
}

#[test]
fn p09_an_array_of_65536_messages_is_read_and_one_more_is_too_many() {
    const MOST: usize = 1 << 16;
    for arrays in [Arrays::Unpack, Arrays::Batch] {
        let dialect = Dialect::new().arrays(arrays);
        let (connection, mut script) = pair(&Options::new().dialect(dialect));
        let message = r#"{"jsonrpc":"2.0","method":"n"}"#;
        script.raw(format!(
            "[{}{message}]\n",
            format!("{message},").repeat(MOST - 1)
        ));
        let mut expected = Survived::default();
        expected.unhandled_notifications = MOST as u64;
        expected.deviations = u64::from(arrays == Arrays::Unpack);
        assert_eq!(survived_silently(&connection, &mut script), expected);

        script.raw(format!(
            "[{}{message}]\n",
            format!("{message},").repeat(MOST)
        ));
        // Nor are requests answered that stand in such a line.
        let asked = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
        script.raw(format!("[{}{asked}]\n", format!("{asked},").repeat(MOST)));
        expected.stray_lines = 2;
        let survived = survived_silently(&connection, &mut script);
        assert_eq!(survived.first_stray_lines.len(), 2);
        assert!(
            survived
                .first_stray_lines
                .iter()
                .all(|line| line.len() <= 256)
        );
        expected.first_stray_lines = survived.first_stray_lines.clone();
        assert_eq!(survived, expected);
    }
}

#[test]
fn p09_the_replies_of_a_batch_wait_within_their_bound_and_each_is_sent_once() {
    const ASKED: u64 = 100;
    const LIMIT: usize = 4000;
    let pings = |count: u64| {
        let pings = (0..count).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        json!(pings.collect::<Vec<_>>())
    };
    let dialect = Dialect::new()
        .arrays(Arrays::Batch)
        .answer_at_once("ping", json!({}));
    let options = Options::new().dialect(dialect).replies_limit(LIMIT);
    let (connection, mut script) = pair(&options);
    // Together they are within the bound, and with what it takes to keep them they are not.
    script.send(pings(ASKED));
    let mut answered = HashSet::new();
    let mut take = |reply: &Value| {
        let id = reply["id"].as_u64().unwrap();
        assert_eq!(*reply, json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        assert!(answered.insert(id), "{id} twice");
    };
    let mut single = 0;
    let batch = loop {
        match script.recv() {
            Value::Array(batch) => break batch,
            reply => take(&reply),
        }
        single += 1;
    };
    batch.iter().for_each(take);
    assert_eq!(answered, (0..ASKED).collect());
    assert!((1..ASKED).contains(&single), "{single}");
    assert_eq!(
        survived_silently(&connection, &mut script),
        Survived::default()
    );

    // What goes out singly is bounded by the same limit.
    let clog = script.clog(&connection);
    script.send(pings(ASKED * 10));
    let error = guarded(move || clog.wait::<Value>().unwrap_err());
    let cause = &error.closed().unwrap().cause;
    assert!(
        matches!(cause, Cause::RepliesUnread { limit: LIMIT }),
        "{cause:?}"
    );
}

#[test]
fn p09_an_array_of_more_elements_than_can_be_meant_is_one_stray_line() {
    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("m", ()).unwrap();
    script.raw(format!("[{}1]\n", "1,".repeat(1 << 16)));
    script.send(json!({"jsonrpc": "2.0", "id": call.id(), "result": "here"}));
    assert_eq!(call.wait::<String>().unwrap(), "here");
    let survived = connection.survived();
    assert_eq!((survived.stray_lines, survived.deviations), (1, 0));
}

#[test]
fn a_log_line_with_an_error_answers_no_call() {
    let dialect = Dialect::new().lone_errors(true);
    let (connection, mut script) = pair(&Options::new().dialect(dialect));
    let call = connection.start("m", ()).unwrap();
    let request = script.recv();
    script.raw("{\"level\":\"warn\",\"error\":\"cache is cold\"}\n");
    script.answer(&request, json!(7));
    assert_eq!(call.wait::<u8>().unwrap(), 7);
    let survived = connection.survived();
    assert_eq!((survived.stray_lines, survived.unknown_answers), (1, 0));
}
