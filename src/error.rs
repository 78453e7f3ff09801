//! [`Error`], [`Closed`], [`Result`]: what a caller of the connection sees.
//!
//! One enum of few variants, each naming the method it concerns, with predicates for the questions
//! that callers ask: was it a time limit, is the connection gone, can the peer have seen the
//! request. It is at most 32 bytes, since every `Result` on the way of an answer carries it. What
//! the peer said is kept apart from what went wrong here: only [`Error::Rpc`] holds the peer's
//! words as an error.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::child::Exit;
use crate::framing::FrameError;
use crate::message::{EncodeError, RpcError};
use crate::quote::{clean, last_words};

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer answered with an error.
    #[error("`{method}` was refused: {error}")]
    Rpc {
        /// The method called.
        method: Box<str>,
        /// The peer's error, verbatim.
        error: Box<RpcError>,
    },
    /// A time limit ran out before the answer came.
    #[error("{} {detail}", opening(method, detail.delivery))]
    Timeout {
        /// The method called.
        method: Box<str>,
        /// Which limit, and what was known when it ran out.
        detail: Box<Timeout>,
    },
    /// The call was cancelled on this side.
    #[error("`{method}` was cancelled")]
    Cancelled {
        /// The method called.
        method: Box<str>,
        /// What the peer can have seen of it.
        delivery: Delivery,
    },
    /// The connection ended before the answer came, or had ended before the call.
    #[error("{}: {why}", opening(method, *delivery))]
    Closed {
        /// The method called.
        method: Box<str>,
        /// What the peer can have seen of it.
        delivery: Delivery,
        /// The first cause, the same for every caller.
        why: Arc<Closed>,
    },
    /// The peer's answer came and cannot be used.
    #[error("the answer to `{method}` cannot be used: {fault}")]
    Answer {
        /// The method called.
        method: Box<str>,
        /// What is wrong with the answer.
        fault: Box<AnswerFault>,
    },
    /// The params cannot be sent; nothing was.
    #[error("cannot send `{method}`: {error}")]
    Encode {
        /// The method called.
        method: Box<str>,
        /// What is wrong with the params.
        error: Box<EncodeError>,
    },
}

impl Error {
    /// Tells whether a time limit ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::Timeout { .. })
    }

    /// Tells whether the connection is gone, so that no further call can succeed.
    pub fn is_closed(&self) -> bool {
        matches!(self, Error::Closed { .. })
    }

    /// Tells whether the call was cancelled on this side.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Cancelled { .. })
    }

    /// Says what the peer can have seen of the call; a caller decides by it whether to try again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use landline::{Connection, Delivery, Result};
    /// use serde_json::Value;
    ///
    /// /// Tries once more where that cannot run the payment twice.
    /// fn pay(server: &Connection) -> Result<Value> {
    ///     match server.request("pay", [100]) {
    ///         Err(error) if error.delivery() == Delivery::NotSent && !error.is_closed() => {
    ///             server.request("pay", [100])
    ///         }
    ///         result => result,
    ///     }
    /// }
    /// ```
    pub fn delivery(&self) -> Delivery {
        match self {
            Error::Rpc { .. } => Delivery::Answered,
            Error::Answer { fault, .. } => match **fault {
                AnswerFault::Taken { delivery } => delivery,
                _ => Delivery::Answered,
            },
            Error::Timeout { detail, .. } => detail.delivery,
            Error::Cancelled { delivery, .. } | Error::Closed { delivery, .. } => *delivery,
            Error::Encode { .. } => Delivery::NotSent,
        }
    }

    /// The peer's error, if that is what this is.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Error::Rpc { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Why the connection ended, if that is what this is.
    pub fn closed(&self) -> Option<&Closed> {
        match self {
            Error::Closed { why, .. } => Some(why),
            _ => None,
        }
    }

    /// The method called.
    pub fn method(&self) -> &str {
        match self {
            Error::Rpc { method, .. }
            | Error::Timeout { method, .. }
            | Error::Cancelled { method, .. }
            | Error::Closed { method, .. }
            | Error::Answer { method, .. }
            | Error::Encode { method, .. } => method,
        }
    }
}

/// What the peer can have seen of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// Nothing: the frame was never handed to the pipe and can no longer be.
    NotSent,
    /// Perhaps all of it: the frame was handed to the pipe, and the peer may have acted on it.
    MaybeRun,
    /// All of it: the peer answered.
    Answered,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Delivery::NotSent => "not sent",
            Delivery::MaybeRun => "may have run",
            Delivery::Answered => "answered",
        })
    }
}

/// The time limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The whole call, from its start.
    Total,
    /// The time since the call's start or the last notification that belongs to it.
    Idle,
}

/// What was known when a call's time limit ran out.
#[derive(Clone)]
#[non_exhaustive]
pub struct Timeout {
    /// Which limit ran out.
    pub limit: Limit,
    /// Its length.
    pub after: Duration,
    /// What the peer can have seen of the call.
    pub delivery: Delivery,
    /// Whether the peer had sent any message by then, since its start.
    pub heard: bool,
    /// The first stray lines of its stdout.
    pub stray_lines: Vec<String>,
    /// The last of its stderr, where that is captured; the raw bytes.
    pub stderr_tail: Vec<u8>,
}

/// Shows the tail of stderr as text, and only its end: a `main` that returns an error prints this.
impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("limit", &self.limit)
            .field("after", &self.after)
            .field("delivery", &self.delivery)
            .field("heard", &self.heard)
            .field("stray_lines", &self.stray_lines)
            .field("stderr_tail", &last_words(&self.stderr_tail))
            .finish()
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Limit::Total => write!(f, "within {:?}", self.after)?,
            Limit::Idle => write!(f, "and no sign of life for {:?}", self.after)?,
        }
        if self.delivery == Delivery::NotSent {
            f.write_str("; it was still waiting to be written")?;
        } else if !self.heard {
            f.write_str(
                "; the peer runs and has sent no message yet, perhaps it expects another framing",
            )?;
        }
        if self
            .stray_lines
            .iter()
            .any(|line| matches!(line.trim(), "{" | "["))
        {
            f.write_str("; the peer seems to write its JSON over several lines")?;
        }
        write_quotes(f, &self.stray_lines, &self.stderr_tail)
    }
}

/// How the text of an error without an answer begins.
fn opening(method: &str, delivery: Delivery) -> String {
    match delivery {
        Delivery::NotSent => format!("`{method}` was not sent"),
        Delivery::MaybeRun | Delivery::Answered => format!("no answer to `{method}`"),
    }
}

/// What is wrong with an answer that came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerFault {
    /// Its frame is over the frame limit and was discarded.
    #[error("its frame of {len} bytes is over the limit of {limit}")]
    TooLarge {
        /// The frame's length in bytes.
        len: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// Its frame names the call and cannot be read as a message: it is no valid JSON, was cut
    /// short, or is an array where the dialect refuses them or one of too many elements.
    #[error("its frame cannot be read as a message")]
    Malformed,
    /// It has neither a result nor an error.
    #[error("it has neither a result nor an error")]
    Empty,
    /// It was taken by an earlier wait for the same call.
    #[error("it was taken before")]
    Taken {
        /// What the peer can have seen of the call, as that wait told it.
        delivery: Delivery,
    },
    /// Its result is not of the type that the caller asked for.
    #[error("its result is not of the type asked for: {}", clean(&_0.to_string()))]
    Decode(serde_json::Error),
}

/// Why and how a connection ended: the first cause, kept for every later caller.
#[non_exhaustive]
pub struct Closed {
    /// The first cause.
    pub cause: Cause,
    /// How far the connection had come.
    pub phase: Phase,
    /// The last of the child's stderr, where that is captured; the raw bytes. `Display` quotes its
    /// last lines without control characters.
    pub stderr_tail: Vec<u8>,
    /// The first stray lines of its stdout, without control characters.
    pub stray_lines: Vec<String>,
}

/// How far a connection had come when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The peer had not sent one message.
    Starting,
    /// The peer had sent messages.
    Running,
}

/// What ended a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// `close()`, or the drop of the connection.
    ClosedHere,
    /// [`close_because()`](crate::Peer::close_because), with the reason given.
    GivenUp(String),
    /// The process ended by itself.
    Exited(Exit),
    /// The peer closed its stdout; a child process was still running.
    OutputEnded,
    /// The peer closed its stdin while it ran on; calls that it had read by then can still be
    /// answered.
    InputClosed(std::io::Error),
    /// What the peer sent cannot be read as frames any further.
    Framing(FrameError),
    /// The peer asked and did not read: more than the bound of replies was waiting for it.
    RepliesUnread {
        /// The bound in bytes.
        limit: usize,
    },
}

/// Shows the tail of stderr as text, and only its end: a `main` that returns an error prints this.
impl fmt::Debug for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed")
            .field("cause", &self.cause)
            .field("phase", &self.phase)
            .field("stray_lines", &self.stray_lines)
            .field("stderr_tail", &last_words(&self.stderr_tail))
            .finish()
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::ClosedHere => return f.write_str("the connection was closed on this side"),
            Cause::GivenUp(reason) => {
                write!(
                    f,
                    "the connection was closed on this side: {}",
                    clean(reason)
                )?;
            }
            Cause::Exited(exit) => write!(f, "the process ended ({exit})")?,
            Cause::OutputEnded => f.write_str("the peer closed its output")?,
            Cause::InputClosed(error) => write!(f, "the peer closed its input: {error}")?,
            Cause::Framing(error) => {
                write!(f, "{error}")?;
                // The io::Error behind it has no other way to be told: a shared cause has no
                // source.
                if let Some(source) = error.source() {
                    write!(f, ": {source}")?;
                }
            }
            Cause::RepliesUnread { limit } => {
                write!(
                    f,
                    "the peer left over {limit} bytes of replies and cancellations unread"
                )?;
            }
        }
        let mismatch = matches!(self.cause, Cause::Framing(FrameError::Mismatch { .. }));
        let ours = matches!(self.cause, Cause::GivenUp(_));
        if self.phase == Phase::Starting && !mismatch && !ours {
            f.write_str(" before it sent any message")?;
        }
        write_quotes(f, &self.stray_lines, &self.stderr_tail)
    }
}

impl std::error::Error for Closed {}

/// Appends what the peer wrote beside the protocol, which is usually where the reason stands.
fn write_quotes(f: &mut fmt::Formatter<'_>, stray_lines: &[String], stderr: &[u8]) -> fmt::Result {
    let stderr = last_words(stderr);
    if !stderr.trim().is_empty() {
        write!(f, "; stderr: {}", stderr.trim())?;
    }
    if let Some(first) = stray_lines.first() {
        write!(f, "; first stray line on stdout: {}", first.trim())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_stays_small_and_crosses_threads() {
        fn crosses<T: Send + Sync + 'static>() {}
        crosses::<Error>();
        assert!(size_of::<Error>() <= 32, "{}", size_of::<Error>());
    }

    #[test]
    fn the_reason_stands_in_the_text_once() {
        let why = Closed {
            cause: Cause::Exited(Exit::Code(78)),
            phase: Phase::Starting,
            stderr_tail: b"\x1b[31mFATAL: API_KEY missing\x1b[0m\n".to_vec(),
            stray_lines: vec!["Starting".into()],
        };
        let method = "initialize".into();
        let error = Error::Closed {
            method,
            delivery: Delivery::MaybeRun,
            why: Arc::new(why),
        };
        assert_eq!(
            error.to_string(),
            "no answer to `initialize`: the process ended (exit code 78) before it sent any message; \
             stderr: FATAL: API_KEY missing; first stray line on stdout: Starting"
        );
        let debug = format!("{error:?}");
        assert!(debug.contains("API_KEY missing"), "{debug}");
        assert!(
            error.source().is_none(),
            "a source would be printed twice by most reporters"
        );
    }

    #[test]
    fn a_timeout_names_its_limit_and_guesses_at_the_reason() {
        let mut timeout = Timeout {
            limit: Limit::Total,
            after: Duration::from_millis(200),
            delivery: Delivery::MaybeRun,
            heard: true,
            stray_lines: vec![],
            stderr_tail: vec![],
        };
        assert_eq!(timeout.to_string(), "within 200ms");
        timeout.limit = Limit::Idle;
        timeout.stray_lines = vec!["{".into()];
        let text = timeout.to_string();
        assert!(
            text.starts_with(
                "and no sign of life for 200ms; the peer seems to write its JSON over"
            ),
            "{text}"
        );
    }
}
