//! Elicitation: what a server asks of the user, and the user's answer.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::mcp::fault::{Refusal, malformed};
use crate::mcp::view::view;

view! {
    /// A form that the server wants filled in (revision 2025-06-18).
    FormRequest,
    /// A page that the server wants visited (revision 2025-11-25).
    UrlRequest,
}

impl FormRequest {
    /// What the server says to the user.
    pub fn message(&self) -> Cow<'_, str> {
        self.text("message").unwrap_or_default()
    }

    /// The schema of the answer: a flat object of strings, numbers, booleans and choices.
    pub fn schema(&self) -> &RawValue {
        self.member("requestedSchema").unwrap_or(RawValue::NULL)
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.text("message").is_none() {
            return Err(malformed("`message` is no string"));
        }
        if !self.schema().get().starts_with('{') {
            return Err(malformed("`requestedSchema` is no object"));
        }
        Ok(())
    }
}

impl UrlRequest {
    /// What the server says to the user.
    pub fn message(&self) -> Cow<'_, str> {
        self.text("message").unwrap_or_default()
    }

    /// The page. It is to be shown in full, and opened only when the user agrees.
    pub fn url(&self) -> Cow<'_, str> {
        self.text("url").unwrap_or_default()
    }

    /// Names this elicitation when it is complete (revision 2025-11-25 alone).
    pub fn elicitation_id(&self) -> Option<Cow<'_, str>> {
        self.text("elicitationId")
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.text("url").is_none() {
            return Err(malformed("`url` is no string"));
        }
        Ok(())
    }
}

/// The user's answer to an elicitation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Elicited {
    /// The form as filled in: strings, numbers, booleans, arrays of strings. For a page, nothing is
    /// sent but the consent.
    Accept(Map<String, Value>),
    /// The user said no.
    Decline,
    /// The user gave no answer.
    Cancel,
}

impl Elicited {
    /// The consent to visit a page, or a form without fields.
    pub fn accept() -> Self {
        Elicited::Accept(Map::new())
    }

    pub(crate) fn into_result(self, is_form: bool) -> Value {
        match self {
            Elicited::Accept(content) if is_form => json!({"action": "accept", "content": content}),
            Elicited::Accept(_) => json!({"action": "accept"}),
            Elicited::Decline => json!({"action": "decline"}),
            Elicited::Cancel => json!({"action": "cancel"}),
        }
    }
}
