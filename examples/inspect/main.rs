//! Landline at work, and a tool to look into any server that speaks MCP, or any other JSON-RPC,
//! over its standard streams.
//!
//! `cargo run --example inspect` starts an embedded MCP server as a child process, calls it, and
//! closes it: read [`demo`], it is the whole client in a screenful. With arguments it calls a
//! server of yours; see `cargo run --example inspect -- --help`, or:
//!
//! ```text
//! cargo run --example inspect -- tools -- npx -y some-mcp-server
//! cargo run --example inspect -- call some-tool '{"some":"argument"}' -- npx -y some-mcp-server
//! ```

mod args;
mod client;
mod fields;
mod print;
mod raw;
mod screen;
mod script;
mod server;
mod show;
mod terminal;

use std::env;
use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use landline::ChildSpec;
use landline::mcp::{CallOptions, Context, Elicited, FormRequest, Options};
use serde_json::{Value, json};

use args::{Action, Job};
use screen::note;

fn main() -> ExitCode {
    let words: Vec<_> = env::args_os().skip(1).collect();
    match words.first() {
        None => match demo() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed("the demo failed", &*error),
        },
        Some(word) if word == server::FLAG => {
            if let Some(more) = words.get(1) {
                return misused(format_args!(
                    "{more:?} is too much after `{}`",
                    server::FLAG
                ));
            }
            // It ends when its stdin or its stdout does, and has nothing to say about either.
            let _ = server::serve();
            ExitCode::SUCCESS
        }
        Some(_) => match Job::parse(words) {
            Ok(Some(job)) => inspect(&job),
            Ok(None) => {
                // Whoever asked for help and does not read it needs no complaint.
                let _ = io::stdout().write_all(args::USAGE.as_bytes());
                ExitCode::SUCCESS
            }
            Err(wrong) => misused(wrong),
        },
    }
}

/// Starts a server, calls it, and closes it.
fn demo() -> Result<(), Box<dyn Error>> {
    // What to run: this program, as its own child.
    let spec = ChildSpec::new(env::current_exe()?)?.with_arg(server::FLAG)?;
    // As whom: a client that can be asked to fill in a form. It says so by having a handler.
    let server = Options::new("inspect", env!("CARGO_PKG_VERSION"))
        .elicit_form(fill_in)
        .spawn(&spec)?;
    say("Started an MCP server, this program again, and found out what it speaks:")?;
    let (met, pid) = (server.server(), server.connection().pid());
    say(format_args!(
        "  process {}: revision {}, the {} era",
        pid.unwrap_or_default(),
        met.revision(),
        met.era()
    ))?;

    say("\nWhich tools does it have?")?;
    for tool in server.tools()? {
        let what = tool.description().unwrap_or_default();
        say(format_args!("  {}: {what}", tool.name()))?;
    }

    say("\nA call of the tool `add`, which waits for its answer:")?;
    let sum = server.call_tool("add", json!({"a": 19, "b": 23}))?;
    say(format_args!("  19 + 23 = {}", sum.all_text()))?;

    say("\nA call of the tool `sleep`, which tells its progress while we wait:")?;
    let watched = CallOptions::new().progress(|progress| {
        // The call goes on, whether its progress can be shown or not.
        let _ = say(format_args!("  {}", screen::how_far(progress)));
    });
    let slept = server.call_tool_with("sleep", json!({"seconds": 1}), watched)?;
    say(format_args!("  {}", slept.all_text()))?;

    say("\nA call of the tool `greet`, which asks the user something before it answers:")?;
    let greeting = server.call_tool("greet", ())?;
    say(format_args!("  {}", greeting.all_text()))?;

    say("\nA tool that fails has a result that says so; what the server refuses is an error:")?;
    let failed = server.call_tool("fail", ())?;
    say(format_args!(
        "  {}: {}",
        if failed.is_error() { "failed" } else { "done" },
        failed.all_text()
    ))?;
    if let Err(error) = server.call_tool("fly", ()) {
        say(format_args!("  {error}"))?;
    }

    say("\nThe end: its stdin is closed, and only a server that stays on gets a signal.")?;
    let ended = server.close();
    let exit = ended
        .exit
        .map_or("no status".into(), |exit| exit.to_string());
    say(format_args!("  {exit}, by this step: {}", ended.step))?;
    Ok(())
}

/// Has the user fill in the server's form, or does it itself where nobody sits at a terminal.
fn fill_in(cx: &Context, ask: &FormRequest) -> Elicited {
    if io::stdin().is_terminal() {
        return terminal::form(cx, ask);
    }
    let answer = json!({"name": "Ferris"});
    // The call goes on, whether this can be shown or not.
    let _ = say(format_args!("  {} {answer}", ask.message()));
    match answer {
        Value::Object(fields) => Elicited::Accept(fields),
        _ => Elicited::Decline,
    }
}

fn say(words: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{words}")
}

/// Does what the command line asks for with the server that it names.
fn inspect(job: &Job) -> ExitCode {
    let all_well = match &job.action {
        Action::Mcp(manner, action) => client::inspect(job, manner, action),
        Action::Raw(framing, action) => raw::inspect(job, *framing, action),
    };
    match all_well {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed("cannot print the answers", &error),
    }
}

/// Ends with what is wrong with the command line.
fn misused(wrong: impl Display) -> ExitCode {
    note(format_args!("inspect: {wrong}; see inspect --help"));
    ExitCode::from(2)
}

/// Ends with an error, told unless nobody reads on: in `inspect | head`, that is no failure worth
/// words.
fn failed(what: &str, error: &(dyn Error + 'static)) -> ExitCode {
    let shown: Option<&io::Error> = error.downcast_ref();
    if shown.is_none_or(|error| error.kind() != ErrorKind::BrokenPipe) {
        note(format_args!("{what}: {error}"));
    }
    ExitCode::FAILURE
}
