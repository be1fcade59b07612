//! The method `completion/complete`: suggestions for an argument of a prompt or a variable of a resource template.

use serde::Deserialize;

use super::{MethodAction, MethodScope, run_handler};
use crate::completion::Completer;
use crate::error::{Failure, FailureKind};
use crate::rpc::RpcError;

#[derive(Deserialize)]
struct CompletionParams {
    #[serde(rename = "ref")]
    subject: CompletionSubject,
    argument: CompletionArgument,
}

/// What the argument belongs to: a prompt or a resource template.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum CompletionSubject {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
struct CompletionArgument {
    name: String,
    value: String,
}

/// Suggests values for what the user has typed.
pub(super) fn complete(scope: &MethodScope<'_>) -> Result<MethodAction, RpcError> {
    let params: CompletionParams = scope.params()?;
    let inner = scope.dispatcher.app.inner();
    let completers = match &params.subject {
        CompletionSubject::Prompt { name } => {
            let prompt = inner.prompts.iter().find(|prompt| prompt.name == *name);
            prompt.map(|prompt| &prompt.completers)
        }
        CompletionSubject::Resource { uri } => {
            let mut templates = inner.registry.templates.iter();
            let template = templates.find(|template| template.pattern == *uri);
            template.map(|template| &template.completers)
        }
    };
    let completer = completers.and_then(|all| all.get(&params.argument.name));
    let (completer, typed) = (completer.cloned(), params.argument.value);
    let (app, caller_context) = (scope.dispatcher.app.clone(), scope.caller_context.clone());
    Ok(MethodAction::run(false, async move |_, _| {
        let caller = caller_context.caller.clone();
        let work = async {
            match completer {
                Some(completer) => match completer.suggest(typed, caller).await {
                    Err(Failure(FailureKind::NeedsInput(_))) => {
                        Err(Failure::refused("a completion cannot ask the user"))
                    }
                    suggested => suggested,
                },
                None => Ok(Completer::nothing()),
            }
        };
        run_handler(&app, &caller_context, None, work).await
    }))
}
