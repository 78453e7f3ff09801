//! Output: answers to stdout, for a program digit for digit as the peer wrote them.
//!
//! A result stays a [`RawValue`] from the pipe to the terminal: read as numbers, `1.00` and
//! integers beyond 64 bits would come out changed. So the lines around it are written by hand.

use std::error::Error as _;
use std::fmt;
use std::io::{self, Write};

use landline::mcp::{self, ConnectError};
use landline::{Delivery, Ended, Error, Exit, RpcError, SpawnError, Step};
use serde_json::json;
use serde_json::value::RawValue;

use crate::screen::note;

/// What a step came to, as a line that a program can read. `bool` in this file: whether all was
/// well.
pub(crate) enum Line {
    Ok(Option<Box<RawValue>>),
    Failed(Failure),
    Closed(Ended),
}

/// Why there is no answer.
pub(crate) struct Failure {
    kind: &'static str,
    words: String,
    delivery: Delivery,
    rpc: Option<RpcError>,
}

/// A result, in the form for each of its readers.
pub(crate) struct Answer {
    pub(crate) json: Box<RawValue>,
    pub(crate) words: String,
    /// What is wrong with it all the same.
    pub(crate) notes: Vec<String>,
    /// Whether it is one of success.
    pub(crate) is_well: bool,
}

impl Line {
    pub(crate) fn print(&self) -> io::Result<bool> {
        let mut out = io::stdout().lock();
        writeln!(out, "{self}")?;
        out.flush()?;
        Ok(!matches!(self, Line::Failed(_)))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Ok(result) => {
                let result = result.as_deref().map_or("null".into(), on_one_line);
                write!(f, r#"{{"ok":{result}}}"#)
            }
            Line::Failed(failure) => {
                let Failure { kind, rpc, .. } = failure;
                let message = match rpc {
                    // The words of the server itself; the code is beside them.
                    Some(rpc) if *kind == "rpc" => &rpc.message,
                    _ => &failure.words,
                };
                let delivery = match failure.delivery {
                    Delivery::NotSent => "not_sent",
                    Delivery::Answered => "answered",
                    // What is not known may have run.
                    _ => "maybe_run",
                };
                let message = json!(message);
                write!(
                    f,
                    r#"{{"error":{{"kind":"{kind}","message":{message},"delivery":"{delivery}""#
                )?;
                if let Some(rpc) = rpc {
                    write!(f, r#","code":{}"#, rpc.code)?;
                    if let Some(data) = &rpc.data {
                        write!(f, r#","data":{}"#, on_one_line(data))?;
                    }
                }
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

impl Failure {
    /// A failure that no call of ours is behind, and so none was sent.
    pub(crate) fn unsent(kind: &'static str, words: String) -> Self {
        Failure {
            kind,
            words,
            delivery: Delivery::NotSent,
            rpc: None,
        }
    }

    fn print(self, json: bool) -> io::Result<bool> {
        if json {
            return Line::Failed(self).print();
        }
        note(format_args!("{}", self.words));
        if let Some(data) = self.rpc.and_then(|rpc| rpc.data) {
            note(format_args!("{}", laid_out(data.get())));
        }
        Ok(false)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Rpc { .. } => "rpc",
            Error::Timeout { .. } => "timeout",
            Error::Cancelled { .. } => "cancelled",
            Error::Closed { .. } => "closed",
            Error::Answer { .. } => "answer",
            Error::Encode { .. } => "encode",
            _ => "other",
        };
        Failure {
            kind,
            words: error.to_string(),
            delivery: error.delivery(),
            rpc: error.rpc().cloned(),
        }
    }
}

impl From<mcp::Error> for Failure {
    fn from(error: mcp::Error) -> Self {
        let kind = match error {
            mcp::Error::Call(error) => return error.into(),
            mcp::Error::NotSupported { .. } => "not_supported",
            mcp::Error::NotInRevision { .. } => "not_in_revision",
            mcp::Error::Invalid { .. } => "invalid",
            mcp::Error::Refused { .. } => "refused",
            mcp::Error::TooManyRounds { .. } => "too_many_rounds",
            mcp::Error::OutOfTime { .. } => "timeout",
            mcp::Error::NoCommonVersion { .. } => "no_common_version",
            _ => "other",
        };
        Failure {
            kind,
            words: error.to_string(),
            delivery: error.delivery(),
            rpc: None,
        }
    }
}

impl From<SpawnError> for Failure {
    fn from(error: SpawnError) -> Self {
        let mut words = error.to_string();
        if let Some(source) = error.source() {
            words.push_str(&format!(": {source}"));
        }
        Failure::unsent("spawn", words)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Spawn(error) => error.into(),
            error => Failure {
                rpc: error.failure().and_then(|failure| failure.rpc()).cloned(),
                ..Failure::unsent("connect", error.to_string())
            },
        }
    }
}

/// Prints an answer: one JSON document for a program, or words for a person.
pub(crate) fn answer(answer: Result<Answer, Failure>, json: bool) -> io::Result<bool> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(failure) => return failure.print(json),
    };
    if json {
        Line::Ok(Some(answer.json)).print()?;
    } else {
        writeln!(io::stdout(), "{}", answer.words)?;
    }
    for words in &answer.notes {
        note(format_args!("{words}"));
    }
    Ok(answer.is_well)
}

/// JSON has no line ends but between its tokens, where they mean nothing.
fn on_one_line(json: &RawValue) -> String {
    json.get().replace(['\n', '\r'], "")
}

/// Lays valid JSON out over lines. Only the white space between its tokens changes.
pub(crate) fn laid_out(json: &str) -> String {
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
