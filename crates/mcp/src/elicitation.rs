//! Elicitation: input that a call requests from the client before it can go on (2026-07-28 only).
//!
//! The server keeps nothing between the rounds. What it must remember travels in [`Elicitation::state`] through the
//! client, so it comes back as untrusted input: whoever sets it has to sign it and verify the signature.

use serde_json::{Map, Value, json};

/// One round of input requests, and the opaque state that must come back with the responses.
///
/// Return it with [`Failure::needs_input`](crate::Failure::needs_input). The client calls again with the responses,
/// which [`Context::response`](crate::Context::response) reads.
///
/// ```rust
/// use docent_mcp::{Answer, Context, Elicitation, Failure};
/// use serde_json::json;
///
/// async fn book(context: Context) -> Result<Answer<String>, Failure> {
///     match context.response("nights") {
///         Some(reply) => Ok(Answer::new(format!("Booked: {reply}"))),
///         None => {
///             let schema = json!({"type": "object", "properties": {"nights": {"type": "integer"}}});
///             let request = Elicitation::new().form("nights", "How many nights?", &schema);
///             Err(Failure::needs_input(request))
///         }
///     }
/// }
/// # let _ = book;
/// ```
#[derive(Debug, Clone, Default)]
pub struct Elicitation {
    requests: Map<String, Value>,
    state: Option<String>,
}

impl Elicitation {
    /// Creates a round without requests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a form for the user to fill in; `schema` is a flat JSON Schema object.
    #[must_use]
    pub fn form(self, key: &str, message: &str, schema: &Value) -> Self {
        let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
        self.request(key, "elicitation/create", &params)
    }

    /// Adds a sampling request: the host's model completes `prompt`.
    #[must_use]
    pub fn sample(self, key: &str, prompt: &str, max_tokens: u32) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        let params = json!({"messages": [message], "maxTokens": max_tokens});
        self.request(key, "sampling/createMessage", &params)
    }

    /// Adds a request for the roots, which are the folders that the client works in.
    #[must_use]
    pub fn roots(self, key: &str) -> Self {
        self.request(key, "roots/list", &json!({}))
    }

    /// Sets the opaque state that the client must return unchanged. Sign it, because the client can change it.
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
