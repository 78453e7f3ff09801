//! Against servers that others wrote.
//!
//! `LANDLINE_SERVERS` names the folder in which `.ci/run` installed them, at the versions whose
//! answers are compared here. Without it these tests pass with a message and have shown nothing.
#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

#[allow(
    dead_code,
    reason = "it belongs to the other tests, which use all of it"
)]
#[path = "../it/support.rs"]
mod support;

mod connection;
mod everything;
mod reference;
mod sdk;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::{env, fs};

use landline::mcp::{self, Client};
use landline::{ChildSpec, Connection, Exit, Step, Survived};
use serde_core::Serialize;

use support::{HANG, guarded};

/// Runs a test with the folder of servers, under a guard, or says that it is skipped.
fn with_servers(test: impl FnOnce(&Path) + Send + 'static) {
    match env::var_os("LANDLINE_SERVERS") {
        Some(servers) => guarded(move || test(Path::new(&servers))),
        None => SAY_ONCE.call_once(|| {
            // Past the capture of the test harness, which hides what a test that passes prints.
            let skipped = "skipped all tests against real servers: run .ci/run, which installs \
                           them, or set LANDLINE_SERVERS to the target/servers that it made\n";
            io::stderr().write_all(skipped.as_bytes()).unwrap();
        }),
    }
}

/// Closes a server that has nothing to do, and that said nothing that had to be overlooked.
fn ends_well(server: &Connection) {
    exits(server);
    assert_eq!(server.survived(), Survived::default());
}

/// Closes a server, which exits by itself once its stdin ends.
fn exits(server: &Connection) {
    let ended = server.close();
    assert_eq!(ended.exit, Some(Exit::Code(0)));
    assert_eq!(ended.step, Step::StdinClosed);
}

/// An MCP client, as far as all tests agree on it.
fn client() -> mcp::Options {
    // A slow machine is not what is tested.
    let patient = landline::Options::new().close_waits(HANG, HANG);
    mcp::Options::new("landline-tests", "1")
        .transport(patient)
        .probe_timeout(HANG)
}

fn connect(options: &mcp::Options, spec: &ChildSpec) -> Client {
    match options.spawn(spec) {
        Ok(client) => client,
        Err(error) => panic!("{error}"),
    }
}

/// Calls a tool that does not fail, and gives its text.
fn text(server: &Client, tool: &str, arguments: impl Serialize) -> String {
    let result = server.call_tool(tool, arguments).unwrap();
    assert!(!result.is_error(), "{result:?}");
    result.all_text()
}

/// A server that npm installed.
fn npm(servers: &Path, name: &str) -> ChildSpec {
    ChildSpec::new(servers.join("node_modules/.bin").join(name)).unwrap()
}

/// A server that pip installed.
fn pip(servers: &Path, name: &str) -> ChildSpec {
    ChildSpec::new(servers.join("venv/bin").join(name)).unwrap()
}

/// The same server, started late: when two messages have been written to it. The shell reads no
/// further than them.
fn late(spec: &ChildSpec) -> ChildSpec {
    let script = r#"
        IFS= read -r first; IFS= read -r second
        { printf '%s\n' "$first" "$second"; cat; } | "$0" "$@"
    "#;
    let shell = ChildSpec::from_argv(["sh", "-c", script]).unwrap();
    let shell = shell.with_arg(spec.program()).unwrap();
    let shell = shell.with_args(spec.args()).unwrap();
    let env = spec.env().iter();
    env.fold(shell, |shell, (key, value)| {
        shell.with_env(key, value).unwrap()
    })
}

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It is there after an earlier run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    // As a server says it that follows links.
    folder.canonicalize().unwrap()
}

static SAY_ONCE: Once = Once::new();
