//! What to run: a program, its arguments, its environment and its directory.
//!
//! [`ChildSpec`] takes operating-system strings and gives a [`Command`] that holds them and nothing
//! else. There is no shell line anywhere: nothing is split, quoted or expanded, so what was said is
//! what the child gets, byte for byte.
//!
//! The invariant: a string that the operating system cannot carry is refused when it is added, by
//! the name of its field, so that a spec in hand has no text in its program, arguments or
//! environment that a spawn would refuse.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{self, Path, PathBuf};
use std::process::Command;

/// Describes a child process: the program, its arguments, its environment and its directory.
///
/// A spec is a value. Building one starts nothing and looks at no file; it can be kept, compared,
/// cloned, and spawned as often as wanted. All text is [`OsString`], because a path or an argument
/// need not be UTF-8, and none of it passes through a shell.
///
/// The environment of this process is inherited unless
/// [`without_inherited_env`](Self::without_inherited_env) says otherwise, since most servers are
/// found and configured through it.
///
/// `Debug` shows the names of the environment variables and never their values, which are where
/// secrets live. It does show the arguments, as every process listing on the machine does: pass a
/// secret in the environment.
///
/// # Examples
///
/// ```
/// use landline::ChildSpec;
///
/// let spec = ChildSpec::new("my-server")?
///     .with_arg("--stdio")?
///     .with_env("MY_SERVER_TOKEN", "s3cret")?
///     .with_current_dir("/srv/project");
///
/// assert_eq!(spec.program(), "my-server");
/// assert!(!format!("{spec:?}").contains("s3cret"));
/// # Ok::<(), landline::ChildSpecError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ChildSpec {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    current_dir: Option<PathBuf>,
    inherits_env: bool,
}

/// Says why a [`ChildSpec`] could not be built: what was given is nothing that an operating system
/// can hand to a program.
///
/// The message names the field and never quotes the text, which may be a secret.
///
/// # Examples
///
/// ```
/// use landline::{ChildSpec, ChildSpecError};
///
/// let spec = ChildSpec::new("my-server")?;
/// let refused = spec.with_arg("half\0an argument");
///
/// assert_eq!(
///     refused,
///     Err(ChildSpecError::Unrepresentable { what: "an argument" })
/// );
/// # Ok::<(), ChildSpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChildSpecError {
    /// The argument vector had no element, so not even a program.
    #[error("the argument vector is empty: its first element is the program")]
    EmptyArgv,
    /// The program's name was there and had no characters.
    #[error("the program name is empty")]
    EmptyProgram,
    /// The name of an environment variable had no characters.
    #[error("an environment key is empty")]
    EmptyEnvKey,
    /// The name of an environment variable held a `=`, which ends the name in the form that the
    /// child receives.
    #[error("an environment key contains `=`")]
    EnvKeyContainsSeparator,
    /// A text held a NUL, which ends a string in the form that the child receives.
    #[error("{what} contains a NUL")]
    Unrepresentable {
        /// The field, as a phrase: `"the program name"`, `"an argument"`, `"an environment key"` or
        /// `"an environment value"`.
        what: &'static str,
    },
}

impl ChildSpec {
    /// Creates a spec that runs `program` without arguments, with the environment and in the
    /// directory of this process.
    ///
    /// A name without a path separator is searched for in `PATH` when the child is spawned. A
    /// relative path with one, such as `./server`, is taken by
    /// [`Connection::spawn`](crate::Connection::spawn) to start at the directory of this process,
    /// whatever directory the child is given.
    ///
    /// # Errors
    ///
    /// - [`EmptyProgram`](ChildSpecError::EmptyProgram): `program` is empty.
    /// - [`Unrepresentable`](ChildSpecError::Unrepresentable): it contains a NUL.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::ChildSpec;
    ///
    /// let spec = ChildSpec::new("my-server")?;
    ///
    /// assert_eq!(spec.program(), "my-server");
    /// assert!(spec.args().is_empty());
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn new(program: impl Into<OsString>) -> Result<Self, ChildSpecError> {
        Self::with_program(program.into())
    }

    /// Creates a spec from an argument vector: the program first, its arguments after it.
    ///
    /// This is the form in which a configuration file or the rest of a command line names a server.
    /// It is [`new`](Self::new) and [`with_args`](Self::with_args) in one.
    ///
    /// # Errors
    ///
    /// - [`EmptyArgv`](ChildSpecError::EmptyArgv): `argv` has no element.
    /// - [`EmptyProgram`](ChildSpecError::EmptyProgram): its first element is empty.
    /// - [`Unrepresentable`](ChildSpecError::Unrepresentable): an element contains a NUL.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::ChildSpec;
    ///
    /// let spec = ChildSpec::from_argv(["my-server", "--root", "/srv/my project"])?;
    ///
    /// assert_eq!(spec.program(), "my-server");
    /// assert_eq!(spec.args(), ["--root", "/srv/my project"]);
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn from_argv(
        argv: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, ChildSpecError> {
        let mut argv = argv.into_iter();
        let program = argv.next().ok_or(ChildSpecError::EmptyArgv)?;
        Self::with_program(program.into())?.with_args(argv)
    }

    /// Appends one argument, which may be empty.
    ///
    /// # Errors
    ///
    /// - [`Unrepresentable`](ChildSpecError::Unrepresentable): `arg` contains a NUL.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::ChildSpec;
    ///
    /// let spec = ChildSpec::new("my-server")?.with_arg("--title")?.with_arg("two words")?;
    ///
    /// assert_eq!(spec.args(), ["--title", "two words"]);
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn with_arg(mut self, arg: impl Into<OsString>) -> Result<Self, ChildSpecError> {
        self.args.push(representable(arg.into(), "an argument")?);
        Ok(self)
    }

    /// Appends several arguments in their order, all of them or, with an error, none.
    ///
    /// # Errors
    ///
    /// - [`Unrepresentable`](ChildSpecError::Unrepresentable): one of them contains a NUL.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::ChildSpec;
    ///
    /// let spec = ChildSpec::new("my-server")?.with_args(["--log", "debug"])?;
    ///
    /// assert_eq!(spec.args(), ["--log", "debug"]);
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn with_args(
        self,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, ChildSpecError> {
        // All or nothing needs no buffer: an error drops the spec that was consumed, so nobody can
        // see one with half of the arguments.
        args.into_iter().try_fold(self, Self::with_arg)
    }

    /// Sets an environment variable of the child, on top of what it inherits.
    ///
    /// A second value for the same key replaces the first. The value may be empty.
    ///
    /// # Errors
    ///
    /// - [`EmptyEnvKey`](ChildSpecError::EmptyEnvKey): `key` is empty.
    /// - [`EnvKeyContainsSeparator`](ChildSpecError::EnvKeyContainsSeparator): `key` contains a
    ///   `=`.
    /// - [`Unrepresentable`](ChildSpecError::Unrepresentable): `key` or `value` contains a NUL.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::ChildSpec;
    ///
    /// let spec = ChildSpec::new("my-server")?
    ///     .with_env("LOG", "info")?
    ///     .with_env("LOG", "debug")?;
    ///
    /// assert_eq!(spec.env(), [("LOG".into(), "debug".into())]);
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn with_env(
        self,
        key: impl Into<OsString>,
        value: impl Into<OsString>,
    ) -> Result<Self, ChildSpecError> {
        self.with_env_entry(key.into(), value.into())
    }

    /// Sets the directory in which the child starts, instead of that of this process.
    ///
    /// Whether there is such a directory is found out by the spawn: it may be made after the spec.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::ChildSpec;
    /// use std::path::Path;
    ///
    /// let spec = ChildSpec::new("my-server")?.with_current_dir("/srv/project");
    ///
    /// assert_eq!(spec.current_dir(), Some(Path::new("/srv/project")));
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    #[must_use]
    pub fn with_current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    /// Starts the child with the variables of [`with_env`](Self::with_env) and no others.
    ///
    /// This takes `PATH` and `HOME` away too: a program named without a path separator may not be
    /// found, and a server that starts helpers may fail.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::ChildSpec;
    ///
    /// let spec = ChildSpec::new("/usr/bin/my-server")?
    ///     .without_inherited_env()
    ///     .with_env("PATH", "/usr/bin:/bin")?;
    ///
    /// assert!(!spec.inherits_env());
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    #[must_use]
    pub const fn without_inherited_env(mut self) -> Self {
        self.inherits_env = false;
        self
    }

    /// Returns the program, as it was given.
    ///
    /// # Examples
    ///
    /// ```
    /// let spec = landline::ChildSpec::new("./my-server")?;
    ///
    /// assert_eq!(spec.program(), "./my-server");
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Returns the arguments in their order, without the program.
    ///
    /// # Examples
    ///
    /// ```
    /// let spec = landline::ChildSpec::from_argv(["my-server", "--stdio"])?;
    ///
    /// assert_eq!(spec.args(), ["--stdio"]);
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn args(&self) -> &[OsString] {
        &self.args
    }

    /// Returns the variables that were set, each key once, and nothing of what is inherited.
    ///
    /// The values are real. What prints them is the caller's doing.
    ///
    /// # Examples
    ///
    /// ```
    /// let spec = landline::ChildSpec::new("my-server")?.with_env("LOG", "info")?;
    ///
    /// assert_eq!(spec.env(), [("LOG".into(), "info".into())]);
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn env(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    /// Returns the directory in which the child starts, or `None` when it is that of this process.
    ///
    /// # Examples
    ///
    /// ```
    /// let spec = landline::ChildSpec::new("my-server")?;
    ///
    /// assert_eq!(spec.current_dir(), None);
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn current_dir(&self) -> Option<&Path> {
        self.current_dir.as_deref()
    }

    /// Returns whether the child also gets the environment of this process.
    ///
    /// # Examples
    ///
    /// ```
    /// let spec = landline::ChildSpec::new("my-server")?;
    ///
    /// assert!(spec.inherits_env());
    /// assert!(!spec.without_inherited_env().inherits_env());
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub const fn inherits_env(&self) -> bool {
        self.inherits_env
    }

    /// Builds a [`Command`] with the program, the arguments, the environment and the directory, and
    /// nothing else.
    ///
    /// Pipes, the process group and the ending of the child belong to the spawn. An embedder that
    /// needs more than a spec can say, such as a user id or a umask, adds it to this command and
    /// spawns that.
    ///
    /// The program is handed over as it was given: where a relative path starts when there is a
    /// directory too differs between platforms.
    ///
    /// `Command` prints environment values in its own `Debug`; the spec does not.
    ///
    /// # Examples
    ///
    /// ```
    /// use landline::ChildSpec;
    ///
    /// let command = ChildSpec::from_argv(["my-server", "--stdio"])?.to_command();
    ///
    /// assert_eq!(command.get_program(), "my-server");
    /// assert!(command.get_args().eq(["--stdio"]));
    /// # Ok::<(), landline::ChildSpecError>(())
    /// ```
    pub fn to_command(&self) -> Command {
        self.command_running(&self.program)
    }

    /// Builds the same [`Command`], with a relative path to the program made absolute against the
    /// directory of this process.
    ///
    /// The system would look for it from the child's directory on one platform and from ours on
    /// another, so one spec could mean two programs. A name without a separator is left alone: it
    /// is searched for in `PATH`.
    ///
    /// # Errors
    ///
    /// What the operating system says when the directory of this process cannot be found out,
    /// because it was removed for example.
    pub(crate) fn to_resolved_command(&self) -> io::Result<Command> {
        if contains_separator(&self.program) {
            // Lexical, unlike `canonicalize`: a symbolic link keeps its name, which is how a
            // multi-call program knows what it is to do.
            let program = path::absolute(&self.program)?;
            Ok(self.command_running(program.as_os_str()))
        } else {
            Ok(self.to_command())
        }
    }

    fn with_program(program: OsString) -> Result<Self, ChildSpecError> {
        if program.is_empty() {
            return Err(ChildSpecError::EmptyProgram);
        }
        Ok(Self {
            program: representable(program, "the program name")?,
            args: Vec::new(),
            env: Vec::new(),
            current_dir: None,
            inherits_env: true,
        })
    }

    fn with_env_entry(mut self, key: OsString, value: OsString) -> Result<Self, ChildSpecError> {
        if key.is_empty() {
            return Err(ChildSpecError::EmptyEnvKey);
        }
        if key.as_encoded_bytes().contains(&b'=') {
            return Err(ChildSpecError::EnvKeyContainsSeparator);
        }
        let key = representable(key, "an environment key")?;
        let value = representable(value, "an environment value")?;
        match self.env.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.env.push((key, value)),
        }
        Ok(self)
    }

    fn command_running(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.args(&self.args);
        if !self.inherits_env {
            // Before the variables: clearing forgets those set so far as well.
            command.env_clear();
        }
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        command
    }
}

/// Shows the names of the environment variables, never their values.
impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.env.iter().map(|(key, _)| key).collect();
        f.debug_struct("ChildSpec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("current_dir", &self.current_dir)
            .field("inherits_env", &self.inherits_env)
            .finish()
    }
}

/// Refuses a NUL. The encoded bytes hold one exactly where the text does, on every platform.
fn representable(text: OsString, what: &'static str) -> Result<OsString, ChildSpecError> {
    if text.as_encoded_bytes().contains(&0) {
        return Err(ChildSpecError::Unrepresentable { what });
    }
    Ok(text)
}

fn contains_separator(program: &OsStr) -> bool {
    program
        .as_encoded_bytes()
        .iter()
        .any(|&byte| path::is_separator(char::from(byte)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may unwrap")]
mod tests;
