//! Questions that a call puts to the user before it can go on (2026-07-28 only).
//!
//! The server keeps nothing between the rounds: what it must remember travels in the `state`,
//! which comes back from the client and is therefore hostile until [`Ask::state`]'s seal is
//! checked by whoever made it.

use serde_json::{Map, Value, json};

/// One round of questions, and the state that must come back with the answers.
#[derive(Debug, Clone, Default)]
pub struct Elicitation {
    requests: Map<String, Value>,
    state: Option<String>,
}

impl Elicitation {
    /// A round without questions yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the user to fill in a form; `schema` is a flat JSON Schema object.
    #[must_use]
    pub fn form(self, key: &str, message: &str, schema: &Value) -> Self {
        let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
        self.request(key, "elicitation/create", &params)
    }

    /// Asks the host's model to complete a text.
    #[must_use]
    pub fn sample(self, key: &str, prompt: &str, max_tokens: u32) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        let params = json!({"messages": [message], "maxTokens": max_tokens});
        self.request(key, "sampling/createMessage", &params)
    }

    /// Asks which folders the client works in.
    #[must_use]
    pub fn roots(self, key: &str) -> Self {
        self.request(key, "roots/list", &json!({}))
    }

    /// What the client must send back unchanged with its answers.
    #[must_use]
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    fn request(mut self, key: &str, method: &str, params: &Value) -> Self {
        self.requests
            .insert(key.to_owned(), json!({"method": method, "params": params}));
        self
    }

    pub(crate) fn into_result(self) -> Value {
        let mut result = Map::new();
        result.insert("resultType".to_owned(), "input_required".into());
        if !self.requests.is_empty() {
            result.insert("inputRequests".to_owned(), Value::Object(self.requests));
        }
        if let Some(state) = self.state {
            result.insert("requestState".to_owned(), state.into());
        }
        Value::Object(result)
    }
}
