//! A request in flight, as its caller holds it.
//!
//! [`Call::start`] encodes envelope and params once into one buffer on the caller's own thread,
//! enters the call, and queues the frame; waiting, decoding, and handling what belongs to the call
//! happen on the caller's thread too. The invariant: a call ends exactly once, and no way out of
//! this file leaves it pending.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::Select;
use serde_core::Serialize;
use serde_core::de::DeserializeOwned;

use crate::cancel::{CancelToken, Cancellable};
use crate::clocks::{Due, Mark};
use crate::error::{AnswerFault, Delivery, Error, Limit, Result};
use crate::json::{Decoded, decode_repairing};
use crate::link::Link;
use crate::looks::Looks;
use crate::mailbox::Post;
use crate::message::{EncodeError, Notification};
use crate::outbox::{Outgoing, Refused};
use crate::pending::{CallEnd, Inbox};
use crate::sync::{after, earlier};

/// The limits and the manner of one call, where they differ from the connection's.
///
/// ```
/// use landline::CallOptions;
/// use std::time::Duration;
///
/// let patient = CallOptions::new()
///     .timeout(Duration::from_secs(600))
///     .idle(Duration::from_secs(30));
/// ```
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    total: Option<Duration>,
    idle: Option<Duration>,
    cancel: Option<CancelToken>,
    quiet: bool,
}

impl CallOptions {
    /// Takes every limit from the connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the total limit: from the start of the call, the wait for room in the queue included,
    /// to its answer. `Duration::MAX` means none. The default is the connection's, 60 seconds
    /// unless set.
    #[must_use]
    pub fn timeout(mut self, total: Duration) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets the idle limit: how long the call may go without a notification that belongs to it,
    /// such as its progress. `Duration::MAX` means none. The default is the connection's, which is
    /// none unless set.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = Some(idle);
        self
    }

    /// Lets a token cancel the call from another thread.
    #[must_use]
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.cancel = Some(token.clone());
        self
    }

    /// Sets that the peer is not told when the call is given up, as MCP demands for `initialize`.
    /// Its late answer is counted all the same.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }
}

/// What comes to a call besides its answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Update {
    /// A notification that belongs to the call, in wire order.
    Notification(Notification),
    /// So many notifications that belong to the call were dropped here, because they came faster
    /// than they were taken.
    Lost(u64),
    /// Nothing more will come: the call has ended, and waiting says how.
    Ended,
}

/// A request in flight.
///
/// Its answer can be waited for in three forms ([`wait`](Self::wait),
/// [`wait_timeout`](Self::wait_timeout), [`try_wait`](Self::try_wait)), and what belongs to it can
/// be taken one by one before ([`next`](Self::next) and its forms). The limits of a call are looked
/// at by whoever waits for it: a call that nobody waits for costs nothing and ends by its answer,
/// the end of the connection, or its drop.
///
/// Dropping a call gives it up, like [`cancel`](Self::cancel).
///
/// # Examples
///
/// Several calls at once from one thread, the slow one with what belongs to it:
///
/// ```no_run
/// use landline::{ChildSpec, Connection, Update};
/// use serde_json::{Value, json};
/// use std::time::Duration;
///
/// let server = Connection::spawn(&ChildSpec::new("my-server")?)?;
/// let mut index = server.start("index", json!({"folder": "src"}))?;
/// let names: Value = server.request("names", ())?;
///
/// // Ask now and then, between other work, ...
/// if index.try_wait::<Value>()?.is_none() {
///     // ... or follow it to its end.
///     while let Update::Notification(progress) = index.next() {
///         println!("{:?}", progress.params());
///     }
///     let found: Value = index.wait()?;
/// }
/// # drop(names);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Call {
    link: Arc<Link>,
    id: u64,
    method: Box<str>,
    inbox: Arc<Inbox>,
    started: Mark,
    heard: Mark,
    total: Duration,
    idle: Duration,
    quiet: bool,
    state: State,
    looks: Looks,
    /// Keeps the call in its token's list.
    _token: Option<Arc<Cancellable>>,
}

enum State {
    /// Its frame is not in the queue yet, so that nobody need be told if it never gets there.
    Starting,
    Pending,
    /// The end has come and was not taken yet.
    Ended(CallEnd),
    /// It was taken, and said this of the peer.
    Taken(Delivery),
}

impl Call {
    /// Starts a call whose params are made knowing its id; they may name it as the place to which
    /// its notifications go, because the call is entered before its frame is queued.
    pub(crate) fn start<P: Serialize>(
        link: &Arc<Link>,
        method: &str,
        options: &CallOptions,
        params: impl FnOnce(u64) -> P,
    ) -> Result<Call> {
        let started = link.clocks.mark();
        let (id, inbox) = link.enter().map_err(|why| Error::Closed {
            method: method.into(),
            delivery: Delivery::NotSent,
            why,
        })?;
        let mut call = Call {
            link: link.clone(),
            id,
            method: method.into(),
            inbox,
            started,
            heard: started,
            total: options.total.unwrap_or(link.limits.total),
            idle: options.idle.unwrap_or(link.limits.idle),
            quiet: options.quiet,
            state: State::Starting,
            looks: Looks::new(),
            _token: None,
        };
        match link.encoder.call(Some(id), method, &params(id)) {
            Ok(frame) => call.enqueue(
                Outgoing {
                    frame,
                    call: Some(id),
                },
                options.cancel.as_ref(),
            )?,
            Err(error) => return Err(call.not_encoded(error)),
        }
        call.heard = link.clocks.mark();
        Ok(call)
    }

    fn enqueue(&mut self, out: Outgoing, token: Option<&CancelToken>) -> Result<()> {
        if let Some(token) = token {
            let registered = Arc::new(Cancellable {
                link: self.link.clone(),
                id: self.id,
                inbox: self.inbox.clone(),
                quiet: self.quiet,
                queued: AtomicBool::new(false),
            });
            token.register(&registered);
            self._token = Some(registered);
        }
        let cancelled = || token.is_some_and(CancelToken::is_cancelled);
        let due = || (!cancelled()).then(|| self.link.clocks.due(self.started, self.total));
        let sent = if cancelled() {
            Err(Refused::GivenUp)
        } else {
            let link = &self.link;
            link.outbox.send(out, due, || self.looks.look(link))
        };
        if let Err(refused) = sent {
            return Err(self.link.not_sent(&self.method, refused, self.total));
        }
        self.state = State::Pending;
        if let Some(registered) = &self._token {
            registered.queued.store(true, Ordering::SeqCst);
            // A cancel between the last look and this mark has left the call to us.
            if cancelled() {
                registered.give_up();
            }
        }
        Ok(())
    }

    fn not_encoded(&self, error: EncodeError) -> Error {
        Error::Encode {
            method: self.method.clone(),
            error: Box::new(error),
        }
    }

    /// The id under which the request goes out. No other call of the connection ever has it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The method called.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Waits for the answer and decodes its result. Blocks until the answer, the end of the
    /// connection, or a time limit of the call. Notifications that belong to the call are passed
    /// over.
    ///
    /// # Errors
    ///
    /// Any [`Error`] but `Encode`.
    pub fn wait<R: DeserializeOwned>(self) -> Result<R> {
        self.wait_with(|_| {})
    }

    /// Waits as [`wait`](Self::wait) does and hands what belongs to the call to `on_update`, on
    /// this thread, in wire order, all of it before the answer. The total limit goes on while it
    /// runs.
    ///
    /// # Errors
    ///
    /// Any [`Error`] but `Encode`.
    pub fn wait_with<R: DeserializeOwned>(
        mut self,
        mut on_update: impl FnMut(Update),
    ) -> Result<R> {
        loop {
            match self.next() {
                Update::Ended => return self.take(),
                update => on_update(update),
            }
        }
    }

    /// Waits for the answer for the given time at most; `None` means that it has not come yet. The
    /// call goes on. What belongs to the call is passed over.
    ///
    /// # Errors
    ///
    /// Any [`Error`] but `Encode`; [`AnswerFault::Taken`] if the call had ended before and its end
    /// was taken.
    pub fn wait_timeout<R: DeserializeOwned>(&mut self, limit: Duration) -> Result<Option<R>> {
        let until = after(Instant::now(), limit);
        loop {
            match self.advance(until) {
                Some(Update::Ended) => return self.take().map(Some),
                // What belongs to the call may come faster than it is passed over; its end is never
                // far.
                Some(_) if self.inbox.has_ended() || until.is_none_or(|at| Instant::now() < at) => {
                }
                Some(_) | None => return Ok(None),
            }
        }
    }

    /// Takes the answer if it has come, without blocking.
    ///
    /// # Errors
    ///
    /// As [`wait_timeout`](Self::wait_timeout).
    pub fn try_wait<R: DeserializeOwned>(&mut self) -> Result<Option<R>> {
        self.wait_timeout(Duration::ZERO)
    }

    /// Waits for what comes next to the call: a notification that belongs to it, or its end. Blocks
    /// until then, or until a time limit of the call, which is an end too.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is no iterator: it ends with a value"
    )]
    pub fn next(&mut self) -> Update {
        // Without a time of its own, `advance` always has something to give.
        self.advance(None).unwrap_or(Update::Ended)
    }

    /// Waits as [`next`](Self::next) does, for the given time at most.
    pub fn next_timeout(&mut self, limit: Duration) -> Option<Update> {
        self.advance(after(Instant::now(), limit))
    }

    /// Takes what has come to the call, without blocking.
    pub fn try_next(&mut self) -> Option<Update> {
        self.next_timeout(Duration::ZERO)
    }

    /// Waits until one of several calls can be waited for without blocking, because it is answered,
    /// has ended, or has run out of time, and gives its place in the slice. Blocks until then. Of
    /// several that can, it gives the first. `None` only for an empty slice. Updates of a call do
    /// not end the wait; they are kept for [`try_next`](Self::try_next).
    ///
    /// ```no_run
    /// # use landline::{Call, Connection, Error};
    /// # fn first(server: &Connection) -> Result<String, Error> {
    /// let mut calls = vec![server.start("slow", ())?, server.start("quick", ())?];
    /// while let Some(place) = Call::wait_any(&mut calls) {
    ///     let answer: String = calls.remove(place).wait()?;
    ///     println!("{answer}");
    /// }
    /// # Ok(String::new())
    /// # }
    /// ```
    pub fn wait_any<'a>(calls: impl IntoIterator<Item = &'a mut Call>) -> Option<usize> {
        let mut calls: Vec<_> = calls.into_iter().collect();
        if calls.is_empty() {
            return None;
        }
        loop {
            let mut until = None;
            for (place, call) in calls.iter_mut().enumerate() {
                if call.is_over(&mut until) {
                    return Some(place);
                }
            }
            let mut bells = Select::new();
            for call in &calls {
                bells.recv(call.inbox.bell());
            }
            let rung = match until {
                Some(until) => bells.ready_deadline(until).ok(),
                None => Some(bells.ready()),
            };
            // A ring that was heard is taken off; the calls are looked at again in any case.
            if let Some(place) = rung {
                let _ = calls[place].inbox.bell().try_recv();
            }
        }
    }

    /// Gives the call up, unless it has ended, and tells the peer if the dialect has a way. Never
    /// blocks. A request that is still queued is not sent, and then there is nothing to tell.
    pub fn cancel(self) {
        drop(self);
    }

    /// Gives the call up without telling the peer, unless it has ended. Never blocks. A request
    /// that is still queued is not sent.
    pub fn forget(mut self) {
        self.quiet = true;
    }

    /// Asks the peer, in the dialect's way, to cancel the request, and goes on waiting for its
    /// answer, as LSP wants, whose servers answer cancelled requests too. Never blocks.
    pub fn ask_to_cancel(&self) {
        if matches!(self.state, State::Pending) {
            self.link.ask_to_cancel(self.id);
        }
    }

    /// The one waiting loop. Gives what comes next, or `None` at the given time. An answer that has
    /// arrived beats a clock that has run out.
    fn advance(&mut self, until: Option<Instant>) -> Option<Update> {
        if !matches!(self.state, State::Pending) {
            return Some(Update::Ended);
        }
        loop {
            match self.inbox.pop() {
                Some(Post::Item(heard)) => {
                    // A flood of these must not put off the total limit, which is looked at below
                    // only when there is nothing to take.
                    let total = self.link.clocks.due(self.started, self.total);
                    if total.is_past()
                        && !self.inbox.has_ended()
                        && self.run_out(Limit::Total, self.total)
                    {
                        self.link.counters.dropped_notifications.bump();
                        return Some(Update::Ended);
                    }
                    self.heard = heard.at;
                    return Some(Update::Notification(heard.notification));
                }
                Some(Post::Lost(lost)) => return Some(Update::Lost(lost)),
                Some(Post::End(end)) => {
                    self.state = State::Ended(end);
                    return Some(Update::Ended);
                }
                None => {}
            }
            let (due, limit, length) = self.due();
            if due.is_past() {
                if self.run_out(limit, length) {
                    return Some(Update::Ended);
                }
                self.inbox.listen(None);
                continue;
            }
            let now = Instant::now();
            let look = self.looks.look(&self.link);
            if until.is_some_and(|until| until <= now) {
                return None;
            }
            let wake = earlier(earlier(due.wake_at(), until), look);
            self.inbox.listen(wake);
        }
    }

    /// Gives the call up because a limit ran out. `false`: someone else has taken it out, so that
    /// its end is on its way and no clock matters.
    fn run_out(&mut self, limit: Limit, after: Duration) -> bool {
        let Some(delivery) = self.link.give_up(self.id, self.quiet) else {
            return false;
        };
        self.state = State::Ended(CallEnd::TimedOut {
            limit,
            after,
            delivery,
        });
        true
    }

    /// When the first of the two limits runs out, which it is, and its length.
    fn due(&self) -> (Due, Limit, Duration) {
        let clocks = &self.link.clocks;
        let total = clocks.due(self.started, self.total);
        let idle = clocks.due(self.heard, self.idle);
        match (total, idle) {
            (Due::At(total), Due::At(idle)) if idle < total => {
                (Due::At(idle), Limit::Idle, self.idle)
            }
            (Due::Never, idle) => (idle, Limit::Idle, self.idle),
            (total, _) => (total, Limit::Total, self.total),
        }
    }

    /// Whether waiting would not block; otherwise brings `until` forward to the call's limit.
    fn is_over(&mut self, until: &mut Option<Instant>) -> bool {
        if !matches!(self.state, State::Pending) || self.inbox.has_ended() {
            return true;
        }
        if let Some(at) = self.inbox.newest(|heard| heard.at) {
            self.heard = at;
        }
        let (due, ..) = self.due();
        let look = self.looks.look(&self.link);
        *until = earlier(*until, earlier(due.wake_at(), look));
        due.is_past()
    }

    fn take<R: DeserializeOwned>(&mut self) -> Result<R> {
        let answered = State::Taken(Delivery::Answered);
        let end = match std::mem::replace(&mut self.state, answered) {
            State::Ended(CallEnd::Result(raw)) => match decode_repairing(&raw) {
                Ok(Decoded { value, repaired }) => {
                    self.link.counters.repaired_text.add(u64::from(repaired));
                    return Ok(value);
                }
                Err(error) => CallEnd::Unusable(AnswerFault::Decode(error)),
            },
            State::Ended(end) => end,
            State::Taken(delivery) => CallEnd::Unusable(AnswerFault::Taken { delivery }),
            // Nobody takes an end that has not come.
            State::Starting | State::Pending => CallEnd::Unusable(AnswerFault::Empty),
        };
        let error = self.failure(end);
        self.state = State::Taken(error.delivery());
        Err(error)
    }

    fn failure(&self, end: CallEnd) -> Error {
        let method = self.method.clone();
        match end {
            // A result is no failure; only `take` makes one of it, and it never comes here.
            CallEnd::Result(_) => Error::Answer {
                method,
                fault: Box::new(AnswerFault::Taken {
                    delivery: Delivery::Answered,
                }),
            },
            CallEnd::Rpc(error) => Error::Rpc {
                method,
                error: Box::new(error),
            },
            CallEnd::Unusable(fault) => Error::Answer {
                method,
                fault: Box::new(fault),
            },
            CallEnd::Closed(why, delivery) => Error::Closed {
                method,
                delivery,
                why,
            },
            CallEnd::Cancelled(delivery) => Error::Cancelled { method, delivery },
            CallEnd::TimedOut {
                limit,
                after,
                delivery,
            } => {
                let detail = Box::new(self.link.timeout(limit, after, delivery));
                Error::Timeout { method, detail }
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        match self.state {
            // The caller's own code panicked while it made the params, or a start failed.
            State::Starting => drop(self.link.retract(self.id)),
            // Whether it was sent is of no interest any more.
            State::Pending => drop(self.link.give_up(self.id, self.quiet)),
            State::Ended(_) | State::Taken(_) => {}
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
