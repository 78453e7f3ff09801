//! All that a client writes in a full session, held against a table of what each revision allows.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::thread;

use landline::CancelToken;
use landline::mcp::{
    CallOptions, Client, Cursor, Elicited, Era, Error, LogLevel, Options, Reference, Revision,
    Root, Sample,
};
use serde_json::{Map, Value, json};

use super::legal::{BATCHES, MODERN, MODES, NOTIFICATIONS, REQUESTS, check};
use super::server::{connect, presentation};
use crate::support::{Script, guarded};

/// A server that answers everything, asks for all that its revision lets it, and keeps all that it
/// reads.
struct Recorder {
    revision: Revision,
    lines: Vec<Value>,
    /// A call that is answered when so many answers have come.
    held: Option<(Value, usize)>,
    greeted: bool,
}

impl Recorder {
    fn run(&mut self, script: &mut Script, until: impl Fn(&Self) -> bool) {
        while !until(self) {
            let Some(line) = script.line() else { return };
            assert_eq!(line.find(['\n', '\r']), Some(line.len() - 1), "{line:?}");
            let message: Value = serde_json::from_str(&line).unwrap();
            self.lines.push(message.clone());
            match &message {
                Value::Array(answers) => answers.iter().for_each(|_| self.answered(script)),
                message if message.get("method").is_none() => self.answered(script),
                message => self.take(script, message),
            }
        }
    }

    fn answered(&mut self, script: &mut Script) {
        let Some((call, left)) = &mut self.held else {
            panic!("an answer to nothing: {:?}", self.lines.last());
        };
        *left -= 1;
        if *left == 0 {
            script.answer(&call.clone(), done());
            self.held = None;
        }
    }

    fn take(&mut self, script: &mut Script, message: &Value) {
        let method = message["method"].as_str().unwrap();
        let capabilities = json!({
            "tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true}, "completions": {}, "logging": {},
        });
        let page = |member: &str, item: Value| {
            let mut page = json!({member: [item]});
            if message["params"]["cursor"].is_null() {
                page["nextCursor"] = json!("");
            }
            page
        };
        let result = match method {
            "server/discover" if self.revision == MODERN => {
                self.greeted = true;
                presentation(capabilities)
            }
            "server/discover" => {
                let error = json!({"code": -32601, "message": "no"});
                let id = &message["id"];
                return script.send(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            "initialize" => json!({
                "protocolVersion": self.revision.as_str(),
                "capabilities": capabilities,
                "serverInfo": {"name": "recorder", "version": "1"},
            }),
            "notifications/initialized" => {
                self.greeted = true;
                return;
            }
            "tools/list" => page(
                "tools",
                json!({"name": "t", "inputSchema": {"type": "object"}}),
            ),
            "resources/list" => page("resources", json!({"uri": "file:///r", "name": "r"})),
            "resources/templates/list" => page(
                "resourceTemplates",
                json!({"uriTemplate": "file:///{r}", "name": "r"}),
            ),
            "prompts/list" => page("prompts", json!({"name": "p"})),
            "tools/call" if message["params"]["name"] == "never" => {
                return self.tell_progress(script, message);
            }
            "tools/call" | "resources/read" | "prompts/get" if self.asks(message) => {
                self.tell(script);
                self.tell_progress(script, message);
                return self.ask(script, message);
            }
            "tools/call" => done(),
            "resources/read" => json!({"contents": [{"uri": "file:///r", "text": "r"}]}),
            "prompts/get" => json!({"messages": []}),
            "completion/complete" => json!({"completion": {"values": ["v"]}}),
            _ if message.get("id").is_none() => return,
            _ => json!({}),
        };
        script.answer(message, result);
    }

    /// Tells all that a server tells unasked.
    fn tell(&self, script: &mut Script) {
        for (method, params) in [
            (
                "notifications/message",
                json!({"level": "info", "data": null}),
            ),
            ("notifications/tools/list_changed", json!({})),
            ("notifications/resources/list_changed", json!({})),
            ("notifications/prompts/list_changed", json!({})),
            (
                "notifications/resources/updated",
                json!({"uri": "file:///r"}),
            ),
            (
                "notifications/elicitation/complete",
                json!({"elicitationId": "e"}),
            ),
            ("notifications/com.example", json!({})),
            ("notifications/cancelled", json!({"requestId": "unknown"})),
        ] {
            notify(script, method, params);
        }
    }

    fn tell_progress(&self, script: &mut Script, call: &Value) {
        let token = &call["params"]["_meta"]["progressToken"];
        if !token.is_null() {
            let told = json!({"progressToken": token, "progress": 1});
            notify(script, "notifications/progress", told);
        }
    }

    /// Whether a call is one during which the client is asked.
    fn asks(&self, call: &Value) -> bool {
        match self.revision {
            MODERN => call["params"].get("inputResponses").is_none(),
            _ => call["params"]["name"] == "ask",
        }
    }

    fn ask(&mut self, script: &mut Script, call: &Value) {
        let form = json!({"message": "Who?", "requestedSchema": {"type": "object"}});
        let url = json!({
            "mode": "url", "message": "There.", "url": "https://example.com", "elicitationId": "e",
        });
        let said = json!({"role": "user", "content": {"type": "text", "text": "Hi"}});
        let mut sample = json!({"messages": [said], "maxTokens": 5});
        if self.revision >= MODES {
            sample["tools"] = json!([]);
        }
        let questions = [
            ("roots", "roots/list", json!({})),
            ("sample", "sampling/createMessage", sample),
            ("form", "elicitation/create", form),
            ("url", "elicitation/create", url),
        ];
        if self.revision == MODERN {
            let questions: Map<_, _> = questions
                .into_iter()
                .map(|(key, method, params)| {
                    (key.into(), json!({"method": method, "params": params}))
                })
                .collect();
            let mut asks = json!({"resultType": "input_required", "requestState": "s"});
            asks["inputRequests"] = questions.into();
            return script.answer(call, asks);
        }
        let others = [
            ("ping", "ping", json!({})),
            ("unknown", "com.example/x", json!({})),
        ];
        let questions = questions.into_iter().chain(others);
        let request = |suffix: &str, (key, method, params): &(&str, &str, Value)| {
            let id = format!("{key}{suffix}");
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        };
        let questions: Vec<_> = questions.collect();
        let mut answers = questions.len();
        if self.revision == BATCHES {
            let batch: Vec<_> = questions.iter().map(|ask| request("-batch", ask)).collect();
            script.send(json!(batch));
            answers *= 2;
        }
        self.held = Some((call.clone(), answers));
        for question in &questions {
            script.send(request("", question));
        }
    }
}

fn notify(script: &mut Script, method: &str, params: Value) {
    script.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

fn done() -> Value {
    json!({"content": [{"type": "text", "text": "done"}]})
}

/// Options with every handler; those that may call back do.
fn options() -> Options {
    Options::new("test", "1")
        .title("Test")
        .roots(|cx| {
            assert_eq!(cx.tools().unwrap().len(), 2);
            vec![Root::new("file:///r").unwrap().named("r")]
        })
        .elicit_form(|_, _| {
            let name = ("name".to_owned(), json!("octo"));
            Elicited::Accept([name].into_iter().collect())
        })
        .elicit_url(|_, _| Elicited::accept())
        .sample_with_tools(|_, _| Ok(Sample::text("model", "Hello").stop_reason("endTurn")))
        .on_log(|cx, _| drop(cx.prompts().unwrap()))
        .on_list_changed(|_, _| ())
        .on_updated(|_, _| ())
        .on_elicitation_complete(|_, _| ())
        .on_notification(|_, _| ())
        .on_closed(|_| ())
}

/// Makes every call there is.
fn session(client: &Client) {
    let revision = client.server().revision();
    assert_eq!(client.tools().unwrap().len(), 2);
    assert_eq!(client.resources().unwrap().len(), 2);
    assert_eq!(client.resource_templates().unwrap().len(), 2);
    assert_eq!(client.prompts().unwrap().len(), 2);
    let cursor = Cursor::new("");
    assert!(client.tools_page(Some(&cursor)).unwrap().next.is_none());
    assert!(client.resources_page(None).unwrap().next.is_some());
    assert!(client.resource_templates_page(None).unwrap().next.is_some());
    assert!(client.prompts_page(None).unwrap().next.is_some());
    match client.ping() {
        Err(Error::NotInRevision { .. }) => assert_eq!(revision, MODERN),
        ping => ping.unwrap(),
    }
    client.set_log_level(LogLevel::Info).unwrap();
    client.roots_changed().unwrap();
    assert_eq!(client.call_tool("ask", ()).unwrap().all_text(), "done");
    let mut told = 0;
    let options = CallOptions::new().progress(|_| told += 1);
    let asked = client.call_tool_with("ask", json!({"a": 1}), options);
    assert_eq!(asked.unwrap().all_text(), "done");
    assert_eq!(told, 1);
    client.read_resource("file:///r").unwrap();
    client.get_prompt("p", json!({"a": "b"})).unwrap();
    let known = json!({"b": "c"});
    let prompt = Reference::Prompt("p".into());
    client.complete(&prompt, "a", "v", &known).unwrap();
    let resource = Reference::Resource("file:///{r}".into());
    client.complete(&resource, "r", "v", ()).unwrap();
    let own = json!({"a": 1, "_meta": {"com.example/own": true}});
    client.request::<Value>("com.example/any", own).unwrap();
    // Given up when the server is known to have it.
    let token = CancelToken::new();
    let options = CallOptions::new().cancel_token(&token);
    let options = options.progress(|_| token.cancel());
    let error = client.call_tool_with("never", (), options).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
}

/// The messages of a session, in order.
fn record(revision: Revision, options: &Options) -> Vec<Value> {
    let mut recorder = Recorder {
        revision,
        lines: Vec::new(),
        held: None,
        greeted: false,
    };
    let greet = |script: &mut Script| recorder.run(script, |recorder| recorder.greeted);
    let (client, mut script) = connect(options, greet);
    let client = client.unwrap();
    assert_eq!(client.server().revision(), revision);
    thread::scope(|scope| {
        scope.spawn(|| {
            recorder.run(&mut script, |_| false);
            script.output.shutdown(std::net::Shutdown::Both).unwrap();
        });
        session(&client);
        client.close();
    });
    assert!(recorder.held.is_none());
    recorder.lines
}

#[test]
fn c003_c004_c034_only_what_the_revision_allows_is_written() {
    guarded(|| {
        for revision in Revision::ALL {
            let pinned = record(revision, &options().revision(revision));
            check_session(revision, &pinned);
            let mut found = record(revision, &options());
            if revision.era() == Era::Legacy {
                // The probe comes before the revision is known, and is of another one; so is the
                // greeting, which offers the newest.
                let probe = found.remove(0);
                assert_eq!(probe["method"], "server/discover");
                check(MODERN, &probe, &mut HashSet::new());
                check(MODES, &found[0], &mut HashSet::new());
                found[0] = pinned[0].clone();
                found[0]["id"] = json!(2);
            }
            check_session(revision, &found);
        }
    });
}

fn check_session(revision: Revision, messages: &[Value]) {
    let mut ids = HashSet::new();
    for message in messages {
        match message {
            Value::Array(answers) => {
                assert_eq!(revision, BATCHES, "{message}");
                for answer in answers {
                    assert!(answer.get("method").is_none(), "{message}");
                    check(revision, answer, &mut ids);
                }
            }
            message => check(revision, message, &mut ids),
        }
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for message in messages {
        let method = message["method"].as_str().unwrap_or("answer");
        *counts.entry(method).or_default() += 1;
    }
    let expected: BTreeSet<&str> = REQUESTS
        .iter()
        .chain(NOTIFICATIONS)
        .filter(|legal| legal.in_revisions.0 <= revision && revision <= legal.in_revisions.1)
        .map(|legal| legal.method)
        .chain((revision != MODERN).then_some("answer"))
        .collect();
    let found: BTreeSet<&str> = counts.keys().copied().collect();
    assert_eq!(found, expected, "every message of {revision} is written");
    if revision == MODERN {
        assert_eq!(messages[0]["method"], "server/discover");
        // Twice asked and twice retried, and once given up.
        assert_eq!(counts["tools/call"], 5);
    } else {
        assert_eq!(messages[0]["method"], "initialize");
        assert_eq!(messages[1]["method"], "notifications/initialized");
        assert_eq!(counts["tools/call"], 3);
        let batches = messages.iter().filter(|message| message.is_array());
        let expected = if revision == BATCHES { 2 } else { 0 };
        assert_eq!(batches.count(), expected);
        assert_eq!(counts["answer"], 12 + expected);
    }
}
