//! Contract tests of the checker: it runs against mock servers and programs that each test configures.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    clippy::semicolon_if_nothing_returned,
    reason = "a test that cannot go on should stop, and a table is as long as it is"
)]

mod broken;
mod client;
mod good;
mod handshake;
mod hostile;
mod program;
mod server;
mod table;
mod widgets;
