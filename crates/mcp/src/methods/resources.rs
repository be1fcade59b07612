//! The methods of resources: the lists, reading, and the subscriptions of older revisions.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::{MethodAction, MethodScope, run_handler};
use crate::app::App;
use crate::call::CallerContext;
use crate::call_observer::{CallKind, CallStatus, ObservedCall};
use crate::error::Failure;
use crate::request_context::{Context, ContextParams};
use crate::resource_registry::ResourceMatch;
use crate::rpc::{INTERNAL_ERROR, RpcError};

/// The parameters that name one resource.
#[derive(Deserialize)]
struct ResourceParams {
    uri: String,
}

/// Lists the resources, with those of widgets.
pub(super) fn list(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    let resources = scope.dispatcher.app.inner().registry.listed_resources();
    scope.list("resources", resources.map(|resource| resource.wire()))
}

/// Lists the resource templates with their URI patterns.
pub(super) fn list_templates(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    let templates = scope.dispatcher.app.inner().registry.templates.iter();
    scope.list(
        "resourceTemplates",
        templates.map(|template| template.wire()),
    )
}

/// Accepts a subscription of an older revision and forgets it: no connection outlives its request, so nothing could
/// be sent. The capability is not announced, but some clients subscribe anyway.
pub(super) fn subscribe(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    scope.params::<ResourceParams>()?;
    Ok(MethodAction::Result("{}".to_owned()))
}

/// Reads the contents of one resource.
pub(super) fn read(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    let uri = scope.params::<ResourceParams>()?.uri;
    let params = ContextParams::parse(&scope.request.params)?;
    let (app, caller_context) = (scope.dispatcher.app.clone(), scope.caller_context.clone());
    Ok(MethodAction::run(
        true,
        async move |cancel, notifications| {
            let call = ObservedCall {
                kind: CallKind::Resource,
                name: "resources/read",
                arguments: to_raw_value(&json!({"uri": uri})).ok(),
                meta: params.meta.clone(),
            };
            let mut recorder = caller_context.record(&app, call);
            let context = caller_context.context(&app, params, cancel, notifications);
            let answer = read_resource(&app, &caller_context, &uri, context).await;
            if let Some(recorder) = &mut recorder {
                recorder.outcome = match &answer {
                    Ok(_) => CallStatus::Done,
                    Err(error) if error.code == INTERNAL_ERROR => CallStatus::Failed,
                    Err(_) => CallStatus::Mistaken,
                };
                recorder.touched = answer.iter().map(|_| uri.clone()).collect();
            }
            answer
        },
    ))
}

async fn read_resource(
    app: &App,
    caller_context: &CallerContext,
    uri: &str,
    context: Context,
) -> Result<String, RpcError> {
    let inner = app.inner();
    let work = async {
        match inner.registry.find(uri) {
            Some(ResourceMatch::One(resource)) => resource.read(uri, context).await,
            Some(ResourceMatch::OfPattern(template, vars)) => {
                template.read(uri, vars, context).await
            }
            None => Err(Failure::not_found(uri)),
        }
    };
    run_handler(app, caller_context, Some(inner.cache.list_ms), work).await
}
