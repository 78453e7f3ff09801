//! What the server can ask of the client, and who answers.
//!
//! One set of closures serves both eras. In the legacy era they are run by the connection's
//! handler, in the modern one by the call whose result asks; what they are given and what becomes
//! of their answers is the same, and written once, here.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::json::member;
use crate::mcp::elicit::{Elicited, FormRequest, UrlRequest};
use crate::mcp::log::LogMessage;
use crate::mcp::revision::Revision;
use crate::mcp::roots::Root;
use crate::mcp::sample::{Sample, SampleRequest};
use crate::mcp::session::Session;
use crate::{Closed, Notification, Request, RpcError};

/// What a handler is given: a session to call back through, and word of a withdrawal.
#[derive(Debug)]
pub struct Context<'a> {
    session: &'a Session,
    request: Option<&'a Request>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(session: &'a Session, request: Option<&'a Request>) -> Self {
        Context { session, request }
    }

    /// Tells whether the answer is of no use any more: the server withdrew its request, or the
    /// connection has ended.
    pub fn is_cancelled(&self) -> bool {
        self.request.is_some_and(Request::is_cancelled) || self.session.peer().closed().is_some()
    }
}

impl Deref for Context<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session
    }
}

/// The lists of a server that can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListKind {
    /// The tools.
    Tools,
    /// The resources, and their templates.
    Resources,
    /// The prompts.
    Prompts,
}

type Answer<Asked, Given> = Arc<dyn Fn(&Context, &Asked) -> Given + Send + Sync>;
type ListRoots = Arc<dyn Fn(&Context) -> Vec<Root> + Send + Sync>;
type OnListChanged = Arc<dyn Fn(&Context, ListKind) + Send + Sync>;
type OnClosed = Arc<dyn Fn(&Closed) + Send + Sync>;

/// The closures that were installed.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) roots: Option<ListRoots>,
    pub(crate) elicit_form: Option<Answer<FormRequest, Elicited>>,
    pub(crate) elicit_url: Option<Answer<UrlRequest, Elicited>>,
    pub(crate) sample: Option<Answer<SampleRequest, Result<Sample, RpcError>>>,
    pub(crate) samples_tools: bool,
    pub(crate) on_log: Option<Answer<LogMessage, ()>>,
    pub(crate) on_list_changed: Option<OnListChanged>,
    pub(crate) on_updated: Option<Answer<str, ()>>,
    pub(crate) on_elicitation_complete: Option<Answer<str, ()>>,
    pub(crate) on_other: Option<Answer<Notification, ()>>,
    pub(crate) on_closed: Option<OnClosed>,
}

/// Shows which are installed.
impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let installed = [
            ("roots", self.roots.is_some()),
            ("elicit_form", self.elicit_form.is_some()),
            ("elicit_url", self.elicit_url.is_some()),
            ("sample", self.sample.is_some()),
            ("on_log", self.on_log.is_some()),
            ("on_list_changed", self.on_list_changed.is_some()),
            ("on_updated", self.on_updated.is_some()),
        ];
        let names = installed.iter().filter(|(_, is)| *is).map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

/// Why a question of the server's has no answer.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing is installed for it, so that the server should not have asked: the refusal.
    Undeclared(RpcError),
    /// It was refused, or its handler failed: the refusal.
    Refused(RpcError),
}

impl Refusal {
    pub(crate) fn into_error(self) -> RpcError {
        match self {
            Refusal::Undeclared(error) | Refusal::Refused(error) => error,
        }
    }
}

impl Handlers {
    /// What these declare, in the words of one revision.
    pub(crate) fn capabilities(&self, revision: Revision) -> Value {
        let mut declared = Map::new();
        if self.roots.is_some() {
            let modern = revision == Revision::V2026_07_28;
            let roots = if modern {
                json!({})
            } else {
                json!({"listChanged": true})
            };
            declared.insert("roots".into(), roots);
        }
        if self.sample.is_some() {
            let tools = self.samples_tools && revision.has_modes();
            let sampling = if tools {
                json!({"tools": {}})
            } else {
                json!({})
            };
            declared.insert("sampling".into(), sampling);
        }
        let (form, url) = (self.elicit_form.is_some(), self.elicit_url.is_some());
        if revision.has_modes() && (form || url) {
            let modes = [("form", form), ("url", url)]
                .into_iter()
                .filter(|(_, is)| *is);
            let modes: Map<_, _> = modes.map(|(mode, _)| (mode.into(), json!({}))).collect();
            declared.insert("elicitation".into(), modes.into());
        } else if revision.has_elicitation() && form {
            declared.insert("elicitation".into(), json!({}));
        }
        declared.into()
    }

    /// Answers one question, whichever way it came: by its method and params.
    pub(crate) fn answer(
        &self,
        cx: &Context,
        revision: Revision,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, Refusal> {
        match method {
            "roots/list" => self.list_roots(cx),
            "elicitation/create" if revision.has_elicitation() => {
                self.elicit(cx, revision, params.unwrap_or(RawValue::NULL))
            }
            "sampling/createMessage" => {
                self.create_message(cx, revision, params.unwrap_or(RawValue::NULL))
            }
            other => Err(Refusal::Undeclared(RpcError::method_not_found(other))),
        }
    }

    fn list_roots(&self, cx: &Context) -> Result<Box<RawValue>, Refusal> {
        let roots = self.roots.as_ref().ok_or_else(|| undeclared("roots"))?;
        let roots = guard(|| roots(cx))?;
        encode(&json!({ "roots": roots }))
    }

    fn elicit(
        &self,
        cx: &Context,
        revision: Revision,
        params: &RawValue,
    ) -> Result<Box<RawValue>, Refusal> {
        if self.elicit_form.is_none() && self.elicit_url.is_none() {
            return Err(undeclared("elicitation"));
        }
        // No mode means a form, in every revision.
        let mode = member(params, &["mode"]).map_or("\"form\"", RawValue::get);
        let elicited = match (mode, &self.elicit_form, &self.elicit_url) {
            ("\"form\"", Some(form), _) => {
                let ask = FormRequest::new(params);
                ask.check()?;
                asking(cx, || form(cx, &ask))?
            }
            ("\"url\"", _, Some(url)) if revision.has_modes() => {
                let ask = UrlRequest::new(params);
                ask.check()?;
                asking(cx, || url(cx, &ask))?
            }
            (mode, ..) => {
                let words = format!("elicitation in the mode {mode} was not declared");
                let error = RpcError::new(RpcError::INVALID_PARAMS, words);
                return Err(Refusal::Undeclared(error));
            }
        };
        encode(&elicited.into_result(mode == "\"form\""))
    }

    fn create_message(
        &self,
        cx: &Context,
        revision: Revision,
        params: &RawValue,
    ) -> Result<Box<RawValue>, Refusal> {
        let sample = self.sample.as_ref().ok_or_else(|| undeclared("sampling"))?;
        let ask = SampleRequest::new(params);
        let with_tools = self.samples_tools && revision.has_modes();
        if !with_tools && ask.uses_tools() {
            let words = "sampling with tools was not declared";
            return Err(Refusal::Undeclared(RpcError::new(
                RpcError::INVALID_PARAMS,
                words,
            )));
        }
        ask.check(revision)?;
        let sampled = asking(cx, || sample(cx, &ask))?.map_err(Refusal::Refused)?;
        encode(&sampled.into_result())
    }
}

/// Runs a handler that may ask a person: the clocks stand still.
fn asking<T>(cx: &Context, handler: impl FnOnce() -> T) -> Result<T, Refusal> {
    let _stopped = cx.peer().stop_clocks();
    guard(handler)
}

/// Runs the user's code; a panic is its failure, in either era and on any thread.
fn guard<T>(handler: impl FnOnce() -> T) -> Result<T, Refusal> {
    // What it leaves behind is the handler's own: nothing of this layer is shared with it.
    catch_unwind(AssertUnwindSafe(handler)).map_err(|_| {
        Refusal::Refused(RpcError::new(
            RpcError::INTERNAL_ERROR,
            "the handler failed",
        ))
    })
}

fn encode(result: &Value) -> Result<Box<RawValue>, Refusal> {
    to_raw_value(result).map_err(|error| {
        Refusal::Refused(RpcError::new(RpcError::INTERNAL_ERROR, error.to_string()))
    })
}

fn undeclared(what: &str) -> Refusal {
    let words = format!("{what} not supported");
    Refusal::Undeclared(RpcError::new(RpcError::METHOD_NOT_FOUND, words))
}

/// A question whose params are not what the protocol says.
pub(crate) fn malformed(words: impl Into<String>) -> Refusal {
    Refusal::Refused(RpcError::new(RpcError::INVALID_PARAMS, words))
}
