//! Parsing of JSON-RPC: bytes from a client become one checked message, or the error that answers them.
//!
//! Everything is checked here once for all transports: nesting depth, JSON syntax, the envelope, the type of the id.
//! Keys are matched exactly and may not repeat, so that no two parsers of a message can disagree about it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::rpc::{INVALID_REQUEST, PARSE_ERROR, RequestId, RpcError};

/// One checked JSON-RPC message, borrowed from the buffer it arrived in.
#[derive(Debug)]
pub(crate) enum RpcMessage<'a> {
    Request(RpcRequest<'a>),
    Notification(RpcNotification<'a>),
    /// A response to a request, which this server never sends.
    Response,
}

#[derive(Debug)]
pub(crate) struct RpcRequest<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: Cow<'a, str>,
    /// The parameters that routing needs.
    pub(crate) params: RpcParams<'a>,
    /// All parameters, which are an object or absent, for their method.
    pub(crate) raw_params: Option<&'a RawValue>,
    /// The whole message, exactly as it was received.
    pub(crate) raw: &'a str,
}

#[derive(Debug)]
pub(crate) struct RpcNotification<'a> {
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: RpcParams<'a>,
}

/// The members of `params` that routing needs; each method parses the rest itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RpcParams<'a> {
    #[serde(rename = "_meta", borrow, default)]
    pub(crate) meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) task_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) request_state: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) request_id: Option<&'a RawValue>,
}

impl RpcParams<'_> {
    /// Returns the token of the progress that the client asks for.
    pub(crate) fn progress_token(&self) -> Option<RequestId> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ProgressMeta {
            progress_token: Option<RequestId>,
        }
        let meta: ProgressMeta = serde_json::from_str(self.meta?.get()).ok()?;
        meta.progress_token
    }

    /// Returns the value of a member that is a JSON string.
    pub(crate) fn string(member: Option<&RawValue>) -> Option<String> {
        serde_json::from_str(member?.get()).ok()
    }
}

/// A request body: one message, or a batch, which only 2025-03-26 allows.
#[derive(Debug)]
pub(crate) enum RpcBody<'a> {
    One(&'a str),
    Batch(Vec<&'a RawValue>),
}

#[derive(Deserialize)]
struct RpcEnvelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Distinguishes a literal `null` from an absent member: a null id is an error, an absent one is not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Splits a body into messages without building a tree. A tree of a 1 MiB body can take 100 MiB; this only scans the
/// bytes.
pub(crate) fn split(
    bytes: &[u8],
    max_depth: usize,
    max_batch: usize,
) -> Result<RpcBody<'_>, RpcError> {
    let text = std::str::from_utf8(bytes).map_err(|_| RpcError::parse("the body is not UTF-8"))?;
    let text = text.trim_matches(|c: char| matches!(c, ' ' | '\t' | '\r' | '\n'));
    if text.is_empty() {
        return Err(RpcError::parse("the body is empty"));
    }
    if depth(text.as_bytes()) > max_depth {
        return Err(RpcError::invalid_request(format!(
            "the message is nested deeper than {max_depth} levels"
        )));
    }
    if !text.starts_with('[') {
        return Ok(RpcBody::One(text));
    }
    let items: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|error| RpcError::parse(format!("the body is not JSON: {error}")))?;
    match items.len() {
        0 => Err(RpcError::invalid_request("the batch is empty")),
        n if n > max_batch => Err(RpcError::invalid_request(format!(
            "the batch has {n} messages, the limit is {max_batch}"
        ))),
        _ => Ok(RpcBody::Batch(items)),
    }
}

/// A parse error, with the id of the message if that could be read.
#[derive(Debug)]
pub(crate) struct UnreadableMessage {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: RpcError,
}

/// Parses one message and checks its JSON-RPC envelope.
pub(crate) fn parse(text: &str) -> Result<RpcMessage<'_>, Box<UnreadableMessage>> {
    // A derived deserializer also accepts an array with the members in order. To every other parser such an array is
    // not a message.
    if text.starts_with('[') {
        return Err(Box::new(UnreadableMessage {
            id: None,
            error: RpcError::invalid_request("the message is not a JSON-RPC object"),
        }));
    }
    let parsed: Result<RpcEnvelope<'_>, _> = serde_json::from_str(text);
    let envelope = parsed.map_err(|error| {
        Box::new(UnreadableMessage {
            id: None,
            error: parse_error(&error),
        })
    })?;
    let id = envelope.id.map(|raw| request_id(raw.get()));
    let known = id.clone().flatten();
    let refuse = |message: &'static str| {
        let error = RpcError::invalid_request(message);
        Err(Box::new(UnreadableMessage {
            id: known.clone(),
            error,
        }))
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return refuse("`jsonrpc` must be \"2.0\"");
    }
    if matches!(id, Some(None)) {
        return refuse("`id` must be a string or an integer");
    }
    let Some(method) = envelope.method else {
        return if envelope.result.is_some() || envelope.error.is_some() {
            Ok(RpcMessage::Response)
        } else {
            refuse("`method` is missing")
        };
    };
    let params = match envelope.params.map(RawValue::get) {
        None => RpcParams::default(),
        Some(raw) if raw.starts_with('{') => match serde_json::from_str(raw) {
            Ok(params) => params,
            Err(_) => return refuse("`params` repeats a key"),
        },
        Some(_) => return refuse("`params` must be an object"),
    };
    Ok(match known {
        Some(id) => RpcMessage::Request(RpcRequest {
            id,
            method,
            params,
            raw_params: envelope.params,
            raw: text,
        }),
        None => RpcMessage::Notification(RpcNotification { method, params }),
    })
}

fn parse_error(error: &serde_json::Error) -> RpcError {
    if error.is_data() {
        RpcError::invalid_request(format!("the message is not a JSON-RPC object: {error}"))
    } else {
        RpcError::parse(format!("the body is not JSON: {error}"))
    }
}

fn request_id(raw: &str) -> Option<RequestId> {
    if raw.starts_with('"') {
        return serde_json::from_str::<String>(raw)
            .ok()
            .map(RequestId::String);
    }
    raw.parse::<i64>().ok().map(RequestId::Number)
}

/// Returns the maximum nesting of arrays and objects, in one pass without allocation.
fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut deepest, mut in_string, mut escaped) = (0_usize, 0_usize, false, false);
    for &byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

impl RpcError {
    fn parse(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(PARSE_ERROR, message)
    }

    pub(crate) fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> i32 {
        parse(text)
            .map(|_| 0)
            .unwrap_or_else(|unread| unread.error.code)
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let request = r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":{}}}"#;
        assert!(matches!(parse(request), Ok(RpcMessage::Request(r)) if r.method == "tools/list"));
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(matches!(parse(note), Ok(RpcMessage::Notification(_))));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Ok(RpcMessage::Response)
        ));
    }

    #[test]
    fn invalid_messages_are_rejected_with_their_error_code() {
        let rows = [
            ("{", -32700),
            ("nonsense", -32700),
            ("[]", -32600),
            ("1", -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
            (r#"{"id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"METHOD":"ping"}"#, -32600),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#,
                -32600,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
                -32600,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":1,"name":2}}"#,
                -32600,
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            // An array of the members is not a message, though a derived deserializer would accept it.
            (r#"["2.0",1,"ping"]"#, -32600),
            (r#"["2.0",1,"tools/call",{"name":"search"}]"#, -32600),
        ];
        for (text, expected) in rows {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn an_error_echoes_the_id_when_there_is_one() {
        let unread = parse(r#"{"jsonrpc":"2.0","id":7,"params":{}}"#).unwrap_err();
        assert_eq!(unread.id, Some(RequestId::Number(7)));
    }

    #[test]
    fn depth_and_batch_stop_at_their_bound() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(split(nested(64).as_bytes(), 64, 32).is_ok());
        assert!(split(nested(65).as_bytes(), 64, 32).is_err());
        assert_eq!(depth(br#"{"a":"[[[[\"{{"}"#), 1);
        let batch = |n: usize| format!("[{}]", vec!["{}"; n].join(","));
        assert!(split(batch(32).as_bytes(), 64, 32).is_ok());
        assert!(split(batch(33).as_bytes(), 64, 32).is_err());
        assert!(split(b"[]", 64, 32).is_err());
        assert!(split(b" \r\n", 64, 32).is_err());
        assert!(split(&[0xff, 0xfe], 64, 32).is_err());
    }
}
