//! Output: answers to stdout, digit for digit as the peer wrote them, and notes to stderr.
//!
//! A result stays a [`RawValue`] from the pipe to the terminal: read as numbers, `1.00` and
//! integers beyond 64 bits would come out changed. So the lines around it are written by hand.

use std::fmt;
use std::io::{self, Write};

use landline::{Delivery, Ended, Error, Exit, SpawnError, Step};
use serde_json::json;
use serde_json::value::RawValue;

/// What a step came to, as a line that a program can read. `bool` in this file: whether all was
/// well.
pub(crate) enum Line {
    Ok(Option<Box<RawValue>>),
    Failed(Error),
    /// A failure that no call of ours is behind, and so none was sent: its kind, and the words.
    Refused(&'static str, String),
    Closed(Ended),
}

impl Line {
    pub(crate) fn print(&self) -> io::Result<bool> {
        let mut out = io::stdout().lock();
        writeln!(out, "{self}")?;
        out.flush()?;
        Ok(matches!(self, Line::Ok(_) | Line::Closed(_)))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Ok(result) => {
                let result = result.as_deref().map_or("null".into(), on_one_line);
                write!(f, r#"{{"ok":{result}}}"#)
            }
            Line::Failed(error) => {
                let (rpc, delivery) = (error.rpc(), delivery(error));
                let message = rpc.map_or_else(|| error.to_string(), |rpc| rpc.message.clone());
                write_error(f, kind(error), &message, delivery)?;
                if let Some(rpc) = rpc {
                    write!(f, r#","code":{}"#, rpc.code)?;
                    if let Some(data) = &rpc.data {
                        write!(f, r#","data":{}"#, on_one_line(data))?;
                    }
                }
                f.write_str("}}")
            }
            Line::Refused(kind, message) => {
                write_error(f, kind, message, "not_sent")?;
                f.write_str("}}")
            }
            Line::Closed(ended) => {
                let status = match ended.exit {
                    Some(Exit::Code(code)) => json!({ "code": code }),
                    Some(Exit::Signal(signal)) => json!({ "signal": signal }),
                    _ => json!(null),
                };
                let step = match ended.step {
                    Step::AlreadyEnded => "already_ended",
                    Step::StdinClosed => "stdin_closed",
                    Step::Terminated => "sigterm",
                    Step::Killed => "sigkill",
                    _ => "unknown",
                };
                write!(f, r#"{{"closed":{{"status":{status},"step":"{step}"}}}}"#)
            }
        }
    }
}

/// The beginning of an error line; what is known of its code and data follows.
fn write_error(
    f: &mut fmt::Formatter<'_>,
    kind: &str,
    message: &str,
    delivery: &str,
) -> fmt::Result {
    let message = json!(message);
    write!(
        f,
        r#"{{"error":{{"kind":"{kind}","message":{message},"delivery":"{delivery}""#
    )
}

fn kind(error: &Error) -> &'static str {
    match error {
        Error::Rpc { .. } => "rpc",
        Error::Timeout { .. } => "timeout",
        Error::Cancelled { .. } => "cancelled",
        Error::Closed { .. } => "closed",
        Error::Answer { .. } => "answer",
        Error::Encode { .. } => "encode",
        _ => "other",
    }
}

fn delivery(error: &Error) -> &'static str {
    match error.delivery() {
        Delivery::NotSent => "not_sent",
        Delivery::Answered => "answered",
        // What is not known may have run.
        _ => "maybe_run",
    }
}

/// Prints the answer of a single request: one JSON document for a program, or laid out for a
/// person.
pub(crate) fn answer(answer: landline::Result<Box<RawValue>>, json: bool) -> io::Result<bool> {
    match answer {
        Ok(result) if json => Line::Ok(Some(result)).print(),
        Err(error) if json => Line::Failed(error).print(),
        Ok(result) => {
            writeln!(io::stdout(), "{}", laid_out(result.get()))?;
            Ok(true)
        }
        Err(error) => {
            note(format_args!("{error}"));
            if let Some(data) = error.rpc().and_then(|rpc| rpc.data.as_ref()) {
                note(format_args!("{}", laid_out(data.get())));
            }
            Ok(false)
        }
    }
}

/// Tells that the server did not start, and why.
pub(crate) fn not_started(error: &SpawnError, json: bool) -> io::Result<bool> {
    let mut words = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        words.push_str(&format!(": {source}"));
    }
    if json {
        return Line::Refused("spawn", words).print();
    }
    note(format_args!("{words}"));
    Ok(false)
}

/// Writes to stderr, which may be closed: there is nobody to tell that, and no reason to stop.
pub(crate) fn note(words: fmt::Arguments<'_>) {
    // In one write, because notes come from several threads and the server may share our stderr.
    let _ = io::stderr().write_all(format!("{words}\n").as_bytes());
}

/// JSON has no line ends but between its tokens, where they mean nothing.
fn on_one_line(json: &RawValue) -> String {
    json.get().replace(['\n', '\r'], "")
}

/// Lays valid JSON out over lines. Only the white space between its tokens changes.
fn laid_out(json: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    let mut chars = json
        .chars()
        .filter(|c| !matches!(c, '\n' | '\r'))
        .peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
                match chars.next_if(|c| matches!(c, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth -= 1;
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
}
