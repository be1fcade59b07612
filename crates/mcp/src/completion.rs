//! Suggestions for the arguments of prompts and the variables of resource templates.

use std::future::{Future, ready};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::auth::Caller;
use crate::error::Failure;

/// At most this many suggestions travel, as the protocol rules.
const MOST: usize = 100;

/// Turns what the user has typed so far into suggestions.
#[derive(Clone)]
pub struct Completer(Arc<SuggestFn>);

type SuggestFn =
    dyn Fn(String, Caller) -> BoxFuture<'static, Result<Vec<String>, Failure>> + Send + Sync;

impl Completer {
    /// A completer that suggests the same to everybody.
    pub fn new(suggest: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self::for_caller(move |typed, _| ready(Ok(suggest(&typed))))
    }

    /// A completer that knows for whom it suggests.
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
        values.truncate(MOST);
        Ok(json!({"completion": {"values": values, "total": total, "hasMore": total > MOST}}))
    }

    /// The answer when nothing is known about what is being completed.
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
