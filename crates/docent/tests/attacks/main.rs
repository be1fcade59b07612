//! What a red team did to the real process, one file for each line of attack. Every bound here is a
//! count, a size or a ratio within one run, so none depends on how fast the machine is.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the functions beside the tests may fail as loudly as the tests"
)]

#[path = "../it/canary/browser.rs"]
#[allow(dead_code, reason = "shared with the contract tests of the program")]
mod browser;
mod deep_paging;
mod guessing;
mod hostile_server;
mod invisible_characters;
mod large_messages;
mod malformed_permissions;
mod open_redirects;
#[path = "../it/process.rs"]
#[allow(dead_code, reason = "shared with the contract tests of the program")]
mod process;
mod registration_floods;
mod repeated_ids;
mod required_sandbox;
mod signed_links;
mod slow_bodies;
mod swapped_links;
mod unread_answers;
mod wire;
