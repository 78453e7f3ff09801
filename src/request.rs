//! A request of the peer: what its handler sees, and what answers it.
//!
//! The invariant: a request is answered once, whoever takes it and whatever becomes of him, because
//! the drop of its [`Responder`] answers too. Replies never wait for the peer to read.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
        self.method.len() + self.params().map_or(0, |raw| raw.get().len()) + size_of::<Self>()
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
    /// Sends the answer. Never blocks; after the end of the connection, and after the peer withdrew
    /// the request in a dialect that wants no answer then, it does nothing.
    pub fn answer(self, outcome: Result<Value, RpcError>) {
        self.send(outcome);
    }

    /// Answers a request that the peer withdrew before its handler saw it.
    pub(crate) fn answer_withdrawn(self) {
        let code = match self.ticket.on_cancel {
            OnCancel::Reply { code } => code,
            // Not sent, but for the end of the connection, when nothing is.
            OnCancel::NoReply => RpcError::INTERNAL_ERROR,
        };
        self.send(Err(RpcError::new(code, "the request was cancelled")));
    }

    /// Sends the answer from a thread of its own, which may wait while the peer is slow to read.
    pub(crate) fn answer_patiently(self, outcome: Result<Value, RpcError>) {
        if let Some(json) = self.settle(outcome) {
            self.ticket.link.reply_patiently(&json);
        }
    }

    fn send(&self, outcome: Result<Value, RpcError>) {
        if let Some(json) = self.settle(outcome) {
            self.ticket.link.reply(&json);
        }
    }

    /// Makes the reply, once, and counts what becomes of it; gives it if it is to go out by itself
    /// now.
    fn settle(&self, outcome: Result<Value, RpcError>) -> Option<Vec<u8>> {
        let ticket = &self.ticket;
        if ticket.answered.swap(true, Ordering::SeqCst) {
            return None;
        }
        let link = &ticket.link;
        if ticket.withdrawn.load(Ordering::SeqCst) && ticket.on_cancel == OnCancel::NoReply {
            link.counters.unanswered_requests.bump();
            return None;
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
        let Ok(json) = json else {
            link.counters.unanswered_requests.bump();
            return None;
        };
        match &self.batch {
            Some(batch) => batch.collect(json),
            None => Some(json),
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
    replies: Mutex<Vec<Vec<u8>>>,
    bytes: AtomicUsize,
}

impl Batch {
    pub(crate) fn new(link: &Arc<Link>) -> Arc<Self> {
        Arc::new(Batch {
            link: link.clone(),
            replies: Mutex::default(),
            bytes: AtomicUsize::new(0),
        })
    }

    /// Keeps a reply for the array, or gives it back to go out singly: an array is bounded like
    /// everything that waits for the peer to read.
    fn collect(&self, json: Vec<u8>) -> Option<Vec<u8>> {
        let cost = json.capacity() + size_of::<Vec<u8>>();
        let before = self.bytes.fetch_add(cost, Ordering::Relaxed);
        if before > 0 && before + cost > self.link.limits.replies {
            return Some(json);
        }
        lock(&self.replies).push(json);
        None
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let replies = std::mem::take(&mut *lock(&self.replies));
        if replies.is_empty() {
            return;
        }
        let array = [b"[", replies.join(&b","[..]).as_slice(), b"]"].concat();
        if array.len() <= self.link.encoder.limit {
            self.link.reply(&array);
        } else {
            // Each is within the limit by itself, and a peer that gets them singly need not wait
            // for nothing.
            replies.iter().for_each(|reply| self.link.reply(reply));
        }
    }
}
