//! Installing handlers: what the server can ask for, and what it tells, as [`Options`] take it.
//!
//! Installing a handler declares its capability, in the words of each revision, and nothing else
//! does. The same closures serve both eras.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::mcp::elicit::{Elicited, FormRequest, UrlRequest};
use crate::mcp::handlers::{Context, ListKind};
use crate::mcp::log::LogMessage;
use crate::mcp::options::{Options, Validator};
use crate::mcp::roots::Root;
use crate::mcp::sample::{Sample, SampleRequest};
use crate::{Closed, Notification, RpcError};

impl Options {
    /// Answers the question for the client's roots: directories that the server may work in.
    /// Declares `roots`, and in the legacy era that [changes are
    /// told](crate::mcp::Session::roots_changed). Runs on a thread of the connection in the legacy
    /// era, and on the thread of the caller whose call needs it in the modern one, as all that
    /// answer do.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Root};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .roots(|_| vec![Root::new("file:///home/me").unwrap()])
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.call_tool("where", ())?.all_text(), "file:///home/me");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn roots(mut self, roots: impl Fn(&Context) -> Vec<Root> + Send + Sync + 'static) -> Self {
        self.handlers.roots = Some(Arc::new(roots));
        self
    }

    /// Answers the question for a form to be filled in by the user (revision 2025-06-18). Declares
    /// `elicitation.form`. The handler may wait for a person: the clocks of the connection stand
    /// still meanwhile, for the human limit at most.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Elicited, Options};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .elicit_form(|_, ask| {
    ///         println!("{}", ask.message());
    ///         let filled_in = serde_json::json!({"name": "Ann"});
    ///         Elicited::Accept(filled_in.as_object().cloned().unwrap_or_default())
    ///     })
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.call_tool("greet", ())?.all_text(), "Hello Ann");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Elicited, Options};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .elicit_url(|_, ask| {
    ///         println!("{}: open {}?", ask.message(), ask.url());
    ///         Elicited::Decline
    ///     })
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.call_tool("log_in", ())?.all_text(), "decline");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Sample};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .sample(|_, ask| {
    ///         let most = ask.max_tokens().unwrap_or(0);
    ///         Ok(Sample::text("my-model", format!("{most} tokens of roses")))
    ///     })
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.call_tool("poem", ())?.all_text(), "100 tokens of roses");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Sample};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .sample_with_tools(|_, ask| {
    ///         assert!(ask.tools().is_empty());
    ///         Err(Sample::refused("the user said no"))
    ///     })
    ///     .connect(answers, requests)?;
    /// let error = server.call_tool("poem", ()).unwrap_err();
    /// assert!(error.to_string().ends_with("the user said no"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{LogLevel, Options};
    /// # let (answers, requests) = demo::legacy_server();
    /// # use std::sync::mpsc::channel;
    /// let (tell, told) = channel();
    /// let server = Options::new("my-tool", "1.0")
    ///     .on_log(move |_, log| drop(tell.send(log.level())))
    ///     .connect(answers, requests)?;
    /// server.call_tool("change", ())?;
    /// assert_eq!(told.recv()?, Some(LogLevel::Warning));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_log(mut self, log: impl Fn(&Context, &LogMessage) + Send + Sync + 'static) -> Self {
        self.handlers.on_log = Some(Arc::new(log));
        self
    }

    /// Learns that a list of the server's has changed.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{ListKind, Options};
    /// # let (answers, requests) = demo::legacy_server();
    /// # use std::sync::mpsc::channel;
    /// let (tell, told) = channel();
    /// let server = Options::new("my-tool", "1.0")
    ///     .on_list_changed(move |_, list| drop(tell.send(list)))
    ///     .connect(answers, requests)?;
    /// server.call_tool("change", ())?;
    /// assert_eq!(told.recv()?, ListKind::Tools);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_list_changed(
        mut self,
        changed: impl Fn(&Context, ListKind) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.on_list_changed = Some(Arc::new(changed));
        self
    }

    /// Learns that a resource has changed: its URI, or that of a part of one subscribed to. In the
    /// legacy era a [`request`](crate::mcp::Session::request) of `resources/subscribe` subscribes.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::legacy_server();
    /// # use std::sync::mpsc::channel;
    /// let (tell, told) = channel();
    /// let server = Options::new("my-tool", "1.0")
    ///     .on_updated(move |_, uri| drop(tell.send(uri.to_owned())))
    ///     .connect(answers, requests)?;
    /// server.call_tool("change", ())?;
    /// assert_eq!(told.recv()?, "file:///notes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_updated(mut self, updated: impl Fn(&Context, &str) + Send + Sync + 'static) -> Self {
        self.handlers.on_updated = Some(Arc::new(updated));
        self
    }

    /// Learns that the user is done with a page of [`elicit_url`](Self::elicit_url), or of
    /// [`Error::url_elicitations`](crate::mcp::Error::url_elicitations), by the id that came with
    /// it (revision 2025-11-25). Once for each of the last 1,024 pages asked for; other ids are
    /// ignored.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Elicited, Options};
    /// # let (answers, requests) = demo::legacy_server();
    /// # use std::sync::mpsc::channel;
    /// let (tell, told) = channel();
    /// let server = Options::new("my-tool", "1.0")
    ///     .elicit_url(|_, _| Elicited::accept())
    ///     .on_elicitation_complete(move |_, id| drop(tell.send(id.to_owned())))
    ///     .connect(answers, requests)?;
    /// server.call_tool("log_in", ())?;
    /// assert_eq!(told.recv()?, "7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_elicitation_complete(
        mut self,
        complete: impl Fn(&Context, &str) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.on_elicitation_complete = Some(Arc::new(complete));
        self
    }

    /// Takes every notification that no other handler here is for. Without it they are counted
    /// among the [unhandled](crate::Survived::unhandled_notifications).
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::legacy_server();
    /// # use std::sync::mpsc::channel;
    /// let (tell, told) = channel();
    /// let server = Options::new("my-tool", "1.0")
    ///     .on_notification(move |_, other| drop(tell.send(other.method().to_owned())))
    ///     .connect(answers, requests)?;
    /// server.call_tool("change", ())?;
    /// let methods: Vec<_> = told.iter().take(4).collect();
    /// assert_eq!(methods[3], "notifications/com.example/tick");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_notification(
        mut self,
        other: impl Fn(&Context, &Notification) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.on_other = Some(Arc::new(other));
        self
    }

    /// Learns that so many notifications were dropped at this place in their order, because the
    /// handlers were too slow and the
    /// [queue of notifications](crate::Options::notifications_limit) was full.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::legacy_server();
    /// # use std::sync::{Arc, Mutex, mpsc::channel};
    /// let busy = Arc::new(Mutex::new(()));
    /// let until_free = busy.clone();
    /// let (tell, told) = channel();
    /// let server = Options::new("my-tool", "1.0")
    ///     .transport(landline::Options::new().notifications_limit(1))
    ///     .on_log(move |_, _| drop(until_free.lock()))
    ///     .on_lost(move |_, count| drop(tell.send(count)))
    ///     .connect(answers, requests)?;
    /// let is_busy = busy.lock().unwrap();
    /// server.call_tool("change", ())?;
    /// drop(is_busy);
    /// assert!(told.recv()? > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_lost(mut self, lost: impl Fn(&Context, u64) + Send + Sync + 'static) -> Self {
        self.handlers.on_lost = Some(Arc::new(lost));
        self
    }

    /// Learns that the connection has ended, after the last notification.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::Options;
    /// # let (answers, requests) = demo::server();
    /// # use std::sync::mpsc::channel;
    /// let (tell, told) = channel();
    /// let server = Options::new("my-tool", "1.0")
    ///     .on_closed(move |why| drop(tell.send(why.to_string())))
    ///     .connect(answers, requests)?;
    /// server.close();
    /// assert_eq!(told.recv()?, "the connection was closed on this side");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{CallOptions, Options};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .validator(|_schema, value| {
    ///         // A crate for JSON Schema would stand here.
    ///         match value.get().starts_with('{') {
    ///             true => Ok(()),
    ///             false => Err("it is no object".into()),
    ///         }
    ///     })
    ///     .connect(answers, requests)?;
    /// let add = &server.tools()?[0];
    /// let checked = CallOptions::new().expect(add);
    /// server.call_tool_with("add", serde_json::json!({"a": 1, "b": 2}), checked)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn validator(
        mut self,
        check: impl Fn(&RawValue, &RawValue) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.validator = Some(Validator(Arc::new(check)));
        self
    }
}
