//! [`Session`]: one call, from its params to its result, in either era.
//!
//! Every call of this layer passes through [`Session::call`]. In the modern era it may be sent
//! several times: again in another version, or with the answers to what the server asked for. The
//! invariant: all sendings of a call share its limits, and what belongs to one call, its answers
//! and its state, goes into no other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::json::{member, text};
use crate::mcp::call::CallOptions;
use crate::mcp::elicit::UrlRequest;
use crate::mcp::error::{Error, Result, UNSUPPORTED_VERSION, supported};
use crate::mcp::fault::Fault;
use crate::mcp::handlers::Context;
use crate::mcp::inputs;
use crate::mcp::keep_alive::Over;
use crate::mcp::log::LogLevel;
use crate::mcp::options::Options;
use crate::mcp::params::{Body, Inputs, Params, Sender};
use crate::mcp::progress::Progress;
use crate::mcp::revision::{Era, Revision};
use crate::mcp::server::Server;
use crate::{CancelToken, Delivery, Limit, Peer, Stopwatch, Update};

/// A cheap handle to an MCP connection, given to handlers; clones name the same connection.
///
/// It does not keep the connection open: once the [`Client`](crate::mcp::Client) is closed or
/// dropped, every call through it fails.
#[derive(Debug, Clone)]
pub struct Session {
    peer: Peer,
    pub(crate) core: Arc<Core>,
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
    ready: AtomicBool,
    /// The version that modern requests name, and those that the server refused.
    version: Mutex<Version>,
    log_level: Mutex<Option<LogLevel>>,
    /// The pages that the user was asked to visit, by their ids.
    pages: Mutex<VecDeque<Box<str>>>,
    /// Is told when the connection has ended.
    pub(crate) over: Over,
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
        let client = raw(options.client.in_words_of(Revision::V2026_07_28));
        let capabilities = raw(options.capabilities(Revision::V2026_07_28));
        Arc::new(Core {
            client,
            capabilities,
            server: OnceLock::new(),
            offered: Mutex::new(Revision::V2025_11_25),
            ready: AtomicBool::new(false),
            version: Mutex::default(),
            log_level: Mutex::default(),
            pages: Mutex::default(),
            over: Over::default(),
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

    /// Opens the session to calls.
    pub(crate) fn open(&self) {
        self.ready.store(true, Ordering::SeqCst);
    }

    /// Notes that the user is asked to visit a page, whose completion the server will tell.
    pub(crate) fn expect_page(&self, page: &UrlRequest) {
        let Some(id) = page.elicitation_id() else {
            return;
        };
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

    pub(crate) fn sender<'a>(&'a self, version: &'a str) -> Sender<'a> {
        Sender {
            version,
            capabilities: &self.capabilities,
            client: Some(&*self.client).filter(|_| self.options.sends_client),
            log_level: lock(&self.log_level).map(LogLevel::as_str),
        }
    }
}

impl Session {
    pub(crate) fn new(peer: Peer, core: Arc<Core>) -> Self {
        Session { peer, core }
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

    pub(crate) fn set_modern_log_level(&self, level: Option<LogLevel>) {
        *lock(&self.core.log_level) = level;
    }

    /// The server, once calls are allowed.
    pub(crate) fn opened(&self, method: &str) -> Result<&Server> {
        let ready = self.core.ready.load(Ordering::SeqCst);
        self.core
            .server
            .get()
            .filter(|_| ready)
            .ok_or_else(|| Error::NotReady {
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

    /// Makes a call and waits for its result.
    pub(crate) fn call(
        &self,
        method: &str,
        mut params: Params,
        mut options: CallOptions<'_>,
    ) -> Result<Box<RawValue>> {
        let era = self.opened(method)?.era();
        params.meta.add(std::mem::take(&mut options.meta));
        let limits = self
            .core
            .options
            .limits
            .get(method)
            .copied()
            .unwrap_or_default();
        let total = options
            .total
            .or(limits.total)
            .unwrap_or(self.core.options.total);
        let idle = options
            .idle
            .or(limits.idle)
            .unwrap_or(self.core.options.idle);
        let exchange = Exchange {
            session: self,
            method,
            params,
            total,
            idle,
            watch: self.peer.stopwatch(),
            options,
            inputs: Inputs::default(),
            rounds: 0,
        };
        match era {
            Era::Legacy => exchange.legacy(),
            Era::Modern => exchange.modern(),
        }
    }

    /// Chooses another version when the server has refused one. `None`: there is none left.
    fn other_version(&self, refused: &str, theirs: &[String]) -> Option<Box<str>> {
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

/// A call on its way: sent once, or several times.
struct Exchange<'a, 'o> {
    session: &'a Session,
    method: &'a str,
    params: Params,
    options: CallOptions<'o>,
    total: Duration,
    idle: Duration,
    watch: Stopwatch,
    inputs: Inputs,
    /// How often it was answered.
    rounds: u32,
}

impl Exchange<'_, '_> {
    fn legacy(mut self) -> Result<Box<RawValue>> {
        let result = self.send(None).map_err(Error::Call);
        let pages = result.as_ref().err().and_then(Error::url_elicitations);
        for page in pages.iter().flatten() {
            self.session.core.expect_page(page);
        }
        result
    }

    fn modern(mut self) -> Result<Box<RawValue>> {
        let core = self.session.core.clone();
        let mut version = lock(&core.version).spoken.clone();
        loop {
            let result = match self.send(Some(&version)) {
                Ok(result) => result,
                Err(error) => {
                    version = self.switch(error, &version)?;
                    continue;
                }
            };
            self.rounds += 1;
            match result_type(&result).as_deref() {
                None | Some("complete") => return Ok(result),
                // Nobody is asked for a round that will not be sent.
                Some("input_required") if self.rounds >= core.options.rounds => {
                    return Err(Error::TooManyRounds {
                        method: self.method.into(),
                        rounds: self.rounds,
                    });
                }
                Some("input_required") => self.answer(&result)?,
                Some(other) => {
                    return Err(Error::invalid(self.method, Fault::ResultType(other.into())));
                }
            }
        }
    }

    /// Answers what a result asks for, so that the next sending carries it. No request is in flight
    /// meanwhile, so that the limits of the call are looked at here.
    fn answer(&mut self, result: &RawValue) -> Result<()> {
        let cx = Context::of_call(self.session, self.options.cancel.as_ref());
        self.inputs = inputs::gather(&cx, self.method, result, || self.go_on())?;
        // A round that says nothing new waits a little, so that no server is asked in a circle.
        if self.inputs.responses.as_ref().is_none_or(Vec::is_empty) {
            std::thread::sleep(
                self.left()
                    .min(FIRST_PAUSE * self.rounds.min(LONGEST_PAUSE)),
            );
        }
        self.go_on()
    }

    /// Ends a call between two rounds: one that is cancelled, out of time, or without a connection.
    fn go_on(&self) -> Result<()> {
        let method = || self.method.into();
        if self
            .options
            .cancel
            .as_ref()
            .is_some_and(CancelToken::is_cancelled)
        {
            return Err(Error::Call(crate::Error::Cancelled {
                method: method(),
                delivery: Delivery::Answered,
            }));
        }
        if let Some(why) = self.session.peer.closed() {
            return Err(Error::Call(crate::Error::Closed {
                method: method(),
                delivery: Delivery::Answered,
                why,
            }));
        }
        if self.left().is_zero() {
            return Err(Error::OutOfTime {
                method: method(),
                after: self.total,
                rounds: self.rounds,
            });
        }
        Ok(())
    }

    /// Sends the request and waits for its result.
    fn send(&mut self, version: Option<&str>) -> crate::Result<Box<RawValue>> {
        let core = &self.session.core;
        let wants_progress = self.options.progress.is_some() || self.idle != Duration::MAX;
        let mut options = crate::CallOptions::new()
            .timeout(self.left())
            .idle(self.idle);
        if let Some(token) = &self.options.cancel {
            options = options.cancel_token(token);
        }
        let mut call = self
            .session
            .peer
            .start_with(self.method, &options, |id| Body {
                params: &self.params,
                inputs: &self.inputs,
                sender: version.map(|version| core.sender(version)),
                progress_token: wants_progress.then_some(id),
            })
            .map_err(|error| self.whole(error))?;
        loop {
            match call.next() {
                Update::Ended => break,
                Update::Notification(update) => {
                    if let (Some(progress), Some(params)) =
                        (&mut self.options.progress, update.params())
                    {
                        progress(&Progress::new(params));
                    }
                }
                Update::Lost(_) => {}
            }
        }
        call.wait().map_err(|error| self.whole(error))
    }

    /// What is left of the total limit.
    fn left(&self) -> Duration {
        if self.total == Duration::MAX {
            return self.total;
        }
        self.total.saturating_sub(self.watch.elapsed())
    }

    /// Tells of the whole call, and not of its last sending alone: of its limit, and of what the
    /// server has seen of it in the rounds before.
    fn whole(&self, mut error: crate::Error) -> crate::Error {
        let delivery = match &mut error {
            crate::Error::Timeout { detail, .. } => {
                if detail.limit == Limit::Total {
                    detail.after = self.total;
                }
                &mut detail.delivery
            }
            crate::Error::Cancelled { delivery, .. } | crate::Error::Closed { delivery, .. } => {
                delivery
            }
            _ => return error,
        };
        if self.rounds > 0 && *delivery == Delivery::NotSent {
            *delivery = Delivery::Answered;
        }
        error
    }

    /// Where the server refused the version, another one that both speak; any other error ends the
    /// call.
    fn switch(&self, error: crate::Error, version: &str) -> Result<Box<str>> {
        let theirs = error
            .rpc()
            .filter(|rpc| rpc.code == UNSUPPORTED_VERSION)
            .and_then(supported);
        let Some(theirs) = theirs else {
            return Err(error.into());
        };
        let other = self.session.other_version(version, &theirs);
        other.ok_or_else(|| Error::NoCommonVersion {
            method: self.method.into(),
            theirs,
            ours: self.session.core.options.modern.clone(),
        })
    }
}

/// The type of a result; absent is complete (revision 2026-07-28).
pub(crate) fn result_type(result: &RawValue) -> Option<std::borrow::Cow<'_, str>> {
    let raw = member(result, &["resultType"])?;
    Some(text(raw).unwrap_or_else(|| raw.get().into()))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these hold is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// Pages that a user may have open at a time, and far more.
const MOST_PAGES: usize = 1024;

// Between rounds without questions: short enough for a server that is nearly done.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: u32 = 10;
