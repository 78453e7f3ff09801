//! The C library calls that make a process misbehave; std has none of them.
//!
//! They are declared by hand, since a program of the package cannot use what only its tests depend
//! on.
#![allow(
    unsafe_code,
    reason = "plain numbers in and out, except where a block says more"
)]

use std::ffi::{c_int, c_void};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(crate) const SIGKILL: c_int = 9;
pub(crate) const SIGPIPE: c_int = 13;
pub(crate) const SIGTERM: c_int = 15;
pub(crate) const SIGCHLD: c_int = if cfg!(target_os = "macos") { 20 } else { 17 };

pub(crate) fn ignore_signal(number: c_int) {
    unsafe { signal(number, SIG_IGN) };
}

/// Takes back what the Rust runtime or anyone else has set.
pub(crate) fn default_signal(number: c_int) {
    unsafe { signal(number, SIG_DFL) };
}

pub(crate) fn on_signal(number: c_int, handler: extern "C" fn(c_int)) {
    unsafe { signal(number, handler as *const () as usize) };
}

pub(crate) fn kill_self(number: c_int) {
    send_signal(std::process::id(), number);
}

pub(crate) fn send_signal(pid: u32, number: c_int) {
    unsafe { kill(i32::try_from(pid).unwrap(), number) };
}

/// Closes a standard stream for good.
pub(crate) fn close_fd(fd: c_int) {
    unsafe { close(fd) };
}

/// What a signal handler may do.
pub(crate) fn write_and_exit(fd: c_int, words: &[u8], code: c_int) {
    // SAFETY: both calls are allowed in a signal handler; the slice outlives the write.
    unsafe {
        write(fd, words.as_ptr().cast(), words.len());
        _exit(code);
    }
}

pub(crate) fn process_group() -> i32 {
    unsafe { getpgrp() }
}

pub(crate) fn user() -> u32 {
    unsafe { getuid() }
}

/// The umask, which can be read only by setting it.
pub(crate) fn file_mask() -> u32 {
    unsafe { umask(0) }
}

/// Has the command ignore SIGTERM, and lead a session of its own if asked.
pub(crate) fn detach(command: &mut Command, session: bool) {
    // SAFETY: both calls are allowed between fork and exec.
    unsafe {
        command.pre_exec(move || {
            signal(SIGTERM, SIG_IGN);
            if session && setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        })
    };
}

/// Waits for any child, as the host of a script language does; `None`: there is none.
pub(crate) fn reap_any(block: bool) -> Option<i32> {
    let mut status = 0;
    // SAFETY: the status is valid for the call.
    let pid = unsafe { waitpid(-1, &mut status, if block { 0 } else { WNOHANG }) };
    (pid >= 0).then_some(pid)
}

/// Limits how many bytes of addresses the process may have.
pub(crate) fn limit_addresses(bytes: u64) {
    let limit = Rlimit {
        now: bytes,
        most: bytes,
    };
    // SAFETY: the limit is valid for the call, and of the layout of `struct rlimit`.
    assert_eq!(unsafe { setrlimit(RLIMIT_AS, &limit) }, 0);
}

#[repr(C)]
struct Rlimit {
    now: u64,
    most: u64,
}

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const WNOHANG: c_int = 1;
const RLIMIT_AS: c_int = if cfg!(target_os = "macos") { 5 } else { 9 };

unsafe extern "C" {
    fn signal(number: c_int, handler: usize) -> usize;
    fn kill(pid: i32, number: c_int) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn write(fd: c_int, bytes: *const c_void, len: usize) -> isize;
    fn _exit(code: c_int) -> !;
    fn getpgrp() -> i32;
    fn getuid() -> u32;
    fn umask(mask: u32) -> u32;
    fn setsid() -> i32;
    fn waitpid(pid: i32, status: *mut c_int, flags: c_int) -> i32;
    fn setrlimit(what: c_int, limit: *const Rlimit) -> c_int;
}
