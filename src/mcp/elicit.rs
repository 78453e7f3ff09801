//! Elicitation: what a server asks of the user, and the user's answer.

use std::borrow::Cow;

use serde_core::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::RpcError;
use crate::mcp::fault::{Refusal, malformed};
use crate::mcp::revision::{Era, Revision};
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

    pub(crate) fn check(&self, revision: Revision) -> Result<(), Refusal> {
        if self.text("message").is_none() {
            return Err(malformed("`message` is no string"));
        }
        if self.text("url").is_none() {
            return Err(malformed("`url` is no string"));
        }
        // The modern era has none.
        if revision.era() == Era::Legacy && self.elicitation_id().is_none() {
            return Err(malformed("`elicitationId` is no string"));
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

    /// The form as filled in, from the caller's own type.
    ///
    /// ```
    /// use landline::mcp::Elicited;
    /// use serde_json::json;
    /// let filled = Elicited::fill(&json!({"name": "Ferris", "age": 11}))?;
    /// assert!(matches!(filled, Elicited::Accept(content) if content["age"] == 11));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// It does not serialise to an object.
    pub fn fill(content: &impl Serialize) -> Result<Self, serde_json::Error> {
        let content = serde_json::to_value(content)?;
        serde_json::from_value(content).map(Elicited::Accept)
    }

    /// The result as it goes out. A form that is no flat object of what the revision has is none.
    pub(crate) fn into_result(self, is_form: bool, revision: Revision) -> Result<Value, RpcError> {
        let content = match self {
            Elicited::Accept(content) if is_form => content,
            Elicited::Accept(_) => return Ok(json!({"action": "accept"})),
            Elicited::Decline => return Ok(json!({"action": "decline"})),
            Elicited::Cancel => return Ok(json!({"action": "cancel"})),
        };
        let is_sound = |value: &Value| match value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
            Value::Array(chosen) => revision.has_modes() && chosen.iter().all(Value::is_string),
            Value::Null | Value::Object(_) => false,
        };
        if content.values().all(is_sound) {
            Ok(json!({"action": "accept", "content": content}))
        } else {
            let words = "the handler's form is no flat object of strings, numbers and booleans";
            Err(RpcError::new(RpcError::INTERNAL_ERROR, words))
        }
    }
}
