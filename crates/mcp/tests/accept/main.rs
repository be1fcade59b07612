//! Tests of the connection layer on real sockets: every deadline and limit, once reached and once not.
//!
//! Each test sets limits so that one of them can be reached and all others cannot. It asserts that an event happens,
//! never when, so that a slow machine fails no test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test helpers may panic"
)]
mod client;
mod crowd;
mod framing;
mod http2;
mod shutdown;
mod slow;
mod tls;
mod unread;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use docent_mcp::http::body;
use docent_mcp::http::limits::HttpLimits;

use client::AcceptServer;

/// Router that reads bodies with the bounded reader of the product, up to 1,000 bytes.
fn reading(limits: HttpLimits) -> Router {
    let limits = Arc::new(limits);
    let read = move |request: Request| async move {
        match body::read(request.into_body(), 1000, &limits).await {
            Ok(bytes) => bytes.len().to_string().into_response(),
            Err(error) => error.into_response(),
        }
    };
    Router::new()
        .route("/read", post(read))
        .route("/", get(|| async { "hello" }))
}

async fn serving(limits: HttpLimits) -> AcceptServer {
    AcceptServer::start(limits.clone(), reading(limits)).await
}
