//! Why a server could not be asked, or what was wrong with its answer.

use crate::report::shown;

/// A call that gave nothing to hold a rule against.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("`{}` is not an http or https address", shown(url))]
    BadUrl { url: String },
    #[error("the server cannot be reached")]
    Unreachable { cause: String },
    #[error("the server did not answer in time")]
    TimedOut,
    #[error("the answer has more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the server asks for sign-in")]
    SignIn,
    #[error("the server redirects to another address")]
    Redirect { location: String },
    #[error("the server answered with status {status}")]
    Status { status: u16 },
    #[error("the answer is neither JSON nor an event stream")]
    ContentType { found: String },
    #[error("the answer is not valid JSON")]
    NotJson,
    #[error("the answer to `{method}` is not a JSON-RPC answer to the request")]
    NotAnAnswer {
        method: &'static str,
        why: &'static str,
    },
    #[error("the server refuses `{method}` with code {code}")]
    Refused {
        method: &'static str,
        code: i64,
        message: String,
    },
    #[error("`tools/list` does not end within {limit}")]
    Endless { limit: &'static str },
}

impl Error {
    /// What was seen, safe to print.
    pub(crate) fn evidence(&self) -> String {
        match self {
            Self::Unreachable { cause } => shown(cause),
            Self::Redirect { location } => shown(location),
            Self::ContentType { found } => shown(found),
            Self::NotAnAnswer { why, .. } => (*why).to_owned(),
            Self::Refused { message, .. } => shown(message),
            _ => String::new(),
        }
    }

    /// What the owner of the server can do.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::BadUrl { .. } => "example: `http://127.0.0.1:8787/mcp`",
            Self::Unreachable { .. } => "start the server and check host, port and certificate",
            Self::TimedOut => "answer `tools/list` within a few seconds",
            Self::TooLarge { .. } => {
                "keep lists and results small; hosts cut or refuse large answers"
            }
            Self::SignIn => "servers with sign-in cannot be checked yet; check one without",
            Self::Redirect { .. } => "check the final address; hosts drop the token on a redirect",
            Self::Status { .. } => "check the path; MCP endpoints often end in `/mcp`",
            Self::ContentType { .. } => {
                "answer a POST with `application/json` or `text/event-stream`"
            }
            Self::NotJson | Self::NotAnAnswer { .. } => {
                "answer with one JSON-RPC object that repeats the id and holds `result` or `error`"
            }
            Self::Refused { .. } => "answer `initialize` and `tools/list` without arguments",
            Self::Endless { .. } => "leave out `nextCursor` on the last page",
        }
    }

    /// True where the server is there and speaks, only not this revision of the protocol.
    pub(crate) fn is_about_the_protocol(&self) -> bool {
        matches!(
            self,
            Self::Status { .. }
                | Self::ContentType { .. }
                | Self::NotJson
                | Self::NotAnAnswer { .. }
                | Self::Refused { .. }
        )
    }
}
