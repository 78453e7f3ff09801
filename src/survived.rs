//! What a connection overlooked and went on: counters, and the first stray lines in quotes.
//!
//! The threads of a connection count into [`Counters`]; a caller reads a [`Survived`]. The
//! invariant: while the connection lives, nothing that the peer sent is passed over without one of
//! these numbers growing. What a caller itself leaves lying, the updates of a call it drops, is not
//! counted; nor is text repaired in a notification's params, where no word is lost.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::quote::clean_bytes;
use crate::sync::lock;

/// Declares the counters once: as atomics, as public numbers, and as words.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident: $words:literal),+ $(,)?) => {
        /// A snapshot of what a connection survived, counted from its start.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Survived {
            $($(#[$doc])+ pub $name: u64,)+
            /// The first stray lines (8 at most, 256 bytes of each), without control characters.
            pub first_stray_lines: Vec<String>,
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
            quotes: Mutex<Vec<String>>,
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> Survived {
                Survived { $($name: self.$name.get(),)+ first_stray_lines: self.stray_quotes() }
            }
        }

        impl Survived {
            /// Tells whether there was nothing to survive.
            pub fn is_empty(&self) -> bool {
                $(self.$name == 0)&&+
            }
        }

        /// Lists what is not zero, separated by commas, then the first stray lines.
        impl fmt::Display for Survived {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let all = [$((self.$name, $words)),+];
                let mut separator = "";
                for (count, words) in all.iter().filter(|(count, _)| *count > 0) {
                    write!(f, "{separator}{words}: {count}")?;
                    separator = ", ";
                }
                for line in &self.first_stray_lines {
                    write!(f, "\n  stray: {line}")?;
                }
                Ok(())
            }
        }
    };
}

counters! {
    /// Text on the peer's stdout that is no JSON-RPC message: banners, log lines, half a frame.
    stray_lines: "stray lines",
    /// Answers to calls that were given up. The last 1,024 calls given up are remembered.
    late_answers: "late answers",
    /// Answers whose id no call ever had, and errors that name no call.
    unknown_answers: "unknown answers",
    /// Further answers to calls that had theirs, or that were given up too long ago to be
    /// remembered.
    duplicate_answers: "duplicate answers",
    /// Notifications dropped because their queue was full, of which whoever reads it is told in
    /// their place; and those that a close, or the total limit of their call, left unread.
    dropped_notifications: "dropped notifications",
    /// Notifications that came while nothing was installed to take them.
    unhandled_notifications: "unhandled notifications",
    /// Requests of the peer that were refused with an error, because nothing serves them or because
    /// too many were waiting.
    refused_requests: "refused requests",
    /// Requests of the peer that got no answer: it withdrew them, or the dialect answers none.
    /// Those that the end of the connection leaves unanswered are not counted.
    unanswered_requests: "unanswered requests",
    /// Withdrawals of requests that the peer never made, or that were answered before.
    unknown_withdrawals: "unknown withdrawals",
    /// Notifications of this side that were queued and never written, because the peer reads no
    /// more.
    unsent_notifications: "unsent notifications",
    /// Frames with bytes that are no UTF-8, each of which became U+FFFD; and results and params of
    /// requests in which half of a surrogate pair became U+FFFD when they were decoded.
    repaired_text: "repaired text",
    /// Frames over the frame limit, discarded.
    oversized_frames: "oversized frames",
    /// Departures from JSON-RPC 2.0 that were overlooked: no version, an id in another form, params
    /// that are neither object nor array, an error beside a result, an array where the dialect has
    /// none, other text, a byte order mark or a NUL beside a message. Blanks and blank lines are
    /// none.
    deviations: "deviations",
    /// Handlers that panicked.
    handler_panics: "handler panics",
    /// Lines of stderr that the line callback was too slow to take. The tail is not affected.
    dropped_stderr_lines: "dropped stderr lines",
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        // No other memory is published through a counter.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn bump(&self) {
        self.add(1);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Counts text that is no message and quotes it if it is among the first.
    pub(crate) fn stray(&self, text: &[u8]) {
        self.stray_lines.bump();
        self.quote(text);
    }

    /// Quotes text that is counted elsewhere.
    pub(crate) fn quote(&self, text: &[u8]) {
        let mut quotes = lock(&self.quotes);
        if quotes.len() < QUOTES {
            quotes.push(clean_bytes(&text[..text.len().min(QUOTE_LEN)]));
        }
    }

    pub(crate) fn stray_quotes(&self) -> Vec<String> {
        lock(&self.quotes).clone()
    }
}

// Enough to show a banner or a stack trace's beginning, and little enough to keep for ever.
const QUOTES: usize = 8;
const QUOTE_LEN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strays_are_all_counted_and_the_first_are_quoted() {
        let counters = Counters::default();
        for n in 0..20 {
            counters.stray(format!("\u{1b}[1mline {n}\u{1b}[0m{}", "x".repeat(500)).as_bytes());
        }
        let survived = counters.snapshot();
        assert_eq!(survived.stray_lines, 20);
        assert_eq!(survived.first_stray_lines.len(), 8);
        assert!(survived.first_stray_lines[0].starts_with("line 0x"));
        assert!(
            survived
                .first_stray_lines
                .iter()
                .all(|line| line.len() <= 256)
        );
        assert!(
            survived
                .to_string()
                .starts_with("stray lines: 20\n  stray: line 0x")
        );
    }

    #[test]
    fn nothing_survived_is_empty() {
        let counters = Counters::default();
        assert!(counters.snapshot().is_empty());
        counters.late_answers.bump();
        assert!(!counters.snapshot().is_empty());
        assert_eq!(counters.snapshot().to_string(), "late answers: 1");
    }
}
