//! [`Session`]: what a client, its handles and its handlers share of a connection.
//!
//! The server as it presented itself, the version that is spoken, the log level. A handle is cheap
//! and names the connection without keeping it open.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::Peer;
use crate::mcp::asking::Asking;
use crate::mcp::elicit::UrlRequest;
use crate::mcp::error::{Error, Result};
use crate::mcp::latch::{Latch, lock};
use crate::mcp::log::LogLevel;
use crate::mcp::options::Options;
use crate::mcp::params::Sender;
use crate::mcp::revision::{Era, Revision};
use crate::mcp::server::Server;

/// A cheap handle to an MCP connection, given to handlers; clones name the same connection.
///
/// It does not keep the connection open: once the [`Client`](crate::mcp::Client) is closed or
/// dropped, every call through it fails.
#[derive(Debug, Clone)]
pub struct Session {
    peer: Peer,
    pub(crate) core: Arc<Core>,
    /// The handler that was given this session, where it may ask a person.
    pub(crate) asking: Option<Arc<Asking>>,
}

/// What a client and its handlers share.
pub(crate) struct Core {
    pub(crate) options: Options,
    client: Box<RawValue>,
    /// What is declared in modern requests.
    capabilities: Box<RawValue>,
    server: OnceLock<Server>,
    /// The revision by which the server is answered while it has not presented itself.
    offered: Mutex<Revision>,
    ready: Latch,
    /// The version that modern requests name, and those that the server refused.
    version: Mutex<Version>,
    log_level: Mutex<Option<LogLevel>>,
    /// The pages that the user was asked to visit, by their ids.
    pages: Mutex<VecDeque<Box<str>>>,
    /// Is told when the connection has ended.
    pub(crate) over: Latch,
}

#[derive(Debug, Default)]
struct Version {
    spoken: Box<str>,
    refused: Vec<Box<str>>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Core {
    pub(crate) fn new(options: Options) -> Arc<Self> {
        // Names and a few empty objects always serialise.
        let raw = |value: Value| to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let client = raw(options.client.in_words_of(Revision::MODERN));
        let capabilities = raw(options.capabilities(Revision::MODERN));
        Arc::new(Core {
            client,
            capabilities,
            server: OnceLock::new(),
            offered: Mutex::new(Revision::V2025_11_25),
            ready: Latch::default(),
            version: Mutex::default(),
            log_level: Mutex::default(),
            pages: Mutex::default(),
            over: Latch::default(),
            options,
        })
    }

    /// The revision by which the server is answered.
    pub(crate) fn revision(&self) -> Revision {
        self.server
            .get()
            .map_or_else(|| *lock(&self.offered), Server::revision)
    }

    pub(crate) fn offer(&self, revision: Revision) {
        *lock(&self.offered) = revision;
    }

    /// Takes in what the server said of itself; its questions are answered by that from now on.
    pub(crate) fn meet(&self, server: Server) {
        lock(&self.version).spoken = server.version().into();
        // A server presents itself once.
        let _ = self.server.set(server);
    }

    /// Whether the session is open to calls. A server that asks as soon as it is greeted may be
    /// ahead of the thread that connects, which is waited for.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.wait(OPENING)
    }

    /// Opens the session to calls.
    pub(crate) fn open(&self) {
        self.ready.tell();
    }

    /// Notes that the user is asked to visit a page, whose completion the server will tell.
    pub(crate) fn expect_page(&self, page: &UrlRequest) {
        // Nobody would be told, or an id is longer than any that is meant to come back.
        let wanted = self.options.handlers.on_elicitation_complete.is_some();
        let id = page
            .elicitation_id()
            .filter(|id| wanted && id.len() <= LONGEST_ID);
        let Some(id) = id else { return };
        let mut pages = lock(&self.pages);
        if pages.len() == MOST_PAGES {
            pages.pop_front();
        }
        pages.push_back(id.into());
    }

    /// Tells whether a page is one that is still to be completed, and takes it for complete.
    pub(crate) fn complete_page(&self, id: &str) -> bool {
        let mut pages = lock(&self.pages);
        let before = pages.len();
        pages.retain(|page| **page != *id);
        pages.len() < before
    }

    /// The version that modern requests name now.
    pub(crate) fn version(&self) -> Box<str> {
        lock(&self.version).spoken.clone()
    }

    pub(crate) fn sender<'a>(&'a self, version: &'a str, level: Option<LogLevel>) -> Sender<'a> {
        Sender {
            version,
            capabilities: &self.capabilities,
            client: Some(&*self.client).filter(|_| self.options.sends_client),
            log_level: level.or(*lock(&self.log_level)).map(LogLevel::as_str),
        }
    }
}

impl Session {
    pub(crate) fn new(peer: Peer, core: Arc<Core>) -> Self {
        Session {
            peer,
            core,
            asking: None,
        }
    }

    /// The session of a handler, which may ask a person.
    pub(crate) fn of_asking(&self, asking: Option<Arc<Asking>>) -> Self {
        Session {
            asking,
            ..self.clone()
        }
    }

    /// The connection below, for what this layer has no words for. Requests made through it carry
    /// nothing of the protocol's.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// assert!(server.peer().survived().is_empty(), "the server made no mistake");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The server as it presented itself; `None` in a handler that runs before it has.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Root};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .roots(|cx| {
    ///         assert!(cx.presentation().is_some(), "it is known by now");
    ///         Vec::new()
    ///     })
    ///     .connect(answers, requests)?;
    /// assert!(server.presentation().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn presentation(&self) -> Option<&Server> {
        self.core.server.get()
    }

    pub(crate) fn set_modern_log_level(&self, level: LogLevel) {
        *lock(&self.core.log_level) = Some(level);
    }

    /// The server, once calls are allowed.
    pub(crate) fn opened(&self, method: &str) -> Result<&Server> {
        let ready = self.core.is_ready();
        let server = self.core.server.get().filter(|_| ready);
        server.ok_or_else(|| Error::NotReady {
            method: method.into(),
        })
    }

    /// Fails a call that needs what the server does not declare.
    pub(crate) fn gate(&self, method: &str, capability: &'static str) -> Result<()> {
        let server = self.opened(method)?;
        if self.core.options.gated && !server.capabilities().has(capability) {
            let method = method.into();
            return Err(Error::NotSupported { method, capability });
        }
        Ok(())
    }

    /// Fails a method that only the legacy era has.
    pub(crate) fn legacy_only(&self, method: &str) -> Result<()> {
        let server = self.opened(method)?;
        match server.era() {
            Era::Legacy => Ok(()),
            Era::Modern => Err(Error::NotInRevision {
                method: method.into(),
                version: server.version().into(),
            }),
        }
    }

    /// Chooses another version when the server has refused one. `None`: there is none left.
    pub(crate) fn other_version(&self, refused: &str, theirs: &[String]) -> Option<Box<str>> {
        let mut version = lock(&self.core.version);
        if !version.refused.iter().any(|known| **known == *refused) {
            version.refused.push(refused.into());
        }
        let mut ours = self.core.options.modern.iter();
        let is_left = |ours: &String| !version.refused.iter().any(|refused| **refused == **ours);
        let other = ours.find(|ours| theirs.contains(ours) && is_left(ours))?;
        version.spoken = other.as_str().into();
        Some(version.spoken.clone())
    }
}

// Pages that a user may have open at a time, and far more.
const MOST_PAGES: usize = 1024;
const LONGEST_ID: usize = 1024;

// Between the server's first words and the last step of connecting lies no wait but for a
// processor.
const OPENING: Duration = Duration::from_secs(1);
