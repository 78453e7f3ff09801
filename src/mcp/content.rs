//! Content blocks: what tools, prompts and models say.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::text;
use crate::mcp::resources::{Contents, Resource};
use crate::mcp::view::{many, view};

view! {
    /// One block of content; a kind that is unknown here keeps its raw text.
    Content,
}

/// A content block by its kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// An image.
    #[non_exhaustive]
    Image {
        /// Its bytes, in base64.
        data: Cow<'a, str>,
        /// Its media type.
        mime_type: Cow<'a, str>,
    },
    /// Sound (revision 2025-03-26).
    #[non_exhaustive]
    Audio {
        /// Its bytes, in base64.
        data: Cow<'a, str>,
        /// Its media type.
        mime_type: Cow<'a, str>,
    },
    /// A resource with its contents.
    Resource(Contents),
    /// A resource to be read (revision 2025-06-18).
    ResourceLink(Resource),
    /// A model wants to use a tool (sampling, revision 2025-11-25).
    #[non_exhaustive]
    ToolUse {
        /// What the result will name.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
        /// Its arguments.
        input: &'a RawValue,
    },
    /// What a tool gave (sampling, revision 2025-11-25).
    #[non_exhaustive]
    ToolResult {
        /// The use that it answers.
        tool_use_id: Cow<'a, str>,
        /// What the tool said.
        content: Vec<Content>,
        /// Its structured result, where there is one.
        structured: Option<&'a RawValue>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// Of another kind, or without a member that its kind must have.
    Other,
}

impl Content {
    /// The kind, as the protocol writes it: `text`, `image`, ...; empty where there is none.
    pub fn kind(&self) -> Cow<'_, str> {
        self.text("type").unwrap_or_default()
    }

    /// The block by its kind.
    pub fn block(&self) -> Block<'_> {
        self.known().unwrap_or(Block::Other)
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        match self.block() {
            Block::Text(text) => Some(text),
            _ => None,
        }
    }

    /// For whom it is: `user`, `assistant`, or words unknown here.
    pub fn audience(&self) -> Vec<String> {
        let audience = crate::json::member(&self.raw, &["annotations", "audience"]);
        let words = many(audience, |raw| text(raw).map(Cow::into_owned));
        words.into_iter().flatten().collect()
    }

    fn known(&self) -> Option<Block<'_>> {
        let data = || self.text("data");
        let mime_type = || self.text("mimeType");
        Some(match &*self.kind() {
            "text" => Block::Text(self.text("text")?),
            "image" => Block::Image {
                data: data()?,
                mime_type: mime_type()?,
            },
            "audio" => Block::Audio {
                data: data()?,
                mime_type: mime_type()?,
            },
            "resource" => Block::Resource(Contents::new(self.member("resource")?)),
            "resource_link" => Block::ResourceLink(Resource::new(&self.raw)),
            "tool_use" => Block::ToolUse {
                id: self.text("id")?,
                name: self.text("name")?,
                input: self.member("input")?,
            },
            "tool_result" => Block::ToolResult {
                tool_use_id: self.text("toolUseId")?,
                content: Self::one_or_many(self.member("content")),
                structured: self.member("structuredContent"),
                is_error: self.value("isError").unwrap_or_default(),
            },
            _ => return None,
        })
    }

    pub(crate) fn id(&self, name: &str) -> Option<String> {
        self.text(name).map(Cow::into_owned)
    }

    /// Reads a member that holds one block or an array of them; `null` holds none.
    pub(crate) fn one_or_many(raw: Option<&RawValue>) -> Vec<Content> {
        match raw.filter(|raw| raw.get() != "null") {
            Some(raw) if raw.get().starts_with('[') => many(Some(raw), Content::new),
            Some(raw) => vec![Content::new(raw)],
            None => Vec::new(),
        }
    }
}
