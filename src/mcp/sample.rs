//! Sampling: what a server asks of the caller's language model, and the model's answer.

use std::borrow::Cow;

use serde_core::Serialize;
use serde_json::{Map, Value, json};

use crate::RpcError;
use crate::json::{elements, text};
use crate::mcp::content::Content;
use crate::mcp::fault::{Refusal, malformed};
use crate::mcp::revision::Revision;
use crate::mcp::tools::Tool;
use crate::mcp::view::{many, present, view, whole};

view! {
    /// A question for the caller's language model (`sampling/createMessage`).
    SampleRequest,
    /// A message of the conversation in a [`SampleRequest`].
    SampleMessage,
}

impl SampleRequest {
    /// The conversation so far.
    pub fn messages(&self) -> Vec<SampleMessage> {
        many(self.member("messages"), SampleMessage::new)
    }

    /// How many tokens the answer may have at most; it must be respected.
    pub fn max_tokens(&self) -> Option<u64> {
        whole(self.member("maxTokens")?)
    }

    /// The system prompt that the server wishes for.
    pub fn system_prompt(&self) -> Option<Cow<'_, str>> {
        self.text("systemPrompt")
    }

    /// The temperature that the server wishes for.
    pub fn temperature(&self) -> Option<f64> {
        self.value("temperature")
    }

    /// Texts at which the answer is to stop.
    pub fn stop_sequences(&self) -> Vec<String> {
        self.value("stopSequences").unwrap_or_default()
    }

    /// Names of models or families to be taken by preference, the first that matches as a part of a
    /// model's name.
    pub fn model_hints(&self) -> Vec<String> {
        let hints = crate::json::member(&self.raw, &["modelPreferences", "hints"]);
        let hints = hints
            .and_then(|raw| elements(raw, MOST_MESSAGES))
            .unwrap_or_default();
        let names = hints
            .into_iter()
            .filter_map(|hint| text(crate::json::member(hint, &["name"])?));
        names.map(Cow::into_owned).collect()
    }

    /// The tools that the model may use (revision 2025-11-25).
    pub fn tools(&self) -> Vec<Tool> {
        many(self.member("tools"), Tool::new)
    }

    pub(crate) fn uses_tools(&self) -> bool {
        ["tools", "toolChoice"]
            .iter()
            .any(|name| present(&self.raw, name).is_some())
    }

    /// Refuses what the protocol forbids: a question without its required members, and tool results
    /// that do not answer the tool uses before them (revision 2025-11-25).
    pub(crate) fn check(&self, revision: Revision) -> Result<(), Refusal> {
        if self.max_tokens().is_none() {
            return Err(malformed("`maxTokens` is no whole number"));
        }
        if self
            .member("messages")
            .and_then(|raw| elements(raw, MOST_MESSAGES))
            .is_none()
        {
            return Err(malformed("`messages` is no array"));
        }
        if revision.has_modes() {
            self.check_tool_results()?;
        }
        Ok(())
    }

    fn check_tool_results(&self) -> Result<(), Refusal> {
        let mut open: Vec<String> = Vec::new();
        for message in self.messages() {
            let content = message.content();
            let results: Vec<_> = content
                .iter()
                .filter(|block| block.kind() == "tool_result")
                .collect();
            if !results.is_empty() && results.len() < content.len() {
                return Err(malformed("tool results stand beside other content"));
            }
            let mut answered: Vec<String> = results
                .iter()
                .filter_map(|block| block.id("toolUseId"))
                .collect();
            answered.sort_unstable();
            open.sort_unstable();
            if open != answered {
                return Err(malformed(
                    "tool results do not answer the tool uses before them",
                ));
            }
            let uses = content.iter().filter(|block| block.kind() == "tool_use");
            open = uses.filter_map(|block| block.id("id")).collect();
        }
        if open.is_empty() {
            Ok(())
        } else {
            Err(malformed("a tool use has no result"))
        }
    }
}

impl SampleMessage {
    /// Who speaks: `user` or `assistant`.
    pub fn role(&self) -> Cow<'_, str> {
        self.text("role").unwrap_or_default()
    }

    /// What is said: one block, or several (revision 2025-11-25).
    pub fn content(&self) -> Vec<Content> {
        Content::one_or_many(self.member("content"))
    }
}

/// The answer of the caller's language model.
#[derive(Debug, Clone)]
pub struct Sample {
    members: Map<String, Value>,
}

impl Sample {
    /// Makes an answer of a text.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Sample};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .sample(|_, _| Ok(Sample::text("my-model", "Roses are red.")))
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.call_tool("poem", ())?.all_text(), "Roses are red.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self::made(model, json!({"type": "text", "text": text.into()}))
    }

    /// Makes an answer of a content block, or of an array of them: before revision 2025-11-25 an
    /// array must hold one, and the server is refused (-32603) otherwise.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Sample};
    /// # use serde_json::json;
    /// # let (answers, requests) = demo::server();
    /// let block = json!({"type": "text", "text": "Roses are red."});
    /// let sample = Sample::new("my-model", &block)?;
    /// let server = Options::new("my-tool", "1.0")
    ///     .sample(move |_, _| Ok(sample.clone()))
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.call_tool("poem", ())?.all_text(), "Roses are red.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The content does not serialise to JSON.
    pub fn new(
        model: impl Into<String>,
        content: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        serde_json::to_value(content).map(|content| Self::made(model, content))
    }

    fn made(model: impl Into<String>, content: Value) -> Self {
        let members = [
            ("role", json!("assistant")),
            ("content", content),
            ("model", Value::String(model.into())),
        ];
        Sample {
            members: members
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        }
    }

    /// Says why the model stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or another
    /// word.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Sample};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .sample(|_, _| Ok(Sample::text("my-model", "Roses are").stop_reason("maxTokens")))
    ///     .connect(answers, requests)?;
    /// assert_eq!(server.call_tool("poem", ())?.all_text(), "Roses are");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.members
            .insert("stopReason".into(), Value::String(reason.into()));
        self
    }

    /// The refusal by the user: code -1 in the legacy era; in the modern one the call is abandoned.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Error, Options, Sample};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .sample(|_, _| Err(Sample::refused("no poems today")))
    ///     .connect(answers, requests)?;
    /// let error = server.call_tool("poem", ()).unwrap_err();
    /// assert!(matches!(error, Error::Refused { refusal, .. } if refusal.code == -1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refused(why: impl Into<String>) -> RpcError {
        RpcError::new(USER_REFUSED, why)
    }

    /// The answer in the words of one revision: before 2025-11-25 it is one block.
    pub(crate) fn into_result(mut self, revision: Revision) -> Result<Value, RpcError> {
        let one_block = !revision.has_modes();
        if let Some(Value::Array(blocks)) = self.members.get_mut("content").filter(|_| one_block) {
            let block = blocks.pop();
            match block.filter(|_| blocks.is_empty()) {
                Some(block) => drop(self.members.insert("content".into(), block)),
                None => {
                    let words = format!("an answer has one block in revision {revision}");
                    return Err(RpcError::new(RpcError::INTERNAL_ERROR, words));
                }
            }
        }
        Ok(self.members.into())
    }
}

const USER_REFUSED: i64 = -1;

// Far more than a model takes; beyond it the question is refused.
const MOST_MESSAGES: usize = 100_000;
