//! The `_meta` of a request: what a client adds to the parameters of any method.

use std::sync::OnceLock;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The `_meta` of the request, parsed lazily because most handlers never read it.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta {
    raw: Option<Box<RawValue>>,
    parsed: OnceLock<Map<String, Value>>,
}

impl RequestMeta {
    pub(crate) fn new(raw: Option<Box<RawValue>>) -> Self {
        Self {
            raw,
            parsed: OnceLock::new(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        let raw = self.raw.as_ref()?;
        self.parsed
            .get_or_init(|| serde_json::from_str(raw.get()).unwrap_or_default())
            .get(key)
    }
}
