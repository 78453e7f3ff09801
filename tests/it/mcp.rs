//! The MCP client against scripted servers. Names that begin with a `c` and a number follow the
//! checklist of what a client must do; those of its lines that have no test here are listed beside
//! the reason:
//!
//! - C63 to C71 (subscriptions) and C104 to C109 (tasks): not built.
//! - C97 (the rules of caching): nothing is cached; what a server says of it is passed on.
//! - C112 and C113 (restarts): a client is one process, and whoever wants another one spawns it.

mod abandoning;
mod alive;
mod answering;
mod bounds;
mod connecting;
mod eras;
mod failing;
mod greeting;
mod late;
mod legal;
mod modern;
mod params;
mod real;
mod recording;
mod rounds;
mod sampling;
mod server;
mod shutdown;
mod structured;
mod utilities;
mod values;
mod wire;
