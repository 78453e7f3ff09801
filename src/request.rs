//! A request of the peer: what its handler sees, and what answers it.
//!
//! The invariant: a request is answered once, whoever takes it and whatever becomes of him, because
//! the drop of its [`Responder`] answers too. Replies never wait for the peer to read.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_core::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::OnCancel;
use crate::json::decode_params;
use crate::link::Link;
use crate::message::{Id, RpcError, reply};
use crate::sync::lock;

/// A request of the peer.
#[derive(Debug)]
pub struct Request {
    method: String,
    params: Option<Box<RawValue>>,
    ticket: Arc<Ticket>,
}

impl Request {
    /// Takes in a request; `batch` collects the replies of its array.
    pub(crate) fn new(
        link: &Arc<Link>,
        id: Id,
        method: String,
        params: Option<Box<RawValue>>,
        batch: Option<Arc<Batch>>,
        on_cancel: OnCancel,
    ) -> (Self, Responder) {
        let ticket = Arc::new(Ticket {
            link: link.clone(),
            id,
            on_cancel,
            withdrawn: AtomicBool::new(false),
            answered: AtomicBool::new(false),
        });
        if let Some(batch) = &batch {
            batch.expect();
        }
        let responder = Responder {
            ticket: ticket.clone(),
            batch,
        };
        (
            Request {
                method,
                params,
                ticket,
            },
            responder,
        )
    }

    /// What it takes in a queue that is bounded in bytes, its own bookkeeping included.
    pub(crate) fn cost(&self) -> usize {
        let params = self.params().map_or(0, |raw| raw.get().len());
        self.id().len() + self.method.len() + params + size_of::<Self>()
    }

    /// What the peer withdraws when it withdraws the request.
    pub(crate) fn ticket(&self) -> &Arc<Ticket> {
        &self.ticket
    }

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
        let decoded = decode_params(self.params())
            .map_err(|error| RpcError::new(RpcError::INVALID_PARAMS, error.to_string()))?;
        let repaired = u64::from(decoded.repaired);
        self.ticket.link.counters.repaired_text.add(repaired);
        Ok(decoded.value)
    }

    /// Tells whether the answer is of no use any more: the peer withdrew the request, or the
    /// connection has ended.
    pub fn is_cancelled(&self) -> bool {
        self.ticket.is_cancelled()
    }
}

/// Answers one request that was taken from the queue.
///
/// Dropping it answers with an internal error (-32603), so that the peer never waits for nothing.
/// It can be kept, sent to another thread, and used later; see
/// [`Connection::next_incoming`](crate::Connection::next_incoming).
#[derive(Debug)]
pub struct Responder {
    ticket: Arc<Ticket>,
    batch: Option<Arc<Batch>>,
}

impl Responder {
    /// Sends the answer. Blocks while the peer leaves more replies unread than are bounded, for as
    /// long as it reads at all, and ends the connection if it reads nothing for
    /// [`Options::reply_timeout`](crate::Options::reply_timeout). After the end of the connection,
    /// and after the peer withdrew the request in a dialect that wants no answer then, it does
    /// nothing.
    pub fn answer(self, outcome: Result<Value, RpcError>) {
        let link = &self.ticket.link;
        for json in self.settle(outcome) {
            link.reply_patiently(&json);
        }
    }

    /// Answers on the reader's thread, which waits for nobody.
    pub(crate) fn answer_now(&self, outcome: Result<Value, RpcError>) {
        for json in self.settle(outcome) {
            self.ticket.link.reply(&json);
        }
    }

    /// Answers a request that the peer withdrew before its handler saw it.
    pub(crate) fn answer_withdrawn(self) {
        let code = match self.ticket.on_cancel {
            OnCancel::Reply { code } => code,
            // Not sent, but for the end of the connection, when nothing is.
            OnCancel::NoReply => RpcError::INTERNAL_ERROR,
        };
        self.answer_now(Err(RpcError::new(code, "the request was cancelled")));
    }

    /// Makes the reply, once, and counts what becomes of it; gives what is to go out now.
    fn settle(&self, outcome: Result<Value, RpcError>) -> Vec<Vec<u8>> {
        if self.ticket.answered.swap(true, Ordering::SeqCst) {
            return Vec::new();
        }
        let reply = self.reply(&outcome);
        if reply.is_none() {
            self.ticket.link.counters.unanswered_requests.bump();
        }
        match &self.batch {
            Some(batch) => batch.settle(reply),
            None => reply.into_iter().collect(),
        }
    }

    /// The reply, unless the peer wants none any more.
    fn reply(&self, outcome: &Result<Value, RpcError>) -> Option<Vec<u8>> {
        let ticket = &self.ticket;
        if ticket.withdrawn.load(Ordering::SeqCst) && ticket.on_cancel == OnCancel::NoReply {
            return None;
        }
        // It may have come before the dialect was changed to one without replies.
        if !ticket.link.dialect().answers_requests {
            return None;
        }
        let json = reply(&ticket.id, outcome.as_ref()).ok()?;
        if json.len() <= ticket.link.encoder.limit {
            return Some(json);
        }
        let error = RpcError::new(
            RpcError::INTERNAL_ERROR,
            "the result is over the frame limit",
        );
        reply(&ticket.id, Err::<&Value, _>(&error)).ok()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.answer_now(Err(RpcError::new(
            RpcError::INTERNAL_ERROR,
            "the request was dropped unanswered",
        )));
    }
}

/// What a request's handler and its answer have in common.
pub(crate) struct Ticket {
    link: Arc<Link>,
    id: Id,
    on_cancel: OnCancel,
    withdrawn: AtomicBool,
    answered: AtomicBool,
}

impl Ticket {
    /// Marks the request as withdrawn by the peer, if this is its id and it is not answered yet.
    pub(crate) fn withdraw(&self, id: &Id) -> bool {
        let is_it = self.id == *id && !self.answered.load(Ordering::SeqCst);
        if is_it {
            self.withdrawn.store(true, Ordering::SeqCst);
        }
        is_it
    }

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

/// The replies to the requests of one array; they go out together when the last is in, or singly if
/// they are over the frame limit together.
#[derive(Debug)]
pub(crate) struct Batch {
    link: Arc<Link>,
    state: Mutex<Collected>,
}

#[derive(Debug)]
struct Collected {
    replies: Vec<Vec<u8>>,
    bytes: usize,
    /// How many requests of the array are not settled, and one more until all of it was read.
    open: usize,
}

impl Batch {
    pub(crate) fn new(link: &Arc<Link>) -> Arc<Self> {
        Arc::new(Batch {
            link: link.clone(),
            state: Mutex::new(Collected {
                replies: Vec::new(),
                bytes: 0,
                open: 1,
            }),
        })
    }

    /// Notes that all of the array was read; gives what is to go out then.
    pub(crate) fn read(&self) -> Vec<Vec<u8>> {
        self.settle(None)
    }

    fn expect(&self) {
        lock(&self.state).open += 1;
    }

    /// Takes in how one request was settled, and gives what is to go out now: nothing, the array
    /// with the last reply, or the reply itself where the array is full. An array is bounded like
    /// everything that waits for the peer to read.
    fn settle(&self, reply: Option<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut state = lock(&self.state);
        let mut now = Vec::new();
        if let Some(json) = reply {
            let cost = json.capacity() + size_of::<Vec<u8>>();
            if state.bytes > 0 && state.bytes + cost > self.link.limits.replies {
                now.push(json);
            } else {
                state.bytes += cost;
                state.replies.push(json);
            }
        }
        state.open -= 1;
        if state.open == 0 && !state.replies.is_empty() {
            let replies = std::mem::take(&mut state.replies);
            let array = [b"[", replies.join(&b","[..]).as_slice(), b"]"].concat();
            if array.len() <= self.link.encoder.limit {
                now.push(array);
            } else {
                // Each is within the limit by itself, and a peer that gets them singly need not
                // wait for nothing.
                now.extend(replies);
            }
        }
        now
    }
}
