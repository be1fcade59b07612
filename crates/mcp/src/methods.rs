//! The methods of MCP: one table from the name of a method to its handler, for every revision and transport.
//!
//! A handler checks the parameters and either answers at once or returns the work to run. It does not know the
//! transport, and its result is serialized once.

mod completion;
mod handshake;
mod prompts;
mod resources;
mod subscriptions;
mod tools;

pub(crate) use tools::record_status;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::call::{CallerContext, run_guarded};
use crate::dispatcher::RequestDispatcher;
use crate::error::{Failure, FailureKind};
use crate::listeners::ListenerPermit;
use crate::protocol_version::shorten_for_message;
use crate::request_context::NotificationChannel;
use crate::result::{RESOURCE_NOT_FOUND, SERVER_INFO, input_required, rpc_error};
use crate::revision::Revision;
use crate::rpc::{INVALID_PARAMS, RpcError};
use crate::rpc_message::RpcRequest;

/// A method of the protocol, with the revisions that have it.
struct Method {
    name: &'static str,
    era: Era,
    handler: fn(&MethodScope<'_>) -> Result<MethodAction, RpcError>,
}

/// The revisions that have a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Every,
    /// Revisions before 2026-07-28, which begin with a handshake.
    Legacy,
    /// Revisions since 2026-07-28, which are stateless.
    Modern,
}

impl Era {
    fn has(self, revision: Revision) -> bool {
        match self {
            Self::Every => true,
            Self::Legacy => !revision.is_modern(),
            Self::Modern => revision.is_modern(),
        }
    }
}

/// Creates a row of the table.
const fn method(
    name: &'static str,
    era: Era,
    handler: fn(&MethodScope<'_>) -> Result<MethodAction, RpcError>,
) -> Method {
    Method { name, era, handler }
}

/// Every method that a client may call.
const METHODS: [Method; 15] = [
    method("tools/call", Era::Every, tools::call),
    method("tools/list", Era::Every, tools::list),
    method("resources/read", Era::Every, resources::read),
    method("resources/list", Era::Every, resources::list),
    method(
        "resources/templates/list",
        Era::Every,
        resources::list_templates,
    ),
    method("resources/subscribe", Era::Legacy, resources::subscribe),
    method("resources/unsubscribe", Era::Legacy, resources::subscribe),
    method("prompts/get", Era::Every, prompts::get),
    method("prompts/list", Era::Every, prompts::list),
    method("completion/complete", Era::Every, completion::complete),
    method("subscriptions/listen", Era::Modern, subscriptions::listen),
    method("initialize", Era::Every, handshake::initialize),
    method("server/discover", Era::Every, handshake::discover),
    method("ping", Era::Legacy, handshake::ping),
    method("logging/setLevel", Era::Legacy, handshake::set_level),
];

/// What a handler knows about the request it answers.
pub(crate) struct MethodScope<'a> {
    pub(crate) dispatcher: &'a RequestDispatcher,
    pub(crate) request: &'a RpcRequest<'a>,
    pub(crate) caller_context: &'a CallerContext,
}

/// What a method does with a request.
pub(crate) enum MethodAction {
    /// The result is known at once, as JSON.
    Result(String),
    /// Code of the app has to run.
    Run(MethodWork),
}

/// The work of a request. It outlives the message buffer, so it owns its parameters.
pub(crate) struct MethodWork {
    pub(crate) run: RunMethod,
    /// Whether it may send messages before its response, which then needs a stream.
    pub(crate) streams: bool,
    /// The permit of a listener, which is no work and may stay open for hours.
    pub(crate) listener: Option<ListenerPermit>,
}

type RunMethod = Box<
    dyn FnOnce(
            CancellationToken,
            Option<NotificationChannel>,
        ) -> BoxFuture<'static, Result<String, RpcError>>
        + Send,
>;

impl MethodAction {
    /// Work that ends with its response.
    fn run<R, F>(streams: bool, run: R) -> Self
    where
        R: FnOnce(CancellationToken, Option<NotificationChannel>) -> F + Send + 'static,
        F: Future<Output = Result<String, RpcError>> + Send + 'static,
    {
        Self::Run(MethodWork {
            run: Box::new(move |cancel, notifications| run(cancel, notifications).boxed()),
            streams,
            listener: None,
        })
    }

    /// Makes this a listener, which waits for changes and may stay open for hours.
    fn holding(mut self, permit: ListenerPermit) -> Self {
        if let Self::Run(work) = &mut self {
            work.listener = Some(permit);
        }
        self
    }
}

/// Finds the handler of a method and runs it.
pub(crate) fn handle(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    let revision = scope.caller_context.revision;
    let named = |method: &&Method| method.name == scope.request.method;
    match METHODS.iter().find(named) {
        Some(method) if method.era.has(revision) => (method.handler)(scope),
        Some(method) => Err(RpcError::method_not_found(format!(
            "revision {revision} has no method `{}`",
            method.name
        ))),
        None => Err(RpcError::method_not_found(format!(
            "there is no method `{}`",
            shorten_for_message(&scope.request.method)
        ))),
    }
}

impl<'a> MethodScope<'a> {
    /// Parses the parameters, which are an object or absent.
    fn params<T: Deserialize<'a>>(&self) -> Result<T, RpcError> {
        let raw = self.request.raw_params.map_or("{}", RawValue::get);
        serde_json::from_str(raw).map_err(|_| {
            let method = &self.request.method;
            RpcError::invalid_params(format!("the parameters of `{method}` do not fit"))
        })
    }

    /// Refuses a cursor, because every list has one page.
    fn refuse_cursor(&self) -> Result<(), RpcError> {
        #[derive(Deserialize)]
        struct PageParams {
            cursor: Option<serde::de::IgnoredAny>,
        }
        // Most requests have no cursor; a short search is cheaper than parsing their metadata.
        if !self.request.raw.contains("\"cursor\"") || self.params::<PageParams>()?.cursor.is_none()
        {
            return Ok(());
        }
        Err(RpcError::invalid_params(
            "this list has one page; call it without a `cursor`",
        ))
    }

    /// Renders a list, which always has one page.
    fn list(
        &self,
        key: &str,
        items: impl Iterator<Item = Value>,
    ) -> Result<MethodAction, RpcError> {
        self.refuse_cursor()?;
        let items: Vec<Value> = items.collect();
        let list_ms = self.dispatcher.app.inner().cache.list_ms;
        let (app, caller_context) = (&self.dispatcher.app, self.caller_context);
        let list = completed(app, caller_context, json!({key: items}), Some(list_ms));
        Ok(MethodAction::Result(list))
    }
}

/// Renders a result, with the members of [`add_modern_members`].
fn completed(
    app: &App,
    caller_context: &CallerContext,
    mut result: Value,
    ttl_ms: Option<u64>,
) -> String {
    if let Some(object) = result.as_object_mut() {
        add_modern_members(app, caller_context, object, ttl_ms);
    }
    result.to_string()
}

/// Adds the members that 2026-07-28 requires of a result: its type and the server, and how long it may be cached.
fn add_modern_members(
    app: &App,
    caller_context: &CallerContext,
    result: &mut Map<String, Value>,
    ttl_ms: Option<u64>,
) {
    if !caller_context.revision.is_modern() {
        return;
    }
    result.insert("resultType".to_owned(), "complete".into());
    let server = &app.inner().identity.wire;
    result.insert("_meta".to_owned(), json!({SERVER_INFO: server}));
    if let Some(ttl_ms) = ttl_ms {
        result.insert("ttlMs".to_owned(), ttl_ms.into());
        result.insert("cacheScope".to_owned(), caller_context.cache_scope().into());
    }
}

/// Runs a handler of the app for a prompt, a resource or a completion.
async fn run_handler(
    app: &App,
    caller_context: &CallerContext,
    ttl_ms: Option<u64>,
    work: impl Future<Output = Result<Value, Failure>>,
) -> Result<String, RpcError> {
    let modern = caller_context.revision.is_modern();
    match run_guarded(caller_context.handler_timeout, work).await? {
        Ok(result) => Ok(completed(app, caller_context, result, ttl_ms)),
        Err(Failure(FailureKind::NeedsInput(request))) => {
            input_required(caller_context.revision, *request)
        }
        Err(failure) => {
            let mut error = rpc_error(failure);
            if modern && error.code == RESOURCE_NOT_FOUND {
                error.code = INVALID_PARAMS;
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_one_row() {
        for (place, method) in METHODS.iter().enumerate() {
            let first = METHODS.iter().position(|other| other.name == method.name);
            assert_eq!(first, Some(place), "{}", method.name);
        }
    }

    #[test]
    fn methods_of_a_handshake_and_of_subscriptions_belong_to_their_revisions() {
        let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        assert!(Era::Every.has(old) && Era::Every.has(new));
        assert!(Era::Legacy.has(old) && !Era::Legacy.has(new));
        assert!(!Era::Modern.has(old) && Era::Modern.has(new));
    }
}
