//! The connection below any protocol's layer: the MCP reference server over lines, pylsp over
//! `Content-Length`.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::{fs, process};

use landline::{
    CallOptions, CancelToken, Cause, ChildSpec, Closed, Connection, Delivery, Dialect, Exit,
    Framing, Handler, Notification, OnCancel, Options, Peer, Request, RpcError, Step, Survived,
    Update,
};
use serde_json::{Value, json};

use super::support::{HANG, eventually};
use super::{ends_well, with_servers};

#[test]
fn the_mcp_server_answers_with_its_name_its_tools_and_their_results() {
    with_servers(|servers| {
        let (server, heard) = start_mcp(servers, mcp());
        let hello = initialize_mcp(&server, &heard, json!({}));
        assert_eq!(
            hello["serverInfo"],
            json!({
                "name": "mcp-servers/everything",
                "title": "Everything Reference Server",
                "version": "2.0.0",
            })
        );
        assert_eq!(hello["protocolVersion"], "2025-11-25");

        let tools: Value = server.request("tools/list", ()).unwrap();
        assert_eq!(names(&tools["tools"]), TOOLS);
        assert_eq!(echo(&server, "grüße\n\u{1f980}"), "Echo: grüße\n\u{1f980}");
        let sum = call_tool(&server, "get-sum", json!({"a": 2, "b": 40}));
        assert_eq!(sum, "The sum of 2 and 40 is 42.");
        ends_well(&server);
        eventually("the banner is in the tail", || {
            server.stderr_tail() == BANNER
        });
    });
}

#[test]
fn answers_of_the_mcp_server_find_their_threads() {
    with_servers(|servers| {
        let (server, heard) = start_mcp(servers, mcp());
        initialize_mcp(&server, &heard, json!({}));
        std::thread::scope(|scope| {
            for a in 0..8 {
                let server = &server;
                scope.spawn(move || {
                    for b in 0..20 {
                        let sum = call_tool(server, "get-sum", json!({"a": a, "b": b}));
                        assert_eq!(sum, format!("The sum of {a} and {b} is {}.", a + b));
                    }
                });
            }
        });
        ends_well(&server);
    });
}

#[test]
fn what_the_mcp_server_refuses_comes_back_as_its_error() {
    with_servers(|servers| {
        let (server, heard) = start_mcp(servers, mcp());
        initialize_mcp(&server, &heard, json!({}));
        let error = server.request::<Value>("no/such", json!({})).unwrap_err();
        assert_eq!(error.delivery(), Delivery::Answered);
        let refused = error.rpc().unwrap();
        assert_eq!(
            (refused.code, refused.message.as_str()),
            (-32601, "Method not found")
        );
        assert_eq!(server.request::<Value>("ping", ()).unwrap(), json!({}));
        ends_well(&server);
    });
}

#[test]
fn progress_of_a_long_tool_comes_to_its_caller_in_order_and_before_the_answer() {
    with_servers(|servers| {
        let (server, heard) = start_mcp(servers, mcp());
        initialize_mcp(&server, &heard, json!({}));
        let call = server
            .start_with("tools/call", &CallOptions::new(), |id| {
                long_running(0.4, 4, id)
            })
            .unwrap();
        let id = call.id();
        let mut progress = Vec::new();
        let answer: Value = call
            .wait_with(|update| match update {
                Update::Notification(notification) => {
                    assert_eq!(notification.method(), PROGRESS);
                    progress.push(notification.decode::<Value>().unwrap());
                }
                other => panic!("{other:?}"),
            })
            .unwrap();
        let step = |n| json!({"progress": n, "total": 4, "progressToken": id});
        assert_eq!(progress, [1, 2, 3, 4].map(step));
        assert_eq!(
            text_of(&answer),
            "Long running operation completed. Duration: 0.4 seconds, Steps: 4."
        );
        ends_well(&server);
        // None of it went to the handler as well, nor was dropped on the way there.
        let rest = heard.iter().next().unwrap();
        assert_eq!(rest.0, CLOSED);
    });
}

#[test]
fn a_long_tool_that_is_cancelled_ends_for_its_caller_and_is_never_answered() {
    with_servers(|servers| {
        let (server, heard) = start_mcp(servers, mcp());
        initialize_mcp(&server, &heard, json!({}));
        let token = CancelToken::new();
        let options = CallOptions::new().cancel_token(&token);
        let call = server
            .start_with("tools/call", &options, |id| long_running(1.0, 20, id))
            .unwrap();
        // With the first sign that it runs.
        let error = call.wait_with::<Value>(|_| token.cancel()).unwrap_err();
        assert!(error.is_cancelled(), "{error}");
        assert_eq!(error.delivery(), Delivery::MaybeRun);
        // This tool works on all the same, but its server was told and swallows the answer, which
        // would come after the last step.
        let last = heard
            .iter()
            .find(|(method, params)| method == PROGRESS && params["progress"] == 20);
        assert_eq!(last.unwrap().1["total"], 20);
        assert_eq!(echo(&server, "on"), "Echo: on");
        ends_well(&server);
    });
}

#[test]
fn the_mcp_server_gets_the_roots_it_asks_for() {
    with_servers(|servers| {
        let (server, heard) = start_mcp(servers, mcp());
        initialize_mcp(&server, &heard, json!({"roots": {"listChanged": true}}));
        // It asks by itself, under an id that is 0 and so none of ours, and logs what it got.
        let asked = heard.iter().find(|(method, _)| method == "roots/list");
        assert_eq!(asked.unwrap().1, Value::Null);
        let (_, log) = heard
            .iter()
            .find(|(method, _)| method == "notifications/message")
            .unwrap();
        assert_eq!(log["data"], "Roots updated: 1 root(s) received from client");

        let tools: Value = server.request("tools/list", ()).unwrap();
        let mut expected = TOOLS.to_vec();
        expected.insert(12, "get-roots-list");
        assert_eq!(names(&tools["tools"]), expected);
        let roots = call_tool(&server, "get-roots-list", json!({}));
        assert!(roots.contains("URI: file:///srv/landline"), "{roots}");
        ends_well(&server);
    });
}

#[test]
fn pylsp_finds_definitions_and_symbols_to_the_character() {
    with_servers(|servers| {
        let sample = Sample::write("definitions");
        let (server, heard) = start_pylsp(servers);
        let hello = initialize_pylsp(&server, &sample);
        assert_eq!(
            hello["serverInfo"],
            json!({"name": "pylsp", "version": "1.15.0"})
        );
        assert_eq!(hello["capabilities"]["definitionProvider"], true);
        let document = json!({"uri": sample.uri});
        let opened = json!({
            "textDocument": {
                "uri": sample.uri,
                "languageId": "python",
                "version": 1,
                "text": SAMPLE,
            },
        });
        server.notify("textDocument/didOpen", opened).unwrap();

        let call_of_add = json!({
            "textDocument": document,
            "position": {"line": 7, "character": 16},
        });
        let found: Value = server
            .request("textDocument/definition", call_of_add)
            .unwrap();
        let definition = json!([{"uri": sample.uri, "range": range(0, 4, 0, 7)}]);
        assert_eq!(found, definition);

        let symbols: Value = server
            .request(
                "textDocument/documentSymbol",
                json!({"textDocument": document}),
            )
            .unwrap();
        assert_eq!(names(&symbols), ["add", "Counter", "step"]);
        let places = [range(0, 0, 3, 0), range(5, 0, 8, 0), range(6, 4, 8, 0)];
        for (symbol, place) in symbols.as_array().unwrap().iter().zip(places) {
            assert_eq!(
                symbol["location"],
                json!({"uri": sample.uri, "range": place})
            );
        }

        let (_, unasked) = heard
            .iter()
            .find(|(method, _)| method == "textDocument/publishDiagnostics")
            .unwrap();
        assert_eq!(unasked["uri"], sample.uri);
        assert_eq!(unasked["diagnostics"], json!([]));
        // Its `Content-Type` header is no stray text, nor is anything else.
        ends_well(&server);
    });
}

#[test]
fn pylsp_shuts_down_with_null_and_exits_by_itself() {
    with_servers(|servers| {
        let (server, heard) = start_pylsp(servers);
        initialize_pylsp(&server, &Sample::write("shutdown"));
        let answer: Value = server.request("shutdown", ()).unwrap();
        assert_eq!(answer, Value::Null);
        server.notify("exit", ()).unwrap();
        // The end is told, not found out by the next call.
        assert!(heard.iter().any(|(method, _)| method == CLOSED));
        let why = server.closed().unwrap();
        assert!(matches!(why.cause, Cause::Exited(Exit::Code(0))), "{why}");
        let after = server.request::<Value>("shutdown", ()).unwrap_err();
        assert_eq!(
            (after.is_closed(), after.delivery()),
            (true, Delivery::NotSent)
        );
        let ended = server.close();
        assert_eq!(ended.exit, Some(Exit::Code(0)));
        assert_eq!(ended.step, Step::AlreadyEnded);
        assert_eq!(server.survived(), Survived::default());
    });
}

#[test]
fn what_pylsp_refuses_comes_back_as_its_error() {
    with_servers(|servers| {
        let (server, _heard) = start_pylsp(servers);
        initialize_pylsp(&server, &Sample::write("refusals"));
        let error = server.request::<Value>("no/such", json!({})).unwrap_err();
        let refused = error.rpc().unwrap();
        assert_eq!(
            (refused.code, refused.message.as_str()),
            (RpcError::METHOD_NOT_FOUND, "Method Not Found: no/such")
        );
        // It also logs where it refused, and works on.
        eventually("the traceback comes", || {
            let tail = String::from_utf8(server.stderr_tail()).unwrap();
            tail.contains("Traceback (most recent call last):")
        });
        assert_eq!(
            server.request::<Value>("shutdown", ()).unwrap(),
            Value::Null
        );
        ends_well(&server);
    });
}

/// What a server sent unasked, in its order: methods and params.
type Heard = mpsc::Receiver<(String, Value)>;

/// Answers `roots/list`, and tells a test of everything.
struct Telling(mpsc::Sender<(String, Value)>);

impl Telling {
    fn tell(&self, method: &str, params: Value) {
        // A test that has seen enough does not listen any more.
        let _ = self.0.send((method.to_owned(), params));
    }
}

impl Handler for Telling {
    fn request(&self, _peer: &Peer, request: Request) -> Result<Value, RpcError> {
        self.tell(request.method(), request.decode()?);
        match request.method() {
            "roots/list" => Ok(json!({"roots": [{"uri": "file:///srv/landline", "name": "it"}]})),
            other => Err(RpcError::method_not_found(other)),
        }
    }

    fn notification(&self, _peer: &Peer, notification: Notification) {
        self.tell(notification.method(), notification.decode().unwrap());
    }

    fn closed(&self, _why: &Closed) {
        self.tell(CLOSED, Value::Null);
    }
}

fn start(options: Options, program: PathBuf, args: &[&str]) -> (Connection, Heard) {
    let (tell, heard) = mpsc::channel();
    let spec = ChildSpec::new(program).unwrap().with_args(args).unwrap();
    let server = options
        .handler(Telling(tell))
        // A slow machine is not what is tested: whoever ends by itself has the time for it.
        .close_waits(HANG, HANG)
        .spawn(&spec)
        .unwrap();
    (server, heard)
}

fn start_mcp(servers: &Path, dialect: Dialect) -> (Connection, Heard) {
    let program = servers.join("node_modules/.bin/mcp-server-everything");
    start(Options::new().dialect(dialect), program, &["stdio"])
}

/// MCP's legacy revisions.
fn mcp() -> Dialect {
    Dialect::new()
        .cancel_calls("notifications/cancelled", "requestId")
        .cancelled_requests("notifications/cancelled", "requestId", OnCancel::NoReply)
        .route(PROGRESS, ["progressToken"])
        .answer_at_once("ping", json!({}))
}

/// Shakes hands, and waits for what the server always sends unasked then: a close would drop it,
/// and count that, if the handler had not come to it.
fn initialize_mcp(server: &Connection, heard: &Heard, capabilities: Value) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "landline-tests", "version": "1"},
    });
    let hello = server
        .request_with("initialize", params, &CallOptions::new().quiet())
        .unwrap();
    server.notify("notifications/initialized", ()).unwrap();
    let unasked = heard.recv().unwrap();
    assert_eq!(
        unasked,
        ("notifications/tools/list_changed".into(), Value::Null)
    );
    hello
}

/// Calls a tool whose result is one text, and gives that.
fn call_tool(server: &Connection, name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    text_of(&server.request("tools/call", params).unwrap())
}

fn echo(server: &Connection, message: &str) -> String {
    call_tool(server, "echo", json!({"message": message}))
}

fn text_of(result: &Value) -> String {
    let content = result["content"].as_array().unwrap();
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")));
    content[0]["text"].as_str().unwrap().to_owned()
}

fn long_running(seconds: f64, steps: u32, token: u64) -> Value {
    json!({
        "name": "trigger-long-running-operation",
        "arguments": {"duration": seconds, "steps": steps},
        "_meta": {"progressToken": token},
    })
}

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|item| item["name"].as_str().unwrap()).collect()
}

fn start_pylsp(servers: &Path) -> (Connection, Heard) {
    // LSP 3.17.
    let dialect = Dialect::new()
        .cancel_calls("$/cancelRequest", "id")
        .cancelled_requests("$/cancelRequest", "id", OnCancel::Reply { code: -32800 })
        .route("$/progress", ["token"]);
    let options = Options::new()
        .framing(Framing::ContentLength)
        .dialect(dialect);
    start(options, servers.join("venv/bin/pylsp"), &[])
}

fn initialize_pylsp(server: &Connection, sample: &Sample) -> Value {
    let params = json!({
        "processId": process::id(),
        "rootUri": sample.root,
        "capabilities": {},
    });
    let hello = server.request("initialize", params).unwrap();
    server.notify("initialized", json!({})).unwrap();
    hello
}

/// A folder with a Python file, as LSP names them.
struct Sample {
    root: String,
    uri: String,
}

impl Sample {
    fn write(folder: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("sample.py"), SAMPLE).unwrap();
        let root = format!("file://{}", root.to_str().unwrap());
        let uri = format!("{root}/sample.py");
        Sample { root, uri }
    }
}

fn range(from: u32, at: u32, to: u32, until: u32) -> Value {
    json!({
        "start": {"line": from, "character": at},
        "end": {"line": to, "character": until},
    })
}

const PROGRESS: &str = "notifications/progress";

/// No method of any peer's.
const CLOSED: &str = "(closed)";

const BANNER: &[u8] = b"Starting default (STDIO) server...\n";

pub(super) const TOOLS: [&str; 13] = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
    "simulate-research-query",
];

const SAMPLE: &str = "\
def add(left, right):
    \"\"\"Adds two numbers.\"\"\"
    return left + right


class Counter:
    def step(self):
        return add(1, 2)
";
