//! When one who waits looks at the process.
//!
//! No thread waits for the process while its output is open, so that a process which ended behind a
//! pipe that another one keeps open is found out by those who wait for it, with a system call every
//! so often: soon at first, and once a second in a long wait.

use std::time::{Duration, Instant};

use crate::link::Link;
use crate::sync::after;

/// When someone who waits looks next. It is kept from one wait to the next, so that many short ones
/// find out as much as a long one.
#[derive(Debug)]
pub(crate) struct Looks {
    pause: Duration,
    next: Option<Instant>,
}

impl Looks {
    pub(crate) fn new() -> Self {
        Looks {
            pause: FIRST_LOOK,
            next: after(Instant::now(), FIRST_LOOK),
        }
    }

    /// Looks if it is time to, and tells when to look next: soon if the pipe is draining, otherwise
    /// later than this look was.
    pub(crate) fn look(&mut self, link: &Link) -> Option<Instant> {
        let now = Instant::now();
        if self.next.is_some_and(|next| next <= now) {
            self.pause = if link.look() {
                FIRST_LOOK
            } else {
                (self.pause * 2).min(LAST_LOOK)
            };
            self.next = after(now, self.pause);
        }
        self.next
    }
}

// One look is a system call; a death is to be told soon, and a long wait to cost nothing.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(1);
