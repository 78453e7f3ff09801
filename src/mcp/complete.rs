//! Completions of arguments.

use serde_core::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::json::{decode, elements, member, text};
use crate::mcp::view::whole;

/// What is to be completed.
///
/// ```
/// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
/// # use landline::mcp::Reference;
/// # let server = demo::client()?;
/// # use serde_json::json;
/// let files = Reference::Resource("file:///{folder}/{name}".into());
/// let names = server.complete(&files, "name", "ru", json!({"folder": "src"}))?;
/// assert_eq!(names.values, ["rust", "ruby"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reference {
    /// An argument of the prompt of this name.
    Prompt(String),
    /// A variable of the resource template of this pattern, or URI.
    Resource(String),
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match self {
            Reference::Prompt(name) => {
                map.serialize_entry("type", "ref/prompt")?;
                map.serialize_entry("name", name)?;
            }
            Reference::Resource(uri) => {
                map.serialize_entry("type", "ref/resource")?;
                map.serialize_entry("uri", uri)?;
            }
        }
        map.end()
    }
}

/// How an argument may go on.
///
/// ```
/// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
/// # use landline::mcp::Reference;
/// # let server = demo::client()?;
/// let review = Reference::Prompt("review".into());
/// let completion = server.complete(&review, "language", "r", ())?;
/// let more = if completion.has_more { ", ..." } else { "" };
/// let offer = format!("{}{more}", completion.values.join(", "));
/// assert_eq!(offer, "rust, ruby");
/// assert_eq!(completion.total, None, "the server does not say");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first; 100 at most by the protocol.
    pub values: Vec<String>,
    /// How many there are in all, if the server says.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl Completion {
    pub(crate) fn read(result: &RawValue) -> Option<Self> {
        let part = |name| member(result, &["completion", name]);
        let values = elements(part("values")?, MOST)?;
        Some(Completion {
            values: values
                .into_iter()
                .filter_map(|raw| text(raw).map(Into::into))
                .collect(),
            total: part("total").and_then(whole),
            has_more: part("hasMore")
                .and_then(|raw| decode(raw).ok())
                .unwrap_or_default(),
        })
    }
}

// Far more than the protocol allows; beyond it the answer is none.
const MOST: usize = 100_000;
