//! Tests of authentication over real sockets: an issuer and a server on the loopback interface, and a raw client that
//! can send any credential, well-formed or not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "test helpers may panic, and a table of cases may be long"
)]

mod authorities;
mod authority;
mod canary;
mod challenge;
mod fixture;
mod isolation;
#[path = "../../src/auth/mint.rs"]
#[allow(dead_code, reason = "shared with the tests of the module itself")]
mod mint;
mod mix_up;
mod needles;
mod scopes;
mod table;
