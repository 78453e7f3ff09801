//! What can be called: the methods of a [`Session`], the same in both eras.
//!
//! Each makes its params, passes them to [`Session::call`], and reads the result so far as to know
//! that it is one. What the server does not declare, or the revision does not have, fails before
//! anything is sent.

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;

use crate::AnswerFault;
use crate::json::decode;
use crate::mcp::call_options::CallOptions;
use crate::mcp::complete::{Completion, Reference};
use crate::mcp::error::{Error, Result};
use crate::mcp::fault::Fault;
use crate::mcp::list::{Cursor, List, Page};
use crate::mcp::log::LogLevel;
use crate::mcp::params::Params;
use crate::mcp::prompts::{Prompt, PromptResult};
use crate::mcp::resources::{ReadResult, Resource, ResourceTemplate};
use crate::mcp::revision::Era;
use crate::mcp::session::Session;
use crate::mcp::tools::{Tool, ToolResult};

impl Session {
    // Tools.

    /// Lists the tools, all pages of them.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let tools = server.tools()?;
    /// assert_eq!(tools[0].name(), "add");
    /// assert_eq!(tools[1].name(), "build");
    /// assert_eq!(tools.stopped(), None, "these are all");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] if the server declares none; a page that fails.
    pub fn tools(&self) -> Result<List<Tool>> {
        self.list()
    }

    /// Lists one page of tools: the first, or the one at a cursor.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let first = server.tools_page(None)?;
    /// let second = server.tools_page(first.next.as_ref())?;
    /// assert_eq!(second.items[0].name(), "build");
    /// assert_eq!(second.next, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn tools_page(&self, at: Option<&Cursor>) -> Result<Page<Tool>> {
        self.page(at, CallOptions::new())
    }

    /// Calls a tool. Arguments are an object; `()` is none.
    ///
    /// A tool that fails gives a result that says so ([`ToolResult::is_error`]); an error here is
    /// one of the protocol.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use serde_json::{Value, json};
    /// # let server = demo::client()?;
    /// let result = server.call_tool("add", json!({"a": 1, "b": 2}))?;
    /// assert!(!result.is_error());
    /// let sum: Value = result.structured_as()?;
    /// assert_eq!(sum, json!({"sum": 3}));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<ToolResult> {
        self.call_tool_with(name, arguments, CallOptions::new())
    }

    /// Calls a tool with limits, progress, and a cancel token of its own.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::CallOptions;
    /// # use std::time::Duration;
    /// # let server = demo::client()?;
    /// let options = CallOptions::new()
    ///     .timeout(Duration::from_secs(600))
    ///     .progress(|told| println!("{:?} of {:?}", told.progress(), told.total()));
    /// let result = server.call_tool_with("build", (), options)?;
    /// assert_eq!(result.all_text(), "built");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let params = Params::of(METHOD).with("name", name)?;
        let params = params.with_arguments(&arguments)?;
        let tool = options.expect.take();
        let result = ToolResult::from_box(self.call(params, options)?);
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
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// for resource in server.resources()? {
    ///     assert_eq!(resource.uri(), "file:///notes");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resources(&self) -> Result<List<Resource>> {
        self.list()
    }

    /// Lists one page of resources.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let page = server.resources_page(None)?;
    /// assert_eq!(page.items[0].name(), "notes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resources_page(&self, at: Option<&Cursor>) -> Result<Page<Resource>> {
        self.page(at, CallOptions::new())
    }

    /// Lists the resource templates, all pages of them.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let templates = server.resource_templates()?;
    /// assert_eq!(templates[0].uri_template(), "file:///{name}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resource_templates(&self) -> Result<List<ResourceTemplate>> {
        self.list()
    }

    /// Lists one page of resource templates.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let page = server.resource_templates_page(None)?;
    /// assert!(page.next.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resource_templates_page(&self, at: Option<&Cursor>) -> Result<Page<ResourceTemplate>> {
        self.page(at, CallOptions::new())
    }

    /// Reads a resource.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let notes = server.read_resource("file:///notes")?;
    /// assert_eq!(notes.contents()[0].as_text().unwrap(), "buy milk");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any [`Error`]; see [`Error::is_resource_not_found`].
    pub fn read_resource(&self, uri: &str) -> Result<ReadResult> {
        self.read_resource_with(uri, CallOptions::new())
    }

    /// Reads a resource with limits and progress of its own.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::CallOptions;
    /// # use std::time::Duration;
    /// # let server = demo::client()?;
    /// let patient = CallOptions::new().timeout(Duration::from_secs(600));
    /// let notes = server.read_resource_with("file:///notes", patient)?;
    /// assert_eq!(notes.contents().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read_resource`](Self::read_resource).
    pub fn read_resource_with(&self, uri: &str, options: CallOptions<'_>) -> Result<ReadResult> {
        const METHOD: &str = "resources/read";
        self.gate(METHOD, "resources")?;
        let params = Params::of(METHOD).with("uri", uri)?;
        let result = ReadResult::from_box(self.call(params, options)?);
        must_list(METHOD, result.member("contents"), "contents")?;
        Ok(result)
    }

    // Prompts.

    /// Lists the prompts, all pages of them.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let prompts = server.prompts()?;
    /// assert_eq!(prompts[0].name(), "review");
    /// assert_eq!(prompts[0].arguments()[0].name(), "language");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn prompts(&self) -> Result<List<Prompt>> {
        self.list()
    }

    /// Lists one page of prompts.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let page = server.prompts_page(None)?;
    /// assert_eq!(page.items.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn prompts_page(&self, at: Option<&Cursor>) -> Result<Page<Prompt>> {
        self.page(at, CallOptions::new())
    }

    /// Gets a prompt. Arguments are an object of strings; `()` is none.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use serde_json::json;
    /// # let server = demo::client()?;
    /// let prompt = server.get_prompt("review", json!({"language": "Rust"}))?;
    /// let message = &prompt.messages()[0];
    /// assert_eq!(message.role(), "user");
    /// assert_eq!(message.content().as_text().unwrap(), "Review this Rust.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<PromptResult> {
        self.get_prompt_with(name, arguments, CallOptions::new())
    }

    /// Gets a prompt with limits and progress of its own.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::CallOptions;
    /// # use serde_json::json;
    /// # use std::time::Duration;
    /// # let server = demo::client()?;
    /// let patient = CallOptions::new().timeout(Duration::from_secs(600));
    /// let prompt = server.get_prompt_with("review", json!({"language": "C"}), patient)?;
    /// assert_eq!(prompt.messages().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let params = Params::of(METHOD).with("name", name)?;
        let params = params.with_texts(&arguments)?;
        let result = PromptResult::from_box(self.call(params, options)?);
        must_list(METHOD, result.member("messages"), "messages")?;
        Ok(result)
    }

    // Utilities.

    /// Asks how an argument of a prompt, or a variable of a resource template, may go on.
    ///
    /// `context` gives the arguments that are known already: an object of strings; `()` is none. It
    /// goes out from revision 2025-06-18 on, the first to have it.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Reference;
    /// # let server = demo::client()?;
    /// let review = Reference::Prompt("review".into());
    /// let completion = server.complete(&review, "language", "ru", ())?;
    /// assert_eq!(completion.values, ["rust", "ruby"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let known = Params::of(METHOD).with_texts(&context)?;
        let params = Params::of(METHOD)
            .with("ref", of)?
            .with("argument", &json!({"name": argument, "value": value}))?;
        let params = match known.arguments() {
            Some(known) if revision.has_completion_context() => {
                params.with("context", &json!({ "arguments": known }))?
            }
            _ => params,
        };
        let result = self.call(params, CallOptions::new())?;
        Completion::read(&result)
            .ok_or_else(|| Error::invalid(METHOD, Fault::Missing("completion.values")))
    }

    /// Asks for a sign of life. Legacy alone; in the modern era any call is one.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::legacy_client()?;
    /// server.ping()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::NotInRevision`] in the modern era.
    pub fn ping(&self) -> Result<()> {
        const METHOD: &str = "ping";
        self.legacy_only(METHOD)?;
        self.call(Params::of(METHOD), CallOptions::new()).map(drop)
    }

    /// Sets from which level on the server sends log messages. In the legacy era it asks the server
    /// at once; in the modern one every request from now on says so.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::LogLevel;
    /// # let server = demo::client()?;
    /// server.set_log_level(LogLevel::Warning)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] if the server declares no `logging`; in the legacy era any
    /// [`Error`].
    pub fn set_log_level(&self, level: LogLevel) -> Result<()> {
        const METHOD: &str = "logging/setLevel";
        self.gate(METHOD, "logging")?;
        if self.opened(METHOD)?.era() == Era::Modern {
            self.set_modern_log_level(level);
            return Ok(());
        }
        let params = Params::of(METHOD).with("level", level.as_str())?;
        self.call(params, CallOptions::new()).map(drop)
    }

    /// Tells the server that the roots have changed. Does nothing in the modern era, whose servers
    /// ask each time, or where no roots were declared.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Root};
    /// # let (answers, requests) = demo::legacy_server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .roots(|_| vec![])
    ///     .connect(answers, requests)?;
    /// // The user has opened another folder.
    /// server.roots_changed()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use serde_json::{Value, json};
    /// # let server = demo::client()?;
    /// let time: Value = server.request("com.example/time", ())?;
    /// assert_eq!(time["hour"], 12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub fn request<R: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<R> {
        self.request_with(method, params, CallOptions::new())
    }

    /// Makes any request with limits and progress of its own.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{CallOptions, Meta};
    /// # use serde_json::Value;
    /// # let server = demo::client()?;
    /// let zone = Meta::new().with("com.example/zone", "UTC")?;
    /// let options = CallOptions::new().meta(zone);
    /// let time: Value = server.request_with("com.example/time", (), options)?;
    /// assert_eq!(time["meta"], "UTC");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let params = Params::of(method).with_all(&params)?;
        let result = self.call(params, options)?;
        decode(&result).map_err(|error| {
            let method = method.into();
            let fault = Box::new(AnswerFault::Decode(error));
            crate::Error::Answer { method, fault }.into()
        })
    }
}

/// Fails a result whose member is no array.
fn must_list(method: &str, member: Option<&RawValue>, name: &'static str) -> Result<()> {
    match member {
        Some(raw) if raw.get().starts_with('[') => Ok(()),
        _ => Err(Error::invalid(method, Fault::Missing(name))),
    }
}
