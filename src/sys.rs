//! The few C library calls that std lacks: observing an exit without reaping it, signalling a
//! process group, and masking SIGPIPE in one thread.
//!
//! This is the only file with unsafe code. The structures of the C library are opaque buffers here,
//! larger than any system's real ones; the single field that is read, `si_signo`, comes first in
//! `siginfo_t` on every Unix. The invariant: no call ever signals pid 0, pid 1 or a negative pid
//! that would mean "everyone".
#![allow(
    unsafe_code,
    reason = "std offers none of these calls; each block says why it is sound"
)]

use std::ffi::{c_int, c_uint};
use std::io;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("landline starts and ends processes on Linux and macOS only; Windows is planned");

/// The signals that the closing ladder sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Term,
    Kill,
}

/// What is known of a child that this process started and has not reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Observed {
    Running,
    /// It ended and is a zombie: its pid and its group are still its own.
    Exited,
    /// Somebody else reaped it, or the host ignores SIGCHLD: its pid may be anyone's by now.
    Gone,
}

/// Looks whether a child has ended and leaves its status to be collected. With `block` it waits,
/// without limit, until there is something other than [`Observed::Running`] to say.
pub(crate) fn sight(pid: u32, block: bool) -> Observed {
    let flags = WEXITED | WNOWAIT | if block { 0 } else { WNOHANG };
    loop {
        let mut info = Opaque([0; 256]);
        // SAFETY: `info` is valid, aligned and larger than `siginfo_t`; the call keeps no pointer.
        let done = unsafe { waitid(P_PID, pid, &mut info, flags) };
        if done == 0 {
            // With WNOHANG and nothing to tell, the signal number stays zero.
            let signo = c_int::from_ne_bytes([info.0[0], info.0[1], info.0[2], info.0[3]]);
            return if signo == 0 {
                Observed::Running
            } else {
                Observed::Exited
            };
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Observed::Gone;
        }
    }
}

/// Sends a signal to the process group that a child leads, or to the child alone where it leads
/// none. The caller must hold the child unreaped, so that neither number can be someone else's.
pub(crate) fn signal_tree(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = match i32::try_from(pid) {
        Ok(pid) if pid > 1 => pid,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let number = match signal {
        Signal::Term => SIGTERM,
        Signal::Kill => SIGKILL,
    };
    // A group with the child's number can only be one that the child leads, whoever made it a
    // leader: this library, or a `setsid` of the caller's own. SAFETY: plain numbers in, a number
    // out.
    if unsafe { kill(-pid, number) } == 0 || unsafe { kill(pid, number) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// Blocks SIGPIPE in the calling thread, so that a write to a closed pipe is an error there even in
/// a host that has set SIGPIPE back to its default. The mask is the thread's own: the host keeps
/// its handler.
pub(crate) fn block_sigpipe() {
    let mut set = Opaque([0; 256]);
    // SAFETY: `set` is valid, aligned and larger than `sigset_t`; a null old set is allowed.
    unsafe {
        sigemptyset(&mut set);
        sigaddset(&mut set, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// Stands for `siginfo_t` (128 bytes on both systems) and `sigset_t` (at most 128).
#[repr(C, align(16))]
struct Opaque([u8; 256]);

// Linux and macOS number these alike.
const SIGKILL: c_int = 9;
const SIGPIPE: c_int = 13;
const SIGTERM: c_int = 15;
const P_PID: c_uint = 1;
const WNOHANG: c_int = 1;
const WEXITED: c_int = 4;

// These they number apart; three old processors under Linux follow the BSD value of SIG_BLOCK.
const WNOWAIT: c_int = if cfg!(target_os = "macos") {
    0x20
} else {
    0x0100_0000
};
const SIG_BLOCK: c_int = if cfg!(any(
    target_os = "macos",
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "sparc64"
)) {
    1
} else {
    0
};

unsafe extern "C" {
    fn kill(pid: i32, signal: c_int) -> c_int;
    fn waitid(kind: c_uint, id: u32, info: *mut Opaque, flags: c_int) -> c_int;
    fn sigemptyset(set: *mut Opaque) -> c_int;
    fn sigaddset(set: *mut Opaque, signal: c_int) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const Opaque, old: *mut Opaque) -> c_int;
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may unwrap")]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn pids_that_mean_everyone_are_never_signalled() {
        for pid in [0, 1, u32::MAX, i32::MAX as u32 + 1] {
            let refused = signal_tree(pid, Signal::Kill).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "pid {pid}");
        }
    }

    #[test]
    fn an_exit_is_seen_and_left_for_the_reaper() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(sight(child.id(), false), Observed::Running);
        drop(child.stdin.take());
        assert_eq!(sight(child.id(), true), Observed::Exited);
        assert_eq!(sight(child.id(), false), Observed::Exited);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(sight(child.id(), false), Observed::Gone);
    }
}
