//! What an MCP server gives, in words for a person and as JSON for a program.
//!
//! The JSON is the server's own text, digit for digit; only the members around lists are ours. The
//! words leave out what a terminal might obey.

use std::collections::BTreeMap;
use std::fmt::Display;

use landline::mcp::{
    Block, Content, Contents, List, Prompt, PromptResult, ReadResult, Resource, ResourceTemplate,
    Server, Stop, Tool, ToolResult,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fields::fields;
use crate::print::{Answer, laid_out};
use crate::screen::clean;

/// Any result, laid out.
pub(crate) fn raw(result: Box<RawValue>) -> Answer {
    let words = laid_out(result.get());
    well(result, words)
}

pub(crate) fn info(server: &Server) -> Answer {
    let (era, revision) = (server.era().to_string(), server.revision().as_str());
    let who = server.implementation();
    let capabilities = server.capabilities();
    let instructions = server.instructions();

    let part = |name: &Option<_>| name.as_deref().unwrap_or("?").to_owned();
    let mut words = vec![match &who {
        Some(who) => format!("{} {}", part(&who.name()), part(&who.version())),
        None => "a server without a name".into(),
    }];
    words.push(format!("speaks: revision {revision}, the {era} era"));
    let declared: BTreeMap<String, Value> = capabilities.decode().unwrap_or_default();
    let declared = declared.iter().map(|(name, details)| match details {
        Value::Object(details) if !details.is_empty() => format!("{name} {}", json!(details)),
        _ => name.clone(),
    });
    let declared: Vec<_> = declared.collect();
    words.push(format!("has: {}", or(&declared.join(", "), "nothing")));
    if let Some(instructions) = &instructions {
        words.push(format!("says: {instructions}"));
    }
    for oddity in server.oddities() {
        words.push(format!("overlooked: {oddity}"));
    }

    let json = object(&[
        ("era", json!(era).to_string()),
        ("revision", json!(revision).to_string()),
        (
            "server",
            who.map_or("null".into(), |who| who.raw().get().into()),
        ),
        ("capabilities", capabilities.raw().get().into()),
        ("instructions", json!(instructions).to_string()),
    ]);
    well(json, words.join("\n"))
}

pub(crate) fn tools(tools: &List<Tool>) -> Answer {
    let words = tools.iter().map(|tool| {
        let fields = tool.input_schema().map(fields).unwrap_or_default();
        let fields = fields.iter().map(|field| {
            let mark = if field.is_required { "" } else { "?" };
            format!("{}{mark}: {}", field.name, field.kind())
        });
        let fields: Vec<_> = fields.collect();
        let head = format!("{}({})", tool.name(), fields.join(", "));
        item(head, tool.description())
    });
    listed("tools", words.collect(), vec![part("tools", tools)])
}

pub(crate) fn call(result: &ToolResult) -> Answer {
    let mut words: Vec<_> = result.content().iter().map(content).collect();
    if let Some(value) = result.structured() {
        // Servers are to repeat it as text, for clients that know nothing of it.
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        let (value, parts) = (value.get(), parsed(value.get()));
        if !words.iter().any(|words| parsed(words) == parts) {
            words.push(format!("structured: {}", laid_out(value)));
        }
    }
    let failed = result
        .is_error()
        .then(|| "the tool says that it failed".into());
    Answer {
        notes: failed.into_iter().collect(),
        is_well: !result.is_error(),
        ..well(result.raw().to_owned(), words.join("\n"))
    }
}

pub(crate) fn resources(list: &List<Resource>, templates: &List<ResourceTemplate>) -> Answer {
    let words = list.iter().map(|resource| {
        let size = resource.size().map(|size| format!("{size} bytes"));
        let kind = [resource.mime_type().map(Into::into), size];
        let kind: Vec<_> = kind.into_iter().flatten().collect();
        let name = resource.title().unwrap_or_else(|| resource.name());
        let head = head(&resource.uri(), &name, &kind.join(", "));
        item(head, resource.description())
    });
    let patterns = templates.iter().map(|template| {
        let name = template.title().unwrap_or_else(|| template.name());
        let kind = template.mime_type().unwrap_or_default();
        let head = head(&template.uri_template(), &name, &kind);
        item(head, template.description())
    });
    let words = words.chain(patterns).collect();
    let parts = vec![
        part("resources", list),
        part("resourceTemplates", templates),
    ];
    listed("resources", words, parts)
}

pub(crate) fn read(result: &ReadResult) -> Answer {
    let parts = result.contents();
    let words: Vec<_> = parts.iter().map(contents).collect();
    well(result.raw().to_owned(), words.join("\n"))
}

pub(crate) fn prompts(prompts: &List<Prompt>) -> Answer {
    let words = prompts.iter().map(|prompt| {
        let arguments = prompt.arguments();
        let arguments = arguments.iter().map(|argument| {
            let mark = if argument.is_required() { "" } else { "?" };
            format!("{}{mark}", argument.name())
        });
        let arguments: Vec<_> = arguments.collect();
        let head = format!("{}({})", prompt.name(), arguments.join(", "));
        item(head, prompt.description())
    });
    listed("prompts", words.collect(), vec![part("prompts", prompts)])
}

pub(crate) fn prompt(result: &PromptResult) -> Answer {
    let messages = result.messages();
    let words = messages
        .iter()
        .map(|message| format!("{}: {}", message.role(), content(&message.content())));
    let words: Vec<_> = words.collect();
    well(result.raw().to_owned(), words.join("\n"))
}

fn content(content: &Content) -> String {
    match content.block() {
        Block::Text(text) => text.into(),
        Block::Image {
            data, mime_type, ..
        } => bytes(&content.kind(), &mime_type, &data),
        Block::Audio {
            data, mime_type, ..
        } => bytes(&content.kind(), &mime_type, &data),
        Block::Resource(resource) => format!("[{}]\n{}", resource.uri(), contents(&resource)),
        Block::ResourceLink(link) => format!("[{}]", head(&link.uri(), &link.name(), "")),
        _ => laid_out(content.raw().get()),
    }
}

fn contents(contents: &Contents) -> String {
    match (contents.as_text(), contents.as_blob()) {
        (Some(text), _) => text.into(),
        (None, Some(data)) => {
            let mime_type = contents.mime_type().unwrap_or("any type".into());
            bytes(&contents.uri(), &mime_type, &data)
        }
        (None, None) => laid_out(contents.raw().get()),
    }
}

/// Stands for what is not to be read.
fn bytes(what: &str, mime_type: &str, base64: &str) -> String {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    let bytes = (base64.len() - padding) * 3 / 4;
    format!("[{what}: {mime_type}, {bytes} bytes]")
}

fn head(address: &str, name: &str, kind: &str) -> String {
    let mut head = address.to_owned();
    if !name.is_empty() && name != address {
        head.push_str(&format!(" {name}"));
    }
    if !kind.is_empty() {
        head.push_str(&format!(" ({kind})"));
    }
    head
}

/// An entry of a list, what is said of it under its head.
fn item(mut words: String, description: Option<impl AsRef<str>>) -> String {
    for line in description.iter().flat_map(|words| words.as_ref().lines()) {
        words.push_str("\n    ");
        words.push_str(line);
    }
    words
}

/// One list of an answer.
struct Part {
    name: &'static str,
    json: String,
    unusable: Vec<String>,
    notes: Vec<String>,
}

fn part<T>(name: &'static str, list: &List<T>) -> Part
where
    [T]: serde_core::Serialize,
{
    let unusable = list.unusable().iter();
    let cannot = |item: &landline::mcp::Unusable| {
        format!("one of the {name} has no `{}`: {}", item.missing, item.raw)
    };
    let mut notes: Vec<_> = unusable.clone().map(cannot).collect();
    notes.extend(list.stopped().map(|stop| match stop {
        Stop::PageLimit => format!("there are more {name} than were asked for"),
        Stop::RepeatedCursor => format!("the pages of {name} go round in a circle"),
        Stop::UnusableCursor => {
            format!("there are more {name}, but the cursor to them is no string")
        }
        Stop::NotImplemented => format!("the server declares {name} and does not list them"),
        _ => format!("these may not be all the {name}"),
    }));
    Part {
        name,
        // What a server wrote as JSON is written as it came.
        json: serde_json::to_string(&list[..]).unwrap_or_default(),
        unusable: unusable.map(|item| item.raw.get().to_owned()).collect(),
        notes,
    }
}

fn listed(what: &str, words: Vec<String>, parts: Vec<Part>) -> Answer {
    let mut members: Vec<_> = parts
        .iter()
        .map(|part| (part.name, part.json.clone()))
        .collect();
    let unusable: Vec<_> = parts
        .iter()
        .flat_map(|part| part.unusable.clone())
        .collect();
    if !unusable.is_empty() {
        members.push(("unusable", format!("[{}]", unusable.join(","))));
    }
    let words = or(&words.join("\n"), &format!("no {what}"));
    Answer {
        notes: parts.into_iter().flat_map(|part| part.notes).collect(),
        ..well(object(&members), words)
    }
}

/// An object of members that are JSON already.
fn object(members: &[(impl Display, String)]) -> Box<RawValue> {
    let members = members
        .iter()
        .map(|(name, json)| format!("\"{name}\":{json}"));
    let members: Vec<_> = members.collect();
    RawValue::from_string(format!("{{{}}}", members.join(",")))
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn or(words: &str, instead: &str) -> String {
    if words.is_empty() { instead } else { words }.to_owned()
}

fn well(json: Box<RawValue>, words: String) -> Answer {
    Answer {
        json,
        words: clean(&words),
        notes: Vec::new(),
        is_well: true,
    }
}
