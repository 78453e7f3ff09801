//! Scripted MCP servers over in-memory pairs.
#![allow(unreachable_pub, reason = "whatever the other files need")]

use std::io::{BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use landline::mcp::{Client, ConnectError, Options};
use serde_json::{Value, json};

use crate::support::{HANG, Script};

/// Connects while `greet` plays the server; gives both when both are done.
pub fn connect(
    options: &Options,
    greet: impl FnOnce(&mut Script) + Send,
) -> (Result<Client, ConnectError>, Script) {
    let (ours_out, peer_in) = UnixStream::pair().unwrap();
    let (peer_out, ours_in) = UnixStream::pair().unwrap();
    peer_in.set_read_timeout(Some(HANG)).unwrap();
    peer_out.set_write_timeout(Some(HANG)).unwrap();
    let mut script = Script {
        input: BufReader::new(peer_in),
        output: peer_out,
    };
    let client = thread::scope(|scope| {
        let greeting = scope.spawn(|| greet(&mut script));
        let client = options.connect(ours_in, ours_out);
        greeting.join().unwrap();
        client
    });
    (client, script)
}

/// Connects to a legacy server that does not know the probe and agrees on this version.
pub fn legacy(options: &Options, version: &str, capabilities: Value) -> (Client, Script) {
    let (client, script) = connect(options, |script| {
        greet_legacy(script, version, capabilities)
    });
    (client.unwrap(), script)
}

/// Connects to a modern server.
pub fn modern(options: &Options, capabilities: Value) -> (Client, Script) {
    let (client, script) = connect(options, |script| {
        let probe = script.recv();
        assert_eq!(probe["method"], "server/discover");
        script.answer(&probe, presentation(capabilities));
    });
    (client.unwrap(), script)
}

/// Plays the greeting of a legacy server, after a probe if there is one.
pub fn greet_legacy(script: &mut Script, version: &str, capabilities: Value) {
    let mut first = script.recv();
    if first["method"] == "server/discover" {
        refuse(script, &first, -32601);
        first = script.recv();
    }
    assert_eq!(first["method"], "initialize");
    script.answer(
        &first,
        json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": {"name": "script", "version": "1"},
        }),
    );
    assert_eq!(script.recv()["method"], "notifications/initialized");
}

/// What a modern server says of itself.
pub fn presentation(capabilities: Value) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "script", "version": "1"}},
    })
}

/// Refuses a request.
pub fn refuse(script: &mut Script, request: &Value, code: i64) {
    let error = json!({"code": code, "message": "refused"});
    script.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
}

/// Receives the probe.
pub fn probed(script: &mut Script) -> Value {
    let probe = script.recv();
    assert_eq!(probe["method"], "server/discover");
    probe
}

/// Plays a server that ends with its input; gives what it was told until then.
pub fn see_off(script: &mut Script) -> String {
    let mut rest = String::new();
    script.input.read_to_string(&mut rest).unwrap();
    script.output.shutdown(Shutdown::Both).unwrap();
    rest
}

/// Connects to a server that is not to become one: gives the error.
pub fn refusal(options: &Options, greet: impl FnOnce(&mut Script) + Send) -> ConnectError {
    let (client, script) = connect(options, |script| {
        greet(script);
        assert_eq!(see_off(script), "", "nothing is said to a server given up");
    });
    drop(script);
    client.unwrap_err()
}

/// Makes a call on a thread of its own while `play` plays the server; gives what the call gave.
pub fn during<T: Send>(call: impl FnOnce() -> T + Send, play: impl FnOnce()) -> T {
    thread::scope(|scope| {
        let calling = scope.spawn(call);
        play();
        calling.join().unwrap()
    })
}

/// Answers a modern request with what it needs first.
pub fn ask_back(script: &mut Script, request: &Value, needs: Value) {
    let mut result = needs;
    result["resultType"] = "input_required".into();
    script.answer(request, result);
}

/// A form to fill in, as it stands among the `inputRequests` of a result, or with an envelope
/// around it.
pub fn form(message: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "message": message,
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    })
}

/// A question for the client's model, in the same way.
pub fn sampling(text: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    json!({
        "method": "sampling/createMessage",
        "params": {"messages": [message], "maxTokens": 10},
    })
}

/// Sends a request of the server's: a method, and params if there are any.
pub fn ask(script: &mut Script, id: impl Into<Value>, question: &Value) {
    let mut request = json!({"jsonrpc": "2.0", "id": id.into(), "method": question["method"]});
    if let Some(params) = question.get("params") {
        request["params"] = params.clone();
    }
    script.send(request);
}

/// A call with all that was written before it, and after what was read before it: a fence for
/// everything that the connection does by itself.
pub fn fence(client: &Client, script: &mut Script) -> Vec<Value> {
    script.fence(client.connection())
}

/// Sends one request of the server's and gives the answer.
pub fn answer(script: &mut Script, question: &Value) -> Value {
    ask(script, "q", question);
    let answer = script.recv();
    assert_eq!(answer["id"], "q", "{answer}");
    answer
}

/// Connects to a server of this revision and has it ask this.
pub fn answer_in(options: &Options, revision: &str, question: &Value) -> Value {
    let (client, mut script) = legacy(options, revision, json!({}));
    let answer = answer(&mut script, question);
    let more = fence(&client, &mut script);
    assert_eq!(more, Vec::<Value>::new(), "one answer, and no more");
    // First the server's side, or the client's drop would wait for it.
    drop(script);
    answer
}

/// The code of a refusal.
pub fn code(answer: &Value) -> i64 {
    assert_eq!(answer.get("result"), None, "{answer}");
    answer["error"]["code"].as_i64().unwrap()
}

/// A question with these members added to its params.
pub fn with(mut question: Value, members: Value) -> Value {
    let params = question["params"].as_object_mut().unwrap();
    params.extend(members.as_object().unwrap().clone());
    question
}

/// The revisions of the legacy era.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
