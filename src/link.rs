//! What all who hold a live connection share: the pending calls, the outgoing queue, the process,
//! and the first cause of the end.
//!
//! Callers enter their calls here, the reader finds them again by id, and whoever learns first that
//! the connection is over says so here, once. The invariant: a call that was entered is taken out
//! exactly once, by its answer, by its caller giving up, or by the end, and whoever takes it out
//! ends it. Where two locks are held at once, that of the calls is taken before that of the queue.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::child::{Child, Exit, Step, Tail, Waits};
use crate::clocks::Clocks;
use crate::crew::Crew;
use crate::dialect::Dialect;
use crate::error::{Cause, Closed, Delivery, Error, Limit, Phase, Timeout};
use crate::framing::{Encoded, FrameError};
use crate::mailbox::Mailbox;
use crate::message::Encoder;
use crate::outbox::{Outbox, Refused, Sent};
use crate::pending::{CallEnd, Inbox, Pending};
use crate::survived::Counters;
use crate::sync::{Event, after, lock, wait_until};

/// The limits of a connection, as the options set them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) total: Duration,
    pub(crate) idle: Duration,
    pub(crate) human: Duration,
    /// Bytes of notifications waiting for one reader: a call's caller, the handler, or the program.
    pub(crate) notifications: usize,
    pub(crate) replies: usize,
    /// How long a peer that reads nothing at all may leave a handler's reply waiting for room.
    pub(crate) reply: Duration,
    pub(crate) close: Waits,
    pub(crate) drop: Waits,
}

/// Tells how a connection was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// How the process ended; `None` where there is no process, or where it was not seen to end
    /// even after SIGKILL, because the kernel holds it.
    pub exit: Option<Exit>,
    /// The step of the closing ladder that ended it.
    pub step: Step,
    /// A process that left the child's group, or the other side of a connection without a process,
    /// still keeps a pipe open: one thread and one descriptor for each such pipe wait until it
    /// ends.
    pub pipes_held: bool,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exit {
            Some(exit) => write!(f, "{exit}, {}", self.step)?,
            None => write!(f, "{}", self.step)?,
        }
        if self.pipes_held {
            f.write_str("; someone else keeps a pipe open")?;
        }
        Ok(())
    }
}

/// The shared state of a connection.
pub(crate) struct Link {
    pub(crate) encoder: Encoder,
    pub(crate) limits: Limits,
    pub(crate) outbox: Outbox,
    pub(crate) counters: Counters,
    pub(crate) clocks: Clocks,
    pub(crate) child: Option<Child>,
    pub(crate) tail: Option<Tail>,
    dialect: RwLock<Arc<Dialect>>,
    calls: Mutex<Pending>,
    /// The first cause of the end.
    closed: OnceLock<Arc<Closed>>,
    /// The peer reads no more, but may still answer what it has read.
    input_closed: OnceLock<Arc<Closed>>,
    /// Fired by the end.
    ended: Event,
    heard: AtomicBool,
    /// Counts reads of the peer's output, so that a looker can tell whether the pipe is still
    /// draining. Odd while the reader waits for more, and when it has done.
    reads: AtomicU64,
    draining: Mutex<Option<Draining>>,
    pub(crate) io_threads: Crew,
    pub(crate) dispatch_thread: Crew,
    closing: Mutex<Closing>,
    closed_up: Condvar,
    /// Fired by the close, when its handlers have had their time.
    left: Event,
}

/// Shows where the connection stands, and nothing of what is queued: params are where secrets live.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("pid", &self.child.as_ref().map(Child::pid))
            .field("pending", &lock(&self.calls).len())
            .field("closed", &self.closed())
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Closing {
    begun: bool,
    report: Option<Ended>,
}

/// What is known of a pipe whose process has ended.
#[derive(Debug)]
struct Draining {
    seen: Instant,
    reads: u64,
    quiet_since: Instant,
}

impl Link {
    pub(crate) fn new(
        encoder: Encoder,
        limits: Limits,
        outbox: Outbox,
        dialect: Dialect,
        child: Option<Child>,
        tail: Option<Tail>,
    ) -> Self {
        Link {
            encoder,
            limits,
            outbox,
            counters: Counters::default(),
            clocks: Clocks::default(),
            child,
            tail,
            dialect: RwLock::new(Arc::new(dialect)),
            calls: Mutex::new(Pending::new()),
            closed: OnceLock::new(),
            input_closed: OnceLock::new(),
            ended: Event::new(),
            heard: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            draining: Mutex::default(),
            io_threads: Crew::new(),
            dispatch_thread: Crew::new(),
            closing: Mutex::default(),
            closed_up: Condvar::new(),
            left: Event::new(),
        }
    }

    pub(crate) fn dialect(&self) -> Arc<Dialect> {
        self.dialect
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_dialect(&self, dialect: Dialect) {
        *self.dialect.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(dialect);
    }

    /// Why no further call can succeed, if that is so.
    pub(crate) fn closed(&self) -> Option<&Arc<Closed>> {
        self.closed.get().or_else(|| self.input_closed.get())
    }

    /// Whether the connection has ended: nothing that comes from the peer matters any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.closed.get().is_some()
    }

    /// Is fired once the connection has ended.
    pub(crate) fn ended(&self) -> &Event {
        &self.ended
    }

    /// Is fired once the connection was closed: its handlers are not waited for any more.
    pub(crate) fn left(&self) -> &Event {
        &self.left
    }

    // The pending calls.

    /// Enters a new call, so that its answer and its notifications find it before its frame is
    /// queued.
    pub(crate) fn enter(&self) -> Result<(u64, Arc<Inbox>), Arc<Closed>> {
        let inbox = Arc::new(Mailbox::new(self.limits.notifications));
        let id = lock(&self.calls).enter(&inbox);
        match id {
            Some(id) => Ok((id, inbox)),
            None => Err(self.why_closed()),
        }
    }

    /// Finds a pending call, for a notification that belongs to it.
    pub(crate) fn pending(&self, id: u64) -> Option<Arc<Inbox>> {
        lock(&self.calls).get(id).cloned()
    }

    /// Takes out a call that is answered. `None` counts the answer as what it is.
    pub(crate) fn take_answered(&self, id: u64) -> Option<Arc<Inbox>> {
        let mut calls = lock(&self.calls);
        let inbox = calls.take(id);
        if inbox.is_none() {
            calls.stray_answer(id, &self.counters).bump();
        }
        inbox
    }

    /// Takes out the one pending call, if there is exactly one.
    pub(crate) fn take_lone(&self) -> Option<Arc<Inbox>> {
        lock(&self.calls).take_lone()
    }

    /// Takes out a call without counting: its request was never queued, or a frame that cannot be
    /// used names it.
    pub(crate) fn retract(&self, id: u64) -> Option<Arc<Inbox>> {
        lock(&self.calls).take(id)
    }

    /// Takes out a call that its caller gives up, and tells the peer unless nothing of it was sent
    /// or the caller wants it quiet. Never blocks. `None`: someone else took the call out and is
    /// ending it.
    pub(crate) fn give_up(&self, id: u64, quiet: bool) -> Option<Delivery> {
        let mut calls = lock(&self.calls);
        calls.take(id)?;
        if self.outbox.withdraw(id) {
            return Some(Delivery::NotSent);
        }
        calls.remember(id);
        drop(calls);
        if !quiet {
            self.tell_cancelled(id);
        }
        Some(Delivery::MaybeRun)
    }

    /// Asks the peer to cancel a pending call, behind its request if that is still queued.
    pub(crate) fn ask_to_cancel(&self, id: u64) {
        if self.pending(id).is_none() {
            return;
        }
        let frame = self.cancellation(id);
        if let Some(frame) = frame.and_then(|frame| self.outbox.send_behind(id, frame)) {
            self.send_urgent(frame, Duration::ZERO);
        }
    }

    /// Tells the peer that a call whose request was taken is of no use any more.
    fn tell_cancelled(&self, id: u64) {
        if let Some(frame) = self.cancellation(id) {
            self.send_urgent(frame, Duration::ZERO);
        }
    }

    /// How the dialect tells that a call is of no use any more.
    fn cancellation(&self, id: u64) -> Option<Encoded> {
        let dialect = self.dialect();
        let cancel = dialect.cancel_calls.as_ref()?;
        let params: serde_json::Map<_, _> =
            [(cancel.member.clone(), id.into())].into_iter().collect();
        // Neither can be over the frame limit in earnest; if it is, nothing can be told.
        self.encoder.call(None, &cancel.method, &params).ok()
    }

    /// Wakes every caller, so that each looks at the clock again.
    pub(crate) fn wake_callers(&self) {
        lock(&self.calls).inboxes().for_each(|inbox| inbox.ring());
        self.outbox.recheck();
    }

    // What goes out unasked.

    /// Queues a reply, or an array of them, without blocking.
    pub(crate) fn reply(&self, json: &[u8]) {
        self.send_reply(json, Duration::ZERO);
    }

    /// Queues a reply from a thread that may wait for room, as long as the peer reads at all.
    pub(crate) fn reply_patiently(&self, json: &[u8]) {
        self.send_reply(json, self.limits.reply);
    }

    fn send_reply(&self, json: &[u8], patience: Duration) {
        let sent = match self.encoder.raw(json) {
            Ok(frame) => self.send_urgent(frame, patience),
            // Whoever made the reply checked its size; only a limit below an empty reply's comes
            // here.
            Err(_) => Sent::Dropped,
        };
        if sent == Sent::Dropped && !self.has_ended() {
            self.counters.unanswered_requests.bump();
        }
    }

    fn send_urgent(&self, frame: Encoded, patience: Duration) -> Sent {
        let sent = self.outbox.send_urgent(frame, patience);
        if sent == Sent::Unread {
            let limit = self.limits.replies;
            let exit = self.child.as_ref().and_then(Child::look);
            self.end(exit.map_or(Cause::RepliesUnread { limit }, Cause::Exited));
        }
        sent
    }

    // The end.

    pub(crate) fn note_message(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    pub(crate) fn note_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the peer has sent any message.
    pub(crate) fn heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// Ends the connection, if it has not ended before: the first cause is kept, every pending call
    /// ends, requests still queued are withdrawn, and nothing enters the queue any more.
    pub(crate) fn end(&self, cause: Cause) {
        if self.has_ended() {
            return;
        }
        let why = Arc::new(self.explain(cause));
        // The first cause is settled under this lock, or two could be told to two callers.
        let mut calls = lock(&self.calls);
        // The peer may have closed its input before: callers were told so, and it stays the cause.
        let why = self.input_closed.get().cloned().unwrap_or(why);
        if self.closed.set(why.clone()).is_err() {
            return;
        }
        let pending = calls.end();
        drop(calls);
        let unsent = self.outbox.close();
        for (id, inbox) in pending {
            let delivery = if unsent.contains(&id) {
                Delivery::NotSent
            } else {
                Delivery::MaybeRun
            };
            inbox.end(CallEnd::Closed(why.clone(), delivery));
        }
        self.ended.fire();
    }

    /// The reader's last word: the output ended, or cannot be read as frames any further.
    pub(crate) fn output_ended(&self, error: Option<FrameError>) {
        match error {
            Some(error) if !matches!(error, FrameError::Io(_)) => self.end(Cause::Framing(error)),
            error => {
                // The exit and the last words on stderr belong to the reason, and usually follow at
                // once.
                let until = Instant::now() + LAST_WORDS;
                let exit = self.child.as_ref().filter(|_| self.closed.get().is_none());
                let exit = exit.and_then(|child| child.wait_until(Some(until)));
                if let Some(tail) = self.tail.as_ref().filter(|_| self.closed.get().is_none()) {
                    tail.wait_ended(until);
                }
                self.end(match (exit, error) {
                    (Some(exit), _) => Cause::Exited(exit),
                    (None, Some(error)) => Cause::Framing(error),
                    (None, None) => Cause::OutputEnded,
                });
            }
        }
    }

    /// The writer's last word: a write failed, in the middle of that call's request if it is one.
    /// Calls that the peer has read can still be answered; all others end here.
    pub(crate) fn input_ended(&self, error: std::io::Error, unfinished: Option<u64>) {
        // A peer that died says so on its output too, and with its exit status.
        self.ended.wait(LAST_WORDS);
        let exit = self.child.as_ref().and_then(Child::look);
        let cause = exit.map_or(Cause::InputClosed(error), Cause::Exited);
        let why = Arc::new(self.explain(cause));
        let why = {
            // As in `end`: it is the first cause only if there is none.
            let _calls = lock(&self.calls);
            let first = self.closed.get().is_none();
            first.then(|| self.input_closed.get_or_init(|| why))
        };
        let unsent = self.outbox.abandon();
        self.counters.unsent_notifications.add(unsent.notifications);
        // The end, where it came first, has told every call.
        let Some(why) = why else { return };
        let unsent = unsent.calls.into_iter().map(|id| (id, Delivery::NotSent));
        for (id, delivery) in unsent.chain(unfinished.map(|id| (id, Delivery::MaybeRun))) {
            if let Some(inbox) = self.retract(id) {
                inbox.end(CallEnd::Closed(why.clone(), delivery));
            }
        }
    }

    /// Looks whether the process has ended, and if so whether its pipe is empty; then the
    /// connection ends, though another process may keep that pipe open. `true`: look again soon.
    pub(crate) fn look(&self) -> bool {
        let Some(exit) = self.child.as_ref().and_then(Child::look) else {
            return false;
        };
        let now = Instant::now();
        // Odd while the reader waits for more. Otherwise it is at work on what it has read, perhaps
        // an answer.
        let reads = self.reads.load(Ordering::Relaxed);
        let mut draining = lock(&self.draining);
        let draining = draining.get_or_insert(Draining {
            seen: now,
            reads,
            quiet_since: now,
        });
        if draining.reads != reads || reads % 2 == 0 {
            (draining.reads, draining.quiet_since) = (reads, now);
        }
        if now - draining.quiet_since >= LAST_WORDS
            || (reads % 2 == 1 && now - draining.seen >= DRAIN)
        {
            self.end(Cause::Exited(exit));
        }
        true
    }

    /// Closes the connection by the ladder and tells how it went. A later closer waits for the
    /// first and gets its report; where its own waits are over before, it takes the steps of the
    /// ladder itself. A process that has ended by itself is the cause, whatever the closer gives.
    pub(crate) fn close(&self, waits: Waits, cause: Cause) -> Ended {
        if std::mem::replace(&mut lock(&self.closing).begun, true) {
            return self.close_behind(waits);
        }
        let before = self.child.as_ref().and_then(Child::look);
        self.end(before.map_or(cause, Cause::Exited));
        let (exit, step) = match (&self.child, before) {
            (_, Some(exit)) => (Some(exit), Step::AlreadyEnded),
            (Some(child), None) => child.end(waits),
            (None, None) => {
                self.io_threads.wait_gone(waits.after_stdin);
                (None, Step::StdinClosed)
            }
        };
        let pipes_held = self.pipes_held(waits.for_threads);
        self.dispatch_thread.wait_gone(HANDLER_WAIT);
        self.left.fire();
        let ended = Ended {
            exit,
            step,
            pipes_held,
        };
        lock(&self.closing).report = Some(ended);
        self.closed_up.notify_all();
        ended
    }

    fn close_behind(&self, waits: Waits) -> Ended {
        let (exit, step) = match &self.child {
            Some(child) => child.end(waits),
            None => (None, Step::StdinClosed),
        };
        // With the process gone, the first closer has only its threads to wait for; without one,
        // its wait for the peer is as long as ours.
        let wait = if self.child.is_some() {
            waits.after_kill
        } else {
            waits.after_stdin
        };
        let until = after(
            Instant::now(),
            wait.saturating_add(waits.for_threads + HANDLER_WAIT),
        );
        let mut closing = lock(&self.closing);
        while closing.report.is_none() && until.is_none_or(|until| Instant::now() < until) {
            closing = wait_until(&self.closed_up, closing, until);
        }
        closing.report.unwrap_or(Ended {
            exit,
            step,
            pipes_held: self.pipes_held(Duration::ZERO),
        })
    }

    /// Whether someone else still keeps a pipe open, once the threads that own them had their time.
    /// A reader that is at work on what it has read is none that waits for a stranger.
    fn pipes_held(&self, wait: Duration) -> bool {
        !self.io_threads.wait_gone(wait) && self.reads.load(Ordering::Relaxed) % 2 == 1
    }

    fn explain(&self, cause: Cause) -> Closed {
        Closed {
            cause,
            phase: if self.heard() {
                Phase::Running
            } else {
                Phase::Starting
            },
            stderr_tail: self.stderr_tail(),
            stray_lines: self.counters.stray_quotes(),
        }
    }

    /// Why a frame did not enter the queue.
    pub(crate) fn not_sent(&self, method: &str, refused: Refused, total: Duration) -> Error {
        let (method, delivery) = (method.into(), Delivery::NotSent);
        match refused {
            Refused::GivenUp => Error::Cancelled { method, delivery },
            Refused::Closed => Error::Closed {
                method,
                delivery,
                why: self.why_closed(),
            },
            Refused::TimedOut => Error::Timeout {
                method,
                detail: Box::new(self.timeout(Limit::Total, total, delivery)),
            },
        }
    }

    /// What is known when a time limit runs out.
    pub(crate) fn timeout(&self, limit: Limit, after: Duration, delivery: Delivery) -> Timeout {
        Timeout {
            limit,
            after,
            delivery,
            heard: self.heard(),
            stray_lines: self.counters.stray_quotes(),
            stderr_tail: self.stderr_tail(),
        }
    }

    pub(crate) fn stderr_tail(&self) -> Vec<u8> {
        self.tail
            .as_ref()
            .map_or_else(Vec::new, |tail| tail.bytes())
    }

    /// The cause of the end; for callers who know that there is one.
    pub(crate) fn why_closed(&self) -> Arc<Closed> {
        self.closed()
            .cloned()
            .unwrap_or_else(|| Arc::new(self.explain(Cause::ClosedHere)))
    }
}

// How long the end of a stream waits for what explains it: the exit, and the rest of stderr.
const LAST_WORDS: Duration = Duration::from_millis(300);

// How long a stranger that keeps writing into a dead child's pipe can put off the end.
const DRAIN: Duration = Duration::from_secs(2);

// How long a close waits for a handler to return, which may take minutes and is not ours to end:
// enough for one that is idle, and little enough for a drop to stay under a second.
const HANDLER_WAIT: Duration = Duration::from_millis(100);
