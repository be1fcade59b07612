//! JSON-RPC errors in place of an answer, which every transport sends when the server is at one of its limits.

use serde_json::json;

use crate::rpc::{INTERNAL_ERROR, RpcError};

/// The error for more requests in flight than the limit allows.
pub(crate) fn too_busy() -> RpcError {
    RpcError::new(INTERNAL_ERROR, "the server is busy; try again in a second")
}

/// The error for unread responses that exceed the share of the connection or its caller, or the whole budget.
pub(crate) fn too_many_unread() -> RpcError {
    let hint = "read the pending responses on this connection, then try again";
    let error = RpcError::new(INTERNAL_ERROR, "too many unread responses");
    error.with_data(json!({"hint": hint}))
}
