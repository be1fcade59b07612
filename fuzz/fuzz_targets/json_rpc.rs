//! Fuzzes the JSON-RPC parser that all transports use. A second JSON parser has to accept every message that it
//! accepts, and read the same values from it, within the limits.

#![no_main]
#![allow(
    dead_code,
    reason = "only a part of the included modules is called here"
)]

#[path = "../../crates/mcp/src/rpc.rs"]
mod rpc;
#[path = "../../crates/mcp/src/rpc_message.rs"]
mod rpc_message;

use libfuzzer_sys::fuzz_target;
use rpc_message::{RpcBody, RpcMessage, RpcParams, parse, split};
use serde_json::Value;

const MAX_DEPTH: usize = 64;
const MAX_BATCH: usize = 32;

fuzz_target!(|bytes: &[u8]| {
    match split(bytes, MAX_DEPTH, MAX_BATCH) {
        Ok(RpcBody::One(text)) => check_message(text),
        Ok(RpcBody::Batch(items)) => {
            assert!((1..=MAX_BATCH).contains(&items.len()));
            if let Some(all) = value(std::str::from_utf8(bytes).unwrap()) {
                assert_eq!(all.as_array().unwrap().len(), items.len());
            }
            items.iter().for_each(|item| check_message(item.get()));
        }
        Err(error) => check_error(&error, None),
    }
});

fn check_message(text: &str) {
    let message = match parse(text) {
        Ok(message) => message,
        Err(unread) => return check_error(&unread.error, unread.id.as_ref()),
    };
    let Some(whole) = value(text) else {
        return;
    };
    assert!(depth(&whole) <= MAX_DEPTH);
    // A message has to be an object. Serde would also accept an array with the members in order.
    let members = whole.as_object().unwrap();
    assert_eq!(members["jsonrpc"], "2.0");
    match message {
        RpcMessage::Request(request) => {
            assert_eq!(members["method"], *request.method);
            check_id(&members["id"], &serde_json::to_value(&request.id).unwrap());
            assert_eq!(request.raw, text);
            check_params(&request.params, members.get("params"));
        }
        RpcMessage::Notification(notification) => {
            assert_eq!(members["method"], *notification.method);
            assert!(!members.contains_key("id"));
            check_params(&notification.params, members.get("params"));
        }
        RpcMessage::Response => {
            assert!(members.get("method").is_none_or(Value::is_null));
            assert!(members.contains_key("result") || members.contains_key("error"));
        }
    }
}

/// Checks that the response has the id of the request. `-0` counts as 0, which the second parser keeps as a float.
fn check_id(requested: &Value, answered: &Value) {
    if requested.as_f64() == Some(0.0) {
        assert_eq!(answered, 0);
    } else {
        assert_eq!(requested, answered);
    }
}

/// Parses the text with the second parser. Returns `None` for a number such as 1e999: it is valid JSON but too large
/// for a float, and is rejected later, when the arguments are read.
fn value(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(error) => panic!("{error}"),
    }
}

/// Checks the members of `params` that routing reads. A literal null counts as absent.
fn check_params(read: &RpcParams<'_>, expected: Option<&Value>) {
    let expected = expected.map(|expected| expected.as_object().unwrap());
    for (name, member) in [
        ("_meta", read.meta),
        ("name", read.name),
        ("uri", read.uri),
        ("taskId", read.task_id),
        ("arguments", read.arguments),
        ("protocolVersion", read.protocol_version),
        ("inputResponses", read.input_responses),
        ("requestState", read.request_state),
        ("requestId", read.request_id),
    ] {
        let expected = expected
            .and_then(|expected| expected.get(name))
            .filter(|expected| !expected.is_null());
        let member = member.filter(|member| member.get() != "null");
        let value = member.map(|member| serde_json::from_str::<Value>(member.get()).unwrap());
        assert_eq!(value.as_ref(), expected, "{name}");
        assert_eq!(
            RpcParams::string(member).as_deref(),
            expected.and_then(Value::as_str)
        );
    }
}

/// Checks that an error is a valid JSON-RPC response, with the id of the request if it has one.
fn check_error(error: &rpc::RpcError, id: Option<&rpc::RequestId>) {
    assert!(matches!(error.code, -32700 | -32600));
    let answer: Value = serde_json::from_str(&error.answer(id)).unwrap();
    assert_eq!(answer["error"]["code"], error.code);
    assert_eq!(answer.get("id").is_some(), id.is_some());
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
