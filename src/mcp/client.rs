//! [`Client`]: an MCP server to call, and the methods of a [`Session`].

use std::ops::Deref;

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::json::decode;
use crate::mcp::call::CallOptions;
use crate::mcp::complete::{Completion, Reference};
use crate::mcp::error::{ConnectError, Error, Fault, Result};
use crate::mcp::list::{Cursor, Item, List, Page, Stop};
use crate::mcp::log::LogLevel;
use crate::mcp::options::Options;
use crate::mcp::params::Params;
use crate::mcp::prompts::{Prompt, PromptResult};
use crate::mcp::resources::{ReadResult, Resource, ResourceTemplate};
use crate::mcp::revision::Era;
use crate::mcp::server::Server;
use crate::mcp::session::Session;
use crate::mcp::tools::{Tool, ToolResult};
use crate::{AnswerFault, ChildSpec, Connection, RpcError};

/// A client of one MCP server, and the owner of its process.
///
/// It is used through `&self` from any number of threads; its methods stand at [`Session`], to
/// which it dereferences, and are the same in both eras. Dropping it closes the connection like
/// [`Connection`].
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    session: Session,
}

impl Client {
    pub(crate) fn new(connection: Connection, session: Session) -> Self {
        Client {
            connection,
            session,
        }
    }

    /// Starts a server and connects to it with default options, under this crate's name; see
    /// [`Options::spawn`].
    ///
    /// # Errors
    ///
    /// As [`Options::spawn`].
    pub fn spawn(spec: &ChildSpec) -> Result<Self, ConnectError> {
        Options::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).spawn(spec)
    }

    /// The connection below.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A handle to this client that does not keep it open.
    pub fn session(&self) -> Session {
        self.session.clone()
    }

    /// The server as it presented itself.
    pub fn server(&self) -> &Server {
        // A client is made of a session that has met its server.
        self.session
            .presentation()
            .unwrap_or_else(|| unreachable!("a client has met its server"))
    }

    /// Closes the connection and tells how it went; see [`Peer::close`](crate::Peer::close).
    pub fn close(&self) -> crate::Ended {
        self.connection.close()
    }
}

impl Deref for Client {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Session {
    // Tools.

    /// Lists the tools, all pages of them.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] if the server declares none; a page that fails.
    pub fn tools(&self) -> Result<List<Tool>> {
        self.list()
    }

    /// Lists one page of tools: the first, or the one at a cursor.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn tools_page(&self, at: Option<&Cursor>) -> Result<Page<Tool>> {
        self.page(at)
    }

    /// Calls a tool. Arguments are an object; `()` is none.
    ///
    /// A tool that fails gives a result that says so ([`ToolResult::is_error`]); an error here is
    /// one of the protocol.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<ToolResult> {
        self.call_tool_with(name, arguments, CallOptions::new())
    }

    /// Calls a tool with limits, progress, and a cancel token of its own.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        mut options: CallOptions<'_>,
    ) -> Result<ToolResult> {
        const METHOD: &str = "tools/call";
        self.gate(METHOD, "tools")?;
        let params = Params::new().with("name", name);
        let params = params.and_then(|params| params.with_some("arguments", &arguments));
        let params = params.map_err(|error| Error::encode(METHOD, error))?;
        let tool = options.expect.take();
        let result = ToolResult::from_box(self.call(METHOD, params, options)?);
        let usable = result.structured().is_some() || result.member("content").is_some();
        if !usable {
            return Err(Error::invalid(METHOD, Fault::Missing("content")));
        }
        match tool {
            Some(tool) => self.check_output(&tool, result),
            None => Ok(result),
        }
    }

    fn check_output(&self, tool: &Tool, result: ToolResult) -> Result<ToolResult> {
        let validator = self.core.options.validator.as_ref();
        let (Some(validator), Some(schema), false) =
            (validator, tool.output_schema(), result.is_error())
        else {
            return Ok(result);
        };
        let checked = match result.structured() {
            Some(value) => (validator.0)(schema, value),
            None => Err("it is missing".into()),
        };
        match checked {
            Ok(()) => Ok(result),
            Err(reason) => Err(Error::Schema {
                tool: tool.name().into(),
                reason,
                result: Box::new(result),
            }),
        }
    }

    // Resources.

    /// Lists the resources, all pages of them.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resources(&self) -> Result<List<Resource>> {
        self.list()
    }

    /// Lists one page of resources.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resources_page(&self, at: Option<&Cursor>) -> Result<Page<Resource>> {
        self.page(at)
    }

    /// Lists the resource templates, all pages of them.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resource_templates(&self) -> Result<List<ResourceTemplate>> {
        self.list()
    }

    /// Lists one page of resource templates.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resource_templates_page(&self, at: Option<&Cursor>) -> Result<Page<ResourceTemplate>> {
        self.page(at)
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; see [`Error::is_resource_not_found`].
    pub fn read_resource(&self, uri: &str) -> Result<ReadResult> {
        self.read_resource_with(uri, CallOptions::new())
    }

    /// Reads a resource with limits and progress of its own.
    ///
    /// # Errors
    ///
    /// As [`read_resource`](Self::read_resource).
    pub fn read_resource_with(&self, uri: &str, options: CallOptions<'_>) -> Result<ReadResult> {
        const METHOD: &str = "resources/read";
        self.gate(METHOD, "resources")?;
        let params = Params::new().with("uri", uri);
        let params = params.map_err(|error| Error::encode(METHOD, error))?;
        let result = ReadResult::from_box(self.call(METHOD, params, options)?);
        if !result
            .member("contents")
            .is_some_and(|raw| raw.get().starts_with('['))
        {
            return Err(Error::invalid(METHOD, Fault::Missing("contents")));
        }
        Ok(result)
    }

    // Prompts.

    /// Lists the prompts, all pages of them.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn prompts(&self) -> Result<List<Prompt>> {
        self.list()
    }

    /// Lists one page of prompts.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn prompts_page(&self, at: Option<&Cursor>) -> Result<Page<Prompt>> {
        self.page(at)
    }

    /// Gets a prompt. Arguments are an object of strings; `()` is none.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<PromptResult> {
        self.get_prompt_with(name, arguments, CallOptions::new())
    }

    /// Gets a prompt with limits and progress of its own.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn get_prompt_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: CallOptions<'_>,
    ) -> Result<PromptResult> {
        const METHOD: &str = "prompts/get";
        self.gate(METHOD, "prompts")?;
        let params = Params::new().with("name", name);
        let params = params.and_then(|params| params.with_some("arguments", &arguments));
        let params = params.map_err(|error| Error::encode(METHOD, error))?;
        let result = PromptResult::from_box(self.call(METHOD, params, options)?);
        if !result
            .member("messages")
            .is_some_and(|raw| raw.get().starts_with('['))
        {
            return Err(Error::invalid(METHOD, Fault::Missing("messages")));
        }
        Ok(result)
    }

    // Utilities.

    /// Asks how an argument of a prompt, or a variable of a resource template, may go on.
    ///
    /// `context` gives the arguments that are known already: an object of strings; `()` is none. It
    /// goes out from revision 2025-06-18 on, the first to have it.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn complete(
        &self,
        of: &Reference,
        argument: &str,
        value: &str,
        context: impl Serialize,
    ) -> Result<Completion> {
        const METHOD: &str = "completion/complete";
        let revision = self.opened(METHOD)?.revision();
        if revision.declares_completions() {
            self.gate(METHOD, "completions")?;
        }
        let params = Params::new().with("ref", of).and_then(|params| {
            params.with(
                "argument",
                &serde_json::json!({"name": argument, "value": value}),
            )
        });
        let params = params.and_then(|params| {
            let known =
                serde_json::value::to_raw_value(&context).map_err(crate::EncodeError::Serialize)?;
            if known.get() == "null" || !revision.has_completion_context() {
                return Ok(params);
            }
            params.with("context", &serde_json::json!({"arguments": known}))
        });
        let params = params.map_err(|error| Error::encode(METHOD, error))?;
        let result = self.call(METHOD, params, CallOptions::new())?;
        Completion::read(&result)
            .ok_or_else(|| Error::invalid(METHOD, Fault::Missing("completion.values")))
    }

    /// Asks for a sign of life. Legacy alone; in the modern era any call is one.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::NotInRevision`] in the modern era.
    pub fn ping(&self) -> Result<()> {
        const METHOD: &str = "ping";
        self.legacy_only(METHOD)?;
        self.call(METHOD, Params::new(), CallOptions::new())
            .map(drop)
    }

    /// Sets from which level on the server sends log messages. In the legacy era it asks the server
    /// at once; in the modern one every request from now on says so.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] if the server declares no `logging`; in the legacy era any
    /// [`Error`].
    pub fn set_log_level(&self, level: LogLevel) -> Result<()> {
        const METHOD: &str = "logging/setLevel";
        self.gate(METHOD, "logging")?;
        if self.opened(METHOD)?.era() == Era::Modern {
            self.set_modern_log_level(Some(level));
            return Ok(());
        }
        let params = Params::new().with("level", level.as_str());
        let params = params.map_err(|error| Error::encode(METHOD, error))?;
        self.call(METHOD, params, CallOptions::new()).map(drop)
    }

    /// Tells the server that the roots have changed. Does nothing in the modern era, whose servers
    /// ask each time, or where no roots were declared.
    ///
    /// # Errors
    ///
    /// The notification cannot be sent.
    pub fn roots_changed(&self) -> Result<()> {
        const METHOD: &str = "notifications/roots/list_changed";
        let era = self.opened(METHOD)?.era();
        if era == Era::Legacy && self.core.options.handlers.roots.is_some() {
            self.peer().notify(METHOD, ())?;
        }
        Ok(())
    }

    /// Makes any request, and decodes its result into the caller's own type. A `_meta` in the
    /// params is passed on, but for reserved keys; what the era demands is added.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn request<R: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<R> {
        self.request_with(method, params, CallOptions::new())
    }

    /// Makes any request with limits and progress of its own.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn request_with<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
        options: CallOptions<'_>,
    ) -> Result<R> {
        let split = Params::split(&params).map_err(|error| Error::encode(method, error))?;
        let mut params = split.params;
        if let Some(meta) = split.meta {
            params.meta.take_in(&meta)?;
        }
        let result = self.call(method, params, options)?;
        decode(&result).map_err(|error| {
            let method = method.into();
            let fault = Box::new(AnswerFault::Decode(error));
            crate::Error::Answer { method, fault }.into()
        })
    }

    // Lists.

    fn list<T: Item>(&self) -> Result<List<T>> {
        let mut list = List::new();
        let mut seen: Vec<Cursor> = Vec::new();
        for _ in 0..self.core.options.pages {
            let page = match self.page::<T>(seen.last()) {
                // A server may declare a list and have none: that is an empty one, and says so.
                Err(error)
                    if seen.is_empty()
                        && error
                            .rpc()
                            .is_some_and(|rpc| rpc.code == RpcError::METHOD_NOT_FOUND) =>
                {
                    list.stop(Stop::NotImplemented);
                    return Ok(list);
                }
                page => page?,
            };
            let next = page.next.clone();
            list.add(page);
            match next {
                None => return Ok(list),
                Some(next) if seen.contains(&next) => {
                    list.stop(Stop::RepeatedCursor);
                    return Ok(list);
                }
                Some(next) => seen.push(next),
            }
        }
        list.stop(Stop::PageLimit);
        Ok(list)
    }

    fn page<T: Item>(&self, at: Option<&Cursor>) -> Result<Page<T>> {
        self.gate(T::METHOD, T::CAPABILITY)?;
        let params = match at {
            None => Ok(Params::new()),
            Some(cursor) => Params::new().with("cursor", cursor.as_str()),
        };
        let params = params.map_err(|error| Error::encode(T::METHOD, error))?;
        let result: Box<RawValue> = self.call(T::METHOD, params, CallOptions::new())?;
        Page::read(&result).map_err(|fault| Error::invalid(T::METHOD, fault))
    }
}
