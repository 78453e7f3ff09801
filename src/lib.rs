//! Blocking JSON-RPC over a child process's standard streams.

mod framing;
mod scan;
mod spec;

pub use framing::{FrameError, Framing};
pub use spec::{ChildSpec, ChildSpecError};
