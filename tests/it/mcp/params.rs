//! What goes along with a request: the caller's `_meta`, and what the revision knows.

use landline::Delivery;
use landline::mcp::{CallOptions, Error, Meta, MetaError, Options, Reference};
use serde_json::{Value, json};

use super::server::{LEGACY, during, fence, legacy, modern};

fn options() -> Options {
    Options::new("test", "1")
}

#[test]
fn c116_the_callers_meta_goes_along_and_reserved_keys_do_not() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (client, mut script) in [
        legacy(&options(), "2025-11-25", json!({"tools": {}})),
        modern(&options(), json!({"tools": {}})),
    ] {
        let own = Meta::new().with("traceparent", trace).unwrap();
        let own = own.with("com.example/x", json!({"n": [1, null]})).unwrap();
        let mut sent = |call: &(dyn Fn() -> Result<(), Error> + Sync)| {
            let mut params = Value::Null;
            let result = during(call, || {
                let request = script.recv();
                params = request["params"].clone();
                script.answer(&request, json!({"content": []}));
            });
            result.unwrap();
            let meta = params.as_object_mut().unwrap().remove("_meta").unwrap();
            assert_eq!(meta["traceparent"], trace);
            assert_eq!(meta["com.example/x"], json!({"n": [1, null]}));
            let ours = meta.as_object().unwrap().len() - 2;
            (params, ours)
        };
        let is_modern = client.server().version() == "2026-07-28";
        let ours = if is_modern { 3 } else { 0 };
        let called = sent(&|| {
            let options = CallOptions::new().meta(own.clone());
            client.call_tool_with("t", (), options).map(drop)
        });
        assert_eq!(called, (json!({"name": "t"}), ours));
        let meta = json!({"traceparent": trace, "com.example/x": {"n": [1, null]}});
        let asked = sent(&|| {
            let params = json!({"a": 1, "_meta": meta});
            client.request::<Value>("com.example/own", params).map(drop)
        });
        assert_eq!(asked, (json!({"a": 1}), ours));
        for key in [
            "io.modelcontextprotocol/zzz",
            "io.modelcontextprotocol/protocolVersion",
            "dev.mcp/x",
            "progressToken",
        ] {
            let refused = Meta::new().with(key, 1).unwrap_err();
            assert!(matches!(&refused, MetaError::Reserved { key: k } if **k == *key));
            let params = json!({"_meta": {key: 1}});
            let error = client
                .request::<Value>("com.example/own", params)
                .unwrap_err();
            assert!(
                matches!(error, Error::Meta(MetaError::Reserved { .. })),
                "{error}"
            );
            assert_eq!(error.delivery(), Delivery::NotSent);
        }
        let odd = json!({"_meta": [1]});
        assert!(client.request::<Value>("com.example/own", odd).is_err());
        assert_eq!(
            fence(&client, &mut script),
            Vec::<Value>::new(),
            "nothing of it was sent"
        );
    }
}

#[test]
fn c116_meta_of_both_origins_goes_along() {
    let (client, mut script) = legacy(&options(), "2025-11-25", json!({}));
    let answer = during(
        || {
            let meta = Meta::new().with("a", 1).unwrap().with("b", 1).unwrap();
            let params = json!({"_meta": {"b": 2, "c": 2}});
            let options = CallOptions::new().meta(meta);
            client.request_with::<Value>("com.example/own", params, options)
        },
        || {
            let request = script.recv();
            // The options are nearer to the call.
            assert_eq!(request["params"]["_meta"], json!({"a": 1, "b": 1, "c": 2}));
            script.answer(&request, json!("fine"));
        },
    );
    assert_eq!(answer.unwrap(), "fine");
}

#[test]
fn c117_params_hold_what_the_agreed_revision_knows_and_no_more() {
    let declared = json!({
        "tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {},
        "tasks": {"requests": {"tools": {"call": {}}}},
    });
    for revision in LEGACY {
        let (client, mut script) = legacy(&options(), revision, declared.clone());
        let mut params = |call: &(dyn Fn() -> Option<Error> + Sync), result: Value| {
            let mut params = None;
            let error = during(call, || {
                let request = script.recv();
                params = request.get("params").cloned();
                script.answer(&request, result);
            });
            assert!(error.is_none(), "{error:?}");
            params
        };
        let of = Reference::Prompt("p".into());
        let values = json!({"completion": {"values": ["x", 1, "y"], "total": 2.0}});
        let completing = params(
            &|| {
                let context = json!({"lang": "en"});
                let completion = client.complete(&of, "a", "v", context);
                completion
                    .map(|found| {
                        assert_eq!(found.values, ["x", "y"]);
                        assert_eq!((found.total, found.has_more), (Some(2), false));
                    })
                    .err()
            },
            values,
        );
        let mut expected = json!({
            "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "a", "value": "v"},
        });
        if revision >= "2025-06-18" {
            expected["context"] = json!({"arguments": {"lang": "en"}});
        }
        assert_eq!(completing, Some(expected), "{revision}");
        let called = params(
            &|| client.call_tool("t", json!({})).err(),
            json!({"content": []}),
        );
        assert_eq!(called, Some(json!({"name": "t", "arguments": {}})));
        let listed = params(&|| client.tools().err(), json!({"tools": []}));
        assert_eq!(listed, None);
        let got = params(
            &|| client.get_prompt("p", ()).err(),
            json!({"messages": []}),
        );
        assert_eq!(got, Some(json!({"name": "p"})));
        let read = params(
            &|| client.read_resource("u:1").err(),
            json!({"contents": []}),
        );
        assert_eq!(read, Some(json!({"uri": "u:1"})));
    }
}
