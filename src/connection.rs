//! The connection: its start, its threads, and its end.
//!
//! Takes [`Options`] and a child, or any pair of streams, and gives a [`Connection`]. The reader
//! finds out whose each message is and moves it there; it runs no user code and waits for nobody.
//! The writer writes what the queue gives it. Both own what they work on and end by themselves when
//! their pipe does.

use std::io::{self, BufReader, Read, Write};
use std::ops::Deref;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::child::{Child, SpawnError, Tail};
use crate::dialect::{Arrays, Dialect};
use crate::dispatch::{Dispatcher, Incoming};
use crate::error::AnswerFault;
use crate::framing::{Frame, FrameReader};
use crate::json::{elements, member};
use crate::link::{CallEnd, Link};
use crate::message::{
    AnswerId, Encoder, Id, Message, Notification, Outcome, Parsed, RpcError, parse, reply, text,
};
use crate::options::Options;
use crate::outbox::Outbox;
use crate::peer::Peer;
use crate::request::Batch;
use crate::scan::{Scanner, Sighting};
use crate::spec::ChildSpec;
use crate::sync::{after, survive};
use crate::sys::block_sigpipe;

/// A connection to a peer that speaks JSON-RPC 2.0, and the owner of its process and threads.
///
/// It is used through `&self` from any number of threads; calling is what it shares with every
/// handle to it, so `request`, `notify` and `close` stand at [`Peer`], to which it dereferences.
///
/// Dropping it closes it by the same ladder as [`close`](Peer::close), with shorter waits, in under
/// a second unless they were set longer.
#[derive(Debug)]
pub struct Connection {
    dispatcher: Arc<Dispatcher>,
}

impl Connection {
    /// Starts a child with default options and connects to its standard streams.
    ///
    /// A program that contains a path separator is looked up from this process's current directory,
    /// whatever directory the child is to run in.
    ///
    /// # Errors
    ///
    /// The process did not start: see [`SpawnError`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use landline::{ChildSpec, Connection};
    /// use serde_json::{Value, json};
    ///
    /// let server = Connection::spawn(&ChildSpec::new("my-server")?.with_arg("--stdio")?)?;
    /// let tools: Value = server.request("tools/list", json!({}))?;
    /// server.close();
    /// # drop(tools);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn(spec: &ChildSpec) -> Result<Self, SpawnError> {
        Options::new().spawn(spec)
    }

    /// A handle to this connection that does not keep it open.
    pub fn peer(&self) -> Peer {
        self.dispatcher.peer().clone()
    }

    /// Waits for what the peer sends unasked, in a connection made with
    /// [`Options::queue_incoming`]. Blocks until something comes or the connection ends, which is
    /// told each time; in other connections, until the end. Like every waiting caller it looks at
    /// the process now and then, once a second at most.
    pub fn next_incoming(&self) -> Incoming {
        loop {
            // Without a time of its own it always has something to give.
            if let Some(incoming) = self.dispatcher.take(None) {
                return incoming;
            }
        }
    }

    /// Waits as [`next_incoming`](Self::next_incoming) does, for the given time at most.
    pub fn next_incoming_timeout(&self, limit: Duration) -> Option<Incoming> {
        self.dispatcher.take(after(Instant::now(), limit))
    }

    /// Takes what the peer has sent unasked, without blocking.
    pub fn try_next_incoming(&self) -> Option<Incoming> {
        self.next_incoming_timeout(Duration::ZERO)
    }
}

impl Deref for Connection {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        self.dispatcher.peer()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.link.close(self.link.limits.drop);
    }
}

impl Options {
    /// Starts a child and connects to its standard streams. Blocks for the start of the process
    /// alone.
    ///
    /// # Errors
    ///
    /// The process did not start: see [`SpawnError`].
    pub fn spawn(&self, spec: &ChildSpec) -> Result<Connection, SpawnError> {
        match spec.to_resolved_command() {
            Ok(command) => self.spawn_command(command),
            Err(source) => Err(SpawnError::Other {
                program: spec.program().to_owned(),
                source,
            }),
        }
    }

    /// Starts a command that the caller has made, perhaps with a uid or a umask, and connects to
    /// its standard streams. Its three pipes and its process group are set here.
    ///
    /// In a host that ignores SIGCHLD, std panics when a command with a uid or a `pre_exec` fails
    /// to exec. The panic is caught and told as [`SpawnError::Other`], but the host's panic hook
    /// sees it.
    ///
    /// # Errors
    ///
    /// The process did not start: see [`SpawnError`].
    pub fn spawn_command(&self, mut command: Command) -> Result<Connection, SpawnError> {
        let (child, pipes) = Child::spawn(&mut command, self.group, self.stderr)?;
        let stderr = pipes
            .stderr
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        self.start(
            Some(child),
            Box::new(pipes.stdout),
            Box::new(pipes.stdin),
            stderr,
        )
        .map_err(|source| SpawnError::thread_refused(command.get_program().to_owned(), source))
    }

    /// Connects to a peer that is no child: any pair of streams. Closing drops the writer, which
    /// must tell the peer of the end, and waits for the reader's end.
    ///
    /// # Errors
    ///
    /// The system refused a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::Options;
    /// use std::io::{BufRead, BufReader, Write};
    /// use std::os::unix::net::UnixStream;
    ///
    /// let (requests, peer_in) = UnixStream::pair()?;
    /// let (mut peer_out, answers) = UnixStream::pair()?;
    /// let peer = std::thread::spawn(move || {
    ///     let request = BufReader::new(peer_in).lines().next();
    ///     writeln!(peer_out, r#"{{"jsonrpc":"2.0","id":1,"result":"pong"}}"#)?;
    ///     request.transpose()
    /// });
    ///
    /// let server = Options::new().connect(answers, requests)?;
    /// let answer: String = server.request("ping", ())?;
    /// assert_eq!(answer, "pong");
    /// # drop(server); peer.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect(
        &self,
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
    ) -> io::Result<Connection> {
        self.start(None, Box::new(reader), Box::new(writer), None)
    }

    fn start(
        &self,
        child: Option<Child>,
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        stderr: Option<Box<dyn Read + Send>>,
    ) -> io::Result<Connection> {
        let encoder = Encoder {
            framing: self.framing,
            limit: self.frame_limit,
        };
        let outbox = Outbox::new(self.outgoing_limit, self.limits.replies);
        let tail = stderr
            .as_ref()
            .map(|_| Arc::new(Tail::new(self.stderr_tail)));
        let dialect = self.dialect.clone();
        let link = Arc::new(Link::new(
            encoder,
            self.limits,
            outbox,
            dialect,
            child,
            tail.clone(),
        ));
        let dispatcher = Dispatcher::new(link.clone(), self.taker(), self.on_stderr.clone());
        // From here on, a refused thread drops the connection, which ends the child.
        let connection = Connection {
            dispatcher: dispatcher.clone(),
        };

        if dispatcher.needs_thread() {
            let dispatcher = dispatcher.clone();
            link.dispatch_thread
                .hire("landline-dispatch", move || dispatcher.dispatch())?;
        }
        match (stderr, tail) {
            (Some(pipe), Some(tail)) => {
                let dispatcher = dispatcher.clone();
                link.io_threads.hire("landline-stderr", move || {
                    let wanted = dispatcher.wants_lines();
                    tail.drain(pipe, wanted.then_some(|line| dispatcher.line(line)));
                    dispatcher.lines_ended();
                })?;
            }
            _ => dispatcher.lines_ended(),
        }
        let writing = link.clone();
        link.io_threads
            .hire("landline-writer", move || write_frames(&writing, writer))?;
        let frames = FrameReader::new(self.framing, self.frame_limit);
        let reading = Reader {
            link: link.clone(),
            dispatcher,
        };
        link.io_threads
            .hire("landline-reader", move || reading.run(frames, reader))?;
        Ok(connection)
    }
}

/// Writes what the queue gives, each frame in one `write`, until the queue or the pipe ends; then
/// the pipe is dropped, which tells the peer of the end.
fn write_frames(link: &Link, mut writer: Box<dyn Write + Send>) {
    block_sigpipe();
    while let Some(out) = link.outbox.take() {
        let written = using(|| {
            writer.write_all(out.frame.as_bytes())?;
            writer.flush()
        });
        if let Err(error) = written {
            drop(writer);
            return link.input_ended(error, out.call);
        }
    }
}

/// Uses a stream of the caller's; its panic is a failure like any other, and must not take the
/// thread away that all calls depend on.
fn using<T>(stream: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    survive(stream).unwrap_or_else(|| Err(io::Error::other("the stream panicked")))
}

/// What the reader thread owns.
struct Reader {
    link: Arc<Link>,
    dispatcher: Arc<Dispatcher>,
}

/// Counts the reads of a stream, so that a caller who looks can tell whether anything still comes.
struct Counted {
    inner: Box<dyn Read + Send>,
    link: Arc<Link>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.link.note_read();
        let read = using(|| self.inner.read(buf));
        self.link.note_read();
        read
    }
}

impl Reader {
    fn run(&self, mut frames: FrameReader, inner: Box<dyn Read + Send>) {
        let mut input = BufReader::with_capacity(
            BUFFER,
            Counted {
                inner,
                link: self.link.clone(),
            },
        );
        let error = loop {
            match frames.next(&mut input) {
                Ok(Some(frame)) if !self.link.has_ended() => self.frame(frame),
                Ok(Some(_)) | Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        self.link.output_ended(error);
        // A peer that still writes must not be stopped by a full pipe on its way to its end.
        let _ = io::copy(&mut input, &mut io::sink());
        if let Some(child) = &self.link.child {
            child.wait();
        }
    }

    fn frame(&self, frame: Frame<'_>) {
        let counters = &self.link.counters;
        match frame {
            Frame::Body(bytes) => self.body(bytes),
            Frame::Stray(line) => counters.stray(line),
            Frame::Oversized {
                len,
                head,
                sightings,
            } => {
                counters.oversized_frames.bump();
                let limit = self.link.encoder.limit;
                if !self.fail_named(&sightings, || AnswerFault::TooLarge { len, limit }) {
                    counters.quote(head);
                }
                sightings
                    .iter()
                    .for_each(|sighting| self.refuse_oversized(sighting));
            }
            Frame::Cut { head, sightings } => {
                if !self.fail_named(&sightings, || AnswerFault::Malformed) {
                    counters.stray(head);
                }
            }
        }
    }

    fn body(&self, bytes: &[u8]) {
        let counters = &self.link.counters;
        let (text, repaired) = text(bytes);
        if let Some(parsed) = parse(&text) {
            counters.repaired_text.add(u64::from(repaired));
            return self.message(parsed, &text, None);
        }
        let dialect = self.link.dialect();
        if let Some(elements) =
            elements(&text, MAX_ELEMENTS).filter(|_| dialect.arrays != Arrays::Refuse)
        {
            counters.repaired_text.add(u64::from(repaired));
            let batch = (dialect.arrays == Arrays::Batch).then(|| Batch::new(&self.link));
            counters.deviations.add(u64::from(batch.is_none()));
            for element in elements {
                match parse(element.get()) {
                    Some(parsed) => self.message(parsed, element.get(), batch.as_ref()),
                    None => self.unreadable(element.get().as_bytes()),
                }
            }
            return;
        }
        // A log line without its line end may stand before a message.
        let glued = text.find(GLUED).filter(|at| *at > 0);
        if let Some((at, parsed)) = glued.and_then(|at| Some((at, parse(&text[at..])?))) {
            counters.repaired_text.add(u64::from(repaired));
            counters.stray(&text.as_bytes()[..at]);
            counters.deviations.bump();
            return self.message(parsed, &text[at..], None);
        }
        self.unreadable(bytes);
    }

    /// Text that is no message: it may still name the call that it should have answered.
    fn unreadable(&self, bytes: &[u8]) {
        let mut scanner = Scanner::new();
        scanner.feed(bytes);
        if !self.fail_named(&scanner.finish(), || AnswerFault::Malformed) {
            self.link.counters.stray(bytes);
        }
    }

    fn message(&self, parsed: Parsed, text: &str, batch: Option<&Arc<Batch>>) {
        let link = &self.link;
        link.note_message();
        link.counters.deviations.add(parsed.deviations);
        match parsed.message {
            Message::Response { id, outcome } => {
                let inbox = match (id, &outcome) {
                    (Some(id), _) => link.take_answered(id.call),
                    (None, Outcome::Error(_)) if link.dialect().lone_errors => link.take_lone(),
                    (None, _) => None,
                };
                if let Some(inbox) = inbox {
                    inbox.end(match outcome {
                        Outcome::Result(raw) => CallEnd::Result(raw),
                        Outcome::Error(error) => CallEnd::Rpc(error),
                        Outcome::Neither => CallEnd::Unusable(AnswerFault::Empty),
                    });
                } else if id.is_none() {
                    link.counters.unknown_answers.bump();
                    link.counters.quote(text.as_bytes());
                }
            }
            Message::Notification(notification) => self.notification(notification, &link.dialect()),
            Message::Request { id, method, params } => {
                self.dispatcher
                    .request(id, method, params, batch.cloned(), &link.dialect());
            }
        }
    }

    fn notification(&self, notification: Notification, dialect: &Dialect) {
        if let Some((cancel, _)) = &dialect.cancelled_requests {
            if notification.method == cancel.method {
                let id = notification
                    .params()
                    .and_then(|params| member(params, &[&cancel.member]));
                if let Some(id) = id.and_then(|id| Id::from_json(id.get())) {
                    self.dispatcher.withdrawn(&id);
                }
                return;
            }
        }
        for route in &dialect.routes {
            if route
                .method
                .as_ref()
                .is_some_and(|method| *method != notification.method)
            {
                continue;
            }
            let named = notification
                .params()
                .and_then(|params| member(params, &route.path));
            let call = named.and_then(|id| AnswerId::from_json(id.get()));
            if let Some(inbox) = call.and_then(|id| self.link.pending(id.call)) {
                let cost = notification.cost();
                let dropped = inbox.push(notification, cost);
                return self.link.counters.dropped_notifications.add(dropped);
            }
        }
        self.dispatcher.notification(notification);
    }

    /// Fails the pending calls that a frame which cannot be read names: it has the id of one, no
    /// method, and looks like an answer. `false`: it names none.
    fn fail_named(&self, sightings: &[Sighting], fault: impl Fn() -> AnswerFault) -> bool {
        let mut named = false;
        for sighting in sightings {
            if sighting.method || !(sighting.jsonrpc || sighting.result || sighting.error) {
                continue;
            }
            let id = sighting.id.as_deref().and_then(AnswerId::from_json);
            if let Some(inbox) = id.and_then(|id| self.link.retract(id.call)) {
                inbox.end(CallEnd::Unusable(fault()));
                named = true;
            }
        }
        named
    }

    /// Answers a request of the peer that was too large to be read: it must not wait for nothing.
    fn refuse_oversized(&self, sighting: &Sighting) {
        let id = sighting
            .id
            .as_deref()
            .filter(|_| sighting.method && sighting.jsonrpc);
        let Some(id) = id.and_then(Id::from_json) else {
            return;
        };
        if !self.link.dialect().answers_requests {
            return self.link.counters.unanswered_requests.bump();
        }
        self.link.counters.refused_requests.bump();
        let error = RpcError::new(
            RpcError::INVALID_REQUEST,
            "the request is over the frame limit",
        );
        if let Ok(json) = reply(&id, Err::<&(), _>(&error)) {
            self.link.reply(&json);
        }
    }
}

// A pipe's own capacity on Linux: one read empties it.
const BUFFER: usize = 64 << 10;

// Messages in one array: far more than calls in flight, and little enough to keep their places. A
// longer array is stray text, but for the calls that its first elements name.
const MAX_ELEMENTS: usize = 1 << 16;

// How a message begins that may stand behind other text on its line; every JSON encoder in the
// field writes the version first and without blanks.
const GLUED: &str = r#"{"jsonrpc""#;
