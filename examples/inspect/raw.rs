//! The actions of raw JSON-RPC: how the server is connected to, what it is asked, and what becomes
//! of what it sends unasked.

use std::io;
use std::thread;

use landline::{
    Arrays, Connection, Dialect, Framing, Incoming, OnCancel, Options, Request, RpcError,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::{Job, Raw};
use crate::print::{self, Failure};
use crate::screen::note;
use crate::{script, show};

/// Does what a job asks for; `true` says that all was well.
pub(crate) fn inspect(job: &Job, framing: Framing, action: &Raw) -> io::Result<bool> {
    let server = match options(job, framing).spawn(&job.spec) {
        Ok(server) => server,
        Err(error) => return print::answer(Err(error.into()), job.wants_json()),
    };
    thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&server));
        let all_well = match action {
            Raw::Request { method, params } => {
                let answer = server.request(method, params.as_deref());
                print::answer(answer.map(show::raw).map_err(Failure::from), job.json)
            }
            Raw::Script(steps) => script::run(&server, steps),
        };
        // Ends the watching too, once it has shown what came. It has nothing to give, panics
        // included.
        server.close();
        let _ = watching.join();
        let survived = server.survived();
        if !survived.is_empty() {
            note(format_args!("survived: {survived}"));
        }
        all_well
    })
}

/// How to connect for a job.
///
/// No notification is routed to the call it belongs to: all are shown as they come, whoever waits.
fn options(job: &Job, framing: Framing) -> Options {
    let dialect = match framing {
        Framing::ContentLength => lsp(),
        _ => mcp(),
    };
    let options = Options::new()
        .framing(framing)
        .dialect(dialect)
        .queue_incoming()
        .on_stderr(|line| note(format_args!("stderr: {line}")));
    match job.timeout {
        Some(limit) => options.request_timeout(limit),
        None => options,
    }
}

/// The Model Context Protocol, revisions 2024-11-05 to 2025-11-25.
fn mcp() -> Dialect {
    Dialect::new()
        .cancel_calls("notifications/cancelled", "requestId")
        .cancelled_requests("notifications/cancelled", "requestId", OnCancel::NoReply)
        .arrays(Arrays::Unpack)
}

/// The Language Server Protocol, version 3.17.
fn lsp() -> Dialect {
    Dialect::new()
        .cancel_calls("$/cancelRequest", "id")
        .cancelled_requests("$/cancelRequest", "id", OnCancel::Reply { code: -32800 })
}

/// Shows on stderr what the server sends unasked, in the order in which it came, until the
/// connection ends.
///
/// From a loop of our own and not from a handler, which the library does not hold up a close for:
/// what came before the last answer is shown, however soon the end follows.
fn watch(server: &Connection) {
    loop {
        match server.next_incoming() {
            Incoming::Notification(notification) => {
                let params = shown(notification.params());
                note(format_args!(
                    "notification: {}{params}",
                    notification.method()
                ));
            }
            Incoming::Request(request, responder) => {
                let params = shown(request.params());
                note(format_args!(
                    "request {}: {}{params}",
                    request.id(),
                    request.method()
                ));
                responder.answer(answer(&request));
            }
            Incoming::Lost(lost) => {
                note(format_args!(
                    "{lost} notifications were lost: they came faster than they were shown"
                ));
            }
            Incoming::Closed(_) => return,
            _ => {}
        }
    }
}

/// Answers what keeps a server going.
fn answer(request: &Request) -> Result<Value, RpcError> {
    match request.method() {
        "ping" => Ok(json!({})),
        // One setting for each that is asked for: none has a value.
        "workspace/configuration" => {
            let asked: Value = request.decode()?;
            let items = asked["items"].as_array().map_or(0, Vec::len);
            Ok(vec![Value::Null; items].into())
        }
        "client/registerCapability"
        | "client/unregisterCapability"
        | "window/workDoneProgress/create"
        | "window/showMessageRequest" => Ok(Value::Null),
        other => Err(RpcError::method_not_found(other)),
    }
}

/// Params as they stand after the name of their method, if there are any.
pub(crate) fn shown(params: Option<&RawValue>) -> String {
    params.map_or_else(String::new, |raw| format!(" {}", raw.get()))
}
