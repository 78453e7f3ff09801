//! [`Peer`]: calling, from wherever a handle to the connection has got to.
//!
//! The owner of a connection and its handlers call through the same few methods. A handle shares
//! the connection's state and not its life: after the end, every call through it fails with the
//! first cause.

use std::sync::Arc;
use std::time::Duration;

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;

use crate::call::{Call, CallOptions};
use crate::clocks::Mark;
use crate::dialect::Dialect;
use crate::error::{Cause, Closed, Error, Result};
use crate::link::{Ended, Link};
use crate::looks::Looks;
use crate::outbox::Outgoing;
use crate::survived::Survived;

/// A cheap handle to a connection, given to handlers; clones name the same connection.
///
/// It does not keep the connection open: when the [`Connection`](crate::Connection) is closed or
/// dropped, every call through a handle fails with [`Error::Closed`].
///
/// # Examples
///
/// ```no_run
/// use landline::{ChildSpec, Options, RpcError};
/// use serde_json::{Value, json};
///
/// let options = Options::new().on_request(|peer, request| {
///     // A handler may ask back before it answers.
///     peer.request::<Value>("details", json!({ "of": request.method() }))
///         .map_err(|error| RpcError::new(RpcError::INTERNAL_ERROR, error.to_string()))
/// });
/// let server = options.spawn(&ChildSpec::new("my-server")?)?;
/// # drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Peer {
    pub(crate) link: Arc<Link>,
}

impl Peer {
    /// Sends a request and waits for its answer, which it decodes on this thread.
    ///
    /// Params that serialise to null are left out. Blocks until the answer, the end of the
    /// connection, or the total limit, 60 seconds unless set. The type of the answer has to be
    /// named, by the variable or as `request::<T>`, and owns its data:
    /// [`Value`](serde_json::Value), `Box<RawValue>` for the text as the peer wrote it, or any type
    /// that derives `Deserialize`.
    ///
    /// # Errors
    ///
    /// - [`Error::Rpc`]: the peer answered with an error.
    /// - [`Error::Timeout`]: a limit ran out; the peer was told, if the dialect has a way.
    /// - [`Error::Closed`]: the connection ended before the answer.
    /// - [`Error::Answer`]: the answer is too large, malformed, or not of the type asked for.
    /// - [`Error::Encode`]: the params cannot be sent.
    pub fn request<R: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<R> {
        self.request_with(method, params, &CallOptions::new())
    }

    /// Sends a request with limits of its own and waits for its answer.
    ///
    /// # Errors
    ///
    /// As [`request`](Self::request), and [`Error::Cancelled`] if a token of the options was used.
    pub fn request_with<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
        options: &CallOptions,
    ) -> Result<R> {
        self.start_with(method, options, |_| params)?.wait()
    }

    /// Sends a request and gives the call in flight. Blocks only while the outgoing queue is full,
    /// and at most for the call's total limit, which begins here; dropping the [`Call`] cancels it.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Closed`], and [`Error::Encode`], each with nothing sent.
    pub fn start(&self, method: &str, params: impl Serialize) -> Result<Call> {
        self.start_with(method, &CallOptions::new(), |_| params)
    }

    /// Sends a request with limits of its own, whose params are made knowing its id: a progress
    /// token, for example. What names that id, by the routes of the dialect, then belongs to the
    /// call.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and [`Error::Cancelled`].
    pub fn start_with<P: Serialize>(
        &self,
        method: &str,
        options: &CallOptions,
        params: impl FnOnce(u64) -> P,
    ) -> Result<Call> {
        Call::start(&self.link, method, options, params)
    }

    /// Queues a notification; the writer sends it in its turn. Params that serialise to null are
    /// left out.
    ///
    /// Blocks only while the outgoing queue is full, for the connection's total limit at most.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Closed`], and [`Error::Encode`], each with nothing sent.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let link = &self.link;
        // Nobody waits for a notification, so nobody else may have seen a death behind an open
        // pipe.
        link.look();
        let frame = link
            .encoder
            .call(None, method, &params)
            .map_err(|error| Error::Encode {
                method: method.into(),
                error: Box::new(error),
            })?;
        let (start, total) = (link.clocks.mark(), link.limits.total);
        let mut looks = Looks::new();
        let sent = link.outbox.send(
            Outgoing { frame, call: None },
            || Some(link.clocks.due(start, total)),
            || looks.look(link),
        );
        sent.map_err(|refused| link.not_sent(method, refused, total))
    }

    /// Closes the connection and tells how it went. Idempotent, from any thread, handlers included;
    /// a second closer waits for the first.
    ///
    /// Pending calls end at once; queued notifications and replies are written, and stdin is closed
    /// behind them; all of that and the exit have 2 s unless set. Then it sends SIGTERM to the
    /// process group, waits (2 s unless set), sends SIGKILL, and reaps. It blocks for these waits
    /// at most, and a little more for what cannot be hurried: 0.1 s for a handler that runs, 1 s
    /// for the threads of a pipe that a process outside of the group holds, 2 s for a process that
    /// the kernel holds. What a handler answers from now on goes nowhere.
    pub fn close(&self) -> Ended {
        self.link.close(self.link.limits.close, Cause::ClosedHere)
    }

    /// Closes the connection as [`close`](Self::close) does, for a reason that every caller is told
    /// from then on: that the peer breaks the protocol on top, or gives no sign of life. Where the
    /// connection has ended before, the first cause stays.
    ///
    /// ```
    /// use landline::{ChildSpec, Connection};
    /// use serde_json::Value;
    ///
    /// let server = Connection::spawn(&ChildSpec::from_argv(["sh", "-c", "cat >/dev/null"])?)?;
    /// server.close_because("it speaks version 1");
    /// let error = server.request::<Value>("list", ()).unwrap_err();
    /// assert!(error.to_string().ends_with("closed on this side: it speaks version 1"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close_because(&self, reason: impl Into<String>) -> Ended {
        let cause = Cause::GivenUp(reason.into());
        self.link.close(self.link.limits.close, cause)
    }

    /// Why the connection ended, if it has: the first cause.
    pub fn closed(&self) -> Option<Arc<Closed>> {
        self.link.look();
        self.link.closed().cloned()
    }

    /// What the connection overlooked so far.
    pub fn survived(&self) -> Survived {
        self.link.counters.snapshot()
    }

    /// Counts a notification that a handler had no use for among the
    /// [unhandled](Survived::unhandled_notifications): for a protocol layer, whose handler takes
    /// all for closures of which none may be installed.
    pub fn note_unhandled(&self) {
        self.link.counters.unhandled_notifications.bump();
    }

    /// The last bytes of the child's stderr, raw; 64 KiB at most unless set. Empty where stderr is
    /// not captured.
    pub fn stderr_tail(&self) -> Vec<u8> {
        self.link.stderr_tail()
    }

    /// The process id of the child, where there is one. After its end it may be another process's.
    pub fn pid(&self) -> Option<u32> {
        self.link.child.as_ref().map(|child| child.pid())
    }

    /// Changes the dialect, from the next message on.
    pub fn set_dialect(&self, dialect: Dialect) {
        self.link.set_dialect(dialect);
    }

    /// Starts to measure the time that counts for the limits of calls.
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch {
            started: self.link.clocks.mark(),
            link: self.link.clone(),
        }
    }

    /// Lets every clock of the connection stand still while a person is asked: the limits of all
    /// its calls go on when the guard is dropped, or after the human limit, 10 minutes unless set.
    #[must_use = "the clocks go on when the guard is dropped"]
    pub fn stop_clocks(&self) -> ClocksStopped {
        let question = self.link.clocks.stop(self.link.limits.human);
        ClocksStopped {
            link: self.link.clone(),
            question,
        }
    }
}

/// Measures the time that counts for the limits of calls: it stands while a person is asked.
///
/// For a protocol whose one call is several requests under one limit.
#[derive(Debug)]
pub struct Stopwatch {
    link: Arc<Link>,
    started: Mark,
}

impl Stopwatch {
    /// The time that has counted since it was started.
    pub fn elapsed(&self) -> Duration {
        self.link.clocks.elapsed(self.started)
    }
}

/// While it lives, the clocks of a connection stand still.
#[derive(Debug)]
pub struct ClocksStopped {
    link: Arc<Link>,
    question: u64,
}

impl Drop for ClocksStopped {
    fn drop(&mut self) {
        self.link.clocks.resume(self.question);
        self.link.wake_callers();
    }
}
