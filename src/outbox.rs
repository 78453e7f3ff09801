//! The outgoing queue: what callers and the reader hand to the writer thread.
//!
//! Two lanes. Requests and notifications wait for room under a byte budget, first come, first served,
//! each by its own deadline; replies and cancellations never wait, go ahead of them, and are bounded
//! apart. A queued frame is taken by the writer or withdrawn by its caller, decided under one lock: a
//! frame that was withdrawn can no longer be written, so `NotSent` is the truth.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

use crate::clocks::Due;
use crate::framing::Encoded;
use crate::sync::{lock, soon, wait_until};

/// The queue between callers and the writer.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Tells the writer of a frame or of the end.
    filled: Condvar,
    /// Tells waiting senders of room, of their turn, or of the end.
    room: Condvar,
    budget: usize,
    urgent_budget: usize,
}

#[derive(Debug, Default)]
struct State {
    ordinary: VecDeque<Outgoing>,
    ordinary_bytes: usize,
    urgent: VecDeque<Encoded>,
    urgent_bytes: usize,
    /// Cancellations of requests that are still queued: each goes right behind its request, or never.
    behind: Vec<(u64, Encoded)>,
    /// Senders waiting for room, in the order in which they came.
    line: VecDeque<u64>,
    next_ticket: u64,
    /// Nothing enters any more; the writer ends when it has taken what is left.
    closed: bool,
}

/// A frame for the writer, and the call whose request it is.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) frame: Encoded,
    pub(crate) call: Option<u64>,
}

/// Why a frame did not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The deadline came before there was room.
    TimedOut,
    /// The sender's own condition said so.
    GivenUp,
    /// The queue is closed.
    Closed,
}

impl Outbox {
    pub(crate) fn new(budget: usize, urgent_budget: usize) -> Self {
        Outbox {
            state: Mutex::default(),
            filled: Condvar::new(),
            room: Condvar::new(),
            budget,
            urgent_budget,
        }
    }

    /// Queues a request or a notification. Blocks while there is no room, until the deadline that `due`
    /// gives; it is asked again after each wake-up, and `None` from it gives the frame up.
    pub(crate) fn send(&self, out: Outgoing, due: impl Fn() -> Option<Due>) -> Result<(), Refused> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Refused::Closed);
        }
        if !state.line.is_empty() || !self.fits(&state, out.frame.len()) {
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            state.line.push_back(ticket);
            let refused = loop {
                if state.closed {
                    break Some(Refused::Closed);
                }
                if state.line.front() == Some(&ticket) && self.fits(&state, out.frame.len()) {
                    break None;
                }
                let until = match due() {
                    None => break Some(Refused::GivenUp),
                    Some(due) if due.is_past() => break Some(Refused::TimedOut),
                    Some(due) => due.wake_at(),
                };
                state = wait_until(&self.room, state, until);
            };
            state.line.retain(|waiting| *waiting != ticket);
            // Whoever is first now may have room: it is asleep and cannot know.
            self.room.notify_all();
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
        state.ordinary_bytes += out.frame.len();
        state.ordinary.push_back(out);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Queues a reply or a cancellation ahead of all requests, without blocking. `false` means that the
    /// peer has left more than the bound unread. After the close it is dropped, which is no such failure.
    pub(crate) fn send_urgent(&self, frame: Encoded) -> bool {
        let mut state = lock(&self.state);
        if state.closed {
            return true;
        }
        if state.urgent_bytes > 0 && state.urgent_bytes + frame.len() > self.urgent_budget {
            return false;
        }
        state.urgent_bytes += frame.len();
        state.urgent.push_back(frame);
        drop(state);
        self.filled.notify_one();
        true
    }

    /// Keeps a frame about a call until its request is taken. Gives it back if the request is not queued any
    /// more; one frame for each request is enough, and a further one is dropped.
    pub(crate) fn send_behind(&self, call: u64, frame: Encoded) -> Option<Encoded> {
        let mut state = lock(&self.state);
        if !state.ordinary.iter().any(|out| out.call == Some(call)) {
            return Some(frame);
        }
        if !state.behind.iter().any(|(id, _)| *id == call) {
            state.behind.push((call, frame));
        }
        None
    }

    /// Takes the frame of a call out of the queue. `true`: it was still there and will not be written.
    pub(crate) fn withdraw(&self, call: u64) -> bool {
        let mut state = lock(&self.state);
        let Some(at) = state.ordinary.iter().position(|out| out.call == Some(call)) else {
            return false;
        };
        state.remove(at);
        state.behind.retain(|(id, _)| *id != call);
        self.room.notify_all();
        true
    }

    /// Closes the queue: requests still in it are withdrawn and their calls given back; notifications and
    /// replies are left for the writer.
    pub(crate) fn close(&self) -> Vec<u64> {
        let mut state = lock(&self.state);
        state.closed = true;
        state.behind.clear();
        let queued = std::mem::take(&mut state.ordinary);
        let withdrawn = queued.iter().filter_map(|out| out.call).collect();
        state.ordinary = queued
            .into_iter()
            .filter(|out| out.call.is_none())
            .collect();
        state.ordinary_bytes = state.ordinary.iter().map(|out| out.frame.len()).sum();
        self.filled.notify_all();
        self.room.notify_all();
        withdrawn
    }

    /// Closes the queue and drops all that is in it: there is nobody left to write to.
    pub(crate) fn abandon(&self) -> Vec<u64> {
        let withdrawn = self.close();
        let mut state = lock(&self.state);
        *state = State {
            closed: true,
            ..State::default()
        };
        withdrawn
    }

    /// Takes the next frame for the writer; blocks while there is none. `None` is the end.
    pub(crate) fn take(&self) -> Option<Outgoing> {
        if let Some(next) = soon(|| self.next(&mut lock(&self.state))) {
            return next;
        }
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = self.next(&mut state) {
                return next;
            }
            state = wait_until(&self.filled, state, None);
        }
    }

    /// What the writer is to do: write a frame, or end. `None`: nothing yet.
    fn next(&self, state: &mut State) -> Option<Option<Outgoing>> {
        if let Some(frame) = state.urgent.pop_front() {
            state.urgent_bytes -= frame.len();
            return Some(Some(Outgoing { frame, call: None }));
        }
        if !state.ordinary.is_empty() {
            if !state.line.is_empty() {
                self.room.notify_all();
            }
            let out = state.remove(0);
            state.follow(out.as_ref().and_then(|out| out.call));
            return Some(out);
        }
        state.closed.then_some(None)
    }

    /// Wakes every sender that waits for room, so that it asks for its deadline again.
    pub(crate) fn recheck(&self) {
        // Under the lock, or a sender between asking and sleeping would miss it.
        let _state = lock(&self.state);
        self.room.notify_all();
    }

    /// One frame may always enter an empty queue, or a frame over the budget could never be sent.
    fn fits(&self, state: &State, len: usize) -> bool {
        state.ordinary.is_empty() || state.ordinary_bytes.saturating_add(len) <= self.budget
    }
}

impl State {
    fn remove(&mut self, at: usize) -> Option<Outgoing> {
        let out = self.ordinary.remove(at)?;
        self.ordinary_bytes -= out.frame.len();
        Some(out)
    }

    /// Puts what stands behind a request that was taken ahead of everything else.
    fn follow(&mut self, call: Option<u64>) {
        let at = self.behind.iter().position(|(id, _)| Some(*id) == call);
        if let Some(at) = at {
            let (_, frame) = self.behind.swap_remove(at);
            self.urgent_bytes += frame.len();
            self.urgent.push_front(frame);
        }
    }
}
