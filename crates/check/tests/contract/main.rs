//! The check against servers that answer as each test tells them.
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
mod greeting;
mod hostile;
mod program;
mod server;
mod table;
mod widgets;
