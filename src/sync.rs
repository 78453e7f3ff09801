//! Locks and deadlines, as every other file uses them.
//!
//! A poisoned lock is taken over: each critical section leaves its data whole, and none runs user
//! code. A deadline is an `Option<Instant>`; `None`, which any overflow gives, means that there is
//! none.

use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Locks, taking over a lock whose holder panicked.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable once, until the given time; may wake for no reason.
pub(crate) fn wait_until<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    until: Option<Instant>,
) -> MutexGuard<'a, T> {
    match until {
        None => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(until) => {
            let left = until.saturating_duration_since(Instant::now());
            condvar
                .wait_timeout(guard, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0
        }
    }
}

/// The earlier of two deadlines.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// The deadline that lies `limit` after `start`.
pub(crate) fn after(start: Instant, limit: Duration) -> Option<Instant> {
    start.checked_add(limit)
}

/// Something that happens once, told to all who wait for it: a channel that nobody sends on, until
/// its sender is dropped.
#[derive(Debug)]
pub(crate) struct Event {
    sender: Mutex<Option<Sender<Infallible>>>,
    receiver: Receiver<Infallible>,
}

impl Event {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = bounded(0);
        Event {
            sender: Mutex::new(Some(sender)),
            receiver,
        }
    }

    pub(crate) fn fire(&self) {
        drop(lock(&self.sender).take());
    }

    pub(crate) fn is_fired(&self) -> bool {
        lock(&self.sender).is_none()
    }

    /// Waits for it, for the given time at most.
    pub(crate) fn wait(&self, limit: Duration) {
        // Fired or not, the caller looks for himself.
        let _ = self.receiver.recv_timeout(limit);
    }

    /// Becomes ready when it is fired, and stays so.
    pub(crate) fn receiver(&self) -> &Receiver<Infallible> {
        &self.receiver
    }
}

/// Runs code that is not ours; `None` says that it panicked.
pub(crate) fn survive<T>(run: impl FnOnce() -> T) -> Option<T> {
    let thrown = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => return Some(done),
        Err(thrown) => thrown,
    };
    // What was thrown may panic in its turn when it is dropped; that second payload is leaked.
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(thrown))));
    None
}

/// Uses a stream of the caller's; its panic is a failure like any other, and must not take the
/// thread away that all calls depend on.
pub(crate) fn using<T>(stream: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    survive(stream).unwrap_or_else(|| Err(io::Error::other("the stream panicked")))
}

/// Looks for something a few times, letting other threads run in between, before its caller goes to
/// sleep for it. Waking a sleeper costs more than a small request's whole way there and back; what
/// does not come within these few microseconds is worth sleeping for.
pub(crate) fn soon<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    (0..LOOKS).find_map(|_| {
        let found = look();
        if found.is_none() {
            thread::yield_now();
        }
        found
    })
}

// Some hundred microseconds at most when nobody else wants the processor: measured with the
// round-trip bench, where fewer let the caller fall asleep before a small answer can be there.
const LOOKS: u32 = 250;
