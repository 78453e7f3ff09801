//! Connecting: which era a server belongs to, and the greeting of that era.
//!
//! A probe, `server/discover`, asks a server of either era; only a modern one can answer it
//! (revision 2026-07-28, stdio). Any other answer, silence, or the end of the process stands for a
//! legacy server, which is greeted with `initialize`: in the same process, or, if it ended on the
//! probe, once in a new one. The invariant: whatever way this ends, the process is a client's
//! or it is closed.

mod probe;

use std::io::{Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use serde_json::value::RawValue;

use self::probe::refused;
use crate::json::{member, text};
use crate::mcp::client::Client;
use crate::mcp::dialects::{greeting, legacy, modern, probing};
use crate::mcp::error::{
    Attempt, ConnectError, ConnectFailure, ConnectPhase, Reason, is_modern, supported,
};
use crate::mcp::incoming::Answers;
use crate::mcp::keep_alive;
use crate::mcp::options::{Options, Start};
use crate::mcp::revision::{Era, Revision};
use crate::mcp::server::Server;
use crate::mcp::session::{Core, Session};
use crate::quote::clean;
use crate::{Call, CallOptions, Cause, ChildSpec, Connection, Error, Framing};

impl Options {
    /// Starts a server and connects to it: finds its era, agrees on a version, and is ready to
    /// call. Blocks for the limit of connecting at most, 60 seconds unless set, and for the close
    /// of a process with which it failed.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Spawn`] if the process does not start, [`ConnectError::Failed`] with all
    /// that is known otherwise.
    pub fn spawn(&self, spec: &ChildSpec) -> Result<Client, ConnectError> {
        Connecting::new(self).run(|options| Ok(options.spawn(spec)?), true)
    }

    /// As [`spawn`](Self::spawn), for commands that the caller makes, perhaps with a uid or a
    /// umask. A second one is asked for if the process of the first ends after the probe, before it
    /// has answered `initialize`.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_command(&self, command: impl Fn() -> Command) -> Result<Client, ConnectError> {
        Connecting::new(self).run(|options| Ok(options.spawn_command(command())?), true)
    }

    /// Connects to a server that is no child: any pair of streams. There is no second try if they
    /// end on the probe.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Threads`] if the system refuses a thread, [`ConnectError::Failed`]
    /// otherwise.
    pub fn connect(
        &self,
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
    ) -> Result<Client, ConnectError> {
        let mut streams = Some((reader, writer));
        let open = |options: &crate::Options| {
            // Asked for once, as nothing can be started again.
            let taken = streams.take().ok_or(std::io::ErrorKind::NotConnected);
            let connection = taken
                .map_err(std::io::Error::from)
                .and_then(|(reader, writer)| options.connect(reader, writer));
            connection.map_err(ConnectError::Threads)
        };
        Connecting::new(self).run(open, false)
    }
}

/// One attempt to become a client.
struct Connecting<'a> {
    options: &'a Options,
    until: Option<Instant>,
    attempts: Vec<Attempt>,
    theirs: Vec<String>,
    /// It has answered as only a modern server does; it is not greeted any more.
    proved: bool,
}

/// The process, or streams, of an attempt.
struct Line {
    connection: Connection,
    core: Arc<Core>,
    /// The versions in which it was probed.
    tried: Vec<String>,
    probe: Option<String>,
    handshake: Option<String>,
}

/// How a step went: the server that was met, or where and why it failed.
type Step = Result<Server, (ConnectPhase, Reason)>;

/// What a probe has found out.
enum Probed {
    Modern(Server),
    /// No modern server answers so.
    Legacy(Option<Error>),
    /// Nothing yet; the call is kept, as its answer may still come.
    Silent(Call),
    Failed(Reason),
}

impl Probed {
    /// Whether only a modern server answers so.
    fn is_modern(&self) -> bool {
        match self {
            Probed::Modern(_) | Probed::Failed(Reason::NoCommonVersion) => true,
            Probed::Failed(Reason::Call(error)) => error.rpc().is_some_and(is_modern),
            _ => false,
        }
    }
}

/// What became of a probe that was not answered in its time.
enum Late {
    /// There is none.
    Nothing,
    /// Its answer may still come.
    Open(Call),
    /// It came while the greeting was on its way.
    Came(Probed),
}

impl<'a> Connecting<'a> {
    fn new(options: &'a Options) -> Self {
        Connecting {
            options,
            until: Instant::now().checked_add(options.connect),
            attempts: Vec::new(),
            theirs: Vec::new(),
            proved: false,
        }
    }

    fn run(
        mut self,
        mut open: impl FnMut(&crate::Options) -> Result<Connection, ConnectError>,
        again: bool,
    ) -> Result<Client, ConnectError> {
        let mut line = self.open(&mut open)?;
        let outcome = match self.options.start() {
            Start::Probe | Start::Modern => self.ask(&mut line),
            Start::Legacy => self.greet(&mut line, Late::Nothing),
            Start::Handshake => self.greet_or_ask(&mut line),
        };
        let outcome = match outcome {
            // It ended on the probe, or soon after it: perhaps it would not have without. One that
            // was remembered as legacy may have ended on the greeting.
            Err((_, Reason::Call(error))) if again && self.may_begin_otherwise(&line, &error) => {
                let probed = !line.tried.is_empty();
                self.give_up(line);
                line = match self.open(&mut open) {
                    Ok(line) => line,
                    Err(ConnectError::Spawn(error)) => {
                        return Err(self.failed(ConnectPhase::Handshake, Reason::Restart(error)));
                    }
                    Err(error) => return Err(error),
                };
                if probed && !self.proved {
                    self.greet(&mut line, Late::Nothing)
                } else {
                    self.ask(&mut line)
                }
            }
            other => other,
        };
        match outcome {
            Ok(server) => {
                line.core.open();
                let session = Session::new(line.connection.peer(), line.core);
                let client = Client::new(line.connection, session, server);
                if let (Era::Legacy, Some(interval)) =
                    (client.server().era(), self.options.keep_alive)
                {
                    // A refused thread drops the client, which ends the process.
                    keep_alive::start(client.session(), interval).map_err(ConnectError::Threads)?;
                }
                Ok(client)
            }
            Err((phase, reason)) => {
                self.give_up(line);
                Err(self.failed(phase, reason))
            }
        }
    }

    fn open(
        &self,
        open: &mut impl FnMut(&crate::Options) -> Result<Connection, ConnectError>,
    ) -> Result<Line, ConnectError> {
        let core = Core::new(self.options.clone());
        let options = self.options.transport.clone();
        let options = options
            .framing(Framing::Lines)
            .dialect(probing())
            .request_timeout(self.options.total)
            .idle_timeout(Duration::MAX)
            .human_timeout(self.options.human)
            .handler(Answers(core.clone()));
        Ok(Line {
            connection: open(&options)?,
            core,
            tried: Vec::new(),
            probe: None,
            handshake: None,
        })
    }

    // The steps.

    /// Probes, and greets a server that is not modern.
    fn ask(&mut self, line: &mut Line) -> Step {
        let pinned = !self.may_greet();
        let mut probed = self.probe(line);
        // Where nothing else may be spoken, or no time is left for it, silence is waited out.
        while let Probed::Silent(call) = probed {
            if !(pinned || self.proved || self.left().is_zero()) {
                return self.greet(line, Late::Open(call));
            }
            let finished = self.finish(line, call);
            probed = self.settle(line, finished);
        }
        match probed {
            Probed::Modern(server) => Ok(self.meet(line, server)),
            Probed::Failed(reason) => Err((ConnectPhase::Probe, reason)),
            Probed::Legacy(why) if pinned => Err((ConnectPhase::Probe, Reason::NotModern(why))),
            // It was modern a moment ago, so that this is no word of a legacy server.
            Probed::Legacy(Some(error)) if self.proved => {
                Err((ConnectPhase::Probe, Reason::Call(error)))
            }
            Probed::Legacy(_) | Probed::Silent(_) => self.greet(line, Late::Nothing),
        }
    }

    /// Greets a server that was legacy when it was last met, and probes if it refuses, or answers
    /// with nothing that could be agreed on.
    fn greet_or_ask(&mut self, line: &mut Line) -> Step {
        let (phase, reason) = match self.greet(line, Late::Nothing) {
            Ok(server) => return Ok(server),
            Err(failed) => failed,
        };
        if matches!(&reason, Reason::Call(error) if error.rpc().is_none()) {
            return Err((phase, reason));
        }
        line.connection.set_dialect(probing());
        match self.probe(line) {
            Probed::Modern(server) => Ok(self.meet(line, server)),
            _ => Err((phase, reason)),
        }
    }

    fn meet(&self, line: &Line, server: Server) -> Server {
        line.connection.set_dialect(modern());
        line.core.meet(server.clone());
        server
    }

    /// Greets with `initialize`, once more in another version if the server names one that is
    /// known. A probe that is still open may answer meanwhile: if the greeting fails, that counts.
    fn greet(&mut self, line: &mut Line, mut late: Late) -> Step {
        line.connection.set_dialect(greeting());
        let mut tried = Vec::new();
        // What the server has named goes before what the client prefers.
        let named = self.named_legacy(&tried);
        let mut offered = named.or(self.options.legacy.first().copied());
        let mut failure = Reason::NoCommonVersion;
        while let Some(version) = offered {
            tried.push(version);
            line.core.offer(version);
            let error = match self.initialize(line, version, &mut late) {
                Ok(Some(result)) => match self.agree(line, result) {
                    Ok(server) => return Ok(server),
                    Err(reason) => {
                        failure = reason;
                        break;
                    }
                },
                Ok(None) => break,
                Err(error) => error,
            };
            line.handshake = Some(outcome(&error));
            if let Some(theirs) = error.rpc().and_then(supported) {
                self.theirs = theirs;
            }
            failure = Reason::Call(error);
            offered = self.named_legacy(&tried);
        }
        match self.late(line, late, &failure) {
            Some(Probed::Modern(server)) => Ok(self.meet(line, server)),
            Some(Probed::Failed(reason)) => Err((ConnectPhase::Probe, reason)),
            _ => Err((ConnectPhase::Handshake, failure)),
        }
    }

    /// The legacy version to be offered of those that the server has named.
    fn named_legacy(&self, tried: &[Revision]) -> Option<Revision> {
        let mut ours = self.options.legacy.iter().copied();
        ours.find(|ours| {
            !tried.contains(ours) && self.theirs.iter().any(|theirs| theirs == ours.as_str())
        })
    }

    /// What the probe says after all, when the greeting has failed. A server that refuses the
    /// greeting as a modern one does is asked once more. `None`: nothing that only a modern server
    /// says.
    fn late(&mut self, line: &mut Line, late: Late, failure: &Reason) -> Option<Probed> {
        let refusal = match failure {
            Reason::Call(error) if error.is_closed() => return None,
            Reason::Call(error) => error.rpc(),
            _ => None,
        };
        line.connection.set_dialect(probing());
        let found = match late {
            Late::Nothing => return None,
            Late::Came(probed) => probed,
            Late::Open(mut call) => match call.try_wait::<Box<RawValue>>() {
                Ok(Some(result)) => self.discovered(line, result),
                Ok(None) if refusal.is_some_and(is_modern) => self.probe(line),
                Ok(None) => self.wait(line, call),
                Err(error) => refused(line, error),
            },
        };
        let found = self.settle(line, found);
        found.is_modern().then_some(found)
    }

    /// Greets in one version. `None`: the server has answered the probe meanwhile, as a modern one
    /// does, and leaves the greeting without an answer.
    fn initialize(
        &mut self,
        line: &mut Line,
        offered: Revision,
        late: &mut Late,
    ) -> crate::Result<Option<Box<RawValue>>> {
        // The specification forbids to cancel it (2025-11-25, cancellation).
        let options = CallOptions::new().timeout(self.left()).quiet();
        let hello = json!({
            "protocolVersion": offered.as_str(),
            "capabilities": self.options.capabilities(offered),
            "clientInfo": self.options.client.in_words_of(offered),
        });
        let mut call = line
            .connection
            .start_with("initialize", &options, |_| hello)?;
        if let Late::Open(probe) = late {
            if Call::wait_any([&mut call, probe]) == Some(1) {
                let probed = match probe.try_wait::<Box<RawValue>>() {
                    Ok(Some(result)) => self.discovered(line, result),
                    Ok(None) => Probed::Legacy(None),
                    Err(error) => refused(line, error),
                };
                *late = Late::Came(probed);
            }
        }
        if !matches!(late, Late::Came(probed) if probed.is_modern()) {
            return call.wait().map(Some).map_err(|error| self.whole(error));
        }
        let limit = self.options.probe.max(GREETED).min(self.left());
        let answer = call.wait_timeout(limit)?;
        if answer.is_none() {
            line.handshake = Some(format!("no answer within {limit:?}"));
            call.forget();
        }
        Ok(answer)
    }

    /// Agrees on the version that the server answered with, and says so.
    fn agree(&mut self, line: &mut Line, result: Box<RawValue>) -> Result<Server, Reason> {
        line.handshake = Some(ANSWERED.into());
        let Some(version) = member(&result, &["protocolVersion"]).and_then(text) else {
            return Err(Reason::Missing("protocolVersion"));
        };
        let version = clean(&version).into_owned();
        let revision = self
            .options
            .legacy
            .iter()
            .copied()
            .find(|ours| ours.as_str() == version);
        let Some(revision) = revision else {
            self.theirs = vec![version];
            return Err(Reason::NoCommonVersion);
        };
        line.connection.set_dialect(legacy(Some(revision)));
        let server = Server::new(revision, &version, result);
        line.core.meet(server.clone());
        line.connection
            .notify("notifications/initialized", ())
            .map_err(Reason::Call)?;
        Ok(server)
    }

    // The end of an attempt.

    /// Closes an attempt and keeps what is known of it.
    fn give_up(&mut self, line: Line) {
        let ended = line.connection.close();
        self.attempts.push(Attempt {
            probe: line.probe,
            handshake: line.handshake,
            ended,
            stderr_tail: line.connection.stderr_tail(),
            stray_lines: line.connection.survived().first_stray_lines,
        });
    }

    fn failed(self, phase: ConnectPhase, reason: Reason) -> ConnectError {
        let modern = self.options.modern.iter().cloned();
        let legacy = self
            .options
            .legacy
            .iter()
            .map(|revision| revision.as_str().to_owned());
        let ours = match self.options.start() {
            Start::Modern => modern.collect(),
            Start::Legacy => legacy.collect(),
            Start::Probe | Start::Handshake => modern.chain(legacy).collect(),
        };
        ConnectError::Failed(Box::new(ConnectFailure {
            phase,
            reason,
            attempts: self.attempts,
            ours,
            theirs: self.theirs,
        }))
    }

    /// Whether the legacy era may be spoken.
    fn may_greet(&self) -> bool {
        self.options.start() != Start::Modern
    }

    /// Tells of the limit of connecting, and not of what was left of it for the last step.
    fn whole(&self, mut error: Error) -> Error {
        if let Error::Timeout { detail, .. } = &mut error {
            detail.after = self.options.connect;
        }
        error
    }

    /// Whether a process that ended may be started once more, to be spoken to in another way: not
    /// one that had answered the greeting, or that was closed on this side.
    fn may_begin_otherwise(&self, line: &Line, error: &Error) -> bool {
        let by_itself = error
            .closed()
            .is_some_and(|why| !matches!(why.cause, Cause::ClosedHere | Cause::GivenUp(_)));
        by_itself
            && line.handshake.as_deref() != Some(ANSWERED)
            && match self.options.start() {
                Start::Probe => !line.tried.is_empty(),
                Start::Handshake => true,
                Start::Legacy | Start::Modern => false,
            }
    }

    /// What is left of the limit of connecting.
    fn left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }
}

/// How a step went that failed, in a few words: what the server wrote beside it stands elsewhere.
fn outcome(error: &Error) -> String {
    match error {
        Error::Rpc { error, .. } => format!("refused: {error}"),
        Error::Timeout { detail, .. } => format!("no answer within {:?}", detail.after),
        Error::Closed { .. } => "no answer before the end".into(),
        other => other.to_string(),
    }
}

// However short probes are: a server that takes the greeting after all, as that of the TypeScript
// SDK does, must not be spoken to in the other era.
const GREETED: Duration = Duration::from_secs(2);

const ANSWERED: &str = "answered";
