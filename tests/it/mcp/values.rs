//! What servers give: content, structured results, lists, resources, prompts, in every shape that a
//! revision allows, and in those that none does.

use std::time::Duration;

use landline::mcp::{
    Block, CacheScope, Client, Content, Error, Fault, Options, Reference, ToolResult,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::server::{LEGACY, during, legacy, modern};
use crate::support::Script;

pub(super) fn options() -> Options {
    Options::new("test", "1")
}

pub(super) const MODERN: &str = "2026-07-28";

pub(super) fn connected(revision: &str, options: &Options) -> (Client, Script) {
    let declared = json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}});
    match revision {
        MODERN => modern(options, declared),
        _ => legacy(options, revision, declared),
    }
}

/// A client of each era.
fn both() -> [(Client, Script); 2] {
    ["2025-11-25", MODERN].map(|revision| connected(revision, &options()))
}

/// Makes a call and answers it with this text.
pub(super) fn answered<T: Send>(
    script: &mut Script,
    result: &str,
    call: impl FnOnce() -> T + Send,
) -> T {
    during(call, || {
        let id = script.recv()["id"].clone();
        script.raw(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"
        ));
    })
}

fn tool_result(client: &Client, script: &mut Script, result: &str) -> ToolResult {
    answered(script, result, || client.call_tool("t", ())).unwrap()
}

/// A block in words.
fn shown(content: &Content) -> String {
    match content.block() {
        Block::Text(text) => format!("text {text}"),
        Block::Image {
            data, mime_type, ..
        } => format!("image {data} {mime_type}"),
        Block::Audio {
            data, mime_type, ..
        } => format!("audio {data} {mime_type}"),
        Block::Resource(contents) => format!(
            "resource {} {:?} {:?} {:?}",
            contents.uri(),
            contents.mime_type(),
            contents.as_text(),
            contents.as_blob()
        ),
        Block::ResourceLink(link) => {
            format!("link {} {} {:?}", link.uri(), link.name(), link.size())
        }
        Block::ToolUse {
            id, name, input, ..
        } => format!("use {id} {name} {}", input.get()),
        Block::ToolResult {
            tool_use_id,
            content,
            structured,
            is_error,
            ..
        } => {
            let content: Vec<_> = content.iter().map(shown).collect();
            let structured = structured.map_or("", |raw| raw.get());
            format!("result {tool_use_id} {content:?} {structured} {is_error}")
        }
        Block::Other => format!("other {}", content.kind()),
        _ => "another".into(),
    }
}

#[test]
fn c098_the_content_of_every_revision_is_read() {
    let first = [
        (r#"{"type":"text","text":"hi"}"#, "text hi"),
        (
            r#"{"type":"image","data":"AAE=","mimeType":"image/png"}"#,
            "image AAE= image/png",
        ),
        (
            r#"{"type":"resource","resource":{"uri":"u:1","mimeType":"a/b","text":"t"}}"#,
            r#"resource u:1 Some("a/b") Some("t") None"#,
        ),
        (
            r#"{"type":"resource","resource":{"uri":"u:2","blob":"AAE="}}"#,
            r#"resource u:2 None None Some("AAE=")"#,
        ),
    ];
    let second = [(
        r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#,
        "audio AA== audio/wav",
    )];
    let third = [(
        r#"{"type":"resource_link","uri":"u:3","name":"n","size":7.0,"_meta":{"a":1}}"#,
        "link u:3 n Some(7)",
    )];
    let mut golden = Vec::new();
    for revision in LEGACY.into_iter().chain([MODERN]) {
        match revision {
            "2024-11-05" => golden.extend(first),
            "2025-03-26" => golden.extend(second),
            "2025-06-18" => golden.extend(third),
            _ => {}
        }
        let unknown = r#"{"type":"hologram","depth":[1.50,null]}"#;
        let mut blocks: Vec<_> = golden.iter().map(|(block, _)| *block).collect();
        blocks.push(unknown);
        let (client, mut script) = connected(revision, &options());
        let result = format!("{{\"content\":[{}],\"isError\":false}}", blocks.join(","));
        let result = tool_result(&client, &mut script, &result);
        let content = result.content();
        let seen: Vec<_> = content.iter().map(shown).collect();
        let mut expected: Vec<_> = golden.iter().map(|(_, words)| *words).collect();
        expected.push("other hologram");
        assert_eq!(seen, expected, "{revision}");
        // Nothing of one that is unknown here is lost.
        let kept = content.last().unwrap();
        assert_eq!(kept.raw().get(), unknown);
        assert_eq!(kept.member("depth").unwrap().get(), "[1.50,null]");
        assert_eq!(result.all_text(), "hi");
    }
}

#[test]
fn c098_odd_blocks_cost_nothing_but_themselves() {
    let odd = [
        (r#""just text""#, "other "),
        ("null", "other "),
        ("[[]]", "other "),
        ("{}", "other "),
        (r#"{"type":7,"text":"t"}"#, "other "),
        (r#"{"type":"text"}"#, "other text"),
        (r#"{"type":"text","text":null}"#, "other text"),
        (r#"{"type":"text","text":5}"#, "other text"),
        (r#"{"type":"image","data":"AA=="}"#, "other image"),
        (r#"{"type":"resource"}"#, "other resource"),
        (
            r#"{"type":"resource","resource":3}"#,
            "resource  None None None",
        ),
        (r#"{"type":"resource_link"}"#, "link   None"),
        (
            r#"{"type":"tool_use","id":"a","name":"b"}"#,
            "other tool_use",
        ),
        (
            r#"{"type":"tool_result","toolUseId":"a","content":null,"isError":"no"}"#,
            "result a []  false",
        ),
        (r#"{"type":"text","text":"a\ud800b"}"#, "text a\u{fffd}b"),
        (r#"{"\ud800":1,"type":"text","text":"c"}"#, "text c"),
        (
            r#"{"type":"text","text":"first","text":"last"}"#,
            "text last",
        ),
    ];
    for (client, mut script) in both() {
        let blocks: Vec<_> = odd.iter().map(|(block, _)| *block).collect();
        let result = format!("{{\"content\":[{}],\"isError\":7}}", blocks.join(","));
        let result = tool_result(&client, &mut script, &result);
        let content = result.content();
        assert_eq!(content.len(), odd.len());
        for (content, (block, words)) in content.iter().zip(odd) {
            assert_eq!(shown(content), words, "{block}");
            assert_eq!(content.raw().get(), block);
        }
        assert!(!result.is_error(), "7 is not true");
        assert_eq!(result.all_text(), "a\u{fffd}b\nc\nlast");
        for (content, blocks) in [("null", 0), (r#"{"type":"text","text":"t"}"#, 1), ("[]", 0)] {
            let result = format!("{{\"content\":{content}}}");
            let result = tool_result(&client, &mut script, &result);
            assert_eq!(result.content().len(), blocks, "{content}");
        }
    }
}

#[test]
fn c098_annotations_are_read_where_they_stand() {
    let (client, mut script) = connected(MODERN, &options());
    let result = tool_result(
        &client,
        &mut script,
        r#"{"content":[
            {"type":"text","text":"t","annotations":{"audience":["user","robot",1]}},
            {"type":"text","text":"t","annotations":{"audience":"user"}},
            {"type":"text","text":"t"}]}"#
            .replace('\n', "")
            .as_str(),
    );
    let audiences: Vec<_> = result.content().iter().map(Content::audience).collect();
    assert_eq!(audiences, [vec!["user", "robot"], vec![], vec![]]);
}

#[test]
fn c099_a_structured_result_that_is_null_is_not_one_that_is_absent() {
    for (client, mut script) in both() {
        for value in ["null", "[1, 2.50]", "\"text\"", "false", r#"{"a": null}"#] {
            let result = format!("{{\"content\":[],\"structuredContent\":{value}}}");
            let result = tool_result(&client, &mut script, &result);
            assert_eq!(result.structured().unwrap().get(), value);
            let decoded: Value = result.structured_as().unwrap();
            assert_eq!(decoded, serde_json::from_str::<Value>(value).unwrap());
        }
        let absent = tool_result(&client, &mut script, r#"{"content":[]}"#);
        assert!(absent.structured().is_none());
        assert_eq!(absent.structured_as::<Option<u8>>().unwrap(), None);
        // A result of structure alone has been seen, and is one.
        let alone = tool_result(&client, &mut script, r#"{"structuredContent":null}"#);
        assert_eq!(alone.structured().unwrap().get(), "null");
        assert!(alone.content().is_empty());
    }
}

#[test]
fn c099_any_result_decodes_into_the_callers_own_type() {
    let (client, mut script) = connected(MODERN, &options());
    let odd = r#"{"structuredContent":{"size":[2,3]},"content":[]}"#;
    let result = tool_result(&client, &mut script, odd);
    let whole: Value = result.decode().unwrap();
    assert_eq!(whole["structuredContent"], json!({"size": [2, 3]}));
    assert!(result.structured_as::<Vec<u8>>().is_err());
    assert_eq!(result.raw().get(), odd);
    assert_eq!(serde_json::to_string(&result).unwrap(), odd);
    let raw = answered(&mut script, r#"{"x": 1.50}"#, || {
        client.request::<Box<RawValue>>("com.example/x", ())
    });
    assert_eq!(raw.unwrap().get(), r#"{"x": 1.50}"#);
    let wrong = answered(&mut script, r#"{"x":1}"#, || {
        client.request::<Vec<u8>>("com.example/x", ())
    });
    let error = wrong.unwrap_err();
    assert!(
        error.to_string().contains("not of the type asked for"),
        "{error}"
    );
}

#[test]
fn c099_a_result_without_anything_to_read_is_invalid() {
    for (client, mut script) in both() {
        for result in [
            "{}",
            "[]",
            "7",
            "null",
            "\"content\"",
            r#"{"isError":true}"#,
        ] {
            let error = answered(&mut script, result, || client.call_tool("t", ())).unwrap_err();
            assert!(
                matches!(
                    &error,
                    Error::Invalid {
                        fault: Fault::Missing("content"),
                        ..
                    }
                ),
                "{result}: {error}"
            );
        }
        for result in ["{}", r#"{"contents":{}}"#, r#"{"contents":null}"#] {
            let error = answered(&mut script, result, || client.read_resource("u:1"));
            let fault = Fault::Missing("contents");
            assert!(
                matches!(error.unwrap_err(), Error::Invalid { fault: found, .. } if found == fault)
            );
        }
        for result in ["{}", r#"{"messages":"none"}"#] {
            let error = answered(&mut script, result, || client.get_prompt("p", ()));
            let fault = Fault::Missing("messages");
            assert!(
                matches!(error.unwrap_err(), Error::Invalid { fault: found, .. } if found == fault)
            );
        }
        for result in [
            "{}",
            r#"{"completion":{"values":7}}"#,
            r#"{"completion":[]}"#,
        ] {
            let of = Reference::Resource("u:{x}".into());
            let error = answered(&mut script, result, || client.complete(&of, "x", "", ()));
            let fault = Fault::Missing("completion.values");
            assert!(
                matches!(error.unwrap_err(), Error::Invalid { fault: found, .. } if found == fault)
            );
        }
    }
}

#[test]
fn c101_a_tool_that_fails_is_a_result() {
    for (client, mut script) in both() {
        let failed = r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#;
        let result = tool_result(&client, &mut script, failed);
        assert!(result.is_error());
        assert_eq!(result.all_text(), "no such city");
    }
}

#[test]
fn an_item_that_cannot_be_used_costs_neither_its_page_nor_its_list() {
    for (client, mut script) in both() {
        let listed = r#"{"tools":[{"name":"a"},7,{"name":null},{"name":"b\ud800"},{"title":"c"}],
            "x":[]}"#
            .replace('\n', "");
        let tools = answered(&mut script, &listed, || client.tools()).unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        assert_eq!(names, ["a", "b\u{fffd}"]);
        let unusable = tools.unusable();
        let lost: Vec<_> = unusable
            .iter()
            .map(|item| (item.place, item.missing, item.raw.get()))
            .collect();
        assert_eq!(
            lost,
            [
                (1, "name", "7"),
                (2, "name", r#"{"name":null}"#),
                (4, "name", r#"{"title":"c"}"#)
            ]
        );
        let resources = r#"{"resources":[{"name":"a"},{"uri":"u:1"}]}"#;
        let resources = answered(&mut script, resources, || client.resources()).unwrap();
        assert_eq!(
            (resources[0].uri(), resources[0].name()),
            ("u:1".into(), "".into())
        );
        assert_eq!(resources.unusable()[0].missing, "uri");
        for none in ["{}", r#"{"tools":{}}"#, r#"{"tools":null}"#, "[]"] {
            let error = answered(&mut script, none, || client.tools()).unwrap_err();
            assert!(
                matches!(
                    &error,
                    Error::Invalid {
                        fault: Fault::Missing("tools"),
                        ..
                    }
                ),
                "{none}: {error}"
            );
        }
    }
}

#[test]
fn a_tool_is_shown_by_its_title_and_trusted_in_nothing() {
    let tools = r#"{"tools":[
        {"name":"a","title":"A","annotations":{"title":"B"}},
        {"name":"a","annotations":{"title":"B","readOnlyHint":true,"destructiveHint":false,
            "idempotentHint":true,"openWorldHint":false}},
        {"name":"a","description":"d","inputSchema":{"type": "object"},"annotations":null},
        {"name":"a","title":5,"description":5,"annotations":{"title":5,"readOnlyHint":"yes"}}]}"#;
    let (client, mut script) = connected("2025-11-25", &options());
    let tools = tools.replace('\n', "");
    let tools = answered(&mut script, &tools, || client.tools()).unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.display_name()).collect();
    assert_eq!(names, ["A", "B", "a", "a"]);
    let hints = |at: usize| {
        let tool = &tools[at];
        [
            tool.is_read_only(),
            tool.is_destructive(),
            tool.is_idempotent(),
            tool.is_open_world(),
        ]
    };
    assert_eq!(hints(1), [true, false, true, false]);
    for at in [0, 2, 3] {
        assert_eq!(hints(at), [false, true, false, true], "{at}");
    }
    assert_eq!(tools[2].description().unwrap(), "d");
    assert_eq!(
        tools[2].input_schema().unwrap().get(),
        r#"{"type": "object"}"#
    );
    assert!(tools[3].description().is_none());
    assert_eq!(tools[3].member("description").unwrap().get(), "5");
}

#[test]
fn resources_templates_and_contents_keep_what_they_have() {
    for (client, mut script) in both() {
        let listed = r#"{"resources":[{"uri":"u:1","name":"n","title":"T","description":"d",
            "mimeType":"a/b","size":12,"_meta":{"k":1}},
            {"uri":"u:2","name":3,"size":-1,"mimeType":null}]}"#
            .replace('\n', "");
        let resources = answered(&mut script, &listed, || client.resources()).unwrap();
        let one = &resources[0];
        assert_eq!((one.name(), one.title().unwrap()), ("n".into(), "T".into()));
        assert_eq!(
            (one.description().unwrap(), one.size()),
            ("d".into(), Some(12))
        );
        assert_eq!(one.mime_type().unwrap(), "a/b");
        assert_eq!(one.member("_meta").unwrap().get(), r#"{"k":1}"#);
        let two = &resources[1];
        assert_eq!(
            (two.name(), two.size(), two.mime_type()),
            ("".into(), None, None)
        );
        let listed = r#"{"resourceTemplates":[{"uriTemplate":"u:{x}","name":"n","title":"T",
            "description":"d","mimeType":"a/b"},{"uri":"u:1"}]}"#
            .replace('\n', "");
        let templates = answered(&mut script, &listed, || client.resource_templates()).unwrap();
        let one = &templates[0];
        assert_eq!(
            (one.uri_template(), one.name()),
            ("u:{x}".into(), "n".into())
        );
        assert_eq!(
            (one.title().unwrap(), one.description().unwrap()),
            ("T".into(), "d".into())
        );
        assert_eq!(templates.unusable()[0].missing, "uriTemplate");
        let read = r#"{"contents":[{"uri":"u:1","mimeType":"a/b","text":""},
            {"uri":"u:1#x","blob":"AA=="},{"text":null},7]}"#
            .replace('\n', "");
        let read = answered(&mut script, &read, || client.read_resource("u:1")).unwrap();
        let contents = read.contents();
        let seen: Vec<_> = contents
            .iter()
            .map(|part| (part.uri(), part.as_text(), part.as_blob()))
            .collect();
        assert_eq!(
            seen,
            [
                ("u:1".into(), Some("".into()), None),
                ("u:1#x".into(), None, Some("AA==".into())),
                ("".into(), None, None),
                ("".into(), None, None),
            ]
        );
    }
}

#[test]
fn prompts_have_arguments_and_messages() {
    for (client, mut script) in both() {
        let listed = r#"{"prompts":[{"name":"p","title":"P","description":"d","arguments":[
            {"name":"a","required":true,"description":"x"},{"name":"b"},5]},
            {"name":"q","arguments":null}]}"#
            .replace('\n', "");
        let prompts = answered(&mut script, &listed, || client.prompts()).unwrap();
        let prompt = &prompts[0];
        assert_eq!(
            (prompt.name(), prompt.title().unwrap()),
            ("p".into(), "P".into())
        );
        assert_eq!(prompt.description().unwrap(), "d");
        let arguments = prompt.arguments();
        let seen: Vec<_> = arguments
            .iter()
            .map(|argument| (argument.name(), argument.is_required()))
            .collect();
        assert_eq!(
            seen,
            [("a".into(), true), ("b".into(), false), ("".into(), false)]
        );
        assert_eq!(arguments[0].description().unwrap(), "x");
        assert!(prompts[1].arguments().is_empty());
        let got = r#"{"description":"d","messages":[
            {"role":"user","content":{"type":"text","text":"hi"}},
            {"role":"assistant","content":{"type":"hologram"}},{"role":7}]}"#
            .replace('\n', "");
        let got = answered(&mut script, &got, || client.get_prompt("p", ())).unwrap();
        assert_eq!(got.description().unwrap(), "d");
        let messages = got.messages();
        let seen: Vec<_> = messages
            .iter()
            .map(|message| format!("{}: {}", message.role(), shown(&message.content())))
            .collect();
        assert_eq!(
            seen,
            ["user: text hi", "assistant: other hologram", ": other "]
        );
    }
}

#[test]
fn what_a_server_says_of_caching_is_passed_on() {
    let (client, mut script) = connected(MODERN, &options());
    let ms = Duration::from_millis;
    for (said, ttl, scope) in [
        (
            r#","ttlMs":1500,"cacheScope":"public""#,
            ms(1500),
            CacheScope::Public,
        ),
        (
            r#","ttlMs":1500.0,"cacheScope":"private""#,
            ms(1500),
            CacheScope::Private,
        ),
        (r#","ttlMs":0"#, ms(0), CacheScope::Private),
        (
            r#","ttlMs":-1,"cacheScope":"everybody""#,
            ms(0),
            CacheScope::Private,
        ),
        (
            r#","ttlMs":"long","cacheScope":null"#,
            ms(0),
            CacheScope::Private,
        ),
        ("", ms(0), CacheScope::Private),
    ] {
        let page = format!("{{\"tools\":[{{\"name\":\"a\"}}]{said}}}");
        let page = answered(&mut script, &page, || client.tools_page(None)).unwrap();
        assert_eq!((page.ttl, page.cache_scope), (ttl, scope), "{said}");
        assert_eq!(page.items.len(), 1);
        let read = format!("{{\"contents\":[]{said}}}");
        let read = answered(&mut script, &read, || client.read_resource("a:b")).unwrap();
        assert_eq!((read.ttl(), read.cache_scope()), (ttl, scope), "{said}");
    }
    // Nothing is cached: each of these was asked for.
}

#[test]
fn unknown_members_are_ignored_and_kept() {
    for (client, mut script) in both() {
        let odd = r#"{"content":[],"zzz":{"a":[1.50]},"_meta":{"x":null}}"#;
        let result = tool_result(&client, &mut script, odd);
        assert_eq!(result.member("zzz").unwrap().get(), r#"{"a":[1.50]}"#);
        assert_eq!(result.member("_meta").unwrap().get(), r#"{"x":null}"#);
        assert!(result.member("absent").is_none());
        assert_eq!(format!("{result:?}"), format!("ToolResult({odd:?})"));
    }
}
