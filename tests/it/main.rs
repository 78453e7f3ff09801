//! The tests with threads and processes, one file per layer.
#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

mod mcp;
mod process;
mod support;

mod calls;
mod cancelling;
mod dispatching;
mod leniency;
mod limits;
mod shape;

mod children;
mod closing;
mod hosts;
mod starting;
