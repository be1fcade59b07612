//! What a server said into what is wrong with it: one list of rules.
//!
//! To add a rule: write it in the file of its subject, and name it in [`RULES`].

mod search_fetch;
mod tools;

use serde_json::Value;

use crate::report::{Finding, shown};

/// Every rule, in the order of the report.
pub(crate) const RULES: &[&dyn Rule] = &[&search_fetch::Signatures, &tools::HintsExplicit];

/// One demand of hosts.
pub(crate) trait Rule: Sync {
    /// Its name, `subject/demand`.
    fn id(&self) -> &'static str;
    /// Everything that goes against it; nothing when the server is in order.
    fn check(&self, server: &Server) -> Vec<Finding>;
}

/// What a server said about itself.
pub(crate) struct Server {
    /// Its tools as they came.
    pub tools: Vec<Value>,
}

/// A tool's name as it may be printed.
fn name(tool: &Value) -> String {
    tool.get("name")
        .and_then(Value::as_str)
        .map_or_else(|| "(no name)".to_owned(), shown)
}
