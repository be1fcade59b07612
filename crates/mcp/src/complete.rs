//! Suggestions for the arguments of prompts and the variables of resource templates.

use std::sync::Arc;

use serde_json::{Value, json};

/// At most this many suggestions travel, as the protocol rules.
const MOST: usize = 100;

/// Turns what the user has typed so far into suggestions.
#[derive(Clone)]
pub struct Completer(Arc<Suggest>);

type Suggest = dyn Fn(&str) -> Vec<String> + Send + Sync;

impl Completer {
    /// A completer from a function.
    pub fn new(suggest: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(suggest))
    }

    pub(crate) fn suggest(&self, typed: &str) -> Value {
        let mut values = (self.0)(typed);
        let total = values.len();
        values.truncate(MOST);
        json!({"completion": {"values": values, "total": total, "hasMore": total > MOST}})
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
        let count = |n: usize| Completer::new(move |_| vec!["x".to_owned(); n]).suggest("");
        assert_eq!(count(100)["completion"]["hasMore"], false);
        let more = count(101);
        assert_eq!(more["completion"]["values"].as_array().unwrap().len(), 100);
        assert_eq!(
            (&more["completion"]["total"], &more["completion"]["hasMore"]),
            (&json!(101), &json!(true))
        );
    }
}
