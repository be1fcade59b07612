//! Load tests of the real process: memory does not grow, and graceful shutdown loses no accepted request.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "test helpers may panic, and a table of cases may be long"
)]

mod client;

use std::time::Duration;

use client::{LoadConnection, LoadServer};

/// Mutex that runs these tests one at a time, because each measures a whole process.
static SEQUENTIAL: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Upper bound on every wait, so that a hung test fails. Nothing is measured against it.
const PATIENCE: Duration = Duration::from_secs(300);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const SEARCH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"harbour"}}}"#;

/// Makes `count` handshakes over 16 keep-alive connections, which only the server closes.
async fn handshakes(server: &LoadServer, count: usize) {
    let clients = (0..16).map(|_| {
        let address = server.address.clone();
        tokio::spawn(async move {
            let mut connection = LoadConnection::open(&address).await;
            for _ in 0..count / 16 {
                let answer = connection.post(INITIALIZE).await.expect("a response");
                assert!(answer.body.contains("protocolVersion"), "{}", answer.body);
                if answer.closes {
                    connection = LoadConnection::open(&address).await;
                }
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        tokio::time::timeout(PATIENCE, client)
            .await
            .expect("the client did not end before the deadline")
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_handshakes_leave_nothing_behind() {
    let _guard = SEQUENTIAL.lock().await;
    let server = LoadServer::start().await;
    handshakes(&server, 4_000).await;
    let before = server.memory_kib();
    handshakes(&server, 96_000).await;
    let grown = server.memory_kib().saturating_sub(before);
    assert!(grown < 50 * 1024, "{grown} KiB more than before");
}

/// Searches until the server closes the connection with `Connection: close`, and returns the number of responses.
async fn search_until_closed(address: String) -> Result<usize, String> {
    let mut answered = 0;
    let mut connection = LoadConnection::open(&address).await;
    loop {
        let answer = connection
            .post(SEARCH)
            .await
            .map_err(|e| format!("after {answered}: {e}"))?;
        if !answer.body.contains("structuredContent") {
            return Err(format!("after {answered}: {}", answer.body));
        }
        answered += 1;
        if answer.closes {
            return Ok(answered);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_answers_every_accepted_request() {
    let _guard = SEQUENTIAL.lock().await;
    for round in 0..20_u64 {
        let mut server = LoadServer::start().await;
        let clients: Vec<_> = (0..32)
            .map(|_| tokio::spawn(search_until_closed(server.address.clone())))
            .collect();
        // Each round stops the server at another moment; the result must not depend on it.
        tokio::time::sleep(Duration::from_millis(60 + 17 * round)).await;
        server.signal("TERM");
        for client in clients {
            let outcome = tokio::time::timeout(PATIENCE, client)
                .await
                .expect("the client did not end before the deadline")
                .unwrap();
            assert!(outcome.is_ok(), "round {round}: {outcome:?}");
        }
        assert!(server.exited().await.success(), "round {round}");
    }
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let _guard = SEQUENTIAL.lock().await;
    let mut server = LoadServer::start().await;
    let _silent = LoadConnection::open(&server.address).await;
    let mut used = LoadConnection::open(&server.address).await;
    used.post(SEARCH).await.expect("a response");
    server.signal("TERM");
    assert!(server.exited().await.success());
}
