//! The MCP reference server, which has something of everything the legacy era knows.
//!
//! It exits by itself once its stdin ends if nothing keeps it: no call, no toggle that was left on,
//! and, where roots are declared, not its own `roots/list`, which it sends a third of a second
//! after the handshake whether stdin has ended or not, and gives up after a minute.

use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use landline::mcp::{
    Block, CallOptions, Client, ConnectPhase, Elicited, Era, ListKind, LogLevel, LogMessage,
    Options, Reason, Reference, Revision, Root, Sample,
};
use landline::{CancelToken, ChildSpec, Delivery, Exit, RpcError, Step};
use serde_json::{Map, Value, json};

use super::connection::TOOLS;
use super::support::HANG;
use super::{client, connect, ends_well, exits, late, npm, text, with_servers};

#[test]
fn everything_is_legacy_and_presents_itself() {
    with_servers(|servers| {
        let (server, told) = start(servers, client());
        let hello = server.server();
        assert_eq!(hello.era(), Era::Legacy);
        assert_eq!(hello.revision(), Revision::V2025_11_25);
        assert_eq!(hello.version(), "2025-11-25");
        let name = hello.implementation().unwrap();
        assert_eq!(name.name().unwrap(), "mcp-servers/everything");
        assert_eq!(name.title().unwrap(), "Everything Reference Server");
        assert_eq!(name.version().unwrap(), "2.0.0");
        let instructions = hello.instructions().unwrap();
        assert!(instructions.starts_with("# Everything Server – Server Instructions\n"));
        assert_eq!(hello.oddities(), [""; 0]);
        for declared in ["tools", "prompts", "resources.subscribe", "logging"] {
            assert!(hello.capabilities().has(declared), "{declared}");
        }
        assert!(!hello.capabilities().has("experimental"));
        idle(&told);
        ends_well(server.connection());
    });
}

#[test]
fn everything_lists_all_that_it_has() {
    with_servers(|servers| {
        let (server, told) = start(servers, client());
        let tools = server.tools().unwrap();
        assert!(tools.stopped().is_none() && tools.unusable().is_empty());
        let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        assert_eq!(names, TOOLS);
        let echo = &tools[0];
        assert_eq!(echo.display_name(), "Echo Tool");
        assert_eq!(echo.description().unwrap(), "Echoes back the input string");
        assert!(echo.is_read_only() && echo.is_idempotent());
        assert!(!echo.is_destructive() && !echo.is_open_world());
        let schema: Value = serde_json::from_str(echo.input_schema().unwrap().get()).unwrap();
        assert_eq!(schema["required"], json!(["message"]));

        let resources = server.resources().unwrap();
        let uris: Vec<_> = resources.iter().map(|resource| resource.uri()).collect();
        assert_eq!(uris, DOCUMENTS.map(|name| format!("{DOCUMENT}{name}")));
        assert_eq!(resources[0].name(), "architecture.md");
        assert_eq!(resources[0].mime_type().unwrap(), "text/markdown");

        let templates = server.resource_templates().unwrap();
        let patterns: Vec<_> = templates.iter().map(|it| it.uri_template()).collect();
        let kinds = ["text", "blob"];
        assert_eq!(
            patterns,
            kinds.map(|kind| format!("demo://resource/dynamic/{kind}/{{resourceId}}"))
        );
        assert_eq!(templates[0].name(), "Dynamic Text Resource");

        let prompts = server.prompts().unwrap();
        let names: Vec<_> = prompts.iter().map(|prompt| prompt.name()).collect();
        assert_eq!(
            names,
            [
                "simple-prompt",
                "args-prompt",
                "completable-prompt",
                "resource-prompt"
            ]
        );
        let arguments = prompts[1].arguments();
        let arguments: Vec<_> = arguments
            .iter()
            .map(|it| (it.name(), it.is_required()))
            .collect();
        assert_eq!(arguments, [("city".into(), true), ("state".into(), false)]);
        idle(&told);
        ends_well(server.connection());
    });
}

#[test]
fn tools_of_everything_give_every_kind_of_content() {
    with_servers(|servers| {
        let (server, told) = start(servers, client());
        assert_eq!(
            text(&server, "echo", json!({"message": "ü\u{2028}"})),
            "Echo: ü\u{2028}"
        );
        let sum = text(&server, "get-sum", json!({"a": 2, "b": 40}));
        assert_eq!(sum, "The sum of 2 and 40 is 42.");

        let weather = server
            .call_tool("get-structured-content", json!({"location": "Chicago"}))
            .unwrap();
        assert_eq!(
            weather.structured_as::<Value>().unwrap(),
            json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82})
        );

        let annotated = json!({"messageType": "error", "includeImage": true});
        let annotated = server
            .call_tool("get-annotated-message", annotated)
            .unwrap();
        let [message, image] = &annotated.content()[..] else {
            panic!("{annotated:?}");
        };
        assert_eq!(message.as_text().unwrap(), "Error: Operation failed");
        assert_eq!(message.audience(), ["user", "assistant"]);
        let Block::Image {
            data, mime_type, ..
        } = image.block()
        else {
            panic!("{image:?}");
        };
        // The signature of a PNG file.
        assert_eq!((&data[..11], &*mime_type), ("iVBORw0KGgo", "image/png"));

        let links = server
            .call_tool("get-resource-links", json!({"count": 2}))
            .unwrap();
        let links: Vec<_> = links
            .content()
            .iter()
            .filter_map(|block| match block.block() {
                Block::ResourceLink(link) => Some(link.uri().into_owned()),
                _ => None,
            })
            .collect();
        let [blob, text] = ["blob/1", "text/2"].map(|end| format!("demo://resource/dynamic/{end}"));
        assert_eq!(links, [blob, text]);

        let embedded = json!({"resourceType": "Text", "resourceId": 7});
        let embedded = server
            .call_tool("get-resource-reference", embedded)
            .unwrap();
        let Block::Resource(resource) = embedded.content()[1].block() else {
            panic!("{embedded:?}");
        };
        assert_eq!(resource.uri(), "demo://resource/dynamic/text/7");
        assert!(
            resource
                .as_text()
                .unwrap()
                .starts_with("Resource 7: This is a plaintext")
        );

        // A tool that fails is a result, and so is one that is not there.
        let failed = server.call_tool("nope", ()).unwrap();
        assert!(failed.is_error());
        assert_eq!(failed.all_text(), "MCP error -32602: Tool nope not found");
        idle(&told);
        ends_well(server.connection());
    });
}

#[test]
fn a_large_message_comes_back_from_everything_as_it_went() {
    with_servers(|servers| {
        let (server, told) = start(servers, client());
        let message = "line \"ü\u{1f980}\"\n".repeat(200_000);
        let echoed = text(&server, "echo", json!({"message": message}));
        assert!(echoed.strip_prefix("Echo: ") == Some(&message));
        idle(&told);
        ends_well(server.connection());
    });
}

#[test]
fn resources_prompts_and_completions_of_everything_are_read() {
    with_servers(|servers| {
        let (server, told) = start(servers, client());
        let document = server
            .read_resource(&format!("{DOCUMENT}features.md"))
            .unwrap();
        let [document] = &document.contents()[..] else {
            panic!("{document:?}");
        };
        assert_eq!(document.mime_type().unwrap(), "text/markdown");
        assert!(
            document
                .as_text()
                .unwrap()
                .starts_with("# Everything Server - Features\n")
        );
        let blob = server
            .read_resource("demo://resource/dynamic/blob/5")
            .unwrap();
        // "Resource 5: This is", in base64.
        let expected = "UmVzb3VyY2UgNTogVGhpcyBpcy";
        assert!(blob.contents()[0].as_blob().unwrap().starts_with(expected));
        let none = server.read_resource("demo://nope").unwrap_err();
        assert!(none.is_resource_not_found(), "{none}");

        let args = json!({"city": "Bern", "state": "BE"});
        let prompt = server.get_prompt("args-prompt", args).unwrap();
        let [message] = &prompt.messages()[..] else {
            panic!("{prompt:?}");
        };
        assert_eq!(message.role(), "user");
        assert_eq!(
            message.content().as_text().unwrap(),
            "What's weather in Bern, BE?"
        );
        let none = server.get_prompt("nope", ()).unwrap_err();
        assert_eq!(none.rpc().unwrap().code, RpcError::INVALID_PARAMS);

        let team = Reference::Prompt("completable-prompt".into());
        let department = server.complete(&team, "department", "E", ()).unwrap();
        assert_eq!(department.values, ["Engineering"]);
        let known = json!({"department": "Sales"});
        let member = server.complete(&team, "name", "", known).unwrap();
        assert_eq!(member.values, ["David", "Eve", "Frank"]);
        assert_eq!((member.total, member.has_more), (Some(3), false));

        server.ping().unwrap();
        let unknown = server.request::<Value>("no/such", json!({})).unwrap_err();
        let refused = unknown.rpc().unwrap();
        assert_eq!(refused.code, RpcError::METHOD_NOT_FOUND);
        assert_eq!(refused.message, "Method not found");
        idle(&told);
        ends_well(server.connection());
    });
}

#[test]
fn progress_of_the_long_tool_comes_in_order_before_its_result() {
    with_servers(|servers| {
        let (server, told) = start(servers, client());
        let mut seen = Vec::new();
        let options = CallOptions::new()
            .progress(|step| seen.push((step.progress().unwrap(), step.total().unwrap())));
        let arguments = json!({"duration": 0.4, "steps": 4});
        let result = server
            .call_tool_with("trigger-long-running-operation", arguments, options)
            .unwrap();
        assert_eq!(
            result.all_text(),
            "Long running operation completed. Duration: 0.4 seconds, Steps: 4."
        );
        assert_eq!(seen, [1.0, 2.0, 3.0, 4.0].map(|step| (step, 4.0)));
        idle(&told);
        ends_well(server.connection());
    });
}

#[test]
fn the_long_tool_is_cancelled_from_its_progress() {
    with_servers(|servers| {
        let (server, told) = start(servers, client());
        let token = CancelToken::new();
        let options = CallOptions::new()
            .cancel_token(&token)
            .progress(|_| token.cancel());
        let arguments = json!({"duration": 1, "steps": 20});
        let error = server
            .call_tool_with("trigger-long-running-operation", arguments, options)
            .unwrap_err();
        assert!(error.is_cancelled(), "{error}");
        assert_eq!(error.delivery(), Delivery::MaybeRun);
        assert_eq!(text(&server, "echo", json!({"message": "on"})), "Echo: on");
        idle(&told);
        // The tool works to its end all the same, and the server with it.
        exits(server.connection());
    });
}

#[test]
fn everything_asks_for_roots_forms_pages_and_samples_and_gets_them() {
    with_servers(|servers| {
        let (asked, questions) = mpsc::channel();
        let pages = asked.clone();
        let samples = asked.clone();
        let options = client()
            .roots(|_| vec![Root::new("file:///srv/landline").unwrap().named("it")])
            .elicit_form(move |_, ask| {
                let schema: Value = serde_json::from_str(ask.schema().get()).unwrap();
                let asks = json!([
                    ask.message(),
                    schema["required"],
                    schema["properties"]["email"]
                ]);
                asked.send(asks).unwrap();
                Elicited::Accept(object(json!({"name": "Ada", "check": true, "integer": 7})))
            })
            .elicit_url(move |_, ask| {
                pages
                    .send(json!([ask.url(), ask.elicitation_id()]))
                    .unwrap();
                Elicited::accept()
            })
            .sample(move |_, ask| {
                let said = ask.messages()[0].content()[0]
                    .as_text()
                    .unwrap()
                    .into_owned();
                let asks = json!([said, ask.max_tokens(), ask.system_prompt()]);
                samples.send(asks).unwrap();
                Ok(Sample::text("m1", "four").stop_reason("endTurn"))
            });
        let (server, told) = start(servers, options);
        has_roots(&told, 1);
        let tools = server.tools().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name().into_owned()).collect();
        let mut expected = TOOLS.to_vec();
        expected.splice(12..12, CONDITIONAL);
        assert_eq!(names, expected);

        let roots = text(&server, "get-roots-list", ());
        assert!(
            roots.contains("1. it\n   URI: file:///srv/landline\n"),
            "{roots}"
        );

        let form = text(&server, "trigger-elicitation-request", ());
        let inputs = "User inputs:\n- Name: Ada\n- Agreed to terms: true\n- Favorite Integer: 7\n";
        assert!(form.contains(inputs), "{form}");
        let question = questions.recv().unwrap();
        assert_eq!(
            question[0],
            "Please provide inputs for the following fields:"
        );
        assert_eq!(question[1], json!(["name"]));
        assert_eq!(question[2]["format"], "email");

        let sampled = text(
            &server,
            "trigger-sampling-request",
            json!({"prompt": "2 + 2?", "maxTokens": 10}),
        );
        let (_, result) = sampled.split_once("LLM sampling result: \n").unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(result).unwrap(),
            json!({
                "model": "m1",
                "stopReason": "endTurn",
                "role": "assistant",
                "content": {"type": "text", "text": "four"},
            })
        );
        let said = "Resource trigger-sampling-request context: 2 + 2?";
        let expected = json!([said, 10, "You are a helpful test server."]);
        assert_eq!(questions.recv().unwrap(), expected);

        let page = json!({"url": "https://example.com/a", "elicitationId": "e1"});
        let page = text(&server, "trigger-url-elicitation", page);
        let done = "✅ User completed the URL elicitation flow.\nElicitation ID: e1\n";
        assert!(page.starts_with(done), "{page}");
        assert_eq!(
            questions.recv().unwrap(),
            json!(["https://example.com/a", "e1"])
        );
        let page = json!({"url": "https://example.com/b", "errorPath": true});
        let first = server
            .call_tool("trigger-url-elicitation", page)
            .unwrap_err();
        let pages = first.url_elicitations().unwrap();
        assert_eq!(pages.len(), 1);
        assert_eq!(pages[0].url(), "https://modelcontextprotocol.io");
        ends_well(server.connection());
    });
}

#[test]
fn everything_asks_again_for_roots_that_have_changed() {
    with_servers(|servers| {
        let (more, counts) = mpsc::channel();
        let counts = Mutex::new(counts);
        let options = client().roots(move |_| {
            let count = counts.lock().unwrap().recv().unwrap();
            let roots = (0..count).map(|n| Root::new(format!("file:///srv/{n}")).unwrap());
            roots.collect()
        });
        more.send(1).unwrap();
        let (server, told) = start(servers, options);
        has_roots(&told, 1);
        more.send(3).unwrap();
        server.roots_changed().unwrap();
        has_roots(&told, 3);
        ends_well(server.connection());
    });
}

#[test]
fn everything_is_ended_by_sigterm_while_it_waits_for_an_answer() {
    with_servers(|servers| {
        let (asked, question) = mpsc::channel();
        let (hold, held) = mpsc::channel::<()>();
        let held = Mutex::new(held);
        let options = client()
            .roots(move |_| {
                asked.send(()).unwrap();
                // Until the test is over.
                let _ = held.lock().unwrap().recv();
                Vec::new()
            })
            .transport(landline::Options::new().close_waits(Duration::from_secs(1), HANG));
        let (server, _told) = start(servers, options);
        question.recv().unwrap();
        let ended = server.close();
        assert_eq!(ended.step, Step::Terminated);
        assert_eq!(ended.exit, Some(Exit::Signal(15)));
        drop(hold);
    });
}

#[test]
fn everything_that_answers_the_probe_late_is_legacy_all_the_same() {
    with_servers(|servers| {
        let options = client().probe_timeout(Duration::from_millis(1));
        let (server, told) = start_as(options, &late(&everything(servers)));
        assert_eq!(server.server().era(), Era::Legacy);
        let echo = text(&server, "echo", json!({"message": "on"}));
        assert_eq!(echo, "Echo: on");
        idle(&told);
        ends_well(server.connection());
    });
}

#[test]
fn logs_and_updates_of_everything_come_to_their_handlers() {
    with_servers(|servers| {
        let (server, told) = start(servers, client());
        idle(&told);
        server.set_log_level(LogLevel::Debug).unwrap();
        let started = text(&server, "toggle-simulated-logging", ());
        assert!(
            started.starts_with("Started simulated, random-leveled logging"),
            "{started}"
        );
        let Told::Log(log) = told.recv().unwrap() else {
            panic!("no log message");
        };
        // The level is random, and named in what is said.
        let level = log.level().unwrap();
        let said = words(&log).replace(' ', "-").to_lowercase();
        assert_eq!(said, format!("{level}-level-message"));
        let stopped = text(&server, "toggle-simulated-logging", ());
        assert!(
            stopped.starts_with("Stopped simulated logging"),
            "{stopped}"
        );

        let uri = "demo://resource/dynamic/text/1";
        let subscribe = json!({"uri": uri});
        let done: Value = server.request("resources/subscribe", subscribe).unwrap();
        assert_eq!(done, json!({}));
        let Told::Log(log) = told.recv().unwrap() else {
            panic!("no log message");
        };
        assert_eq!(log.level(), Some(LogLevel::Info));
        assert_eq!(
            words(&log).trim(),
            format!("Received Subscribe Resource request for URI: {uri}")
        );
        text(&server, "toggle-subscriber-updates", ());
        let updated = told.recv().unwrap();
        assert!(
            matches!(&updated, Told::Updated(of) if of == uri),
            "{updated:?}"
        );
        text(&server, "toggle-subscriber-updates", ());
        ends_well(server.connection());
    });
}

#[test]
fn everything_agrees_on_every_legacy_revision() {
    with_servers(|servers| {
        for revision in Revision::ALL
            .into_iter()
            .filter(|it| it.era() == Era::Legacy)
        {
            let (server, told) = start(servers, client().revision(revision));
            assert_eq!(server.server().version(), revision.as_str());
            assert_eq!(text(&server, "echo", json!({"message": "on"})), "Echo: on");
            idle(&told);
            ends_well(server.connection());
        }
    });
}

#[test]
fn everything_is_no_server_for_a_modern_client() {
    with_servers(|servers| {
        let spec = everything(servers);
        let error = client().era(Era::Modern).spawn(&spec).unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!(failure.phase, ConnectPhase::Probe);
        assert!(matches!(failure.reason, Reason::NotModern(_)), "{failure}");
        assert_eq!(failure.rpc().unwrap().code, RpcError::METHOD_NOT_FOUND);
        let [attempt] = &failure.attempts[..] else {
            panic!("{failure}");
        };
        assert_eq!(attempt.handshake, None);
        assert_eq!(attempt.ended.exit, Some(Exit::Code(0)));
        assert_eq!(attempt.stderr_tail, b"Starting default (STDIO) server...\n");
    });
}

/// What the server tells unasked.
#[derive(Debug)]
enum Told {
    Changed(ListKind),
    Log(LogMessage),
    Updated(String),
}

fn everything(servers: &Path) -> ChildSpec {
    npm(servers, "mcp-server-everything")
        .with_arg("stdio")
        .unwrap()
}

fn start(servers: &Path, options: Options) -> (Client, mpsc::Receiver<Told>) {
    start_as(options, &everything(servers))
}

fn start_as(options: Options, spec: &ChildSpec) -> (Client, mpsc::Receiver<Told>) {
    let (tell, told) = mpsc::channel();
    let (logs, updates) = (tell.clone(), tell.clone());
    // A test that has seen enough does not listen any more.
    let options = options
        .on_list_changed(move |_, kind| drop(tell.send(Told::Changed(kind))))
        .on_log(move |_, log| drop(logs.send(Told::Log(log.clone()))))
        .on_updated(move |_, uri| drop(updates.send(Told::Updated(uri.into()))));
    (connect(&options, spec), told)
}

/// Waits for the one thing that the server tells a client without handlers unasked, which a close
/// would drop, and count, if it came before.
fn idle(told: &mpsc::Receiver<Told>) {
    let first = told.recv().unwrap();
    assert!(matches!(first, Told::Changed(ListKind::Tools)), "{first:?}");
}

/// Waits until the server has got its roots, the last thing that it does unasked.
fn has_roots(told: &mpsc::Receiver<Told>, count: usize) {
    let log = told.iter().find_map(|told| match told {
        Told::Log(log) => Some(log),
        _ => None,
    });
    let said = format!("Roots updated: {count} root(s) received from client");
    assert_eq!(words(&log.unwrap()), said);
}

/// The data of a log message that is a string.
fn words(log: &LogMessage) -> String {
    serde_json::from_str(log.data().unwrap().get()).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

const DOCUMENT: &str = "demo://resource/static/document/";

const DOCUMENTS: [&str; 7] = [
    "architecture.md",
    "extension.md",
    "features.md",
    "how-it-works.md",
    "instructions.md",
    "startup.md",
    "structure.md",
];

/// What it has for clients that can be asked.
const CONDITIONAL: [&str; 4] = [
    "get-roots-list",
    "trigger-elicitation-request",
    "trigger-url-elicitation",
    "trigger-sampling-request",
];
