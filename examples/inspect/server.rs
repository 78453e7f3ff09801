//! A small MCP server to call: a loop over stdin, which ends with it, and a thread for each
//! `sleep`.
//!
//! It speaks the revisions that begin with `initialize`, and 2026-07-28, which has no handshake and
//! names its revision in each request. It is no part of the library and uses none of it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The hidden argument that makes this program the server.
pub(crate) const FLAG: &str = "--serve";

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const UNSUPPORTED_VERSION: i64 = -32022;

pub(crate) fn serve() -> io::Result<()> {
    let mut sleeps = Sleeps::default();
    for line in io::stdin().lines() {
        let line = line?;
        match serde_json::from_str(&line) {
            Ok(message) => receive(&message, &mut sleeps)?,
            Err(_) => reply(&Value::Null, Err(refusal(PARSE_ERROR, "this is no JSON")))?,
        }
    }
    Ok(())
}

fn receive(message: &Value, sleeps: &mut Sleeps) -> io::Result<()> {
    let params = &message["params"];
    match (message["method"].as_str(), message.get("id")) {
        (Some("tools/call"), Some(id)) if params["name"] == "sleep" => {
            match sleeps.start(id, params) {
                Ok(()) => Ok(()),
                Err(refused) => reply(id, Err(refused)),
            }
        }
        (Some(method), Some(id)) => reply(id, answer(method, params)),
        (Some("notifications/cancelled"), None) => {
            sleeps.cancel(&params["requestId"]);
            Ok(())
        }
        // No other notification means anything here, and none is answered.
        (Some(_), None) => Ok(()),
        (None, _) => reply(
            &message["id"],
            Err(refusal(INVALID_REQUEST, "this is no request")),
        ),
    }
}

/// A result, or the error object.
type Outcome = Result<Value, Value>;

fn answer(method: &str, params: &Value) -> Outcome {
    let modern = is_modern(params)?;
    let result = match method {
        "initialize" if !modern => json!({
            "protocolVersion": agreed(&params["protocolVersion"]),
            "capabilities": {"tools": {}},
            "serverInfo": me(),
        }),
        "ping" if !modern => json!({}),
        "server/discover" => json!({
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {}},
            "ttlMs": 3_600_000,
            "cacheScope": "public",
        }),
        "tools/list" if modern => {
            json!({"tools": tools(), "ttlMs": 3_600_000, "cacheScope": "public"})
        }
        "tools/list" => json!({"tools": tools()}),
        "tools/call" => call_tool(params)?,
        _ => return Err(refusal(METHOD_NOT_FOUND, "method not found")),
    };
    Ok(complete(result, modern || method == "server/discover"))
}

/// The revision that was asked for, or the newest that has an `initialize`.
fn agreed(asked: &Value) -> &'static str {
    let known = LEGACY.into_iter().find(|known| asked == known);
    known.unwrap_or(LEGACY[LEGACY.len() - 1])
}

/// Whether a request is of the revision that names itself in every request.
fn is_modern(params: &Value) -> Result<bool, Value> {
    match &params["_meta"]["io.modelcontextprotocol/protocolVersion"] {
        Value::Null => Ok(false),
        version if version == MODERN => Ok(true),
        version => {
            let mut refused = refusal(UNSUPPORTED_VERSION, "unsupported protocol version");
            refused["data"] = json!({"supported": [MODERN], "requested": version});
            Err(refused)
        }
    }
}

/// Adds what a result has in the modern revision.
fn complete(mut result: Value, modern: bool) -> Value {
    if modern {
        result["resultType"] = json!("complete");
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": me()});
    }
    result
}

fn me() -> Value {
    json!({"name": "landline-inspect", "version": env!("CARGO_PKG_VERSION")})
}

fn tools() -> Value {
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
    ])
}

fn call_tool(params: &Value) -> Outcome {
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
        Some("fail") => {
            let mut result = content("this tool always fails");
            result["isError"] = json!(true);
            Ok(result)
        }
        Some(other) => Err(refusal(
            INVALID_PARAMS,
            &format!("there is no tool {other}"),
        )),
        None => Err(refusal(INVALID_PARAMS, "`name` is a string")),
    }
}

fn content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn refusal(code: i64, message: &str) -> Value {
    json!({"code": code, "message": message})
}

fn reply(id: &Value, outcome: Outcome) -> io::Result<()> {
    send(&match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    })
}

/// Writes a message on a line, in one piece: sleeping threads write too.
fn send(message: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{message}\n").as_bytes())?;
    out.flush()
}

/// The calls of `sleep` by the text of their ids. What is kept of each is dropped to wake it up;
/// what is kept of one that has answered does no harm, because an id is used once.
#[derive(Default)]
struct Sleeps(HashMap<String, Sender<Infallible>>);

impl Sleeps {
    fn start(&mut self, id: &Value, params: &Value) -> Result<(), Value> {
        let modern = is_modern(params)?;
        let seconds = params["arguments"]["seconds"].as_f64();
        let Some(time) = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        else {
            return Err(refusal(
                INVALID_PARAMS,
                "`seconds` is a number, and not below zero",
            ));
        };
        let (keep, cancelled) = mpsc::channel();
        self.0.insert(id.to_string(), keep);

        let (id, token) = (id.clone(), params["_meta"]["progressToken"].clone());
        thread::spawn(move || {
            let naps =
                u32::try_from(time.as_millis().div_ceil(NAP.as_millis())).unwrap_or(u32::MAX);
            for nap in 1..=naps {
                if cancelled.recv_timeout(time / naps) != Err(RecvTimeoutError::Timeout) {
                    // A cancelled request is not answered.
                    return Ok(());
                }
                if !token.is_null() {
                    let progress = json!({"progressToken": token, "progress": nap, "total": naps});
                    send(&json!({
                        "jsonrpc": "2.0",
                        "method": "notifications/progress",
                        "params": progress,
                    }))?;
                }
            }
            reply(&id, Ok(complete(content("slept well"), modern)))
        });
        Ok(())
    }

    fn cancel(&mut self, id: &Value) {
        self.0.remove(&id.to_string());
    }
}

/// How often progress is told.
const NAP: Duration = Duration::from_millis(250);
