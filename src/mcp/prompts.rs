//! Prompts: texts that a server has ready for a model.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::mcp::content::Content;
use crate::mcp::list::listed;
use crate::mcp::view::{many, named, view};

view! {
    /// A prompt of the server's.
    Prompt,
    /// An argument of a prompt.
    PromptArgument,
    /// What getting a prompt gave.
    PromptResult,
    /// A message of a prompt.
    PromptMessage,
}

listed!(Prompt: "prompts/list", "prompts", "prompts", "name");

named!(Prompt, PromptArgument);

impl Prompt {
    /// Its arguments.
    pub fn arguments(&self) -> Vec<PromptArgument> {
        many(self.member("arguments"), PromptArgument::new)
    }
}

impl PromptArgument {
    /// Whether it must be given.
    pub fn is_required(&self) -> bool {
        self.value("required").unwrap_or_default()
    }
}

impl PromptResult {
    /// What the prompt is for.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.text("description")
    }

    /// The messages.
    pub fn messages(&self) -> Vec<PromptMessage> {
        many(self.member("messages"), PromptMessage::new)
    }
}

impl PromptMessage {
    /// Who speaks: `user` or `assistant`.
    pub fn role(&self) -> Cow<'_, str> {
        self.text("role").unwrap_or_default()
    }

    /// What is said; an empty block where it is missing.
    pub fn content(&self) -> Content {
        Content::new(self.member("content").unwrap_or(RawValue::NULL))
    }
}
