//! Blocking JSON-RPC over a child process's standard streams.
