//! Structured results against output schemas, by a validator of the caller's own.

use std::sync::{Arc, Mutex};

use landline::mcp::{CallOptions, Error, Options};

use super::values::{MODERN, answered, connected, options};

/// What a validator was asked.
type Checked = Arc<Mutex<Vec<(String, String)>>>;

/// Options whose validator refuses what is not an object, and what it was asked.
fn validating() -> (Options, Checked) {
    let checked = Checked::default();
    let noting = checked.clone();
    let options = options().validator(move |schema, value| {
        let asked = (schema.get().to_owned(), value.get().to_owned());
        noting.lock().unwrap().push(asked);
        match (
            schema.get().contains("my-own"),
            value.get().starts_with('{'),
        ) {
            (true, _) => Err("the dialect my-own is unknown".into()),
            (_, true) => Ok(()),
            (_, false) => Err("it is no object".into()),
        }
    });
    (options, checked)
}

#[test]
fn c100_a_structured_result_is_checked_by_the_callers_validator() {
    let schema = r#"{"type": "object", "$ref": "https://example.com/s.json"}"#;
    let listed =
        format!("{{\"tools\":[{{\"name\":\"t\",\"outputSchema\":{schema}}},{{\"name\":\"u\"}}]}}");
    let (options, checked) = validating();
    for revision in ["2025-06-18", MODERN] {
        let (client, mut script) = connected(revision, &options);
        let tools = answered(&mut script, &listed, || client.tools()).unwrap();
        let mut call = |tool: usize, result: &str| {
            answered(&mut script, result, || {
                let options = CallOptions::new().expect(&tools[tool]);
                client.call_tool_with("t", (), options)
            })
        };
        let asked = || std::mem::take(&mut *checked.lock().unwrap());

        let fits = r#"{"content":[],"structuredContent":{"a": 1.50}}"#;
        assert_eq!(call(0, fits).unwrap().raw().get(), fits);
        // As they came, and whatever a reference points to is the validator's to refuse.
        assert_eq!(asked(), [(schema.to_owned(), r#"{"a": 1.50}"#.to_owned())]);

        let breaks = r#"{"content":[],"structuredContent":[]}"#;
        let Error::Schema {
            tool,
            reason,
            result,
        } = call(0, breaks).unwrap_err()
        else {
            panic!("another error")
        };
        assert_eq!((&*tool, &*reason), ("t", "it is no object"));
        assert_eq!(result.raw().get(), breaks, "the result is not lost");
        assert_eq!(asked().len(), 1);

        let error = call(0, r#"{"content":[]}"#).unwrap_err();
        assert!(
            error.to_string().ends_with("output schema: it is missing"),
            "{error}"
        );
        // What a tool says of its failure has no schema, and a tool may have none.
        let failed = call(0, r#"{"content":[],"isError":true,"structuredContent":[]}"#);
        assert!(failed.unwrap().is_error());
        assert!(call(1, breaks).is_ok());
        assert_eq!(asked(), []);
    }
}

#[test]
fn c100_without_a_validator_nothing_is_checked() {
    let (client, mut script) = connected(MODERN, &options());
    let listed = r#"{"tools":[{"name":"t","outputSchema":{"type":"object"}}]}"#;
    let tools = answered(&mut script, listed, || client.tools()).unwrap();
    let result = answered(&mut script, r#"{"structuredContent":5}"#, || {
        client.call_tool_with("t", (), CallOptions::new().expect(&tools[0]))
    });
    assert_eq!(result.unwrap().structured_as::<u8>().unwrap(), 5);
}

#[test]
fn c103_a_dialect_that_the_validator_does_not_know_is_an_error() {
    let (options, checked) = validating();
    let (client, mut script) = connected(MODERN, &options);
    let schema = r#"{"$schema":"my-own"}"#;
    let listed = format!("{{\"tools\":[{{\"name\":\"t\",\"outputSchema\":{schema}}}]}}");
    let tools = answered(&mut script, &listed, || client.tools()).unwrap();
    let result = answered(&mut script, r#"{"structuredContent":{}}"#, || {
        client.call_tool_with("t", (), CallOptions::new().expect(&tools[0]))
    });
    let error = result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the structured result of `t` breaks its output schema: the dialect my-own is unknown"
    );
    assert_eq!(
        *checked.lock().unwrap(),
        [(schema.to_owned(), "{}".to_owned())]
    );
}
