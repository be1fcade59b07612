//! Turns a running MCP server into numbers: what a load generator, a recorder and a stopwatch share.

pub mod connection;
pub mod load;
pub mod payload;
pub mod process;
pub mod question;
pub mod summary;
pub mod target;
