//! What can go wrong, by whose fault it is: the caller's mistakes, our failures, a bad build.

use std::fmt;

use serde_json::{Map, Value};

use crate::ask::Ask;

/// Why a tool, prompt or resource gave no answer.
///
/// There are two channels. What the caller can mend is shown to the model as a tool error with a
/// hint. What only we can mend stays opaque: the client sees a reference, the log has the cause.
/// Any `std::error::Error` turns into the second kind with `?`.
#[derive(Debug)]
pub struct Failure(pub(crate) Fault);

#[derive(Debug)]
pub(crate) enum Fault {
    Caller {
        message: String,
        hint: Option<String>,
        meta: Map<String, Value>,
    },
    NotFound(String),
    Refused(String),
    MissingCapability(&'static str),
    NeedsInput(Box<Ask>),
    Internal(Box<dyn std::error::Error + Send + Sync>),
}

impl Failure {
    /// The caller's mistake: shown to the model, which can try again.
    #[must_use]
    pub fn caller(message: impl Into<String>) -> Self {
        Self(Fault::Caller {
            message: message.into(),
            hint: None,
            meta: Map::new(),
        })
    }

    /// Adds what to do about a caller's mistake.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        if let Fault::Caller { hint, .. } = &mut self.0 {
            *hint = Some(text.into());
        }
        self
    }

    /// Adds a `_meta` member to a caller's mistake, for hosts that read more than the text.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        if let Fault::Caller { meta, .. } = &mut self.0 {
            meta.insert(key.into(), value.into());
        }
        self
    }

    /// No such resource or prompt; `what` is the uri or name that was asked for.
    #[must_use]
    pub fn not_found(what: impl Into<String>) -> Self {
        Self(Fault::NotFound(what.into()))
    }

    /// The request itself is unacceptable: answered as a protocol error, not as a tool result.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self(Fault::Refused(message.into()))
    }

    /// The client did not declare a capability that this call needs, such as `sampling`.
    #[must_use]
    pub const fn missing_capability(name: &'static str) -> Self {
        Self(Fault::MissingCapability(name))
    }

    /// The call cannot go on before the user has answered; see [`Ask`].
    #[must_use]
    pub fn needs_input(ask: Ask) -> Self {
        Self(Fault::NeedsInput(Box::new(ask)))
    }
}

impl<E> From<E> for Failure
where
    E: std::error::Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        Self(Fault::Internal(Box::new(error)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::Caller {
                message,
                hint: Some(hint),
                ..
            } => write!(f, "{message} ({hint})"),
            Fault::Caller { message, .. } | Fault::Refused(message) => f.write_str(message),
            Fault::NotFound(what) => write!(f, "nothing is called `{what}`"),
            Fault::MissingCapability(name) => write!(f, "the client did not declare `{name}`"),
            Fault::NeedsInput(_) => f.write_str("the user has to answer first"),
            Fault::Internal(error) => write!(f, "internal error: {error}"),
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
    #[error("the input of tool `{0}` is not an object: use a struct with named fields")]
    Input(String),
    /// A resource's address cannot be told from another or from plain text.
    #[error("`{0}` is not an absolute uri: start it with a scheme, such as `docs://`")]
    Uri(String),
}
