//! Connecting: the era, the version, and what is said when there is none.

use landline::mcp::{Era, Options, Revision};
use serde_json::json;

use super::server::{during, legacy, modern};

fn options() -> Options {
    Options::new("test", "1")
}

#[test]
fn c043_a_server_that_answers_the_probe_is_modern_and_is_not_greeted() {
    let (client, mut script) = modern(&options(), json!({"tools": {}}));
    assert_eq!(client.server().era(), Era::Modern);
    assert_eq!(client.server().revision(), Revision::V2026_07_28);
    assert_eq!(
        client.server().implementation().unwrap().name().unwrap(),
        "script"
    );
    let tools = during(
        || client.tools(),
        || {
            let list = script.recv();
            assert_eq!(list["method"], "tools/list");
            script.answer(&list, json!({"tools": [{"name": "a", "inputSchema": {}}]}));
        },
    );
    assert_eq!(tools.unwrap()[0].name(), "a");
    drop(client);
    assert_eq!(script.rest(), "");
}

#[test]
fn c045_a_server_that_refuses_the_probe_is_greeted() {
    let (client, script) = legacy(&options(), "2025-11-25", json!({"tools": {}}));
    assert_eq!(client.server().era(), Era::Legacy);
    assert_eq!(client.server().version(), "2025-11-25");
    drop(client);
    assert_eq!(script.rest(), "");
}
