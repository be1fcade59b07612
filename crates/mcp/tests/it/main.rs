//! The contract of the kit, over real sockets, in process and on pipes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "what stands beside a test fails with it, and a table is as long as it is"
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
