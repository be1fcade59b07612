//! Which revision of MCP a message speaks: a date string in, a known revision out.

use std::fmt;

/// A published revision of the Model Context Protocol, oldest first.
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
    /// Every revision this kit speaks, newest first, as `server/discover` lists them.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// What a client speaks over HTTP when it names no revision, as the 2025-06-18 text rules.
    pub const ASSUMED: Self = Self::V2025_03_26;

    /// Parses the date string; `None` for a revision this kit does not know.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
    }

    /// The date string used on the wire.
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

    /// True from 2026-07-28 on: no handshake, metadata on every request.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// True from 2025-06-18 on, where a tool result may carry `structuredContent`.
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
