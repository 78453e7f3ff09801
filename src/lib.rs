//! Landline lets a program without an async runtime call a child process that speaks JSON-RPC over
//! its standard streams, and wait for the answer.
//!
//! ```
//! use landline::{ChildSpec, Connection};
//!
//! // A server of one line; yours is `my-server --stdio`, or `npx some-mcp-server`, or `ssh host server`.
//! let script = r#"read request; echo '{"jsonrpc":"2.0","id":1,"result":"hello"}'; cat >/dev/null"#;
//! let server = Connection::spawn(&ChildSpec::from_argv(["sh", "-c", script])?)?;
//!
//! let answer: String = server.request("greet", ())?;
//! assert_eq!(answer, "hello");
//!
//! let ended = server.close();
//! assert!(ended.exit.is_some_and(|exit| exit.success()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The picture
//!
//! ```text
//!  ChildSpec ──▶ Child ──pipes──▶ Framing ──frames──▶ Message ──▶ Connection ──▶ mcp::Client
//!  what to run   running it       bytes ⇄ frames      frames ⇄     request(),      tools, prompts,
//!                                                     messages     notify(),       both eras
//!                                                                  close()
//! ```
//!
//! - [`ChildSpec`] says what to run, as a value that the operating system will accept; [`Options`]
//!   says how to talk to it: framing, dialect, limits, handlers.
//! - [`Connection`] owns the process and the threads. [`Peer`] is a handle to it that handlers are
//!   given; the methods of both stand there.
//! - [`Peer::request`] blocks until the answer. [`Peer::start`] gives a [`Call`] in flight: many at
//!   once from one thread, with progress, cancelled from another.
//! - [`Handler`] takes what the peer sends unasked, or the program's own loop does:
//!   [`Connection::next_incoming`].
//! - [`Error`] says what went wrong, and what the peer can have seen: [`Delivery`].
//! - [`Peer::survived`] counts what was overlooked on the way: banners, odd ids, late answers.
//! - [`Dialect`] is how a protocol on top uses JSON-RPC: how a call is cancelled, which
//!   notifications belong to it. Without one, a peer is not told of calls that are given up.
//!
//! A request passes three layers: the caller's thread encodes it into one buffer and hands it to
//! the writer thread; the reader thread finds out whose answer a frame is and moves its raw text
//! across; the caller's thread decodes that into the caller's own type.
//!
//! # Protocols on top
//!
//! [`mcp`] is a client of the Model Context Protocol, every published revision, built on what is
//! public here. Another protocol does the same: its [`Dialect`] says how it uses JSON-RPC, its
//! handshake is a request like any other, and [`json`] and [`quote`] have what a layer needs that
//! keeps raw text. The Language Server Protocol (3.17) begins so:
//!
//! ```no_run
//! use landline::{ChildSpec, Dialect, Framing, OnCancel, Options, Update};
//! use serde_json::{Value, json};
//!
//! let lsp = Dialect::new()
//!     .cancel_calls("$/cancelRequest", "id")
//!     .cancelled_requests("$/cancelRequest", "id", OnCancel::Reply { code: -32800 })
//!     .route("$/progress", ["token"]);
//! let server = Options::new()
//!     .framing(Framing::ContentLength)
//!     .dialect(lsp)
//!     .spawn(&ChildSpec::new("pylsp")?)?;
//!
//! let hello = json!({"processId": std::process::id(), "rootUri": null, "capabilities": {}});
//! let welcome: Value = server.request("initialize", hello)?;
//! server.notify("initialized", json!({}))?;
//!
//! // Its progress is the call's, because it goes by the call's id.
//! let symbols = server.start_with("workspace/symbol", &Default::default(), |id| {
//!     json!({"query": "main", "workDoneToken": id})
//! })?;
//! let found: Value = symbols.wait_with(|update| {
//!     if let Update::Notification(progress) = update {
//!         println!("{:?}", progress.params());
//!     }
//! })?;
//!
//! server.request::<Value>("shutdown", ())?;
//! server.notify("exit", ())?;
//! server.close();
//! # let _ = (welcome, found);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The promises
//!
//! Each has tests named after it: `p01_…` to `p20_…`.
//!
//! 1. **A call ends.** `request()` returns an answer, the peer's error, or a typed local error
//!    within its deadline, whatever the child does: silent, dead, not reading, flooding, half a
//!    frame.
//! 2. **Death is told at once**, never by a timeout, and explained: which call, which phase, exit
//!    code or signal, the stderr tail, the first stray stdout lines. The first cause is kept; later
//!    callers get the same.
//! 3. **An answer that is in the pipe when the child dies is still delivered.**
//! 4. **One connection serves many threads**: `Send + Sync`, `&self`; answers in any order; frames
//!    never interleave.
//! 5. **An answer that names its call ends that call at once**, whatever is wrong with the rest of
//!    it: too large, undecodable, contradictory; and wherever in the frame its id stands. Only that
//!    call fails; the connection goes on.
//! 6. **The reader never runs user code and never waits for a caller or for the writer.**
//! 7. **A handler may call `request()`, take minutes, panic, or close the connection.** Nothing
//!    deadlocks; answers, pings and the peer's requests are served meanwhile; further notifications
//!    wait in their bounded queue.
//! 8. **Notifications come in wire order, never delay an answer, and are bounded in bytes.** At the
//!    bound the oldest goes, and the gap is told in its place, with its size. What belongs to a
//!    call, and the peer's cancellations, never pass that queue.
//! 9. **Everything is bounded in bytes** and checked before it is allocated. Every limit is a
//!    setting with a documented default. A peer's request is never dropped silently: beyond its
//!    bound it is refused and counted.
//! 10. **Lenient in, strict out, and loud about it.** Stray lines, marks, blanks, odd ids, bad text
//!     are survived and counted in a snapshot a caller can read ([`Survived`]); what is written is
//!     always exactly one compact, valid frame. Garbage is never answered.
//! 11. **Time limits have names**: connect, total per call, idle per call (what belongs to the call
//!     extends it), close, drop, human. Any `Duration` is safe; `Duration::MAX` means none. An
//!     answer that has arrived beats a clock that has run out.
//! 12. **Giving up tells the peer without delaying the caller**; late answers are dropped and
//!     counted; an id is never used twice.
//! 13. **An error says what the peer can have seen**: `NotSent`, `MaybeRun`, `Answered`. Nothing is
//!     retried but where the protocol demands it. `NotSent` is the truth: a frame that was reported
//!     so can no longer be written.
//! 14. **`close()` is bounded and says what happened**: pending calls end at once, queued
//!     notifications and replies drain, stdin closes, wait, SIGTERM, wait, SIGKILL, reap; which
//!     step ended it, and the exit status. Idempotent, from any thread; a second closer waits for
//!     the first. `Drop` is the same in under a second; it never hangs and never panics.
//! 15. **The whole process tree goes**: wrappers (`npx`, `uvx`, `sh`) and what they started. No
//!     zombie, no leaked thread or descriptor; a process that left the group and keeps our pipe can
//!     hold one thread and one descriptor per pipe until it ends, and the closing report says so.
//! 16. **A failed start names its culprit**: the program, the directory, a permission.
//! 17. **Secrets stay out**: `Debug` and `Display` never show an environment value. In what an
//!     error quotes (stderr, stray lines, the peer's words) control bytes are removed; the raw
//!     bytes have their own accessor.
//! 18. **The host is left alone**: no global state, no signal handler, no printing, no panic. A
//!     host that has SIGPIPE at its default, or SIGCHLD ignored, or reaps every child itself,
//!     survives and is told the truth (`status unknown` rather than a guess).
//! 19. **Idle costs nothing**: no polling, no wake-ups, while nothing is in flight.
//! 20. **Small**: the build is the closure of thiserror, serde_json and crossbeam-channel, 13
//!     crates, and nothing else; unsafe in one file.
//!
//! Two have an edge where no thread waits for the process, as idle is to cost nothing. A process
//! that ends while another one keeps its stdout open is found out by whoever waits for an answer,
//! waits for room, notifies, or asks [`Peer::closed`]: a handler alone is not told (2). And whoever
//! waits looks at the process for that now and then, once a second in a long wait (19).
//!
//! # The threads
//!
//! | thread | owns | ends when |
//! |---|---|---|
//! | `landline-writer` | the child's stdin, fed by a queue under a byte budget | the queue is closed and empty, or a write fails |
//! | `landline-reader` | the child's stdout; at its end, the exit status | end of file or read error, then the reaping |
//! | `landline-stderr` | the child's stderr, when it is captured | end of file |
//! | `landline-dispatch` | notifications and the stderr callback; only when there is a handler or such a callback | the connection is closed, or its end and that of stderr were told |
//! | `landline-request` | one request of the peer; at most 16 at once | the handler returns |
//! | `landline-alive` | the pings of an MCP client; only with [`mcp::Options::keep_alive`] | the connection ends |
//!
//! # The time limits
//!
//! | limit | default | set by |
//! |---|---|---|
//! | connect: until an MCP server is ready to call, its start included | 60 s | [`mcp::Options::connect_timeout`] |
//! | probe: for the answer that tells a modern MCP server | 10 s | [`mcp::Options::probe_timeout`] |
//! | total: a whole call | 60 s | [`Options::request_timeout`], [`CallOptions::timeout`] |
//! | idle: since the last sign of life of a call | none | [`Options::idle_timeout`], [`CallOptions::idle`] |
//! | close: from its begin, after SIGTERM | 2 s, 2 s | [`Options::close_waits`] |
//! | drop: the same steps | 0.25 s each | [`Options::drop_waits`] |
//! | reply: a handler's reply to a peer that reads nothing at all | 10 s | [`Options::reply_timeout`] |
//! | keep-alive: between two pings of an MCP server | none | [`mcp::Options::keep_alive`] |
//! | human: how long one question to a person stops the clocks | 10 min | [`Options::human_timeout`] |
//!
//! The deadline of a call is its total limit plus the time spent asking a person
//! ([`Peer::stop_clocks`]).
//!
//! # The other limits
//!
//! | limit | default | set by |
//! |---|---|---|
//! | a frame, in both directions | 64 MiB | [`Options::frame_limit`] |
//! | requests and notifications waiting for the peer to read | 16 MiB | [`Options::outgoing_limit`] |
//! | replies and cancellations waiting for the peer to read | 1 MiB | [`Options::replies_limit`] |
//! | notifications waiting for each of their readers | 8 MiB | [`Options::notifications_limit`] |
//! | the tail of stderr | 64 KiB | [`Options::stderr_tail`] |
//! | requests of the peer waiting, running | 64 or 8 MiB, 16 | |
//! | a `Content-Length` header block | 8 KiB | |
//! | stray lines quoted | 8 of 256 bytes | |
//! | pages, and bytes, of an MCP list | 1,000, 64 MiB | [`mcp::Options::page_limit`], [`mcp::Options::list_limit`] |
//! | rounds of an MCP call | 10 | [`mcp::Options::round_limit`] |
//! | questions in one MCP round | 1,000 | |
//! | calls remembered as given up | 1,024 | |
//! | messages in one array | 65,536 | |
//! | stray text between two `Content-Length` frames | 256 KiB | |
//! | a declared `Content-Length` before the connection is given up | 16 times a frame | |
//! | a line of stderr handed to the callback in one piece | 64 KiB | |
//!
//! What has no setter is fixed. Text that is not UTF-8 takes up to three times its size while it is
//! repaired.
//!
//! # Closing
//!
//! [`Peer::close`] ends what is pending, lets queued notifications and replies drain, closes the
//! child's stdin and waits: the way in which every well-behaved server ends, and the only one that
//! reaches a server behind `ssh host server` or `docker run -i image`. Then follow SIGTERM and
//! SIGKILL to the process group. [`Ended`] says which step it took. Dropping a [`Connection`] does
//! the same with shorter waits. A host that is killed cannot do it; the children see the end of
//! their stdin.
//!
//! # What it does not do
//!
//! - No async, and no runtime hidden inside: a call blocks its thread.
//! - No retries: a call that failed is the caller's to repeat, by its [`Delivery`]. What [`mcp`]
//!   sends again is what its protocol demands: another version, or the answers to what was asked.
//! - No restarts: a connection is one process. Only connecting to an MCP server starts a second
//!   one, where the first ended on the question for its era.
//! - No shell: a [`ChildSpec`] is a program and its arguments.
//! - No handshake but that of [`mcp`]: `initialize` of LSP is a request like any other, and the
//!   caller's to make.
//! - No Windows yet: Linux is tested, macOS is written for and not tested.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// In the order in which data flows. What to run, and running it:
mod spec;

mod sync;
mod sys;

pub mod quote;

mod child;

// Bytes and messages:
mod scan;

mod framing;

pub mod json;
mod message;

// What a caller learns:
mod survived;

mod error;

// What a live connection is made of:
mod crew;
mod dialect;
mod mailbox;

mod clocks;
mod outbox;
mod pending;

mod link;
mod looks;

// Calling and being called:
mod cancel;

mod call;
mod peer;
mod request;

mod dispatch;

// Putting it together:
mod options;
mod reader;
mod writer;

mod connection;

// A protocol on top, by the public surface alone:
pub mod mcp;

pub use call::{Call, CallOptions, Update};
pub use cancel::CancelToken;
pub use child::{Exit, ProcessGroup, SpawnError, Stderr, Step};
pub use connection::Connection;
pub use dialect::{Arrays, Dialect, OnCancel};
pub use dispatch::{Handler, Incoming};
pub use error::{AnswerFault, Cause, Closed, Delivery, Error, Limit, Phase, Result, Timeout};
pub use framing::{FrameError, Framing};
pub use link::Ended;
pub use message::{EncodeError, Id, Notification, RpcError};
pub use options::Options;
pub use peer::{ClocksStopped, Peer, Stopwatch};
pub use request::{Request, Responder};
pub use spec::{ChildSpec, ChildSpecError};
pub use survived::Survived;
