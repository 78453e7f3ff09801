//! The small reference servers, each for its one purpose: legacy ones on the TypeScript SDK, modern
//! ones on the Python SDK.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use landline::mcp::{Client, Era, Error, Item, List, Revision, Root, Tool};
use landline::{ChildSpec, RpcError};
use serde_core::Serialize;
use serde_json::{Value, json};

use super::support::eventually;
use super::{client, connect, ends_well, folder, npm, pip, text, with_servers};

#[test]
fn filesystem_reads_writes_and_edits_where_it_may() {
    with_servers(|servers| {
        let folder = folder("filesystem");
        let dir = folder.to_str().unwrap();
        let spec = npm(servers, "mcp-server-filesystem").with_arg(dir).unwrap();
        let server = connect(&client(), &spec);
        presents_itself(&server, Era::Legacy, "secure-filesystem-server", "0.2.0");
        assert_eq!(names(&server.tools().unwrap()), FILESYSTEM_TOOLS);
        lists_nothing_else(&server);

        let file = format!("{dir}/a.txt");
        let write = json!({"path": file, "content": "one\ntwo\n"});
        let written = text(&server, "write_file", write);
        assert_eq!(written, format!("Successfully wrote to {file}"));
        let edits = json!([{"oldText": "two", "newText": "zwei 🦀"}]);
        let edited = text(&server, "edit_file", json!({"path": file, "edits": edits}));
        assert!(edited.contains("\n one\n-two\n+zwei 🦀\n"), "{edited}");
        let read = server
            .call_tool("read_text_file", json!({"path": file}))
            .unwrap();
        assert_eq!(read.all_text(), "one\nzwei 🦀\n");
        let structured: Value = read.structured_as().unwrap();
        assert_eq!(structured, json!({"content": "one\nzwei 🦀\n"}));
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\nzwei 🦀\n");
        let listed = text(&server, "list_directory", json!({"path": dir}));
        assert_eq!(listed, "[FILE] a.txt");

        let outside = json!({"path": "/etc/hostname"});
        let outside = server.call_tool("read_text_file", outside).unwrap();
        assert!(outside.is_error());
        let denied = "Access denied - path outside allowed directories: /etc/hostname not in";
        assert!(outside.all_text().starts_with(denied), "{outside:?}");
        ends_well(server.connection());
    });
}

#[test]
fn filesystem_works_in_the_roots_that_it_is_given() {
    with_servers(|servers| {
        let folder = folder("filesystem roots");
        let [argument, first, second] = ["argument", "first", "second"].map(|name| {
            let dir = folder.join(name);
            fs::create_dir(&dir).unwrap();
            dir
        });
        let current = Arc::new(Mutex::new(first.clone()));
        let roots = current.clone();
        let options =
            client().roots(move |_| vec![Root::from_path(&*roots.lock().unwrap()).unwrap()]);
        let spec = npm(servers, "mcp-server-filesystem")
            .with_arg(&argument)
            .unwrap();
        let server = connect(&options, &spec);
        // It asks for them in its own time, after the handshake.
        let works_in = |dir: &Path| {
            let expected = format!("Allowed directories:\n{}", dir.display());
            eventually(&expected, || {
                text(&server, "list_allowed_directories", ()) == expected
            });
        };
        works_in(&first);
        *current.lock().unwrap() = second.clone();
        server.roots_changed().unwrap();
        works_in(&second);
        ends_well(server.connection());
    });
}

#[test]
fn memory_keeps_what_it_is_told() {
    with_servers(|servers| {
        let file = folder("memory").join("memory.jsonl");
        let spec = npm(servers, "mcp-server-memory")
            .with_env("MEMORY_FILE_PATH", &file)
            .unwrap();
        let server = connect(&client(), &spec);
        presents_itself(&server, Era::Legacy, "memory-server", "0.6.3");
        let expected = [
            "create_entities",
            "create_relations",
            "add_observations",
            "delete_entities",
            "delete_observations",
            "delete_relations",
            "read_graph",
            "search_nodes",
            "open_nodes",
        ];
        assert_eq!(names(&server.tools().unwrap()), expected);
        let resources = server.resources().unwrap();
        let [graph] = &resources[..] else {
            panic!("{resources:?}");
        };
        assert_eq!(graph.uri(), "memory://knowledge-graph");
        assert_eq!(graph.title().unwrap(), "Knowledge Graph");
        assert_eq!(graph.mime_type().unwrap(), "application/json");
        is_empty(&server.resource_templates().unwrap());

        let ada =
            json!({"name": "Ada", "entityType": "person", "observations": ["wrote programs"]});
        let babbage = json!({"name": "Babbage", "entityType": "person", "observations": []});
        let knows = json!({"from": "Ada", "to": "Babbage", "relationType": "knows"});
        let entities = json!({"entities": [ada, babbage]});
        assert_eq!(structured(&server, "create_entities", &entities), entities);
        let relations = json!({"relations": [knows]});
        assert_eq!(
            structured(&server, "create_relations", &relations),
            relations
        );
        let found = structured(&server, "search_nodes", json!({"query": "Babbage"}));
        assert_eq!(found["entities"], json!([babbage]));

        let whole = json!({"entities": [ada, babbage], "relations": [knows]});
        assert_eq!(structured(&server, "read_graph", json!({})), whole);
        let read = server.read_resource(&graph.uri()).unwrap();
        let read = read.contents()[0].as_text().unwrap().into_owned();
        assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), whole);
        let kept = fs::read_to_string(file).unwrap();
        assert_eq!(kept.lines().count(), 3, "{kept}");
        ends_well(server.connection());
    });
}

#[test]
fn sequential_thinking_counts_its_thoughts() {
    with_servers(|servers| {
        let spec = npm(servers, "mcp-server-sequential-thinking");
        let server = connect(&client(), &spec);
        presents_itself(
            &server,
            Era::Legacy,
            "sequential-thinking-server",
            "2026.8.31",
        );
        assert_eq!(names(&server.tools().unwrap()), ["sequentialthinking"]);
        lists_nothing_else(&server);
        for number in 1..=3 {
            let thought = json!({
                "thought": format!("thought {number}"),
                "nextThoughtNeeded": number < 3,
                "thoughtNumber": number,
                "totalThoughts": 3,
            });
            let expected = json!({
                "thoughtNumber": number,
                "totalThoughts": 3,
                "nextThoughtNeeded": number < 3,
                "branches": [],
                "thoughtHistoryLength": number,
            });
            assert_eq!(structured(&server, "sequentialthinking", thought), expected);
        }
        ends_well(server.connection());
    });
}

#[test]
fn time_tells_and_converts_the_time() {
    with_servers(|servers| {
        let server = connect(&client(), &pip(servers, "mcp-server-time"));
        presents_itself(&server, Era::Modern, "mcp-time", "2026.10.19");
        let tools = server.tools().unwrap();
        assert_eq!(names(&tools), ["get_current_time", "convert_time"]);
        assert!(tools[0].is_read_only() && tools[0].output_schema().is_some());
        lists_empty(&server);

        let started = since_1970(SystemTime::now());
        let now = structured(&server, "get_current_time", json!({"timezone": "UTC"}));
        assert_eq!(
            (&now["timezone"], &now["is_dst"]),
            (&json!("UTC"), &json!(false))
        );
        let told = seconds(now["datetime"].as_str().unwrap());
        let ended = since_1970(SystemTime::now());
        assert!((started..=ended).contains(&told), "{now}");

        let noon = json!({
            "source_timezone": "UTC",
            "time": "12:00",
            "target_timezone": "Asia/Kathmandu",
        });
        let converted = structured(&server, "convert_time", noon);
        assert_eq!(converted["time_difference"], "+5.75h");
        let [source, target] = ["source", "target"]
            .map(|side| converted[side]["datetime"].as_str().unwrap().to_owned());
        assert!(source.ends_with("T12:00:00+00:00"), "{source}");
        assert!(target.ends_with("T17:45:00+05:45"), "{target}");

        let nowhere = json!({"timezone": "Nowhere/Land"});
        let nowhere = server.call_tool("get_current_time", nowhere).unwrap();
        assert!(nowhere.is_error());
        let why = "Invalid timezone: 'No time zone found with key Nowhere/Land'";
        assert!(nowhere.all_text().ends_with(why), "{nowhere:?}");
        ends_well(server.connection());
    });
}

#[test]
fn git_commits_and_shows_what_was_committed() {
    with_servers(|servers| {
        let repository = Repository::new("git");
        let server = connect(&client(), &repository.server(servers));
        presents_itself(&server, Era::Modern, "mcp-git", "2026.10.19");
        assert_eq!(names(&server.tools().unwrap()), GIT_TOOLS);
        lists_empty(&server);

        let path = &repository.path;
        let here = json!({"repo_path": path});
        let status = text(&server, "git_status", &here);
        assert!(
            status.starts_with("Repository status:\nOn branch main\n"),
            "{status}"
        );
        assert!(status.contains("Untracked files:\n"), "{status}");
        let files = json!({"repo_path": path, "files": ["a.txt"]});
        assert_eq!(text(&server, "git_add", files), "Files staged successfully");
        let message = json!({"repo_path": path, "message": "grüße"});
        let committed = text(&server, "git_commit", message);
        // As git has it of the same content, author, and time.
        let words = format!("Changes committed successfully with hash {COMMIT}");
        assert_eq!(committed, words);
        let log = text(&server, "git_log", &here);
        let facts = "Author: A\nDate: 2026-01-02 03:04:05+00:00\nMessage: grüße";
        assert_eq!(
            log.trim(),
            format!("Commit history:\nCommit: {COMMIT}\n{facts}")
        );

        fs::write(Path::new(path).join("a.txt"), "one\ntwo\n").unwrap();
        let diff = text(&server, "git_diff_unstaged", &here);
        assert!(
            diff.starts_with("Unstaged changes:\ndiff --git a/a.txt b/a.txt\n"),
            "{diff}"
        );
        assert!(diff.ends_with("\n one\n+two"), "{diff}");
        ends_well(server.connection());
    });
}

#[test]
fn the_same_program_runs_against_a_legacy_and_a_modern_server() {
    /// Knows nothing of eras.
    fn program(server: &Client) -> String {
        let tools = server.tools().unwrap();
        let tool = tools.iter().find(|tool| tool.is_read_only()).unwrap();
        let failed = server
            .call_tool(&tool.name(), json!({"no": "such argument"}))
            .unwrap();
        assert!(failed.is_error());
        let unknown = server.request::<Value>("no/such", ()).unwrap_err();
        assert_eq!(unknown.rpc().unwrap().code, RpcError::METHOD_NOT_FOUND);
        tool.name().into_owned()
    }
    with_servers(|servers| {
        let legacy = npm(servers, "mcp-server-filesystem")
            .with_arg(folder("either"))
            .unwrap();
        let modern = pip(servers, "mcp-server-time");
        for (spec, era, tool) in [
            (legacy, Era::Legacy, "read_file"),
            (modern, Era::Modern, "get_current_time"),
        ] {
            let server = connect(&client(), &spec);
            assert_eq!(server.server().era(), era);
            assert_eq!(program(&server), tool);
            ends_well(server.connection());
        }
    });
}

#[test]
fn a_server_of_both_eras_is_legacy_to_a_client_that_wants_it_so() {
    with_servers(|servers| {
        let spec = pip(servers, "mcp-server-time");
        for revision in [Revision::V2025_11_25, Revision::V2024_11_05] {
            let server = connect(&client().revision(revision), &spec);
            assert_eq!(server.server().revision(), revision);
            let tools = server.tools().unwrap();
            assert_eq!(names(&tools), ["get_current_time", "convert_time"]);
            server.ping().unwrap();
            ends_well(server.connection());
        }
        // Or that remembers it so: the handshake comes first, and there is no reason to probe.
        let server = connect(&client().remembered(Era::Legacy), &spec);
        assert_eq!(server.server().revision(), Revision::V2025_11_25);
        ends_well(server.connection());
    });
}

/// Checks what a server says of itself, and that it says so in the era it is known for.
fn presents_itself(server: &Client, era: Era, name: &str, version: &str) {
    let hello = server.server();
    assert_eq!(hello.era(), era);
    let newest = match era {
        Era::Legacy => "2025-11-25",
        _ => "2026-07-28",
    };
    assert_eq!(hello.version(), newest);
    let program = hello.implementation().unwrap();
    assert_eq!(
        (program.name().unwrap(), program.version().unwrap()),
        (name.into(), version.into())
    );
    assert_eq!(hello.oddities(), [""; 0]);
}

/// What a server declares no capability for is not asked for.
fn lists_nothing_else(server: &Client) {
    let refusals = [
        (server.resources().unwrap_err(), "resources"),
        (server.resource_templates().unwrap_err(), "resources"),
        (server.prompts().unwrap_err(), "prompts"),
    ];
    for (refusal, needed) in refusals {
        let right =
            matches!(&refusal, Error::NotSupported { capability, .. } if *capability == needed);
        assert!(right, "{refusal}");
    }
}

/// Servers of the Python SDK declare every list, and have it, if with nothing in it.
fn lists_empty(server: &Client) {
    is_empty(&server.resources().unwrap());
    is_empty(&server.resource_templates().unwrap());
    is_empty(&server.prompts().unwrap());
}

fn is_empty<T: Item + std::fmt::Debug>(list: &List<T>) {
    assert!(list.is_empty() && list.unusable().is_empty(), "{list:?}");
    assert_eq!(list.stopped(), None);
}

fn names(tools: &List<Tool>) -> Vec<String> {
    assert!(tools.stopped().is_none() && tools.unusable().is_empty());
    tools.iter().map(|tool| tool.name().into_owned()).collect()
}

/// Calls a tool that does not fail, and gives its structured result.
fn structured(server: &Client, tool: &str, arguments: impl Serialize) -> Value {
    let result = server.call_tool(tool, arguments).unwrap();
    assert!(!result.is_error(), "{result:?}");
    result.structured_as().unwrap()
}

/// A repository with one new file, in a world where commits have a fixed time and author.
struct Repository {
    path: String,
}

impl Repository {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        fs::write(folder.join("a.txt"), "one\n").unwrap();
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.args(args).current_dir(&folder).envs(WORLD);
            assert!(command.status().unwrap().success(), "{args:?}");
        };
        git(&["init", "--quiet", "--initial-branch=main"]);
        git(&["config", "user.name", "A"]);
        git(&["config", "user.email", "a@example.com"]);
        let path = folder.to_str().unwrap().to_owned();
        Repository { path }
    }

    fn server(&self, servers: &Path) -> ChildSpec {
        let spec = pip(servers, "mcp-server-git");
        let spec = spec.with_args(["--repository", &self.path]).unwrap();
        let world = WORLD.into_iter();
        world.fold(spec, |spec, (name, value)| {
            spec.with_env(name, value).unwrap()
        })
    }
}

/// The seconds since 1970 of a time such as `2026-11-30T12:00:00+00:00`.
fn seconds(time: &str) -> u64 {
    let time = time.strip_suffix("+00:00").unwrap();
    let numbers = time.split(['-', 'T', ':']);
    let numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
    let [year, month, day, hours, minutes, seconds] = numbers[..] else {
        panic!("{time}");
    };
    // A year that begins in March has its leap day at the end.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let days_until_1970 = 719_469;
    ((days - days_until_1970) * 24 + hours) * 3600 + minutes * 60 + seconds
}

fn since_1970(time: SystemTime) -> u64 {
    let since: Duration = time.duration_since(UNIX_EPOCH).unwrap();
    since.as_secs()
}

const WORLD: [(&str, &str); 4] = [
    ("GIT_AUTHOR_DATE", "1767323045 +0000"),
    ("GIT_COMMITTER_DATE", "1767323045 +0000"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
];

const COMMIT: &str = "63ffb913c85a7f535e32372626c5122c0b16fd21";

const FILESYSTEM_TOOLS: [&str; 14] = [
    "read_file",
    "read_text_file",
    "read_media_file",
    "read_multiple_files",
    "write_file",
    "edit_file",
    "create_directory",
    "list_directory",
    "list_directory_with_sizes",
    "directory_tree",
    "move_file",
    "search_files",
    "get_file_info",
    "list_allowed_directories",
];

const GIT_TOOLS: [&str; 12] = [
    "git_status",
    "git_diff_unstaged",
    "git_diff_staged",
    "git_diff",
    "git_commit",
    "git_add",
    "git_reset",
    "git_log",
    "git_create_branch",
    "git_checkout",
    "git_show",
    "git_branch",
];
