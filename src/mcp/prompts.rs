//! Prompts: texts that a server has ready for a model.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::elements;
use crate::mcp::content::Content;
use crate::mcp::list::listed;
use crate::mcp::view::{named, view};

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
        let arguments = self.member("arguments").and_then(|raw| elements(raw, MOST));
        arguments
            .into_iter()
            .flatten()
            .map(PromptArgument::new)
            .collect()
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
        let messages = self.member("messages").and_then(|raw| elements(raw, MOST));
        messages
            .into_iter()
            .flatten()
            .map(PromptMessage::new)
            .collect()
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

// Parts of one value; more than this is a value to be read raw.
const MOST: usize = 1 << 20;
