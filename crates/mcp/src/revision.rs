//! Protocol revisions: parses the date string of a message into a known revision of MCP.

use std::fmt;

/// A published revision of the Model Context Protocol, oldest first.
///
/// ```rust
/// use docent_mcp::Revision;
///
/// assert_eq!(Revision::parse("2025-06-18"), Some(Revision::V2025_06_18));
/// assert!(Revision::V2025_06_18.has_structured_content());
/// assert_eq!(Revision::parse("2025-06-19"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: HTTP+SSE transport, no `structuredContent`.
    V2024_11_05,
    /// 2025-03-26: streamable HTTP, the only revision with JSON-RPC batches.
    V2025_03_26,
    /// 2025-06-18: `structuredContent`, `outputSchema`, the protocol version header.
    V2025_06_18,
    /// 2025-11-25: the last revision with an `initialize` handshake.
    V2025_11_25,
    /// 2026-07-28: stateless, `server/discover`, metadata on every request.
    V2026_07_28,
}

impl Revision {
    /// All supported revisions, newest first, as `server/discover` lists them.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// The revision of an HTTP client that names none, as the 2025-06-18 specification requires.
    pub const ASSUMED: Self = Self::V2025_03_26;

    /// Parses a date string; `None` for an unknown revision.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
    }

    /// Returns the date string that is used on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether the revision is stateless, with metadata on every request: since 2026-07-28.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Whether tool results may carry `structuredContent`: since 2025-06-18.
    #[must_use]
    pub fn has_structured_content(self) -> bool {
        self >= Self::V2025_06_18
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_parses_back() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        for unknown in ["", "2026-07-29", "latest", "2025-06-18 "] {
            assert_eq!(Revision::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn order_follows_time() {
        assert!(Revision::V2024_11_05 < Revision::V2026_07_28);
        assert!(Revision::V2026_07_28.is_modern() && !Revision::V2025_11_25.is_modern());
        assert!(!Revision::V2025_03_26.has_structured_content());
    }
}
