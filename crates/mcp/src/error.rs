//! What can go wrong, by whose fault it is: the caller's mistakes, our failures, a bad build.

use std::fmt;

use serde_json::{Map, Value};

use crate::elicitation::Elicitation;

/// Why a tool, prompt or resource gave no answer.
///
/// There are two channels. What the caller can mend is shown to the model as a tool error with a
/// hint. What only we can mend stays opaque: the client sees a reference, the log has the cause.
/// Any `std::error::Error` turns into the second kind with `?`.
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

/// What the caller can mend.
#[derive(Debug)]
pub(crate) struct CallerError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) data: Option<Value>,
    pub(crate) meta: Map<String, Value>,
}

impl Failure {
    /// The caller's mistake: shown to the model, which can try again.
    #[must_use]
    pub fn caller(message: impl Into<String>) -> Self {
        Self(FailureKind::Caller(Box::new(CallerError {
            message: message.into(),
            hint: None,
            data: None,
            meta: Map::new(),
        })))
    }

    /// Adds what to do about a caller's mistake.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        if let FailureKind::Caller(mistake) = &mut self.0 {
            mistake.hint = Some(text.into());
        }
        self
    }

    /// Adds a `_meta` member to a caller's mistake, for hosts that read more than the text.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        if let FailureKind::Caller(mistake) = &mut self.0 {
            mistake.meta.insert(key.into(), value.into());
        }
        self
    }

    /// Adds data to a caller's mistake, for programs and widgets: it becomes `structuredContent`, and
    /// what is no object its member `result`, because clients take no other data.
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

    /// The caller has to sign in first, or with more scopes. `resource_metadata` is the address of
    /// the server's document of RFC 9728, and `why` is read by the user. ChatGPT opens its sign-in
    /// for the tool when the tool also lists [`Security::OAuth2`](crate::Security::OAuth2).
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

    /// No such resource or prompt; `what` is the uri or name that was asked for.
    #[must_use]
    pub fn not_found(what: impl Into<String>) -> Self {
        Self(FailureKind::NotFound(what.into()))
    }

    /// The request itself is unacceptable: answered as a protocol error, not as a tool result.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self(FailureKind::Refused(message.into()))
    }

    /// The client did not declare a capability that this call needs, such as `sampling`.
    #[must_use]
    pub const fn missing_capability(name: &'static str) -> Self {
        Self(FailureKind::MissingCapability(name))
    }

    /// The call cannot go on before the user has answered; see [`Ask`].
    #[must_use]
    pub fn needs_input(ask: Elicitation) -> Self {
        Self(FailureKind::NeedsInput(Box::new(ask)))
    }
}

/// Says of a failure that is nobody's mistake, such as a service that is away for a while, what happened and
/// what to do; nothing of one that only we can mend.
pub type ErrorExplainer = fn(&(dyn std::error::Error + 'static)) -> Option<(String, String)>;

impl Failure {
    /// The same, said to the caller where it can be explained.
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

/// A text as it can stand in a quoted string of a header: what could end the string, or is not ASCII
/// that prints, is left out.
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
            FailureKind::NotFound(what) => write!(f, "nothing is called `{what}`"),
            FailureKind::MissingCapability(name) => {
                write!(f, "the client did not declare `{name}`")
            }
            FailureKind::NeedsInput(_) => f.write_str("the user has to answer first"),
            FailureKind::Internal(error) => write!(f, "internal error: {error}"),
        }
    }
}

/// Why an [`App`](crate::App) could not be built. Each says what to change.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A name that hosts refuse.
    #[error("`{0}` is not a tool name: use 1 to 64 letters, digits, `_`, `-` or `.`")]
    Name(String),
    /// Two tools, prompts or resources share a name.
    #[error("`{0}` is registered twice: give each tool, prompt and resource a name of its own")]
    Duplicate(String),
    /// Hosts show the title and steer by the description, so neither may be empty.
    #[error("tool `{tool}` has no {what}: hosts refuse a tool without one")]
    Missing {
        /// The tool in question.
        tool: String,
        /// What it lacks.
        what: &'static str,
    },
    /// The input schema is not an object.
    #[error(
        "the input of tool `{0}` is not an object: use a struct with named fields, or `()` for a tool that takes nothing"
    )]
    Input(String),
    /// A resource's address cannot be told from another or from plain text.
    #[error("`{0}` is not an absolute uri: start it with a scheme, such as `docs://`")]
    Uri(String),
    /// A name that cannot stand in a widget's address.
    #[error("`{0}` is not a widget name: use 1 to 64 lower-case letters, digits or `-`")]
    WidgetName(String),
    /// A widget that hosts would not show, or not whole.
    #[error("widget `{widget}` {what}")]
    Widget {
        /// The widget in question.
        widget: String,
        /// What is wrong and what to do about it.
        what: String,
    },
    /// A tool that hosts would refuse, or call in the wrong way.
    #[error("tool `{tool}` {what}")]
    Tool {
        /// The tool in question.
        tool: String,
        /// What is wrong and what to do about it.
        what: String,
    },
    /// A language that nobody can ask for.
    #[error("`{0}` is not a language tag: write it as in `en`, `pt-BR` or `zh-Hant`")]
    Locale(String),
    /// A picture that hosts do not load.
    #[error("`{0}` is not the address of an icon: use `https://` or a `data:image/` uri")]
    Icon(String),
}
