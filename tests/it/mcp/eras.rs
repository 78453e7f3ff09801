//! One program for both eras: what a user writes runs unchanged against servers of either.

use landline::mcp::{Client, Elicited, Options, Root, Sample};
use serde_json::{Value, json};

use super::server::{ask, ask_back, during, form, legacy, modern, refuse, sampling};
use crate::support::Script;

/// What a user writes: it knows nothing of eras. Gives what it has seen.
fn program(client: &Client) -> Result<Vec<String>, landline::mcp::Error> {
    let mut seen = Vec::new();
    for tool in client.tools()? {
        seen.push(format!(
            "tool {}: {}",
            tool.name(),
            tool.description().unwrap_or_default()
        ));
    }
    let result = client.call_tool("plan", json!({"days": 3}))?;
    seen.push(result.all_text());
    let plan: Value = result.structured_as().unwrap_or_default();
    seen.push(format!("structured {plan}"));
    for contents in client.read_resource("file:///plan")?.contents() {
        seen.push(format!("read {}", contents.as_text().unwrap_or_default()));
    }
    let missing = client.read_resource("file:///none").unwrap_err();
    seen.push(format!("not found {}", missing.is_resource_not_found()));
    let prompt = client.get_prompt("review", json!({"of": "plan"}))?;
    for message in prompt.messages() {
        let content = message.content();
        seen.push(format!(
            "{}: {}",
            message.role(),
            content.as_text().unwrap_or_default()
        ));
    }
    client.roots_changed()?;
    seen.push(format!("prompts {}", client.prompts().is_err()));
    Ok(seen)
}

fn everything() -> Options {
    Options::new("test", "1")
        .roots(|_| vec![Root::new("file:///home/me").unwrap()])
        .elicit_form(|_, ask| {
            assert_eq!(ask.message(), "where to?");
            let answer = json!({"name": "Rome"});
            Elicited::Accept(answer.as_object().unwrap().clone())
        })
        .sample(|_, ask| {
            let messages = ask.messages();
            let asked = messages[0].content();
            Ok(Sample::text(
                "tiny",
                format!("{}, then rest", asked[0].as_text().unwrap()),
            ))
        })
}

/// What the tool needs, in either era.
fn needs() -> Value {
    json!({
        "roots": {"method": "roots/list"},
        "form": form("where to?"),
        "model": sampling("see it"),
    })
}

/// What the tool gives for the answers.
fn planned(answers: &Value) -> Value {
    let place = &answers["form"]["content"]["name"];
    let advice = answers["model"]["content"]["text"].as_str().unwrap();
    let root = answers["roots"]["roots"][0]["uri"].as_str().unwrap();
    let text = format!("{} in {root}: {advice}", place.as_str().unwrap());
    json!({
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"place": place, "days": 3},
    })
}

/// Serves one client to its end; `needed` gets the answers to what the tool needs, or `None` where
/// another request with them is to come.
fn serve(
    script: &mut Script,
    not_found: i64,
    mut needed: impl FnMut(&mut Script, &Value) -> Option<Value>,
) {
    while let Some(line) = script.line() {
        let message: Value = serde_json::from_str(&line).unwrap();
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap() {
            "tools/list" => json!({"tools": [{"name": "plan", "description": "a journey"}]}),
            "tools/call" => {
                assert_eq!(params["arguments"], json!({"days": 3}));
                match needed(script, &message) {
                    Some(answers) => planned(&answers),
                    None => continue,
                }
            }
            "resources/read" if params["uri"] == "file:///plan" => {
                json!({"contents": [{"uri": "file:///plan", "text": "day 1"}]})
            }
            "resources/read" => {
                refuse(script, &message, not_found);
                continue;
            }
            "prompts/get" => {
                let text = json!({"type": "text", "text": "is it good?"});
                json!({"messages": [{"role": "user", "content": text}]})
            }
            "prompts/list" => {
                refuse(script, &message, -32603);
                continue;
            }
            "notifications/roots/list_changed" => continue,
            other => panic!("{other}"),
        };
        script.answer(&message, result);
    }
}

#[test]
fn one_program_runs_unchanged_against_a_legacy_and_a_modern_server() {
    let declared = || json!({"tools": {}, "resources": {}, "prompts": {}});
    let run = |client: Client| {
        let seen = program(&client);
        drop(client);
        seen.unwrap()
    };
    let (client, mut script) = modern(&everything(), declared());
    let in_modern = during(
        || run(client),
        || {
            serve(&mut script, -32602, |script, request| {
                let answers = request["params"].get("inputResponses");
                if answers.is_none() {
                    ask_back(script, request, json!({"inputRequests": needs()}));
                }
                answers.cloned()
            })
        },
    );
    let (client, mut script) = legacy(&everything(), "2025-11-25", declared());
    let in_legacy = during(
        || run(client),
        || {
            serve(&mut script, -32002, |script, _| {
                let mut answers = json!({});
                for (key, question) in needs().as_object().unwrap() {
                    ask(script, "q", question);
                    answers[key] = script.recv()["result"].take();
                }
                Some(answers)
            })
        },
    );
    assert_eq!(in_modern, in_legacy);
    assert_eq!(
        in_legacy,
        [
            "tool plan: a journey",
            "Rome in file:///home/me: see it, then rest",
            r#"structured {"days":3,"place":"Rome"}"#,
            "read day 1",
            "not found true",
            "user: is it good?",
            "prompts true",
        ]
    );
}
