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
