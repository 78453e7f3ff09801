//! The clocks while a handler asks a person.
//!
//! They stand still for as long as the handler runs, but for its own calls: while it waits for the
//! server, nobody is asked anything, and a call without a clock would never end.

use std::sync::Mutex;

use crate::mcp::latch::lock;
use crate::{ClocksStopped, Peer};

/// A handler that may ask a person, while it runs.
#[derive(Debug)]
pub(crate) struct Asking {
    peer: Peer,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stopped: Option<ClocksStopped>,
    /// How many calls the handler waits for.
    calls: usize,
    over: bool,
}

impl Asking {
    /// Stops the clocks.
    pub(crate) fn begin(peer: &Peer) -> Self {
        Asking {
            peer: peer.clone(),
            state: Mutex::new(State {
                stopped: Some(peer.stop_clocks()),
                calls: 0,
                over: false,
            }),
        }
    }

    /// The handler has returned; whatever still holds its session has clocks like any other.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        state.stopped = None;
    }

    /// Lets the clocks go on for a call of the handler's, until what is given is dropped.
    pub(crate) fn call(&self) -> Calling<'_> {
        let mut state = lock(&self.state);
        state.calls += 1;
        state.stopped = None;
        Calling(self)
    }
}

/// A call of a handler's.
#[derive(Debug)]
pub(crate) struct Calling<'a>(&'a Asking);

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.calls -= 1;
        if state.calls == 0 && !state.over {
            state.stopped = Some(self.0.peer.stop_clocks());
        }
    }
}
