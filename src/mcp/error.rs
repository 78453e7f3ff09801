//! [`Error`] and [`ConnectError`]: why a call has no result, and why there is no client.
//!
//! The peer's own errors stay what they are, inside [`Error::Call`]; what this layer finds wrong
//! has variants of its own. What the protocol attaches to some error codes is read by accessors.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::json::{elements, member, text};
use crate::mcp::elicit::UrlRequest;
use crate::mcp::fault::Fault;
use crate::mcp::meta::MetaError;
use crate::quote::{clean, last_words};
use crate::{Delivery, EncodeError, Ended, RpcError, SpawnError, Timeout};

/// A `Result` with this module's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection says why: the server's own error, a time limit, the end of the process, a
    /// cancellation.
    #[error(transparent)]
    Call(#[from] crate::Error),
    /// The server does not declare what the method needs; nothing was sent.
    #[error("`{method}` needs the capability `{capability}`, which the server does not declare")]
    NotSupported {
        /// The method.
        method: Box<str>,
        /// The capability, as a path: `resources.subscribe`.
        capability: &'static str,
    },
    /// The revision spoken has no such method; nothing was sent.
    #[error("revision {version} has no `{method}`")]
    NotInRevision {
        /// The method.
        method: Box<str>,
        /// The version spoken with the server.
        version: Box<str>,
    },
    /// The params are not what the protocol allows; nothing was sent.
    #[error("cannot send `{method}`: {reason}")]
    Params {
        /// The method.
        method: Box<str>,
        /// What is wrong with them.
        reason: &'static str,
    },
    /// The params cannot carry this `_meta`; nothing was sent.
    #[error(transparent)]
    Meta(#[from] MetaError),
    /// The server's result is not what the protocol allows.
    #[error("the result of `{method}` is invalid: {fault}")]
    Invalid {
        /// The method.
        method: Box<str>,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The server asked for something that this side refused, so that the call cannot go on.
    #[error("`{method}` was abandoned: the server's `{asked}` was refused: {}", clean(&refusal.message))]
    Refused {
        /// The method called.
        method: Box<str>,
        /// What the server asked for.
        asked: Box<str>,
        /// What the handler said.
        refusal: RpcError,
    },
    /// The server went on asking.
    #[error("`{method}` was abandoned after {rounds} rounds in which the server asked for more")]
    TooManyRounds {
        /// The method called.
        method: Box<str>,
        /// How often it was sent.
        rounds: u32,
    },
    /// The total limit ran out between two rounds: the time in which the handlers answered counts,
    /// but for what a person took within the human limit.
    #[error("`{method}` was abandoned after {rounds} rounds: they took longer than {after:?}")]
    OutOfTime {
        /// The method called.
        method: Box<str>,
        /// The total limit.
        after: Duration,
        /// How often it was sent.
        rounds: u32,
    },
    /// No version that the server still accepts is known here.
    #[error("the server speaks {}, this client {}", list(theirs), list(ours))]
    NoCommonVersion {
        /// The method called.
        method: Box<str>,
        /// The versions the server named.
        theirs: Vec<String>,
        /// The versions this client speaks.
        ours: Vec<String>,
    },
    /// The structured result is not what the tool's output schema says, by the caller's validator.
    #[error(
        "the structured result of `{}` breaks its output schema: {}",
        clean(tool),
        clean(reason)
    )]
    Schema {
        /// The tool.
        tool: Box<str>,
        /// What the validator said.
        reason: String,
        /// The result all the same.
        result: Box<crate::mcp::ToolResult>,
    },
    /// A handler called back while the connection was still being opened.
    #[error("`{method}` came before the connection was open")]
    NotReady {
        /// The method.
        method: Box<str>,
    },
}

impl Error {
    /// The server's error, if that is what this is.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Error::Call(error) => error.rpc(),
            _ => None,
        }
    }

    /// Tells whether a time limit ran out.
    pub fn is_timeout(&self) -> bool {
        match self {
            Error::Call(error) => error.is_timeout(),
            Error::OutOfTime { .. } => true,
            _ => false,
        }
    }

    /// Tells whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        matches!(self, Error::Call(error) if error.is_closed())
    }

    /// Tells whether the call was cancelled on this side.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Call(error) if error.is_cancelled())
    }

    /// Says what the server can have seen of the call.
    pub fn delivery(&self) -> Delivery {
        match self {
            Error::Call(error) => error.delivery(),
            Error::NotSupported { .. }
            | Error::NotInRevision { .. }
            | Error::Params { .. }
            | Error::Meta(_)
            | Error::NotReady { .. } => Delivery::NotSent,
            Error::Invalid { .. }
            | Error::Refused { .. }
            | Error::TooManyRounds { .. }
            | Error::OutOfTime { .. }
            | Error::NoCommonVersion { .. }
            | Error::Schema { .. } => Delivery::Answered,
        }
    }

    /// Tells whether `resources/read` failed because there is no such resource: -32602 in revision
    /// 2026-07-28, -32002 before, either taken from any server.
    pub fn is_resource_not_found(&self) -> bool {
        match self {
            Error::Call(error @ crate::Error::Rpc { error: rpc, .. }) => {
                error.method() == "resources/read"
                    && matches!(rpc.code, RESOURCE_NOT_FOUND | RpcError::INVALID_PARAMS)
            }
            _ => false,
        }
    }

    /// What the server wants this client to declare (-32021, revision 2026-07-28), as it wrote it.
    /// Installing the handler for it declares it.
    pub fn required_capabilities(&self) -> Option<&RawValue> {
        let rpc = self.rpc().filter(|rpc| rpc.code == MISSING_CAPABILITY)?;
        member(rpc.data.as_deref()?, &["requiredCapabilities"])
    }

    /// The pages that the user is to visit before the call is tried again (-32042, revision
    /// 2025-11-25).
    pub fn url_elicitations(&self) -> Option<Vec<UrlRequest>> {
        let rpc = self
            .rpc()
            .filter(|rpc| rpc.code == URL_ELICITATION_REQUIRED)?;
        let asked = member(rpc.data.as_deref()?, &["elicitations"])?;
        let asked = elements(asked, MOST_ELICITATIONS)?;
        Some(asked.into_iter().map(UrlRequest::new).collect())
    }

    pub(crate) fn encode(method: &str, error: EncodeError) -> Self {
        Error::Call(crate::Error::Encode {
            method: method.into(),
            error: Box::new(error),
        })
    }

    pub(crate) fn invalid(method: &str, fault: Fault) -> Self {
        Error::Invalid {
            method: method.into(),
            fault,
        }
    }
}

/// Why there is no client.
///
/// Its text says everything that is known; a program that has its own words for it asks further.
///
/// ```
/// use landline::ChildSpec;
/// use landline::mcp::{ConnectError, Options, Reason};
///
/// let no_server = ChildSpec::from_argv(["sh", "-c", "echo 'the database is locked' >&2; exit 3"])?;
/// match Options::new("my-tool", "1.0").spawn(&no_server) {
///     Ok(_) => println!("connected"),
///     Err(ConnectError::Spawn(error)) => println!("install it first: {error}"),
///     Err(error) => {
///         assert!(error.to_string().contains("the database is locked"));
///         let failure = error.failure().unwrap();
///         assert!(matches!(&failure.reason, Reason::Call(error) if error.is_closed()));
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The process did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The system refused a thread, for a connection without a process or for the keep-alive.
    #[error("the connection has not all of its threads")]
    Threads(#[source] std::io::Error),
    /// The process started and did not become a server to talk to; it was closed.
    #[error(transparent)]
    Failed(Box<ConnectFailure>),
}

impl ConnectError {
    /// What is known of the failure, where the process had started.
    pub fn failure(&self) -> Option<&ConnectFailure> {
        match self {
            ConnectError::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}

/// Everything known of a connection that did not come about.
#[derive(Debug)]
#[non_exhaustive]
pub struct ConnectFailure {
    /// The step that failed.
    pub phase: ConnectPhase,
    /// Why it failed.
    pub reason: Reason,
    /// What was tried, in order: one for each process.
    pub attempts: Vec<Attempt>,
    /// The versions this client offered, newest first.
    pub ours: Vec<String>,
    /// The versions the server named, in its own words.
    pub theirs: Vec<String>,
}

/// The steps of connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectPhase {
    /// Asking with `server/discover` which era the server belongs to.
    Probe,
    /// The handshake of the legacy era: `initialize`.
    Handshake,
}

impl fmt::Display for ConnectPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnectPhase::Probe => "`server/discover`",
            ConnectPhase::Handshake => "`initialize`",
        })
    }
}

/// Why a step of connecting failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The call failed: refused, not answered, or the process ended.
    Call(crate::Error),
    /// There is no version that both sides speak.
    NoCommonVersion,
    /// A member that the answer must have is missing or of another type.
    Missing(&'static str),
    /// The server belongs to the legacy era, and the modern one is pinned.
    NotModern(Option<crate::Error>),
    /// The process ended on the probe and could not be started again.
    Restart(SpawnError),
}

/// One process that was started and talked to.
#[non_exhaustive]
pub struct Attempt {
    /// What became of the probe; `None` where there was none.
    pub probe: Option<String>,
    /// What became of `initialize`; `None` where it was not sent.
    pub handshake: Option<String>,
    /// How the process ended.
    pub ended: Ended,
    /// The last of its stderr, raw.
    pub stderr_tail: Vec<u8>,
    /// The first lines of its stdout that were no messages.
    pub stray_lines: Vec<String>,
}

/// Shows stderr as text, and only its end: a `main` that returns an error prints this.
impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("probe", &self.probe)
            .field("handshake", &self.handshake)
            .field("ended", &self.ended)
            .field("stderr_tail", &last_words(&self.stderr_tail))
            .field("stray_lines", &self.stray_lines)
            .finish()
    }
}

impl ConnectFailure {
    /// The server's error, if that is the reason.
    pub fn rpc(&self) -> Option<&RpcError> {
        match &self.reason {
            Reason::Call(error) | Reason::NotModern(Some(error)) => error.rpc(),
            _ => None,
        }
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Call(crate::Error::Timeout { detail, .. }) => self.write_timeout(f, detail)?,
            Reason::Call(error) => write!(f, "cannot connect: {error}")?,
            Reason::NoCommonVersion => f.write_str("cannot connect: there is no common version")?,
            Reason::Missing(name) => {
                let phase = self.phase;
                write!(
                    f,
                    "cannot connect: the answer to {phase} has no usable `{name}`"
                )?;
            }
            Reason::NotModern(why) => {
                f.write_str("cannot connect: the server speaks no modern revision")?;
                if let Some(why) = why {
                    write!(f, " ({why})")?;
                }
            }
            Reason::Restart(error) => write!(f, "cannot connect: {error}")?,
        }
        if !self.theirs.is_empty() {
            write!(
                f,
                "; the server speaks {}, this client {}",
                list(&self.theirs),
                list(&self.ours)
            )?;
        }
        // The process that the reason is about comes first, then the one before it.
        let mut attempts = self.attempts.iter().rev();
        if !matches!(self.reason, Reason::Restart(_)) {
            if let Some(last) = attempts.next() {
                self.write_last(f, last)?;
            }
        }
        for first in attempts {
            write!(f, "; the first process: {}", first.ended)?;
            write_step(f, ConnectPhase::Probe, first.probe.as_deref())?;
            write_step(f, ConnectPhase::Handshake, first.handshake.as_deref())?;
            // Both have usually said the same; once is enough.
            let last = self
                .attempts
                .last()
                .filter(|last| !std::ptr::eq(*last, first));
            if last.is_none_or(|last| last.stderr_tail != first.stderr_tail) {
                write_quotes(f, first)?;
            }
        }
        Ok(())
    }
}

impl ConnectFailure {
    /// Writes of the process that the reason is about what the reason does not say.
    fn write_last(&self, f: &mut fmt::Formatter<'_>, last: &Attempt) -> fmt::Result {
        if self.phase != ConnectPhase::Probe {
            write_step(f, ConnectPhase::Probe, last.probe.as_deref())?;
        }
        match &self.reason {
            // The end of a connection quotes the server itself.
            Reason::Call(error) | Reason::NotModern(Some(error)) if error.is_closed() => Ok(()),
            _ => write_quotes(f, last),
        }
    }

    /// Writes that the limit of connecting ran out, and in which step.
    fn write_timeout(&self, f: &mut fmt::Formatter<'_>, detail: &Timeout) -> fmt::Result {
        write!(f, "cannot connect within {:?}: ", detail.after)?;
        match detail.delivery {
            Delivery::NotSent => write!(f, "{} was not sent", self.phase)?,
            _ => write!(f, "no answer to {}", self.phase)?,
        }
        if !detail.heard {
            f.write_str("; it runs and has sent no message: perhaps it is no MCP server")?;
        }
        Ok(())
    }
}

fn write_step(f: &mut fmt::Formatter<'_>, step: ConnectPhase, said: Option<&str>) -> fmt::Result {
    match said {
        Some(said) => write!(f, "; {step}: {said}"),
        None => Ok(()),
    }
}

fn write_quotes(f: &mut fmt::Formatter<'_>, attempt: &Attempt) -> fmt::Result {
    let stderr = last_words(&attempt.stderr_tail);
    if !stderr.trim().is_empty() {
        write!(f, "; stderr: {}", stderr.trim())?;
    }
    if let Some(first) = attempt.stray_lines.first() {
        write!(f, "; first stray line on stdout: {}", first.trim())?;
    }
    Ok(())
}

impl StdError for ConnectFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.reason {
            // Its text stands in this one's.
            Reason::Restart(error) => error.source(),
            _ => None,
        }
    }
}

/// The versions that an error names as supported, in the server's words.
pub(crate) fn supported(error: &RpcError) -> Option<Vec<String>> {
    versions(member(error.data.as_deref()?, &["supported"])?)
}

/// Reads an array of versions; what is no string is left out.
pub(crate) fn versions(raw: &RawValue) -> Option<Vec<String>> {
    let versions = elements(raw, MOST_VERSIONS)?;
    Some(
        versions
            .into_iter()
            .filter_map(|raw| text(raw).map(|text| clean(&text).into_owned()))
            .collect(),
    )
}

fn list(versions: &[String]) -> String {
    if versions.is_empty() {
        "none".into()
    } else {
        versions.join(", ")
    }
}

/// A refusal of the server's that says that it is of the modern era (revision 2026-07-28).
pub(crate) fn is_modern(error: &RpcError) -> bool {
    match error.code {
        HEADER_MISMATCH | MISSING_CAPABILITY => true,
        UNSUPPORTED_VERSION => supported(error).is_some(),
        _ => false,
    }
}

pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
const MISSING_CAPABILITY: i64 = -32021;
const HEADER_MISMATCH: i64 = -32020;
const URL_ELICITATION_REQUIRED: i64 = -32042;
const RESOURCE_NOT_FOUND: i64 = -32002;

// Far more than any server has; a longer list is not worth its memory.
const MOST_VERSIONS: usize = 1000;
const MOST_ELICITATIONS: usize = 1000;
