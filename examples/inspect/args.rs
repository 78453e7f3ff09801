//! The command line: words in, a [`Job`] out, or what is wrong with them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use landline::{ChildSpec, ChildSpecError, Framing};
use serde_json::value::RawValue;

pub(crate) const USAGE: &str = r#"usage: inspect                                          a demonstration
       inspect [OPTION...] ACTION -- PROGRAM [ARG...]   calls PROGRAM

options:
  --framing lines|content-length   how messages are told apart: MCP's way, or LSP's (default: lines)
  --timeout SECONDS                the limit of each request (default: 60)
  --json                           print one JSON document, as a script does

actions:
  request METHOD [PARAMS]          one raw request, the answer printed
  script FILE|-                    steps from a file or stdin, a line each, and for each a line out:
      {"request":METHOD,"params":...,"timeout":SECONDS}          {"ok":RESULT}
      {"start":METHOD,"params":...,"timeout":SECONDS,"as":NAME}  {"ok":null}
      {"wait":NAME}                                              {"ok":RESULT}
      {"cancel":NAME}                                            {"ok":null}
      {"notify":METHOD,"params":...}                             {"ok":null}
      {"sleep":SECONDS}                                          {"ok":null}
      {"close":true}                                             {"closed":{"status":...,"step":...}}
    or {"error":{"kind":...,"message":...,"delivery":...,"code":...,"data":...}} when it fails.
    "params", "timeout", and an error's "code" and "data" may be absent.

What the server sends unasked, its stderr, and what was survived go to stderr;
but MCP's `ping`, which is answered at once, is not shown.
The exit code is 0 when every request was answered with a result, 1 otherwise, 2 for wrong usage.
"#;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) framing: Framing,
    pub(crate) timeout: Option<Duration>,
    pub(crate) json: bool,
    pub(crate) action: Action,
    pub(crate) spec: ChildSpec,
}

#[derive(Debug)]
pub(crate) enum Action {
    Request {
        method: String,
        params: Option<Box<RawValue>>,
    },
    Script(Steps),
}

/// Where the steps of a script come from.
#[derive(Debug)]
pub(crate) enum Steps {
    Stdin,
    File(PathBuf),
}

impl Job {
    /// Reads the words after the program's name; `None` is a call for help.
    pub(crate) fn parse(words: Vec<OsString>) -> Result<Option<Self>, String> {
        let mut words = words.into_iter();
        let ours: Vec<_> = words.by_ref().take_while(|word| word != "--").collect();
        let mut ours = ours.into_iter();

        let (mut framing, mut timeout, mut json) = (Framing::Lines, None, false);
        let action = loop {
            let word = text(ours.next().ok_or("ACTION is missing")?)?;
            let mut value = |what| text(ours.next().ok_or(format!("{what} is missing"))?);
            match word.as_str() {
                "-h" | "--help" => return Ok(None),
                "--json" => json = true,
                "--framing" => {
                    framing = match value("the framing")?.as_str() {
                        "lines" => Framing::Lines,
                        "content-length" => Framing::ContentLength,
                        other => return Err(format!("there is no framing `{other}`")),
                    };
                }
                "--timeout" => {
                    let value = value("SECONDS")?;
                    let limit = value.parse().ok().and_then(seconds);
                    timeout = Some(limit.ok_or(format!("`{value}` is no number of seconds"))?);
                }
                "request" => {
                    let method = value("METHOD")?;
                    let params = ours
                        .next()
                        .map(text)
                        .transpose()?
                        .map(RawValue::from_string);
                    let params = params.transpose().map_err(|e| {
                        format!("PARAMS are no JSON: {e}; options stand before ACTION")
                    })?;
                    break Action::Request { method, params };
                }
                "script" => {
                    let file = ours.next().ok_or("FILE is missing")?;
                    break Action::Script(if file == "-" {
                        Steps::Stdin
                    } else {
                        Steps::File(file.into())
                    });
                }
                other if other.starts_with('-') => {
                    return Err(format!("there is no option `{other}`"));
                }
                other => return Err(format!("there is no action `{other}`")),
            }
        };
        if let Some(word) = ours.next() {
            return Err(format!("{word:?} is too much before `--`"));
        }
        let spec = ChildSpec::from_argv(words).map_err(|error| match error {
            ChildSpecError::EmptyArgv => "`-- PROGRAM` is missing".into(),
            error => format!("after `--`: {error}"),
        })?;
        Ok(Some(Job {
            framing,
            timeout,
            json,
            action,
            spec,
        }))
    }

    /// Whether stdout is for a program to read.
    pub(crate) fn wants_json(&self) -> bool {
        self.json || matches!(self.action, Action::Script(_))
    }
}

/// A time in seconds, fractions allowed; what is too long for a `Duration` is no limit at all.
pub(crate) fn seconds(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Our own words are text; those of the program behind `--` may be any bytes.
fn text(word: OsString) -> Result<String, String> {
    word.into_string()
        .map_err(|word| format!("{word:?} is not UTF-8"))
}
