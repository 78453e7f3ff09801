//! Blocking JSON-RPC over a child process's standard streams.

mod scan;

mod framing;

pub use framing::{FrameError, Framing};
