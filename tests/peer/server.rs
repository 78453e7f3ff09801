//! A server that speaks JSON-RPC over lines and does what its calls say.
//!
//! Each method is a way to behave, so that a test reads from top to bottom what its child does and
//! when.

use std::env;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, exit};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::c;

type Method = fn(&mut Server, &Value);

const METHODS: &[(&str, Method)] = &[
    ("echo", |server, call| {
        server.answer(call, call["params"].clone())
    }),
    ("initialize", initialize),
    ("who", who),
    ("hold", |server, call| server.held.push(call["id"].clone())),
    ("exit", exit_now),
    ("flood", flood),
    ("lines", lines),
    ("beget", beget),
    ("stop_reading", stop_reading),
    ("close_input", close_input),
    ("close_output", close_output),
    ("ask", ask),
    ("tell", tell),
];

pub(crate) struct Server {
    /// The ids of calls that are not to be answered for now.
    held: Vec<Value>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Server { held: Vec::new() }
    }

    /// Serves until its input ends.
    pub(crate) fn serve(&mut self) {
        while let Some(message) = receive() {
            self.take(&message);
        }
    }

    /// Does what a message says; one without a method that is known here is passed over.
    fn take(&mut self, message: &Value) {
        let method = METHODS.iter().find(|(name, _)| message["method"] == *name);
        if let Some((_, method)) = method {
            method(self, message);
        }
    }

    fn answer(&mut self, call: &Value, result: Value) {
        send(&json!({"jsonrpc": "2.0", "id": call["id"], "result": result}));
    }

    /// Answers so many of the calls held, the oldest first.
    fn release(&mut self, count: usize) {
        for id in self.held.drain(..count.min(self.held.len())) {
            send(&json!({"jsonrpc": "2.0", "id": id, "result": "late"}));
        }
    }
}

/// Agrees, as an MCP server does that declares nothing.
fn initialize(server: &mut Server, call: &Value) {
    let agreed = json!({
        "protocolVersion": call["params"]["protocolVersion"],
        "capabilities": {},
        "serverInfo": {"name": "peer", "version": "1"},
    });
    server.answer(call, agreed);
}

/// Tells about the process: text as bytes, since it need not be UTF-8.
fn who(server: &mut Server, call: &Value) {
    let args: Vec<_> = env::args_os()
        .skip(1)
        .map(|arg| arg.as_bytes().to_vec())
        .collect();
    let vars: Vec<_> = env::vars_os()
        .map(|(key, value)| [key.as_bytes().to_vec(), value.as_bytes().to_vec()])
        .collect();
    let who = json!({
        "pid": std::process::id(),
        "group": c::process_group(),
        "user": c::user(),
        "mask": c::file_mask(),
        "dir": env::current_dir().unwrap(),
        "args": args,
        "env": vars,
    });
    server.answer(call, who);
}

/// `release`: answers so many calls held. `stderr`: says that. Then dies of `signal` or exits with
/// `code`.
fn exit_now(server: &mut Server, call: &Value) {
    let params = &call["params"];
    server.release(count(&params["release"]));
    if let Some(words) = params["stderr"].as_str() {
        say(words);
    }
    if let Some(signal) = params["signal"].as_i64() {
        c::kill_self(i32::try_from(signal).unwrap());
    }
    exit(code(&params["code"]));
}

/// Writes that many `lines` of 64 bytes to stderr before it answers.
fn flood(server: &mut Server, call: &Value) {
    let line = format!("{}\n", "x".repeat(63));
    let lines = line.repeat(count(&call["params"]["lines"]));
    io::stderr().write_all(lines.as_bytes()).unwrap();
    server.answer(call, Value::Null);
}

/// Writes `count` numbered lines to stderr before it answers.
fn lines(server: &mut Server, call: &Value) {
    let lines: String = (1..=count(&call["params"]["count"]))
        .map(|n| format!("line {n}\n"))
        .collect();
    io::stderr().write_all(lines.as_bytes()).unwrap();
    server.answer(call, Value::Null);
}

/// Starts a child of its own that keeps all pipes open and ignores SIGTERM, in a `session` of its
/// own if that is true, and answers with its pid.
#[expect(
    clippy::zombie_processes,
    reason = "it is to outlive this process or be killed with it"
)]
fn beget(server: &mut Server, call: &Value) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg("linger");
    c::detach(&mut command, call["params"]["session"] == true);
    let child = command.spawn().unwrap();
    server.answer(call, json!(child.id()));
}

/// Answers, and never reads again.
fn stop_reading(server: &mut Server, call: &Value) {
    server.answer(call, Value::Null);
    linger();
}

/// Closes its stdin and answers; when there is a file named `until`, answers what it holds; then
/// exits with `code` if there is one, and lives on otherwise.
fn close_input(server: &mut Server, call: &Value) {
    let params = &call["params"];
    c::close_fd(0);
    server.answer(call, Value::Null);
    wait_for_file(Path::new(params["until"].as_str().unwrap()));
    server.release(usize::MAX);
    if params["code"].is_i64() {
        exit(code(&params["code"]));
    }
    linger();
}

/// Says `stderr`, closes its stdout, then says `late` and exits with `code` if there is one, and
/// otherwise serves a client that it can no longer tell anything.
fn close_output(server: &mut Server, call: &Value) {
    let params = &call["params"];
    if let Some(words) = params["stderr"].as_str() {
        say(words);
    }
    c::close_fd(1);
    if params["code"].is_i64() {
        // Long enough for a client that does not wait for the last words.
        thread::sleep(Duration::from_millis(100));
        say(params["late"].as_str().unwrap_or_default());
        exit(code(&params["code"]));
    }
    server.serve();
}

/// Sends the client a request for `method` and serves on until its reply, with which it answers.
fn ask(server: &mut Server, call: &Value) {
    let params = &call["params"];
    send(
        &json!({"jsonrpc": "2.0", "id": "asked", "method": params["method"], "params": params["params"]}),
    );
    while let Some(message) = receive() {
        if message["id"] == "asked" && message["method"].is_null() {
            return server.answer(call, message);
        }
        server.take(&message);
    }
}

/// Sends the client a notification `method` before it answers.
fn tell(server: &mut Server, call: &Value) {
    send(&json!({"jsonrpc": "2.0", "method": call["params"]["method"]}));
    server.answer(call, Value::Null);
}

/// The next message from stdin; `None` at its end.
pub(crate) fn receive() -> Option<Value> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).unwrap();
    (read > 0).then(|| serde_json::from_str(&line).unwrap())
}

/// Writes a message. The client may be gone, which is its own affair.
pub(crate) fn send(message: &Value) {
    let mut out = io::stdout().lock();
    let _ = out
        .write_all(format!("{message}\n").as_bytes())
        .and_then(|()| out.flush());
}

/// Says something on stderr, where there may be nobody to hear it.
pub(crate) fn say(words: &str) {
    let _ = writeln!(io::stderr(), "{words}");
}

/// Lives on and does nothing, and ends by itself some time after a test that has forgotten it.
pub(crate) fn linger() {
    thread::sleep(Duration::from_secs(300));
}

pub(crate) fn wait_for_file(path: &Path) {
    while !path.exists() {
        thread::sleep(Duration::from_millis(2));
    }
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap_or_default()).unwrap()
}

fn code(value: &Value) -> i32 {
    i32::try_from(value.as_i64().unwrap_or_default()).unwrap()
}
