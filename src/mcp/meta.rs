//! The `_meta` member of requests: what the caller adds to it, and which keys are not his.
//!
//! A key has an optional prefix of labels before a slash. Prefixes that name MCP itself are
//! reserved (revision 2025-06-18 and later, each with its own words; the stricter of both is
//! applied), and so are the members that the library writes.

use std::fmt;

use serde_core::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// What a caller adds to the `_meta` of a request.
///
/// ```
/// use landline::mcp::Meta;
///
/// let meta = Meta::new()
///     .with("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")?
///     .with("com.example/ticket", 17)?;
/// assert!(Meta::new().with("io.modelcontextprotocol/anything", 1).is_err());
/// # drop(meta);
/// # Ok::<(), landline::mcp::MetaError>(())
/// ```
#[derive(Clone, Default)]
pub struct Meta {
    entries: Vec<(Box<str>, Box<RawValue>)>,
}

/// Why a key or value cannot stand in `_meta`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetaError {
    /// The key is written by the library, or its prefix is reserved for the protocol.
    #[error("the `_meta` key {key:?} is reserved")]
    Reserved {
        /// The key.
        key: Box<str>,
    },
    /// The key has not the form that the protocol gives it: labels, a slash, a name.
    #[error("{key:?} is no `_meta` key")]
    Malformed {
        /// The key.
        key: Box<str>,
    },
    /// The value does not serialise to JSON.
    #[error("the `_meta` value of {key:?} does not serialise: {error}")]
    Value {
        /// The key.
        key: Box<str>,
        /// What is wrong with the value.
        error: serde_json::Error,
    },
}

impl Meta {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry; a second value for a key replaces the first.
    ///
    /// # Errors
    ///
    /// The key is reserved or malformed, or the value does not serialise.
    pub fn with(mut self, key: &str, value: impl Serialize) -> Result<Self, MetaError> {
        check(key)?;
        let value = to_raw_value(&value).map_err(|error| MetaError::Value {
            key: key.into(),
            error,
        })?;
        self.set(key, value);
        Ok(self)
    }

    /// Takes in the `_meta` that stands in a caller's own params.
    pub(crate) fn take_in(&mut self, entries: &RawValue) -> Result<(), MetaError> {
        let Some(entries) = crate::json::entries(entries) else {
            let key = "_meta".into();
            return Err(MetaError::Malformed { key });
        };
        for (key, value) in entries {
            check(&key)?;
            self.set(&key, value.to_owned());
        }
        Ok(())
    }

    /// Adds all that stands in another, which goes before what stands here.
    pub(crate) fn add(&mut self, other: Meta) {
        for (key, value) in other.entries {
            self.set(&key, value);
        }
    }

    pub(crate) fn entries(&self) -> &[(Box<str>, Box<RawValue>)] {
        &self.entries
    }

    fn set(&mut self, key: &str, value: Box<RawValue>) {
        self.entries.retain(|(known, _)| **known != *key);
        self.entries.push((key.into(), value));
    }
}

/// Shows the keys.
impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.entries.iter().map(|(key, _)| key))
            .finish()
    }
}

fn check(key: &str) -> Result<(), MetaError> {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
    let has_prefix = key.contains('/');
    let labels: Vec<&str> = prefix.split('.').collect();
    let well_formed =
        is_name(name, has_prefix) && (!has_prefix || labels.iter().all(|l| is_label(l)));
    if !well_formed {
        return Err(MetaError::Malformed { key: key.into() });
    }
    let is_ours = |label: &&str| matches!(*label, "mcp" | "modelcontextprotocol");
    let reserved = labels.get(1).is_some_and(is_ours) || labels.iter().rev().skip(1).any(is_ours);
    if reserved || key == "progressToken" {
        return Err(MetaError::Reserved { key: key.into() });
    }
    Ok(())
}

fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn is_name(name: &str, has_prefix: bool) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    if name.is_empty() {
        return has_prefix;
    }
    name.starts_with(edge)
        && name.ends_with(edge)
        && name
            .chars()
            .all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_and_malformed_keys_are_refused() {
        for good in [
            "traceparent",
            "a",
            "com.example/x",
            "com.example.mcp/x",
            "x/",
            "a.b/c_d.e-f",
            "com.mcpx.dev/x",
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
        for reserved in [
            "progressToken",
            "io.modelcontextprotocol/zzz",
            "dev.mcp/",
            "mcp.dev/x",
            "tools.mcp.com/x",
            "modelcontextprotocol.io/a",
        ] {
            assert!(
                matches!(check(reserved), Err(MetaError::Reserved { .. })),
                "{reserved}"
            );
        }
        for bad in ["", "-a", "a-", "a b", "1.b/x", "a..b/x", "/x", "a/b/c", "é"] {
            assert!(
                matches!(check(bad), Err(MetaError::Malformed { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_later_value_replaces_an_earlier_one() -> Result<(), MetaError> {
        let meta = Meta::new().with("a", 1)?.with("b", 2)?.with("a", 3)?;
        let shown: Vec<_> = meta
            .entries()
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        assert_eq!(shown, ["b=2", "a=3"]);
        Ok(())
    }
}
