//! Locks, and something that happens once, as this layer uses them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Word of something that happens once.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    happened: Mutex<bool>,
    told: Condvar,
}

impl Latch {
    pub(crate) fn tell(&self) {
        *lock(&self.happened) = true;
        self.told.notify_all();
    }

    /// Waits for it, for the given time at most; tells whether it has come.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let waited = self
            .told
            .wait_timeout_while(lock(&self.happened), limit, |happened| !*happened);
        // As below.
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Locks, taking over a lock whose holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks of this layer hold is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
