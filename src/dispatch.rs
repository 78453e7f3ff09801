//! What the peer sends unasked: its notifications and requests, and who takes them.
//!
//! The reader hands everything over and never waits. Notifications go, in wire order, to one
//! dispatch thread that runs the handler, or to the program's own loop. A request runs on a thread
//! of its own, so that a person may take minutes to answer it while everything else goes on. The
//! invariant: every request that is answered at all is answered once, also when its handler panics.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Select, never};
use serde_json::Value;

use crate::error::Closed;
use crate::link::Link;
use crate::looks::Looks;
use crate::mailbox::{Mailbox, Post};
use crate::message::{Id, Notification, RpcError};
use crate::peer::Peer;
use crate::request::{Request, Responder, Ticket};
use crate::survived::Counters;
use crate::sync::{Event, earlier, lock, survive, wait_until};

/// Takes what the peer sends unasked.
///
/// Notifications come one after the other, in wire order, on one thread of the connection; a
/// handler that takes its time delays further notifications, and the lines of
/// [`Options::on_stderr`](crate::Options::on_stderr). Each request comes on a thread of its own, at
/// most 16 at once. Any method may call [`Peer::request`], block, close the connection, or panic: a
/// panic is counted, and answers a request with an internal error (-32603). The handler is dropped
/// by whichever thread of the connection lets go of it last.
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
    /// It starts when the notifications before it were handled, or 100 ms after it came, whichever
    /// is first. If the peer withdraws it, [`Request::is_cancelled`] turns true.
    fn request(&self, peer: &Peer, request: Request) -> Result<Value, RpcError> {
        let _ = peer;
        Err(RpcError::method_not_found(request.method()))
    }

    /// Takes a notification. The default ignores it.
    fn notification(&self, peer: &Peer, notification: Notification) {
        let _ = (peer, notification);
    }

    /// Learns that so many notifications were dropped at this place in their order, because the
    /// handler was too slow and their queue was full. The default ignores it.
    fn lagged(&self, peer: &Peer, lost: u64) {
        let _ = (peer, lost);
    }

    /// Learns that the connection has ended, once, after the last notification. The default ignores
    /// it. The end of a process whose stdout another process keeps open is found by whoever waits
    /// for an answer, notifies, or asks [`Peer::closed`]; until then nothing is told here.
    fn closed(&self, why: &Closed) {
        let _ = why;
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
    lines: Mailbox<String, ()>,
    on_stderr: Option<OnStderr>,
    /// How many notifications have been handled, or dropped; a request waits for those before it.
    handled: Mutex<u64>,
    progress: Condvar,
    requests: Mutex<Requests>,
    /// Of the program's own loop: when it looks at the process next, and whether it was told of the
    /// end, behind which nothing comes.
    looks: Mutex<Looks>,
    ended_told: AtomicBool,
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
            looks: Mutex::new(Looks::new()),
            ended_told: AtomicBool::new(false),
        })
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whether there is anything for the dispatch thread to do.
    pub(crate) fn needs_thread(&self) -> bool {
        matches!(self.taker, Taker::Handler(_)) || self.on_stderr.is_some()
    }

    // From the reader and the stderr thread; none of these blocks or runs user code.

    /// The stderr thread's work: keeps the tail, and queues each line for the callback if there is
    /// one.
    pub(crate) fn drain_stderr(&self, pipe: Box<dyn Read + Send>) {
        if let Some(tail) = &self.peer.link.tail {
            let on_line = self.on_stderr.as_ref().map(|_| |line| self.line(line));
            tail.drain(pipe, on_line);
        }
        self.lines_ended();
    }

    fn line(&self, line: String) {
        let cost = line.len() + size_of::<String>();
        let dropped = self.lines.push(line, cost);
        self.counters().dropped_stderr_lines.add(dropped);
    }

    pub(crate) fn lines_ended(&self) {
        self.lines.end(());
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

    /// Takes in a request: it is refused, starts, or waits.
    pub(crate) fn request(self: &Arc<Self>, request: Request, responder: Responder) {
        let has_handler = match self.taker {
            Taker::Nobody => {
                return self.refuse(responder, RpcError::method_not_found(request.method()));
            }
            Taker::Handler(_) => true,
            Taker::Queue => false,
        };
        let cost = request.cost();
        let mut requests = lock(&self.requests);
        requests.open.retain(|ticket| ticket.strong_count() > 0);
        let starts = has_handler && requests.running < MAX_RUNNING;
        if !starts && !requests.has_room(cost) {
            drop(requests);
            let error = RpcError::new(RpcError::INTERNAL_ERROR, "too many requests are waiting");
            return self.refuse(responder, error);
        }
        requests.open.push(Arc::downgrade(request.ticket()));
        let job = Job {
            request,
            responder,
            came: Instant::now(),
            after: requests.notified,
        };
        if starts {
            requests.running += 1;
            drop(requests);
            return self.start(job);
        }
        requests.waiting_count += 1;
        requests.waiting_bytes += cost;
        if has_handler {
            requests.waiting.push_back(job);
        } else {
            drop(requests);
            // It costs nothing there because it is bounded here, and must never be dropped
            // silently.
            let incoming = Incoming::Request(job.request, job.responder);
            self.backlog.push(incoming, 0);
        }
    }

    fn refuse(&self, responder: Responder, error: RpcError) {
        self.counters().refused_requests.bump();
        responder.answer_now(Err(error));
    }

    /// Marks a request as withdrawn by the peer; one that is unknown or answered is ignored. One
    /// that still waits for a thread is settled here, as its handlers may all take minutes.
    pub(crate) fn withdrawn(&self, id: &Id) {
        let mut requests = lock(&self.requests);
        // The first that is meant; a peer that reuses ids withdraws its oldest.
        let mut open = requests.open.iter().filter_map(Weak::upgrade);
        let Some(ticket) = open.find(|ticket| ticket.withdraw(id)) else {
            return self.counters().unknown_withdrawals.bump();
        };
        let is_it = |job: &Job| Arc::ptr_eq(job.request.ticket(), &ticket);
        let at = requests.waiting.iter().position(is_it);
        if let Some(job) = at.and_then(|at| requests.waiting.remove(at)) {
            requests.taken(job.request.cost());
            drop(requests);
            job.responder.answer_withdrawn();
        }
    }

    // The requests' own threads.

    fn start(self: &Arc<Self>, job: Job) {
        let dispatcher = self.clone();
        // Kept outside of the closure, which is dropped with the job if the system refuses the
        // thread: the responder's drop answers then, and the count below says so.
        let work = move || dispatcher.work(job);
        // Detached: it ends with its handler, which may take minutes and owes nobody anything by
        // then.
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
            requests.taken(next.request.cost());
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
            return responder.answer_withdrawn();
        }
        let outcome = self.guard(|| handler.request(&self.peer, request));
        responder.answer(outcome.unwrap_or_else(|| {
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

    /// Hands notifications to the handler and lines to their callback, until both have ended or the
    /// connection was closed.
    pub(crate) fn dispatch(&self) {
        let link = &self.peer.link;
        let (mut told, mut lines_over) = (false, self.on_stderr.is_none());
        // The queue is the program's own where it has asked for it.
        let has_handler = matches!(self.taker, Taker::Handler(_));
        while !(link.left().is_fired() || told && lines_over) {
            // Asked before the queues are: what came before the end is in them by then.
            let ended = link.has_ended();
            if let Some(post) = has_handler.then(|| self.backlog.pop()).flatten() {
                // Nothing comes after the handler was told of the end.
                if told {
                    self.drop_post(&post);
                } else {
                    self.deliver(post);
                }
                continue;
            }
            match self.lines.pop() {
                Some(Post::End(())) => lines_over = true,
                Some(post) => self.deliver_line(post),
                None if ended && !told => {
                    told = true;
                    self.tell_end();
                }
                None => {
                    let signal = if told { link.left() } else { link.ended() };
                    self.listen(has_handler, !lines_over, signal, None);
                }
            }
        }
        // Whoever closes does not wait for a slow handler; what it did not get to is counted.
        while let Some(post) = has_handler.then(|| self.backlog.pop()).flatten() {
            self.drop_post(&post);
        }
        while let Some(post) = self.lines.pop() {
            self.counters()
                .dropped_stderr_lines
                .add(u64::from(matches!(post, Post::Item(_))));
        }
        if !told {
            self.tell_end();
        }
    }

    fn drop_post(&self, post: &Post<Incoming, Infallible>) {
        let lost = u64::from(matches!(post, Post::Item(_)));
        self.counters().dropped_notifications.add(lost);
    }

    fn tell_end(&self) {
        if let (Taker::Handler(handler), Some(why)) = (&self.taker, self.peer.link.closed()) {
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

    fn deliver_line(&self, post: Post<String, ()>) {
        if let (Some(on_stderr), Post::Item(line)) = (&self.on_stderr, post) {
            self.guard(|| on_stderr(&line));
        }
    }

    /// Runs the user's code; a panic is counted. What it leaves behind in the handler is the
    /// handler's: nothing of ours is shared with it.
    fn guard<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        let done = survive(run);
        self.counters()
            .handler_panics
            .add(u64::from(done.is_none()));
        done
    }

    // The program's own loop.

    /// Takes what came next, waiting until the given time; at the end of the connection, says so
    /// each time.
    pub(crate) fn take(&self, until: Option<Instant>) -> Option<Incoming> {
        let link = &self.peer.link;
        // Where there is a handler, what comes is for it alone.
        let is_ours = matches!(self.taker, Taker::Queue);
        loop {
            if self.ended_told.load(Ordering::SeqCst) {
                return Some(Incoming::Closed(link.why_closed()));
            }
            // Asked before the queue is: what came before the end is in it by then.
            let ended = link.has_ended();
            match is_ours.then(|| self.backlog.pop()).flatten() {
                Some(Post::Item(incoming)) => {
                    if let Incoming::Request(request, _) = &incoming {
                        lock(&self.requests).taken(request.cost());
                    }
                    return Some(incoming);
                }
                Some(Post::Lost(lost)) => return Some(Incoming::Lost(lost)),
                None => {}
            }
            if ended {
                self.ended_told.store(true, Ordering::SeqCst);
                continue;
            }
            let now = Instant::now();
            let look = lock(&self.looks).look(link);
            if until.is_some_and(|until| until <= now) {
                return None;
            }
            self.listen(is_ours, false, link.ended(), earlier(until, look));
        }
    }

    /// Waits until something came, or the signal, or the given time.
    fn listen(&self, to_backlog: bool, to_lines: bool, signal: &Event, until: Option<Instant>) {
        let never = never();
        let backlog = if to_backlog {
            self.backlog.bell()
        } else {
            &never
        };
        let lines = if to_lines { self.lines.bell() } else { &never };
        let mut select = Select::new();
        select.recv(backlog);
        select.recv(lines);
        select.recv(signal.receiver());
        let ready = match until {
            Some(until) => select.ready_deadline(until).ok(),
            None => Some(select.ready()),
        };
        // A ring that was heard is taken off; a signal stays.
        let _ = match ready {
            Some(0) => backlog.try_recv().is_ok(),
            Some(1) => lines.try_recv().is_ok(),
            _ => false,
        };
    }

    fn counters(&self) -> &Counters {
        &self.peer.link.counters
    }
}

impl Requests {
    /// One request may always wait, or one over the bound could never be answered.
    fn has_room(&self, cost: usize) -> bool {
        self.waiting_count == 0
            || (self.waiting_count < MAX_WAITING && self.waiting_bytes + cost <= MAX_WAITING_BYTES)
    }

    fn taken(&mut self, cost: usize) {
        self.waiting_count -= 1;
        self.waiting_bytes -= cost;
    }
}

// A person may need minutes for each; more at once than this is a peer out of control.
const MAX_RUNNING: usize = 16;
const MAX_WAITING: usize = 64;
const MAX_WAITING_BYTES: usize = 8 << 20;

// How long a request waits for the notifications before it, one of which may itself wait for the
// peer.
const TURN: Duration = Duration::from_millis(100);
