//! JSON-RPC answers as text: a result or an error around an id.

use std::borrow::Cow;

use rmcp::model::RequestId;
use serde::Serialize;
use serde_json::Value;

/// An error object of JSON-RPC.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The whole answer around this error; the id is left out when it could not be read.
    pub(crate) fn answer(&self, id: Option<&RequestId>) -> String {
        #[derive(Serialize)]
        struct RpcErrorResponse<'a> {
            jsonrpc: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a RequestId>,
            error: &'a RpcError,
        }
        to_text(&RpcErrorResponse {
            jsonrpc: "2.0",
            id,
            error: self,
        })
    }
}

impl From<RpcError> for rmcp::ErrorData {
    fn from(error: RpcError) -> Self {
        Self::new(
            rmcp::model::ErrorCode(error.code),
            error.message,
            error.data,
        )
    }
}

/// The whole answer around a result that is already JSON text. Put together by hand: a result is
/// most of an answer, and reading it again to be sure of what was just written would double the
/// cost of a small tool. It is moved up where it stands, because room for another as long costs more.
pub(crate) fn result_answer(id: &RequestId, mut result: String) -> String {
    let before = [r#"{"jsonrpc":"2.0","id":"#, &to_text(id), r#","result":"#].concat();
    result.reserve(before.len() + 1);
    result.insert_str(0, &before);
    result.push('}');
    result
}

/// Serializes one of our own wire shapes. They hold only strings, numbers and raw JSON, which
/// cannot fail; should that ever change, the client still gets an answer it can parse.
pub(crate) fn to_text(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "an answer could not be serialized");
        r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"internal error"}}"#.to_owned()
    })
}
