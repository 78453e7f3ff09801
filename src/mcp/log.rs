//! Log messages, and how much of them a server sends.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use crate::mcp::view::view;

view! {
    /// A log message of the server's.
    LogMessage,
}

impl LogMessage {
    /// The level; `None` for one that the protocol does not know.
    pub fn level(&self) -> Option<LogLevel> {
        LogLevel::from_name(&self.text("level")?)
    }

    /// The part of the server that speaks.
    pub fn logger(&self) -> Option<Cow<'_, str>> {
        self.text("logger")
    }

    /// What is said: any JSON value, `null` included; absent where the server left it out.
    pub fn data(&self) -> Option<&RawValue> {
        self.member("data")
    }
}

/// The levels of log messages, those of syslog (RFC 5424), in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is its name")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// All levels, the least important first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    /// The level as the protocol writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }

    /// Finds the level of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
