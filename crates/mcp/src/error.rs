//! Errors, divided by who can fix them: mistakes of the caller, internal failures, and an invalid build.

use std::fmt;

use serde_json::{Map, Value};

use crate::elicitation::Elicitation;

/// Why a tool, prompt or resource gave no answer.
///
/// There are two channels. What the caller can fix is shown to the model as a tool error with a hint. What only the
/// operator can fix stays opaque: the client sees a reference, and the log has the cause under that reference. Any
/// `std::error::Error` becomes the second kind through `?`.
///
/// ```rust
/// use docent_mcp::Failure;
///
/// fn tides(harbour: &str) -> Result<String, Failure> {
///     if harbour != "Port Ellin" {
///         return Err(Failure::caller(format!("no tide table for `{harbour}`"))
///             .hint("the only harbour is `Port Ellin`"));
///     }
///     Ok(std::fs::read_to_string("tides.txt")?)
/// }
///
/// assert_eq!(
///     tides("Atlantis").unwrap_err().to_string(),
///     "no tide table for `Atlantis` (the only harbour is `Port Ellin`)"
/// );
/// ```
#[derive(Debug)]
pub struct Failure(pub(crate) FailureKind);

#[derive(Debug)]
pub(crate) enum FailureKind {
    Caller(Box<CallerError>),
    NotFound(String),
    Refused(String),
    MissingCapability(&'static str),
    NeedsInput(Box<Elicitation>),
    Internal(Box<dyn std::error::Error + Send + Sync>),
}

/// A mistake of the caller, with everything that its tool error contains.
#[derive(Debug)]
pub(crate) struct CallerError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) data: Option<Value>,
    pub(crate) meta: Map<String, Value>,
}

impl Failure {
    /// Creates a mistake of the caller. The model reads the message and can try again.
    #[must_use]
    pub fn caller(message: impl Into<String>) -> Self {
        Self(FailureKind::Caller(Box::new(CallerError {
            message: message.into(),
            hint: None,
            data: None,
            meta: Map::new(),
        })))
    }

    /// Adds a hint that says how to fix a mistake of the caller.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        if let FailureKind::Caller(mistake) = &mut self.0 {
            mistake.hint = Some(text.into());
        }
        self
    }

    /// Adds a `_meta` member to a mistake of the caller, for hosts that read more than the text.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        if let FailureKind::Caller(mistake) = &mut self.0 {
            mistake.meta.insert(key.into(), value.into());
        }
        self
    }

    /// Adds data to a mistake of the caller, for programs and widgets. It becomes `structuredContent`; a value that
    /// is not an object becomes its member `result`, because clients accept nothing else.
    #[must_use]
    pub fn data(mut self, value: impl Into<Value>) -> Self {
        if let FailureKind::Caller(mistake) = &mut self.0 {
            let value = value.into();
            mistake.data = Some(if value.is_object() {
                value
            } else {
                serde_json::json!({"result": value})
            });
        }
        self
    }

    /// Creates a sign-in challenge: the caller has to sign in first, or with more scopes. `resource_metadata` is the
    /// URL of the server's protected resource metadata (RFC 9728), and the user reads `why`. ChatGPT opens its
    /// sign-in if the tool also declares [`Security::OAuth2`](crate::Security::OAuth2).
    #[must_use]
    pub fn sign_in(resource_metadata: &str, why: &str) -> Self {
        let [metadata, text] = [resource_metadata, why].map(quotable);
        let challenge = format!(
            r#"Bearer resource_metadata="{metadata}", error="insufficient_scope", error_description="{text}""#
        );
        Self::caller(why)
            .hint("ask the user to sign in, then call again")
            .meta("mcp/www_authenticate", vec![challenge])
    }

    /// Creates a not-found error; `what` is the requested URI or name.
    #[must_use]
    pub fn not_found(what: impl Into<String>) -> Self {
        Self(FailureKind::NotFound(what.into()))
    }

    /// Refuses the request with a protocol error instead of a tool result.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self(FailureKind::Refused(message.into()))
    }

    /// Refuses the request because the client did not declare a capability that it needs, such as `sampling`.
    #[must_use]
    pub const fn missing_capability(name: &'static str) -> Self {
        Self(FailureKind::MissingCapability(name))
    }

    /// Suspends the call until the user has answered; see [`Elicitation`].
    #[must_use]
    pub fn needs_input(elicitation: Elicitation) -> Self {
        Self(FailureKind::NeedsInput(Box::new(elicitation)))
    }
}

/// Explains a transient error, such as an unavailable backend, to the caller: it returns a message and a hint. `None`
/// leaves the error internal. Register it with [`AppBuilder::explain`](crate::AppBuilder::explain).
///
/// ```rust
/// use docent_mcp::{App, ErrorExplainer};
///
/// const EXPLAIN: ErrorExplainer = |error| {
///     let error = error.downcast_ref::<std::io::Error>()?;
///     let is_down = error.kind() == std::io::ErrorKind::ConnectionRefused;
///     is_down.then(|| ("the tide service is down".to_owned(), "try again in a minute".to_owned()))
/// };
///
/// let app = App::builder("tides", "1.0.0").explain(EXPLAIN).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
pub type ErrorExplainer = fn(&(dyn std::error::Error + 'static)) -> Option<(String, String)>;

impl Failure {
    /// Turns an internal error into a mistake of the caller if `explain` knows it, and logs the original.
    pub(crate) fn explained(self, explain: Option<ErrorExplainer>) -> Self {
        let FailureKind::Internal(error) = &self.0 else {
            return self;
        };
        let Some((message, hint)) = explain.and_then(|explain| explain(error.as_ref())) else {
            return self;
        };
        tracing::warn!(error = %error, "a request failed");
        Self::caller(message).hint(hint)
    }
}

/// Filters a text for a quoted string of an HTTP header: it drops what could end the string, and what is not
/// printable ASCII.
fn quotable(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\'))
        .collect()
}

impl<E> From<E> for Failure
where
    E: std::error::Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        Self(FailureKind::Internal(Box::new(error)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            FailureKind::Caller(mistake) => match &mistake.hint {
                Some(hint) => write!(f, "{} ({hint})", mistake.message),
                None => f.write_str(&mistake.message),
            },
            FailureKind::Refused(message) => f.write_str(message),
            FailureKind::NotFound(what) => write!(f, "`{what}` was not found"),
            FailureKind::MissingCapability(name) => {
                write!(f, "the client did not declare `{name}`")
            }
            FailureKind::NeedsInput(_) => f.write_str("the user has to answer first"),
            FailureKind::Internal(error) => write!(f, "internal error: {error}"),
        }
    }
}

/// Why an [`App`](crate::App) could not be built. Each message says what to change.
///
/// ```rust
/// use docent_mcp::{App, BuildError, Icon};
///
/// let icon = Icon { src: "icon.png".to_owned(), mime_type: "image/png".to_owned(), sizes: Vec::new() };
/// let built = App::builder("tides", "1.0.0").icon(icon).build();
/// assert!(matches!(built.err(), Some(BuildError::Icon(src)) if src == "icon.png"));
/// ```
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The name of a tool is not one that hosts accept.
    #[error("`{0}` is not a tool name: use 1 to 64 letters, digits, `_`, `-` or `.`")]
    Name(String),
    /// Two tools, prompts or resources share a name.
    #[error("`{0}` is registered twice: give each tool, prompt and resource a name of its own")]
    Duplicate(String),
    /// A tool has no title or no description. Hosts show the one and choose tools by the other.
    #[error("tool `{tool}` has no {what}: hosts refuse a tool without one")]
    Missing {
        /// The name of the tool that is not valid.
        tool: String,
        /// What the tool lacks: its `title` or its `description`.
        what: &'static str,
    },
    /// The input schema of a tool is not an object.
    #[error(
        "the input of tool `{0}` is not an object: use a struct with named fields, or `()` for a tool that takes nothing"
    )]
    Input(String),
    /// The URI of a resource is not absolute.
    #[error("`{0}` is not an absolute uri: start it with a scheme, such as `docs://`")]
    Uri(String),
    /// The name of a widget cannot be part of its URI.
    #[error("`{0}` is not a widget name: use 1 to 64 lower-case letters, digits or `-`")]
    WidgetName(String),
    /// A widget that hosts would refuse, or show incompletely.
    #[error("widget `{widget}` {what}")]
    Widget {
        /// The name of the widget that is not valid.
        widget: String,
        /// What is wrong and how to fix it.
        what: String,
    },
    /// A tool that hosts would refuse, or call in the wrong way.
    #[error("tool `{tool}` {what}")]
    Tool {
        /// The name of the tool that is not valid.
        tool: String,
        /// What is wrong and how to fix it.
        what: String,
    },
    /// A language of the app is not a valid language tag (BCP 47).
    #[error("`{0}` is not a language tag: write it as in `en`, `pt-BR` or `zh-Hant`")]
    Locale(String),
    /// The address of an icon is not one that hosts load.
    #[error("`{0}` is not the address of an icon: use `https://` or a `data:image/` uri")]
    Icon(String),
}
