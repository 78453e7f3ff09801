//! The progress of a call, as the server tells it.

use std::borrow::Cow;

use crate::mcp::view::view;

view! {
    /// How far a call has got.
    Progress,
}

impl Progress {
    /// How far, in units of the server's own; it grows.
    pub fn progress(&self) -> Option<f64> {
        self.value("progress")
    }

    /// How far it has to go.
    pub fn total(&self) -> Option<f64> {
        self.value("total")
    }

    /// What is being done (revision 2025-03-26).
    pub fn message(&self) -> Option<Cow<'_, str>> {
        self.text("message")
    }
}
