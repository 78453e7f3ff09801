//! Resources: what a server has to read.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::elements;
use crate::mcp::list::{Item, Sealed};
use crate::mcp::view::{view, whole};

view! {
    /// A resource of the server's.
    Resource,
    /// A pattern of resources' URIs (RFC 6570).
    ResourceTemplate,
    /// What reading a resource gave.
    ReadResult,
    /// The contents of a resource, or of a part of one: text, or bytes in base64.
    Contents,
}

impl Item for Resource {}

impl Sealed for Resource {
    const METHOD: &'static str = "resources/list";
    const MEMBER: &'static str = "resources";
    const CAPABILITY: &'static str = "resources";
    const KEY: &'static str = "uri";

    fn from_raw(raw: &RawValue) -> Self {
        Self::new(raw)
    }
}

impl Item for ResourceTemplate {}

impl Sealed for ResourceTemplate {
    const METHOD: &'static str = "resources/templates/list";
    const MEMBER: &'static str = "resourceTemplates";
    const CAPABILITY: &'static str = "resources";
    const KEY: &'static str = "uriTemplate";

    fn from_raw(raw: &RawValue) -> Self {
        Self::new(raw)
    }
}

impl Resource {
    /// The URI by which it is read.
    pub fn uri(&self) -> Cow<'_, str> {
        self.text("uri").unwrap_or_default()
    }

    /// The name.
    pub fn name(&self) -> Cow<'_, str> {
        self.text("name").unwrap_or_default()
    }

    /// The name to show to people (revision 2025-06-18).
    pub fn title(&self) -> Option<Cow<'_, str>> {
        self.text("title")
    }

    /// What it is.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.text("description")
    }

    /// The media type.
    pub fn mime_type(&self) -> Option<Cow<'_, str>> {
        self.text("mimeType")
    }

    /// The size in bytes, before any encoding.
    pub fn size(&self) -> Option<u64> {
        whole(self.member("size")?)
    }
}

impl ResourceTemplate {
    /// The pattern.
    pub fn uri_template(&self) -> Cow<'_, str> {
        self.text("uriTemplate").unwrap_or_default()
    }

    /// The name.
    pub fn name(&self) -> Cow<'_, str> {
        self.text("name").unwrap_or_default()
    }

    /// The name to show to people (revision 2025-06-18).
    pub fn title(&self) -> Option<Cow<'_, str>> {
        self.text("title")
    }

    /// What its resources are.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.text("description")
    }

    /// The media type of all its resources.
    pub fn mime_type(&self) -> Option<Cow<'_, str>> {
        self.text("mimeType")
    }
}

impl ReadResult {
    /// The contents: one, or those of several parts.
    pub fn contents(&self) -> Vec<Contents> {
        let contents = self.member("contents").and_then(|raw| elements(raw, MOST));
        contents.into_iter().flatten().map(Contents::new).collect()
    }
}

impl Contents {
    /// The URI, which may be that of a part.
    pub fn uri(&self) -> Cow<'_, str> {
        self.text("uri").unwrap_or_default()
    }

    /// The media type.
    pub fn mime_type(&self) -> Option<Cow<'_, str>> {
        self.text("mimeType")
    }

    /// The text, where it is text.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        self.text("text")
    }

    /// The bytes in base64, where it is not.
    pub fn as_blob(&self) -> Option<Cow<'_, str>> {
        self.text("blob")
    }
}

// Parts in one result; more than this is a result to be read raw.
const MOST: usize = 1 << 20;
