//! HTTP responses: JSON or an event stream, by what the client accepts.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::json_response::{json, respond};
use crate::reply::ReplyStream;
use crate::reply::shrink_spare;

/// The response format that a client prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseFormat {
    Json,
    EventStream,
}

impl ResponseFormat {
    /// Returns an event stream unless the client prefers JSON. Clients must accept both, and some of ChatGPT's that
    /// claim to only ever read the stream.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let (mut json, mut stream) = (None, None);
        for value in headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
        {
            for range in value.split(',') {
                let (kind, quality) = media_range(range);
                match kind.as_str() {
                    "application/json" => json = json.max(Some(quality)),
                    "text/event-stream" => stream = stream.max(Some(quality)),
                    _ => {}
                }
            }
        }
        match (json, stream) {
            (Some(json), stream) if json > stream.unwrap_or(0) => Self::Json,
            _ => Self::EventStream,
        }
    }
}

/// Parses one range of an `Accept` header: the lower-case type, and the quality in thousandths.
fn media_range(range: &str) -> (String, u16) {
    let mut parts = range.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
    let quality = parts
        .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
        .and_then(|text| text.parse::<f32>().ok())
        .filter(|quality| (0.0..=1.0).contains(quality))
        .unwrap_or(1.0);
    // The filter above guarantees at most 1,000.
    (kind, (quality * 1000.0) as u16)
}

/// Whether the client explicitly requests an event stream.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.to_ascii_lowercase().contains("text/event-stream"))
}

/// Builds a complete response. Errors with their own HTTP status are JSON, whatever the client accepts.
pub(crate) fn whole(mut text: String, status: StatusCode, form: ResponseFormat) -> Response {
    if form == ResponseFormat::Json || status != StatusCode::OK {
        return json(status, text);
    }
    // A single event in one piece: the client sees a stream, and the network a body of known length.
    text.reserve_exact(EVENT_FRAME.len());
    text.insert_str(0, "data: ");
    text.push_str("\n\n");
    stream_head(Body::from(shrink_spare(text)))
}

/// The framing that an event adds to a message.
const EVENT_FRAME: &str = "data: \n\n";

/// Renders a message as an event, after the lines that come before its data.
pub(crate) fn event(before: &str, text: &str) -> String {
    let mut event = String::with_capacity(before.len() + EVENT_FRAME.len() + text.len());
    event.push_str(before);
    event.push_str("data: ");
    event.push_str(text);
    event.push_str("\n\n");
    event
}

/// Returns the HTTP status of an error code. 2026-07-28 assigns some a status; before it, an answered request is a
/// 200.
pub(crate) fn status(code: Option<i32>, modern: bool) -> StatusCode {
    match code {
        Some(-32601) if modern => StatusCode::NOT_FOUND,
        Some(-32022..=-32020) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// Streams messages as events, with a keep-alive comment in pauses so that no proxy closes the stream.
pub(crate) fn stream(stream: Box<ReplyStream>, keep_alive: Duration) -> Response {
    let events = futures::stream::unfold(stream, move |mut stream| async move {
        let event = match tokio::time::timeout(keep_alive, stream.next()).await {
            Ok(Some(text)) => Bytes::from(event("", &text)),
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok::<_, std::convert::Infallible>(event), stream))
    });
    stream_head(Body::from_stream(events))
}

/// Waits for the last message of a stream, for a client that accepts none.
pub(crate) async fn last_message(mut stream: Box<ReplyStream>) -> String {
    let mut last = String::new();
    while let Some(text) = stream.next().await {
        last = text;
    }
    last
}

pub(crate) fn stream_head(body: Body) -> Response {
    let mut response = respond(StatusCode::OK, "text/event-stream", body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_its_lines_before_its_data() {
        assert_eq!(
            event("event: message\n", "{}"),
            "event: message\ndata: {}\n\n"
        );
    }

    #[test]
    fn accept_decides_and_silence_means_a_stream() {
        let rows = [
            (None, ResponseFormat::EventStream),
            (Some("*/*"), ResponseFormat::EventStream),
            (
                Some("application/json, text/event-stream"),
                ResponseFormat::EventStream,
            ),
            (
                Some("text/event-stream, application/json"),
                ResponseFormat::EventStream,
            ),
            (Some("text/event-stream"), ResponseFormat::EventStream),
            (Some("application/json"), ResponseFormat::Json),
            (
                Some("Application/JSON; charset=utf-8"),
                ResponseFormat::Json,
            ),
            (Some("application/json, */*"), ResponseFormat::Json),
            (
                Some("application/json, text/event-stream;q=0.5"),
                ResponseFormat::Json,
            ),
            (
                Some("application/json;q=0.5, text/event-stream"),
                ResponseFormat::EventStream,
            ),
            (
                Some("application/json, text/event-stream;q=0"),
                ResponseFormat::Json,
            ),
            (Some("text/html"), ResponseFormat::EventStream),
            (Some("application/json;q=nonsense"), ResponseFormat::Json),
        ];
        for (accept, expected) in rows {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(ResponseFormat::of(&headers), expected, "{accept:?}");
        }
    }
}
