//! The methods of tools: the list, and the call.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::{MethodAction, MethodScope};
use crate::auth::Caller;
use crate::call::ToolCall;
use crate::call_observer::{CallRecorder, CallStatus};
use crate::descriptor;
use crate::dispatcher::RequestDispatcher;
use crate::error::BuildError;
use crate::result::{SERVER_INFO, internal};
use crate::rpc::RpcError;

/// Lists the tools. The text is assembled by hand, because the list is rendered once and is by far the most of it.
pub(super) fn list(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    scope.refuse_cursor()?;
    let (dispatcher, caller_context) = (scope.dispatcher, scope.caller_context);
    let tools = tools_for(dispatcher, &caller_context.caller).map_err(|error| internal(&error))?;
    if !caller_context.revision.is_modern() {
        return Ok(MethodAction::Result(format!(r#"{{"tools":{tools}}}"#)));
    }
    let inner = dispatcher.app.inner();
    Ok(MethodAction::Result(format!(
        r#"{{"resultType":"complete","tools":{tools},"ttlMs":{},"cacheScope":"{}","_meta":{{"{SERVER_INFO}":{}}}}}"#,
        inner.cache.list_ms,
        caller_context.cache_scope(),
        inner.identity.wire
    )))
}

/// Returns the tools as a JSON array, each with its sign-in methods. An anonymous caller sees all of them; a
/// signed-in caller sees only those it may call.
fn tools_for(dispatcher: &RequestDispatcher, caller: &Caller) -> Result<Arc<str>, BuildError> {
    let list = dispatcher.app.tool_list()?;
    let Some(auth) = &dispatcher.auth else {
        return Ok(list);
    };
    let mut tools: Vec<Value> = serde_json::from_str(&list).unwrap_or_default();
    tools.retain_mut(|tool| {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        if !caller.is_anonymous() && dispatcher.missing_scope(caller, name).is_some() {
            return false;
        }
        let own = dispatcher.app.tool(name);
        let own = own.and_then(|entry| entry.security.as_deref());
        descriptor::add_security_schemes(tool, &auth.security_schemes(own));
        true
    });
    Ok(Value::Array(tools).to_string().into())
}

/// Calls a tool, within the rate limit and the scopes of its caller.
pub(super) fn call(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    let (dispatcher, caller_context) = (scope.dispatcher, scope.caller_context);
    let app = &dispatcher.app;
    let call = ToolCall::parse(&scope.request.params)?;
    let caller = &caller_context.caller;
    let taken = dispatcher
        .call_rate_limiter
        .take(caller, || call.subject(), Instant::now());
    if let Err(wait) = taken {
        record_status(call.record(app, caller_context), CallStatus::TooSoon);
        return ToolCall::rate_limited(app, caller_context, wait).map(MethodAction::Result);
    }
    if let Some(missing) = &caller_context.missing_scope {
        record_status(call.record(app, caller_context), CallStatus::Forbidden);
        // The challenge stands in the result, which is the form that ChatGPT reacts to.
        let auth = dispatcher.auth.as_ref();
        let challenge = auth.map(|auth| auth.in_band_challenge(missing));
        return ToolCall::forbidden(app, caller_context, challenge.unwrap_or_default())
            .map(MethodAction::Result);
    }
    let streams = call.wants_progress() || app.tool(&call.name).is_some_and(|tool| tool.streams);
    let (app, caller_context) = (app.clone(), caller_context.clone());
    Ok(MethodAction::run(
        streams,
        async move |cancel, notifications| {
            call.run(&app, &caller_context, cancel, notifications).await
        },
    ))
}

/// Records the status of a call that ended before it began.
pub(crate) fn record_status(recorder: Option<CallRecorder>, status: CallStatus) {
    if let Some(mut recorder) = recorder {
        recorder.outcome = status;
    }
}
