//! The pending calls: the table in which an answer finds its caller.
//!
//! Pure bookkeeping under its owner's lock. The invariant: a call that was entered is taken out
//! exactly once, and whoever takes it out ends it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::clocks::Mark;
use crate::error::{AnswerFault, Closed, Delivery, Limit};
use crate::mailbox::Mailbox;
use crate::message::{Notification, RpcError};
use crate::survived::{Counter, Counters};

/// Where a caller finds what belongs to its call, and the end.
pub(crate) type Inbox = Mailbox<Heard, CallEnd>;

/// A notification that belongs to a call, and when it came.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) notification: Notification,
    pub(crate) at: Mark,
}

/// How a call ended; its caller makes a result of it.
#[derive(Debug)]
pub(crate) enum CallEnd {
    Result(Box<RawValue>),
    Rpc(RpcError),
    Unusable(AnswerFault),
    Closed(Arc<Closed>, Delivery),
    Cancelled(Delivery),
    TimedOut {
        limit: Limit,
        after: Duration,
        delivery: Delivery,
    },
}

/// The calls that wait for an answer, and those that were given up last.
#[derive(Debug)]
pub(crate) struct Pending {
    calls: HashMap<u64, Arc<Inbox>>,
    next: u64,
    given_up: VecDeque<u64>,
    open: bool,
}

impl Pending {
    pub(crate) fn new() -> Self {
        Pending {
            calls: HashMap::new(),
            next: 1,
            given_up: VecDeque::new(),
            open: true,
        }
    }

    /// Enters a call under an id that no other ever has; `None` after the end.
    pub(crate) fn enter(&mut self, inbox: &Arc<Inbox>) -> Option<u64> {
        if !self.open {
            return None;
        }
        let id = self.next;
        self.next += 1;
        self.calls.insert(id, inbox.clone());
        Some(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn inboxes(&self) -> impl Iterator<Item = &Arc<Inbox>> {
        self.calls.values()
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Inbox>> {
        self.calls.get(&id)
    }

    pub(crate) fn take(&mut self, id: u64) -> Option<Arc<Inbox>> {
        self.calls.remove(&id)
    }

    /// Takes out the one pending call, if there is exactly one.
    pub(crate) fn take_lone(&mut self) -> Option<Arc<Inbox>> {
        let mut ids = self.calls.keys().copied();
        match (ids.next(), ids.next()) {
            (Some(id), None) => self.calls.remove(&id),
            _ => None,
        }
    }

    /// Remembers a call that its caller gave up, so that its late answer is known for one.
    pub(crate) fn remember(&mut self, id: u64) {
        if self.given_up.len() == GIVEN_UP {
            self.given_up.pop_front();
        }
        self.given_up.push_back(id);
    }

    /// Which counter an answer belongs to that names no pending call.
    pub(crate) fn stray_answer<'a>(&mut self, id: u64, counters: &'a Counters) -> &'a Counter {
        if let Some(at) = self.given_up.iter().position(|given_up| *given_up == id) {
            // A second answer to it is a duplicate.
            self.given_up.remove(at);
            &counters.late_answers
        } else if (1..self.next).contains(&id) {
            &counters.duplicate_answers
        } else {
            &counters.unknown_answers
        }
    }

    /// Lets no further call in and takes out all there are.
    pub(crate) fn end(&mut self) -> HashMap<u64, Arc<Inbox>> {
        self.open = false;
        std::mem::take(&mut self.calls)
    }
}

// How many calls given up are remembered, so that their late answers are told from duplicates.
const GIVEN_UP: usize = 1024;
