//! The dialect: what a protocol on top of JSON-RPC 2.0 settles and the connection has to know.
//!
//! Plain data that the reader consults for each message, so it can be changed on a live connection,
//! as when a handshake finds out which revision the peer speaks. The default is bare JSON-RPC.

use serde_json::Value;

/// How a protocol uses JSON-RPC 2.0.
///
/// MCP's legacy revisions (2024-11-05 to 2025-11-25), for example:
///
/// ```
/// use landline::{Arrays, Dialect, OnCancel};
/// let mcp = Dialect::new()
///     .cancel_calls("notifications/cancelled", "requestId")
///     .cancelled_requests("notifications/cancelled", "requestId", OnCancel::NoReply)
///     .route("notifications/progress", ["progressToken"])
///     .answer_at_once("ping", serde_json::json!({}))
///     .arrays(Arrays::Unpack);
/// ```
///
/// and LSP 3.17:
///
/// ```
/// use landline::{Dialect, OnCancel};
/// let lsp = Dialect::new()
///     .cancel_calls("$/cancelRequest", "id")
///     .cancelled_requests("$/cancelRequest", "id", OnCancel::Reply { code: -32800 })
///     .route("$/progress", ["token"]);
/// ```
#[derive(Debug, Clone)]
pub struct Dialect {
    pub(crate) cancel_calls: Option<Cancellation>,
    pub(crate) cancelled_requests: Option<(Cancellation, OnCancel)>,
    pub(crate) routes: Vec<Route>,
    pub(crate) answered_at_once: Vec<(String, Value)>,
    pub(crate) answers_requests: bool,
    pub(crate) arrays: Arrays,
    pub(crate) lone_errors: bool,
}

/// A notification that withdraws a request, and the member of its params that names the request's
/// id.
#[derive(Debug, Clone)]
pub(crate) struct Cancellation {
    pub(crate) method: String,
    pub(crate) member: String,
}

/// Says where a notification names the call it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// `None` for any notification.
    pub(crate) method: Option<String>,
    pub(crate) path: Vec<String>,
}

/// Says what becomes of a request that the peer withdrew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnCancel {
    /// It is not answered (MCP: the receiver should not respond).
    NoReply,
    /// It is answered all the same (LSP 3.17: a request must be), with what its handler returns, or
    /// with an error of this code if it had not started.
    Reply {
        /// The code of the error.
        code: i64,
    },
}

/// Says how an array of messages is read; arrays are never written but in reply to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Arrays {
    /// Its elements are read as if each had come alone, requests in it are answered singly, and one
    /// deviation is counted. The default.
    #[default]
    Unpack,
    /// It is a batch (JSON-RPC 2.0, section 6; MCP revision 2025-03-26): the replies to its
    /// requests go out together as one array once all are ready.
    Batch,
    /// It is a stray line, but for the calls that its elements name, which fail.
    Refuse,
}

impl Default for Dialect {
    fn default() -> Self {
        Self::new()
    }
}

impl Dialect {
    /// Makes the dialect of bare JSON-RPC 2.0: nothing is cancelled, nothing belongs to a call,
    /// every request of the peer is answered by the handler, arrays are unpacked.
    pub const fn new() -> Self {
        Dialect {
            cancel_calls: None,
            cancelled_requests: None,
            routes: Vec::new(),
            answered_at_once: Vec::new(),
            answers_requests: true,
            arrays: Arrays::Unpack,
            lone_errors: false,
        }
    }

    /// Sets the notification that tells the peer that a call was given up, with the call's id in
    /// the named member of its params.
    #[must_use]
    pub fn cancel_calls(mut self, method: &str, member: &str) -> Self {
        self.cancel_calls = Some(Cancellation {
            method: method.into(),
            member: member.into(),
        });
        self
    }

    /// Sets the notification by which the peer withdraws a request of its own, and what becomes of
    /// that request. It acts at once and is not handed to the handler.
    #[must_use]
    pub fn cancelled_requests(mut self, method: &str, member: &str, then: OnCancel) -> Self {
        self.cancelled_requests = Some((
            Cancellation {
                method: method.into(),
                member: member.into(),
            },
            then,
        ));
        self
    }

    /// Adds a notification that belongs to a call, and the path of member names in its params at
    /// which it names the call's id, as the number that it is: a string of the same digits names
    /// something else. It goes to the caller that waits for that call and extends its idle limit;
    /// one that names no pending call goes to the handler.
    #[must_use]
    pub fn route<I: IntoIterator<Item: Into<String>>>(mut self, method: &str, path: I) -> Self {
        let path = path.into_iter().map(Into::into).collect();
        self.routes.push(Route {
            method: Some(method.into()),
            path,
        });
        self
    }

    /// Adds a path at which any notification may name the call it belongs to, as
    /// [`route`](Self::route) does for one method.
    #[must_use]
    pub fn route_any<I: IntoIterator<Item: Into<String>>>(mut self, path: I) -> Self {
        let path = path.into_iter().map(Into::into).collect();
        self.routes.push(Route { method: None, path });
        self
    }

    /// Adds a request of the peer that the reader answers at once with this result, whatever the
    /// handlers are doing.
    #[must_use]
    pub fn answer_at_once(mut self, method: &str, result: Value) -> Self {
        self.answered_at_once.push((method.into(), result));
        self
    }

    /// Sets whether requests of the peer are answered at all. Without it they are counted and
    /// dropped, as MCP 2026-07-28 wants, whose clients write no responses. The default is `true`.
    #[must_use]
    pub const fn answer_requests(mut self, answer: bool) -> Self {
        self.answers_requests = answer;
        self
    }

    /// Sets how arrays of messages are read.
    #[must_use]
    pub const fn arrays(mut self, arrays: Arrays) -> Self {
        self.arrays = arrays;
        self
    }

    /// Sets whether an error without a usable id answers the one pending call, if there is exactly
    /// one. A peer that cannot read a request at all (a handshake of another revision) answers so.
    /// The default is `false`: such an error is counted among the unknown answers.
    #[must_use]
    pub const fn lone_errors(mut self, accept: bool) -> Self {
        self.lone_errors = accept;
        self
    }

    pub(crate) fn on_cancel(&self) -> OnCancel {
        self.cancelled_requests
            .as_ref()
            .map_or(OnCancel::NoReply, |(_, then)| *then)
    }

    /// The result with which a method is answered at once.
    pub(crate) fn answer_to(&self, method: &str) -> Option<&Value> {
        let found = self
            .answered_at_once
            .iter()
            .find(|(at_once, _)| at_once == method);
        found.map(|(_, result)| result)
    }
}
