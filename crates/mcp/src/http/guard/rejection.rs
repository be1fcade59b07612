//! Rejections of the request guard, each with its HTTP status, message and hint.

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::StatusCode;

use crate::answer_error::INVALID_REQUEST;
use crate::json_response;

/// Why the guard rejected a request, before anything was done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardRejection {
    /// The request has both `Content-Length` and `Transfer-Encoding`.
    TwoLengths,
    /// The transfer coding is not `chunked`.
    CodingUnknown,
    /// The request target is longer than allowed.
    TargetTooLong,
    /// The headers are larger than allowed.
    HeadersTooLarge,
    /// There are more header fields than allowed.
    TooManyFields,
    /// The request has no `Host` header.
    HostAbsent,
    /// The request has more than one `Host` header.
    HostRepeated,
    /// The `Host` header is not a host with an optional port.
    HostUnreadable,
    /// `Host` and the request target name different hosts.
    HostsDiffer,
    /// The host is not on the allowlist.
    HostUnknown(String),
    /// The request has more than one `Origin` header.
    OriginRepeated,
    /// The `Origin` header is `null`, or not an origin.
    OriginUnreadable,
    /// The origin is not on the allowlist.
    OriginUnknown(String),
}

impl GuardRejection {
    /// Returns the HTTP status: 403 for a host or origin that is not allowed, 400 or another 4xx for an invalid
    /// request.
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

    /// Returns a hint that says how to fix the request or the settings.
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
            Self::HostUnknown(_) => {
                "set the server's public URL to its public address, or add the host to its allowed hosts"
            }
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
        json_response::answer(
            self.status(),
            INVALID_REQUEST,
            &self.to_string(),
            self.hint(),
        )
    }
}
