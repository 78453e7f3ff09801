//! Starting a child: what it is given, and what is at fault when it does not start.

use std::env;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use landline::{ChildSpec, Connection, Options, SpawnError};
use serde_json::{Value, json};

use crate::process::{PEER, Scratch, host, only_word, output, peer, serve, with_mask};
use crate::support::pair;

fn refused(spec: &ChildSpec) -> SpawnError {
    Connection::spawn(spec).unwrap_err()
}

fn program(path: impl Into<OsString>) -> ChildSpec {
    ChildSpec::new(path).unwrap()
}

/// The errno behind a failed start; its text must stand in the source alone.
fn errno(error: &SpawnError) -> Option<i32> {
    let source: &io::Error = error.source().unwrap().downcast_ref().unwrap();
    let (text, cause) = (error.to_string(), source.to_string());
    assert!(
        !text.contains(&cause),
        "a source is never also printed: {text}"
    );
    source.raw_os_error()
}

/// A file with this text and mode. It is written by another process: one that is started at the
/// same moment by another test would inherit an open descriptor, and a file that is open for
/// writing cannot be run.
fn write_file(path: &Path, text: &str, mode: &str) {
    let script = r#"printf %s "$1" >"$0" && chmod "$2" "$0""#;
    let status = Command::new("sh")
        .args(["-c", script])
        .args([path.as_os_str(), text.as_ref(), mode.as_ref()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// What the server says about itself.
fn who(spec: &ChildSpec) -> Value {
    ask_who(&Connection::spawn(spec).unwrap())
}

fn ask_who(server: &Connection) -> Value {
    server.request("who", ()).unwrap()
}

fn text(bytes: &Value) -> OsString {
    let bytes = bytes.as_array().unwrap().iter();
    OsString::from_vec(bytes.map(|byte| byte.as_u64().unwrap() as u8).collect())
}

fn env_of(who: &Value) -> Vec<(OsString, OsString)> {
    let pairs = who["env"].as_array().unwrap().iter();
    pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

#[test]
fn p16_a_missing_bare_program_is_named() {
    let error = refused(&program("landline-no-such-program"));
    assert!(
        matches!(error, SpawnError::ProgramNotFound { .. }),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "cannot start landline-no-such-program: program not found"
    );
    assert_eq!(errno(&error), Some(libc::ENOENT));
}

#[test]
fn a_missing_program_with_a_separator_is_named() {
    let error = refused(&program("no/such/program"));
    assert!(
        matches!(error, SpawnError::ProgramNotFound { .. }),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("no/such/program: program not found"),
        "{text}"
    );
    assert_eq!(errno(&error), Some(libc::ENOENT));
}

#[test]
fn p16_a_missing_directory_is_named_and_not_the_program() {
    let dir = Scratch::new().path("gone");
    let error = refused(&peer::<&str>("serve", []).with_current_dir(&dir));
    assert!(
        matches!(&error, SpawnError::DirectoryMissing { dir: named, .. } if *named == dir),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        format!(
            "cannot start {PEER} in {}: no such directory",
            dir.display()
        )
    );
    assert_eq!(errno(&error), Some(libc::ENOENT));
}

#[test]
fn a_missing_program_is_named_though_the_directory_exists() {
    let scratch = Scratch::new();
    let error = refused(&program("landline-no-such-program").with_current_dir(scratch.dir()));
    assert!(
        matches!(error, SpawnError::ProgramNotFound { .. }),
        "{error:?}"
    );
}

#[test]
fn a_file_is_no_directory_to_run_in() {
    let scratch = Scratch::new();
    let file = scratch.path("file");
    write_file(&file, "", "644");
    let error = refused(&peer::<&str>("serve", []).with_current_dir(&file));
    assert!(
        matches!(&error, SpawnError::DirectoryMissing { dir, .. } if *dir == file),
        "{error:?}"
    );
    assert!(error.to_string().contains(file.to_str().unwrap()));
    assert_eq!(errno(&error), Some(libc::ENOTDIR));
}

#[test]
fn p16_a_file_without_permission_and_a_directory_are_no_programs() {
    let scratch = Scratch::new();
    let file = scratch.path("tool");
    write_file(&file, "#!/bin/sh\n", "644");
    for path in [file.as_path(), scratch.dir()] {
        let error = refused(&program(path));
        assert!(
            matches!(error, SpawnError::PermissionDenied { .. }),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            format!("cannot start {}: permission denied", path.display())
        );
        assert_eq!(errno(&error), Some(libc::EACCES));
    }
}

#[test]
fn a_file_that_is_no_program_is_named() {
    let scratch = Scratch::new();
    let file = scratch.path("tool");
    write_file(&file, "true\n", "755");
    let error = refused(&program(&file));
    assert!(matches!(error, SpawnError::Other { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!("cannot start {}", file.display())
    );
    assert_eq!(errno(&error), Some(libc::ENOEXEC));
}

#[test]
fn a_nul_in_a_command_is_refused() {
    let mut command = Command::new(PEER);
    command.arg("a\0b");
    let error = Options::new().spawn_command(command).unwrap_err();
    assert!(matches!(error, SpawnError::Other { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot start {PEER}"));
    assert_eq!(errno(&error), None);
    let source: &io::Error = error.source().unwrap().downcast_ref().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_relative_program_is_looked_up_from_the_parents_directory() {
    let here = env::current_dir().unwrap();
    let up: Vec<_> = here.components().skip(1).map(|_| "..").collect();
    // From a directory that lies deeper than ours, as many steps up do not reach the root.
    let scratch = Scratch::new();
    let deep = scratch.path(&"d/".repeat(up.len() + 1));
    std::fs::create_dir_all(&deep).unwrap();
    let relative = up.join("/") + PEER;
    let spec = program(&relative)
        .with_arg("serve")
        .unwrap()
        .with_current_dir(&deep);
    let who = who(&spec);
    assert_eq!(
        Path::new(who["dir"].as_str().unwrap()),
        deep.canonicalize().unwrap()
    );
}

#[test]
fn a_program_keeps_the_name_of_its_link() {
    let scratch = Scratch::new();
    let link = scratch.path("a (strange) name");
    symlink(PEER, &link).unwrap();
    let server = Connection::spawn(&program(&link).with_arg("serve").unwrap()).unwrap();
    // While it is being started it has no name yet.
    ask_who(&server);
    let name = std::fs::read(format!("/proc/{}/cmdline", server.pid().unwrap())).unwrap();
    assert!(
        name.starts_with(link.as_os_str().as_bytes()),
        "{}",
        String::from_utf8_lossy(&name)
    );
}

#[test]
fn arguments_arrive_as_they_are() {
    let bad = OsStr::from_bytes(b"caf\xe9\xff");
    let args: Vec<&OsStr> = [
        "a b", "", "\"q\"", "it's", "$HOME", "*", "a\\b\\", "--x=1 2", "a\nb", "é",
    ]
    .into_iter()
    .map(OsStr::new)
    .chain([bad])
    .collect();
    let who = who(&peer("serve", &args));
    let came = who["args"].as_array().unwrap()[1..].iter().map(text);
    assert_eq!(came.collect::<Vec<_>>(), args);
}

#[test]
fn the_environment_is_inherited_and_added_to() {
    let odd = OsStr::from_bytes(b" \xe9=\"\n' ");
    let spec = peer::<&str>("serve", [])
        .with_env("LANDLINE_ODD", odd)
        .unwrap()
        .with_env("LANDLINE_EMPTY", "")
        .unwrap()
        .with_env("CARGO_PKG_NAME", "replaced")
        .unwrap();
    let env = env_of(&who(&spec));
    let get = |key: &str| {
        let mut values = env.iter().filter(|(name, _)| name == key);
        let value = values.next().map(|(_, value)| value.as_os_str());
        assert!(values.next().is_none(), "{key} is there twice");
        value
    };
    assert_eq!(get("LANDLINE_ODD"), Some(odd));
    assert_eq!(get("LANDLINE_EMPTY"), Some(OsStr::new("")));
    assert_eq!(get("CARGO_PKG_NAME"), Some(OsStr::new("replaced")));
    assert_eq!(get("PATH"), env::var_os("PATH").as_deref());
}

#[test]
fn a_cleared_environment_holds_what_was_named_and_nothing_else() {
    let spec = peer::<&str>("serve", [])
        .without_inherited_env()
        .with_env("A", "1")
        .unwrap();
    assert_eq!(env_of(&who(&spec)), [("A".into(), "1".into())]);
}

#[test]
fn a_command_may_bring_a_user_and_a_hook() {
    use std::os::unix::process::CommandExt;
    let before = ask_who(&serve(&Options::new()));
    let mut command = peer::<&str>("serve", []).to_command();
    command.uid(u32::try_from(before["user"].as_u64().unwrap()).unwrap());
    with_mask(&mut command, 0o027);
    let server = Options::new().spawn_command(command).unwrap();
    let who = ask_who(&server);
    assert_eq!(
        (&who["user"], &who["mask"]),
        (&before["user"], &json!(0o027))
    );
    assert_eq!(who["group"], who["pid"], "it leads its group all the same");
}

#[test]
fn a_missing_program_with_a_hook_is_named() {
    let mut command = Command::new("landline-no-such-program");
    with_mask(&mut command, 0o027);
    let error = Options::new().spawn_command(command).unwrap_err();
    assert!(
        matches!(error, SpawnError::ProgramNotFound { .. }),
        "{error:?}"
    );
}

/// The host gives every thread this much address space, and itself enough for `threads` of them.
fn starved(threads: &str) -> Value {
    let mut command = peer("host_starved", [threads]).to_command();
    command
        .env("RUST_MIN_STACK", (64 << 20).to_string())
        .env("MALLOC_ARENA_MAX", "1");
    let said = output(command);
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
    only_word(&said)
}

#[test]
fn a_refused_thread_ends_the_child_and_is_a_failed_start() {
    // stderr, writer, reader.
    for threads in ["0", "1", "2"] {
        let came = starved(threads);
        assert_eq!(came["outcome"]["kind"], "NoResources", "{came}");
        let text = format!("cannot start {PEER}: the system lacks resources");
        assert_eq!(came["outcome"]["text"], text);
        assert_eq!(came["children"], false, "{came}");
        assert_eq!(came["threads"], 1, "{came}");
    }
    // The proof that it was the lack of threads.
    let came = starved("3");
    assert_eq!(came["outcome"], json!(["started"]), "{came}");
    assert_eq!(came["children"], false, "{came}");
}

#[test]
fn a_failed_start_leaves_no_descriptor_and_no_child() {
    assert_eq!(
        host("host_failed_starts", ["50"]),
        json!({"leaked": 0, "children": false})
    );
}

#[test]
fn p17_no_text_of_the_library_shows_an_environment_value_or_a_control_byte() {
    let secret = "s3cr3t-value";
    let script = "printf 'bad \\033[31mkey\\033[0m\\007\\n' >&2; printf '\\033[1mstray\\n'; exit 3";
    let spec = ChildSpec::from_argv(["sh", "-c", script])
        .unwrap()
        .with_env("LANDLINE_TOKEN", secret)
        .unwrap();
    let missing = ChildSpec::new("landline-no-such-program")
        .unwrap()
        .with_env("LANDLINE_TOKEN", secret)
        .unwrap();
    let server = Options::new().spawn(&spec).unwrap();
    let error = server.request::<Value>("m", ()).unwrap_err();
    let failed = Options::new().spawn(&missing).unwrap_err();
    let texts = [
        format!("{spec:?}"),
        format!("{server:?}"),
        format!("{error:?}"),
        error.to_string(),
        format!("{failed:?} {failed}"),
        server.survived().to_string(),
    ];
    for text in &texts {
        assert!(!text.contains(secret), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
    assert!(texts[0].contains("LANDLINE_TOKEN"));
    assert!(
        texts[3].contains("bad key") && texts[3].contains("stray"),
        "{}",
        texts[3]
    );
    // The raw bytes have their own accessor.
    assert_eq!(server.stderr_tail(), b"bad \x1b[31mkey\x1b[0m\x07\n");
}

#[test]
fn p17_no_queued_params_and_no_words_in_a_result_are_shown_raw() {
    let (connection, mut script) = pair(&Options::new());
    let call = connection.start("m", ["s3cr3t-param"]).unwrap();
    assert!(!format!("{connection:?}").contains("s3cr3t"));
    script.send(json!({"jsonrpc": "2.0", "id": call.id(), "result": {"\u{1b}[31mred": 1}}));
    // serde quotes a variant that it does not know as it came.
    let error = call.wait::<Result<u8, u8>>().unwrap_err().to_string();
    assert!(error.contains("unknown variant `red`"), "{error:?}");
}
