// The server of the examples in the documentation: one thread behind an in-memory pair. The
// examples include this file, so that they show what a user writes and nothing else.

use std::error::Error;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use landline::mcp::{Client, Options};
use serde_json::{Value, json};

/// A client of a modern server with default options.
#[allow(dead_code)]
pub fn client() -> Result<Client, Box<dyn Error>> {
    let (answers, requests) = server();
    Ok(Options::new("my-tool", "1.0").connect(answers, requests)?)
}

/// A client of a legacy server with default options.
#[allow(dead_code)]
pub fn legacy_client() -> Result<Client, Box<dyn Error>> {
    let (answers, requests) = legacy_server();
    Ok(Options::new("my-tool", "1.0").connect(answers, requests)?)
}

/// A modern server: what it writes, and what it reads.
#[allow(dead_code)]
pub fn server() -> (UnixStream, UnixStream) {
    start(true)
}

/// A legacy server.
#[allow(dead_code)]
pub fn legacy_server() -> (UnixStream, UnixStream) {
    start(false)
}

fn start(is_modern: bool) -> (UnixStream, UnixStream) {
    let (requests, input) = UnixStream::pair().unwrap();
    let (output, answers) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        let input = BufReader::new(input).lines();
        Demo {
            input,
            output,
            is_modern,
        }
        .serve()
    });
    (answers, requests)
}

struct Demo {
    input: Lines<BufReader<UnixStream>>,
    output: UnixStream,
    is_modern: bool,
}

impl Demo {
    fn serve(mut self) {
        while let Some(message) = self.receive() {
            if message.get("id").is_none() {
                continue;
            }
            let outcome = match self.answer(&message) {
                Some(result) => ("result", result),
                None => ("error", json!({"code": -32601, "message": "method not found"})),
            };
            self.send(json!({"jsonrpc": "2.0", "id": message["id"], outcome.0: outcome.1}));
        }
    }

    fn receive(&mut self) -> Option<Value> {
        let line = self.input.next()?.ok()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    fn send(&mut self, message: Value) {
        // The client may be gone.
        let _ = writeln!(self.output, "{message}");
    }

    fn tell(&mut self, method: &str, params: Value) {
        let method = format!("notifications/{method}");
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn answer(&mut self, message: &Value) -> Option<Value> {
        let params = &message["params"];
        let capabilities = json!({
            "tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {},
        });
        Some(match message["method"].as_str()? {
            "server/discover" if self.is_modern => json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "demo", "version": "1"}},
            }),
            "initialize" if !self.is_modern => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": {"name": "demo", "version": "1"},
            }),
            "tools/list" if params["cursor"] == "more" => {
                json!({"tools": [{"name": "build", "inputSchema": {"type": "object"}}]})
            }
            "tools/list" => json!({
                "tools": [{
                    "name": "add",
                    "description": "adds two numbers",
                    "inputSchema": {"type": "object"},
                    "outputSchema": {"type": "object"},
                }],
                "nextCursor": "more",
            }),
            "tools/call" => return self.call_tool(message),
            "resources/list" => json!({
                "resources": [{"uri": "file:///notes", "name": "notes"}, {"name": "nowhere"}],
            }),
            "resources/templates/list" => {
                json!({"resourceTemplates": [{"uriTemplate": "file:///{name}", "name": "files"}]})
            }
            "resources/read" => {
                json!({"contents": [{"uri": params["uri"], "text": "buy milk"}]})
            }
            "prompts/list" => {
                json!({"prompts": [{"name": "review", "arguments": [{"name": "language"}]}]})
            }
            "prompts/get" => {
                let text = format!("Review this {}.", params["arguments"]["language"].as_str()?);
                let content = json!({"type": "text", "text": text});
                json!({"messages": [{"role": "user", "content": content}]})
            }
            "completion/complete" => json!({"completion": {"values": ["rust", "ruby"]}}),
            "ping" | "logging/setLevel" if !self.is_modern => json!({}),
            "com.example/time" => json!({"hour": 12, "meta": params["_meta"]["com.example/zone"]}),
            _ => return None,
        })
    }

    fn call_tool(&mut self, message: &Value) -> Option<Value> {
        let params = &message["params"];
        let arguments = &params["arguments"];
        let said = match params["name"].as_str()? {
            "add" => {
                let sum = arguments["a"].as_i64()? + arguments["b"].as_i64()?;
                return Some(json!({"content": [], "structuredContent": {"sum": sum}}));
            }
            "build" => {
                for done in 1..=3 {
                    let token = &params["_meta"]["progressToken"];
                    let progress = json!({"progressToken": token, "progress": done, "total": 3});
                    self.tell("progress", progress);
                }
                "built".to_owned()
            }
            // What a modern server tells of its own accord, it tells by subscription alone.
            "change" if !self.is_modern => {
                self.tell("message", json!({"level": "warning", "data": "disk is full"}));
                self.tell("tools/list_changed", json!({}));
                self.tell("resources/updated", json!({"uri": "file:///notes"}));
                self.tell("com.example/tick", json!({}));
                "changed".to_owned()
            }
            "greet" => {
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let ask = json!({"message": "Your name?", "requestedSchema": schema});
                match self.ask(message, "elicitation/create", ask) {
                    Err(needs) => return Some(needs),
                    Ok(answer) if answer["action"] == "accept" => {
                        format!("Hello {}", answer["content"]["name"].as_str()?)
                    }
                    Ok(_) => "Hello".to_owned(),
                }
            }
            "log_in" => {
                let url = "https://example.com/";
                let mut ask = json!({"mode": "url", "message": "Log in", "url": url});
                if !self.is_modern {
                    ask["elicitationId"] = "7".into();
                }
                match self.ask(message, "elicitation/create", ask) {
                    Err(needs) => return Some(needs),
                    Ok(answer) => {
                        if !self.is_modern {
                            self.tell("elicitation/complete", json!({"elicitationId": "7"}));
                        }
                        answer["action"].as_str()?.to_owned()
                    }
                }
            }
            "poem" => {
                let text = json!({"type": "text", "text": "Write a poem."});
                let messages = json!([{"role": "user", "content": text}]);
                let ask = json!({"messages": messages, "maxTokens": 100});
                match self.ask(message, "sampling/createMessage", ask) {
                    Err(needs) => return Some(needs),
                    Ok(answer) => answer["content"]["text"].as_str()?.to_owned(),
                }
            }
            "where" => match self.ask(message, "roots/list", json!({})) {
                Err(needs) => return Some(needs),
                Ok(answer) => answer["roots"][0]["uri"].as_str()?.to_owned(),
            },
            // Never answered.
            "hang" => loop {
                self.receive()?;
            },
            _ => return None,
        };
        Some(json!({"content": [{"type": "text", "text": said}]}))
    }

    /// Asks the client in the way of the era: gives its answer, or the result that asks for it.
    fn ask(&mut self, call: &Value, method: &str, params: Value) -> Result<Value, Value> {
        if !self.is_modern {
            self.send(json!({"jsonrpc": "2.0", "id": "ask", "method": method, "params": params}));
            let mut answer = self.receive().unwrap_or_default();
            return Ok(answer["result"].take());
        }
        let answer = call["params"]["inputResponses"].get("ask");
        answer.cloned().ok_or_else(|| {
            let needs = json!({"ask": {"method": method, "params": params}});
            json!({"resultType": "input_required", "inputRequests": needs})
        })
    }
}
