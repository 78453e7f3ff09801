//! When one who waits looks at the process.
//!
//! No thread waits for the process while its output is open, so that a process which ended behind a
//! pipe that another one keeps open is found out by those who wait for it, with a system call every
//! so often: soon at first, and once a second in a long wait.

use std::time::{Duration, Instant};

use crate::link::Link;
use crate::sync::after;

/// When one who waits looks at the process: a process that has ended while another one keeps its
/// pipe open is not found out in any other way.
#[derive(Debug)]
pub(crate) struct Looks(Duration);

impl Looks {
    pub(crate) fn new() -> Self {
        Looks(FIRST_LOOK)
    }

    /// When to look next, from now on.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        after(now, self.0)
    }

    /// Looks at one process and tells when to look next.
    pub(crate) fn look_at(&mut self, link: &Link) -> Option<Instant> {
        self.look([link]);
        self.next(Instant::now())
    }

    /// Looks; the next look is soon if a pipe is draining, otherwise later than this one was.
    pub(crate) fn look<'a>(&mut self, links: impl IntoIterator<Item = &'a Link>) {
        self.0 = if links.into_iter().any(Link::look) {
            FIRST_LOOK
        } else {
            (self.0 * 2).min(LAST_LOOK)
        };
    }
}

// One look is a system call; a death is to be told soon, and a long wait to cost nothing.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(1);
