//! The child of the tests: `landline-peer ROLE [ARG...]`.
//!
//! `serve` is a server that does what its calls say, see `server.rs`; the other servers differ from
//! it in how they start or end; `mcp_legacy`, in `mcp.rs`, speaks MCP. The `host_` roles, in
//! `hosts.rs`, are the other side: programs that use the library where a test needs a whole process
//! of its own for that. A wrong use panics, which a test then sees.
#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

mod c;
mod hosts;
mod mcp;
mod server;

use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::process::exit;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use server::{Server, linger, receive, say, wait_for_file};

type Role = fn(&[OsString]);

const ROLES: &[(&str, Role)] = &[
    ("serve", serve),
    ("exits", exits),
    ("exits_reading", exits_reading),
    ("kills_itself", kills_itself),
    ("minds_sigterm", minds_sigterm),
    ("waits_for_sigterm", waits_for_sigterm),
    ("ignores_all", ignores_all),
    ("records", records),
    ("linger", |_| linger()),
    ("mcp_legacy", mcp::serve),
    ("host_rounds", hosts::rounds),
    ("host_strays", hosts::strays),
    ("host_failed_starts", hosts::failed_starts),
    ("host_idle", hosts::idle),
    ("host_starved", hosts::starved),
    ("host_sigpipe", hosts::sigpipe),
    ("host_sigchld_ignored", hosts::sigchld_ignored),
    ("host_sigchld_hook", hosts::sigchld_hook),
    ("host_reaper", hosts::reaper),
    ("host_killed", hosts::killed),
    ("host_stderr", hosts::stderr),
];

fn main() {
    let args: Vec<_> = env::args_os().skip(1).collect();
    let (name, args) = args.split_first().expect("a role");
    let role = ROLES.iter().find(|(role, _)| name == role);
    role.unwrap_or_else(|| panic!("no role {name:?}")).1(args);
}

/// Does what its calls say, until its input ends.
fn serve(_: &[OsString]) {
    Server::new().serve();
}

/// CODE WORDS: says them on stderr and exits without having read anything.
fn exits(args: &[OsString]) {
    say(args[1].to_str().unwrap());
    exit(number(&args[0]));
}

/// CODE WORDS: reads one message before it does the same.
fn exits_reading(args: &[OsString]) {
    receive().expect("a message");
    exits(args);
}

/// WORDS: says them and dies of SIGKILL.
fn kills_itself(args: &[OsString]) {
    say(args[0].to_str().unwrap());
    c::kill_self(c::SIGKILL);
}

/// FILE: serves; a SIGTERM is noted in the file and makes it exit with code 7.
fn minds_sigterm(args: &[OsString]) {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&args[0])
        .unwrap();
    NOTES.store(file.into_raw_fd(), Ordering::SeqCst);
    c::on_signal(c::SIGTERM, note_sigterm);
    Server::new().serve();
}

/// FILE: the same, and the end of its input does not end it.
fn waits_for_sigterm(args: &[OsString]) {
    minds_sigterm(args);
    linger();
}

/// Serves, and neither the end of its input nor SIGTERM ends it.
fn ignores_all(_: &[OsString]) {
    c::ignore_signal(c::SIGTERM);
    Server::new().serve();
    linger();
}

/// FILE GATE: when there is a file named GATE, writes all its input into FILE, then the word `end`.
fn records(args: &[OsString]) {
    wait_for_file(Path::new(&args[1]));
    let mut read = Vec::new();
    io::stdin().lock().read_to_end(&mut read).unwrap();
    read.extend_from_slice(b"end");
    File::create(&args[0]).unwrap().write_all(&read).unwrap();
    // Whoever ends it too early is seen to do so.
    thread::sleep(Duration::from_millis(50));
}

fn number(arg: &OsString) -> i32 {
    arg.to_str().unwrap().parse().unwrap()
}

/// The file in which a signal handler, which may do next to nothing, notes the signal.
static NOTES: AtomicI32 = AtomicI32::new(-1);

extern "C" fn note_sigterm(_: i32) {
    c::write_and_exit(NOTES.load(Ordering::SeqCst), b"SIGTERM\n", 7);
}
