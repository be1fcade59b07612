//! Parses the body of a request into messages, as every transport does. Whatever is accepted is JSON to another parser
//! too, within the limits, and means the same to both.

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
        Ok(RpcBody::One(text)) => one(text),
        Ok(RpcBody::Batch(items)) => {
            assert!((1..=MAX_BATCH).contains(&items.len()));
            if let Some(all) = value(std::str::from_utf8(bytes).unwrap()) {
                assert_eq!(all.as_array().unwrap().len(), items.len());
            }
            items.iter().for_each(|item| one(item.get()));
        }
        Err(error) => refused(&error, None),
    }
});

fn one(text: &str) {
    let message = match parse(text) {
        Ok(message) => message,
        Err(unread) => return refused(&unread.error, unread.id.as_ref()),
    };
    let Some(whole) = value(text) else {
        return;
    };
    assert!(depth(&whole) <= MAX_DEPTH);
    // A message is an object: an array in the order of the members is none, whatever a reader makes of it.
    let members = whole.as_object().unwrap();
    assert_eq!(members["jsonrpc"], "2.0");
    match message {
        RpcMessage::Request(request) => {
            assert_eq!(members["method"], *request.method);
            same_id(&members["id"], &serde_json::to_value(&request.id).unwrap());
            assert_eq!(request.raw, text);
            params(&request.params, members.get("params"));
        }
        RpcMessage::Notification(note) => {
            assert_eq!(members["method"], *note.method);
            assert!(!members.contains_key("id"));
            params(&note.params, members.get("params"));
        }
        RpcMessage::Response => {
            assert!(members.get("method").is_none_or(Value::is_null));
            assert!(members.contains_key("result") || members.contains_key("error"));
        }
    }
}

/// The id that an answer carries is the one that was sent. `-0` is 0, which another reader keeps as a float.
fn same_id(sent: &Value, answered: &Value) {
    if sent.as_f64() == Some(0.0) {
        assert_eq!(answered, 0);
    } else {
        assert_eq!(sent, answered);
    }
}

/// What another reader makes of it; nothing where it holds a number such as 1e999, which is JSON that no float can
/// hold and that whoever reads the arguments refuses.
fn value(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(error) => panic!("{error}"),
    }
}

/// What routing looks at is what stands there. A literal null counts as absent.
fn params(read: &RpcParams<'_>, said: Option<&Value>) {
    let said = said.map(|said| said.as_object().unwrap());
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
        let said = said
            .and_then(|said| said.get(name))
            .filter(|said| !said.is_null());
        let member = member.filter(|member| member.get() != "null");
        let value = member.map(|member| serde_json::from_str::<Value>(member.get()).unwrap());
        assert_eq!(value.as_ref(), said, "{name}");
        assert_eq!(
            RpcParams::string(member).as_deref(),
            said.and_then(Value::as_str)
        );
    }
}

/// An error is an answer that any client can read, and says of the id what was there.
fn refused(error: &rpc::RpcError, id: Option<&rmcp::model::RequestId>) {
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
