//! Security regression tests against the real process: one file for each attack that a red team tried. All bounds are
//! counts, sizes or ratios within one run, so no result depends on the speed of the machine.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test helpers may panic"
)]

#[path = "../../../mcp/tests/auth/authority.rs"]
mod authority;
#[path = "../it/canary/browser.rs"]
#[allow(dead_code, reason = "shared with the contract tests of the program")]
mod browser;
mod deep_paging;
mod departed_visitors;
mod explained_callers;
mod explained_permissions;
mod fake_issuer;
mod guessing;
mod hidden_field;
mod hostile_server;
mod introspection_floods;
mod invisible_characters;
mod large_messages;
mod latency;
mod malformed_permissions;
#[path = "../../../mcp/src/auth/mint.rs"]
#[allow(dead_code, reason = "shared with the tests of sign-in")]
mod mint;
mod omitted_properties;
mod open_redirects;
#[path = "../it/canary/peers.rs"]
#[allow(dead_code, reason = "shared with the contract tests of the program")]
mod peers;
#[path = "../it/process.rs"]
#[allow(dead_code, reason = "shared with the contract tests of the program")]
mod process;
mod registration_floods;
mod repeated_ids;
mod required_sandbox;
mod rotating_keys;
mod signed_links;
mod slow_bodies;
mod slow_documents;
mod slow_tls;
mod stop_on_drop;
mod swapped_links;
mod unread_answers;
mod upstream_mix_up;
mod wire;
