//! The connection layer against real sockets: every deadline and bound, from both sides.
//!
//! Limits are set so that one of them can be reached and all others cannot. What is asserted is
//! that something happens, never when.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
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

/// A router that reads bodies as ours do.
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
