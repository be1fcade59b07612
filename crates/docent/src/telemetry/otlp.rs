//! The OTLP 1.x JSON encoding of finished spans, as collectors accept it at `POST /v1/traces`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{AttributeValue, FinishedSpan};

/// `SpanKind` values: internal work, and a request from a client.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;

/// `StatusCode` for an error of the server; mistakes of the caller do not set it.
const ERROR: u8 = 2;

pub(super) fn write(service: &str, spans: &[FinishedSpan]) -> Value {
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            attribute("service.name", &AttributeValue::Text(service.to_owned())),
            attribute("service.version", &AttributeValue::Text(env!("CARGO_PKG_VERSION").to_owned())),
        ]},
        "scopeSpans": [{
            "scope": {"name": "docent", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]})
}

fn span(span: &FinishedSpan) -> Value {
    let is_request = span.name == docent_mcp::REQUEST_SPAN;
    let attributes: Vec<_> = span
        .attributes
        .iter()
        .map(|(name, attribute_value)| attribute(name, attribute_value))
        .collect();
    let mut value = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        "kind": if is_request { SERVER } else { INTERNAL },
        "startTimeUnixNano": nanos(span.start).to_string(),
        "endTimeUnixNano": (nanos(span.start) + span.took.as_nanos()).to_string(),
        "attributes": attributes,
    });
    if let (Some(parent), Some(object)) = (span.parent, value.as_object_mut()) {
        object.insert("parentSpanId".to_owned(), format!("{parent:016x}").into());
    }
    let failed = |(name, attribute_value): &(&str, AttributeValue)| {
        *name == "outcome" && *attribute_value == AttributeValue::Text("failed".to_owned())
    };
    if span.attributes.iter().any(failed)
        && let Some(object) = value.as_object_mut()
    {
        object.insert("status".to_owned(), json!({"code": ERROR}));
    }
    value
}

fn attribute(name: &str, attribute_value: &AttributeValue) -> Value {
    let value = match attribute_value {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        // The JSON mapping of protocol buffers writes 64-bit integers as strings.
        AttributeValue::Number(number) => json!({"intValue": number.to_string()}),
        AttributeValue::Flag(flag) => json!({"boolValue": flag}),
    };
    json!({"key": name, "value": value})
}

fn nanos(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_as_collectors_read_it() {
        let ended = FinishedSpan {
            trace: 7,
            id: 8,
            parent: Some(9),
            name: "tool",
            start: UNIX_EPOCH + Duration::from_secs(1),
            took: Duration::from_millis(2),
            attributes: vec![
                ("tool", AttributeValue::Text("search".to_owned())),
                ("outcome", AttributeValue::Text("failed".to_owned())),
                ("hits", AttributeValue::Number(3)),
                ("known", AttributeValue::Flag(true)),
            ],
        };
        assert_eq!(
            span(&ended),
            json!({
                "traceId": "00000000000000000000000000000007", "spanId": "0000000000000008",
                "parentSpanId": "0000000000000009", "name": "tool", "kind": 1,
                "startTimeUnixNano": "1000000000", "endTimeUnixNano": "1002000000",
                "attributes": [
                    {"key": "tool", "value": {"stringValue": "search"}},
                    {"key": "outcome", "value": {"stringValue": "failed"}},
                    {"key": "hits", "value": {"intValue": "3"}},
                    {"key": "known", "value": {"boolValue": true}},
                ],
                "status": {"code": 2},
            })
        );
    }
}
