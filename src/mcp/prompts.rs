//! Prompts: texts that a server has ready for a model.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::elements;
use crate::mcp::content::Content;
use crate::mcp::list::{Item, Sealed};
use crate::mcp::view::view;

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

impl Item for Prompt {}

impl Sealed for Prompt {
    const METHOD: &'static str = "prompts/list";
    const MEMBER: &'static str = "prompts";
    const CAPABILITY: &'static str = "prompts";
    const KEY: &'static str = "name";

    fn from_raw(raw: &RawValue) -> Self {
        Self::new(raw)
    }
}

impl Prompt {
    /// The name by which it is got.
    pub fn name(&self) -> Cow<'_, str> {
        self.text("name").unwrap_or_default()
    }

    /// The name to show to people (revision 2025-06-18).
    pub fn title(&self) -> Option<Cow<'_, str>> {
        self.text("title")
    }

    /// What it is for.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.text("description")
    }

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
    /// The name.
    pub fn name(&self) -> Cow<'_, str> {
        self.text("name").unwrap_or_default()
    }

    /// What it is.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.text("description")
    }

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
