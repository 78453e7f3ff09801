//! A running process tree: its pipes, the tail of its stderr, its exit status, and its end.
//!
//! Takes a `std::process::Command` and gives three pipes and a [`Child`]. Knows processes and
//! nothing of JSON. The invariant: an exit is observed without reaping; every signal is sent under
//! one lock while the leader is unreaped; reaping is the last act, so no signal can reach a
//! stranger with the same pid.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::quote::{clean_bytes, whole_words};
use crate::sync::{after, lock, survive, wait_until};
use crate::sys::{Observed, Signal, sight, signal_tree};

/// Says which process group the child runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ProcessGroup {
    /// The child leads a group of its own: closing reaches all that it started, and a terminal's
    /// Ctrl-C does not reach it. The default.
    #[default]
    Own,
    /// The child stays in the caller's group and gets the terminal's Ctrl-C; closing signals the
    /// child alone. Also for a command that makes its own session with `setsid`, whose group is
    /// then signalled.
    Inherit,
}

/// Says what becomes of the child's stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Stderr {
    /// It is drained into a bounded tail that errors quote, and to the line callback if there is
    /// one. The default.
    #[default]
    Capture,
    /// It goes where the caller's own stderr goes.
    Inherit,
    /// It goes nowhere.
    Discard,
}

/// Tells how a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It ended and its status was taken by someone else: the host ignores SIGCHLD or reaps every
    /// child.
    Unknown,
}

impl Exit {
    /// Tells whether the process exited with code 0.
    pub const fn success(self) -> bool {
        matches!(self, Exit::Code(0))
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (_, Some(signal)) => Exit::Signal(signal),
            _ => Exit::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
            Exit::Unknown => f.write_str("status unknown"),
        }
    }
}

/// Names the step of the closing ladder after which the process was gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// It had ended before closing began.
    AlreadyEnded,
    /// It ended in the wait after the close of its stdin: the way every well-behaved server ends.
    /// The stdin of one that reads nothing is closed once it reads what is still in the pipe.
    StdinClosed,
    /// It ended after SIGTERM.
    Terminated,
    /// It ended after SIGKILL, or was not seen to end even then.
    Killed,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::AlreadyEnded => "already ended",
            Step::StdinClosed => "stdin closed",
            Step::Terminated => "SIGTERM",
            Step::Killed => "SIGKILL",
        })
    }
}

/// The one way in which starting can fail: the process did not start, or was ended again at once.
///
/// Every variant carries the operating system's error as its source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program, or the interpreter that its first line names is missing.
    #[error("cannot start {}: program not found", Path::new(program).display())]
    ProgramNotFound {
        /// The program as it was looked for: a relative path is made absolute.
        program: OsString,
        /// The operating system's error.
        source: io::Error,
    },
    /// The directory to run in does not exist or is not a directory.
    #[error("cannot start {} in {}: no such directory", Path::new(program).display(), dir.display())]
    DirectoryMissing {
        /// The program as it was looked for: a relative path is made absolute.
        program: OsString,
        /// The directory as it was given.
        dir: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The program may not be executed (no permission bit, a directory), or its directory not
    /// entered.
    #[error("cannot start {}: permission denied", Path::new(program).display())]
    PermissionDenied {
        /// The program as it was looked for: a relative path is made absolute.
        program: OsString,
        /// The operating system's error.
        source: io::Error,
    },
    /// The system has no process, thread, descriptor or memory to give. A thread refused after the
    /// child had started is this too; the child was ended again.
    #[error("cannot start {}: the system lacks resources", Path::new(program).display())]
    NoResources {
        /// The program as it was looked for: a relative path is made absolute.
        program: OsString,
        /// The operating system's error.
        source: io::Error,
    },
    /// Anything else, a file that is no program included.
    #[error("cannot start {}", Path::new(program).display())]
    Other {
        /// The program as it was looked for: a relative path is made absolute.
        program: OsString,
        /// The operating system's error.
        source: io::Error,
    },
}

impl SpawnError {
    /// Sorts an error of `Command::spawn` by what is at fault. The errno alone does not say: a
    /// missing directory and a missing program are both ENOENT, so the directory is looked at.
    fn new(command: &Command, source: io::Error) -> Self {
        let program = command.get_program().to_owned();
        if let Some(dir) = command.get_current_dir() {
            let at_fault = matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            );
            if at_fault && !dir.is_dir() {
                return SpawnError::DirectoryMissing {
                    program,
                    dir: dir.to_owned(),
                    source,
                };
            }
        }
        match source.kind() {
            io::ErrorKind::NotFound => SpawnError::ProgramNotFound { program, source },
            io::ErrorKind::PermissionDenied => SpawnError::PermissionDenied { program, source },
            _ if is_shortage(&source) => SpawnError::NoResources { program, source },
            _ => SpawnError::Other { program, source },
        }
    }

    /// The error for a thread that the system refused after the child had started.
    pub(crate) fn thread_refused(program: OsString, source: io::Error) -> Self {
        SpawnError::NoResources { program, source }
    }
}

/// The parent's ends of the child's pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: Option<ChildStderr>,
}

/// How long each step of the closing ladder waits. `Duration::MAX` waits for ever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    pub(crate) after_stdin: Duration,
    pub(crate) after_term: Duration,
    pub(crate) after_kill: Duration,
    /// Once the process is gone, for the threads that own its pipes.
    pub(crate) for_threads: Duration,
}

/// A process tree that this one started. Dropping it kills what still runs and reaps it.
#[derive(Debug)]
pub(crate) struct Child {
    pid: u32,
    /// The highest rung of the closing ladder that was taken. SIGTERM is sent once, however many
    /// closers come to that step: many programs take a second one for a demand to skip their
    /// cleaning up.
    taken: AtomicU8,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug)]
enum State {
    /// Unreaped: its pid and its group's number cannot be anyone else's, so both may be signalled.
    Unreaped(std::process::Child),
    /// Reaped, by us or by the host. Entered once, under the lock; nothing is signalled from here
    /// on.
    Ended(Exit),
}

impl Child {
    /// Starts the command with pipes on its standard streams.
    pub(crate) fn spawn(
        command: &mut Command,
        group: ProcessGroup,
        stderr: Stderr,
    ) -> Result<(Self, Pipes), SpawnError> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match stderr {
                Stderr::Capture => Stdio::piped(),
                Stderr::Inherit => Stdio::inherit(),
                Stderr::Discard => Stdio::null(),
            });
        if group == ProcessGroup::Own {
            command.process_group(0);
        }
        // std asserts that it can reap a child whose exec failed, which is not so in a host that
        // ignores SIGCHLD and gives the command a uid or a `pre_exec`. That is a failed start and
        // no panic of ours.
        let spawned = survive(|| command.spawn()).unwrap_or_else(|| {
            Err(io::Error::other(
                "the exec failed and the host reaps children itself",
            ))
        });
        let mut child = spawned.map_err(|source| SpawnError::new(command, source))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            let source = io::Error::other("a pipe that was asked for is missing");
            return Err(SpawnError::new(command, source));
        };
        let pipes = Pipes {
            stdin,
            stdout,
            stderr: child.stderr.take(),
        };
        let child = Child {
            pid: child.id(),
            taken: AtomicU8::new(0),
            state: Mutex::new(State::Unreaped(child)),
            ended: Condvar::new(),
        };
        Ok((child, pipes))
    }

    /// The process id of the leader; after its end it may be someone else's.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Looks, without blocking, whether the leader has ended. At the first sight of its end the
    /// rest of its group is killed and the leader reaped.
    pub(crate) fn look(&self) -> Option<Exit> {
        self.settle(&mut lock(&self.state))
    }

    /// Waits, without limit and without holding the lock, until the leader has ended.
    pub(crate) fn wait(&self) {
        if self.look().is_none() {
            // `Exited` and `Gone` are told apart again under the lock.
            sight(self.pid, true);
            self.look();
        }
    }

    /// Waits for the end until the given time; `None` waits for ever.
    pub(crate) fn wait_until(&self, until: Option<Instant>) -> Option<Exit> {
        let mut pause = FIRST_LOOK;
        let mut state = lock(&self.state);
        loop {
            if let Some(exit) = self.settle(&mut state) {
                return Some(exit);
            }
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return None;
            }
            // The reader thread usually sees the end first and wakes us; the looks in between are
            // for a process that ended while another one keeps its pipe open.
            let next = now + pause;
            state = wait_until(
                &self.ended,
                state,
                Some(until.map_or(next, |until| until.min(next))),
            );
            pause = (pause * 2).min(LAST_LOOK);
        }
    }

    /// Ends the tree by the closing ladder, the first rung of which, closing stdin, is the
    /// caller's. The step it tells is the highest that anyone took: a second closer may be further
    /// up.
    pub(crate) fn end(&self, waits: Waits) -> (Option<Exit>, Step) {
        let within = |wait| self.wait_until(after(Instant::now(), wait));
        let mut exit = within(waits.after_stdin);
        if exit.is_none() {
            // One rung higher, unless another closer is there already.
            if self.taken.fetch_max(TERM, Ordering::SeqCst) < TERM {
                self.signal(Signal::Term);
            }
            exit = within(waits.after_term);
        }
        if exit.is_none() {
            self.taken.store(KILL, Ordering::SeqCst);
            self.signal(Signal::Kill);
            exit = within(waits.after_kill);
        }
        let step = match self.taken.load(Ordering::SeqCst) {
            KILL => Step::Killed,
            TERM => Step::Terminated,
            _ => Step::StdinClosed,
        };
        (exit, step)
    }

    fn signal(&self, signal: Signal) {
        let mut state = lock(&self.state);
        if self.settle(&mut state).is_none() {
            // A refusal (a child that changed its user) shows as an exit that does not come.
            let _ = signal_tree(self.pid, signal);
        }
    }

    fn settle(&self, state: &mut State) -> Option<Exit> {
        let child = match state {
            State::Ended(exit) => return Some(*exit),
            State::Unreaped(child) => child,
        };
        let exit = match sight(self.pid, false) {
            Observed::Running => return None,
            Observed::Exited => {
                // What the leader leaves behind in its group goes now: after reaping, the group's
                // number may be someone else's. A group of nobody but the dead leader is no error.
                let _ = signal_tree(self.pid, Signal::Kill);
                child
                    .try_wait()
                    .ok()
                    .flatten()
                    .map_or(Exit::Unknown, Exit::from)
            }
            Observed::Gone => Exit::Unknown,
        };
        *state = State::Ended(exit);
        self.ended.notify_all();
        Some(exit)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        // A killed process is gone in milliseconds unless the kernel holds it; then it is left to
        // init.
        self.wait_until(after(Instant::now(), DROP_WAIT));
    }
}

/// The last bytes that the child wrote to stderr.
#[derive(Debug)]
pub(crate) struct Tail {
    state: Mutex<TailState>,
    ended: Condvar,
    limit: usize,
}

#[derive(Debug, Default)]
struct TailState {
    bytes: VecDeque<u8>,
    /// Whether the first byte stands inside a line whose beginning is gone.
    cut: bool,
    ended: bool,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Tail {
            state: Mutex::default(),
            ended: Condvar::new(),
            limit,
        }
    }

    /// Reads the stream to its end, keeps its tail, and hands each line, cleaned, to `on_line`.
    pub(crate) fn drain(&self, mut from: impl Read, mut on_line: Option<impl FnMut(String)>) {
        let mut chunk = [0; CHUNK];
        let mut line = Vec::new();
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => &chunk[..read],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            self.push(read);
            let Some(on_line) = &mut on_line else {
                continue;
            };
            for piece in read.split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(piece);
                // Text that never ends its line comes in pieces of the same bound as the tail's.
                if piece.ends_with(b"\n") || line.len() >= MAX_LINE {
                    on_line(clean_bytes(line.trim_ascii_end()));
                    line.clear();
                }
            }
        }
        if let Some(on_line) = on_line.as_mut().filter(|_| !line.is_empty()) {
            on_line(clean_bytes(line.trim_ascii_end()));
        }
        lock(&self.state).ended = true;
        self.ended.notify_all();
    }

    /// Waits until the stream has ended, so that the last words are in, or until the given time.
    pub(crate) fn wait_ended(&self, until: Instant) {
        let mut state = lock(&self.state);
        while !state.ended && Instant::now() < until {
            state = wait_until(&self.ended, state, Some(until));
        }
    }

    /// What was kept. A line whose beginning is gone is left out: what is left of it can be the end
    /// of a secret.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let state = lock(&self.state);
        let bytes: Vec<u8> = state.bytes.iter().copied().collect();
        if state.cut {
            whole_words(&bytes).to_vec()
        } else {
            bytes
        }
    }

    fn push(&self, bytes: &[u8]) {
        let (gone, kept) = bytes.split_at(bytes.len().saturating_sub(self.limit));
        let mut state = lock(&self.state);
        let excess = (state.bytes.len() + kept.len()).saturating_sub(self.limit);
        let last_gone = state.bytes.drain(..excess).next_back();
        if let Some(last) = gone.last().copied().or(last_gone) {
            state.cut = last != b'\n';
        }
        state.bytes.extend(kept);
    }
}

fn is_shortage(error: &io::Error) -> bool {
    // EAGAIN, ENFILE and EMFILE; the last two have no kind in std.
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory
    ) || matches!(error.raw_os_error(), Some(23 | 24))
}

// The rungs of the closing ladder that are signals.
const TERM: u8 = 1;
const KILL: u8 = 2;

// Looks at a child that is being closed: soon at first, since most end at once, and never a busy
// loop.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(20);

// How long a drop waits for a killed process: far more than a kill takes, and well under a second.
const DROP_WAIT: Duration = Duration::from_millis(250);

// One read of stderr, and the longest line that is handed on in one piece.
const CHUNK: usize = 8 << 10;
const MAX_LINE: usize = 64 << 10;
