//! What the peer sends unasked: its notifications and requests, and who takes them.
//!
//! The reader hands everything over and never waits. Notifications go, in wire order, to one dispatch
//! thread that runs the handler, or to the program's own loop. A request runs on a thread of its own, so
//! that a person may take minutes to answer it while everything else goes on. The invariant: every
//! request that is answered at all is answered once, also when its handler panics.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Select, never};
use serde_core::Serialize;
use serde_core::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::{Call, CallOptions};
use crate::dialect::{Dialect, OnCancel};
use crate::error::{Cause, Closed, Delivery, Error, Limit, Result};
use crate::link::{Ended, Link};
use crate::mailbox::{Mailbox, Post};
use crate::message::{Id, Notification, RpcError, decode_params, reply};
use crate::outbox::{Outgoing, Refused};
use crate::survived::Survived;
use crate::sync::{after, earlier, lock, wait_until};

/// Takes what the peer sends unasked.
///
/// Notifications come one after the other, in wire order, on one thread of the connection; a handler that
/// takes its time delays only further notifications. Each request comes on a thread of its own, at most 16
/// at once. Any method may call [`Peer::request`], block, close the connection, or panic: a panic is
/// counted, and answers a request with an internal error (-32603).
///
/// ```
/// use landline::{Handler, Notification, Peer, Request, RpcError};
/// use serde_json::{Value, json};
///
/// struct Roots;
///
/// impl Handler for Roots {
///     fn request(&self, _peer: &Peer, request: Request) -> Result<Value, RpcError> {
///         match request.method() {
///             "roots/list" => Ok(json!({ "roots": [] })),
///             other => Err(RpcError::method_not_found(other)),
///         }
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Answers a request of the peer. The default refuses it: method not found (-32601).
    ///
    /// It starts when the notifications before it were handled, or 100 ms after it came, whichever is
    /// first. If the peer withdraws it, [`Request::is_cancelled`] turns true.
    fn request(&self, peer: &Peer, request: Request) -> Result<Value, RpcError> {
        let _ = peer;
        Err(RpcError::method_not_found(request.method()))
    }

    /// Takes a notification. The default ignores it.
    fn notification(&self, peer: &Peer, notification: Notification) {
        let _ = (peer, notification);
    }

    /// Learns that so many notifications were dropped at this place in their order, because the handler was
    /// too slow and their queue was full. The default ignores it.
    fn lagged(&self, peer: &Peer, lost: u64) {
        let _ = (peer, lost);
    }

    /// Learns that the connection has ended, after the last notification. The default ignores it.
    fn closed(&self, why: &Closed) {
        let _ = why;
    }
}

/// A cheap handle to a connection, given to handlers; clones name the same connection.
///
/// It does not keep the connection open: when the [`Connection`](crate::Connection) is closed or dropped,
/// every call through a handle fails with [`Error::Closed`].
#[derive(Debug, Clone)]
pub struct Peer {
    pub(crate) link: Arc<Link>,
}

impl Peer {
    /// Sends a request and waits for its answer, which it decodes on this thread.
    ///
    /// Params that serialise to null are left out. Blocks until the answer, the end of the connection, or
    /// the total limit, 60 seconds unless set.
    ///
    /// # Errors
    ///
    /// - [`Error::Rpc`]: the peer answered with an error.
    /// - [`Error::Timeout`]: a limit ran out; the peer was told.
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

    /// Sends a request and gives the call in flight. Blocks only while the outgoing queue is full.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Closed`], and [`Error::Encode`], each with nothing sent.
    pub fn start(&self, method: &str, params: impl Serialize) -> Result<Call> {
        self.start_with(method, &CallOptions::new(), |_| params)
    }

    /// Sends a request with limits of its own, whose params are made knowing its id: a progress token, for
    /// example. What names that id, by the routes of the dialect, then belongs to the call.
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

    /// Queues a notification; the writer sends it in its turn. Params that serialise to null are left out.
    ///
    /// Blocks only while the outgoing queue is full, for the connection's total limit at most.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Closed`], and [`Error::Encode`], each with nothing sent.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let link = &self.link;
        let frame = link
            .encoder
            .call(None, method, &params)
            .map_err(|error| Error::Encode {
                method: method.into(),
                error: Box::new(error),
            })?;
        let (start, total) = (link.clocks.mark(), link.limits.total);
        let sent = link.outbox.send(Outgoing { frame, call: None }, || {
            Some(link.clocks.due(start, total))
        });
        let delivery = Delivery::NotSent;
        sent.map_err(|refused| match refused {
            Refused::Closed => Error::Closed {
                method: method.into(),
                delivery,
                why: link.closed_here_at_least(),
            },
            Refused::TimedOut | Refused::GivenUp => Error::Timeout {
                method: method.into(),
                detail: Box::new(link.timeout(Limit::Total, total, delivery)),
            },
        })
    }

    /// Closes the connection and tells how it went. Idempotent, from any thread, handlers included; a second
    /// closer waits for the first.
    ///
    /// Pending calls end at once, queued notifications and replies are written, stdin is closed; then it
    /// waits (2 s unless set), sends SIGTERM to the process group, waits (2 s unless set), sends SIGKILL,
    /// and reaps. It blocks for these waits at most, and about 2 s more if the kernel holds the process.
    pub fn close(&self) -> Ended {
        self.link.close(self.link.limits.close)
    }

    /// Why the connection ended, if it has: the first cause.
    pub fn closed(&self) -> Option<Arc<Closed>> {
        self.link.closed().cloned()
    }

    /// What the connection overlooked so far.
    pub fn survived(&self) -> Survived {
        self.link.counters.snapshot()
    }

    /// The last bytes of the child's stderr, raw; 64 KiB at most unless set. Empty where stderr is not
    /// captured.
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

    /// Lets every clock of the connection stand still while a person is asked: the limits of all its calls
    /// go on when the guard is dropped, or after the human limit, 10 minutes unless set.
    #[must_use = "the clocks go on when the guard is dropped"]
    pub fn stop_clocks(&self) -> ClocksStopped {
        let question = self.link.clocks.stop(self.link.limits.human);
        ClocksStopped {
            link: self.link.clone(),
            question,
        }
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

/// A request of the peer.
#[derive(Debug)]
pub struct Request {
    method: String,
    params: Option<Box<RawValue>>,
    ticket: Arc<Ticket>,
}

impl Request {
    /// Its id, as the peer wrote it.
    pub fn id(&self) -> &Id {
        &self.ticket.id
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The params as the peer wrote them; `None` where there are none.
    pub fn params(&self) -> Option<&RawValue> {
        self.params.as_deref()
    }

    /// Decodes the params; absent ones decode as `null`.
    ///
    /// # Errors
    ///
    /// The params are not of the type asked for: an error to answer with as it is (-32602).
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        decode_params(self.params())
            .map_err(|error| RpcError::new(RpcError::INVALID_PARAMS, error.to_string()))
    }

    /// Tells whether the answer is of no use any more: the peer withdrew the request, or the connection
    /// has ended.
    pub fn is_cancelled(&self) -> bool {
        self.ticket.is_cancelled()
    }
}

/// Answers one request that was taken from the queue.
///
/// Dropping it answers with an internal error (-32603), so that the peer never waits for nothing.
#[derive(Debug)]
pub struct Responder {
    ticket: Arc<Ticket>,
    batch: Option<Arc<Batch>>,
}

impl Responder {
    /// Sends the answer. Never blocks; after the end of the connection, and after the peer withdrew the
    /// request in a dialect that wants no answer then, it does nothing.
    pub fn answer(self, outcome: Result<Value, RpcError>) {
        self.send(outcome);
    }

    fn send(&self, outcome: Result<Value, RpcError>) {
        let ticket = &self.ticket;
        if ticket.answered.swap(true, Ordering::SeqCst) {
            return;
        }
        let link = &ticket.link;
        if ticket.withdrawn.load(Ordering::SeqCst) && ticket.on_cancel == OnCancel::NoReply {
            link.counters.unanswered_requests.bump();
            return;
        }
        let too_large = || {
            let error = RpcError::new(
                RpcError::INTERNAL_ERROR,
                "the result is over the frame limit",
            );
            reply(&ticket.id, Err::<&Value, _>(&error))
        };
        let json = match reply(&ticket.id, outcome.as_ref()) {
            Ok(json) if json.len() > link.encoder.limit => too_large(),
            json => json,
        };
        match (json, &self.batch) {
            (Ok(json), Some(batch)) => lock(&batch.replies).push(json),
            (Ok(json), None) => link.reply(&json),
            (Err(_), _) => link.counters.unanswered_requests.bump(),
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.send(Err(RpcError::new(
            RpcError::INTERNAL_ERROR,
            "the request was dropped unanswered",
        )));
    }
}

/// Something the peer sent unasked, as a program that runs its own loop takes it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming {
    /// A request, and what answers it.
    Request(Request, Responder),
    /// A notification.
    Notification(Notification),
    /// So many notifications were dropped here, because their queue was full.
    Lost(u64),
    /// The connection has ended; nothing more will come.
    Closed(Arc<Closed>),
}

/// What a request's handler and its answer have in common.
struct Ticket {
    link: Arc<Link>,
    id: Id,
    on_cancel: OnCancel,
    withdrawn: AtomicBool,
    answered: AtomicBool,
}

impl Ticket {
    fn is_cancelled(&self) -> bool {
        self.withdrawn.load(Ordering::SeqCst) || self.link.closed().is_some()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The replies to the requests of one array; they go out together when the last is in.
#[derive(Debug)]
pub(crate) struct Batch {
    link: Arc<Link>,
    replies: Mutex<Vec<Vec<u8>>>,
}

impl Batch {
    pub(crate) fn new(link: &Arc<Link>) -> Arc<Self> {
        Arc::new(Batch {
            link: link.clone(),
            replies: Mutex::default(),
        })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let replies = std::mem::take(&mut *lock(&self.replies));
        if !replies.is_empty() {
            self.link
                .reply(&[b"[", replies.join(&b","[..]).as_slice(), b"]"].concat());
        }
    }
}

/// Who takes what the peer sends unasked.
pub(crate) enum Taker {
    Nobody,
    Handler(Arc<dyn Handler>),
    Queue,
}

/// The callback for lines of stderr.
pub(crate) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

/// Stands between the reader and the handlers.
pub(crate) struct Dispatcher {
    peer: Peer,
    taker: Taker,
    backlog: Mailbox<Incoming, Infallible>,
    lines: Mailbox<String, Infallible>,
    on_stderr: Option<OnStderr>,
    /// How many notifications have been handled, or dropped; a request waits for those before it.
    handled: Mutex<u64>,
    progress: Condvar,
    requests: Mutex<Requests>,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("link", &self.peer.link)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Requests {
    /// How many notifications were handed over.
    notified: u64,
    running: usize,
    waiting: VecDeque<Job>,
    /// How many wait for a thread or for the program's loop, and their size.
    waiting_count: usize,
    waiting_bytes: usize,
    open: Vec<Weak<Ticket>>,
}

/// A request on its way to its handler.
struct Job {
    request: Request,
    responder: Responder,
    came: Instant,
    /// How many notifications came before it.
    after: u64,
    cost: usize,
}

impl Dispatcher {
    pub(crate) fn new(link: Arc<Link>, taker: Taker, on_stderr: Option<OnStderr>) -> Arc<Self> {
        let limit = link.limits.notifications;
        Arc::new(Dispatcher {
            peer: Peer { link },
            taker,
            backlog: Mailbox::new(limit),
            lines: Mailbox::new(limit),
            on_stderr,
            handled: Mutex::default(),
            progress: Condvar::new(),
            requests: Mutex::default(),
        })
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whether there is anything for the dispatch thread to do.
    pub(crate) fn needs_thread(&self) -> bool {
        matches!(self.taker, Taker::Handler(_)) || self.on_stderr.is_some()
    }

    pub(crate) fn wants_lines(&self) -> bool {
        self.on_stderr.is_some()
    }

    // From the reader and the stderr thread; none of these blocks or runs user code.

    pub(crate) fn line(&self, line: String) {
        let cost = line.len() + size_of::<String>();
        self.counters()
            .dropped_stderr_lines
            .add(self.lines.push(line, cost));
    }

    pub(crate) fn notification(&self, notification: Notification) {
        if matches!(self.taker, Taker::Nobody) {
            self.counters().unhandled_notifications.bump();
            return;
        }
        lock(&self.requests).notified += 1;
        let cost = notification.cost();
        let dropped = self
            .backlog
            .push(Incoming::Notification(notification), cost);
        self.counters().dropped_notifications.add(dropped);
    }

    /// Takes in a request; `batch` collects the replies of its array.
    pub(crate) fn request(
        self: &Arc<Self>,
        id: Id,
        method: String,
        params: Option<Box<RawValue>>,
        batch: Option<Arc<Batch>>,
        dialect: &Dialect,
    ) {
        let cost =
            method.len() + params.as_ref().map_or(0, |raw| raw.get().len()) + size_of::<Job>();
        let on_cancel = dialect
            .cancelled_requests
            .as_ref()
            .map_or(OnCancel::NoReply, |(_, then)| *then);
        let ticket = Arc::new(Ticket {
            link: self.peer.link.clone(),
            id,
            on_cancel,
            withdrawn: AtomicBool::new(false),
            answered: AtomicBool::new(!dialect.answers_requests),
        });
        let responder = Responder {
            ticket: ticket.clone(),
            batch,
        };
        if !dialect.answers_requests {
            self.counters().unanswered_requests.bump();
            return;
        }
        if let Some((_, result)) = dialect
            .answered_at_once
            .iter()
            .find(|(name, _)| *name == method)
        {
            responder.answer(Ok(result.clone()));
            return;
        }
        let refuse = |responder: Responder, error| {
            self.counters().refused_requests.bump();
            responder.answer(Err(error));
        };
        if matches!(self.taker, Taker::Nobody) {
            return refuse(responder, RpcError::method_not_found(&method));
        }
        let mut requests = lock(&self.requests);
        let runs = matches!(self.taker, Taker::Handler(_)) && requests.running < MAX_RUNNING;
        let full = requests.waiting_count >= MAX_WAITING
            || (requests.waiting_bytes > 0 && requests.waiting_bytes + cost > MAX_WAITING_BYTES);
        if full && !runs {
            drop(requests);
            return refuse(responder, too_many());
        }
        requests.open.retain(|ticket| ticket.strong_count() > 0);
        requests.open.push(Arc::downgrade(&ticket));
        let request = Request {
            method,
            params,
            ticket,
        };
        let job = Job {
            request,
            responder,
            came: Instant::now(),
            after: requests.notified,
            cost,
        };
        if runs {
            requests.running += 1;
            drop(requests);
            self.start(job);
            return;
        }
        requests.waiting_count += 1;
        requests.waiting_bytes += cost;
        if matches!(self.taker, Taker::Handler(_)) {
            requests.waiting.push_back(job);
        } else {
            drop(requests);
            // It costs nothing there because it is bounded here, and must never be dropped silently.
            self.backlog
                .push(Incoming::Request(job.request, job.responder), 0);
        }
    }

    /// Marks a request as withdrawn by the peer; one that is unknown or answered is ignored.
    pub(crate) fn withdrawn(&self, id: &Id) {
        let requests = lock(&self.requests);
        let mut open = requests.open.iter().filter_map(Weak::upgrade);
        if let Some(ticket) = open.find(|t| t.id == *id && !t.answered.load(Ordering::SeqCst)) {
            ticket.withdrawn.store(true, Ordering::SeqCst);
        }
    }

    // The requests' own threads.

    fn start(self: &Arc<Self>, job: Job) {
        let dispatcher = self.clone();
        // Kept outside of the closure, which is dropped with the job if the system refuses the thread:
        // the responder's drop answers then, and the count below says so.
        let work = move || dispatcher.work(job);
        // Detached: it ends with its handler, which may take minutes and owes nobody anything by then.
        if thread::Builder::new()
            .name("landline-request".into())
            .spawn(work)
            .is_err()
        {
            lock(&self.requests).running -= 1;
            self.counters().refused_requests.bump();
        }
    }

    fn work(&self, mut job: Job) {
        loop {
            self.run(job);
            let mut requests = lock(&self.requests);
            let Some(next) = requests.waiting.pop_front() else {
                requests.running -= 1;
                return;
            };
            requests.taken(next.cost);
            job = next;
        }
    }

    fn run(&self, job: Job) {
        let Taker::Handler(handler) = &self.taker else {
            return;
        };
        self.wait_turn(job.after, job.came + TURN);
        let Job {
            request, responder, ..
        } = job;
        if request.is_cancelled() {
            let code = match request.ticket.on_cancel {
                OnCancel::Reply { code } => code,
                OnCancel::NoReply => RpcError::INTERNAL_ERROR,
            };
            return responder.answer(Err(RpcError::new(code, "the request was cancelled")));
        }
        // What a panic leaves behind in the handler is the handler's; nothing of ours is shared with it.
        let outcome = catch_unwind(AssertUnwindSafe(|| handler.request(&self.peer, request)));
        responder.answer(outcome.unwrap_or_else(|_| {
            self.counters().handler_panics.bump();
            Err(RpcError::new(
                RpcError::INTERNAL_ERROR,
                "the handler failed",
            ))
        }));
    }

    fn wait_turn(&self, after: u64, until: Instant) {
        let mut handled = lock(&self.handled);
        while *handled < after && Instant::now() < until {
            handled = wait_until(&self.progress, handled, Some(until));
        }
    }

    // The dispatch thread.

    pub(crate) fn dispatch(&self) {
        let link = &self.peer.link;
        // The queue is the program's own where it has asked for it.
        let has_handler = matches!(self.taker, Taker::Handler(_));
        loop {
            if matches!(link.closed(), Some(why) if matches!(why.cause, Cause::ClosedHere)) {
                // Whoever closes is not interested any more, and a slow handler must not hold it up.
                while let Some(post) = has_handler.then(|| self.backlog.pop()).flatten() {
                    self.counters()
                        .dropped_notifications
                        .add(u64::from(matches!(post, Post::Item(_))));
                }
                break;
            }
            if let Some(post) = has_handler.then(|| self.backlog.pop()).flatten() {
                self.deliver(post);
                continue;
            }
            if let Some(post) = self.lines.pop() {
                self.deliver_line(post);
                continue;
            }
            if link.has_ended() {
                break;
            }
            self.listen(has_handler, self.on_stderr.is_some(), None);
        }
        if let (Taker::Handler(handler), Some(why)) = (&self.taker, link.closed()) {
            self.guard(|| handler.closed(why));
        }
    }

    fn deliver(&self, post: Post<Incoming, Infallible>) {
        let Taker::Handler(handler) = &self.taker else {
            return;
        };
        let handled = match post {
            Post::Item(Incoming::Notification(notification)) => {
                self.guard(|| handler.notification(&self.peer, notification));
                1
            }
            Post::Lost(lost) => {
                self.guard(|| handler.lagged(&self.peer, lost));
                lost
            }
            // Requests do not come this way when there is a handler.
            Post::Item(_) => 0,
        };
        *lock(&self.handled) += handled;
        self.progress.notify_all();
    }

    fn deliver_line(&self, post: Post<String, Infallible>) {
        if let (Some(on_stderr), Post::Item(line)) = (&self.on_stderr, post) {
            self.guard(|| on_stderr(&line));
        }
    }

    fn guard(&self, run: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            self.counters().handler_panics.bump();
        }
    }

    // The program's own loop.

    /// Takes what came next, waiting until the given time; at the end of the connection, says so each
    /// time.
    pub(crate) fn take(&self, until: Option<Instant>) -> Option<Incoming> {
        let link = &self.peer.link;
        let mut pause = FIRST_LOOK;
        loop {
            match self.backlog.pop() {
                Some(Post::Item(incoming)) => {
                    if let Incoming::Request(request, _) = &incoming {
                        lock(&self.requests).taken(request.cost());
                    }
                    return Some(incoming);
                }
                Some(Post::Lost(lost)) => return Some(Incoming::Lost(lost)),
                None => {}
            }
            if link.has_ended() {
                return Some(Incoming::Closed(link.closed_here_at_least()));
            }
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return None;
            }
            if !self.listen(true, false, earlier(until, after(now, pause))) {
                pause = if link.look() {
                    FIRST_LOOK
                } else {
                    (pause * 2).min(LAST_LOOK)
                };
            }
        }
    }

    /// Waits until something came, or the connection ended, or the given time. `false`: the time came.
    fn listen(&self, to_backlog: bool, to_lines: bool, until: Option<Instant>) -> bool {
        let never = never();
        let backlog = if to_backlog {
            self.backlog.bell()
        } else {
            &never
        };
        let lines = if to_lines { self.lines.bell() } else { &never };
        let ended = self.peer.link.ended();
        let mut select = Select::new();
        select.recv(backlog);
        select.recv(lines);
        select.recv(ended);
        let ready = match until {
            Some(until) => select.ready_deadline(until).ok(),
            None => Some(select.ready()),
        };
        // A ring that was heard is taken off; the end stays.
        let _ = match ready {
            Some(0) => backlog.try_recv().is_ok(),
            Some(1) => lines.try_recv().is_ok(),
            _ => false,
        };
        ready.is_some()
    }

    fn counters(&self) -> &crate::survived::Counters {
        &self.peer.link.counters
    }
}

impl Requests {
    fn taken(&mut self, cost: usize) {
        self.waiting_count -= 1;
        self.waiting_bytes -= cost;
    }
}

impl Request {
    fn cost(&self) -> usize {
        self.method.len() + self.params().map_or(0, |raw| raw.get().len()) + size_of::<Job>()
    }
}

fn too_many() -> RpcError {
    RpcError::new(
        RpcError::INTERNAL_ERROR,
        "too many requests are waiting to be handled",
    )
}

// A person may need minutes for each; more at once than this is a peer out of control.
const MAX_RUNNING: usize = 16;
const MAX_WAITING: usize = 64;
const MAX_WAITING_BYTES: usize = 8 << 20;

// How long a request waits for the notifications before it, one of which may itself wait for the peer.
const TURN: Duration = Duration::from_millis(100);

// When the program's loop looks at the process, as a waiting caller does.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(1);
