//! What the server can ask of the client, and who answers.
//!
//! One set of closures serves both eras. In the legacy era they are run by the connection's
//! handler, in the modern one by the call whose result asks; what they are given and what becomes
//! of their answers is the same, and written once, here.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::mcp::asking::Asking;
use crate::mcp::elicit::{Elicited, FormRequest, UrlRequest};
use crate::mcp::fault::Refusal;
use crate::mcp::log::LogMessage;
use crate::mcp::revision::{Era, Revision};
use crate::mcp::roots::Root;
use crate::mcp::sample::{Sample, SampleRequest};
use crate::mcp::session::Session;
use crate::mcp::view::present;
use crate::{CancelToken, Closed, Notification, Request, RpcError};

/// What a handler is given: a session to call back through, and word of a withdrawal.
#[derive(Debug)]
pub struct Context<'a> {
    session: &'a Session,
    request: Option<&'a Request>,
    cancel: Option<&'a CancelToken>,
}

impl<'a> Context<'a> {
    /// For what a request of the server's runs, or a notification.
    pub(crate) fn new(session: &'a Session, request: Option<&'a Request>) -> Self {
        Context {
            session,
            request,
            cancel: None,
        }
    }

    /// For what a call runs that can be cancelled by a token.
    pub(crate) fn of_call(session: &'a Session, cancel: Option<&'a CancelToken>) -> Self {
        Context {
            session,
            request: None,
            cancel,
        }
    }

    /// Tells whether the answer is of no use any more: the server withdrew its request, the call
    /// that needs it was cancelled, or the connection has ended.
    pub fn is_cancelled(&self) -> bool {
        self.request.is_some_and(Request::is_cancelled)
            || self.cancel.is_some_and(CancelToken::is_cancelled)
            || self.session.peer().closed().is_some()
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
type AnswerSample = Answer<SampleRequest, Result<Sample, RpcError>>;
type ListRoots = Arc<dyn Fn(&Context) -> Vec<Root> + Send + Sync>;
type OnListChanged = Arc<dyn Fn(&Context, ListKind) + Send + Sync>;
type OnLost = Arc<dyn Fn(&Context, u64) + Send + Sync>;
type OnClosed = Arc<dyn Fn(&Closed) + Send + Sync>;

/// The closures that were installed.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) roots: Option<ListRoots>,
    pub(crate) elicit_form: Option<Answer<FormRequest, Elicited>>,
    pub(crate) elicit_url: Option<Answer<UrlRequest, Elicited>>,
    pub(crate) sample: Option<AnswerSample>,
    pub(crate) samples_tools: bool,
    pub(crate) on_log: Option<Answer<LogMessage, ()>>,
    pub(crate) on_list_changed: Option<OnListChanged>,
    pub(crate) on_updated: Option<Answer<str, ()>>,
    pub(crate) on_elicitation_complete: Option<Answer<str, ()>>,
    pub(crate) on_other: Option<Answer<Notification, ()>>,
    pub(crate) on_lost: Option<OnLost>,
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
            (
                "on_elicitation_complete",
                self.on_elicitation_complete.is_some(),
            ),
            ("on_notification", self.on_other.is_some()),
            ("on_lost", self.on_lost.is_some()),
            ("on_closed", self.on_closed.is_some()),
        ];
        let names = installed.iter().filter(|(_, is)| *is).map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

/// A question of the server's that is sound, with the handler that was declared for it.
pub(crate) enum Question<'h> {
    Roots(&'h ListRoots),
    Form(&'h Answer<FormRequest, Elicited>, FormRequest),
    Url(&'h Answer<UrlRequest, Elicited>, UrlRequest),
    Sample(&'h AnswerSample, SampleRequest),
}

impl Question<'_> {
    /// Runs the handler; a panic of it passes through. Where it may ask a person, the clocks stand
    /// still.
    pub(crate) fn answer(self, cx: &Context, revision: Revision) -> Result<Value, RpcError> {
        // Nobody is asked for roots, whose handler has clocks like any other.
        let asks = !matches!(self, Question::Roots(_));
        let asking = asks.then(|| Arc::new(Asking::begin(cx.peer())));
        let _end = asking.as_deref().map(Ends);
        let session = cx.session.of_asking(asking.clone());
        let cx = &Context {
            session: &session,
            ..*cx
        };
        match self {
            Question::Roots(roots) => Ok(json!({ "roots": roots(cx) })),
            Question::Form(form, ask) => form(cx, &ask).into_result(true, revision),
            Question::Url(url, ask) => {
                // Before the user is asked, as the page may be complete before he has answered.
                cx.core.expect_page(&ask);
                url(cx, &ask).into_result(false, revision)
            }
            Question::Sample(sample, ask) => sample(cx, &ask)?.into_result(revision),
        }
    }
}

/// Ends the asking when the handler returns, or panics.
struct Ends<'a>(&'a Asking);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Handlers {
    /// What these declare, in the words of one revision.
    pub(crate) fn capabilities(&self, revision: Revision) -> Value {
        let mut declared = Map::new();
        if self.roots.is_some() {
            let roots = match revision.era() {
                Era::Legacy => json!({"listChanged": true}),
                Era::Modern => json!({}),
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

    /// Understands one question, whichever way it came, by its method and params; runs no handler.
    pub(crate) fn question(
        &self,
        revision: Revision,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Question<'_>, Refusal> {
        let params = params.unwrap_or(RawValue::NULL);
        match method {
            "roots/list" => {
                let roots = self.roots.as_ref().ok_or_else(|| undeclared("roots"))?;
                Ok(Question::Roots(roots))
            }
            "elicitation/create" if revision.has_elicitation() => {
                self.elicitation(revision, params)
            }
            "sampling/createMessage" => self.sampling(revision, params),
            other => Err(Refusal::Undeclared(RpcError::method_not_found(other))),
        }
    }

    fn elicitation(&self, revision: Revision, params: &RawValue) -> Result<Question<'_>, Refusal> {
        let form = self.elicit_form.as_ref();
        let url = self.elicit_url.as_ref().filter(|_| revision.has_modes());
        if form.is_none() && url.is_none() {
            return Err(undeclared("elicitation"));
        }
        // No mode means a form, in every revision.
        let mode = present(params, "mode").map_or("\"form\"", RawValue::get);
        match (mode, form, url) {
            ("\"form\"", Some(form), _) => {
                let ask = FormRequest::new(params);
                ask.check()?;
                Ok(Question::Form(form, ask))
            }
            ("\"url\"", _, Some(url)) => {
                let ask = UrlRequest::new(params);
                ask.check(revision)?;
                Ok(Question::Url(url, ask))
            }
            (mode, ..) => {
                let words = format!("elicitation in the mode {mode} was not declared");
                let error = RpcError::new(RpcError::INVALID_PARAMS, words);
                Err(Refusal::Undeclared(error))
            }
        }
    }

    fn sampling(&self, revision: Revision, params: &RawValue) -> Result<Question<'_>, Refusal> {
        let sample = self.sample.as_ref().ok_or_else(|| undeclared("sampling"))?;
        let ask = SampleRequest::new(params);
        let with_tools = self.samples_tools && revision.has_modes();
        if !with_tools && ask.uses_tools() {
            let words = "sampling with tools was not declared";
            let error = RpcError::new(RpcError::INVALID_PARAMS, words);
            return Err(Refusal::Undeclared(error));
        }
        ask.check(revision)?;
        Ok(Question::Sample(sample, ask))
    }
}

fn undeclared(what: &str) -> Refusal {
    let words = format!("{what} not supported");
    Refusal::Undeclared(RpcError::new(RpcError::METHOD_NOT_FOUND, words))
}
