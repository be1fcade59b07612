//! Turns the reason of a refusal into a status, a message and a hint.

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::StatusCode;

use crate::http::error_response::{self, INVALID_REQUEST};

/// Why a request was refused before anything was done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardRejection {
    /// Both ways of giving a body's length.
    TwoLengths,
    /// A transfer coding other than chunks.
    CodingUnknown,
    /// The request target is longer than allowed.
    TargetTooLong,
    /// The headers are larger than allowed.
    HeadersTooLarge,
    /// There are more header fields than allowed.
    TooManyFields,
    /// No `Host`.
    HostAbsent,
    /// More than one `Host`.
    HostRepeated,
    /// A `Host` that is not a host with an optional port.
    HostUnreadable,
    /// `Host` and the request target name different hosts.
    HostsDiffer,
    /// A host that we do not serve.
    HostUnknown(String),
    /// More than one `Origin`.
    OriginRepeated,
    /// An `Origin` that is not an origin, or `null`.
    OriginUnreadable,
    /// An origin that is not listed.
    OriginUnknown(String),
}

impl GuardRejection {
    /// The HTTP status: 403 for whom we do not serve, 400 for what is not a proper request.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TwoLengths
            | Self::CodingUnknown
            | Self::HostAbsent
            | Self::HostRepeated
            | Self::HostUnreadable
            | Self::HostsDiffer => StatusCode::BAD_REQUEST,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadersTooLarge | Self::TooManyFields => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::HostUnknown(_)
            | Self::OriginRepeated
            | Self::OriginUnreadable
            | Self::OriginUnknown(_) => StatusCode::FORBIDDEN,
        }
    }

    /// What can be done about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TwoLengths => "send `Content-Length` or `Transfer-Encoding`, not both",
            Self::CodingUnknown => "send the body as it is or in chunks",
            Self::TargetTooLong | Self::HeadersTooLarge | Self::TooManyFields => {
                "send less in the head of the request"
            }
            Self::HostAbsent | Self::HostRepeated | Self::HostUnreadable | Self::HostsDiffer => {
                "send exactly one `Host`, as it stands in the address"
            }
            Self::HostUnknown(_) => "add it to the allowed hosts of the server",
            Self::OriginRepeated | Self::OriginUnreadable => {
                "send one `Origin` as browsers write it, or none"
            }
            Self::OriginUnknown(_) => "add it to the allowed origins of the server",
        }
    }
}

impl fmt::Display for GuardRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoLengths => f.write_str("the request gives its length twice"),
            Self::CodingUnknown => f.write_str("the transfer coding is not known here"),
            Self::TargetTooLong => f.write_str("the request target is too long"),
            Self::HeadersTooLarge => f.write_str("the request headers are too large"),
            Self::TooManyFields => f.write_str("the request has too many header fields"),
            Self::HostAbsent => f.write_str("the request has no `Host`"),
            Self::HostRepeated => f.write_str("the request has more than one `Host`"),
            Self::HostUnreadable => f.write_str("the request's `Host` is not a host name"),
            Self::HostsDiffer => f.write_str("the request names two different hosts"),
            Self::HostUnknown(host) => write!(f, "the host `{host}` is not served here"),
            Self::OriginRepeated => f.write_str("the request has more than one `Origin`"),
            Self::OriginUnreadable => f.write_str("the request's `Origin` is not an origin"),
            Self::OriginUnknown(origin) => write!(f, "the origin `{origin}` is not allowed here"),
        }
    }
}

impl std::error::Error for GuardRejection {}

impl IntoResponse for GuardRejection {
    fn into_response(self) -> Response {
        error_response::answer(
            self.status(),
            INVALID_REQUEST,
            &self.to_string(),
            self.hint(),
        )
    }
}
