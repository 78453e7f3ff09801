//! Servers of our own on the official SDKs, which serve both eras: `sdk.cjs` in TypeScript's and
//! `sdk.py` in Python's, with the same surface. Whatever is tested here is tested with both.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use landline::mcp::{
    CacheScope, CallOptions, Client, ConnectPhase, Context, Elicited, Era, Error, FormRequest,
    LogLevel, Options, Reason, Revision, Root, Sample,
};
use landline::{CancelToken, ChildSpec, Delivery, Exit, Step};
use serde_json::{Value, json};

use super::support::eventually;
use super::{client, connect, ends_well, exits, late, pip, text, with_servers};

#[test]
fn both_sdks_are_modern_and_list_what_they_have() {
    each(|sdk| {
        let server = connect(&client(), &sdk.server());
        let hello = server.server();
        assert_eq!((hello.era(), hello.version()), (Era::Modern, "2026-07-28"));
        let name = hello.implementation().unwrap();
        assert_eq!(name.name().unwrap(), "sdk");
        assert_eq!(name.title().unwrap(), "SDK");
        assert_eq!(name.version().unwrap(), "1.2.3");

        let page = server.tools_page(None).unwrap();
        assert_eq!((page.next, page.cache_scope), (None, CacheScope::Private));
        assert!(page.ttl.is_zero());
        let tools: Vec<_> = page.items.iter().map(|tool| tool.name()).collect();
        assert_eq!(tools, TOOLS);
        let prompts = server.prompts().unwrap();
        assert_eq!((prompts.len(), prompts[0].name()), (1, "letter".into()));
        let arguments = prompts[0].arguments();
        assert_eq!((arguments.len(), arguments[0].name()), (1, "to".into()));
        assert!(arguments[0].is_required());
        let templates = server.resource_templates().unwrap();
        assert_eq!(
            (templates.len(), templates[0].uri_template()),
            (1, "note://{id}".into())
        );
        assert!(server.resources().unwrap().is_empty());

        let sum = server.call_tool("add", json!({"a": 1, "b": 2.5})).unwrap();
        assert_eq!(sum.structured_as::<Value>().unwrap(), json!({"sum": 3.5}));
        let none = server.read_resource("nope://7").unwrap_err();
        assert!(none.is_resource_not_found(), "{none}");
        ends_well(server.connection());
    });
}

#[test]
fn calls_of_the_modern_era_are_answered_round_by_round() {
    each(|sdk| {
        let (options, asked) = answering();
        let server = connect(&options, &sdk.server());
        assert_eq!(server.server().era(), Era::Modern);
        questions_of_tools(&server, &asked);
        assert_eq!(text(&server, "later", ()), "true");

        let letter = server.get_prompt("letter", json!({"to": "Bob"})).unwrap();
        assert_eq!(letter.description().unwrap(), "A letter");
        let [message] = &letter.messages()[..] else {
            panic!("{letter:?}");
        };
        assert_eq!(message.content().as_text().unwrap(), "Dear Bob, yours Ada");
        assert_eq!(asked.recv().unwrap(), "Who signs?");
        let note = server.read_resource("note://7").unwrap();
        let [note] = &note.contents()[..] else {
            panic!("{note:?}");
        };
        assert_eq!(
            (note.uri(), note.as_text().unwrap()),
            ("note://7".into(), "note 7 for Ada".into())
        );
        assert_eq!(asked.recv().unwrap(), "Who reads?");
        assert!(asked.try_recv().is_err());
        ends_well(server.connection());
    });
}

#[test]
fn the_same_handlers_answer_the_same_tools_in_the_legacy_era() {
    each(|sdk| {
        for revision in [Revision::V2025_11_25, Revision::V2025_06_18] {
            let (options, asked) = answering();
            let server = connect(&options.revision(revision), &sdk.server());
            assert_eq!(server.server().revision(), revision);
            questions_of_tools(&server, &asked);
            assert!(asked.try_recv().is_err());
            ends_well(server.connection());
        }
    });
}

#[test]
fn rounds_of_calls_at_the_same_time_do_not_mix() {
    each(|sdk| {
        let count = AtomicU32::new(0);
        let options = client().elicit_form(move |_, ask| {
            let message = ask.message();
            // The second question names the first one's answer.
            match message.strip_prefix("Which colour, ") {
                Some(name) => filled("colour", &format!("the {}", name.trim_end_matches('?'))),
                None => filled(
                    "name",
                    &format!("no. {}", count.fetch_add(1, Ordering::SeqCst)),
                ),
            }
        });
        let server = connect(&options, &sdk.server());
        let mut greeted: Vec<u32> = thread::scope(|scope| {
            let calling: Vec<_> = (0..4)
                .map(|n| {
                    let server = &server;
                    scope.spawn(move || {
                        let calls = (0..5).map(|m| {
                            let greeting = format!("hello {n} {m}");
                            let said = text(server, "greet", json!({"greeting": greeting}));
                            let rest = said.strip_prefix(&format!("{greeting}, no. ")).unwrap();
                            let (name, colour) = rest.split_once(", who likes the no. ").unwrap();
                            assert_eq!(format!("{name}!"), colour);
                            name.parse().unwrap()
                        });
                        calls.collect::<Vec<u32>>()
                    })
                })
                .collect();
            calling
                .into_iter()
                .flat_map(|call| call.join().unwrap())
                .collect()
        });
        greeted.sort_unstable();
        assert_eq!(greeted, (0..20).collect::<Vec<_>>());
        ends_well(server.connection());
    });
}

#[test]
fn a_form_that_is_declined_is_an_answer_in_both_eras() {
    each(|sdk| {
        for era in [Era::Modern, Era::Legacy] {
            let options = client().era(era).elicit_form(|_, _| Elicited::Decline);
            let server = connect(&options, &sdk.server());
            let greeting = json!({"greeting": "hi"});
            let greeted = server.call_tool("greet", greeting).unwrap();
            // Which the server takes as it likes.
            let declined = match sdk.kind {
                Kind::TypeScript => "nobody to greet: decline",
                Kind::Python => {
                    "Error executing tool greet: \
                     Resolver for parameter 'name' could not resolve: elicitation was decline"
                }
            };
            assert_eq!(greeted.all_text(), declined);
            ends_well(server.connection());
        }
    });
}

#[test]
fn a_sample_that_is_refused_ends_the_call_here_or_is_told_to_a_legacy_server() {
    each(|sdk| {
        let options = client()
            .elicit_form(|_, _| filled("name", "Ada"))
            .sample(|_, _| Err(Sample::refused("not now")))
            .roots(|_| Vec::new());
        let server = connect(&options, &sdk.server());
        let error = server.call_tool("gather", ()).unwrap_err();
        match &error {
            Error::Refused {
                method,
                asked,
                refusal,
            } => {
                assert_eq!(
                    (&**method, &**asked),
                    ("tools/call", "sampling/createMessage")
                );
                assert_eq!((refusal.code, &*refusal.message), (-1, "not now"));
            }
            other => panic!("{other}"),
        }
        assert_eq!(error.delivery(), Delivery::Answered);
        ends_well(server.connection());

        let server = connect(&options.era(Era::Legacy), &sdk.server());
        let gathered = server.call_tool("gather", ());
        match sdk.kind {
            Kind::TypeScript => {
                let failed = gathered.unwrap();
                assert!(failed.is_error());
                let words = "Fulfilling input required by 'tools/call' failed: not now";
                assert_eq!(failed.all_text(), words);
            }
            // It passes the refusal on.
            Kind::Python => {
                let error = gathered.unwrap_err();
                let refused = error.rpc().unwrap();
                assert_eq!((refused.code, &*refused.message), (-1, "not now"));
            }
        }
        // One withdraws its question for roots, asked at the same time, as that is answered.
        exits(server.connection());
    });
}

#[test]
fn nobody_is_asked_in_a_revision_without_elicitation() {
    each(|sdk| {
        for revision in [Revision::V2025_03_26, Revision::V2024_11_05] {
            let (options, asked) = answering();
            let server = connect(&options.revision(revision), &sdk.server());
            let greeted = server.call_tool("greet", json!({"greeting": "hi"}));
            match sdk.kind {
                Kind::TypeScript => {
                    let failed = greeted.unwrap();
                    assert!(failed.is_error());
                    let why = "did not declare the required capability";
                    assert!(failed.all_text().ends_with(why), "{failed:?}");
                }
                Kind::Python => {
                    let needed = greeted.unwrap_err();
                    let needed = needed.required_capabilities().unwrap();
                    assert_eq!(needed.get(), FORM);
                }
            }
            assert!(asked.try_recv().is_err());
            ends_well(server.connection());
        }
    });
}

#[test]
fn what_the_client_does_not_declare_is_named_by_the_server() {
    each(|sdk| {
        let server = connect(&client(), &sdk.server());
        let error = server.call_tool("gather", ()).unwrap_err();
        assert_eq!(error.rpc().unwrap().code, -32021);
        let needed = error.required_capabilities().unwrap();
        assert_eq!(needed.get(), FORM);
        ends_well(server.connection());
    });
}

#[test]
fn a_page_is_visited_in_the_modern_era_by_consent_alone() {
    each(|sdk| {
        let (page, asked) = mpsc::channel();
        let options = client().elicit_url(move |_, ask| {
            let id = ask.elicitation_id().map(|id| id.into_owned());
            page.send((ask.message().into_owned(), ask.url().into_owned(), id))
                .unwrap();
            Elicited::accept()
        });
        let server = connect(&options, &sdk.server());
        let visited = text(&server, "visit", ());
        let none = match sdk.kind {
            Kind::TypeScript => "undefined",
            Kind::Python => "None",
        };
        assert_eq!(visited, format!("accept {none}"));
        let expected = ("Go.".into(), "https://example.com/ü?a=b".into(), None);
        assert_eq!(asked.recv().unwrap(), expected);
        ends_well(server.connection());
    });
}

#[test]
fn a_cancelled_call_ends_on_both_sides() {
    each(|sdk| {
        for era in [Era::Modern, Era::Legacy] {
            let server = connect(&client().era(era), &sdk.server());
            let token = CancelToken::new();
            // Once it runs.
            let options = CallOptions::new()
                .cancel_token(&token)
                .progress(|_| token.cancel());
            let error = server.call_tool_with("wait", (), options).unwrap_err();
            assert!(error.is_cancelled(), "{error}");
            eventually("the server has stopped the tool", || {
                text(&server, "cancelled", ()) == "1"
            });
            ends_well(server.connection());
        }
    });
}

#[test]
fn a_probe_that_is_answered_late_still_finds_an_era() {
    each(|sdk| {
        let options = client().probe_timeout(Duration::from_millis(1));
        let server = connect(&options, &late(&sdk.server()));
        // One takes the greeting behind the probe all the same, the other refuses it then.
        let era = match sdk.kind {
            Kind::TypeScript => Era::Legacy,
            Kind::Python => Era::Modern,
        };
        assert_eq!(server.server().era(), era);
        assert_eq!(server.tools().unwrap().len(), TOOLS.len());
        ends_well(server.connection());
    });
}

#[test]
fn progress_of_a_call_is_told_with_its_words() {
    each(|sdk| {
        for era in [Era::Modern, Era::Legacy] {
            let server = connect(&client().era(era), &sdk.server());
            let mut seen = Vec::new();
            let options = CallOptions::new().progress(|step| {
                let message = step.message().unwrap().into_owned();
                seen.push((step.progress().unwrap(), step.total().unwrap(), message));
            });
            let steps = json!({"steps": 2});
            let result = server.call_tool_with("work", steps, options).unwrap();
            assert_eq!(result.all_text(), "2 steps");
            assert_eq!(
                seen,
                [(0.5, 1.0, "step 1".into()), (1.0, 1.0, "step 2".into())]
            );
            // Python's server logs in the legacy era whether asked to or not.
            exits(server.connection());
        }
    });
}

#[test]
fn a_modern_server_logs_what_it_is_asked_to() {
    each(|sdk| {
        let (options, logged) = logging();
        // Python's server logs without declaring it.
        let options = match sdk.kind {
            Kind::TypeScript => options,
            Kind::Python => options.ungated(),
        };
        let server = connect(&options, &sdk.server());
        assert_eq!(server.server().era(), Era::Modern);
        let steps = json!({"steps": 1});
        text(&server, "work", &steps);
        server.set_log_level(LogLevel::Info).unwrap();
        text(&server, "work", &steps);
        server.set_log_level(LogLevel::Debug).unwrap();
        text(&server, "work", &steps);
        // None from the first call, as they would have come before.
        let logs: Vec<_> = logged.iter().take(3).collect();
        assert_eq!(logs, [sdk.info(), sdk.info(), sdk.debug()]);
        ends_well(server.connection());
        assert!(logged.try_recv().is_err());
    });
}

#[test]
fn a_legacy_server_logs_by_its_level_if_it_declares_to() {
    each(|sdk| {
        let (options, logged) = logging();
        let server = connect(&options.era(Era::Legacy), &sdk.server());
        let steps = json!({"steps": 1});
        match sdk.kind {
            Kind::TypeScript => {
                server.set_log_level(LogLevel::Info).unwrap();
                text(&server, "work", &steps);
                server.set_log_level(LogLevel::Debug).unwrap();
                text(&server, "work", &steps);
                let logs: Vec<_> = logged.iter().take(3).collect();
                assert_eq!(logs, [sdk.info(), sdk.info(), sdk.debug()]);
            }
            Kind::Python => {
                let refused = server.set_log_level(LogLevel::Info).unwrap_err();
                let right = matches!(
                    refused,
                    Error::NotSupported {
                        capability: "logging",
                        ..
                    }
                );
                assert!(right, "{refused}");
                text(&server, "work", &steps);
                let logs: Vec<_> = logged.iter().take(2).collect();
                assert_eq!(logs, [sdk.info(), sdk.debug()]);
            }
        }
        ends_well(server.connection());
        assert!(logged.try_recv().is_err());
    });
}

#[test]
fn a_version_that_only_the_client_knows_is_given_up() {
    each(|sdk| {
        let options = client().modern_versions(["2027-01-01", "2026-07-28"]);
        let server = connect(&options, &sdk.server());
        assert_eq!(server.server().version(), "2026-07-28");
        assert_eq!(server.tools().unwrap().len(), TOOLS.len());
        ends_well(server.connection());

        let options = client().modern_versions(["2027-01-01"]);
        let error = options.spawn(&sdk.server()).unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!(failure.phase, ConnectPhase::Probe);
        assert!(
            matches!(failure.reason, Reason::NoCommonVersion),
            "{failure}"
        );
        assert_eq!(failure.theirs, ["2026-07-28"]);
        assert_eq!(failure.ours[0], "2027-01-01");
        let ended = failure.attempts[0].ended;
        assert_eq!(
            (ended.exit, ended.step),
            (Some(Exit::Code(0)), Step::StdinClosed)
        );
    });
}

#[test]
fn every_revision_that_is_pinned_is_agreed_on() {
    each(|sdk| {
        for revision in Revision::ALL {
            let server = connect(&client().revision(revision), &sdk.server());
            assert_eq!(server.server().revision(), revision);
            assert_eq!(server.server().version(), revision.as_str());
            let sum = server.call_tool("add", json!({"a": 1, "b": 2.5})).unwrap();
            let result: Value = serde_json::from_str(&sum.all_text()).unwrap();
            assert_eq!(result, json!({"sum": 3.5}));
            ends_well(server.connection());
        }
    });
}

#[test]
fn a_server_that_rejects_the_legacy_era_names_its_versions() {
    with_servers(|servers| {
        let sdk = Sdk {
            kind: Kind::TypeScript,
            servers: servers.into(),
        };
        let spec = sdk.server().with_arg("reject").unwrap();
        let error = client().era(Era::Legacy).spawn(&spec).unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!(failure.phase, ConnectPhase::Handshake);
        assert_eq!(failure.rpc().unwrap().code, -32022);
        assert_eq!(failure.theirs, ["2026-07-28"]);
        assert_eq!(failure.ours[0], "2025-11-25");

        // One that was legacy when it was last met, and is not any more, is found out.
        let server = connect(&client().remembered(Era::Legacy), &spec);
        assert_eq!(server.server().revision(), Revision::V2026_07_28);
        assert_eq!(server.tools().unwrap().len(), TOOLS.len());
        ends_well(server.connection());
    });
}

/// One of the two.
struct Sdk {
    kind: Kind,
    servers: PathBuf,
}

#[derive(Clone, Copy)]
enum Kind {
    TypeScript,
    Python,
}

/// Runs a test with each SDK, under a guard of its own.
fn each(test: impl Fn(&Sdk) + Send + Clone + 'static) {
    for kind in [Kind::TypeScript, Kind::Python] {
        let test = test.clone();
        with_servers(move |servers| {
            test(&Sdk {
                kind,
                servers: servers.into(),
            })
        });
    }
}

/// The level of a log message, its logger, and its data.
type Logged = (LogLevel, String, Option<String>);

impl Sdk {
    fn info(&self) -> Logged {
        (
            LogLevel::Info,
            "worker".into(),
            Some(r#"{"step":1}"#.into()),
        )
    }

    /// A message whose data is null, which Python's server leaves out.
    fn debug(&self) -> Logged {
        let data = match self.kind {
            Kind::TypeScript => Some("null".into()),
            Kind::Python => None,
        };
        (LogLevel::Debug, "worker".into(), data)
    }

    fn server(&self) -> ChildSpec {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_servers");
        match self.kind {
            Kind::TypeScript => ChildSpec::new("node")
                .unwrap()
                .with_arg(sources.join("sdk.cjs"))
                .unwrap()
                .with_env("NODE_PATH", self.servers.join("node_modules"))
                .unwrap(),
            Kind::Python => pip(&self.servers, "python")
                .with_arg(sources.join("sdk.py"))
                .unwrap(),
        }
    }
}

/// Answers whatever the tools ask, and tells what that was.
fn answering() -> (Options, mpsc::Receiver<String>) {
    let (ask_form, asked) = mpsc::channel();
    let ask_model = ask_form.clone();
    let options = client()
        .elicit_form(move |_: &Context, ask: &FormRequest| {
            let message = ask.message().into_owned();
            let answer = match &*message {
                "Which colour, Ada?" => filled("colour", "red"),
                _ => filled("name", "Ada"),
            };
            ask_form.send(message).unwrap();
            answer
        })
        .sample(move |_, ask| {
            let said = ask.messages()[0].content()[0]
                .as_text()
                .unwrap()
                .into_owned();
            let asks = format!(
                "{said} {:?} {}",
                ask.max_tokens(),
                ask.system_prompt().unwrap()
            );
            ask_model.send(asks).unwrap();
            Ok(Sample::text("m1", "four"))
        })
        .roots(|_| {
            let uris = ["file:///srv/a", "file:///srv/b"];
            uris.map(|uri| Root::new(uri).unwrap()).into()
        });
    (options, asked)
}

/// Tells what the server logs.
fn logging() -> (Options, mpsc::Receiver<Logged>) {
    let (log, logged) = mpsc::channel();
    let options = client().on_log(move |_, message| {
        let data = message.data().map(|data| data.get().to_owned());
        let logger = message.logger().unwrap().into_owned();
        log.send((message.level().unwrap(), logger, data)).unwrap();
    });
    (options, logged)
}

/// Calls the tools that ask, in either era.
fn questions_of_tools(server: &Client, asked: &mpsc::Receiver<String>) {
    let greeted = text(server, "greet", json!({"greeting": "hi"}));
    assert_eq!(greeted, "hi, Ada, who likes red!");
    assert_eq!(asked.recv().unwrap(), "Your name?");
    assert_eq!(asked.recv().unwrap(), "Which colour, Ada?");
    let gathered = text(server, "gather", ());
    assert_eq!(gathered, "Ada; four by m1; file:///srv/a,file:///srv/b");
    // A legacy server may ask all at once, and is answered on as many threads.
    let mut questions = [asked.recv().unwrap(), asked.recv().unwrap()];
    questions.sort_unstable();
    assert_eq!(questions, ["2 + 2? Some(7) Be brief.", "Your name?"]);
}

fn filled(member: &str, value: &str) -> Elicited {
    Elicited::Accept([(member.to_owned(), value.into())].into_iter().collect())
}

/// The capability for forms.
const FORM: &str = r#"{"elicitation":{"form":{}}}"#;

const TOOLS: [&str; 8] = [
    "add",
    "greet",
    "gather",
    "later",
    "work",
    "wait",
    "cancelled",
    "visit",
];
