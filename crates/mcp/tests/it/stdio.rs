//! The stdio transport: the same app on a pair of pipes, in every protocol revision.

use std::collections::BTreeMap;

use docent_mcp::http::limits::HttpLimits;
use docent_mcp::stdio;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::server::{LEGACY, MODERN, app, shaped};
use crate::streams::PATIENCE;

struct StdioPipes {
    input_pipe: DuplexStream,
    from: BufReader<DuplexStream>,
    served: JoinHandle<std::io::Result<()>>,
}

impl StdioPipes {
    fn open(limits: HttpLimits) -> Self {
        let (input_pipe, input) = duplex(1 << 20);
        let (output, from) = duplex(1 << 20);
        let (input, _) = split(input);
        let served = tokio::spawn(stdio::run(
            app(),
            limits,
            input,
            output,
            CancellationToken::new(),
        ));
        Self {
            input_pipe,
            from: BufReader::new(from),
            served,
        }
    }

    async fn write_line(&mut self, line: &str) {
        self.input_pipe
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn read_message(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"))
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.write_line(&message.to_string()).await;
        self.read_message().await
    }

    /// Closes the input, and returns the output that was still pending.
    async fn close(mut self) -> String {
        drop(self.input_pipe);
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).await.unwrap();
        self.served.await.unwrap().unwrap();
        rest
    }
}

fn hello(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

fn search(query: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "search", "arguments": {"query": query}}})
}

#[tokio::test]
async fn every_revision_is_supported_and_selects_the_dual_format() {
    for revision in LEGACY {
        let mut pipes = StdioPipes::open(HttpLimits::default());
        assert_eq!(
            pipes.ask(&hello(revision)).await["result"]["protocolVersion"],
            revision
        );
        pipes
            .write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        let result = pipes.ask(&search("x")).await["result"].clone();
        assert_eq!(result["structuredContent"], json!({"results": ["x"]}));
        assert_eq!(
            result.get("results").is_some(),
            revision < "2025-06-18",
            "{revision}"
        );
        assert_eq!(pipes.close().await, "");
    }
    let mut pipes = StdioPipes::open(HttpLimits::default());
    let (_, discover) = shaped(MODERN, "server/discover", json!({}));
    assert_eq!(
        pipes.ask(&discover).await["result"]["supportedVersions"][0],
        MODERN
    );
    let (_, call) = shaped(
        MODERN,
        "tools/call",
        json!({"name": "search", "arguments": {"query": "x"}}),
    );
    assert_eq!(pipes.ask(&call).await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_bare_discover_and_a_bare_ping_are_answered_before_any_handshake() {
    let mut pipes = StdioPipes::open(HttpLimits::default());
    let discover = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"});
    assert!(pipes.ask(&discover).await["result"]["capabilities"].is_object());
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    assert_eq!(pipes.ask(&ping).await["result"], json!({}));
}

#[tokio::test]
async fn bad_lines_are_answered_and_the_next_line_is_served() {
    let mut pipes = StdioPipes::open(HttpLimits {
        stdio_line: 300,
        ..HttpLimits::default()
    });
    pipes.ask(&hello("2025-11-25")).await;
    let long = format!("\"{}\"", "x".repeat(299));
    let rows = [
        ("garbage", -32700),
        ("{", -32700),
        ("{}", -32600),
        ("[]", -32600),
        ("[1]", -32600),
        (long.as_str(), -32600),
    ];
    for (line, code) in rows {
        pipes.write_line(line).await;
        assert_eq!(pipes.read_message().await["error"]["code"], code, "{line}");
    }
    pipes.write_line("\r\n  \n").await;
    assert_eq!(pipes.ask(&search("panic")).await["error"]["code"], -32603);
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "v9"}}});
    assert_eq!(pipes.ask(&unknown).await["error"]["code"], -32022);
    assert_eq!(
        pipes.ask(&search("fine")).await["result"]["structuredContent"]["results"][0],
        "fine"
    );
}

#[tokio::test]
async fn a_line_at_the_limit_is_read() {
    let message = search("fine").to_string();
    let mut pipes = StdioPipes::open(HttpLimits {
        stdio_line: message.len(),
        ..HttpLimits::default()
    });
    pipes.write_line(&message).await;
    assert!(pipes.read_message().await["result"].is_object());
    pipes.write_line(&format!("{message} ")).await;
    assert_eq!(pipes.read_message().await["error"]["code"], -32600);
}

#[tokio::test]
async fn batches_work_in_their_one_revision() {
    let batch = json!([{"jsonrpc": "2.0", "id": "a", "method": "ping"}, {"jsonrpc": "2.0", "id": "b", "method": "ping"}]);
    let mut pipes = StdioPipes::open(HttpLimits::default());
    pipes.ask(&hello("2025-03-26")).await;
    pipes.write_line(&batch.to_string()).await;
    let mut answers = BTreeMap::new();
    for _ in 0..2 {
        let answer = pipes.read_message().await;
        answers.insert(
            answer["id"].as_str().unwrap().to_owned(),
            answer["result"].clone(),
        );
    }
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["a", "b"]);
    let mut pipes = StdioPipes::open(HttpLimits::default());
    pipes.ask(&hello("2025-06-18")).await;
    assert_eq!(pipes.ask(&batch).await["error"]["code"], -32600);
}

#[tokio::test]
async fn progress_comes_before_the_answer() {
    let mut pipes = StdioPipes::open(HttpLimits::default());
    pipes.ask(&hello("2025-11-25")).await;
    let mut call = search("x");
    call["params"]["_meta"] = json!({"progressToken": "p"});
    let note = pipes.ask(&call).await;
    assert_eq!(
        (&note["method"], &note["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!("p"))
    );
    assert_eq!(pipes.read_message().await["id"], 5);
}

#[tokio::test]
async fn a_cancelled_request_gets_no_answer() {
    let mut pipes = StdioPipes::open(HttpLimits::default());
    pipes.ask(&hello("2025-11-25")).await;
    let slow = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "slow", "arguments": {"query": "wait"}}});
    pipes.write_line(&slow.to_string()).await;
    pipes
        .write_line(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#,
        )
        .await;
    assert_eq!(pipes.ask(&search("next")).await["id"], 5);
    assert_eq!(pipes.close().await, "");
}

#[tokio::test]
async fn subscriptions_do_not_block_the_pipe_and_are_limited() {
    let mut pipes = StdioPipes::open(HttpLimits {
        stream_in_flight: 2,
        ..HttpLimits::default()
    });
    let (_, mut listen) = shaped(
        MODERN,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    for id in ["a", "b"] {
        listen["id"] = id.into();
        let ack = pipes.ask(&listen).await;
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    }
    listen["id"] = "c".into();
    let going_on = async {
        let refused = pipes.ask(&listen).await;
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!("c"), &json!(-32603))
        );
        assert_eq!(pipes.ask(&search("next")).await["id"], 5);
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}});
        pipes.write_line(&cancel.to_string()).await;
        while pipes.ask(&listen).await.get("error").is_some() {}
    };
    tokio::time::timeout(PATIENCE, going_on)
        .await
        .expect("the pipe was blocked");
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    let mut pipes = StdioPipes::open(HttpLimits::default());
    for id in 0..50 {
        let mut call = search("x");
        call["id"] = id.into();
        pipes.write_line(&call.to_string()).await;
    }
    assert_eq!(pipes.close().await.lines().count(), 50);
}

#[tokio::test]
async fn ten_thousand_messages_give_ten_thousand_lines_of_json() {
    let StdioPipes {
        mut input_pipe,
        from,
        served,
    } = StdioPipes::open(HttpLimits::default());
    let writer = tokio::spawn(async move {
        for id in 0..10_000 {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
            input_pipe.write_all(line.as_bytes()).await.unwrap();
        }
    });
    let mut lines = from.lines();
    let mut count = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["result"], json!({}), "{line}");
        count += 1;
    }
    writer.await.unwrap();
    served.await.unwrap().unwrap();
    assert_eq!(count, 10_000);
}
