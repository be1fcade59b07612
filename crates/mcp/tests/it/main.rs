//! Tests of the kit's contract: the MCP endpoint in process, over real sockets, and over stdio.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "test helpers may panic, and a table of cases may be long"
)]

mod defects;
mod kanban;
mod observing;
mod occupied;
mod outputs;
mod protocol;
mod requests;
mod routes;
mod server;
mod sign_in_demanded;
mod stdio;
mod streams;
mod widgets;
