//! The contract of the program: the tools through the real router, and the real process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the functions beside the tests may fail as loudly as the tests"
)]

mod cli;
mod connect;
mod contract;
mod doctor;
mod eval;
mod finding;
#[cfg(target_os = "linux")]
mod full_disk;
mod init;
mod metered;
mod package;
mod permitted;
mod preview;
mod process;
mod reloading;
mod serving;
mod shaping;
mod signing_in;
mod users;
mod watching;
