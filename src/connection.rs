//! The connection: its start, its threads, and its end.
//!
//! Takes [`Options`] and a child, or any pair of streams, and gives a [`Connection`]. Each thread
//! owns what it works on and ends by itself when its pipe or queue does; nothing here waits for one
//! without a bound.

use std::io::{self, Read, Write};
use std::ops::Deref;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::child::{Child, SpawnError, Tail};
use crate::dispatch::{Dispatcher, Incoming};
use crate::error::Cause;
use crate::framing::FrameReader;
use crate::link::Link;
use crate::message::Encoder;
use crate::options::Options;
use crate::outbox::Outbox;
use crate::peer::Peer;
use crate::reader::Reader;
use crate::spec::ChildSpec;
use crate::sync::after;
use crate::writer::write_frames;

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
    /// the process now and then: within 50 ms at first, once a second in a long wait.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use landline::{ChildSpec, Incoming, Options, RpcError};
    /// use serde_json::json;
    ///
    /// let server = Options::new().queue_incoming().spawn(&ChildSpec::new("my-server")?)?;
    /// loop {
    ///     match server.next_incoming() {
    ///         Incoming::Request(request, responder) => responder.answer(match request.method() {
    ///             "roots/list" => Ok(json!({ "roots": [] })),
    ///             other => Err(RpcError::method_not_found(other)),
    ///         }),
    ///         Incoming::Notification(notification) => println!("{}", notification.method()),
    ///         Incoming::Closed(why) => break println!("{why}"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        self.link.close(self.link.limits.drop, Cause::ClosedHere);
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
        let streams = Streams {
            reader: Box::new(pipes.stdout),
            writer: Box::new(pipes.stdin),
            stderr: pipes.stderr.map(|pipe| Box::new(pipe) as _),
        };
        self.start(Some(child), streams)
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
        let streams = Streams {
            reader: Box::new(reader),
            writer: Box::new(writer),
            stderr: None,
        };
        self.start(None, streams)
    }

    fn start(&self, child: Option<Child>, streams: Streams) -> io::Result<Connection> {
        let encoder = Encoder {
            framing: self.framing,
            limit: self.frame_limit,
        };
        let link = Arc::new(Link::new(
            encoder,
            self.limits,
            Outbox::new(self.outgoing_limit, self.limits.replies),
            self.dialect.clone(),
            child,
            streams
                .stderr
                .is_some()
                .then(|| Tail::new(self.stderr_tail)),
        ));
        let dispatcher = Dispatcher::new(link, self.taker(), self.on_stderr.clone());
        let frames = FrameReader::new(self.framing, self.frame_limit);
        // From here on, a refused thread drops the connection, which ends the child.
        let connection = Connection { dispatcher };
        start_threads(&connection.dispatcher, frames, streams)?;
        Ok(connection)
    }
}

/// The pipes of a child, or what stands for them.
struct Streams {
    reader: Box<dyn Read + Send>,
    writer: Box<dyn Write + Send>,
    stderr: Option<Box<dyn Read + Send>>,
}

fn start_threads(
    dispatcher: &Arc<Dispatcher>,
    frames: FrameReader,
    streams: Streams,
) -> io::Result<()> {
    let link = dispatcher.peer().link.clone();
    if dispatcher.needs_thread() {
        let dispatcher = dispatcher.clone();
        link.dispatch_thread
            .hire("landline-dispatch", move || dispatcher.dispatch())?;
    }
    match streams.stderr {
        Some(pipe) => {
            let dispatcher = dispatcher.clone();
            link.io_threads
                .hire("landline-stderr", move || dispatcher.drain_stderr(pipe))?;
        }
        None => dispatcher.lines_ended(),
    }
    let writing = link.clone();
    link.io_threads.hire("landline-writer", move || {
        write_frames(&writing, streams.writer);
    })?;
    let reader = Reader {
        link: link.clone(),
        dispatcher: dispatcher.clone(),
    };
    link.io_threads.hire("landline-reader", move || {
        reader.run(frames, streams.reader)
    })
}
