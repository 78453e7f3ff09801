//! The MCP client against scripted servers. Names that begin with a `c` and a number follow the
//! checklist of what a client must do; those of its lines that have no test here are listed beside
//! the reason:
//!
//! (to be filled in)

mod connecting;
mod failing;
mod greeting;
mod late;
mod legal;
mod modern;
mod real;
mod recording;
mod server;
mod wire;
