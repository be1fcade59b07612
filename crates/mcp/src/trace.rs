//! Distributed tracing: parses `traceparent` (W3C Trace Context) and opens the span of each request.
//!
//! An invalid `traceparent` is ignored. Tracing is a diagnostic aid, so it must never make a request fail.

use std::fmt;

#[cfg(feature = "http")]
use http::HeaderMap;
use serde_json::value::RawValue;
use tracing::Span;
use tracing::field::Empty;

use crate::request_meta::RequestMeta;

/// Tracing target of the spans of requests and tools, for trace exporters. Without a subscriber they cost one atomic
/// read.
pub const SPANS: &str = "docent_span";

/// Name of the root span of each request.
pub const REQUEST_SPAN: &str = "request";

/// Known methods. Any other method is recorded as `other`, so that clients cannot fill a metric with names.
const METHODS: [&str; 14] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// Length of a version 00 `traceparent`, and the minimum for later versions.
const LENGTH: usize = 55;

/// Maximum length. Later versions may append fields, but none needs more.
const MAX_LENGTH: usize = 256;

/// The position of a request in a distributed trace, from an HTTP header or a `_meta` member called `traceparent`.
///
/// ```rust
/// use docent_mcp::TraceParent;
///
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let parent = TraceParent::parse(text).ok_or("not a traceparent")?;
/// assert!(parent.sampled);
/// assert_eq!(parent.to_string(), text);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace id, never zero.
    pub trace_id: u128,
    /// The id of the parent span, never zero.
    pub parent_id: u64,
    /// Whether the sender records its own part of the trace.
    pub sampled: bool,
}

impl TraceParent {
    /// The name of the HTTP header and of the `_meta` member.
    pub const NAME: &'static str = "traceparent";

    /// Parses a `traceparent`; `None` if it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if !(LENGTH..=MAX_LENGTH).contains(&text.len()) {
            return None;
        }
        let mut parts = text.split('-');
        let mut part = |digits: usize| {
            let part = parts.next()?;
            let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let fits = part.len() == digits && part.bytes().all(plain);
            fits.then_some(part)
        };
        let version = part(2)?;
        let trace_id = u128::from_str_radix(part(32)?, 16).ok()?;
        let parent_id = u64::from_str_radix(part(16)?, 16).ok()?;
        let flags = u8::from_str_radix(part(2)?, 16).ok()?;
        let is_known = match version {
            "ff" => false,
            "00" => text.len() == LENGTH,
            // Of a later version only the known prefix is read, and it has to end where version 00 ends.
            _ => text.len() == LENGTH || text.as_bytes().get(LENGTH) == Some(&b'-'),
        };
        (is_known && trace_id != 0 && parent_id != 0).then_some(Self {
            trace_id,
            parent_id,
            sampled: flags & 1 == 1,
        })
    }
}

#[cfg(feature = "http")]
impl TraceParent {
    /// Parses the `traceparent` header. A repeated header is ambiguous, so neither value counts.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(Self::NAME).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        Self::parse(value.to_str().ok()?)
    }
}

/// Renders the value as version 00.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(
            f,
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.parent_id
        )
    }
}

/// Opens the span of a request, in the trace that its `_meta` or its header names.
pub(crate) fn request_span(
    method: &str,
    header: Option<TraceParent>,
    meta: Option<&RawValue>,
) -> Span {
    // The fields are evaluated only if a subscriber is interested.
    tracing::info_span!(
        target: SPANS,
        REQUEST_SPAN,
        method = METHODS.iter().find(|known| **known == method).unwrap_or(&"other"),
        traceparent = parent_traceparent(header, meta).as_deref(),
        code = Empty,
    )
}

fn parent_traceparent(header: Option<TraceParent>, meta: Option<&RawValue>) -> Option<String> {
    let meta = RequestMeta::new(meta.map(ToOwned::to_owned));
    let declared = meta.get(TraceParent::NAME).and_then(|value| value.as_str());
    let parent = declared.and_then(TraceParent::parse).or(header);
    parent.map(|parent| parent.to_string())
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "http")]
    use http::HeaderValue;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_good_one_is_read_and_written_alike() {
        let read = TraceParent::parse(GOOD).unwrap();
        assert_eq!(read.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(read.parent_id, 0xb7ad_6b71_6920_3331);
        assert!(read.sampled);
        assert_eq!(read.to_string(), GOOD);
        let quiet = GOOD.replace("-01", "-00");
        assert!(!TraceParent::parse(&quiet).unwrap().sampled);
    }

    #[test]
    fn a_trace_parent_in_the_body_takes_precedence_over_the_header() {
        let other = GOOD.replace("0af7", "1111");
        let meta = |text: &str| {
            let text = format!(r#"{{"traceparent":"{text}"}}"#);
            RawValue::from_string(text).unwrap()
        };
        let above = |header: Option<&str>, meta: Option<&RawValue>| {
            parent_traceparent(header.and_then(TraceParent::parse), meta)
        };
        let found = |header: Option<&str>, body: &str| above(header, Some(&meta(body)));
        assert_eq!(found(Some(GOOD), &other), Some(other.clone()));
        assert_eq!(found(Some(GOOD), "00-nonsense"), Some(GOOD.to_owned()));
        assert_eq!(found(Some("nonsense"), "00-0-0-01"), None);
        assert_eq!(above(Some(GOOD), None).as_deref(), Some(GOOD));
        assert_eq!(above(None, None), None);
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = GOOD.replacen("00-", "cc-", 1);
        for text in [later.clone(), format!("{later}-what-ever")] {
            assert_eq!(
                TraceParent::parse(&text),
                TraceParent::parse(GOOD),
                "{text}"
            );
        }
        let long = |more: usize| format!("{later}-{}", "x".repeat(more));
        assert!(TraceParent::parse(&long(MAX_LENGTH - LENGTH - 1)).is_some());
        assert!(TraceParent::parse(&long(MAX_LENGTH - LENGTH)).is_none());
    }

    #[test]
    fn everything_else_is_nothing() {
        let zero_trace = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        let zero_span = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16));
        let upper = GOOD.to_uppercase();
        let longer = format!("{GOOD}-");
        let later = format!("{}x", GOOD.replacen("00-", "cc-", 1));
        let unknown = GOOD.replacen("00-", "ff-", 1);
        let spaced = format!(" {GOOD}");
        let signed = GOOD.replacen("-0a", "-+a", 1);
        let foreign = GOOD.replacen("0af", "éf", 1);
        for text in [
            "",
            "00",
            "00-",
            "----------------------------------------------------------",
            &GOOD[..54],
            &zero_trace,
            &zero_span,
            &upper,
            &longer,
            &later,
            &unknown,
            &spaced,
            &signed,
            &foreign,
        ] {
            assert_eq!(TraceParent::parse(text), None, "{text:?}");
        }
    }

    #[cfg(feature = "http")]
    #[test]
    fn of_two_headers_neither_counts() {
        let mut headers = HeaderMap::new();
        assert_eq!(TraceParent::of(&headers), None);
        headers.append(TraceParent::NAME, HeaderValue::from_static(GOOD));
        assert_eq!(TraceParent::of(&headers), TraceParent::parse(GOOD));
        headers.append(TraceParent::NAME, HeaderValue::from_static(GOOD));
        assert_eq!(TraceParent::of(&headers), None);
    }
}
