//! The `inspect` example as its users run it: words and lines in, lines and an exit code out.
//!
//! Its peers are its own embedded server, and shell one-liners for what no good server does.
#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

#[path = "inspect/errors.rs"]
mod errors;
#[path = "inspect/mcp.rs"]
mod mcp;
#[path = "inspect/scripted.rs"]
mod scripted;
#[path = "inspect/terminal.rs"]
mod terminal;

// Of the example itself, for what a run of it can hardly bring about.
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../examples/inspect/print.rs"]
mod print;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../examples/inspect/screen.rs"]
mod screen;

/// Far beyond anything that a test waits for, on the slowest machine: only a hang gets here.
const HANG: Duration = Duration::from_secs(60);

/// The example beside this test, built here: `cargo test --test inspect` does not build it, and one
/// from before the last change may be there.
fn example() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let test = env::current_exe().unwrap();
        let profile = test.ancestors().nth(2).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--example", "inspect", "--target-dir"]);
        cargo.arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let built = cargo
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        let path = profile.join("examples/inspect");
        assert!(
            built.success() && path.exists(),
            "{} is not there",
            path.display()
        );
        path
    })
}

#[derive(Debug)]
struct Output {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Output {
    fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

fn start(words: &[&str]) -> Child {
    let mut command = Command::new(example());
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits for the end, under a guard.
fn finish(child: Child) -> Output {
    guarded(move || {
        let output = child.wait_with_output().unwrap();
        Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    })
}

fn guarded<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || drop(done.send(run())));
    wait.recv_timeout(HANG)
        .expect("it hangs, or it panicked above")
}

fn inspect(words: &[&str]) -> Output {
    finish(start(words))
}

/// Runs a script from stdin.
fn script_with(options: &[&str], steps: &str, peer: &[&str]) -> Output {
    let mut child = start(&[options, &["script", "-", "--"], peer].concat());
    child
        .stdin
        .take()
        .unwrap()
        .write_all(steps.as_bytes())
        .unwrap();
    finish(child)
}

fn script(steps: &str, peer: &[&str]) -> Output {
    script_with(&[], steps, peer)
}

/// The words that run the embedded server.
fn server() -> [&'static str; 2] {
    [example().to_str().unwrap(), "--serve"]
}

fn shell(commands: &str) -> [&str; 3] {
    ["sh", "-c", commands]
}

/// A request of the embedded server.
fn request(method: &str, params: &Value) -> Output {
    inspect(
        &[
            &["--json", "request", method, &params.to_string(), "--"],
            &server()[..],
        ]
        .concat(),
    )
}

#[track_caller]
fn told(output: &Output, code: i32, stdout: &str, stderr: &str) {
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.as_str()),
        (Some(code), stdout, stderr)
    );
}

/// The error of a document, and the exit code.
fn error(output: &Output) -> (Option<i32>, Value) {
    let mut document: Value = serde_json::from_str(&output.stdout).unwrap();
    (output.code, document["error"].take())
}

const SILENT: &str = "while read -r line; do :; done";

#[test]
fn without_arguments_it_shows_the_library_at_work() {
    let output = inspect(&[]);
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (Some(0), ""),
        "{output:?}"
    );
    let mut rest = output.stdout.as_str();
    for next in [
        "Started an MCP server",
        ": revision 2026-07-28, the modern era\n",
        "\n  echo: gives back a text\n  add: adds two numbers\n  sleep: ",
        "\n  greet: ",
        "\n  19 + 23 = 42\n",
        "\n  1 of 4\n  2 of 4\n  3 of 4\n  4 of 4\n  slept well\n",
        "\n  Who is to be greeted? {\"name\":\"Ferris\"}\n  Hello, Ferris!\n",
        "\n  failed: this tool always fails\n",
        "  `tools/call` was refused: there is no tool fly (code -32602)\n",
        "  exit code 0, by this step: stdin closed\n",
    ] {
        let at = rest.find(next);
        let at = at.unwrap_or_else(|| panic!("no {next:?} where it belongs in {}", output.stdout));
        rest = &rest[at + next.len()..];
    }
}

#[test]
fn a_request_prints_its_result_for_people() {
    let params = r#"{"name":"echo","arguments":{"text":"a \"b\\\", [c]: {d}"}}"#;
    let output = inspect(&[&["request", "tools/call", params, "--"], &server()[..]].concat());
    let laid_out = r#"{
  "content": [
    {
      "text": "a \"b\\\", [c]: {d}",
      "type": "text"
    }
  ]
}
"#;
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.as_str()),
        (Some(0), laid_out, "")
    );
    let output = inspect(&[&["request", "ping", "--"], &server()[..]].concat());
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "{}\n"));
}

#[test]
fn a_request_prints_one_document_for_programs() {
    let output = request("ping", &json!({}));
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "{\"ok\":{}}\n")
    );
    let output = request("nope", &json!({}));
    let error = r#"{"error":{"kind":"rpc","message":"method not found","delivery":"answered","code":-32601}}"#;
    assert_eq!((output.code, output.lines()), (Some(1), vec![error]));
}

#[test]
fn a_refused_request_is_told_on_stderr() {
    let params = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "1999"}}).to_string();
    let output = inspect(&[&["request", "tools/list", &params, "--"], &server()[..]].concat());
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    let told = "`tools/list` was refused: unsupported protocol version (code -32022)\n{\n  \"requested\": \"1999\",";
    assert!(output.stderr.starts_with(told), "{}", output.stderr);
}

#[test]
fn wrong_usage_is_explained_and_starts_nothing() {
    for (words, wrong) in [
        (&["--json"][..], "ACTION is missing"),
        (&["--", "true"], "ACTION is missing"),
        (&["look", "--", "true"], "there is no action `look`"),
        (
            &["--loud", "request", "ping", "--", "true"],
            "there is no option `--loud`",
        ),
        (
            &["--framing", "netstring", "request", "ping", "--", "true"],
            "there is no framing `netstring`",
        ),
        (&["--framing"], "the framing is missing"),
        (&["--timeout"], "SECONDS is missing"),
        (
            &["--timeout", "soon", "request", "ping", "--", "true"],
            "`soon` is no number of seconds",
        ),
        (
            &["--timeout", "-1", "request", "ping", "--", "true"],
            "`-1` is no number of seconds",
        ),
        (
            &["--timeout", "NaN", "request", "ping", "--", "true"],
            "`NaN` is no number of seconds",
        ),
        (
            &["--timeout", "0", "request", "ping", "--", "true"],
            "`0` is no number of seconds above zero",
        ),
        (
            &["--timeout", "1e-30", "request", "ping", "--", "true"],
            "`1e-30` is no number of seconds above zero",
        ),
        (
            &["--timeout", "inf", "request", "ping", "--", "true"],
            "`inf` is no number of seconds above zero",
        ),
        (
            &["--idle", "0", "info", "--", "true"],
            "`0` is no number of seconds above zero",
        ),
        (&["request", "--", "true"], "METHOD is missing"),
        (
            &["request", "ping", "{", "--", "true"],
            "PARAMS are no JSON: ",
        ),
        (
            &["request", "ping", "{}", "more", "--", "true"],
            "\"more\" is too much before `--`",
        ),
        (&["request", "ping"], "`-- PROGRAM` is missing"),
        (&["request", "ping", "--"], "`-- PROGRAM` is missing"),
        (
            &["request", "ping", "--", ""],
            "after `--`: the program name is empty",
        ),
        (&["script", "--", "true"], "FILE is missing"),
        (&["call", "--", "true"], "NAME is missing"),
        (&["prompt", "--", "true"], "NAME is missing"),
        (&["read", "--", "true"], "URI is missing"),
        (&["call", "x", "{", "--", "true"], "ARGS are no JSON: "),
        (
            &["call", "x", "[1]", "--", "true"],
            "ARGS are no JSON object",
        ),
        (
            &["prompt", "x", "7", "--", "true"],
            "ARGS are no JSON object",
        ),
        (
            &["tools", "x", "--", "true"],
            "\"x\" is too much before `--`",
        ),
        (
            &["call", "x", "{}", "y", "--", "true"],
            "\"y\" is too much before `--`",
        ),
        (&["tools"], "`-- PROGRAM` is missing"),
        (&["--era"], "the era is missing"),
        (
            &["--era", "stone", "info", "--", "true"],
            "there is no era `stone`",
        ),
        (&["--revision"], "the revision is missing"),
        (
            &["--revision", "1999-01-01", "info", "--", "true"],
            "there is no revision `1999-01-01`",
        ),
        (
            &[
                "--era",
                "modern",
                "--revision",
                "2025-11-25",
                "info",
                "--",
                "true",
            ],
            "revision 2025-11-25 is not of the modern era",
        ),
        (
            &["--idle", "ever", "info", "--", "true"],
            "`ever` is no number of seconds",
        ),
        (&["--roots"], "DIR is missing"),
        (
            &["--roots", "/no/such/dir", "info", "--", "true"],
            "\"/no/such/dir\" is no directory for a root: No such file",
        ),
        (
            &["--roots", "/dev/null", "info", "--", "true"],
            "\"/dev/null\" is no directory for a root: it is a file",
        ),
        (
            &["--framing", "lines", "info", "--", "true"],
            "`--framing` is not for `info`: MCP has lines",
        ),
        (
            &["--idle", "1", "request", "ping", "--", "true"],
            "`--idle` is not for `request`",
        ),
        (
            &["--era", "auto", "script", "-", "--", "true"],
            "`--era` is not for `script`",
        ),
    ] {
        let output = inspect(words);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(2), ""),
            "{words:?}"
        );
        assert!(
            output.stderr.starts_with(&format!("inspect: {wrong}")),
            "{words:?}: {}",
            output.stderr
        );
        assert!(
            output.stderr.ends_with("; see inspect --help\n"),
            "{words:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn an_option_after_the_action_is_told_where_it_belongs() {
    const NO_JSON: &str = "are no JSON: expected value at line 1 column 1";
    for (words, wrong) in [
        (
            &["tools", "--json"][..],
            "\"--json\" is too much before `--`; options stand before ACTION",
        ),
        (
            &["call", "echo", "{}", "--json"],
            "\"--json\" is too much before `--`; options stand before ACTION",
        ),
        (
            &["request", "ping", "--json"],
            "PARAMS are no JSON: invalid number at line 1 column 2; options stand before ACTION",
        ),
        (
            &["call", "--json", "echo"],
            &format!("ARGS {NO_JSON}; options stand before ACTION"),
        ),
        (&["call", "echo", "word"], &format!("ARGS {NO_JSON}")),
        (&["tools", "more"], "\"more\" is too much before `--`"),
    ] {
        let output = inspect(&[words, &["--", "true"]].concat());
        told(
            &output,
            2,
            "",
            &format!("inspect: {wrong}; see inspect --help\n"),
        );
    }
}

#[test]
fn the_embedded_server_takes_no_arguments() {
    let wrong = "inspect: \"extra\" is too much after `--serve`; see inspect --help\n";
    told(&inspect(&["--serve", "extra"]), 2, "", wrong);
}

#[test]
fn help_is_no_wrong_usage() {
    let output = inspect(&["--help"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(
        output.stdout.starts_with("usage: inspect "),
        "{}",
        output.stdout
    );
}

#[test]
fn a_script_gives_a_line_for_each_step() {
    let steps = r#"
{"request":"initialize","params":{"protocolVersion":"2024-11-05"}}
{"notify":"notifications/initialized"}
{"start":"tools/call","params":{"name":"sleep","arguments":{"seconds":0.3}},"as":"nap"}
{"request":"tools/call","params":{"name":"add","arguments":{"a":0.5,"b":2}},"timeout":50.5}

{"sleep":0.01}
{"wait":"nap"}
{"close":true}
"#;
    let output = script(steps, &server());
    let version = env!("CARGO_PKG_VERSION");
    let hello = format!(
        r#"{{"ok":{{"capabilities":{{"prompts":{{}},"resources":{{}},"tools":{{}}}},"instructions":"A server to try a client on.","protocolVersion":"2024-11-05","serverInfo":{{"name":"landline-inspect","version":"{version}"}}}}}}"#
    );
    assert_eq!(
        output.lines(),
        [
            hello.as_str(),
            r#"{"ok":null}"#,
            r#"{"ok":null}"#,
            r#"{"ok":{"content":[{"text":"2.5","type":"text"}]}}"#,
            r#"{"ok":null}"#,
            r#"{"ok":{"content":[{"text":"slept well","type":"text"}]}}"#,
            r#"{"closed":{"status":{"code":0},"step":"stdin_closed"}}"#,
        ]
    );
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_script_can_come_from_a_file_and_need_not_close() {
    let file = env::temp_dir().join(format!("landline-inspect-{}", std::process::id()));
    fs::write(&file, "{\"request\":\"ping\"}\r\n{\"request\":\"ping\"}").unwrap();
    let output = inspect(&[&["script", file.to_str().unwrap(), "--"], &server()[..]].concat());
    fs::remove_file(&file).unwrap();
    assert_eq!(
        (output.code, output.lines()),
        (Some(0), vec![r#"{"ok":{}}"#; 2])
    );

    let output = inspect(&[&["script", file.to_str().unwrap(), "--"], &server()[..]].concat());
    let begin = r#"{"error":{"kind":"script","message":"the script cannot be read: "#;
    assert!(
        output.code == Some(1) && output.stdout.starts_with(begin),
        "{output:?}"
    );
}

#[test]
fn a_line_is_out_before_the_next_step_comes_in() {
    let mut child = start(&[&["script", "-", "--"], &server()[..]].concat());
    let mut steps = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        steps.write_all(b"{\"request\":\"ping\"}\n").unwrap();
        let (line, back) = guarded(move || {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            (line, lines)
        });
        lines = back;
        assert_eq!(line, "{\"ok\":{}}\n");
    }
    drop(steps);
    assert_eq!(finish(child).code, Some(0));
}

#[test]
fn a_line_that_is_no_step_is_told_with_its_number_and_the_script_goes_on() {
    let cases = [
        (
            "nonsense",
            "a step is a JSON object on one line: expected ident at column 2",
        ),
        (
            r#"{"request":"ping""#,
            "a step is a JSON object on one line: EOF while parsing an object at column 17",
        ),
        (
            "{}",
            "a step has one of the members request, start, wait, cancel, notify, sleep, close",
        ),
        (
            r#"{"ask":"ping"}"#,
            "a step has one of the members request, start, wait, cancel, notify, sleep, close",
        ),
        (r#"{"request":5}"#, "`request` is a string"),
        (
            r#"{"request":"ping","parms":{}}"#,
            "`parms` is no member of a `request` step",
        ),
        (
            r#"{"request":"ping","timeout":"1"}"#,
            "`timeout` is a number of seconds",
        ),
        (
            r#"{"request":"ping","notify":"ping"}"#,
            "`notify` is no member of a `request` step",
        ),
        (r#"{"start":"ping"}"#, "`as` is a string"),
        (r#"{"sleep":-1}"#, "`sleep` is a number of seconds"),
        (r#"{"close":false}"#, "`close` is true"),
        (r#"{"wait":"x"}"#, "no call was started as `x`"),
        (r#"{"cancel":"x"}"#, "no call was started as `x`"),
    ];
    // An empty line is no step, but it is a line.
    let mut steps: String = cases
        .iter()
        .map(|(step, _)| format!("{step}\n\n"))
        .collect();
    steps.push_str(r#"{"request":"ping"}"#);
    let output = script(&steps, &server());
    let mut lines = output.lines().into_iter();
    for (at, (step, wrong)) in cases.iter().enumerate() {
        let line: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        let message = format!("script line {}: {wrong}", 2 * at + 1);
        let error = json!({"kind": "script", "message": message, "delivery": "not_sent"});
        assert_eq!(line, json!({ "error": error }), "{step}");
    }
    assert_eq!(
        (output.code, lines.collect::<Vec<_>>()),
        (Some(1), vec![r#"{"ok":{}}"#])
    );
}

#[test]
fn a_name_is_free_again_once_it_was_waited_for() {
    let steps = r#"{"start":"ping","as":"x"}
{"start":"ping","as":"x"}
{"wait":"x"}
{"wait":"x"}
{"start":"ping","as":"x"}
{"wait":"x"}
"#;
    let refused = |message: &str| {
        format!(r#"{{"error":{{"kind":"script","message":"{message}","delivery":"not_sent"}}}}"#)
    };
    let (null, answer) = (r#"{"ok":null}"#, r#"{"ok":{}}"#);
    assert_eq!(
        script(steps, &server()).lines(),
        [
            null,
            &refused("script line 2: `x` is in flight already"),
            answer,
            &refused("script line 4: no call was started as `x`"),
            null,
            answer
        ]
    );
}

#[test]
fn a_call_that_is_not_waited_for_counts_as_unanswered() {
    let steps = r#"{"start":"ping","as":"y"}
{"start":"ping","as":"x"}
{"request":"ping"}
"#;
    let output = script(steps, &server());
    let null = r#"{"ok":null}"#;
    assert_eq!(
        (output.code, output.lines()),
        (Some(1), vec![null, null, r#"{"ok":{}}"#])
    );
    let told = "`x` was started and never waited for\n`y` was started and never waited for\n";
    assert_eq!(output.stderr, told);
}

#[test]
fn a_cancelled_call_says_so_when_it_is_waited_for_and_is_not_answered() {
    // The ping's answer shows that the server has read the request before it.
    let steps = r#"{"start":"tools/call","params":{"name":"sleep","arguments":{"seconds":0.2}},"as":"nap"}
{"request":"ping"}
{"cancel":"nap"}
{"wait":"nap"}
{"request":"tools/call","params":{"name":"sleep","arguments":{"seconds":0.5}}}
{"close":true}
"#;
    let output = script(steps, &server());
    assert_eq!(
        output.lines()[2..],
        [
            r#"{"ok":null}"#,
            r#"{"error":{"kind":"cancelled","message":"`tools/call` was cancelled","delivery":"maybe_run"}}"#,
            r#"{"ok":{"content":[{"text":"slept well","type":"text"}]}}"#,
            r#"{"closed":{"status":{"code":0},"step":"stdin_closed"}}"#,
        ]
    );
    // A late answer would stand here.
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""));
}

#[test]
fn digits_pass_unchanged_both_ways() {
    let digits = r#"{"a":1.00,"b":12345678901234567890123,"c":1E+2,"d":-0.0}"#;
    let mirror = r#"read -r line; printf '{"jsonrpc":"2.0","id":1,"result":%s}\n' "$line""#;
    let output = script(
        &format!(r#"{{"request":"r","params":{digits}}}"#),
        &shell(mirror),
    );
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"r","params":{digits}}}"#);
    assert_eq!(output.lines(), [format!(r#"{{"ok":{frame}}}"#)]);

    let output = inspect(
        &[
            &["--json", "request", "r", digits, "--"],
            &shell(mirror)[..],
        ]
        .concat(),
    );
    assert_eq!(output.lines(), [format!(r#"{{"ok":{frame}}}"#)]);

    let output = inspect(&[&["request", "r", digits, "--"], &shell(mirror)[..]].concat());
    for line in [
        "    \"a\": 1.00,",
        "    \"b\": 12345678901234567890123,",
        "    \"c\": 1E+2,",
        "    \"d\": -0.0",
    ] {
        assert!(output.lines().contains(&line), "{}", output.stdout);
    }

    let refuse = r#"read -r l; printf '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a\\nb","data":[1.50]}}\n'"#;
    let error =
        r#"{"error":{"kind":"rpc","message":"a\nb","delivery":"answered","code":1,"data":[1.50]}}"#;
    assert_eq!(
        script(r#"{"request":"r"}"#, &shell(refuse)).lines(),
        [error]
    );
}

#[test]
fn a_result_written_over_several_lines_comes_out_on_one() {
    let body = "{\"jsonrpc\":\"2.0\",\n\"id\":1,\r\n\"result\":\n[ 1.0,\n2 ]}";
    let peer = format!(
        r"read -r header; printf 'Content-Length: {}\r\n\r\n%s' '{body}'; {SILENT}",
        body.len()
    );
    let words = ["--framing", "content-length"];
    let output = script_with(&words, r#"{"request":"r"}"#, &shell(&peer));
    assert_eq!(
        (output.code, output.lines()),
        (Some(0), vec![r#"{"ok":[ 1.0,2 ]}"#]),
        "{output:?}"
    );
}

#[test]
fn a_time_limit_is_told_with_what_the_peer_can_have_seen() {
    let steps = r#"{"request":"r","timeout":0}
{"request":"r"}
{"start":"r","timeout":1.5,"as":"x"}
{"wait":"x"}
"#;
    let output = script_with(&["--timeout", "1"], steps, &shell(SILENT));
    let told: Vec<Value> = output
        .lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // In no time at all the first may be on its way, or not.
    for (told, limit, deliveries) in [
        (&told[0], "0ns", &["not_sent", "maybe_run"][..]),
        (&told[1], "1s", &["maybe_run"]),
        (&told[3], "1.5s", &["maybe_run"]),
    ] {
        assert_eq!(told["error"]["kind"], "timeout");
        let delivery = told["error"]["delivery"].as_str().unwrap();
        assert!(deliveries.contains(&delivery), "{told}");
        let message = told["error"]["message"].as_str().unwrap();
        let opening = match delivery {
            "not_sent" => "`r` was not sent",
            _ => "no answer to `r`",
        };
        assert!(
            message.starts_with(&format!("{opening} within {limit}")),
            "{message}"
        );
    }
    assert_eq!(output.code, Some(1));
}

#[test]
fn a_step_has_its_own_time_limit() {
    let steps = r#"{"request":"tools/call","params":{"name":"sleep","arguments":{"seconds":0.6}},"timeout":50}"#;
    let output = script_with(&["--timeout", "0.1"], steps, &server());
    assert_eq!(
        (output.code, output.lines().len()),
        (Some(0), 1),
        "{output:?}"
    );
}

#[test]
fn params_that_cannot_be_sent_are_told() {
    let output = script(
        "{\"request\":\"r\",\"params\":3}\n{\"notify\":\"n\",\"params\":\"x\"}",
        &server(),
    );
    let error = |method: &str| {
        format!(
            r#"{{"error":{{"kind":"encode","message":"cannot send `{method}`: params must be an object, an array, or nothing","delivery":"not_sent"}}}}"#
        )
    };
    assert_eq!(
        (output.code, output.lines()),
        (Some(1), vec![error("r").as_str(), &error("n")])
    );
}

#[test]
fn the_end_of_a_server_is_told_with_its_step_and_status() {
    let ends = [
        (
            "read -r request; exit 3",
            r#"{"closed":{"status":{"code":3},"step":"already_ended"}}"#,
        ),
        (
            "read -r request; kill -9 $$",
            r#"{"closed":{"status":{"signal":9},"step":"already_ended"}}"#,
        ),
    ];
    for (peer, closed) in ends {
        let output = script(
            "{\"request\":\"r\"}\n{\"close\":true}\n{\"close\":true}\n{\"request\":\"r\"}",
            &shell(peer),
        );
        let lines = output.lines();
        let error: Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(error["error"]["kind"], "closed", "{error}");
        assert_eq!(lines[1..3], [closed, closed]);
        let later: Value = serde_json::from_str(lines[3]).unwrap();
        assert_eq!(
            (&later["error"]["kind"], &later["error"]["delivery"]),
            (&json!("closed"), &json!("not_sent"))
        );
        assert_eq!(output.code, Some(1));
    }

    // Each answers once, so that it is known to have come as far as its loop.
    let ready = r#"read -r line; printf '{"jsonrpc":"2.0","id":1,"result":1}\n'"#;
    for (peer, closed) in [
        (
            "exec sleep 600",
            r#"{"closed":{"status":{"signal":15},"step":"sigterm"}}"#,
        ),
        (
            "while :; do sleep 600; done",
            r#"{"closed":{"status":{"signal":9},"step":"sigkill"}}"#,
        ),
    ] {
        let trap = if closed.contains("sigkill") {
            "trap '' TERM; "
        } else {
            ""
        };
        let output = script(
            "{\"request\":\"r\"}\n{\"close\":true}",
            &shell(&format!("{trap}{ready}; {peer}")),
        );
        assert_eq!(
            (output.code, output.lines()),
            (Some(0), vec![r#"{"ok":1}"#, closed])
        );
    }
}

#[test]
fn what_the_server_sends_unasked_is_shown_and_its_requests_are_answered() {
    let peer = r#"read -r request
ask() { printf '{"jsonrpc":"2.0","id":"%s","method":"%s","params":%s}\n' "$1" "$2" "$3"; read -r reply; all="$all$comma$reply"; comma=,; }
printf '{"jsonrpc":"2.0","method":"note","params":[1.00]}\n{"jsonrpc":"2.0","method":"bare"}\n'
ask a ping '{}'
ask b workspace/configuration '{"items":[{},{}]}'
ask c client/registerCapability '{"registrations":[]}'
ask d sampling/createMessage '{}'
printf '{"jsonrpc":"2.0","method":"last"}\n{"jsonrpc":"2.0","id":1,"result":[%s]}\n' "$all""#;
    let output = script(r#"{"request":"r"}"#, &shell(peer));
    let answers = r#"{"ok":[{"jsonrpc":"2.0","id":"a","result":{}},{"jsonrpc":"2.0","id":"b","result":[null,null]},{"jsonrpc":"2.0","id":"c","result":null},{"jsonrpc":"2.0","id":"d","error":{"code":-32601,"message":"method not found: sampling/createMessage"}}]}"#;
    assert_eq!((output.code, output.lines()), (Some(0), vec![answers]));
    let shown = r#"notification: note [1.00]
notification: bare
request "a": ping {}
request "b": workspace/configuration {"items":[{},{}]}
request "c": client/registerCapability {"registrations":[]}
request "d": sampling/createMessage {}
notification: last
"#;
    assert_eq!(output.stderr, shown);
}

#[test]
fn progress_is_shown_whoever_waits() {
    let params =
        json!({"name": "sleep", "arguments": {"seconds": 0.5}, "_meta": {"progressToken": 1}});
    let output = request("tools/call", &params);
    let shown = "notification: notifications/progress {\"progress\":1,\"progressToken\":1,\"total\":2}\n\
                 notification: notifications/progress {\"progress\":2,\"progressToken\":1,\"total\":2}\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), shown));
}

#[test]
fn stderr_and_what_was_survived_are_shown() {
    let peer = format!("read -r request; echo oops >&2; echo banner; {SILENT}");
    let mut child = start(&[&["--timeout", "1", "script", "-", "--"], &shell(&peer)[..]].concat());
    let mut steps = child.stdin.take().unwrap();
    steps.write_all(b"{\"request\":\"r\"}\n").unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap());
    let (line, mut notes) = guarded(move || {
        let mut line = String::new();
        notes.read_line(&mut line).unwrap();
        (line, notes)
    });
    assert_eq!(line, "stderr: oops\n");
    drop(steps);
    let rest = guarded(move || {
        let mut rest = String::new();
        notes.read_to_string(&mut rest).unwrap();
        rest
    });
    assert_eq!(rest, "survived: stray lines: 1\n  stray: banner\n");
    assert_eq!(finish(child).code, Some(1));
}

#[test]
fn a_server_that_does_not_start_is_told_in_the_form_asked_for() {
    let missing = "/no/such/program";
    let words =
        "cannot start /no/such/program: program not found: No such file or directory (os error 2)";
    let line =
        format!(r#"{{"error":{{"kind":"spawn","message":"{words}","delivery":"not_sent"}}}}"#);
    for output in [
        script("{\"request\":\"ping\"}\n", &[missing]),
        inspect(&["--json", "request", "ping", "--", missing]),
    ] {
        assert_eq!(
            (output.code, output.lines(), output.stderr.as_str()),
            (Some(1), vec![line.as_str()], "")
        );
    }
    let output = inspect(&["request", "ping", "--", missing]);
    let told = format!("{words}\n");
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr),
        (Some(1), "", told)
    );
}

#[test]
fn a_reader_that_goes_away_ends_it_without_a_word() {
    let words: Vec<&str> = [&["script", "-", "--"], &server()[..]].concat();
    for words in [&[][..], &words] {
        let mut child = start(words);
        drop(child.stdout.take());
        // The demonstration does not read it.
        let _ = child
            .stdin
            .take()
            .unwrap()
            .write_all(b"{\"request\":\"ping\"}\n{\"request\":\"ping\"}\n");
        let output = finish(child);
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(1), ""),
            "{words:?}"
        );
    }
}

#[test]
fn the_embedded_server_speaks_both_kinds_of_mcp() {
    let ok = |output: Output| -> Value {
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str::<Value>(&output.stdout).unwrap()["ok"].take()
    };
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let hello = ok(request("initialize", &json!({ "protocolVersion": asked })));
        assert_eq!(
            (&hello["protocolVersion"], &hello["resultType"]),
            (&json!(given), &Value::Null)
        );
    }

    let info = json!({"io.modelcontextprotocol/serverInfo": {"name": "landline-inspect", "version": env!("CARGO_PKG_VERSION")}});
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    assert_eq!(
        ok(request("server/discover", &json!({ "_meta": meta }))),
        json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"prompts": {}, "resources": {}, "tools": {}},
            "instructions": "A server to try a client on.",
            "ttlMs": 3_600_000,
            "cacheScope": "public",
            "_meta": info,
        })
    );
    for (name, arguments, text, failed) in [
        ("echo", json!({"text": "hé"}), "hé", Value::Null),
        ("add", json!({"a": 19, "b": 23}), "42", Value::Null),
        ("sleep", json!({"seconds": 0}), "slept well", Value::Null),
        ("fail", json!({}), "this tool always fails", json!(true)),
    ] {
        let mut params = json!({"name": name, "arguments": arguments});
        let legacy = ok(request("tools/call", &params));
        assert_eq!(
            (&legacy["content"][0]["text"], &legacy["isError"]),
            (&json!(text), &failed),
            "{name}"
        );
        assert_eq!(legacy["resultType"], Value::Null, "{name}");
        params["_meta"] = meta.clone();
        let modern = ok(request("tools/call", &params));
        assert_eq!(modern["content"], legacy["content"], "{name}");
        assert_eq!(
            (&modern["resultType"], &modern["_meta"]),
            (&json!("complete"), &info),
            "{name}"
        );
    }
}

#[test]
fn the_embedded_server_refuses_what_it_cannot_serve() {
    let modern = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    for (method, params, code) in [
        (
            "tools/call",
            json!({"name": "add", "arguments": {"a": 1}}),
            -32602,
        ),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"text": 1}}),
            -32602,
        ),
        (
            "tools/call",
            json!({"name": "sleep", "arguments": {"seconds": -1}}),
            -32602,
        ),
        ("tools/call", json!({"name": "fly"}), -32602),
        ("tools/call", json!({}), -32602),
        ("resources/read", json!({}), -32602),
        ("resources/read", json!({"uri": "inspect:tool/fly"}), -32002),
        (
            "resources/read",
            json!({"uri": "inspect:tool/fly", "_meta": modern}),
            -32602,
        ),
        ("prompts/get", json!({"name": "haiku"}), -32602),
        ("prompts/get", json!({"name": "sonnet"}), -32602),
        (
            "tools/call",
            json!({"name": "greet", "_meta": modern}),
            -32021,
        ),
        ("resources/subscribe", json!({}), -32601),
        ("ping", json!({"_meta": modern}), -32601),
        ("initialize", json!({"_meta": modern}), -32601),
    ] {
        let output = request(method, &params);
        let line: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(
            (output.code, &line["error"]["code"]),
            (Some(1), &json!(code)),
            "{method} {params}"
        );
    }
}
