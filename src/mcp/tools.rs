//! Tools, and what they give.

use std::borrow::Cow;

use serde_core::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::json::member;
use crate::mcp::content::Content;
use crate::mcp::list::listed;
use crate::mcp::view::{named, view};

view! {
    /// A tool of the server's.
    Tool,
    /// What a tool gave.
    ToolResult,
}

listed!(Tool: "tools/list", "tools", "tools", "name");

named!(Tool);

impl Tool {
    /// The name to show to people: its title, the title among its annotations, or its name.
    pub fn display_name(&self) -> Cow<'_, str> {
        let title = self
            .title()
            .or_else(|| crate::json::text(self.hint("title")?));
        title.unwrap_or_else(|| self.name())
    }

    /// The schema of its arguments.
    pub fn input_schema(&self) -> Option<&RawValue> {
        self.member("inputSchema")
    }

    /// The schema of its structured result (revision 2025-06-18).
    pub fn output_schema(&self) -> Option<&RawValue> {
        self.member("outputSchema")
    }

    /// Whether it claims to change nothing; `false` unless it says so. A hint of an untrusted
    /// server, like the others.
    pub fn is_read_only(&self) -> bool {
        self.flag("readOnlyHint", false)
    }

    /// Whether it may destroy something; `true` unless it says otherwise.
    pub fn is_destructive(&self) -> bool {
        self.flag("destructiveHint", true)
    }

    /// Whether calling it twice is like calling it once; `false` unless it says so.
    pub fn is_idempotent(&self) -> bool {
        self.flag("idempotentHint", false)
    }

    /// Whether it reaches beyond the server's own world; `true` unless it says otherwise.
    pub fn is_open_world(&self) -> bool {
        self.flag("openWorldHint", true)
    }

    fn hint(&self, name: &str) -> Option<&RawValue> {
        member(&self.raw, &["annotations", name])
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.hint(name)
            .and_then(|raw| crate::json::decode(raw).ok())
            .unwrap_or(default)
    }
}

impl ToolResult {
    /// What it says.
    pub fn content(&self) -> Vec<Content> {
        Content::one_or_many(self.member("content"))
    }

    /// The text blocks in one, a line end between them.
    pub fn all_text(&self) -> String {
        let content = self.content();
        let texts: Vec<_> = content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }

    /// Whether the tool failed: a result for a model to read, and no error of the protocol.
    pub fn is_error(&self) -> bool {
        self.value("isError").unwrap_or_default()
    }

    /// The structured result as it came: an object (revision 2025-06-18), or any value, `null`
    /// included (2026-07-28). Absent is `None`.
    pub fn structured(&self) -> Option<&RawValue> {
        self.member("structuredContent")
    }

    /// Decodes the structured result into a type of the caller's own; an absent one, such as that
    /// of a tool that [failed](Self::is_error), as `null`.
    ///
    /// # Errors
    ///
    /// It is not of that type.
    pub fn structured_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        crate::json::decode(self.structured().unwrap_or(RawValue::NULL))
    }
}
