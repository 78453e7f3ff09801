//! The manner and the limits of one call.

use std::fmt;
use std::time::Duration;

use crate::CancelToken;
use crate::mcp::log::LogLevel;
use crate::mcp::meta::Meta;
use crate::mcp::progress::Progress;
use crate::mcp::tools::Tool;

/// The limits and the manner of one call, where they differ from the client's.
///
/// ```
/// use landline::mcp::CallOptions;
/// use std::time::Duration;
///
/// let mut seen = Vec::new();
/// let options = CallOptions::new()
///     .timeout(Duration::from_secs(600))
///     .idle(Duration::from_secs(30))
///     .progress(|progress| seen.push(progress.progress()));
/// # drop(options);
/// ```
#[derive(Default)]
pub struct CallOptions<'a> {
    pub(crate) total: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) cancel: Option<CancelToken>,
    pub(crate) meta: Meta,
    pub(crate) progress: Option<OnProgress<'a>>,
    pub(crate) expect: Option<Tool>,
    pub(crate) log_level: Option<LogLevel>,
}

type OnProgress<'a> = Box<dyn FnMut(&Progress) + 'a>;

impl<'a> CallOptions<'a> {
    /// Takes every limit from the client.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the total limit, all rounds of the call included; the time in which a person is asked
    /// does not count. `Duration::MAX` means none.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::CallOptions;
    /// # use std::time::Duration;
    /// # let server = demo::client()?;
    /// let hasty = CallOptions::new().timeout(Duration::from_millis(50));
    /// assert!(server.call_tool_with("hang", (), hasty).unwrap_err().is_timeout());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn timeout(mut self, total: Duration) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets how long the call may go without progress. The server is asked to tell its progress
    /// then.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::CallOptions;
    /// # use std::time::Duration;
    /// # let server = demo::client()?;
    /// // As long as it takes, if only it goes on.
    /// let options = CallOptions::new()
    ///     .timeout(Duration::MAX)
    ///     .idle(Duration::from_secs(30));
    /// assert_eq!(server.call_tool_with("build", (), options)?.all_text(), "built");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = Some(idle);
        self
    }

    /// Lets a token cancel the call from another thread. Between two rounds, while a handler is
    /// asked, it takes effect when that handler returns;
    /// [`Context::is_cancelled`](crate::mcp::Context::is_cancelled) tells it.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::CallOptions;
    /// # let server = demo::client()?;
    /// use landline::CancelToken;
    ///
    /// let cancel = CancelToken::new();
    /// let button = cancel.clone();
    /// let user = std::thread::spawn(move || button.cancel());
    /// let options = CallOptions::new().cancel_token(&cancel);
    /// let error = server.call_tool_with("hang", (), options).unwrap_err();
    /// assert!(error.is_cancelled());
    /// # user.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.cancel = Some(token.clone());
        self
    }

    /// Adds to the `_meta` of the request, before what stands in params of the caller's own.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{CallOptions, Meta};
    /// # use serde_json::{Value, json};
    /// # let server = demo::client()?;
    /// let zone = Meta::new().with("com.example/zone", "UTC")?;
    /// let params = json!({"_meta": {"com.example/zone": "CET"}});
    /// let options = CallOptions::new().meta(zone);
    /// let time: Value = server.request_with("com.example/time", params, options)?;
    /// assert_eq!(time["meta"], "UTC");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = meta;
        self
    }

    /// Takes the progress of the call: on the thread that makes it, in wire order, all of it before
    /// the call returns. The server is asked to tell it.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::CallOptions;
    /// # let server = demo::client()?;
    /// let mut steps = Vec::new();
    /// let watched = CallOptions::new().progress(|told| steps.extend(told.progress()));
    /// server.call_tool_with("build", (), watched)?;
    /// assert_eq!(steps, [1.0, 2.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(&Progress) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Asks for log messages of this call from this level on, whatever
    /// [`set_log_level`](crate::mcp::Session::set_log_level) said (revision 2026-07-28); in the
    /// legacy era it does nothing.
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Checks the structured result against the output schema of this tool, by the validator of the
    /// [`Options`](crate::mcp::Options::validator); without one, nothing is checked.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{CallOptions, Error, Options};
    /// # use serde_json::json;
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     // A crate for JSON Schema would find better reasons.
    ///     .validator(|_schema, _value| Err("nothing is good enough".into()))
    ///     .connect(answers, requests)?;
    /// let add = &server.tools()?[0];
    /// let checked = CallOptions::new().expect(add);
    /// let sum = server.call_tool_with("add", json!({"a": 1, "b": 2}), checked);
    /// match sum.unwrap_err() {
    ///     // What the tool gave is still there.
    ///     Error::Schema { result, .. } => assert!(result.structured().is_some()),
    ///     other => panic!("{other}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expect(mut self, tool: &Tool) -> Self {
        self.expect = Some(tool.clone());
        self
    }
}

impl fmt::Debug for CallOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("total", &self.total)
            .field("idle", &self.idle)
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}
