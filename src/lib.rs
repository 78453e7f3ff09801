//! Blocking JSON-RPC over a child process's standard streams.

// In the order in which data flows. What to run, and running it:
mod spec;

mod sync;
mod sys;

mod quote;

mod child;

// Bytes and messages:
mod scan;

mod framing;

mod json;
mod message;

// What a caller learns:
mod survived;

mod error;

// What a live connection is made of:
mod dialect;
mod mailbox;

mod clocks;
mod outbox;

mod link;

// Calling and being called:
mod call;
mod peer;
mod request;

mod dispatch;

// Putting it together:
mod options;

mod connection;

pub use call::{Call, CallOptions, CancelToken, Update};
pub use child::{Exit, ProcessGroup, SpawnError, Stderr, Step};
pub use connection::Connection;
pub use dialect::{Arrays, Dialect, OnCancel};
pub use dispatch::{Handler, Incoming};
pub use error::{AnswerFault, Cause, Closed, Delivery, Error, Limit, Phase, Result, Timeout};
pub use framing::{FrameError, Framing};
pub use link::Ended;
pub use message::{EncodeError, Id, Notification, RpcError};
pub use options::Options;
pub use peer::{ClocksStopped, Peer};
pub use request::{Request, Responder};
pub use spec::{ChildSpec, ChildSpecError};
pub use survived::Survived;
