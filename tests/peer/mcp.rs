//! A small legacy MCP server that meets the probe, `server/discover`, in one of the ways of the
//! field.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::exit;

use serde_json::{Value, json};

use crate::server::{receive, say, send};

/// FILE WAY...: serves, and notes in the file each start as a line `start` and each message as it
/// came. The ways stand below.
pub(crate) fn serve(args: &[OsString]) {
    let file = Path::new(&args[0]);
    let starts = starts(file);
    note(file, "start");
    let is = |way: &str| args[1..].iter().any(|arg| arg == way);
    if is(SECOND_START_FAILS) && starts > 0 {
        say("no second start");
        exit(9);
    }
    if is(PRINTS_A_BANNER) {
        print("\nWelcome to the server!\r\n\r\n");
    }
    let mut probed = false;
    while let Some(message) = receive() {
        note(file, &message.to_string());
        let probe = message["method"] == "server/discover";
        if (probe && is(EXITS_ON_THE_PROBE)) || (probed && is(EXITS_AFTER_THE_PROBE)) {
            say("expected `initialize`");
            exit(3);
        }
        if is(FLOODS_STDERR) {
            let lines = format!("{}\n", "x".repeat(63)).repeat(1 << 14);
            io::stderr().write_all(lines.as_bytes()).unwrap();
        }
        probed |= probe;
        if probe && is(EXITS_AFTER_THE_PROBE) {
            continue;
        }
        answer(&message);
        if probe && is(ANSWERS_THE_PROBE_AND_EXITS) {
            say("expected `initialize`");
            exit(4);
        }
    }
}

const EXITS_ON_THE_PROBE: &str = "exits_on_the_probe";
const EXITS_AFTER_THE_PROBE: &str = "exits_after_the_probe";
const ANSWERS_THE_PROBE_AND_EXITS: &str = "answers_the_probe_and_exits";
const SECOND_START_FAILS: &str = "second_start_fails";
const PRINTS_A_BANNER: &str = "prints_a_banner";
const FLOODS_STDERR: &str = "floods_stderr";

fn answer(message: &Value) {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}),
        // A notification is not answered.
        _ if message["id"].is_null() => return,
        _ => {
            let error = json!({"code": -32600, "message": "expected `initialize`"});
            return send(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
    };
    send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
}

fn starts(file: &Path) -> usize {
    let notes = fs::read_to_string(file).unwrap_or_default();
    notes.lines().filter(|line| *line == "start").count()
}

fn note(file: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(file);
    file.unwrap()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

fn print(words: &str) {
    let mut out = io::stdout().lock();
    out.write_all(words.as_bytes()).unwrap();
    out.flush().unwrap();
}
