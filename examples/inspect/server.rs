//! A small MCP server to call: a loop over stdin, which ends with it, and a thread for each
//! `sleep`.
//!
//! It speaks the revisions that begin with `initialize`, and 2026-07-28, which has no handshake and
//! names its revision in each request. Some of its tools have a question for the client: in the
//! first ones a request of its own, in the last a result that asks, after which the client sends
//! the call again with the answer. It is no part of the library and uses none of it.

mod offers;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use offers::Question;

/// The hidden argument that makes this program the server.
pub(crate) const FLAG: &str = "--serve";

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const RESOURCE_NOT_FOUND: i64 = -32002;
const UNSUPPORTED_VERSION: i64 = -32022;
const MISSING_CAPABILITY: i64 = -32021;

pub(crate) fn serve() -> io::Result<()> {
    let mut server = Server::default();
    for line in io::stdin().lines() {
        let line = line?;
        match serde_json::from_str(&line) {
            Ok(message) => server.receive(&message)?,
            Err(_) => reply(&Value::Null, Err(refusal(PARSE_ERROR, "this is no JSON")))?,
        }
    }
    Ok(())
}

#[derive(Default)]
struct Server {
    /// What the client declared in `initialize`.
    declared: Value,
    /// The requests of our own that wait for an answer, by the text of their ids.
    asked: HashMap<String, Asked>,
    /// How many there were.
    count: u64,
    sleeps: Sleeps,
}

/// A call that waits for the client's answer, and what makes its result of it.
struct Asked {
    call: Value,
    finish: fn(&Value) -> Value,
}

impl Server {
    fn receive(&mut self, message: &Value) -> io::Result<()> {
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some("tools/call"), Some(id)) => self.call(id, params),
            (Some(method), Some(id)) => {
                if method == "initialize" {
                    self.declared = params["capabilities"].clone();
                }
                reply(id, answer(method, params))
            }
            (Some("notifications/cancelled"), None) => self.cancel(&params["requestId"]),
            // No other notification means anything here, and none is answered.
            (Some(_), None) => Ok(()),
            (None, id) => match id.and_then(|id| self.asked.remove(&id.to_string())) {
                Some(asked) => reply(&asked.call, Ok(answered(&asked, message))),
                // The answer to a question that was withdrawn meanwhile.
                None if is_response(message) => Ok(()),
                None => {
                    let refused = refusal(INVALID_REQUEST, "this is no request");
                    reply(&message["id"], Err(refused))
                }
            },
        }
    }

    fn call(&mut self, id: &Value, params: &Value) -> io::Result<()> {
        let question = offers::question(&params["name"]);
        match (is_modern(params), question) {
            (Err(refused), _) => reply(id, Err(refused)),
            (Ok(modern), None) if params["name"] == "sleep" => {
                match self.sleeps.start(id, params, modern) {
                    Ok(()) => Ok(()),
                    Err(refused) => reply(id, Err(refused)),
                }
            }
            (Ok(modern), None) => {
                let result = offers::call_tool(params);
                reply(id, result.map(|result| complete(result, modern)))
            }
            (Ok(true), Some(question)) => reply(id, ask_by_result(params, &question)),
            (Ok(false), Some(question)) => self.ask_by_request(id, &question),
        }
    }

    /// Asks as the legacy era does. The loop goes on meanwhile.
    fn ask_by_request(&mut self, call: &Value, question: &Question) -> io::Result<()> {
        if !self.declared[question.capability].is_object() {
            let words = format!("this client does not declare `{}`", question.capability);
            return reply(call, Ok(offers::failed(&words)));
        }
        self.count += 1;
        let id = json!(format!("question-{}", self.count));
        let asked = Asked {
            call: call.clone(),
            finish: question.finish,
        };
        self.asked.insert(id.to_string(), asked);
        let (method, params) = (question.method, &question.params);
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// Gives up a call, and the question that it has open. Neither is answered then.
    fn cancel(&mut self, call: &Value) -> io::Result<()> {
        self.sleeps.cancel(call);
        let open = self.asked.iter().find(|(_, asked)| asked.call == *call);
        let Some(id) = open.map(|(id, _)| id.clone()) else {
            return Ok(());
        };
        self.asked.remove(&id);
        // The text of an id is JSON; ours always parses.
        let id: Value = serde_json::from_str(&id)?;
        let params = json!({ "requestId": id });
        send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
    }
}

fn is_response(message: &Value) -> bool {
    message.get("result").or(message.get("error")).is_some()
}

/// The result of a tool whose question was answered, or refused.
fn answered(asked: &Asked, message: &Value) -> Value {
    match message.get("result") {
        Some(answer) => (asked.finish)(answer),
        None => offers::failed(&format!(
            "the question was refused: {}",
            message["error"]["message"]
        )),
    }
}

/// Asks as the modern era does: the result is the question, and the same call comes again with the
/// answer under the same key.
fn ask_by_result(params: &Value, question: &Question) -> Outcome {
    // Nothing is kept between the two: what this server needs to know comes back with the answer.
    let state = json!(format!("{} was asked", question.method));
    let declared = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    if let Some(answer) = params["inputResponses"].get(KEY) {
        if params["requestState"] != state {
            return Err(refusal(INVALID_PARAMS, "`requestState` is not what it was"));
        }
        return Ok(complete((question.finish)(answer), true));
    }
    if !declared[question.capability].is_object() {
        let mut refused = refusal(MISSING_CAPABILITY, "the client must declare a capability");
        refused["data"] = json!({"requiredCapabilities": {question.capability: {}}});
        return Err(refused);
    }
    let (method, asks) = (question.method, &question.params);
    let mut result = complete(
        json!({
            "inputRequests": {KEY: {"method": method, "params": asks}},
            "requestState": state,
        }),
        true,
    );
    result["resultType"] = json!("input_required");
    Ok(result)
}

/// Under which the question stands, and its answer.
const KEY: &str = "question";

/// A result, or the error object.
type Outcome = Result<Value, Value>;

fn answer(method: &str, params: &Value) -> Outcome {
    let modern = is_modern(params)?;
    let result = match method {
        "initialize" if !modern => json!({
            "protocolVersion": agreed(&params["protocolVersion"]),
            "capabilities": capabilities(),
            "serverInfo": me(),
            "instructions": INSTRUCTIONS,
        }),
        "ping" if !modern => json!({}),
        "server/discover" => json!({
            "supportedVersions": [MODERN],
            "capabilities": capabilities(),
            "instructions": INSTRUCTIONS,
        }),
        "tools/list" => json!({"tools": offers::tools()}),
        "resources/list" => json!({"resources": offers::resources()}),
        "resources/templates/list" => json!({"resourceTemplates": offers::resource_templates()}),
        "resources/read" => read(params, modern)?,
        "prompts/list" => json!({"prompts": offers::prompts()}),
        "prompts/get" => offers::prompt(params)?,
        _ => return Err(refusal(METHOD_NOT_FOUND, "method not found")),
    };
    let modern = modern || method == "server/discover";
    let mut result = complete(result, modern);
    if modern && method != "prompts/get" {
        result["ttlMs"] = json!(3_600_000);
        result["cacheScope"] = json!("public");
    }
    Ok(result)
}

fn read(params: &Value, modern: bool) -> Outcome {
    let uri = &params["uri"];
    let Some(uri) = uri.as_str() else {
        return Err(refusal(INVALID_PARAMS, "`uri` is a string"));
    };
    offers::read(uri).ok_or_else(|| {
        let code = if modern {
            INVALID_PARAMS
        } else {
            RESOURCE_NOT_FOUND
        };
        let mut refused = refusal(code, "resource not found");
        refused["data"] = json!({ "uri": uri });
        refused
    })
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

fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}})
}

const INSTRUCTIONS: &str = "A server to try a client on.";

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
    fn start(&mut self, id: &Value, params: &Value, modern: bool) -> Result<(), Value> {
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
            reply(&id, Ok(complete(offers::content("slept well"), modern)))
        });
        Ok(())
    }

    fn cancel(&mut self, id: &Value) {
        self.0.remove(&id.to_string());
    }
}

/// How often progress is told.
const NAP: Duration = Duration::from_millis(250);
