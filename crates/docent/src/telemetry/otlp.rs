//! Ended spans into the JSON of OTLP 1.x, as `POST /v1/traces` takes it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{AttributeValue, FinishedSpan};

/// Kinds of spans: work inside, and a request from outside.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;

/// A failure of ours; the caller's mistakes are none.
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
        .map(|(name, said)| attribute(name, said))
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
    let failed = |(name, said): &(&str, AttributeValue)| {
        *name == "outcome" && *said == AttributeValue::Text("failed".to_owned())
    };
    if span.attributes.iter().any(failed)
        && let Some(object) = value.as_object_mut()
    {
        object.insert("status".to_owned(), json!({"code": ERROR}));
    }
    value
}

fn attribute(name: &str, said: &AttributeValue) -> Value {
    let value = match said {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        // Numbers of 64 bits are texts in the JSON of protocol buffers.
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
