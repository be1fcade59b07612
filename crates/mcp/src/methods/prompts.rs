//! The methods of prompts: the list, and one prompt with its arguments.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{MethodAction, MethodScope, run_handler};
use crate::protocol_version::shorten_for_message;
use crate::request_context::ContextParams;
use crate::rpc::RpcError;

/// Lists the prompts with their arguments.
pub(super) fn list(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    let prompts = scope.dispatcher.app.inner().prompts.iter();
    scope.list("prompts", prompts.map(|prompt| prompt.wire()))
}

/// Renders the messages of one prompt.
pub(super) fn get(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    #[derive(Deserialize)]
    struct PromptParams {
        name: String,
        #[serde(default)]
        arguments: Option<Map<String, Value>>,
    }
    let params: PromptParams = scope.params()?;
    let prompts = &scope.dispatcher.app.inner().prompts;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == params.name) else {
        let message = format!("there is no prompt `{}`", shorten_for_message(&params.name));
        return Err(RpcError::invalid_params(message));
    };
    let prompt = prompt.clone();
    let arguments = params.arguments.unwrap_or_default();
    let context_params = ContextParams::parse(&scope.request.params)?;
    let (app, caller_context) = (scope.dispatcher.app.clone(), scope.caller_context.clone());
    Ok(MethodAction::run(
        true,
        async move |cancel, notifications| {
            let context = caller_context.context(&app, context_params, cancel, notifications);
            let work = prompt.get(arguments, context);
            run_handler(&app, &caller_context, None, work).await
        },
    ))
}
