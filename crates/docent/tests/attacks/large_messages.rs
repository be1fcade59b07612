//! The size limit of tool calls: every transport refuses oversized messages with the same error.

use serde_json::Value;

use crate::process::{ServerProcess, TestDir};
use crate::wire::{self, EventStream};

/// The size limit of a tool call, in bytes.
const MAX_CALL: usize = 256 * 1024;

/// A `search` call of exactly `length` bytes.
fn call_of(length: usize) -> String {
    let call = wire::call("search", &serde_json::json!({"query": "ferry"}));
    // Whitespace between JSON tokens changes only the size.
    let padding = " ".repeat(length - call.len());
    let padded = call.replacen(':', &format!(":{padding}"), 1);
    assert_eq!(padded.len(), length);
    padded
}

fn error_of(answer: &Value) -> (i64, String) {
    let message = answer["error"]["message"].as_str().unwrap().to_owned();
    (answer["error"]["code"].as_i64().unwrap(), message)
}

#[test]
fn a_large_call_is_refused_alike_on_every_transport() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs", "--no-watch"]);
    server.wait_until_synced();
    let mut stream = EventStream::open(&server).unwrap();
    for length in [MAX_CALL + 1, 900_000] {
        let call = call_of(length);
        let (status, direct) = wire::post(&server, "/mcp", &call);
        assert_eq!(status, 413, "{direct}");
        let direct: Value = serde_json::from_str(&direct).unwrap();
        assert!(
            error_of(&direct).1.contains(&length.to_string()),
            "{direct}"
        );
        let (status, other) = wire::post(&server, &stream.messages, &call);
        assert_eq!(status, 413, "{other}");
        assert_eq!(serde_json::from_str::<Value>(&other).unwrap(), direct);
        let ran = dir.stdio(&["--no-watch"], [call].into_iter());
        assert_eq!(ran.json(), direct);
    }

    let call = call_of(MAX_CALL);
    let (status, direct) = wire::post(&server, "/mcp", &call);
    assert_eq!(status, 200, "{direct}");
    assert_eq!(wire::post(&server, &stream.messages, &call).0, 202);
    assert!(stream.next().unwrap()["result"].is_object());
    let ran = dir.stdio(&["--no-watch"], [call].into_iter());
    assert!(ran.json()["result"].is_object());
}

/// More large messages than are parsed concurrently wait for their turn, and each is answered.
#[test]
fn large_messages_take_turns() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs", "--no-watch"]);
    server.wait_until_synced();
    let call = call_of(MAX_CALL);
    let mut stream = EventStream::open(&server).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(wire::post(&server, "/mcp", &call).0, 200));
            scope.spawn(|| assert_eq!(wire::post(&server, &stream.messages, &call).0, 202));
        }
    });
    for _ in 0..8 {
        assert!(stream.next().unwrap()["result"].is_object());
    }
}
