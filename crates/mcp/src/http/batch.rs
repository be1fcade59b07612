//! JSON-RPC batches over HTTP, which only revision 2025-03-26 has.
//!
//! The items run concurrently, so a batch takes as long as its slowest call. Each takes an in-flight permit as if it
//! came alone, and each response is charged to the connection as soon as it exists: 32 calls in one body of 3 KiB can
//! be answered with megabytes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::future::join_all;
use http::{HeaderMap, StatusCode, header};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::mcp_endpoint::{HttpSender, McpEndpoint, MessageOutcome};
use super::responses::{self, ResponseFormat};
use crate::answer_error;
use crate::byte_budget::{ByteReservation, CallerSlot, ConnectionShare};
use crate::json_response;
use crate::reply::{Reply, shrink_spare};
use crate::revision::Revision;
use crate::rpc::{INTERNAL_ERROR, RequestId, RpcError};
use crate::rpc_message::{self, RpcMessage};

/// The state that the items of one batch share.
///
/// `first` is the permit of the HTTP request itself, which the first item uses. `is_full` is set once a response did
/// not fit; items that have not started are then refused.
pub(super) struct Batch<'a> {
    first: Mutex<Option<OwnedSemaphorePermit>>,
    share: Option<&'a Arc<ConnectionShare>>,
    caller: Option<CallerSlot>,
    is_full: AtomicBool,
}

/// The response to one item, charged until all are joined.
struct ItemAnswer {
    text: String,
    counted: Option<ByteReservation>,
}

impl Batch<'_> {
    /// Takes an in-flight permit for one more item.
    pub(super) fn admit(&self, places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, RpcError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(too_large());
        }
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permit) = first.take() {
            return Ok(permit);
        }
        Arc::clone(places)
            .try_acquire_owned()
            .map_err(|_| answer_error::too_busy())
    }

    /// Charges a response. If it does not fit, it becomes an error, and no further items are started.
    async fn count(&self, text: String, item: &RawValue) -> ItemAnswer {
        let Some(share) = self.share else {
            return ItemAnswer {
                text,
                counted: None,
            };
        };
        let text = shrink_spare(text);
        let counted = share.reserve_evicting(text.len(), self.caller).await;
        if counted.is_some() {
            return ItemAnswer { text, counted };
        }
        self.is_full.store(true, Ordering::Relaxed);
        ItemAnswer {
            text: too_large().answer(id_of(item).as_ref()),
            counted: None,
        }
    }
}

fn too_large() -> RpcError {
    let hint = "ask for this again, in a smaller batch";
    RpcError::new(INTERNAL_ERROR, "the answers to this batch are too large")
        .with_data(serde_json::json!({"hint": hint}))
}

fn id_of(item: &RawValue) -> Option<RequestId> {
    match rpc_message::parse(item.get()) {
        Ok(RpcMessage::Request(request)) => Some(request.id),
        _ => None,
    }
}

impl McpEndpoint {
    pub(super) async fn batch(
        &self,
        sender: &HttpSender<'_>,
        items: &[&RawValue],
        permit: OwnedSemaphorePermit,
    ) -> Response {
        let headers = sender.headers;
        let version = headers
            .get("mcp-protocol-version")
            .and_then(|value| value.to_str().ok());
        if version.is_some_and(|version| version.trim() != Revision::V2025_03_26.as_str()) {
            let error = RpcError::invalid_request("only revision 2025-03-26 has batches");
            return json_response::rpc_error_response(StatusCode::BAD_REQUEST, &error);
        }
        let batch = Batch {
            first: Mutex::new(Some(permit)),
            share: sender.share,
            caller: sender
                .share
                .and_then(|share| share.budget().slot(sender.caller)),
            is_full: AtomicBool::new(false),
        };
        let work = items.iter().map(|item| self.item(sender, item, &batch));
        let answers: Vec<ItemAnswer> = join_all(work).await.into_iter().flatten().collect();
        if answers.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        if ResponseFormat::of(headers) == ResponseFormat::EventStream && !accepts_json(headers) {
            let events = joined(answers, ["data: ", "\n\ndata: ", "\n\n"]);
            return responses::stream_head(Body::from(events));
        }
        json_response::json(StatusCode::OK, joined(answers, ["[", ",", "]"]))
    }

    /// Runs one item; `None` if it has no response.
    async fn item(
        &self,
        sender: &HttpSender<'_>,
        item: &RawValue,
        batch: &Batch<'_>,
    ) -> Option<ItemAnswer> {
        let text = match self.handle_message(sender, item.get(), Some(batch)).await {
            Ok(MessageOutcome::Accepted | MessageOutcome::Forbidden(_)) => return None,
            Ok(MessageOutcome::Reply(Reply::Stream(stream), _)) if stream.is_listener() => {
                return None;
            }
            Ok(MessageOutcome::Reply(Reply::Stream(stream), _)) => {
                responses::last_message(stream).await
            }
            Ok(MessageOutcome::Reply(Reply::Whole(text, _), _)) => text,
            Err((_, text)) => text,
        };
        Some(batch.count(text, item).await)
    }
}

/// Joins all responses into one text. Each is freed as soon as it has been copied, so that they never exist twice,
/// and stays charged until the join is complete.
fn joined(answers: Vec<ItemAnswer>, [open, between, close]: [&str; 3]) -> String {
    let texts: usize = answers.iter().map(|answer| answer.text.len()).sum();
    let around = open.len() + answers.len() * between.len() + close.len();
    let mut all = String::with_capacity(texts + around);
    let mut counted = Vec::with_capacity(answers.len());
    for (index, answer) in answers.into_iter().enumerate() {
        all.push_str(if index == 0 { open } else { between });
        all.push_str(&answer.text);
        counted.push(answer.counted);
    }
    all.push_str(close);
    all
}

fn accepts_json(headers: &HeaderMap) -> bool {
    let mut values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .peekable();
    values.peek().is_none()
        || values.any(|value| {
            let value = value.to_ascii_lowercase();
            value.contains("application/json") || value.contains("*/*")
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::app::App;
    use crate::auth::Caller;
    use crate::byte_budget::ServerBudgets;
    use crate::dispatcher::RequestDispatcher;
    use crate::limits::HttpLimits;
    use crate::result::Answer;
    use crate::tool::Tool;
    use crate::{Context, Failure, ToolAnnotations, ToolDescriptor};

    const SIZE: usize = 20_000;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct EmptyArguments {}

    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct LongText {
        text: String,
    }

    /// A tool that answers at once, with more than `SIZE` bytes.
    struct Long;

    impl Tool for Long {
        type Input = EmptyArguments;
        type Output = LongText;
        fn descriptor(&self) -> ToolDescriptor {
            ToolDescriptor::new(
                "long",
                "Long",
                "Use this to get a text.",
                ToolAnnotations::READ_ONLY,
            )
        }
        async fn call(&self, _: EmptyArguments, _: Context) -> Result<Answer<LongText>, Failure> {
            let text = "x".repeat(SIZE);
            Ok(Answer::new(LongText { text }))
        }
    }

    /// Returns how many calls of a batch were answered and refused, and the size of all responses.
    async fn answered(unread_bytes: usize, items: u32) -> (usize, usize, usize) {
        let app = App::builder("batches", "1.0.0").tool(Long).build();
        let limits = HttpLimits {
            unread_bytes,
            ..HttpLimits::default()
        };
        let budgets = ServerBudgets::new(&limits);
        let dispatcher = RequestDispatcher::new(app.unwrap(), Arc::new(limits), None);
        let endpoint = McpEndpoint::new(dispatcher, false);
        let get = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "long"}});
        let batch: Vec<Value> = (0..items).map(get).collect();
        let mut request = http::Request::post("/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("mcp-protocol-version", "2025-03-26")
            .body(Body::from(json!(batch).to_string()))
            .unwrap();
        let shares = budgets.connection();
        request.extensions_mut().insert(shares.clone());
        let response = endpoint.post(&Caller::anonymous(), request).await;
        assert_eq!(
            shares.answers.held(),
            0,
            "the whole is counted from here on"
        );
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        let body = body.unwrap();
        let answers: Vec<Value> = serde_json::from_slice(&body).unwrap();
        let ids: Vec<u64> = answers
            .iter()
            .filter_map(|one| one["id"].as_u64())
            .collect();
        assert!(ids.iter().copied().eq(0..u64::from(items)), "{ids:?}");
        let refused = answers.iter().filter(|one| one["error"]["code"] == -32603);
        let done = answers.iter().filter(|one| one["result"].is_object());
        (done.count(), refused.count(), body.len())
    }

    #[tokio::test]
    async fn answers_that_exceed_the_share_of_the_connection_are_errors() {
        // A single connection gets a 17th of the budget.
        let share = 10 * SIZE;
        let (done, refused, bytes) = answered(17 * share, 30).await;
        assert!(done > 0 && refused > 0 && done + refused == 30, "{done}");
        assert!(bytes > share / 2 && bytes < share + 30 * 200, "{bytes}");
        let (done, refused, _) = answered(64 << 20, 30).await;
        assert_eq!((done, refused), (30, 0));
    }
}
