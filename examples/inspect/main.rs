//! Landline at work, and a tool to look into any server that speaks JSON-RPC over its standard
//! streams.
//!
//! `cargo run --example inspect` starts an embedded MCP server as a child process, calls it, and
//! closes it: read [`demo`], it is the whole library in a screenful. With arguments it calls a
//! server of yours; see `cargo run --example inspect -- --help`, or:
//!
//! ```text
//! cargo run --example inspect -- request initialize '{"protocolVersion":"2025-11-25",
//!     "capabilities":{},"clientInfo":{"name":"me","version":"1"}}' -- npx -y some-mcp-server
//! ```

mod args;
mod print;
mod script;
mod server;
mod watch;

use std::env;
use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use landline::{CallOptions, ChildSpec, Connection, Options, Update};
use serde_json::{Value, json};

use args::{Action, Job};

fn main() -> ExitCode {
    let words: Vec<_> = env::args_os().skip(1).collect();
    match words.first() {
        None => match demo() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed("the demo failed", &*error),
        },
        Some(word) if word == server::FLAG => {
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
            Err(wrong) => {
                print::note(format_args!("inspect: {wrong}\n\n{}", args::USAGE));
                ExitCode::from(2)
            }
        },
    }
}

/// Starts a server, calls it, and closes it.
fn demo() -> Result<(), Box<dyn Error>> {
    // What to run: this program, as its own child.
    let spec = ChildSpec::new(env::current_exe()?)?.with_arg(server::FLAG)?;
    // How: where a progress notification names the call that it belongs to is part of MCP's
    // dialect.
    let server = Options::new()
        .dialect(watch::mcp().route("notifications/progress", ["progressToken"]))
        .request_timeout(Duration::from_secs(5))
        .spawn(&spec)?;
    let pid = server.pid().unwrap_or_default();
    say(format_args!(
        "Started an MCP server: this program again, as process {pid}."
    ))?;

    say("\nThe handshake: a request, which waits for its answer, and a notification.")?;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "inspect", "version": "1"},
    });
    request(&server, "initialize", hello)?;
    server.notify("notifications/initialized", ())?;
    say("  --> notifications/initialized")?;

    say("\nWhich tools does it have?")?;
    let tools = request(&server, "tools/list", json!({}))?;
    for tool in tools["tools"].as_array().into_iter().flatten() {
        say(format_args!(
            "      {}: {}",
            tool["name"], tool["description"]
        ))?;
    }

    say("\nA call of the tool `add`:")?;
    let add = json!({"name": "add", "arguments": {"a": 19, "b": 23}});
    request(&server, "tools/call", add)?;

    say("\nA call of the tool `sleep`, which tells its progress while we wait:")?;
    let sleep = json!({"name": "sleep", "arguments": {"seconds": 1}});
    let call = server.start_with("tools/call", &CallOptions::new(), |id| {
        let mut params = sleep.clone();
        params["_meta"] = json!({"progressToken": id});
        params
    })?;
    say(format_args!(
        "  --> tools/call {sleep}, in flight as request {}",
        call.id()
    ))?;
    let slept: Value = call.wait_with(|update| {
        if let Update::Notification(progress) = update {
            let params = progress.params().map_or("", |raw| raw.get());
            // The call goes on, whether its progress can be shown or not.
            let _ = say(format_args!("  <-- {} {params}", progress.method()));
        }
    })?;
    say(format_args!("  <-- {slept}"))?;

    say("\nA request that the server refuses is an error, which says so:")?;
    if let Err(error) = request(&server, "no/such/method", json!({})) {
        say(format_args!("  <-- {error}"))?;
    }

    say("\nThe end: its stdin is closed, and only a server that stays on gets a signal.")?;
    let ended = server.close();
    let exit = ended
        .exit
        .map_or("no status".into(), |exit| exit.to_string());
    say(format_args!("  {exit}, by this step: {}", ended.step))?;
    Ok(())
}

/// Sends a request and waits, showing what went out and what came back.
fn request(server: &Connection, method: &str, params: Value) -> Result<Value, Box<dyn Error>> {
    say(format_args!("  --> {method} {params}"))?;
    let answer: Value = server.request(method, params)?;
    say(format_args!("  <-- {}", cut(answer.to_string())))?;
    Ok(answer)
}

fn say(words: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{words}")
}

/// Leaves of a long line what fits on a screen.
fn cut(line: String) -> String {
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Does what the command line asks for with the server that it names.
fn inspect(job: &Job) -> ExitCode {
    let all_well = match watch::options(job).spawn(&job.spec) {
        Ok(server) => thread::scope(|scope| {
            let watching = scope.spawn(|| watch::watch(&server));
            let all_well = act(&server, job);
            // Ends the watching too, once it has shown what came. It has nothing to give, panics
            // included.
            server.close();
            let _ = watching.join();
            let survived = server.survived();
            if !survived.is_empty() {
                print::note(format_args!("survived: {survived}"));
            }
            all_well
        }),
        Err(error) => print::not_started(&error, job.wants_json()),
    };
    match all_well {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed("cannot print the answers", &error),
    }
}

/// Ends with an error, told unless nobody reads on: in `inspect | head`, that is no failure worth
/// words.
fn failed(what: &str, error: &(dyn Error + 'static)) -> ExitCode {
    let shown: Option<&io::Error> = error.downcast_ref();
    if shown.is_none_or(|error| error.kind() != ErrorKind::BrokenPipe) {
        print::note(format_args!("{what}: {error}"));
    }
    ExitCode::FAILURE
}

/// Does it on the live connection; `true` says that every request was answered with a result.
fn act(server: &Connection, job: &Job) -> io::Result<bool> {
    match &job.action {
        Action::Request { method, params } => {
            let answer = server.request(method, params.as_deref());
            print::answer(answer, job.json)
        }
        Action::Script(steps) => script::run(server, steps),
    }
}
