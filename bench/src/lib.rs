//! Shared library of the benchmark programs: HTTP client, closed-loop load generator, recorded payloads and statistics.

pub mod benchmark_request;
pub mod http_connection;
pub mod load;
pub mod loopback_target;
pub mod payload;
pub mod process_tree;
pub mod summary;
