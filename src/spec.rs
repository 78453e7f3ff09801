//! What to run: a program, its arguments, its environment and its directory.
//!
//! [`ChildSpec`] takes operating-system strings and gives a
//! [`Command`] that holds them and nothing else. There is no shell line
//! anywhere: nothing is split, quoted or expanded, so what was said is what the
//! child gets, byte for byte.
//!
//! The invariant: a string that the operating system cannot carry is refused
//! when it is added, by the name of its field, so that a spec in hand has no
//! text in its program, arguments or environment that a spawn would refuse.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{self, Path, PathBuf};
use std::process::Command;

/// Describes a child process: the program, its arguments, its environment and
/// its directory.
///
/// A spec is a value. Building one starts nothing and looks at no file; it can
/// be kept, compared, cloned, and spawned as often as wanted. All text is
/// [`OsString`], because a path or an argument need not be UTF-8, and none of
/// it passes through a shell.
///
/// The environment of this process is inherited unless
/// [`without_inherited_env`](Self::without_inherited_env) says otherwise, since
/// most servers are found and configured through it.
///
/// `Debug` shows the names of the environment variables and never their values,
/// which are where secrets live. It does show the arguments, as every process
/// listing on the machine does: pass a secret in the environment.
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

/// Says why a [`ChildSpec`] could not be built: what was given is nothing that
/// an operating system can hand to a program.
///
/// The message names the field and never quotes the text, which may be a
/// secret.
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
    /// The name of an environment variable held a `=`, which ends the name in
    /// the form that the child receives.
    #[error("an environment key contains `=`")]
    EnvKeyContainsSeparator,
    /// A text held a NUL, which ends a string in the form that the child
    /// receives.
    #[error("{what} contains a NUL")]
    Unrepresentable {
        /// The field, as a phrase: `"the program name"`, `"an argument"`,
        /// `"an environment key"` or `"an environment value"`.
        what: &'static str,
    },
}

impl ChildSpec {
    /// Creates a spec that runs `program` without arguments, with the
    /// environment and in the directory of this process.
    ///
    /// A name without a path separator is searched for in `PATH` when the child
    /// is spawned. A relative path with one, such as `./server`, is taken by
    /// `Connection::spawn` to start at the directory of this process, whatever
    /// directory the child is given.
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

    /// Creates a spec from an argument vector: the program first, its arguments
    /// after it.
    ///
    /// This is the form in which a configuration file or the rest of a command
    /// line names a server. It is [`new`](Self::new) and
    /// [`with_args`](Self::with_args) in one.
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

    /// Appends several arguments in their order, all of them or, with an error,
    /// none.
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
        // All or nothing needs no buffer: an error drops the spec that was
        // consumed, so nobody can see one with half of the arguments.
        args.into_iter().try_fold(self, Self::with_arg)
    }

    /// Sets an environment variable of the child, on top of what it inherits.
    ///
    /// A second value for the same key replaces the first. The value may be
    /// empty.
    ///
    /// # Errors
    ///
    /// - [`EmptyEnvKey`](ChildSpecError::EmptyEnvKey): `key` is empty.
    /// - [`EnvKeyContainsSeparator`](ChildSpecError::EnvKeyContainsSeparator): `key` contains a `=`.
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

    /// Sets the directory in which the child starts, instead of that of this
    /// process.
    ///
    /// Whether there is such a directory is found out by the spawn: it may be
    /// made after the spec.
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

    /// Starts the child with the variables of [`with_env`](Self::with_env) and
    /// no others.
    ///
    /// This takes `PATH` and `HOME` away too: a program named without a path
    /// separator may not be found, and a server that starts helpers may fail.
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

    /// Returns the variables that were set, each key once, and nothing of what
    /// is inherited.
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

    /// Returns the directory in which the child starts, or `None` when it is
    /// that of this process.
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

    /// Builds a [`Command`] with the program, the arguments, the environment
    /// and the directory, and nothing else.
    ///
    /// Pipes, the process group and the ending of the child belong to the
    /// spawn. An embedder that needs more than a spec can say, such as a user
    /// id or a umask, adds it to this command and spawns that.
    ///
    /// The program is handed over as it was given: where a relative path starts
    /// when there is a directory too differs between platforms.
    ///
    /// `Command` prints environment values in its own `Debug`; the spec does
    /// not.
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

    /// Builds the same [`Command`], with a relative path to the program made
    /// absolute against the directory of this process.
    ///
    /// The system would look for it from the child's directory on one platform
    /// and from ours on another, so one spec could mean two programs. A name
    /// without a separator is left alone: it is searched for in `PATH`.
    ///
    /// # Errors
    ///
    /// What the operating system says when the directory of this process cannot
    /// be found out, because it was removed for example.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the spawn that calls it is a module of its own")
    )]
    pub(crate) fn to_resolved_command(&self) -> io::Result<Command> {
        if contains_separator(&self.program) {
            // Lexical, unlike `canonicalize`: a symbolic link keeps its name,
            // which is how a multi-call program knows what it is to do.
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

/// Refuses a NUL. The encoded bytes hold one exactly where the text does, on
/// every platform.
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
mod tests {
    use super::*;
    use std::env;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    /// Latin-1 text, which is no UTF-8.
    const NOT_UTF8: &[u8] = b"caf\xe9";

    fn not_utf8() -> OsString {
        OsString::from_vec(NOT_UTF8.to_vec())
    }

    fn spec() -> ChildSpec {
        ChildSpec::new("server").unwrap()
    }

    fn unrepresentable(what: &'static str) -> Result<ChildSpec, ChildSpecError> {
        Err(ChildSpecError::Unrepresentable { what })
    }

    fn args_of(command: &Command) -> Vec<&OsStr> {
        command.get_args().collect()
    }

    #[test]
    fn a_new_spec_is_the_program_and_what_is_inherited() {
        let spec = spec();
        assert_eq!(spec.program(), "server");
        assert!(spec.args().is_empty());
        assert!(spec.env().is_empty());
        assert_eq!(spec.current_dir(), None);
        assert!(spec.inherits_env());
    }

    #[test]
    fn an_empty_program_is_refused() {
        assert_eq!(ChildSpec::new(""), Err(ChildSpecError::EmptyProgram));
        assert_eq!(
            ChildSpec::from_argv(["", "--stdio"]),
            Err(ChildSpecError::EmptyProgram)
        );
    }

    #[test]
    fn a_nul_in_the_program_is_refused_wherever_it_stands() {
        for program in ["\0", "\0server", "ser\0ver", "server\0"] {
            assert_eq!(
                ChildSpec::new(program),
                unrepresentable("the program name"),
                "{program:?}"
            );
            assert_eq!(
                ChildSpec::from_argv([program]),
                unrepresentable("the program name"),
                "{program:?}"
            );
        }
    }

    #[test]
    fn an_argument_vector_is_the_program_and_its_arguments() {
        let spec = ChildSpec::from_argv(["server", "--stdio", ""]).unwrap();
        assert_eq!(spec.program(), "server");
        assert_eq!(spec.args(), ["--stdio", ""]);
        assert_eq!(ChildSpec::from_argv(["server"]), ChildSpec::new("server"));
    }

    #[test]
    fn an_empty_argument_vector_is_not_an_empty_program() {
        let none: [OsString; 0] = [];
        assert_eq!(ChildSpec::from_argv(none), Err(ChildSpecError::EmptyArgv));
    }

    #[test]
    fn a_nul_in_an_argument_vector_names_the_argument() {
        assert_eq!(
            ChildSpec::from_argv(["server", "fine", "a\0b"]),
            unrepresentable("an argument")
        );
    }

    #[test]
    fn arguments_are_appended_in_order() {
        let spec = spec()
            .with_arg("a")
            .unwrap()
            .with_args(["b", "c"])
            .unwrap()
            .with_args(Vec::<OsString>::new())
            .unwrap()
            .with_arg("")
            .unwrap();
        assert_eq!(spec.args(), ["a", "b", "c", ""]);
    }

    #[test]
    fn a_nul_in_an_argument_is_refused() {
        assert_eq!(spec().with_arg("a\0b"), unrepresentable("an argument"));
    }

    #[test]
    fn several_arguments_are_appended_all_or_none() {
        let before = spec().with_arg("first").unwrap();
        for args in [
            ["\0", "good", "good"],
            ["good", "\0", "good"],
            ["good", "good", "\0"],
        ] {
            assert_eq!(
                before.clone().with_args(args),
                unrepresentable("an argument"),
                "{args:?}"
            );
        }
        assert_eq!(before.args(), ["first"]);
    }

    #[test]
    fn a_variable_is_added_and_its_value_may_be_empty() {
        let spec = spec()
            .with_env("A", "1")
            .unwrap()
            .with_env("B", "")
            .unwrap()
            .with_env("C", "x=y")
            .unwrap();
        let expected: [(OsString, OsString); 3] = [
            ("A".into(), "1".into()),
            ("B".into(), "".into()),
            ("C".into(), "x=y".into()),
        ];
        assert_eq!(spec.env(), expected);
        assert!(spec.inherits_env());
    }

    #[test]
    fn a_second_value_for_a_key_replaces_the_first() {
        let spec = spec()
            .with_env("A", "old")
            .unwrap()
            .with_env("B", "kept")
            .unwrap()
            .with_env("A", "new")
            .unwrap();
        let expected: [(OsString, OsString); 2] =
            [("A".into(), "new".into()), ("B".into(), "kept".into())];
        assert_eq!(spec.env(), expected);
    }

    #[test]
    fn a_variable_that_cannot_be_passed_on_is_refused() {
        assert_eq!(
            spec().with_env("", "value"),
            Err(ChildSpecError::EmptyEnvKey)
        );
        for key in ["=", "=A", "A=", "A=B"] {
            assert_eq!(
                spec().with_env(key, "value"),
                Err(ChildSpecError::EnvKeyContainsSeparator),
                "{key:?}"
            );
        }
        assert_eq!(
            spec().with_env("A\0", "value"),
            unrepresentable("an environment key")
        );
        assert_eq!(
            spec().with_env("A", "val\0ue"),
            unrepresentable("an environment value")
        );
    }

    #[test]
    fn the_last_directory_counts() {
        let spec = spec().with_current_dir("/one").with_current_dir("/two");
        assert_eq!(spec.current_dir(), Some(Path::new("/two")));
    }

    #[test]
    fn clearing_the_environment_keeps_what_was_set_before_and_after() {
        const fn cleared(spec: ChildSpec) -> ChildSpec {
            spec.without_inherited_env()
        }
        let spec = cleared(spec().with_env("A", "1").unwrap())
            .with_env("B", "2")
            .unwrap();
        assert!(!spec.inherits_env());
        assert_eq!(spec.env().len(), 2);

        let output = ChildSpec::new(env::current_exe().unwrap())
            .unwrap()
            .with_args(["--exact", "spec::tests::print_environment", "--nocapture"])
            .unwrap()
            .with_env("LANDLINE_PRINT_ENVIRONMENT", "1")
            .unwrap()
            .without_inherited_env()
            .with_env("B", "2")
            .unwrap()
            .to_command()
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        let mut variables: Vec<&str> = printed
            .lines()
            .filter_map(|line| line.strip_prefix("variable "))
            .collect();
        variables.sort_unstable();
        assert_eq!(variables, ["B=2", "LANDLINE_PRINT_ENVIRONMENT=1"]);
    }

    /// The child of the test above: this test binary knows no other program
    /// that is on every machine.
    #[test]
    #[allow(clippy::print_stderr, reason = "it is run for what it prints")]
    fn print_environment() {
        if env::var_os("LANDLINE_PRINT_ENVIRONMENT").is_some() {
            for (key, value) in env::vars_os() {
                eprintln!("variable {}={}", key.display(), value.display());
            }
        }
    }

    #[test]
    fn the_command_is_what_was_said_and_nothing_else() {
        let spec = ChildSpec::from_argv(["./server", "--title", "two words", "$HOME", ""])
            .unwrap()
            .with_env("B", "2")
            .unwrap()
            .with_env("A", "1")
            .unwrap()
            .with_env("B", "3")
            .unwrap()
            .with_current_dir("some/where");
        let command = spec.to_command();
        assert_eq!(command.get_program(), "./server");
        assert_eq!(args_of(&command), ["--title", "two words", "$HOME", ""]);
        let mut envs: Vec<_> = command.get_envs().collect();
        envs.sort_unstable();
        assert_eq!(
            envs,
            [
                (OsStr::new("A"), Some(OsStr::new("1"))),
                (OsStr::new("B"), Some(OsStr::new("3"))),
            ]
        );
        assert_eq!(command.get_current_dir(), Some(Path::new("some/where")));
    }

    #[test]
    fn the_command_of_a_bare_spec_has_no_environment_and_no_directory_of_its_own() {
        let command = spec().to_command();
        assert_eq!(command.get_program(), "server");
        assert_eq!(command.get_args().count(), 0);
        assert_eq!(command.get_envs().count(), 0);
        assert_eq!(command.get_current_dir(), None);
    }

    #[test]
    fn text_that_is_not_utf8_arrives_byte_for_byte() {
        let spec = ChildSpec::from_argv([not_utf8(), not_utf8()])
            .unwrap()
            .with_arg(not_utf8())
            .unwrap()
            .with_env(not_utf8(), not_utf8())
            .unwrap()
            .with_current_dir(not_utf8());
        let command = spec.to_command();
        assert_eq!(command.get_program().as_bytes(), NOT_UTF8);
        assert_eq!(args_of(&command), [not_utf8(), not_utf8()]);
        let envs: Vec<_> = command.get_envs().collect();
        assert_eq!(
            envs,
            [(not_utf8().as_os_str(), Some(not_utf8().as_os_str()))]
        );
        assert_eq!(command.get_current_dir(), Some(Path::new(&not_utf8())));
    }

    #[test]
    fn a_nul_is_found_in_text_that_is_not_utf8() {
        let arg = OsString::from_vec(b"caf\xe9\0".to_vec());
        assert_eq!(spec().with_arg(arg), unrepresentable("an argument"));
    }

    #[test]
    fn a_relative_path_to_the_program_is_resolved_against_our_directory() {
        let here = env::current_dir().unwrap();
        for (said, meant) in [
            ("./server", here.join("server")),
            ("bin/server", here.join("bin/server")),
            ("../server", here.join("../server")),
            ("/bin/server", PathBuf::from("/bin/server")),
            ("server", PathBuf::from("server")),
        ] {
            let spec = ChildSpec::from_argv([said, "arg"])
                .unwrap()
                .with_env("A", "1")
                .unwrap()
                .with_current_dir("/");
            let command = spec.to_resolved_command().unwrap();
            assert_eq!(command.get_program(), meant.as_os_str(), "{said}");
            assert_eq!(args_of(&command), ["arg"]);
            assert_eq!(command.get_envs().count(), 1);
            assert_eq!(command.get_current_dir(), Some(Path::new("/")));
            assert_eq!(spec.to_command().get_program(), said);
        }
    }

    #[test]
    fn debug_shows_names_of_variables_and_no_values() {
        let spec = ChildSpec::from_argv(["server", "--stdio"])
            .unwrap()
            .with_env("TOKEN", "s3cret")
            .unwrap()
            .with_current_dir("/srv");
        let plain = format!("{spec:?}");
        assert_eq!(
            plain,
            "ChildSpec { program: \"server\", args: [\"--stdio\"], env: [\"TOKEN\"], \
             current_dir: Some(\"/srv\"), inherits_env: true }"
        );
        assert!(!format!("{spec:#?}").contains("s3cret"));
    }

    #[test]
    fn specs_that_differ_in_anything_are_unequal() {
        let base = spec();
        assert_eq!(base, base.clone());
        for other in [
            ChildSpec::new("other").unwrap(),
            base.clone().with_arg("").unwrap(),
            base.clone().with_env("A", "").unwrap(),
            base.clone().with_current_dir(""),
            base.clone().without_inherited_env(),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn every_message_names_its_field() {
        for (error, message) in [
            (
                ChildSpecError::EmptyArgv,
                "the argument vector is empty: its first element is the program",
            ),
            (ChildSpecError::EmptyProgram, "the program name is empty"),
            (ChildSpecError::EmptyEnvKey, "an environment key is empty"),
            (
                ChildSpecError::EnvKeyContainsSeparator,
                "an environment key contains `=`",
            ),
            (
                ChildSpecError::Unrepresentable {
                    what: "an environment value",
                },
                "an environment value contains a NUL",
            ),
        ] {
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn specs_and_their_errors_can_go_to_another_thread() {
        fn can_go<T: Send + Sync + 'static>() {}
        can_go::<ChildSpec>();
        can_go::<ChildSpecError>();
    }
}
