//! Completion: suggested values for prompt arguments and for the variables of resource templates
//! (`completion/complete`).

use std::future::{Future, ready};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::auth::Caller;
use crate::error::Failure;

/// Maximum number of suggestions in one response, as the protocol requires.
const MAX_SUGGESTIONS: usize = 100;

/// Completes what the user has typed so far. Attach it with [`Prompt::complete`](crate::Prompt::complete) or
/// [`ResourceTemplate::complete`](crate::ResourceTemplate::complete).
///
/// ```rust
/// use docent_mcp::{Completer, Prompt};
///
/// let harbours = Completer::new(|typed| {
///     let known = ["Port Ellin", "Port Sand", "Gull Rock"];
///     let matching = known.iter().filter(|name| name.starts_with(typed));
///     matching.map(|name| (*name).to_owned()).collect()
/// });
/// let prompt = Prompt::new("tides", "Tides", "Asks for the tides.", |_, _| async { Ok(Vec::new()) })
///     .required("harbour", "Which harbour.")
///     .complete("harbour", harbours);
/// ```
#[derive(Clone)]
pub struct Completer(Arc<SuggestFn>);

type SuggestFn =
    dyn Fn(String, Caller) -> BoxFuture<'static, Result<Vec<String>, Failure>> + Send + Sync;

impl Completer {
    /// Creates a completer whose suggestions are the same for every caller.
    pub fn new(suggest: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self::for_caller(move |typed, _| ready(Ok(suggest(&typed))))
    }

    /// Creates an asynchronous completer that gets the verified caller, for suggestions that depend on permissions.
    pub fn for_caller<F, R>(suggest: F) -> Self
    where
        F: Fn(String, Caller) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<String>, Failure>> + Send + 'static,
    {
        Self(Arc::new(move |typed, caller| {
            suggest(typed, caller).boxed()
        }))
    }

    pub(crate) async fn suggest(&self, typed: String, caller: Caller) -> Result<Value, Failure> {
        let mut values = (self.0)(typed, caller).await?;
        let total = values.len();
        values.truncate(MAX_SUGGESTIONS);
        Ok(
            json!({"completion": {"values": values, "total": total, "hasMore": total > MAX_SUGGESTIONS}}),
        )
    }

    /// The response when no completer is registered for the argument.
    pub(crate) fn nothing() -> Value {
        json!({"completion": {"values": [], "total": 0, "hasMore": false}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_hundred_travel() {
        let count = |n: usize| {
            let completer = Completer::new(move |_| vec!["x".to_owned(); n]);
            let suggested = completer.suggest(String::new(), Caller::anonymous());
            suggested.now_or_never().unwrap().unwrap()
        };
        assert_eq!(count(100)["completion"]["hasMore"], false);
        let more = count(101);
        assert_eq!(more["completion"]["values"].as_array().unwrap().len(), 100);
        assert_eq!(
            (&more["completion"]["total"], &more["completion"]["hasMore"]),
            (&json!(101), &json!(true))
        );
    }
}
