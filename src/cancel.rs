//! [`CancelToken`]: giving calls up from another thread than the one that waits for them.
//!
//! A token knows its calls weakly. The invariant: a call whose frame is not queued yet is given up
//! by the thread that starts it, any other by the one that cancels, so that each ends once and the
//! peer is told only of what it can have seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::link::Link;
use crate::pending::{CallEnd, Inbox};
use crate::sync::lock;

/// Cancels calls from another thread: all that were given the token, those to come included.
///
/// Clones cancel the same calls.
///
/// # Examples
///
/// ```
/// use landline::{CallOptions, CancelToken, ChildSpec, Connection};
/// use serde_json::Value;
///
/// // A server that never answers.
/// let silent = ChildSpec::from_argv(["sh", "-c", "cat >/dev/null"])?;
/// let server = Connection::spawn(&silent)?;
///
/// let token = CancelToken::new();
/// let options = CallOptions::new().cancel_token(&token);
/// let user = std::thread::spawn(move || token.cancel());
///
/// let error = server.request_with::<Value>("search", (), &options).unwrap_err();
/// assert!(error.is_cancelled());
/// # user.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<Token>);

#[derive(Debug, Default)]
struct Token {
    cancelled: AtomicBool,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    list: Vec<Weak<Cancellable>>,
    /// The length at which those that are over are taken out.
    full_at: usize,
}

/// What a token needs of a call.
#[derive(Debug)]
pub(crate) struct Cancellable {
    pub(crate) link: Arc<Link>,
    pub(crate) id: u64,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) quiet: bool,
    /// Its frame is in the queue or beyond. Until then the starting thread gives it up by itself.
    pub(crate) queued: AtomicBool,
}

impl CancelToken {
    /// Makes a token that has not been used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the calls. Never blocks: each ends at once with
    /// [`Error::Cancelled`](crate::Error::Cancelled) for its caller, unless it has ended already. A
    /// request that is still queued is not sent; of any other the peer is told, if the dialect has
    /// a way.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        let calls = std::mem::take(&mut *lock(&self.0.calls));
        for call in calls.list.iter().filter_map(Weak::upgrade) {
            if call.queued.load(Ordering::SeqCst) {
                call.give_up();
            } else {
                call.link.outbox.recheck();
            }
        }
    }

    /// Tells whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn register(&self, call: &Arc<Cancellable>) {
        let mut calls = lock(&self.0.calls);
        // Calls that are over leave the list as new ones come, so that it stays within twice those
        // in flight, and each is looked at a fixed number of times.
        if calls.list.len() >= calls.full_at {
            calls.list.retain(|call| call.strong_count() > 0);
            calls.full_at = (calls.list.len() * 2).max(LEAST);
        }
        calls.list.push(Arc::downgrade(call));
    }
}

impl Cancellable {
    pub(crate) fn give_up(&self) {
        if let Some(delivery) = self.link.give_up(self.id, self.quiet) {
            self.inbox.end(CallEnd::Cancelled(delivery));
        }
    }
}

// Fewer calls than this are not worth looking through.
const LEAST: usize = 16;
