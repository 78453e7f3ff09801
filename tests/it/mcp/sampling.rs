//! Sampling: what a server asks of the client's model, and how it answers.

use std::sync::mpsc;

use landline::RpcError;
use landline::mcp::{Error, Options, Sample};
use serde_json::{Value, json};

use super::server::{LEGACY, answer_in, ask_back, code, during, modern, sampling, with};

fn options() -> Options {
    Options::new("test", "1")
}

#[test]
fn c076_a_refusal_by_the_user_has_its_code_and_any_other_error_its_own() {
    let user = options().sample(|_, _| Err(Sample::refused("the user said no")));
    let other = options().sample(|_, _| {
        let error = RpcError::new(-32000, "no model");
        Err(error.with_data(json!({"retry": false})).unwrap())
    });
    for revision in LEGACY {
        let refused = answer_in(&user, revision, &sampling("s"));
        assert_eq!(
            refused["error"],
            json!({"code": -1, "message": "the user said no"})
        );
        let failed = answer_in(&other, revision, &sampling("s"));
        assert_eq!(
            failed["error"],
            json!({"code": -32000, "message": "no model", "data": {"retry": false}})
        );
    }
}

fn tool() -> Value {
    json!({"name": "search", "inputSchema": {"type": "object"}})
}

#[test]
fn c077_sampling_with_tools_needs_its_own_declaration() {
    let plain = options().sample(|_, _| Ok(Sample::text("m", "answered")));
    let tools = with(sampling("s"), json!({"tools": [tool()]}));
    let choice = with(sampling("s"), json!({"toolChoice": {"mode": "none"}}));
    for question in [&tools, &choice] {
        assert_eq!(code(&answer_in(&plain, "2025-11-25", question)), -32602);
    }
    // Some encoders write what is not there.
    let nulls = with(sampling("s"), json!({"tools": null, "toolChoice": null}));
    let answer = answer_in(&plain, "2025-11-25", &nulls);
    assert_eq!(answer["result"]["content"]["text"], "answered");

    let able = options().sample_with_tools(|_, ask| {
        assert_eq!(ask.tools()[0].name(), "search");
        let usage = json!({"type": "tool_use", "id": "u1", "name": "search", "input": {"q": 1}});
        Ok(Sample::new("m", &[usage]).unwrap().stop_reason("toolUse"))
    });
    let answer = answer_in(&able, "2025-11-25", &tools);
    assert_eq!(
        answer["result"],
        json!({
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "u1", "name": "search", "input": {"q": 1}}],
            "model": "m",
            "stopReason": "toolUse",
        })
    );
    // Earlier revisions know no tools there, and declared none.
    assert_eq!(code(&answer_in(&able, "2025-06-18", &tools)), -32602);
}

fn text(role: &str) -> Value {
    json!({"role": role, "content": {"type": "text", "text": "t"}})
}

fn uses(ids: &[&str]) -> Value {
    let block = |id| json!({"type": "tool_use", "id": id, "name": "search", "input": {}});
    let blocks: Vec<_> = ids.iter().map(block).collect();
    json!({"role": "assistant", "content": blocks})
}

fn results(ids: &[&str]) -> Value {
    let block = |id| json!({"type": "tool_result", "toolUseId": id, "content": []});
    let blocks: Vec<_> = ids.iter().map(block).collect();
    json!({"role": "user", "content": blocks})
}

fn conversation(messages: &[Value]) -> Value {
    with(
        sampling(""),
        json!({"messages": messages, "tools": [tool()]}),
    )
}

#[test]
fn c078_tool_results_answer_the_tool_uses_before_them_and_stand_alone() {
    let (count, counted) = mpsc::channel();
    let options = options().sample_with_tools(move |_, ask| {
        count.send(ask.messages().len()).unwrap();
        Ok(Sample::text("m", "fine"))
    });
    let mut mixed = results(&["a"]);
    let words = json!({"type": "text", "text": "t"});
    mixed["content"].as_array_mut().unwrap().push(words);
    let mut single = results(&["a"]);
    single["content"] = single["content"][0].take();
    for good in [
        vec![text("user")],
        vec![text("user"), uses(&["a", "b"]), results(&["b", "a"])],
        vec![
            uses(&["a"]),
            single,
            uses(&["a"]),
            results(&["a"]),
            text("user"),
        ],
    ] {
        let answer = answer_in(&options, "2025-11-25", &conversation(&good));
        assert_eq!(answer["result"]["content"]["text"], "fine", "{good:?}");
        assert_eq!(counted.try_recv().unwrap(), good.len());
    }
    for bad in [
        vec![uses(&["a"]), mixed],
        vec![uses(&["a"])],
        vec![uses(&["a"]), text("user")],
        vec![uses(&["a", "b"]), results(&["a"])],
        vec![uses(&["a"]), results(&["b"])],
        vec![results(&["a"])],
        vec![uses(&["a"]), results(&["a", "a"])],
    ] {
        let answer = answer_in(&options, "2025-11-25", &conversation(&bad));
        assert_eq!(code(&answer), -32602, "{bad:?}");
        assert!(counted.try_recv().is_err(), "nobody is asked: {bad:?}");
    }
    // In the modern era there is no form for it, and the call is abandoned.
    let (client, mut script) = modern(&options, json!({"tools": {}}));
    let error = during(
        || client.call_tool("t", ()),
        || {
            let request = script.recv();
            let needs = json!({"a": conversation(&[results(&["a"])])});
            ask_back(&mut script, &request, json!({"inputRequests": needs}));
        },
    );
    let error = error.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { refusal, .. } if refusal.code == -32602),
        "{error}"
    );
    assert!(counted.try_recv().is_err());
}

#[test]
fn c102_before_2025_11_25_a_model_answers_with_one_block() {
    let blocks = |count: usize| {
        let block = json!({"type": "text", "text": "t"});
        options().sample(move |_, _| Ok(Sample::new("m", &vec![block.clone(); count]).unwrap()))
    };
    let block = json!({"type": "text", "text": "t"});
    for revision in &LEGACY[..3] {
        let answer = answer_in(&blocks(1), revision, &sampling("s"));
        assert_eq!(answer["result"]["content"], block);
        for count in [0, 2] {
            let answer = answer_in(&blocks(count), revision, &sampling("s"));
            assert_eq!(code(&answer), -32603);
        }
    }
    for count in 0..3 {
        let answer = answer_in(&blocks(count), "2025-11-25", &sampling("s"));
        let expected = vec![block.clone(); count];
        assert_eq!(answer["result"]["content"], json!(expected));
    }
}

#[test]
fn c102_a_question_to_the_model_has_one_block_or_several() {
    let options = options().sample(|_, ask| {
        let messages = ask.messages();
        let shown: Vec<_> = messages
            .iter()
            .map(|message| {
                let content = message.content();
                let texts = content.iter().map(|block| block.as_text().unwrap());
                (
                    message.role().into_owned(),
                    texts.collect::<Vec<_>>().join("|"),
                )
            })
            .collect();
        Ok(Sample::text("m", format!("{shown:?}")))
    });
    let block = |text| json!({"type": "text", "text": text});
    let messages = json!([
        {"role": "user", "content": block("a")},
        {"role": "assistant", "content": [block("b"), block("c")]},
        {"role": "user", "content": []},
    ]);
    let question = with(
        sampling(""),
        json!({"messages": messages, "maxTokens": 3.0}),
    );
    let answer = answer_in(&options, "2025-11-25", &question);
    assert_eq!(
        answer["result"]["content"]["text"],
        r#"[("user", "a"), ("assistant", "b|c"), ("user", "")]"#
    );
}
