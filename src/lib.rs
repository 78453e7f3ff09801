//! Blocking JSON-RPC over a child process's standard streams.

mod call;
mod child;
mod clocks;
mod connection;
mod dialect;
mod dispatch;
mod error;
mod framing;
mod link;
mod mailbox;
mod message;
mod options;
mod outbox;
mod quote;
mod scan;
mod spec;
mod survived;
mod sync;
mod sys;

pub use call::{Call, CallOptions, CancelToken, Update};
pub use child::{Exit, ProcessGroup, SpawnError, Stderr, Step};
pub use connection::Connection;
pub use dialect::{Arrays, Dialect, OnCancel};
pub use dispatch::{ClocksStopped, Handler, Incoming, Peer, Request, Responder};
pub use error::{AnswerFault, Cause, Closed, Delivery, Error, Limit, Phase, Result, Timeout};
pub use framing::{FrameError, Framing};
pub use link::Ended;
pub use message::{EncodeError, Id, Notification, RpcError};
pub use options::Options;
pub use spec::{ChildSpec, ChildSpecError};
pub use survived::Survived;
