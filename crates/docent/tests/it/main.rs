//! Integration tests of the program: the tools through the router in this process, and the real process with real
//! clients.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test helpers may panic"
)]

#[cfg(unix)]
#[path = "../../../mcp/tests/auth/authority.rs"]
mod authority;
#[cfg(unix)]
mod canary;
mod cli;
mod connect;
mod contract;
mod deploy;
mod docs;
mod doctor;
mod eval;
mod finding;
#[cfg(target_os = "linux")]
mod full_disk;
mod health;
mod init;
mod logged;
mod metered;
#[cfg(unix)]
#[path = "../../../mcp/src/auth/mint.rs"]
#[allow(dead_code, reason = "shared with the tests of sign-in")]
mod mint;
#[cfg(unix)]
#[path = "../../../mcp/tests/auth/needles.rs"]
mod needles;
mod package;
mod permitted;
mod preview;
mod process;
mod reloading;
mod serving;
mod shaping;
mod signing_in;
mod traced;
mod users;
mod watching;
