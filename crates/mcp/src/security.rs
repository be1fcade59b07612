//! Security schemes of tools: whether a call needs a sign-in, and which scopes.

use serde_json::{Value, json};

/// A security scheme of a tool: one way in which it may be called.
///
/// A tool that lists several schemes accepts a call that satisfies one of them.
///
/// ```rust
/// use docent_mcp::{Security, ToolAnnotations, ToolDescriptor};
///
/// let text = "Use this when the user asks for the berths of a harbour.";
/// let public = ToolDescriptor::new("berths", "Berths", text, ToolAnnotations::READ_ONLY)
///     .security([Security::NoAuth]);
/// let text = "Use this when the user wants to reserve a berth.";
/// let restricted = ToolDescriptor::new("reserve", "Reserve", text, ToolAnnotations::WRITES)
///     .security([Security::oauth2(["berths.write"])]);
/// # let _ = (public, restricted);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Security {
    /// The tool can be called anonymously.
    NoAuth,
    /// The caller must be signed in and have all of these scopes.
    OAuth2(Vec<String>),
}

impl Security {
    /// Creates the scheme that requires a signed-in caller with these scopes.
    #[must_use]
    pub fn oauth2<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Self {
        Self::OAuth2(scopes.into_iter().map(Into::into).collect())
    }

    pub(crate) fn wire(&self) -> Value {
        match self {
            Self::NoAuth => json!({"type": "noauth"}),
            Self::OAuth2(scopes) => json!({"type": "oauth2", "scopes": scopes}),
        }
    }
}
