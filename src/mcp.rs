//! A client for the Model Context Protocol (MCP): every published revision, both eras.
//!
//! ```no_run
//! use landline::ChildSpec;
//! use landline::mcp::Client;
//! use serde_json::json;
//!
//! let server = Client::spawn(&ChildSpec::from_argv(["uvx", "mcp-server-time"])?)?;
//! for tool in server.tools()? {
//!     println!("{}: {}", tool.name(), tool.description().unwrap_or_default());
//! }
//! let now = server.call_tool("get_current_time", json!({"timezone": "UTC"}))?;
//! match now.is_error() {
//!     false => println!("{}", now.all_text()),
//!     true => println!("the tool failed: {}", now.all_text()),
//! }
//! server.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What each revision has
//!
//! | | 2024-11-05 | 2025-03-26 | 2025-06-18 | 2025-11-25 | 2026-07-28 |
//! |---|---|---|---|---|---|
//! | [era](eras) | legacy | legacy | legacy | legacy | modern |
//! | tools, resources, prompts: [`Session`] | yes | yes | yes | yes | yes |
//! | [completions](Session::complete) | ungated | yes | with context | with context | with context |
//! | [log level](Session::set_log_level) | yes | yes | yes | yes | in each request |
//! | [ping](Session::ping), [keep-alive](Options::keep_alive) | yes | yes | yes | yes | no |
//! | [roots](Options::roots), [sampling](Options::sample) | yes | yes | yes | yes | in rounds |
//! | [sampling with tools](Options::sample_with_tools) | no | no | no | yes | in rounds |
//! | [forms](Options::elicit_form) | no | no | yes | yes | in rounds |
//! | [pages to visit](Options::elicit_url) | no | no | no | yes | in rounds |
//! | [progress](CallOptions::progress) | yes | with message | with message | with message | with message |
//! | batches received | no | yes | no | no | no |
//! | [structured results](ToolResult::structured) | no | no | objects | objects | any value |
//! | [changes told](Options::on_list_changed) | unasked | unasked | unasked | unasked | not yet: by subscription |
//! | subscriptions, tasks | not yet | not yet | not yet | not yet | not yet |
//! | [cache hints](Page::ttl) | no | no | no | no | yes |
//!
//! "In rounds" means that the server asks inside a result, and the call goes out once more with the
//! answer; the handler is the same.
//!
//! # Calling
//!
//! A [`Client`] owns the connection; a [`Session`] is a handle to it, which handlers are given too,
//! and has the methods. Each blocks until its result, with the limits of the [`Options`] or of its
//! [`CallOptions`], and can be [cancelled](CallOptions::cancel_token) from another thread. What the
//! server does not declare is not asked for: [`Error::NotSupported`]. A program at which somebody
//! waits sets a shorter [`Options::connect_timeout`] than the 60 seconds that a download may take.
//!
//! Values are views: they keep the JSON that the server wrote and read it by accessors, so that a
//! new or odd member loses nothing. Any value has its raw text, and decodes into a type of the
//! caller's own.
//!
//! # Answering
//!
//! Handlers are closures, installed one by one on [`Options`]; installing one declares its
//! capability. One that asks a person stops the clocks of the connection meanwhile, for the
//! [human limit](Options::human_timeout) at most.

#[doc = include_str!("mcp/eras.md")]
pub mod eras {}

// In the order in which a client lives. What is spoken:
mod revision;

mod latch;
mod view;

mod fault;

mod meta;
mod params;
mod progress;

// What is said:
mod complete;
mod content;
mod elicit;
mod list;
mod log;
mod prompts;
mod resources;
mod roots;
mod sample;
mod tools;

// Connecting:
mod options;
mod server;

mod dialects;
mod error;

mod connect;

// Calling:
mod asking;
mod call_options;
mod client;
mod session;

mod exchange;

mod listing;

mod methods;

mod keep_alive;

// Answering:
mod handlers;
mod incoming;
mod install;
mod rounds;

pub use call_options::CallOptions;
pub use client::Client;
pub use complete::{Completion, Reference};
pub use content::{Block, Content};
pub use elicit::{Elicited, FormRequest, UrlRequest};
pub use error::{Attempt, ConnectError, ConnectFailure, ConnectPhase, Error, Reason, Result};
pub use fault::Fault;
pub use handlers::{Context, ListKind};
pub use list::{CacheScope, Cursor, Item, List, Page, Stop, Unusable};
pub use log::{LogLevel, LogMessage};
pub use meta::{Meta, MetaError};
pub use options::Options;
pub use progress::Progress;
pub use prompts::{Prompt, PromptArgument, PromptMessage, PromptResult};
pub use resources::{Contents, ReadResult, Resource, ResourceTemplate};
pub use revision::{Era, Revision};
pub use roots::{Root, RootError};
pub use sample::{Sample, SampleMessage, SampleRequest};
pub use server::{Capabilities, Implementation, Server};
pub use session::Session;
pub use tools::{Tool, ToolResult};
