//! stderr: notes from several threads, and under them the bar of a call that goes on.
//!
//! The bar stands in the last line of a terminal, without a line end. Whatever else is to be
//! written takes it away first, and the next progress draws it again.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landline::mcp::Progress;
use landline::quote;

/// What stands in the last line of the terminal.
#[derive(PartialEq)]
enum LastLine {
    Empty,
    Bar,
    /// A question to a person, who may be in the middle of the answer.
    Question,
}

static LAST_LINE: Mutex<LastLine> = Mutex::new(LastLine::Empty);

/// Writes to stderr, which may be closed: there is nobody to tell that, and no reason to stop.
pub(crate) fn note(words: fmt::Arguments<'_>) {
    let words = clean(&format!("{words}\n"));
    let _last = free();
    write(&words);
}

/// Shows how far a call has got: a bar on a terminal, a line elsewhere.
pub(crate) fn progress(progress: &Progress) {
    let words = how_far(progress);
    if !io::stderr().is_terminal() {
        return note(format_args!("progress: {words}"));
    }
    let mut last = last_line();
    if *last == LastLine::Question {
        return;
    }
    *last = LastLine::Bar;
    let share = share(progress).map_or(String::new(), |share| {
        let full = (share * WIDTH as f64) as usize;
        format!("[{}{}] ", "#".repeat(full), ".".repeat(WIDTH - full))
    });
    // A line that wraps could not be taken away again.
    let line: String = format!("{share}{words}").chars().take(LINE).collect();
    write(&format!("{ERASE}{line}"));
}

/// Takes the bar away, if one stands there.
pub(crate) fn erase() {
    drop(free());
}

/// While it lives, a person is being asked, and no bar is drawn.
pub(crate) struct Asking;

impl Asking {
    pub(crate) fn new() -> Self {
        *free() = LastLine::Question;
        Asking
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        *last_line() = LastLine::Empty;
    }
}

/// Leaves out what could move the cursor, or worse: a server's words are not for the terminal to
/// obey. Line ends and tabs stay.
pub(crate) fn clean(words: &str) -> String {
    // Line by line, so that an escape sequence without an end does not swallow the lines below it,
    // which may be somebody else's.
    let lines: Vec<_> = words.split('\n').map(quote::clean).collect();
    lines.join("\n")
}

/// How far a call has got, in words: `1 of 4: what is being done`.
pub(crate) fn how_far(progress: &Progress) -> String {
    let mut words = match (progress.progress(), progress.total()) {
        (Some(done), Some(total)) => format!("{done} of {total}"),
        (Some(done), None) => done.to_string(),
        (None, _) => "some progress".into(),
    };
    if let Some(message) = progress.message() {
        words.push_str(": ");
        // On one line, like the rest of it.
        words.push_str(&clean(&message).replace(['\n', '\t'], " "));
    }
    words
}

fn share(progress: &Progress) -> Option<f64> {
    let share = progress.progress()? / progress.total()?;
    // Neither a total of nothing nor one that is passed makes a bar.
    share.is_finite().then(|| share.clamp(0.0, 1.0))
}

/// The last line, and nothing on it but perhaps a question.
fn free() -> MutexGuard<'static, LastLine> {
    let mut last = last_line();
    if *last == LastLine::Bar {
        write(ERASE);
        *last = LastLine::Empty;
    }
    last
}

/// In one write, because the server may share our stderr.
fn write(words: &str) {
    // It may be closed, as `note` says.
    let _ = io::stderr().write_all(words.as_bytes());
}

fn last_line() -> MutexGuard<'static, LastLine> {
    LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// To the beginning of the line, and empties it.
const ERASE: &str = "\r\x1b[K";

// A bar and its words, within the 80 columns that every terminal has.
const WIDTH: usize = 30;
const LINE: usize = 79;
