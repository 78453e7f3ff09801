//! A connection's threads, started by name and waited for with a bound.
//!
//! No thread is ever joined: one that reads a pipe which some stranger keeps open may never end.
//! Each holds a badge, and who waits learns when the last badge is gone, or that the time is up.

use std::convert::Infallible;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::sync::{after, lock};

/// The threads of one kind, waited for together and with a bound: a thread that reads a pipe which
/// some stranger keeps open may never end.
#[derive(Debug)]
pub(crate) struct Crew {
    /// Dropped by the last member, or when all have been hired.
    hire: Mutex<Option<Sender<Infallible>>>,
    gone: Receiver<Infallible>,
    members: Mutex<Vec<ThreadId>>,
}

impl Crew {
    pub(crate) fn new() -> Self {
        let (hire, gone) = bounded(0);
        Crew {
            hire: Mutex::new(Some(hire)),
            gone,
            members: Mutex::default(),
        }
    }

    /// Starts a named thread.
    pub(crate) fn hire(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        let badge = lock(&self.hire).clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            work();
            drop(badge);
        })?;
        lock(&self.members).push(thread.thread().id());
        // Detached: it is waited for through its badge, with a bound.
        Ok(())
    }

    /// Waits until all have ended, for the given time at most. A member that asks does not wait for
    /// itself, and so for nobody.
    pub(crate) fn wait_gone(&self, limit: Duration) -> bool {
        drop(lock(&self.hire).take());
        if lock(&self.members).contains(&thread::current().id()) {
            return false;
        }
        match after(Instant::now(), limit) {
            Some(until) => self
                .gone
                .recv_deadline(until)
                .err()
                .is_some_and(|e| e.is_disconnected()),
            None => self.gone.recv().is_err(),
        }
    }
}
