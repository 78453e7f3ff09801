//! Questions of the server to the person at the terminal.
//!
//! The person learns which server asks, can decline and cancel, and sees the answer before it is
//! sent. The invariant: one question at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use landline::mcp::{Context, Elicited, FormRequest, UrlRequest};
use serde_json::{Map, Value};

use crate::fields::{Field, fields};
use crate::screen::{Asking, clean, note};

/// Has the person fill in a form; declines it where there is none to ask.
pub(crate) fn form(cx: &Context, ask: &FormRequest) -> Elicited {
    asked(cx, &ask.message(), |terminal| {
        match terminal.choose("Fill in the form?", &["yes", "no", "cancel"])? {
            "no" => return Some(Elicited::Decline),
            "cancel" => return Some(Elicited::Cancel),
            _ => {}
        }
        let fields = fields(ask.schema());
        loop {
            let filled = terminal.fill(&fields)?;
            terminal.say(&format!("{}\n", Value::from(filled.clone())))?;
            match terminal.choose("Send it?", &["yes", "edit", "no", "cancel"])? {
                "yes" => return Some(Elicited::Accept(filled)),
                "no" => return Some(Elicited::Decline),
                "cancel" => return Some(Elicited::Cancel),
                _ => {}
            }
        }
    })
}

/// Has the person visit a page. It is shown, not opened: that is for the person to do.
pub(crate) fn url(cx: &Context, ask: &UrlRequest) -> Elicited {
    asked(cx, &ask.message(), |terminal| {
        terminal.say(&format!(
            "It wants you to visit this page:\n  {}\n",
            ask.url()
        ))?;
        let question = "Will you open it in your browser?";
        Some(match terminal.choose(question, &["yes", "no", "cancel"])? {
            "yes" => Elicited::accept(),
            "no" => Elicited::Decline,
            _ => Elicited::Cancel,
        })
    })
}

/// Puts a question. The end of the input, `None` here, is no answer.
fn asked(
    cx: &Context,
    message: &str,
    question: impl FnOnce(&mut Terminal) -> Option<Elicited>,
) -> Elicited {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut terminal) = Terminal::find() else {
        note(format_args!(
            "declined, as there is no terminal to ask at: {message}"
        ));
        return Elicited::Decline;
    };
    // While others were asked, the server may have lost interest.
    if cx.is_cancelled() {
        return Elicited::Cancel;
    }
    let _asking = Asking::new();
    let name = cx.presentation().and_then(|server| server.implementation());
    let name = name.as_ref().and_then(|server| server.name());
    let name = name.map_or("The server".into(), |name| format!("The server {name}"));
    terminal
        .say(&format!("{name} asks: {message}\n"))
        .and_then(|()| question(&mut terminal))
        .unwrap_or(Elicited::Cancel)
}

struct Terminal {
    lines: Box<dyn BufRead>,
    out: Box<dyn Write>,
}

impl Terminal {
    /// The terminal at which somebody is. With all three streams redirected nobody is, even if a
    /// terminal started us once.
    fn find() -> Option<Self> {
        let (stdin, stderr) = (io::stdin(), io::stderr());
        if !(stdin.is_terminal() || io::stdout().is_terminal() || stderr.is_terminal()) {
            return None;
        }
        let tty = || File::options().read(true).write(true).open("/dev/tty").ok();
        Some(Terminal {
            lines: if stdin.is_terminal() {
                Box::new(stdin.lock())
            } else {
                Box::new(BufReader::new(tty()?))
            },
            out: if stderr.is_terminal() {
                Box::new(stderr)
            } else {
                Box::new(tty()?)
            },
        })
    }

    fn say(&mut self, words: &str) -> Option<()> {
        self.out.write_all(clean(words).as_bytes()).ok()?;
        self.out.flush().ok()
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        self.say(question)?;
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(1..) => Some(line.trim().to_owned()),
            // The end of the input, or none that is text.
            _ => None,
        }
    }

    /// Asks until the answer is one of these words, or the beginning of one.
    fn choose(&mut self, question: &str, words: &[&'static str]) -> Option<&'static str> {
        loop {
            let answer = self.ask(&format!("{question} ({}) ", words.join("/")))?;
            let begins = |word: &&&str| !answer.is_empty() && word.starts_with(&answer);
            if let Some(word) = words.iter().find(begins) {
                return Some(word);
            }
        }
    }

    fn fill(&mut self, fields: &[Field]) -> Option<Map<String, Value>> {
        let mut filled = Map::new();
        for field in fields {
            loop {
                let answer = self.ask(&format!("  {}: ", field.question()))?;
                match field.read(&answer) {
                    Ok(Some(value)) => {
                        filled.insert(field.name.clone(), value);
                        break;
                    }
                    Ok(None) => break,
                    Err(wrong) => self.say(&format!("  {wrong}\n"))?,
                }
            }
        }
        Some(filled)
    }
}
