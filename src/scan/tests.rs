use super::*;
use std::collections::HashMap;

fn scan(text: impl AsRef<[u8]>) -> Vec<Sighting> {
    let mut scanner = Scanner::new();
    scanner.feed(text.as_ref());
    scanner.finish()
}

fn ids(text: impl AsRef<[u8]>) -> Vec<Option<String>> {
    scan(text).into_iter().map(|seen| seen.id).collect()
}

fn id(text: impl AsRef<[u8]>) -> Option<String> {
    let ids = ids(text);
    assert_eq!(ids.len(), 1, "{ids:?}");
    ids[0].clone()
}

/// A response with everything in it that could be mistaken for its own members.
const TRAPS: &str = r#"{"jsonrpc":"2.0","result":{"id":1,"error":[{"id":2}],"text":"\",\"id\":3,{[}\\"},"s":"}\"id\":4","id": "a\"b" ,"z":[1,"]"]}"#;

#[test]
fn a_method_that_is_null_is_none() {
    for (method, seen) in [
        ("null", false),
        (" null ", false),
        ("\"m\"", true),
        ("{}", true),
    ] {
        let text = format!(r#"{{"id":7,"method":{method},"jsonrpc":"2.0","result":{{"a":"#);
        let mut scanner = Scanner::new();
        scanner.feed(text.as_bytes());
        let sightings = scanner.finish();
        assert_eq!(sightings.len(), 1, "{method}");
        assert_eq!(sightings[0].method, seen, "{method}");
        assert_eq!(sightings[0].id.as_deref(), Some("7"), "{method}");
    }
}

#[test]
fn the_id_is_found_wherever_it_stands() {
    assert_eq!(
        id(r#"{"id":7,"jsonrpc":"2.0","result":{}}"#).as_deref(),
        Some("7")
    );
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#).as_deref(),
        Some("7")
    );
    assert_eq!(
        id(r#"{"result":{"id":8},"jsonrpc":"2.0","id":7}"#).as_deref(),
        Some("7")
    );
    assert_eq!(id(TRAPS).as_deref(), Some(r#""a\"b""#));
}

#[test]
fn an_id_is_kept_as_it_was_written() {
    for written in [
        "7",
        "\"a\"",
        "1.5",
        "null",
        "-1e3",
        "true",
        r#""\u00e9\"""#,
        "\"\"",
    ] {
        assert_eq!(
            id(format!("{{\"id\":{written}}}")).as_deref(),
            Some(written)
        );
        let spaced = format!(" {{ \"id\" :\n\t{written}\r\n , \"x\":1}}");
        assert_eq!(id(spaced).as_deref(), Some(written));
    }
}

#[test]
fn what_is_no_scalar_is_no_id() {
    for written in [
        "{}", "[1]", "", "7 8", "\"a\"b", "07", "nul", "\"\\q\"", "7{}",
    ] {
        assert_eq!(id(format!("{{\"id\":{written},\"x\":1}}")), None);
    }
}

#[test]
fn an_id_of_64_bytes_is_the_longest() {
    let longest = format!("\"{}\"", "x".repeat(62));
    assert_eq!(id(format!("{{\"id\":{longest}}}")), Some(longest));
    let over = format!("\"{}\"", "x".repeat(63));
    assert_eq!(id(format!("{{\"id\":{over},\"result\":1}}")), None);
}

#[test]
fn the_last_of_two_ids_wins() {
    assert_eq!(id(r#"{"id":1,"id":2}"#).as_deref(), Some("2"));
    assert_eq!(id(r#"{"id":1,"id":{}}"#), None);
}

#[test]
fn a_name_may_be_spelt_with_escapes() {
    let seen = scan(r#"{"\u0069d":5,"m\u0065thod":"x","id\\":6,"ID":7}"#);
    assert_eq!(seen[0].id.as_deref(), Some("5"));
    assert!(seen[0].method);
}

#[test]
fn the_members_are_told_apart() {
    let seen = scan(
        r#"{"jsonrpc":"2.0","result":{"method":1,"error":1}}{"error":null}{"a":"method","method":""}"#,
    );
    let flags: Vec<_> = seen
        .iter()
        .map(|seen| (seen.jsonrpc, seen.result, seen.error, seen.method))
        .collect();
    assert_eq!(
        flags,
        [
            (true, true, false, false),
            (false, false, true, false),
            (false, false, false, true),
        ]
    );
}

#[test]
fn each_object_of_an_array_is_a_sighting() {
    let text =
        r#"[{"id":1,"result":[{"id":9}]},[{"id":8}],"{\"id\":7}",{"jsonrpc":"2.0","id":"b"}]"#;
    assert_eq!(ids(text), [Some("1".into()), Some("\"b\"".into())]);
    assert_eq!(ids("[]"), []);
}

#[test]
fn sightings_are_bounded() {
    let text = format!("[{}", "{\"id\":1},".repeat(MAX_SIGHTINGS + 1));
    assert_eq!(scan(text).len(), MAX_SIGHTINGS);
}

#[test]
fn a_truncated_text_gives_what_is_certain() {
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":7,"result":{"a":["#).as_deref(),
        Some("7")
    );
    // The number might have gone on; the string and the number before a blank are whole.
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":7"#), None);
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":7 "#).as_deref(), Some("7"));
    assert_eq!(id(r#"{"id":"a"#), None);
    assert_eq!(id(r#"{"id":"a\""#), None);
    assert_eq!(id(r#"{"id":"a""#).as_deref(), Some("\"a\""));
    assert_eq!(ids(r#"[{"id":1},{"id":2,"#).len(), 2);
}

#[test]
fn text_around_a_message_does_not_hide_it() {
    assert_eq!(
        id(r#"it's "fine: {"id":1,"result":0} }]"#).as_deref(),
        Some("1")
    );
    assert_eq!(id(r#"[INFO] {"id":1,"result":0}"#).as_deref(), Some("1"));
    assert_eq!(ids("no message"), []);
    assert_eq!(ids("}}}]]{\"id\":3}"), [Some("3".into())]);
}

#[test]
fn every_split_gives_the_same() {
    let text = format!("[{TRAPS},{{\"method\":\"m\",\"id\":12}}]").into_bytes();
    let whole = scan(&text);
    assert_eq!(whole.len(), 2);
    for size in 1..text.len() {
        let mut scanner = Scanner::new();
        for piece in text.chunks(size) {
            scanner.feed(piece);
        }
        assert_eq!(scanner.finish(), whole, "pieces of {size}");
    }
}

#[test]
fn no_prefix_gives_another_id() {
    let text = br#"{"id":"abc","result":{"id":4},"id":1234567,"jsonrpc":"2.0"}"#;
    for end in 0..text.len() {
        for seen in ids(&text[..end]).into_iter().flatten() {
            assert!(seen == "\"abc\"" || seen == "1234567", "{seen} at {end}");
        }
    }
}

#[test]
fn no_single_byte_change_is_fatal_and_what_still_parses_is_read_alike() {
    let check = |text: &[u8]| {
        let seen = scan(text);
        let Ok(members) = serde_json::from_slice::<HashMap<String, Box<RawValue>>>(text) else {
            return;
        };
        let id = members.get("id").map(|id| id.get().to_owned());
        let expected = Sighting {
            id: id.filter(|id| !id.starts_with(['{', '['])),
            method: members.contains_key("method"),
            jsonrpc: members.contains_key("jsonrpc"),
            result: members.contains_key("result"),
            error: members.contains_key("error"),
        };
        assert_eq!(seen, [expected], "{}", String::from_utf8_lossy(text));
    };
    check(TRAPS.as_bytes());
    for at in 0..TRAPS.len() {
        for byte in 0..=u8::MAX {
            let mut text = TRAPS.as_bytes().to_vec();
            text[at] = byte;
            check(&text);
            text.insert(at, b'"');
            check(&text);
            text.drain(at..at + 2);
            check(&text);
        }
    }
}

#[test]
fn deep_and_shallow_garbage_is_survived() {
    assert_eq!(scan("[{".repeat(100_000)).len(), 1);
    assert_eq!(scan("}]".repeat(100_000)), []);
    assert_eq!(scan("{\"id\":".repeat(10_000)).len(), 1);
    scan((0..=u8::MAX).cycle().take(100_000).collect::<Vec<_>>());
}

#[test]
fn memory_does_not_grow_with_the_text() {
    let mut scanner = Scanner::new();
    scanner.feed(b"{\"id\":\"");
    for _ in 0..1000 {
        scanner.feed(&[b'x'; 1000]);
    }
    assert!(scanner.capture.text.capacity() <= 2 * MAX_CAPTURE);
}

#[test]
fn the_first_of_two_bytes_is_found_at_every_place() {
    for at in 0..100 {
        let mut text = [b'.'; 100];
        text[99] = b'a';
        text[at] = b'b';
        assert_eq!(find_either(&text, b'a', b'b'), Some(at));
        assert_eq!(find_either(&text[..at], b'a', b'b'), None);
    }
}
