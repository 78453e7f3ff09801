//! What the crate promises about itself: what it is built from, and how it is written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use landline::{
    Call, CallOptions, CancelToken, ChildSpec, ClocksStopped, Closed, Connection, Dialect, Error,
    Incoming, Notification, Options, Peer, Request, Responder, RpcError, SpawnError, Survived,
    Update,
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn p20_the_build_is_thirteen_crates_beside_this_one() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "-e",
            "normal",
            "--prefix",
            "none",
            "--locked",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "landline")
        .collect();
    assert_eq!(crates.len(), 13, "{crates:?}");
    for ours in ["thiserror", "serde_json", "crossbeam-channel", "serde_core"] {
        assert!(crates.contains(ours), "{ours}");
    }
}

/// The sources, each with its code: without comments, and without the tests beside it.
fn sources() -> Vec<(PathBuf, Vec<String>)> {
    let (mut folders, mut sources) = (vec![root().join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() != "tests.rs" {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("\n#[cfg(test)]\n").next().unwrap();
                let code = code
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.starts_with("//"));
                sources.push((
                    path.strip_prefix(root()).unwrap().into(),
                    code.map(String::from).collect(),
                ));
            }
        }
    }
    assert!(sources.len() > 15, "{sources:?}");
    sources
}

/// The places at which any of these stands in the code.
fn places(words: &[&str]) -> Vec<String> {
    let mut places = Vec::new();
    for (path, code) in sources() {
        for line in &code {
            if words.iter().any(|word| line.contains(word)) {
                places.push(format!("{}: {line}", path.display()));
            }
        }
    }
    places
}

#[test]
fn p20_unsafe_code_stands_in_one_file() {
    let places = places(&["unsafe "]);
    assert!(!places.is_empty(), "the search finds nothing at all");
    let elsewhere: Vec<_> = places
        .iter()
        .filter(|place| !place.starts_with("src/sys.rs"))
        .collect();
    assert_eq!(elsewhere, [""; 0]);
}

#[test]
fn p20_nothing_is_printed_and_nothing_panics_by_carelessness() {
    let careless = [
        "print!(",
        "println!(",
        "eprint!(",
        "eprintln!(",
        "dbg!(",
        "todo!(",
        "unimplemented!(",
        "panic!(",
        ".unwrap()",
        "process::exit",
        "set_hook",
    ];
    assert_eq!(places(&careless), [""; 0]);
}

#[test]
fn no_file_is_longer_than_can_be_read_at_once() {
    for entry in sources() {
        let text = fs::read_to_string(root().join(&entry.0)).unwrap();
        let lines = text
            .split("\n#[cfg(test)]\n")
            .next()
            .unwrap()
            .lines()
            .count();
        assert!(lines <= 600, "{} has {lines} lines", entry.0.display());
    }
}

#[test]
fn no_comment_is_wider_than_a_hundred_columns() {
    for entry in sources() {
        let text = fs::read_to_string(root().join(&entry.0)).unwrap();
        let mut in_example = false;
        for line in text
            .lines()
            .filter(|line| line.trim_start().starts_with("//"))
        {
            let words = line.trim_start().trim_start_matches(['/', '!', ' ']);
            in_example ^= words.starts_with("```");
            // Neither a table nor code can be broken anywhere.
            if !in_example && !words.starts_with('|') {
                assert!(line.chars().count() <= 100, "{}: {line}", entry.0.display());
            }
        }
    }
}

#[test]
fn the_mcp_client_names_nothing_of_the_crate_that_is_not_public() {
    let mut seen = 0;
    for (path, code) in sources() {
        if !path.starts_with("src/mcp") && !path.starts_with("src/mcp.rs") {
            continue;
        }
        for part in code.iter().flat_map(|line| line.split("crate::").skip(1)) {
            seen += 1;
            // Types stand at the top, modules that are public are these.
            let name: String = part.chars().take_while(|c| c.is_alphanumeric()).collect();
            let is_public = name.is_empty()
                || name.starts_with(char::is_uppercase)
                || ["json", "quote", "mcp"].contains(&name.as_str());
            assert!(is_public, "{}: crate::{part}", path.display());
        }
    }
    assert!(seen > 50, "the search finds nothing at all");
}

#[test]
fn no_foreign_channel_is_part_of_the_public_surface() {
    for (path, code) in sources() {
        for line in code
            .iter()
            .filter(|line| line.starts_with("pub ") && !line.starts_with("pub use"))
        {
            let foreign = ["crossbeam", "Sender<", "Receiver<", "Select"];
            let found = foreign.iter().find(|name| line.contains(**name));
            assert_eq!(found, None, "{}: {line}", path.display());
        }
    }
    assert_eq!(places(&["pub use crossbeam", "pub extern"]), [""; 0]);
}

#[test]
fn what_is_handed_from_thread_to_thread_can_be() {
    fn sent<T: Send + 'static>() {}
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Connection>();
    shared::<Peer>();
    shared::<Error>();
    shared::<Closed>();
    shared::<SpawnError>();
    shared::<RpcError>();
    shared::<Options>();
    shared::<CallOptions>();
    shared::<CancelToken>();
    shared::<Dialect>();
    shared::<ChildSpec>();
    shared::<Survived>();
    shared::<Notification>();
    shared::<Request>();
    sent::<Call>();
    sent::<Update>();
    sent::<Incoming>();
    sent::<Responder>();
    sent::<ClocksStopped>();
}
