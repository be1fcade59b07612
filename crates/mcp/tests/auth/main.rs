//! Sign-in, over real sockets: an issuer and a server on the loopback interface, and a client that says
//! whatever it likes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "what stands beside a test fails with it, and a table is as long as it is"
)]

mod authorities;
mod authority;
mod canary;
mod challenge;
mod isolation;
#[path = "../../src/auth/mint.rs"]
#[allow(dead_code, reason = "shared with the tests of the module itself")]
mod mint;
mod mix_up;
mod needles;
mod scopes;
mod table;
mod world;
