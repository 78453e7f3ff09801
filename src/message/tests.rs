#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

use serde_json::{Value, json};

use super::*;

/// What a text is read as, in short, and how many deviations it has.
fn read(text: &str) -> (String, u64) {
    let Some(parsed) = parse(text) else {
        return ("none".into(), 0);
    };
    let raw = |raw: Option<Box<RawValue>>| raw.map_or("absent".into(), |raw| raw.get().to_owned());
    let text = match parsed.message {
        Message::Request { id, method, params } => {
            format!("request {id} {method} {}", raw(params))
        }
        Message::Notification(n) => format!("notification {} {}", n.method, raw(n.params)),
        Message::Response { id, outcome } => {
            let id = id.map_or("nobody".into(), |id| id.call.to_string());
            match outcome {
                Outcome::Result(result) => format!("result {id} {}", result.get()),
                Outcome::Error(error) => format!("error {id} {error}"),
                Outcome::Neither => format!("neither {id}"),
            }
        }
    };
    (text, parsed.deviations)
}

#[test]
fn each_shape_of_an_envelope_has_its_outcome() {
    let table = [
        // Requests: whatever has a method and an id.
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
            "request 1 m absent",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"1","method":"m","params":{"a": 1}}"#,
            r#"request "1" m {"a": 1}"#,
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"m","params":null}"#,
            "request null m absent",
            1,
        ),
        (r#"{"id":1,"method":"m","params":5}"#, "request 1 m 5", 2),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1,"error":{}}"#,
            "request 1 m absent",
            0,
        ),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, "none", 0),
        (r#"{"jsonrpc":"2.0","id":[],"method":"m"}"#, "none", 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "none", 0),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a\ud800"}"#,
            "request 1 a\u{fffd} absent",
            0,
        ),
        // Notifications.
        (
            r#"{"jsonrpc":"2.0","method":"m"}"#,
            "notification m absent",
            0,
        ),
        (
            r#"{"method":"m\n","params":[ ]}"#,
            "notification m\n [ ]",
            1,
        ),
        (r#"{"jsonrpc":"2.0","method":{}}"#, "none", 0),
        // Names are names however they are spelt, and at their own depth alone.
        (
            r#"{"jsonrpc":"2.0","\u006dethod":"m"}"#,
            "notification m absent",
            0,
        ),
        (r#"{"jsonrpc":"2.0","x":{"method":"m","id":1}}"#, "none", 0),
        // Of duplicates the last counts.
        (
            r#"{"jsonrpc":"1.0","jsonrpc":"2.0","method":"a","method":"m"}"#,
            "notification m absent",
            0,
        ),
        // Responses.
        (
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            "result 1 null",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result": [1.0, 1e5] }"#,
            "result 1 [1.0, 1e5]",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"method":null}"#,
            "result 1 1",
            0,
        ),
        (r#"{"jsonrpc":"2.0","id":"1","result":1}"#, "result 1 1", 1),
        (
            r#"{"jsonrpc":"2.0","id":null,"result":1}"#,
            "result nobody 1",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"result":1}"#,
            "result nobody 1",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-3,"message":"no"}}"#,
            "error 1 no (code -3)",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":-3,"message":"no"}}"#,
            "error nobody no (code -3)",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-3,"message":"no"}}"#,
            "error nobody no (code -3)",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":"no"}"#,
            "error 1 no (code 0)",
            1,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":null,"error":"no"}"#,
            "error 1 no (code 0)",
            0,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":null}"#,
            "result 1 1",
            0,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"error":null}"#, "neither 1", 0),
        (r#"{"jsonrpc":"2.0","id":1}"#, "neither 1", 0),
        (r#"{"id":1}"#, "none", 0),
        // No messages.
        (r#"{"level":"info","id":1}"#, "none", 0),
        (r#"{"jsonrpc":"2.0"}"#, "none", 0),
        (r#"{"jsonrpc":"2.0","result":1}"#, "none", 0),
        (r#"{"jsonrpc":"2.0","error":null}"#, "none", 0),
        ("{}", "none", 0),
        ("[]", "none", 0),
        ("null", "none", 0),
        ("\"text\"", "none", 0),
        ("", "none", 0),
        (
            r#"{"jsonrpc":"2.0","method":"m"} "#,
            "notification m absent",
            0,
        ),
        (r#"{"jsonrpc":"2.0","method":"m"}x"#, "none", 0),
        (
            r#"{"jsonrpc":"2.0","method":"m"}{"jsonrpc":"2.0","method":"m"}"#,
            "none",
            0,
        ),
    ];
    for (text, expected, deviations) in table {
        assert_eq!(read(text), (expected.to_owned(), deviations), "{text}");
    }
}

#[test]
fn no_prefix_of_a_message_is_a_message() {
    let text = r#"{"jsonrpc":"2.0","id":"\ud83d\ude00","method":"é\u00e9","params":{"a":[1,null,"\ud800"]}}"#;
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        assert_eq!(read(&text[..end]).0, "none", "{}", &text[..end]);
    }
    assert!(read(text).0.starts_with("request \"\u{1f600}\" éé {"));
}

#[test]
fn an_id_is_written_as_it_was_read() {
    let ids = [
        ("1", Id::Integer(1)),
        ("-9223372036854775808", Id::Integer(i64::MIN)),
        (
            "9223372036854775808",
            Id::Other("9223372036854775808".into()),
        ),
        ("1.0", Id::Other("1.0".into())),
        ("1e5", Id::Other("1e5".into())),
        ("null", Id::Other("null".into())),
        (r#""1""#, Id::String("1".into())),
        (r#""\"\\\n""#, Id::String("\"\\\n".into())),
        (r#""\udfff""#, Id::Other(r#""\udfff""#.into())),
    ];
    for (text, id) in ids {
        assert_eq!(Id::from_json(text), Some(id.clone()), "{text}");
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_string(&id).unwrap(), text);
    }
    for none in ["true", "false", "{}", "[1]", ""] {
        assert_eq!(Id::from_json(none), None, "{none}");
    }
    // 92 and "92" are two ids.
    assert_ne!(Id::from_json("92"), Id::from_json("\"92\""));
}

#[test]
fn an_answer_names_its_call_in_any_form_that_plainly_does() {
    let named = |text| AnswerId::from_json(text).map(|id| (id.call, id.reformed));
    assert_eq!(named("7"), Some((7, false)));
    assert_eq!(named("18446744073709551615"), Some((u64::MAX, false)));
    for text in ["\"7\"", "7.0", "7e0", "0.7e1", "\"7.0\""] {
        assert_eq!(named(text), Some((7, true)), "{text}");
    }
    for text in [
        "7.5",
        "-7",
        "null",
        "\"\"",
        "\"seven\"",
        "{}",
        "[7]",
        "true",
        "\"nan\"",
        "1e300",
        "\"7 \"",
        "",
    ] {
        assert_eq!(named(text), None, "{text}");
    }
}

#[test]
fn a_reply_is_one_compact_message_with_the_id_as_it_came() {
    let ok = |id: &str, value: &Value| {
        let id = Id::from_json(id).unwrap();
        String::from_utf8(reply(&id, Ok(value)).unwrap()).unwrap()
    };
    assert_eq!(
        ok("7", &json!({"a": "\n"})),
        r#"{"jsonrpc":"2.0","id":7,"result":{"a":"\n"}}"#
    );
    assert_eq!(
        ok("\"7\"", &Value::Null),
        r#"{"jsonrpc":"2.0","id":"7","result":null}"#
    );
    assert_eq!(
        ok("1.50", &json!(1)),
        r#"{"jsonrpc":"2.0","id":1.50,"result":1}"#
    );

    let failed = |error: &RpcError| {
        let reply = reply(&Id::Integer(7), Err::<&Value, _>(error)).unwrap();
        String::from_utf8(reply).unwrap()
    };
    assert_eq!(
        failed(&RpcError::method_not_found("m")),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"method not found: m"}}"#
    );
    let error = RpcError::new(1, "\u{1b}[1m")
        .with_data(json!([null]))
        .unwrap();
    assert_eq!(
        failed(&error),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"\u001b[1m","data":[null]}}"#
    );
    assert_eq!(
        error.to_string(),
        " (code 1)",
        "shown without control characters"
    );
}

fn encoder(limit: usize) -> Encoder {
    Encoder {
        framing: Framing::Lines,
        limit,
    }
}

fn call(params: &impl Serialize, limit: usize) -> Result<String, EncodeError> {
    let frame = encoder(limit).call(None, "m", params)?;
    Ok(String::from_utf8(frame.as_bytes().to_vec()).unwrap())
}

#[test]
fn params_are_objects_or_arrays_or_left_out() {
    let raw = |text: &str| RawValue::from_string(text.into()).unwrap();
    let bare = "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n";
    for nothing in [raw("null"), raw(" null\n")] {
        assert_eq!(call(&nothing, 100).unwrap(), bare);
    }
    assert_eq!(call(&None::<u8>, 100).unwrap(), bare);
    for (params, written) in [
        ("{}", "{}"),
        (" [ 1.00, \"a b\" ] ", "[1.00,\"a b\"]"),
        ("{\n\"a\" : \"b c\"\n}", "{\"a\":\"b c\"}"),
    ] {
        let expected = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{}}}\n",
            written.trim()
        );
        assert_eq!(call(&raw(params), 100).unwrap(), expected, "{params}");
    }
    for scalar in ["1", "\"s\"", "true", "nullable"] {
        let Ok(raw) = RawValue::from_string(scalar.into()) else {
            continue;
        };
        assert!(
            matches!(call(&raw, 100), Err(EncodeError::Scalar)),
            "{scalar}"
        );
    }
}

#[test]
fn the_limit_of_a_frame_is_exact_and_counts_nothing_that_is_left_out() {
    let bare = r#"{"jsonrpc":"2.0","method":"m"}"#.len();
    assert_eq!(call(&(), bare).unwrap().len(), bare + 1);
    assert!(matches!(
        call(&(), bare - 1),
        Err(EncodeError::TooLarge { .. })
    ));
    let full = bare + r#","params":[1]"#.len();
    assert_eq!(call(&[1], full).unwrap().len(), full + 1);
    for limit in [0, 1, bare, full - 1] {
        let error = call(&[1], limit).unwrap_err();
        assert!(
            matches!(error, EncodeError::TooLarge { limit: told } if told == limit),
            "{error}"
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_told() {
    assert_eq!(text(b"caf\xe9"), ("caf\u{fffd}".into(), true));
    assert_eq!(text("café".as_bytes()), ("café".into(), false));
}
