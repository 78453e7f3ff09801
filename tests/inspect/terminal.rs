//! At a terminal: the bar of a long call, and the questions of servers to the user.
//!
//! The terminal is a pseudo-terminal of its own, and the controlling one of the example, so that
//! whoever runs these tests at a terminal is not asked.
#![allow(
    unsafe_code,
    reason = "only the C library opens a terminal and makes it the controlling one"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Command, Stdio};
use std::{fs, ptr};

use serde_json::{Value, json};

use super::{Output, SILENT, example, finish, guarded, server, shell};

/// What it takes to sit at a terminal: keys in, the screen out.
struct Terminal {
    master: Option<File>,
    screen: String,
}

/// Which of the example's streams are the terminal; the others are pipes.
struct At {
    stdin: bool,
    stderr: bool,
}

impl Terminal {
    fn start(at: &At, words: &[&str]) -> (Self, Child) {
        let (mut master, mut slave) = (0, 0);
        // SAFETY: two places for descriptors, and defaults for the rest.
        let opened = unsafe {
            libc::openpty(
                &mut master,
                &mut slave,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        assert_eq!(opened, 0);
        for end in [master, slave] {
            // Or the children of other tests would inherit it.
            // SAFETY: plain numbers.
            unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        // SAFETY: both were opened above and belong to nobody else.
        let (master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
        let end = |is_terminal: bool| {
            if is_terminal {
                Stdio::from(slave.try_clone().unwrap())
            } else {
                Stdio::piped()
            }
        };
        let terminal = if at.stderr { 2 } else { 0 };
        let mut command = Command::new(example());
        command
            .args(words)
            .stdin(end(at.stdin))
            .stdout(Stdio::piped())
            .stderr(end(at.stderr));
        // SAFETY: both are allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                let is_its_own =
                    libc::setsid() != -1 && libc::ioctl(terminal, libc::TIOCSCTTY as _, 0) != -1;
                if is_its_own {
                    Ok(())
                } else {
                    Err(std::io::Error::last_os_error())
                }
            });
        }
        let child = command.spawn().unwrap();
        let screen = String::new();
        let master = Some(master);
        (Terminal { master, screen }, child)
    }

    /// Waits until these words are on the screen, after those waited for before.
    fn until(&mut self, words: &str) -> String {
        let (wanted, mut screen) = (words.to_owned(), std::mem::take(&mut self.screen));
        let mut master = self.master.take().unwrap();
        let (master, before, rest) = guarded(move || {
            let mut bytes = [0; 4096];
            loop {
                if let Some(at) = screen.find(&wanted) {
                    let rest = screen.split_off(at + wanted.len());
                    return (master, screen, rest);
                }
                // It fails when nobody has the other end any more.
                let n = master.read(&mut bytes).unwrap_or(0);
                assert!(n > 0, "no {wanted:?} on the screen: {screen:?}");
                screen.push_str(std::str::from_utf8(&bytes[..n]).unwrap());
            }
        });
        (self.master, self.screen) = (Some(master), rest);
        before
    }

    fn type_in(&mut self, keys: &str) {
        let master = self.master.as_mut().unwrap();
        master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a question and answers it.
    fn answer(&mut self, question: &str, answer: &str) {
        self.until(question);
        self.type_in(&format!("{answer}\n"));
    }

    /// What is on the screen at the end.
    fn rest(mut self, child: Child) -> (String, Output) {
        let (mut screen, mut master) = (self.screen, self.master.take().unwrap());
        let screen = guarded(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = master.read(&mut bytes) {
                screen.push_str(std::str::from_utf8(&bytes[..n]).unwrap());
            }
            screen
        });
        (screen, finish(child))
    }
}

const BOTH: At = At {
    stdin: true,
    stderr: true,
};

fn greet(at: &At, era: &str) -> (Terminal, Child) {
    let words = [&["--era", era, "call", "greet", "--"], &server()[..]].concat();
    Terminal::start(at, &words)
}

#[test]
fn the_user_is_asked_and_sees_the_answer_before_it_goes() {
    for era in ["modern", "legacy"] {
        let (mut terminal, child) = greet(&BOTH, era);
        let asked = terminal.until("Fill in the form? (yes/no/cancel) ");
        assert_eq!(
            asked,
            "The server landline-inspect asks: Who is to be greeted?\r\n\
             Fill in the form? (yes/no/cancel) "
        );
        terminal.type_in("perhaps\ny\n");
        terminal.until("Fill in the form? (yes/no/cancel) ");
        // A required field is asked for until it is there.
        terminal.answer("  name: ", "");
        terminal.until("  it is required\r\n");
        terminal.answer("  name: ", "Bda");
        terminal.until("{\"name\":\"Bda\"}\r\n");
        terminal.answer("Send it? (yes/edit/no/cancel) ", "edit");
        terminal.answer("  name: ", "Ada");
        terminal.until("{\"name\":\"Ada\"}\r\n");
        terminal.answer("Send it? (yes/edit/no/cancel) ", "yes");
        let (rest, output) = terminal.rest(child);
        assert_eq!(
            (output.code, output.stdout.as_str(), rest.as_str()),
            (Some(0), "Hello, Ada!\n", "yes\r\n"),
            "{era}"
        );
    }
}

#[test]
fn the_user_can_decline_cancel_or_go_away() {
    let declined = "Nobody is greeted: the user declined.\n";
    let cancelled = "Nobody is greeted: the user gave no answer.\n";
    for era in ["modern", "legacy"] {
        for (keys, greeting) in [
            ("no\n", declined),
            ("cancel\n", cancelled),
            ("yes\nAda\nno\n", declined),
            ("yes\nAda\ncancel\n", cancelled),
            // The end of the input.
            ("\u{4}", cancelled),
            ("yes\n\u{4}", cancelled),
        ] {
            let (mut terminal, child) = greet(&BOTH, era);
            terminal.until("Fill in the form? (yes/no/cancel) ");
            terminal.type_in(keys);
            let (_, output) = terminal.rest(child);
            assert_eq!(
                (output.code, output.stdout.as_str()),
                (Some(0), greeting),
                "{era} {keys:?}"
            );
        }
    }
}

#[test]
fn the_user_is_asked_at_the_terminal_when_stdin_or_stderr_is_none() {
    for at in [
        At {
            stdin: false,
            stderr: true,
        },
        At {
            stdin: true,
            stderr: false,
        },
    ] {
        let (mut terminal, child) = greet(&at, "legacy");
        terminal.answer("Fill in the form? (yes/no/cancel) ", "yes");
        terminal.answer("  name: ", "Eve");
        terminal.answer("Send it? (yes/edit/no/cancel) ", "yes");
        let (_, output) = terminal.rest(child);
        assert_eq!(
            (output.code, output.stdout.as_str(), output.stderr.as_str()),
            (Some(0), "Hello, Eve!\n", "")
        );
    }
}

#[test]
fn the_demonstration_asks_whoever_sits_there() {
    let (mut terminal, child) = Terminal::start(&BOTH, &[]);
    terminal.answer("Fill in the form? (yes/no/cancel) ", "yes");
    terminal.answer("  name: ", "Zoe");
    terminal.answer("Send it? (yes/edit/no/cancel) ", "yes");
    let (_, output) = terminal.rest(child);
    assert_eq!(output.code, Some(0), "{output:?}");
    let greeted = "asks the user something before it answers:\n  Hello, Zoe!\n";
    assert!(output.stdout.contains(greeted), "{}", output.stdout);
}

/// A server of the legacy era, pinned, whose tool asks this and gives back the answer.
fn asking(params: &str) -> String {
    format!(
        r#"say() {{ printf '%s\n' "$1"; }}
read -r hello; say '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"script","version":"1"}}}}}}'
read -r initialized; read -r call
say '{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{params}}}'
read -r reply; say '{{"jsonrpc":"2.0","id":2,"result":{{"content":[],"reply":'"$reply"'}}}}'
{SILENT}"#
    )
}

fn asked(peer: &str) -> (Terminal, Child) {
    let words = ["--json", "--era", "legacy", "call", "ask", "--"];
    Terminal::start(&BOTH, &[&words[..], &shell(peer)].concat())
}

/// What the client answered.
fn replied(output: &Output) -> Value {
    assert_eq!(output.code, Some(0), "{output:?}");
    let mut document: Value = serde_json::from_str(&output.stdout).unwrap();
    document["ok"]["reply"]["result"].take()
}

#[test]
fn a_form_takes_what_its_fields_allow() {
    let schema = json!({"message": "All of it\u{1b}[2J.", "requestedSchema": {"type": "object", "required": ["size"], "properties": {
        "word": {"type": "string", "title": "A word", "description": "any", "minLength": 2, "maxLength": 3},
        "size": {"type": "integer", "minimum": 1, "maximum": 5},
        "share": {"type": "number", "default": 0.5},
        "sure": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]},
        "day": {"type": "string", "oneOf": [{"const": "mo", "title": "Monday"}, {"const": "tu", "title": "Tuesday"}]},
        "some": {"type": "array", "minItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}},
        "left": {"type": "string"},
    }}});
    // The members in an order of the server's own, which is kept: not that of the alphabet.
    let mut params = schema.to_string();
    let left = r#""left":{"type":"string"},"#;
    assert!(params.contains(left), "{params}");
    params = params.replace(left, "");
    params = params.replace(r#""properties":{"#, &format!(r#""properties":{{{left}"#));

    let (mut terminal, child) = asked(&asking(&params));
    let said = terminal.until("Fill in the form? (yes/no/cancel) ");
    assert!(
        said.starts_with("The server script asks: All of it.\r\n"),
        "{said}"
    );
    terminal.type_in("yes\n");
    terminal.answer("  left [nothing]: ", "");
    terminal.answer(
        "  colour\r\n    1: red\r\n    2: green\r\n  one of these [nothing]: ",
        "3",
    );
    terminal.until("  `3` is none of them\r\n");
    terminal.answer("one of these [nothing]: ", "2");
    terminal.answer(
        "1: Monday\r\n    2: Tuesday\r\n  one of these [nothing]: ",
        "mo",
    );
    terminal.answer("  share [0.5]: ", "");
    terminal.answer("  size: ", "9");
    terminal.until("  it is at most 5\r\n");
    terminal.answer("  size: ", "0");
    terminal.until("  it is at least 1\r\n");
    terminal.answer("  size: ", "2.5");
    terminal.until("  it is a whole number\r\n");
    terminal.answer("  size: ", "3");
    terminal.answer("  some of these, commas between [nothing]: ", "b");
    terminal.until("  it is at least 2 of them\r\n");
    terminal.answer("  some of these, commas between [nothing]: ", "c, 1");
    terminal.answer("  sure, yes or no [nothing]: ", "maybe");
    terminal.until("  it is yes or no\r\n");
    terminal.answer("  sure, yes or no [nothing]: ", "no");
    terminal.answer("  A word (any) [nothing]: ", "x");
    terminal.until("  it is at least 2 characters\r\n");
    terminal.answer("  A word (any) [nothing]: ", "öäü");
    terminal.answer("Send it? (yes/edit/no/cancel) ", "yes");
    let (_, output) = terminal.rest(child);
    let content = json!({
        "colour": "g",
        "day": "mo",
        "share": 0.5,
        "size": 3,
        "some": ["c", "a"],
        "sure": false,
        "word": "öäü",
    });
    assert_eq!(
        replied(&output),
        json!({"action": "accept", "content": content})
    );
}

#[test]
fn a_page_is_shown_in_full_and_visited_only_by_the_user() {
    let page = r#"{"mode":"url","elicitationId":"1","message":"Sign in","url":"https://example.org/a?b=c#d"}"#;
    for (answer, action) in [("yes", "accept"), ("no", "decline"), ("cancel", "cancel")] {
        let (mut terminal, child) = asked(&asking(page));
        let said = terminal.until("Will you open it in your browser? (yes/no/cancel) ");
        assert_eq!(
            said,
            "The server script asks: Sign in\r\n\
             It wants you to visit this page:\r\n  https://example.org/a?b=c#d\r\n\
             Will you open it in your browser? (yes/no/cancel) "
        );
        terminal.type_in(&format!("{answer}\n"));
        let (_, output) = terminal.rest(child);
        assert_eq!(replied(&output), json!({ "action": action }));
    }
}

#[test]
fn the_end_of_the_server_ends_a_call_whose_question_is_open() {
    let form = r#"{"message":"Well?","requestedSchema":{"type":"object","properties":{}}}"#;
    let file = std::env::temp_dir().join(format!("landline-inspect-end-{}", process::id()));
    let end = format!(
        "while ! [ -e '{}' ]; do sleep 0.05; done; exit 3; ",
        file.display()
    );
    let (mut terminal, child) = asked(&asking(form).replace("read -r reply; ", &end));
    terminal.until("Fill in the form? (yes/no/cancel) ");
    // Nobody answers.
    fs::write(&file, "").unwrap();
    let (_, output) = terminal.rest(child);
    fs::remove_file(&file).unwrap();
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (output.code, &document["error"]["kind"]),
        (Some(1), &json!("closed"))
    );
}

#[test]
fn a_long_call_draws_a_bar_and_takes_it_away() {
    for era in ["modern", "legacy"] {
        let words = ["--era", era, "call", "sleep", r#"{"seconds":0.5}"#, "--"];
        let (terminal, child) = Terminal::start(&BOTH, &[&words[..], &server()].concat());
        let (screen, output) = terminal.rest(child);
        let half = format!("\r\x1b[K[{}{}] 1 of 2", "#".repeat(15), ".".repeat(15));
        let whole = format!("\r\x1b[K[{}] 2 of 2", "#".repeat(30));
        assert_eq!(screen, format!("{half}{whole}\r\x1b[K"), "{era}");
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(0), "slept well\n")
        );
    }
}

#[test]
fn a_bar_keeps_to_its_line_and_makes_room_for_notes() {
    let told = |progress: &str| {
        format!(
            r#"say '{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,{progress}}}}}'"#
        )
    };
    let long = format!(
        r#""progress":3,"message":"two\nlines\u0007 {}""#,
        "x".repeat(100)
    );
    let peer = format!(
        r#"say() {{ printf '%s\n' "$1"; }}
read -r hello; say '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"script","version":"1"}}}}}}'
read -r initialized; read -r call
{}; {}; {}; say '{{"jsonrpc":"2.0","id":2,"result":{{"content":[],"isError":true}}}}'
{SILENT}"#,
        told(r#""progress":5,"total":4"#),
        told(r#""progress":1,"total":0"#),
        told(&long),
    );
    let words = ["--era", "legacy", "call", "long", "--"];
    let (terminal, child) = Terminal::start(&BOTH, &[&words[..], &shell(&peer)].concat());
    let (screen, output) = terminal.rest(child);
    let line = format!("3: two lines {}", "x".repeat(100));
    assert_eq!(
        screen,
        format!(
            "\r\x1b[K[{}] 5 of 4\r\x1b[K1 of 0\r\x1b[K{}\r\x1b[Kthe tool says that it failed\r\n",
            "#".repeat(30),
            &line[..79],
        )
    );
    assert_eq!(output.code, Some(1));
}
