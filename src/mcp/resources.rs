//! Resources: what a server has to read.

use std::borrow::Cow;
use std::time::Duration;

use crate::mcp::list::{CacheScope, cache_scope, listed, ttl};
use crate::mcp::view::{many, named, view, whole};

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

listed!(Resource: "resources/list", "resources", "resources", "uri");
listed!(
    ResourceTemplate: "resources/templates/list", "resourceTemplates", "resources", "uriTemplate"
);

named!(Resource, ResourceTemplate);

impl Resource {
    /// The URI by which it is read.
    pub fn uri(&self) -> Cow<'_, str> {
        self.text("uri").unwrap_or_default()
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

    /// The media type of all its resources.
    pub fn mime_type(&self) -> Option<Cow<'_, str>> {
        self.text("mimeType")
    }
}

impl ReadResult {
    /// How long it can be held for fresh (revision 2026-07-28); zero where nothing is said. Nothing
    /// is cached here. What took rounds with questions is not to be cached at all.
    pub fn ttl(&self) -> Duration {
        ttl(&self.raw)
    }

    /// Who may share it in a cache (revision 2026-07-28).
    pub fn cache_scope(&self) -> CacheScope {
        cache_scope(&self.raw)
    }

    /// The contents: one, or those of several parts.
    pub fn contents(&self) -> Vec<Contents> {
        many(self.member("contents"), Contents::new)
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
