//! Scripts: a step in on each line, what became of it out on a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::thread;
use std::time::Duration;

use landline::{Call, CallOptions, CancelToken, Connection};
use serde_json::value::RawValue;

use crate::args::{Steps, seconds};
use crate::print::{Failure, Line};
use crate::screen::note;

enum Step {
    Request {
        method: String,
        params: Params,
        options: CallOptions,
    },
    Start {
        method: String,
        params: Params,
        options: CallOptions,
        name: String,
    },
    Wait(String),
    Cancel(String),
    Notify {
        method: String,
        params: Params,
    },
    Sleep(Duration),
    Close,
}

/// As the script has them, digit for digit; without any, none are sent.
type Params = Option<Box<RawValue>>;

/// A call in flight, and what cancels it while its name can still be waited for.
struct Started {
    call: Call,
    cancel: CancelToken,
}

/// Runs a script; `true` says that every step went well and every call was waited for.
pub(crate) fn run(server: &Connection, steps: &Steps) -> io::Result<bool> {
    let lines: Box<dyn BufRead> = match steps {
        Steps::Stdin => Box::new(io::stdin().lock()),
        Steps::File(path) => match File::open(path) {
            Ok(file) => Box::new(BufReader::new(file)),
            Err(error) => return unreadable(&error),
        },
    };
    let mut script = Script {
        server,
        calls: BTreeMap::new(),
    };
    let mut all_well = true;
    for (number, line) in (1..).zip(lines.split(b'\n')) {
        let line = match line {
            Ok(line) if line.trim_ascii().is_empty() => continue,
            Ok(line) => line,
            Err(error) => return unreadable(&error),
        };
        let done = Step::parse(&line).and_then(|step| script.step(step));
        let done = done.unwrap_or_else(|wrong: String| {
            Line::Failed(Failure::unsent(
                "script",
                format!("script line {number}: {wrong}"),
            ))
        });
        all_well &= done.print()?;
    }
    for name in script.calls.keys() {
        note(format_args!("`{name}` was started and never waited for"));
    }
    Ok(all_well && script.calls.is_empty())
}

fn unreadable(error: &io::Error) -> io::Result<bool> {
    let words = format!("the script cannot be read: {error}");
    Line::Failed(Failure::unsent("script", words)).print()
}

struct Script<'a> {
    server: &'a Connection,
    /// By name, and in this order where they are told.
    calls: BTreeMap<String, Started>,
}

impl Script<'_> {
    /// Does a step; an error is one of the script, and nothing was done.
    fn step(&mut self, step: Step) -> Result<Line, String> {
        let done = match step {
            Step::Request {
                method,
                params,
                options,
            } => self
                .server
                .request_with(&method, params, &options)
                .map(Some),
            Step::Start { name, .. } if self.calls.contains_key(&name) => {
                return Err(format!("`{name}` is in flight already"));
            }
            Step::Start {
                method,
                params,
                options,
                name,
            } => {
                let cancel = CancelToken::new();
                let options = options.cancel_token(&cancel);
                let call = self.server.start_with(&method, &options, |_| params);
                call.map(|call| {
                    self.calls.insert(name, Started { call, cancel });
                    None
                })
            }
            Step::Wait(name) => match self.calls.remove(&name) {
                Some(started) => started.call.wait().map(Some),
                None => return Err(unknown(&name)),
            },
            Step::Cancel(name) => match self.calls.get(&name) {
                Some(started) => {
                    started.cancel.cancel();
                    Ok(None)
                }
                None => return Err(unknown(&name)),
            },
            Step::Notify { method, params } => self.server.notify(&method, params).map(|()| None),
            Step::Sleep(time) => {
                thread::sleep(time);
                Ok(None)
            }
            Step::Close => return Ok(Line::Closed(self.server.close())),
        };
        Ok(match done {
            Ok(result) => Line::Ok(result),
            Err(error) => Line::Failed(error.into()),
        })
    }
}

fn unknown(name: &str) -> String {
    format!("no call was started as `{name}`")
}

impl Step {
    /// Reads a line. What is misspelt is an error: left out in silence, a limit would be missed too
    /// late.
    fn parse(line: &[u8]) -> Result<Self, String> {
        let mut members: Members = serde_json::from_slice(line).map_err(|error| {
            // Every step is line 1 to serde_json; which line of the script it is, `run` says.
            let why = error.to_string().replace(" line 1 column ", " column ");
            format!("a step is a JSON object on one line: {why}")
        })?;
        let verbs = [
            "request", "start", "wait", "cancel", "notify", "sleep", "close",
        ];
        let Some(verb) = verbs.into_iter().find(|verb| members.contains_key(*verb)) else {
            return Err(format!(
                "a step has one of the members {}",
                verbs.join(", ")
            ));
        };
        let step = match verb {
            "request" => Step::Request {
                method: needed(&mut members, verb)?,
                params: members.remove("params"),
                options: options(&mut members)?,
            },
            "start" => Step::Start {
                method: needed(&mut members, verb)?,
                params: members.remove("params"),
                options: options(&mut members)?,
                name: needed(&mut members, "as")?,
            },
            "wait" => Step::Wait(needed(&mut members, verb)?),
            "cancel" => Step::Cancel(needed(&mut members, verb)?),
            "notify" => Step::Notify {
                method: needed(&mut members, verb)?,
                params: members.remove("params"),
            },
            "sleep" => Step::Sleep(time(&mut members, verb)?.unwrap_or_default()),
            _ => match members.remove(verb) {
                Some(yes) if yes.get() == "true" => Step::Close,
                _ => return Err("`close` is true".into()),
            },
        };
        match members.keys().next() {
            Some(name) => Err(format!("`{name}` is no member of a `{verb}` step")),
            None => Ok(step),
        }
    }
}

/// The members of a step that were not read yet: what is left at the end is one too many.
type Members = BTreeMap<String, Box<RawValue>>;

fn needed(members: &mut Members, name: &str) -> Result<String, String> {
    let raw = members.remove(name);
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .ok_or(format!("`{name}` is a string"))
}

fn options(members: &mut Members) -> Result<CallOptions, String> {
    Ok(match time(members, "timeout")? {
        Some(limit) => CallOptions::new().timeout(limit),
        None => CallOptions::new(),
    })
}

fn time(members: &mut Members, name: &str) -> Result<Option<Duration>, String> {
    let Some(raw) = members.remove(name) else {
        return Ok(None);
    };
    match serde_json::from_str(raw.get()).ok().and_then(seconds) {
        Some(time) => Ok(Some(time)),
        None => Err(format!("`{name}` is a number of seconds")),
    }
}
