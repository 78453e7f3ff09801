//! [`Options`]: who the client is, which protocol it speaks, and its limits.
//!
//! A value that connects any number of clients. Installing a handler declares its capability.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::mcp::handlers::Handlers;
use crate::mcp::revision::{Era, Revision};

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
    pinned: Option<Era>,
    remembered: Option<Era>,
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
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) pages: usize,
    pub(crate) list_size: usize,
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
            pinned: None,
            remembered: None,
            modern: vec![Revision::MODERN.as_str().into()],
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
            keep_alive: None,
            pages: 1000,
            list_size: 64 << 20,
            rounds: 10,
            gated: true,
            legacy_by_name: false,
            validator: None,
        }
    }

    // Who the client is.

    /// Sets the name that is shown to people (revision 2025-06-18). The default is none.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .title("My tool")
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.client.title = Some(title.into());
        self
    }

    /// Leaves the client's name out of modern requests, in which it is optional (revision
    /// 2026-07-28). `initialize` always carries it.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .anonymous()
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.sends_client = false;
        self
    }

    // Which protocol is spoken.

    /// Pins the era: the other one is neither tried nor accepted. The default is to find it.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Era, Options};
    /// # let (answers, requests) = demo::legacy_server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .era(Era::Legacy)
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.server().era(), Era::Legacy);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        self.pinned = Some(era);
        self
    }

    /// Pins the revision, and with it the era.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Revision};
    /// # let (answers, requests) = demo::legacy_server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .revision(Revision::V2025_06_18)
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.server().version(), "2025-06-18");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        match revision.era() {
            Era::Legacy => self.legacy = vec![revision],
            Era::Modern => self.modern = vec![revision.as_str().into()],
        }
        self.era(revision.era())
    }

    /// Says which era the server had when it was last talked to, which saves a legacy server the
    /// probe. Where that is wrong, and the server refuses the greeting or ends on it, the era is
    /// found all the same; one that says nothing is waited for. A pin goes before it.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Era, Options};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .remembered(Era::Legacy)
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.server().era(), Era::Modern, "it was updated meanwhile");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn remembered(mut self, era: Era) -> Self {
        self.remembered = Some(era);
        self
    }

    /// Sets the versions of the modern era that are offered, by preference. One that is newer than
    /// this library is spoken by the rules of the newest that it knows; those of the legacy era are
    /// left out. The default is 2026-07-28.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .modern_versions(["2031-01-01", "2026-07-28"])
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.server().version(), "2026-07-28");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn modern_versions(mut self, versions: impl IntoIterator<Item: Into<String>>) -> Self {
        let versions = versions.into_iter().map(Into::into);
        let is_legacy = |version: &String| {
            Revision::from_name(version).is_some_and(|known| known.era() == Era::Legacy)
        };
        self.modern = versions.filter(|version| !is_legacy(version)).collect();
        self
    }

    /// Lets a modern server that names only legacy versions be greeted with `initialize` in one of
    /// them. The default is to fail and name the versions of both sides, since the server has
    /// answered in the modern way.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .accept_named_legacy()
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn accept_named_legacy(mut self) -> Self {
        self.legacy_by_name = true;
        self
    }

    /// Calls also what the server does not declare. The default is to fail before anything is sent,
    /// with [`Error::NotSupported`](crate::mcp::Error::NotSupported).
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .ungated()
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn ungated(mut self) -> Self {
        self.gated = false;
        self
    }

    // The limits.

    /// Sets the limit of connecting as a whole, the start of the process included. The default is
    /// 60 seconds.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// # use std::time::Duration;
    /// let server = Options::new("my-tool", "1.0")
    ///     .connect_timeout(Duration::from_secs(20))
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// Sets how long the probe waits before its silence is taken for that of a legacy server. It
    /// includes the start of the process: a second or two for a Python program, more for `npx` or a
    /// container. It takes half of what is left of [`connect_timeout`](Self::connect_timeout) at
    /// most. The default is 10 seconds.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// # use std::time::Duration;
    /// let server = Options::new("my-tool", "1.0")
    ///     .probe_timeout(Duration::from_secs(3))
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn probe_timeout(mut self, limit: Duration) -> Self {
        self.probe = limit;
        self
    }

    /// Sets the total limit of calls, all rounds of one included. The default is 60 seconds.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// # use std::time::Duration;
    /// let server = Options::new("my-tool", "1.0")
    ///     .request_timeout(Duration::from_secs(5))
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn request_timeout(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    /// Sets how long a call may go without progress. The default is none.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// # use std::time::Duration;
    /// let server = Options::new("my-tool", "1.0")
    ///     .idle_timeout(Duration::from_secs(5))
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets the total limit of calls of one method, such as `tools/call`.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// # use std::time::Duration;
    /// let server = Options::new("my-tool", "1.0")
    ///     .timeout_for("tools/call", Duration::from_millis(50))
    ///     .connect(answers, requests)?;
    /// assert!(server.call_tool("hang", ()).unwrap_err().is_timeout());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn timeout_for(mut self, method: &str, total: Duration) -> Self {
        self.limits.entry(method.into()).or_default().total = Some(total);
        self
    }

    /// Sets the idle limit of calls of one method.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// # use std::time::Duration;
    /// let server = Options::new("my-tool", "1.0")
    ///     .idle_for("tools/call", Duration::from_millis(50))
    ///     .connect(answers, requests)?;
    /// assert!(server.call_tool("hang", ()).unwrap_err().is_timeout());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idle_for(mut self, method: &str, idle: Duration) -> Self {
        self.limits.entry(method.into()).or_default().idle = Some(idle);
        self
    }

    /// Sets for how long one question to a person may stop the clocks; a handler that takes longer
    /// is not interrupted, its time counts from then on. In the modern era the call that needs the
    /// answer returns no sooner than the handler does. The default is 10 minutes.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// # use std::time::Duration;
    /// let server = Options::new("my-tool", "1.0")
    ///     .human_timeout(Duration::from_secs(60))
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn human_timeout(mut self, human: Duration) -> Self {
        self.human = human;
        self
    }

    /// Pings a legacy server at this interval, and closes the connection when one ping is not
    /// answered within the limit of `ping` set by [`timeout_for`](Self::timeout_for), or else
    /// within the interval: whoever waits then learns that as the reason. The default is not to;
    /// zero and `Duration::MAX` are the same. A modern server knows no ping (revision 2026-07-28)
    /// and gets none.
    ///
    /// It costs a thread. Many servers do one thing at a time and answer no ping while a tool runs:
    /// give them a limit beyond their longest work.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::legacy_server();
    /// # use std::time::Duration;
    /// let server = Options::new("my-tool", "1.0")
    ///     .keep_alive(Duration::from_secs(30))
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        let is_on = interval > Duration::ZERO && interval < Duration::MAX;
        self.keep_alive = is_on.then_some(interval);
        self
    }

    /// Sets how many pages of a list are followed. The default is 1,000.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Stop};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .page_limit(1)
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.tools()?.stopped(), Some(Stop::PageLimit));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn page_limit(mut self, pages: usize) -> Self {
        self.pages = pages;
        self
    }

    /// Sets how many bytes of results a list may be made of before no further page is followed. The
    /// default is 64 MiB.
    #[must_use]
    pub fn list_limit(mut self, bytes: usize) -> Self {
        self.list_size = bytes;
        self
    }

    /// Sets how often a call is sent when the server asks for more each time (revision 2026-07-28).
    /// The default is 10.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .round_limit(3)
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn round_limit(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// Sets everything below the protocol: frame limit, stderr, process group, waits of the close.
    /// Framing, dialect, handlers, the human limit and the limits of calls are set by this layer,
    /// whatever stands there.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .transport(landline::Options::new().frame_limit(1 << 20))
    ///     .connect(answers, requests)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn transport(mut self, transport: crate::Options) -> Self {
        self.transport = transport;
        self
    }

    /// How connecting begins: a pin goes before what is remembered.
    pub(crate) fn start(&self) -> Start {
        match (self.pinned, self.remembered) {
            (Some(Era::Legacy), _) => Start::Legacy,
            (Some(Era::Modern), _) => Start::Modern,
            (None, Some(Era::Legacy)) => Start::Handshake,
            (None, _) => Start::Probe,
        }
    }

    /// What the client declares, in the words of one revision.
    pub(crate) fn capabilities(&self, revision: Revision) -> Value {
        self.handlers.capabilities(revision)
    }
}
