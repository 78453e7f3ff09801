//! The published revisions of MCP, and what tells them apart.
//!
//! Everything that depends on the revision is asked here, so that a new one is a new line in these
//! tables. Versions are compared as the strings they are and chosen from lists of preference.

use std::fmt;

/// A published revision of the Model Context Protocol.
///
/// | revision | era | begins with |
/// |---|---|---|
/// | 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 | [`Era::Legacy`] | `initialize` |
/// | 2026-07-28 | [`Era::Modern`] | nothing: each request stands alone |
///
/// They are ordered by their date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26: batches, audio, completions as a capability.
    V2025_03_26,
    /// 2025-06-18: elicitation, structured results, resource links.
    V2025_06_18,
    /// 2025-11-25: elicitation by URL, sampling with tools, icons.
    V2025_11_25,
    /// 2026-07-28: no handshake; what the server needs comes inside results.
    V2026_07_28,
}

/// The two ways in which the revisions hold a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// A connection is opened by `initialize`, and either side may make requests: revisions
    /// 2024-11-05 to 2025-11-25.
    Legacy,
    /// Each request carries its revision and stands alone, and the server makes none: revision
    /// 2026-07-28.
    Modern,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        })
    }
}

impl Revision {
    /// All published revisions, newest first.
    pub const ALL: [Revision; 5] = [
        Revision::V2026_07_28,
        Revision::V2025_11_25,
        Revision::V2025_06_18,
        Revision::V2025_03_26,
        Revision::V2024_11_05,
    ];

    /// The newest of the modern era, whose rules a version unknown here is spoken by.
    pub(crate) const MODERN: Revision = Revision::V2026_07_28;

    /// The revision as the protocol writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Finds the revision of this name.
    ///
    /// ```
    /// use landline::mcp::Revision;
    /// assert_eq!(Revision::from_name("2025-06-18"), Some(Revision::V2025_06_18));
    /// assert_eq!(Revision::from_name("1999-01-01"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// The era it belongs to.
    pub const fn era(self) -> Era {
        match self {
            Revision::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Arrays of messages are part of 2025-03-26 alone.
    pub(crate) fn has_batches(self) -> bool {
        self == Revision::V2025_03_26
    }

    /// Whether a server is asked for completions only if it declares them; the first revision has
    /// no such capability.
    pub(crate) fn declares_completions(self) -> bool {
        self >= Revision::V2025_03_26
    }

    pub(crate) fn has_completion_context(self) -> bool {
        self >= Revision::V2025_06_18
    }

    pub(crate) fn has_titles(self) -> bool {
        self >= Revision::V2025_06_18
    }

    pub(crate) fn has_elicitation(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Elicitation by URL, sampling with tools, and sub-capabilities that declare them.
    pub(crate) fn has_modes(self) -> bool {
        self >= Revision::V2025_11_25
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
