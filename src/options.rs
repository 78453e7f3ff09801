//! Every knob of a connection, with its default.
//!
//! [`Options`] is a plain value that is built, cloned and kept; starting a connection is in
//! `connection.rs`. Every limit is a setting, in bytes or as a `Duration`, of which any value is
//! safe and `Duration::MAX` means none.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::child::{ProcessGroup, Stderr, Waits};
use crate::dialect::Dialect;
use crate::dispatch::{Handler, OnStderr, Taker};
use crate::framing::Framing;
use crate::link::Limits;
use crate::message::{Notification, RpcError};
use crate::peer::Peer;
use crate::request::Request;

/// How a connection is made.
///
/// ```no_run
/// use landline::{ChildSpec, Framing, Options};
/// use std::time::Duration;
///
/// let server = Options::new()
///     .framing(Framing::ContentLength)
///     .request_timeout(Duration::from_secs(5))
///     .on_notification(|_peer, notification| drop(notification))
///     .spawn(&ChildSpec::new("my-language-server")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) framing: Framing,
    pub(crate) dialect: Dialect,
    pub(crate) group: ProcessGroup,
    pub(crate) stderr: Stderr,
    pub(crate) stderr_tail: usize,
    pub(crate) on_stderr: Option<OnStderr>,
    pub(crate) frame_limit: usize,
    pub(crate) outgoing_limit: usize,
    pub(crate) limits: Limits,
    closures: Closures,
    taking: Taking,
}

#[derive(Clone)]
enum Taking {
    /// The closures, or nobody if there are none.
    Closures,
    Handler(Arc<dyn Handler>),
    Queue,
}

type OnRequest = dyn Fn(&Peer, Request) -> Result<Value, RpcError> + Send + Sync;
type OnNotification = dyn Fn(&Peer, Notification) + Send + Sync;

/// The handler that single closures make up.
#[derive(Clone, Default)]
struct Closures {
    request: Option<Arc<OnRequest>>,
    notification: Option<Arc<OnNotification>>,
}

impl Handler for Closures {
    fn request(&self, peer: &Peer, request: Request) -> Result<Value, RpcError> {
        match &self.request {
            Some(on_request) => on_request(peer, request),
            None => Err(RpcError::method_not_found(request.method())),
        }
    }

    fn notification(&self, peer: &Peer, notification: Notification) {
        if let Some(on_notification) = &self.notification {
            on_notification(peer, notification);
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Takes every default.
    pub fn new() -> Self {
        let steps = |wait, for_threads| Waits {
            after_stdin: wait,
            after_term: wait,
            after_kill: wait,
            for_threads,
        };
        Options {
            framing: Framing::Lines,
            dialect: Dialect::new(),
            group: ProcessGroup::Own,
            stderr: Stderr::Capture,
            stderr_tail: 64 << 10,
            on_stderr: None,
            frame_limit: 64 << 20,
            outgoing_limit: 16 << 20,
            limits: Limits {
                total: Duration::from_secs(60),
                idle: Duration::MAX,
                human: Duration::from_secs(600),
                notifications: 8 << 20,
                replies: 1 << 20,
                reply: Duration::from_secs(10),
                // Threads that own free pipes end in microseconds, but on a busy machine they may
                // have to wait for a processor, and a close that has no patience would report the
                // pipes as held.
                close: steps(Duration::from_secs(2), Duration::from_secs(1)),
                // Nobody reads a drop's report, and all four steps have to stay under a second.
                drop: steps(Duration::from_millis(250), Duration::from_millis(100)),
            },
            closures: Closures::default(),
            taking: Taking::Closures,
        }
    }

    /// Sets how messages are told apart on the pipes. The default is [`Framing::Lines`], as MCP has
    /// it; LSP has [`Framing::ContentLength`].
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Sets the dialect. The default is bare JSON-RPC 2.0.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets the total limit of calls that do not set their own. The default is 60 seconds.
    #[must_use]
    pub fn request_timeout(mut self, total: Duration) -> Self {
        self.limits.total = total;
        self
    }

    /// Sets the idle limit of calls that do not set their own: how long a call may go without a
    /// notification that belongs to it. The default is none.
    #[must_use]
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.limits.idle = idle;
        self
    }

    /// Sets for how long one question to a person may stop the clocks. The default is 10 minutes.
    #[must_use]
    pub fn human_timeout(mut self, human: Duration) -> Self {
        self.limits.human = human;
        self
    }

    /// Sets how long a peer that reads nothing may leave an answer to one of its requests waiting
    /// for room among the replies before the connection is given up; a peer that takes a frame, or
    /// 64 KiB of one, in that time is waited for. Only the thread that answers waits. The default
    /// is 10 seconds.
    #[must_use]
    pub fn reply_timeout(mut self, limit: Duration) -> Self {
        self.limits.reply = limit;
        self
    }

    /// Sets the waits of [`close`](Peer::close): from its begin, in which what is queued is
    /// written, stdin is closed and the process may end; and after SIGTERM. The default is 2
    /// seconds each; zero is allowed.
    #[must_use]
    pub fn close_waits(mut self, after_stdin: Duration, after_term: Duration) -> Self {
        self.limits.close.after_stdin = after_stdin;
        self.limits.close.after_term = after_term;
        self
    }

    /// Sets the same waits for a connection that is dropped without a close. The default is 0.25
    /// seconds each, which keeps a drop under a second.
    #[must_use]
    pub fn drop_waits(mut self, after_stdin: Duration, after_term: Duration) -> Self {
        self.limits.drop.after_stdin = after_stdin;
        self.limits.drop.after_term = after_term;
        self
    }

    /// Sets the frame limit, in bytes of JSON, for both directions. What comes larger is discarded
    /// and fails the call it answers; what is to be sent larger is refused. The default is 64 MiB.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// Sets how many bytes of requests and notifications wait for the peer to read before callers
    /// wait for room. One frame may always wait. The default is 16 MiB.
    #[must_use]
    pub fn outgoing_limit(mut self, bytes: usize) -> Self {
        self.outgoing_limit = bytes;
        self
    }

    /// Sets how many bytes of replies and cancellations wait for the peer to read; one may always
    /// wait. Beyond it the connection is given up, at once for what nobody can wait with, such as a
    /// cancellation, and after [`reply_timeout`](Self::reply_timeout) for a handler's reply. The
    /// default is 1 MiB.
    #[must_use]
    pub fn replies_limit(mut self, bytes: usize) -> Self {
        self.limits.replies = bytes;
        self
    }

    /// Sets how many bytes of notifications wait for each of their readers: the handler or the
    /// program's loop, the line callback, and the caller of each call. At the bound the oldest
    /// goes, and the reader is told. The default is 8 MiB.
    #[must_use]
    pub fn notifications_limit(mut self, bytes: usize) -> Self {
        self.limits.notifications = bytes;
        self
    }

    /// Sets in which process group the child runs. The default is one of its own.
    #[must_use]
    pub fn process_group(mut self, group: ProcessGroup) -> Self {
        self.group = group;
        self
    }

    /// Sets what becomes of the child's stderr. The default is to capture its tail.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Sets how many bytes of stderr are kept for errors to quote. The default is 64 KiB.
    #[must_use]
    pub fn stderr_tail(mut self, bytes: usize) -> Self {
        self.stderr_tail = bytes;
        self
    }

    /// Sets a callback for each line of a captured stderr, without control characters and line end.
    /// It runs on the dispatch thread and cannot stall the drain: lines that it is too slow for are
    /// dropped and counted.
    #[must_use]
    pub fn on_stderr(mut self, on_line: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(on_line));
        self
    }

    /// Sets the handler of what the peer sends unasked, in place of any other. Without one,
    /// requests are refused (-32601) and notifications counted.
    #[must_use]
    pub fn handler(mut self, handler: impl Handler) -> Self {
        self.closures = Closures::default();
        self.taking = Taking::Handler(Arc::new(handler));
        self
    }

    /// Sets a closure that answers the peer's requests, in place of a handler or queue; see
    /// [`Handler::request`].
    #[must_use]
    pub fn on_request(
        mut self,
        on_request: impl Fn(&Peer, Request) -> Result<Value, RpcError> + Send + Sync + 'static,
    ) -> Self {
        self.closures.request = Some(Arc::new(on_request));
        self.taking = Taking::Closures;
        self
    }

    /// Sets a closure that takes the peer's notifications, in place of a handler or queue; see
    /// [`Handler::notification`].
    #[must_use]
    pub fn on_notification(
        mut self,
        on_notification: impl Fn(&Peer, Notification) + Send + Sync + 'static,
    ) -> Self {
        self.closures.notification = Some(Arc::new(on_notification));
        self.taking = Taking::Closures;
        self
    }

    /// Queues what the peer sends unasked for a program that runs its own loop, in place of a
    /// handler: see [`Connection::next_incoming`](crate::Connection::next_incoming).
    #[must_use]
    pub fn queue_incoming(mut self) -> Self {
        self.closures = Closures::default();
        self.taking = Taking::Queue;
        self
    }

    pub(crate) fn taker(&self) -> Taker {
        match &self.taking {
            Taking::Closures => match self.closures {
                Closures {
                    request: None,
                    notification: None,
                } => Taker::Nobody,
                _ => Taker::Handler(Arc::new(self.closures.clone())),
            },
            Taking::Handler(handler) => Taker::Handler(handler.clone()),
            Taking::Queue => Taker::Queue,
        }
    }
}

/// Shows the settings that are data.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("framing", &self.framing)
            .field("dialect", &self.dialect)
            .field("process_group", &self.group)
            .field("stderr", &self.stderr)
            .field("stderr_tail", &self.stderr_tail)
            .field("frame_limit", &self.frame_limit)
            .field("outgoing_limit", &self.outgoing_limit)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
