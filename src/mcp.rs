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
//! println!("{}", now.all_text());
//! server.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// In the order in which a client lives. What is spoken:
mod revision;

mod view;

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

mod error;

mod connect;

// Calling:
mod call;
mod client;
mod session;

mod keep_alive;

// Answering:
mod answer;
mod handlers;
mod inputs;

pub use call::CallOptions;
pub use client::Client;
pub use complete::{Completion, Reference};
pub use content::{Block, Content};
pub use elicit::{Elicited, FormRequest, UrlRequest};
pub use error::{
    Attempt, ConnectError, ConnectFailure, ConnectPhase, Error, Fault, Reason, Result,
};
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
