//! What a server has said of itself while connecting.
//!
//! Read from the answer to `initialize` or `server/discover`, and the same for both.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{member, text};
use crate::mcp::revision::{Era, Revision};
use crate::mcp::view::view;

/// A server as it presented itself.
#[derive(Debug, Clone)]
pub struct Server {
    revision: Revision,
    version: Box<str>,
    /// Looked at by every call, and so kept apart from the rest, which may be long.
    capabilities: Capabilities,
    presentation: Box<RawValue>,
    oddities: Vec<&'static str>,
}

impl Server {
    /// Reads the answer to `initialize` or `server/discover`; tolerates what real servers leave
    /// out.
    pub(crate) fn new(revision: Revision, version: &str, presentation: Box<RawValue>) -> Self {
        let declared = member(&presentation, &["capabilities"]);
        let declared = declared.filter(|raw| raw.get().starts_with('{'));
        let mut server = Server {
            revision,
            version: version.into(),
            capabilities: Capabilities::new(declared.unwrap_or(RawValue::NULL)),
            oddities: Vec::new(),
            presentation,
        };
        if server.capabilities.raw().get() == "null" {
            server.oddities.push("it declares no capabilities");
        }
        if server.revision.era() == Era::Legacy && server.implementation().is_none() {
            server.oddities.push("it does not name itself");
        }
        server
    }

    /// The era that was found.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// The revision whose rules are spoken.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The version that was agreed on in connecting, as it stands on the wire.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The server's name, title and version, for display alone. Modern servers need not give any.
    pub fn implementation(&self) -> Option<Implementation> {
        // At the top as in the legacy era, or, modern, in `_meta`; release candidates had it at the
        // top there too.
        let meta = ["_meta", "io.modelcontextprotocol/serverInfo"];
        let found = member(&self.presentation, &meta).or_else(|| self.part("serverInfo"))?;
        found
            .get()
            .starts_with('{')
            .then(|| Implementation::new(found))
    }

    /// What the server declares.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// What the server says of how it is to be used; a hint for a model.
    pub fn instructions(&self) -> Option<Cow<'_, str>> {
        text(self.part("instructions")?)
    }

    /// The whole answer, as it came.
    pub fn raw(&self) -> &RawValue {
        &self.presentation
    }

    /// What the protocol demands of that answer and was missing, and overlooked.
    pub fn oddities(&self) -> &[&'static str] {
        &self.oddities
    }

    fn part(&self, name: &str) -> Option<&RawValue> {
        member(&self.presentation, &[name])
    }
}

view! {
    /// The name of a program and its version, as it gives them.
    Implementation,
    /// What a server declares.
    ///
    /// A capability is declared by its presence: an object, or `true`. `null` and `false` are none.
    Capabilities,
}

impl Implementation {
    /// The name.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.text("name")
    }

    /// The name to show to people (revision 2025-06-18).
    pub fn title(&self) -> Option<Cow<'_, str>> {
        self.text("title")
    }

    /// The version.
    pub fn version(&self) -> Option<Cow<'_, str>> {
        self.text("version")
    }
}

impl Capabilities {
    /// Tells whether a capability is declared, by its path: `tools`, or `resources.subscribe`.
    pub fn has(&self, path: &str) -> bool {
        let path: Vec<_> = path.split('.').collect();
        member(&self.raw, &path)
            .is_some_and(|raw| raw.get() == "true" || raw.get().starts_with('{'))
    }
}
