//! The command line: words in, a [`Job`] out, or what is wrong with them.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use landline::mcp::{Era, Revision, Root};
use landline::{ChildSpec, ChildSpecError, Framing};
use serde_json::value::RawValue;

pub(crate) const USAGE: &str = r#"usage: inspect                                          a demonstration
       inspect [OPTION...] ACTION -- PROGRAM [ARG...]   calls PROGRAM

options:
  --json                           print one JSON document, {"ok":RESULT} or {"error":...} as below
  --timeout SECONDS                the limit of each request, and of connecting (default: 60)

actions of an MCP client, which finds out what the server speaks and connects first:
  info                             who the server is, what it speaks and what it has
  tools                            lists its tools
  call NAME [ARGS]                 calls a tool; ARGS is a JSON object
  resources                        lists its resources and their templates
  read URI                         reads a resource
  prompts                          lists its prompts
  prompt NAME [ARGS]               gets a prompt; ARGS is a JSON object of strings

their options:
  --era auto|modern|legacy         the era of MCP to speak (default: auto, what the server speaks)
  --revision R                     the one revision to speak, such as 2025-11-25
  --idle SECONDS                   how long a call may go without progress (default: no limit)
  --roots DIR                      a directory the server may work in; for several, say it again

actions of raw JSON-RPC, for any protocol; nothing is sent but what you say:
  request METHOD [PARAMS]          one request, the answer printed
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

their option:
  --framing lines|content-length   how messages are told apart: MCP's way, or LSP's (default: lines)

What the server sends unasked, its stderr, the progress of calls, and what was survived go to stderr.
What it asks the user is asked at the terminal, and declined where there is none.
The exit code is 0 when every request was answered with a result, and no tool said that it failed;
1 otherwise, 2 for wrong usage.
"#;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) timeout: Option<Duration>,
    pub(crate) json: bool,
    pub(crate) action: Action,
    pub(crate) spec: ChildSpec,
}

#[derive(Debug)]
pub(crate) enum Action {
    Mcp(Manner, Mcp),
    Raw(Framing, Raw),
}

/// An action of an MCP client.
#[derive(Debug)]
pub(crate) enum Mcp {
    Info,
    Tools,
    Call(Named),
    Resources,
    Read(String),
    Prompts,
    Prompt(Named),
}

/// A tool or a prompt, and its arguments as they were given, digit for digit.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) args: Option<Box<RawValue>>,
}

/// How an MCP client connects and calls.
#[derive(Debug, Default)]
pub(crate) struct Manner {
    /// `None` takes what is found.
    pub(crate) era: Option<Era>,
    pub(crate) revision: Option<Revision>,
    pub(crate) idle: Option<Duration>,
    pub(crate) roots: Vec<Root>,
}

/// An action of raw JSON-RPC.
#[derive(Debug)]
pub(crate) enum Raw {
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
        let Some(options) = Options::parse(ours)? else {
            return Ok(None);
        };
        let (timeout, json) = (options.timeout, options.json);
        let action = options.action()?;
        let spec = ChildSpec::from_argv(words).map_err(|error| match error {
            ChildSpecError::EmptyArgv => "`-- PROGRAM` is missing".into(),
            error => format!("after `--`: {error}"),
        })?;
        Ok(Some(Job {
            timeout,
            json,
            action,
            spec,
        }))
    }

    /// Whether stdout is for a program to read.
    pub(crate) fn wants_json(&self) -> bool {
        self.json || matches!(self.action, Action::Raw(_, Raw::Script(_)))
    }
}

/// The words before `--`.
struct Options {
    timeout: Option<Duration>,
    json: bool,
    framing: Option<Framing>,
    manner: Manner,
    /// The first option that is for the actions of an MCP client alone.
    for_mcp: Option<String>,
    action: String,
    rest: Vec<OsString>,
}

impl Options {
    fn parse(words: Vec<OsString>) -> Result<Option<Self>, String> {
        let mut words = words.into_iter();
        let mut options = Options {
            timeout: None,
            json: false,
            framing: None,
            manner: Manner::default(),
            for_mcp: None,
            action: String::new(),
            rest: Vec::new(),
        };
        loop {
            let word = text(words.next().ok_or("ACTION is missing")?)?;
            if matches!(word.as_str(), "-h" | "--help") {
                return Ok(None);
            }
            if !word.starts_with('-') {
                options.action = word;
                options.rest = words.collect();
                return Ok(Some(options));
            }
            let value = |what| words.next().ok_or(format!("{what} is missing"));
            if options.set(&word, value)? {
                options.for_mcp.get_or_insert(word);
            }
        }
    }

    /// Sets an option; `true` says that it is for the actions of an MCP client alone.
    fn set(
        &mut self,
        option: &str,
        mut value: impl FnMut(&'static str) -> Result<OsString, String>,
    ) -> Result<bool, String> {
        match option {
            "--json" => self.json = true,
            "--timeout" => self.timeout = Some(limit(value("SECONDS")?)?),
            "--framing" => {
                self.framing = Some(match text(value("the framing")?)?.as_str() {
                    "lines" => Framing::Lines,
                    "content-length" => Framing::ContentLength,
                    other => return Err(format!("there is no framing `{other}`")),
                });
            }
            _ => {
                self.manner.set(option, value)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn action(self) -> Result<Action, String> {
        let hint = hint(&self.rest);
        let mut rest = self.rest.into_iter();
        let mut value = |what| text(rest.next().ok_or(format!("{what} is missing"))?);
        let raw = match self.action.as_str() {
            "request" => Raw::Request {
                method: value("METHOD")?,
                params: rest
                    .next()
                    .map(|word| json("PARAMS", word, hint))
                    .transpose()?,
            },
            "script" => match rest.next().ok_or("FILE is missing")? {
                file if file == "-" => Raw::Script(Steps::Stdin),
                file => Raw::Script(Steps::File(file.into())),
            },
            action => {
                let mcp = match action {
                    "info" => Mcp::Info,
                    "tools" => Mcp::Tools,
                    "call" => Mcp::Call(named(value("NAME")?, rest.next(), hint)?),
                    "resources" => Mcp::Resources,
                    "read" => Mcp::Read(value("URI")?),
                    "prompts" => Mcp::Prompts,
                    "prompt" => Mcp::Prompt(named(value("NAME")?, rest.next(), hint)?),
                    other => return Err(format!("there is no action `{other}`")),
                };
                no_more(rest.next(), hint)?;
                if self.framing.is_some() {
                    return Err(format!("`--framing` is not for `{action}`: MCP has lines"));
                }
                return Ok(Action::Mcp(self.manner.checked()?, mcp));
            }
        };
        no_more(rest.next(), hint)?;
        match self.for_mcp {
            Some(option) => Err(format!("`{option}` is not for `{}`", self.action)),
            None => Ok(Action::Raw(self.framing.unwrap_or(Framing::Lines), raw)),
        }
    }
}

impl Manner {
    fn set(
        &mut self,
        option: &str,
        mut value: impl FnMut(&'static str) -> Result<OsString, String>,
    ) -> Result<(), String> {
        match option {
            "--era" => {
                self.era = match text(value("the era")?)?.as_str() {
                    "auto" => None,
                    "modern" => Some(Era::Modern),
                    "legacy" => Some(Era::Legacy),
                    other => return Err(format!("there is no era `{other}`")),
                };
            }
            "--revision" => {
                let name = text(value("the revision")?)?;
                let known = Revision::from_name(&name);
                self.revision = Some(known.ok_or(format!("there is no revision `{name}`"))?);
            }
            "--idle" => self.idle = Some(limit(value("SECONDS")?)?),
            "--roots" => self.roots.push(root(value("DIR")?)?),
            other => return Err(format!("there is no option `{other}`")),
        }
        Ok(())
    }

    fn checked(self) -> Result<Self, String> {
        match (self.era, self.revision) {
            (Some(era), Some(revision)) if revision.era() != era => {
                Err(format!("revision {revision} is not of the {era} era"))
            }
            _ => Ok(self),
        }
    }
}

/// What may be wrong with the words after an action, if one of them looks like an option. It could
/// be meant as it stands, as the name of a tool.
fn hint(rest: &[OsString]) -> &'static str {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"--");
    if rest.iter().any(is_option) {
        "; options stand before ACTION"
    } else {
        ""
    }
}

fn no_more(word: Option<OsString>, hint: &str) -> Result<(), String> {
    match word {
        Some(word) => Err(format!("{word:?} is too much before `--`{hint}")),
        None => Ok(()),
    }
}

fn named(name: String, args: Option<OsString>, hint: &str) -> Result<Named, String> {
    let args = args.map(|word| json("ARGS", word, hint)).transpose()?;
    match args {
        Some(args) if !args.get().starts_with('{') => Err("ARGS are no JSON object".into()),
        args => Ok(Named { name, args }),
    }
}

fn json(what: &str, word: OsString, hint: &str) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text(word)?).map_err(|error| format!("{what} are no JSON: {error}{hint}"))
}

fn limit(word: OsString) -> Result<Duration, String> {
    let word = text(word)?;
    let limit = word.parse().ok().and_then(seconds);
    // In no time at all, nothing can be answered.
    let limit = limit.filter(|limit| !limit.is_zero());
    limit.ok_or(format!("`{word}` is no number of seconds above zero"))
}

fn root(dir: OsString) -> Result<Root, String> {
    let wrong = |why: &dyn Display| format!("{dir:?} is no directory for a root: {why}");
    let path = fs::canonicalize(&dir).map_err(|error| wrong(&error))?;
    if !path.is_dir() {
        return Err(wrong(&"it is a file"));
    }
    Root::from_path(path).map_err(|error| wrong(&error))
}

/// A time in seconds, fractions allowed; what is too long for a `Duration` is no limit at all.
pub(crate) fn seconds(seconds: f64) -> Option<Duration> {
    let is_time = seconds.is_finite() && seconds >= 0.0;
    is_time.then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Our own words are text; those of the program behind `--` may be any bytes.
fn text(word: OsString) -> Result<String, String> {
    word.into_string()
        .map_err(|word| format!("{word:?} is not UTF-8"))
}
