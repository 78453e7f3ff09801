//! Blocking JSON-RPC over a child process's standard streams.

mod spec;

pub use spec::{ChildSpec, ChildSpecError};
