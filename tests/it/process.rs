//! What the tests with real processes share: the helper program in its roles, hosts, and `/proc`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use landline::{ChildSpec, Connection, Options};
use serde_json::Value;

use crate::support::guarded;

/// Where the library's own limits are a minute, this is "at once" on the slowest machine.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(15);

/// The helper program.
pub(crate) const PEER: &str = env!("CARGO_BIN_EXE_landline-peer");

/// The helper program in a role.
pub(crate) fn peer<A: AsRef<OsStr>>(role: &str, args: impl IntoIterator<Item = A>) -> ChildSpec {
    let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
    ChildSpec::new(PEER)
        .unwrap()
        .with_arg(role)
        .unwrap()
        .with_args(args)
        .unwrap()
}

/// A connection to a server that does what its calls say.
pub(crate) fn serve(options: &Options) -> Connection {
    options.spawn(&peer::<&str>("serve", [])).unwrap()
}

/// Runs the helper program as a host and gives what it printed, having seen that it printed nothing
/// else and ended well.
pub(crate) fn host<A: AsRef<OsStr>>(role: &str, args: impl IntoIterator<Item = A>) -> Value {
    let mut command = peer(role, args).to_command();
    command.stdin(Stdio::null());
    let said = output(command);
    assert_eq!(
        String::from_utf8_lossy(&said.stderr),
        "",
        "a library prints nothing"
    );
    only_word(&said)
}

/// The one line that a host printed.
pub(crate) fn only_word(said: &Output) -> Value {
    assert!(said.status.success(), "{}: {said:?}", said.status);
    serde_json::from_slice(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// Runs a command to its end.
pub(crate) fn output(mut command: Command) -> Output {
    struct Guard(u32);
    impl Drop for Guard {
        fn drop(&mut self) {
            if std::thread::panicking() {
                send_signal(self.0, libc::SIGKILL);
            }
        }
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let _guard = Guard(child.id());
    guarded(move || child.wait_with_output().unwrap())
}

/// Whether a process lives: an orphan that has ended may wait for its reaper.
pub(crate) fn alive(pid: u32) -> bool {
    // The state stands behind the name, which is in parentheses and may hold any others.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('Z')
    })
}

/// Sends a signal to one process, which is a child of this test or of that child.
#[allow(unsafe_code, reason = "plain numbers in, a number out")]
pub(crate) fn send_signal(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).unwrap();
    assert!(pid > 1);
    unsafe { libc::kill(pid, signal) };
}

/// A directory of one test, removed when it is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("landline-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        // As the kernel will call it.
        Scratch(dir.canonicalize().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Has the command set this umask when it starts, as an embedder might.
#[allow(unsafe_code, reason = "umask is allowed between fork and exec")]
pub(crate) fn with_mask(command: &mut Command, mask: libc::mode_t) {
    use std::os::unix::process::CommandExt;
    unsafe {
        command.pre_exec(move || {
            libc::umask(mask);
            Ok(())
        })
    };
}
