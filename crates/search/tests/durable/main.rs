//! Durability: whatever ends the process or damages the files, every acknowledged change is there afterwards,
//! once and unchanged, and nothing else is.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and tells what it saw"
)]

mod faults;
mod kills;
mod mutations;
mod world;
