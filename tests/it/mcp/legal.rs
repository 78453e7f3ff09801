//! What each revision allows a client to write: a table of its requests and notifications, and the
//! form of its answers.

use std::collections::{BTreeSet, HashSet};

use landline::mcp::Revision;
use serde_json::{Map, Value, json};

const FIRST: Revision = Revision::V2024_11_05;
pub(super) const BATCHES: Revision = Revision::V2025_03_26;
const ELICITS: Revision = Revision::V2025_06_18;
pub(super) const MODES: Revision = Revision::V2025_11_25;
pub(super) const MODERN: Revision = Revision::V2026_07_28;

/// A message that a client may send, from one revision to another; the members that its params must
/// have, and those that they may have from some revision on.
pub(super) struct Legal {
    pub(super) method: &'static str,
    pub(super) in_revisions: (Revision, Revision),
    must: Members,
    may: Since,
}

type Members = &'static [&'static str];
type Since = &'static [(&'static str, Revision)];

const fn legal(
    method: &'static str,
    in_revisions: (Revision, Revision),
    must: Members,
    may: Since,
) -> Legal {
    Legal {
        method,
        in_revisions,
        must,
        may,
    }
}

const ALL: (Revision, Revision) = (FIRST, MODERN);
const LEGACY: (Revision, Revision) = (FIRST, MODES);
const META: (&str, Revision) = ("_meta", FIRST);
const CURSOR: Since = &[("cursor", FIRST), META];
const RETRY: Since = &[("inputResponses", MODERN), ("requestState", MODERN), META];
const CALL: Since = &[
    ("arguments", FIRST),
    ("inputResponses", MODERN),
    ("requestState", MODERN),
    META,
];

pub(super) const REQUESTS: &[Legal] = &[
    legal(
        "initialize",
        LEGACY,
        &["protocolVersion", "capabilities", "clientInfo"],
        &[],
    ),
    legal("server/discover", (MODERN, MODERN), &["_meta"], &[]),
    legal("ping", LEGACY, &[], &[META]),
    legal("tools/list", ALL, &[], CURSOR),
    legal("tools/call", ALL, &["name"], CALL),
    legal("resources/list", ALL, &[], CURSOR),
    legal("resources/templates/list", ALL, &[], CURSOR),
    legal("resources/read", ALL, &["uri"], RETRY),
    legal("prompts/list", ALL, &[], CURSOR),
    legal("prompts/get", ALL, &["name"], CALL),
    legal(
        "completion/complete",
        ALL,
        &["ref", "argument"],
        &[("context", ELICITS), META],
    ),
    legal("logging/setLevel", LEGACY, &["level"], &[META]),
    // The caller's own, as it wants it.
    legal("com.example/any", ALL, &["a"], &[META]),
];

pub(super) const NOTIFICATIONS: &[Legal] = &[
    legal("notifications/initialized", LEGACY, &[], &[]),
    legal(
        "notifications/cancelled",
        ALL,
        &["requestId"],
        &[("reason", FIRST)],
    ),
    legal("notifications/roots/list_changed", LEGACY, &[], &[]),
];

fn members(value: &Value) -> BTreeSet<&str> {
    let Some(map) = value.as_object() else {
        panic!("no object: {value}");
    };
    map.keys().map(String::as_str).collect()
}

/// Checks that an object has these members and perhaps those, and no others.
fn has(value: &Value, must: &[&str], may: &[&str]) {
    let found = members(value);
    let must: BTreeSet<_> = must.iter().copied().collect();
    let any = must.iter().copied().chain(may.iter().copied()).collect();
    assert!(must.is_subset(&found), "{value} has not all of {must:?}");
    assert!(found.is_subset(&any), "{value} has more than {any:?}");
}

/// Checks a request or notification against its table.
fn check_call(revision: Revision, table: &[Legal], message: &Value) {
    let legal = table.iter().find(|legal| message["method"] == legal.method);
    let legal = legal.unwrap_or_else(|| panic!("{revision} has no {message}"));
    let (from, to) = legal.in_revisions;
    assert!(from <= revision && revision <= to, "{revision}: {message}");
    let nothing = Value::Object(Map::new());
    let params = message.get("params").unwrap_or(&nothing);
    let may = legal.may.iter().filter(|(_, since)| *since <= revision);
    let may: Vec<_> = may.map(|(name, _)| *name).collect();
    has(params, legal.must, &may);
    if message.get("id").is_none() {
        return;
    }
    match params.get("_meta") {
        Some(meta) => check_meta(revision, meta),
        None => assert_ne!(revision, MODERN, "{message}"),
    }
    match legal.method {
        "initialize" => {
            assert_eq!(params["protocolVersion"], revision.as_str());
            check_sender(revision, &params["clientInfo"], &params["capabilities"]);
        }
        "completion/complete" => {
            has(&params["argument"], &["name", "value"], &[]);
            let reference = &params["ref"];
            match reference["type"].as_str() {
                Some("ref/prompt") => has(reference, &["type", "name"], &[]),
                Some("ref/resource") => has(reference, &["type", "uri"], &[]),
                _ => panic!("{message}"),
            }
            if let Some(context) = params.get("context") {
                has(context, &["arguments"], &[]);
            }
        }
        _ => {}
    }
    if let Some(answers) = params.get("inputResponses") {
        for (key, answer) in answers.as_object().unwrap() {
            check_answer(revision, key, answer);
        }
    }
    if let Some(state) = params.get("requestState") {
        assert!(state.is_string(), "{message}");
    }
}

fn check_meta(revision: Revision, meta: &Value) {
    const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
    const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    if let Some(token) = meta.get("progressToken") {
        assert!(token.is_u64() || token.is_string(), "{meta}");
    }
    if revision != MODERN {
        return has(meta, &[], &["progressToken", "com.example/own"]);
    }
    let may = [LOG_LEVEL, "progressToken", "com.example/own"];
    has(meta, &[VERSION, CAPABILITIES, CLIENT], &may);
    assert_eq!(meta[VERSION], revision.as_str());
    check_sender(revision, &meta[CLIENT], &meta[CAPABILITIES]);
}

/// Checks what a client says of itself: every handler is installed.
fn check_sender(revision: Revision, client: &Value, capabilities: &Value) {
    let title: &[&str] = if revision >= ELICITS { &["title"] } else { &[] };
    has(client, &["name", "version"], title);
    let roots = if revision == MODERN {
        json!({})
    } else {
        json!({"listChanged": true})
    };
    let mut expected = json!({"roots": roots, "sampling": {}});
    if revision >= ELICITS {
        expected["elicitation"] = json!({});
    }
    if revision >= MODES {
        expected["elicitation"] = json!({"form": {}, "url": {}});
        expected["sampling"] = json!({"tools": {}});
    }
    assert_eq!(capabilities, &expected, "{revision}");
}

/// Checks a result for the server, by what it had asked for.
fn check_answer(revision: Revision, asked: &str, result: &Value) {
    match asked {
        "ping" => assert_eq!(result, &json!({})),
        "roots" => {
            has(result, &["roots"], &[]);
            for root in result["roots"].as_array().unwrap() {
                has(root, &["uri"], &["name"]);
                assert!(root["uri"].as_str().unwrap().starts_with("file://"));
            }
        }
        "sample" => {
            has(result, &["role", "content", "model"], &["stopReason"]);
            assert!(result["content"].is_object(), "{result}");
        }
        "form" if revision >= ELICITS => {
            assert_eq!(
                result,
                &json!({"action": "accept", "content": {"name": "octo"}})
            );
        }
        "url" if revision >= MODES => assert_eq!(result, &json!({"action": "accept"})),
        _ => panic!("{revision}: {asked} is answered with {result}"),
    }
}

/// Checks one message that a client wrote in a session in this revision.
pub(super) fn check(revision: Revision, message: &Value, ids: &mut HashSet<u64>) {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let found = members(message);
    if found.contains("method") {
        has(message, &["jsonrpc", "method"], &["id", "params"]);
        let Some(id) = message.get("id") else {
            return check_call(revision, NOTIFICATIONS, message);
        };
        assert!(ids.insert(id.as_u64().unwrap()), "{message}");
        return check_call(revision, REQUESTS, message);
    }
    assert_ne!(
        revision, MODERN,
        "a modern client answers nothing: {message}"
    );
    let asked = message["id"].as_str().unwrap();
    let asked = asked.split('-').next().unwrap();
    if found.contains("error") {
        has(message, &["jsonrpc", "id", "error"], &[]);
        has(&message["error"], &["code", "message"], &["data"]);
        // What the revision has not, or nobody has.
        let unknown = match asked {
            "form" => revision < ELICITS,
            "url" => revision < MODES,
            asked => asked == "unknown",
        };
        assert!(unknown, "{message}");
    } else {
        has(message, &["jsonrpc", "id", "result"], &[]);
        check_answer(revision, asked, &message["result"]);
    }
}
