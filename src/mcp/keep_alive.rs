//! The keep-alive: a legacy server is asked for a sign of life now and then, and the connection to
//! one that gives none is ended.
//!
//! Takes a [`Session`] and gives a thread of its own, only where one is wanted. The thread does not
//! keep the connection open: it ends with it, at once, as `Core::over` tells.

use std::io;
use std::thread;
use std::time::Duration;

use crate::mcp::call_options::CallOptions;
use crate::mcp::params::Params;
use crate::mcp::session::Session;

/// Starts the thread.
pub(crate) fn start(session: Session, interval: Duration) -> io::Result<()> {
    let name = "landline-alive".to_owned();
    // Detached: it ends with the connection and owes nobody anything by then.
    thread::Builder::new()
        .name(name)
        .spawn(move || watch(&session, interval))
        .map(drop)
}

fn watch(session: &Session, interval: Duration) {
    let limits = session.core.options.limits.get("ping");
    let limit = limits.and_then(|limits| limits.total).unwrap_or(interval);
    while !session.core.over.wait(interval) {
        let options = CallOptions::new().timeout(limit).idle(Duration::MAX);
        match session.call(Params::of("ping"), options) {
            Err(error) if error.is_timeout() => {
                let peer = session.peer();
                peer.close_because(format!(
                    "no answer to the keep-alive `ping` within {limit:?}"
                ));
                return;
            }
            Err(error) if error.is_closed() => return,
            // A refusal is a sign of life too.
            Ok(_) | Err(_) => {}
        }
    }
}
