//! The real process under load: nothing piles up, and nothing accepted is lost at the end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "what stands beside a test fails with it, and a table is as long as it is"
)]

mod client;

use std::time::Duration;

use client::{Connection, Server};

/// These tests measure one process each, so only one of them runs at a time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A bound on tests that would otherwise hang; nothing measures against it.
const PATIENCE: Duration = Duration::from_secs(300);

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const SEARCH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"harbour"}}}"#;

/// `count` handshakes over sixteen connections, none of them ever ended by the client.
async fn handshakes(server: &Server, count: usize) {
    let clients = (0..16).map(|_| {
        let address = server.address.clone();
        tokio::spawn(async move {
            let mut connection = Connection::open(&address).await;
            for _ in 0..count / 16 {
                let answer = connection.post(HELLO).await.expect("an answer");
                assert!(answer.body.contains("protocolVersion"), "{}", answer.body);
                if answer.closes {
                    connection = Connection::open(&address).await;
                }
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        tokio::time::timeout(PATIENCE, client)
            .await
            .expect("no end")
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_handshakes_leave_nothing_behind() {
    let _alone = ALONE.lock().await;
    let server = Server::start().await;
    handshakes(&server, 4_000).await;
    let before = server.memory_kib();
    handshakes(&server, 96_000).await;
    let grown = server.memory_kib().saturating_sub(before);
    assert!(grown < 50 * 1024, "{grown} KiB more than before");
}

/// What one client saw until the server told it to go.
async fn ask_until_told_to_go(address: String) -> Result<usize, String> {
    let mut answered = 0;
    let mut connection = Connection::open(&address).await;
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
async fn a_server_told_to_stop_answers_everything_it_accepted() {
    let _alone = ALONE.lock().await;
    for round in 0..20_u64 {
        let mut server = Server::start().await;
        let clients: Vec<_> = (0..32)
            .map(|_| tokio::spawn(ask_until_told_to_go(server.address.clone())))
            .collect();
        // Each round stops the server at another moment; what must hold does not depend on it.
        tokio::time::sleep(Duration::from_millis(60 + 17 * round)).await;
        server.signal("TERM");
        for client in clients {
            let outcome = tokio::time::timeout(PATIENCE, client)
                .await
                .expect("no end")
                .unwrap();
            assert!(outcome.is_ok(), "round {round}: {outcome:?}");
        }
        assert!(server.exited().await.success(), "round {round}");
    }
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let _alone = ALONE.lock().await;
    let mut server = Server::start().await;
    let _silent = Connection::open(&server.address).await;
    let mut used = Connection::open(&server.address).await;
    used.post(SEARCH).await.expect("an answer");
    server.signal("TERM");
    assert!(server.exited().await.success());
}
