//! [`Options`]: who the client is, what it can be asked for, and its limits.
//!
//! A value that connects any number of clients. Installing a handler declares its capability.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::mcp::elicit::{Elicited, FormRequest, UrlRequest};
use crate::mcp::handlers::ListKind;
use crate::mcp::handlers::{Context, Handlers};
use crate::mcp::log::LogMessage;
use crate::mcp::revision::{Era, Revision};
use crate::mcp::roots::Root;
use crate::mcp::sample::{Sample, SampleRequest};
use crate::{Closed, Notification, RpcError};

/// How to connect to an MCP server, and as whom.
///
/// ```no_run
/// use landline::ChildSpec;
/// use landline::mcp::{Elicited, Options};
///
/// let server = Options::new("my-tool", "1.0")
///     .elicit_form(|_, ask| {
///         println!("{}", ask.message());
///         Elicited::Decline
///     })
///     .spawn(&ChildSpec::new("my-mcp-server")?)?;
/// # drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) client: ClientInfo,
    pub(crate) sends_client: bool,
    pub(crate) start: Start,
    pub(crate) modern: Vec<String>,
    pub(crate) legacy: Vec<Revision>,
    pub(crate) transport: crate::Options,
    pub(crate) handlers: Handlers,
    pub(crate) connect: Duration,
    pub(crate) probe: Duration,
    pub(crate) limits: HashMap<Box<str>, Limits>,
    pub(crate) total: Duration,
    pub(crate) idle: Duration,
    pub(crate) human: Duration,
    pub(crate) pages: usize,
    pub(crate) rounds: u32,
    pub(crate) gated: bool,
    pub(crate) legacy_by_name: bool,
    pub(crate) validator: Option<Validator>,
}

/// The limits of one kind of call, where they differ from the others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) total: Option<Duration>,
    pub(crate) idle: Option<Duration>,
}

/// How connecting begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The era is found by a probe.
    Probe,
    /// The handshake comes first, a probe if it is refused.
    Handshake,
    /// Legacy alone.
    Legacy,
    /// Modern alone.
    Modern,
}

/// The caller's check of a structured result against an output schema.
#[derive(Clone)]
pub(crate) struct Validator(pub(crate) Arc<Check>);

type Check = dyn Fn(&RawValue, &RawValue) -> Result<(), String> + Send + Sync;

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Validator")
    }
}

/// What the client calls itself.
#[derive(Debug, Clone)]
pub(crate) struct ClientInfo {
    name: String,
    version: String,
    title: Option<String>,
}

impl ClientInfo {
    /// Names the client in the words of one revision, since strict servers of the first ones refuse
    /// more. What else the later ones have is left out.
    pub(crate) fn in_words_of(&self, revision: Revision) -> Value {
        let mut info = json!({"name": self.name, "version": self.version});
        if let Some(title) = self.title.as_ref().filter(|_| revision.has_titles()) {
            info["title"] = title.as_str().into();
        }
        info
    }
}

impl Options {
    /// Takes every default, for a client of this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Options {
            client: ClientInfo {
                name: name.into(),
                version: version.into(),
                title: None,
            },
            sends_client: true,
            start: Start::Probe,
            modern: vec![Revision::V2026_07_28.as_str().into()],
            legacy: Revision::ALL
                .into_iter()
                .filter(|revision| revision.era() == Era::Legacy)
                .collect(),
            transport: crate::Options::new(),
            handlers: Handlers::default(),
            connect: Duration::from_secs(60),
            probe: Duration::from_secs(10),
            limits: HashMap::new(),
            total: Duration::from_secs(60),
            idle: Duration::MAX,
            human: Duration::from_secs(600),
            pages: 1000,
            rounds: 10,
            gated: true,
            legacy_by_name: false,
            validator: None,
        }
    }

    // Who the client is.

    /// Sets the name that is shown to people (revision 2025-06-18). The default is none.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.client.title = Some(title.into());
        self
    }

    /// Leaves the client's name out of modern requests, in which it is optional (revision
    /// 2026-07-28). `initialize` always carries it.
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.sends_client = false;
        self
    }

    // Which protocol is spoken.

    /// Pins the era: the other one is neither tried nor accepted. The default is to find it.
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        self.start = match era {
            Era::Legacy => Start::Legacy,
            Era::Modern => Start::Modern,
        };
        self
    }

    /// Pins the revision, and with it the era.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        match revision.era() {
            Era::Legacy => self.legacy = vec![revision],
            Era::Modern => self.modern = vec![revision.as_str().into()],
        }
        self.era(revision.era())
    }

    /// Says which era the server had when it was last talked to, which saves a legacy server the
    /// probe. Where it is wrong, the era is found all the same.
    #[must_use]
    pub fn remembered(mut self, era: Era) -> Self {
        self.start = match era {
            Era::Legacy => Start::Handshake,
            Era::Modern => Start::Probe,
        };
        self
    }

    /// Sets the versions of the modern era that are offered, by preference. One that is newer than
    /// this library is spoken by the rules of the newest that it knows. The default is 2026-07-28.
    #[must_use]
    pub fn modern_versions(mut self, versions: impl IntoIterator<Item: Into<String>>) -> Self {
        self.modern = versions.into_iter().map(Into::into).collect();
        self
    }

    /// Lets a modern server that names only legacy versions be greeted with `initialize` in one of
    /// them. The default is to fail and name the versions of both sides, since the server has
    /// answered in the modern way.
    #[must_use]
    pub fn accept_named_legacy(mut self) -> Self {
        self.legacy_by_name = true;
        self
    }

    /// Calls also what the server does not declare. The default is to fail before anything is sent,
    /// with [`Error::NotSupported`](crate::mcp::Error::NotSupported).
    #[must_use]
    pub fn ungated(mut self) -> Self {
        self.gated = false;
        self
    }

    // What the server can ask for, and what it tells.

    /// Answers the question for the client's roots: directories that the server may work in.
    /// Declares `roots`. Runs on a thread of the connection in the legacy era, and on the thread of
    /// the caller whose call needs it in the modern one, as all that answer do.
    #[must_use]
    pub fn roots(mut self, roots: impl Fn(&Context) -> Vec<Root> + Send + Sync + 'static) -> Self {
        self.handlers.roots = Some(Arc::new(roots));
        self
    }

    /// Answers the question for a form to be filled in by the user (revision 2025-06-18). Declares
    /// `elicitation.form`. The handler may wait for a person: the clocks of the connection stand
    /// still meanwhile, for the human limit at most.
    #[must_use]
    pub fn elicit_form(
        mut self,
        form: impl Fn(&Context, &FormRequest) -> Elicited + Send + Sync + 'static,
    ) -> Self {
        self.handlers.elicit_form = Some(Arc::new(form));
        self
    }

    /// Answers the question for a page to be visited by the user (revision 2025-11-25). Declares
    /// `elicitation.url`. Accepting says that the user agreed to visit it, not that it is done. The
    /// handler may wait for a person, as with a form.
    #[must_use]
    pub fn elicit_url(
        mut self,
        url: impl Fn(&Context, &UrlRequest) -> Elicited + Send + Sync + 'static,
    ) -> Self {
        self.handlers.elicit_url = Some(Arc::new(url));
        self
    }

    /// Asks the caller's language model on the server's behalf. Declares `sampling`. An error is
    /// the refusal: [`Sample::refused`] for one by the user. The handler may wait for a person.
    #[must_use]
    pub fn sample(
        mut self,
        sample: impl Fn(&Context, &SampleRequest) -> Result<Sample, RpcError> + Send + Sync + 'static,
    ) -> Self {
        self.handlers.sample = Some(Arc::new(sample));
        self.handlers.samples_tools = false;
        self
    }

    /// As [`sample`](Self::sample), for a handler that lets the model use the tools in the request.
    /// Declares `sampling.tools` too (revision 2025-11-25).
    #[must_use]
    pub fn sample_with_tools(
        self,
        sample: impl Fn(&Context, &SampleRequest) -> Result<Sample, RpcError> + Send + Sync + 'static,
    ) -> Self {
        let mut options = self.sample(sample);
        options.handlers.samples_tools = true;
        options
    }

    /// Takes the server's log messages, in wire order, on the dispatch thread.
    #[must_use]
    pub fn on_log(mut self, log: impl Fn(&Context, &LogMessage) + Send + Sync + 'static) -> Self {
        self.handlers.on_log = Some(Arc::new(log));
        self
    }

    /// Learns that a list of the server's has changed.
    #[must_use]
    pub fn on_list_changed(
        mut self,
        changed: impl Fn(&Context, ListKind) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.on_list_changed = Some(Arc::new(changed));
        self
    }

    /// Learns that a resource has changed: its URI, or that of a part of one subscribed to.
    #[must_use]
    pub fn on_updated(mut self, updated: impl Fn(&Context, &str) + Send + Sync + 'static) -> Self {
        self.handlers.on_updated = Some(Arc::new(updated));
        self
    }

    /// Learns that the user is done with a page of [`elicit_url`](Self::elicit_url), by the id that
    /// came with it (revision 2025-11-25); ids may be unknown, or come twice.
    #[must_use]
    pub fn on_elicitation_complete(
        mut self,
        complete: impl Fn(&Context, &str) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.on_elicitation_complete = Some(Arc::new(complete));
        self
    }

    /// Takes every notification that no other handler here is for.
    #[must_use]
    pub fn on_notification(
        mut self,
        other: impl Fn(&Context, &Notification) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.on_other = Some(Arc::new(other));
        self
    }

    /// Learns that the connection has ended, after the last notification.
    #[must_use]
    pub fn on_closed(mut self, closed: impl Fn(&Closed) + Send + Sync + 'static) -> Self {
        self.handlers.on_closed = Some(Arc::new(closed));
        self
    }

    /// Checks structured results against output schemas, for calls made with the tool at hand: see
    /// [`CallOptions::expect`](crate::mcp::CallOptions::expect). It is given the schema and the
    /// value; the default dialect is JSON Schema 2020-12, and an unknown `$schema` or a `$ref` that
    /// would need a network is for it to refuse. Without one, nothing is checked and nothing
    /// claimed.
    #[must_use]
    pub fn validator(
        mut self,
        check: impl Fn(&RawValue, &RawValue) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.validator = Some(Validator(Arc::new(check)));
        self
    }

    // The limits.

    /// Sets the limit of connecting as a whole, the start of the process included. The default is
    /// 60 seconds.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// Sets how long the probe waits before its silence is taken for that of a legacy server. It
    /// includes the start of the process: a second or two for a Python program, more for `npx` or a
    /// container. The default is 10 seconds.
    #[must_use]
    pub fn probe_timeout(mut self, limit: Duration) -> Self {
        self.probe = limit;
        self
    }

    /// Sets the total limit of calls, all rounds of one included. The default is 60 seconds.
    #[must_use]
    pub fn request_timeout(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    /// Sets how long a call may go without progress. The default is none.
    #[must_use]
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets the total limit of calls of one method, such as `tools/call`.
    #[must_use]
    pub fn timeout_for(mut self, method: &str, total: Duration) -> Self {
        self.limits.entry(method.into()).or_default().total = Some(total);
        self
    }

    /// Sets the idle limit of calls of one method.
    #[must_use]
    pub fn idle_for(mut self, method: &str, idle: Duration) -> Self {
        self.limits.entry(method.into()).or_default().idle = Some(idle);
        self
    }

    /// Sets for how long one question to a person may stop the clocks. The default is 10 minutes.
    #[must_use]
    pub fn human_timeout(mut self, human: Duration) -> Self {
        self.human = human;
        self
    }

    /// Sets how many pages of a list are followed. The default is 1,000.
    #[must_use]
    pub fn page_limit(mut self, pages: usize) -> Self {
        self.pages = pages;
        self
    }

    /// Sets how often a call is sent when the server asks for more each time (revision 2026-07-28).
    /// The default is 10.
    #[must_use]
    pub fn round_limit(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// Sets everything below the protocol: frame limit, stderr, process group, waits of the close.
    /// Framing, dialect, handlers and the limits of calls are set by this layer, whatever stands
    /// there.
    #[must_use]
    pub fn transport(mut self, transport: crate::Options) -> Self {
        self.transport = transport;
        self
    }

    /// What the client declares, in the words of one revision.
    pub(crate) fn capabilities(&self, revision: Revision) -> Value {
        self.handlers.capabilities(revision)
    }
}
