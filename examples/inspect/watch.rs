//! The server being inspected: how it is connected to, and what becomes of what it sends unasked.

use landline::{
    Arrays, Connection, Dialect, Framing, Incoming, OnCancel, Options, Request, RpcError,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::Job;
use crate::print::note;

/// How to connect for a job.
///
/// No notification is routed to the call it belongs to: all are shown as they come, whoever waits.
pub(crate) fn options(job: &Job) -> Options {
    let dialect = match job.framing {
        Framing::ContentLength => lsp(),
        _ => mcp(),
    };
    let options = Options::new()
        .framing(job.framing)
        .dialect(dialect)
        .queue_incoming()
        .on_stderr(|line| note(format_args!("stderr: {line}")));
    match job.timeout {
        Some(limit) => options.request_timeout(limit),
        None => options,
    }
}

/// The Model Context Protocol, revisions 2024-11-05 to 2025-11-25.
pub(crate) fn mcp() -> Dialect {
    Dialect::new()
        .cancel_calls("notifications/cancelled", "requestId")
        .cancelled_requests("notifications/cancelled", "requestId", OnCancel::NoReply)
        .answer_at_once("ping", json!({}))
        .arrays(Arrays::Unpack)
}

/// The Language Server Protocol, version 3.17.
fn lsp() -> Dialect {
    Dialect::new()
        .cancel_calls("$/cancelRequest", "id")
        .cancelled_requests("$/cancelRequest", "id", OnCancel::Reply { code: -32800 })
}

/// Shows on stderr what the server sends unasked, in the order in which it came, until the
/// connection ends. What the dialect answers at once does not come here.
///
/// From a loop of our own and not from a handler, which the library does not hold up a close for:
/// what came before the last answer is shown, however soon the end follows.
pub(crate) fn watch(server: &Connection) {
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

fn shown(params: Option<&RawValue>) -> String {
    params.map_or_else(String::new, |raw| format!(" {}", raw.get()))
}
