//! What the server has to offer: its tools, resources and prompts.

use serde_json::{Value, json};

use super::{INVALID_PARAMS, Outcome, refusal};

pub(super) fn tools() -> Value {
    let tool = |name, description, properties: Value| {
        let required: Vec<_> = properties
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"name": name, "description": description, "inputSchema": schema})
    };
    let number = json!({"type": "number"});
    json!([
        tool(
            "echo",
            "gives back a text",
            json!({"text": {"type": "string"}})
        ),
        tool("add", "adds two numbers", json!({"a": number, "b": number})),
        tool(
            "sleep",
            "answers after some seconds and tells its progress",
            json!({"seconds": number})
        ),
        tool("fail", "fails", json!({})),
        tool("greet", "asks the user for a name and greets", json!({})),
        tool(
            "roots",
            "asks in which directories it may work and lists them",
            json!({})
        ),
    ])
}

pub(super) fn call_tool(params: &Value) -> Outcome {
    let arguments = &params["arguments"];
    match params["name"].as_str() {
        Some("echo") => match arguments["text"].as_str() {
            Some(text) => Ok(content(text)),
            None => Err(refusal(INVALID_PARAMS, "`text` is a string")),
        },
        Some("add") => {
            let (a, b) = (&arguments["a"], &arguments["b"]);
            // Whole numbers stay whole while they fit.
            let whole = a
                .as_i64()
                .zip(b.as_i64())
                .and_then(|(a, b)| a.checked_add(b));
            match (whole, a.as_f64().zip(b.as_f64())) {
                (Some(sum), _) => Ok(content(&sum.to_string())),
                (None, Some((a, b))) => Ok(content(&(a + b).to_string())),
                (None, None) => Err(refusal(INVALID_PARAMS, "`a` and `b` are numbers")),
            }
        }
        Some("fail") => Ok(failed("this tool always fails")),
        Some(other) => Err(refusal(
            INVALID_PARAMS,
            &format!("there is no tool {other}"),
        )),
        None => Err(refusal(INVALID_PARAMS, "`name` is a string")),
    }
}

pub(super) fn content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The result of a tool that could not do its work.
pub(super) fn failed(text: &str) -> Value {
    let mut result = content(text);
    result["isError"] = json!(true);
    result
}

/// What a tool has to ask the client before it can answer.
pub(super) struct Question {
    /// What the client must have declared to be asked.
    pub(super) capability: &'static str,
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// Makes the tool's result of the client's answer.
    pub(super) finish: fn(&Value) -> Value,
}

/// The question of a tool that has one.
pub(super) fn question(tool: &Value) -> Option<Question> {
    Some(match tool.as_str()? {
        "greet" => Question {
            capability: "elicitation",
            method: "elicitation/create",
            params: json!({
                "message": "Who is to be greeted?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "minLength": 1}},
                    "required": ["name"],
                },
            }),
            finish: |answer| match (answer["action"].as_str(), &answer["content"]["name"]) {
                (Some("accept"), Value::String(name)) => content(&format!("Hello, {name}!")),
                (Some("decline"), _) => content("Nobody is greeted: the user declined."),
                (Some("cancel"), _) => content("Nobody is greeted: the user gave no answer."),
                _ => failed("that is no answer to the form"),
            },
        },
        "roots" => Question {
            capability: "roots",
            method: "roots/list",
            params: json!({}),
            finish: |answer| {
                let roots = answer["roots"].as_array().into_iter().flatten();
                let lines: Vec<_> = roots.filter_map(|root| root["uri"].as_str()).collect();
                content(&lines.join("\n"))
            },
        },
        _ => return None,
    })
}

pub(super) fn resources() -> Value {
    json!([{
        "uri": "inspect:usage",
        "name": "usage",
        "description": "the command line of this program",
        "mimeType": "text/plain",
        "size": USAGE.len(),
    }])
}

pub(super) fn resource_templates() -> Value {
    json!([{
        "uriTemplate": "inspect:tool/{name}",
        "name": "tool",
        "description": "the definition of a tool",
        "mimeType": "application/json",
    }])
}

/// The contents of a resource; `None` if there is none at this URI.
pub(super) fn read(uri: &str) -> Option<Value> {
    let (mime_type, text) = match uri.strip_prefix("inspect:")? {
        "usage" => ("text/plain", USAGE.to_owned()),
        other => {
            let name = other.strip_prefix("tool/")?;
            let tools = tools();
            let tool = tools.as_array()?.iter().find(|tool| tool["name"] == name)?;
            ("application/json", tool.to_string())
        }
    };
    Some(json!({"contents": [{"uri": uri, "mimeType": mime_type, "text": text}]}))
}

pub(super) fn prompts() -> Value {
    json!([{
        "name": "haiku",
        "description": "has a haiku written",
        "arguments": [
            {"name": "topic", "description": "what it is about", "required": true},
            {"name": "mood", "description": "how it sounds"},
        ],
    }])
}

pub(super) fn prompt(params: &Value) -> Outcome {
    if params["name"] != "haiku" {
        return Err(refusal(INVALID_PARAMS, "there is no such prompt"));
    }
    let Some(topic) = params["arguments"]["topic"].as_str() else {
        return Err(refusal(INVALID_PARAMS, "`topic` is a string"));
    };
    let mood = params["arguments"]["mood"].as_str().unwrap_or("calm");
    Ok(json!({
        "description": "has a haiku written",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": format!("Write a haiku about {topic}.")}},
            {"role": "assistant", "content": {"type": "text", "text": format!("A {mood} one:")}},
        ],
    }))
}

const USAGE: &str = crate::args::USAGE;
