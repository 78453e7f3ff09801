//! One call, from its params to its result, in either era.
//!
//! Every call of this layer passes through [`Session::call`]. In the modern era it may be sent
//! several times: again in another version, or with the answers to what the server asked for. The
//! invariant: all sendings of a call share its limits, and what belongs to one call, its answers
//! and its state, goes into no other.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::json::text;
use crate::mcp::call_options::CallOptions;
use crate::mcp::error::{Error, Result, UNSUPPORTED_VERSION, supported};
use crate::mcp::fault::Fault;
use crate::mcp::handlers::Context;
use crate::mcp::params::{Body, Inputs, Params};
use crate::mcp::progress::Progress;
use crate::mcp::revision::Era;
use crate::mcp::rounds;
use crate::mcp::session::Session;
use crate::mcp::view::present;
use crate::{CancelToken, Delivery, Limit, Stopwatch, Timeout, Update};

impl Session {
    /// The limits of calls of a method.
    pub(crate) fn limits(&self, method: &str) -> Allowed {
        let options = &self.core.options;
        let own = options.limits.get(method).copied().unwrap_or_default();
        Allowed {
            total: own.total.unwrap_or(options.total),
            idle: own.idle.unwrap_or(options.idle),
        }
    }

    /// Makes a call and waits for its result.
    pub(crate) fn call(
        &self,
        mut params: Params<'_>,
        mut options: CallOptions<'_>,
    ) -> Result<Box<RawValue>> {
        let method = params.method;
        let era = self.opened(method)?.era();
        let _calling = self.asking.as_ref().map(|asking| asking.call());
        params.meta.add(std::mem::take(&mut options.meta));
        let limits = self.limits(method);
        let exchange = Exchange {
            session: self,
            method,
            params,
            budget: Budget::new(self, options.total.unwrap_or(limits.total)),
            idle: options.idle.unwrap_or(limits.idle),
            options,
            inputs: Inputs::default(),
            rounds: 0,
        };
        match era {
            Era::Legacy => exchange.legacy(),
            Era::Modern => exchange.modern(),
        }
    }
}

/// The limits of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    pub(crate) total: Duration,
    pub(crate) idle: Duration,
}

/// The total limit of what takes several requests.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) total: Duration,
    watch: Stopwatch,
}

impl Budget {
    pub(crate) fn new(session: &Session, total: Duration) -> Self {
        Budget {
            total,
            watch: session.peer().stopwatch(),
        }
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> Duration {
        if self.total == Duration::MAX {
            return self.total;
        }
        self.total.saturating_sub(self.watch.elapsed())
    }

    /// Tells of the whole limit, where what was left of it for one request has run out.
    pub(crate) fn tell(&self, detail: &mut Timeout) {
        if detail.limit == Limit::Total {
            detail.after = self.total;
        }
    }
}

/// A call on its way: sent once, or several times.
struct Exchange<'a, 'o> {
    session: &'a Session,
    method: &'a str,
    params: Params<'a>,
    options: CallOptions<'o>,
    budget: Budget,
    idle: Duration,
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
        let mut version = core.version();
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
                    let other = other.chars().take(LONGEST_QUOTE).collect::<String>();
                    return Err(Error::invalid(self.method, Fault::ResultType(other.into())));
                }
            }
        }
    }

    /// Answers what a result asks for, so that the next sending carries it. No request is in flight
    /// meanwhile, so that the limits of the call are looked at here.
    fn answer(&mut self, result: &RawValue) -> Result<()> {
        let cx = Context::of_call(self.session, self.options.cancel.as_ref());
        self.inputs = rounds::gather(&cx, self.method, result, || self.go_on())?;
        // A round that says nothing new waits a little, so that no server is asked in a circle.
        if self.inputs.responses.as_ref().is_none_or(Vec::is_empty) {
            let pause = FIRST_PAUSE * self.rounds.min(LONGEST_PAUSE);
            let watch = self.session.peer().stopwatch();
            while watch.elapsed() < pause.min(self.budget.left()) {
                self.go_on()?;
                self.session.core.over.wait(LOOK);
            }
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
        if let Some(why) = self.session.peer().closed() {
            return Err(Error::Call(crate::Error::Closed {
                method: method(),
                delivery: Delivery::Answered,
                why,
            }));
        }
        if self.budget.left().is_zero() {
            return Err(Error::OutOfTime {
                method: method(),
                after: self.budget.total,
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
            .timeout(self.budget.left())
            .idle(self.idle);
        if let Some(token) = &self.options.cancel {
            options = options.cancel_token(token);
        }
        let mut call = self
            .session
            .peer()
            .start_with(self.method, &options, |id| Body {
                params: &self.params,
                inputs: &self.inputs,
                sender: version.map(|version| core.sender(version, self.options.log_level)),
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

    /// Tells of the whole call, and not of its last sending alone: of its limit, and of what the
    /// server has seen of it in the rounds before.
    fn whole(&self, mut error: crate::Error) -> crate::Error {
        let delivery = match &mut error {
            crate::Error::Timeout { detail, .. } => {
                self.budget.tell(detail);
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
    let raw = present(result, "resultType")?;
    Some(text(raw).unwrap_or_else(|| raw.get().into()))
}

// Between rounds without questions: short enough for a server that is nearly done.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: u32 = 10;

// How soon a cancel is seen meanwhile.
const LOOK: Duration = Duration::from_millis(10);

// Characters of what a server wrote in place of a word.
const LONGEST_QUOTE: usize = 100;
