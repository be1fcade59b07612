//! For every rule, a server with the one defect that the rule must find. A new rule needs an entry here; the test over
//! the rule table fails without it.

mod auth;
mod protocol;
mod retrieval;
mod tools;
mod widgets;

pub(crate) use auth::{asking, signing_in};
pub(crate) use retrieval::opening;
pub(crate) use tools::known_tools;
pub(crate) use widgets::{browsed, greeting, mounted};

use std::sync::Arc;
use std::time::Duration;

use docent_check::CheckOptions;
use serde_json::Value;

use crate::good::{Kind, answer};
use crate::server::{CannedReply, Patience, ReceivedCall, Server, serve_at};

type Defect = Arc<dyn Fn(&str, &ReceivedCall, CannedReply) -> CannedReply + Send + Sync>;

/// The reference server with a defect in its replies, and the options to check it with.
#[derive(Clone)]
pub(crate) struct Broken {
    pub kind: Kind,
    pub options: CheckOptions,
    pub patience: Patience,
    defect: Defect,
}

impl Broken {
    /// Applies `defect` to every reply.
    pub(crate) fn reply(
        defect: impl Fn(&str, &ReceivedCall, CannedReply) -> CannedReply + Send + Sync + 'static,
    ) -> Self {
        Self {
            kind: Kind::default(),
            options: CheckOptions {
                profiles: docent_check::CheckProfile::ALL.to_vec(),
                call_timeout: Duration::from_secs(20),
                slow_wait: Duration::from_secs(20),
                ..CheckOptions::default()
            },
            patience: Patience {
                headers: Some(Duration::from_millis(100)),
            },
            defect: Arc::new(defect),
        }
    }

    /// The reference server without any defect.
    pub(crate) fn nothing() -> Self {
        Self::reply(|_, _, reply| reply)
    }

    /// Changes the results of one method.
    pub(crate) fn result(
        method: &'static str,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        Self::reply(move |_, call, reply| {
            if call.method() != method {
                return reply;
            }
            edited(reply, |message| {
                if let Some(result) = message.get_mut("result") {
                    change(result);
                }
            })
        })
    }

    /// Changes the list of tools.
    pub(crate) fn tools(change: impl Fn(&mut Vec<Value>) + Send + Sync + 'static) -> Self {
        Self::result("tools/list", move |result| {
            if let Some(tools) = result["tools"].as_array_mut() {
                change(tools);
            }
        })
    }

    /// Changes the first tool, `search`.
    pub(crate) fn tool(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self::tools(move |tools| change(&mut tools[0]))
    }

    /// Changes the results of one tool.
    pub(crate) fn call(
        name: &'static str,
        change: impl Fn(&Value, &mut Value) + Send + Sync + 'static,
    ) -> Self {
        Self::reply(move |_, call, reply| {
            let params = &call.body["params"];
            if call.method() != "tools/call" || params["name"] != name {
                return reply;
            }
            let arguments = params["arguments"].clone();
            edited(reply, |message| {
                if let Some(result) = message.get_mut("result") {
                    change(&arguments, result);
                }
            })
        })
    }

    /// Changes the payload of one tool, in the text item and in `structuredContent`.
    pub(crate) fn payload(
        name: &'static str,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        Self::call(name, move |_, result| {
            if let Some(payload) = result.get_mut("structuredContent") {
                change(payload);
                result["content"][0]["text"] = Value::from(payload.to_string());
            }
        })
    }

    /// Adds sessions for the legacy revisions.
    pub(crate) fn sessions(mut self) -> Self {
        self.kind.sessions = true;
        self
    }

    /// Requires sign-in; the check gets no token.
    pub(crate) fn sign_in(mut self) -> Self {
        self.kind.sign_in = true;
        self
    }

    /// Restricts the server to the legacy revisions.
    pub(crate) fn legacy_only(mut self) -> Self {
        self.kind.legacy_only = true;
        self
    }

    /// Changes the options of the check.
    pub(crate) fn checked(mut self, change: impl Fn(&mut CheckOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub(crate) fn serve(&self) -> Server {
        let Self { kind, defect, .. } = self.clone();
        serve_at("/mcp", self.patience, move |origin, call| {
            defect(origin, call, answer(kind, origin, call))
        })
    }
}

/// Changes the JSON-RPC message of a reply, whether it is a JSON body or an event.
pub(crate) fn edited(mut reply: CannedReply, change: impl Fn(&mut Value)) -> CannedReply {
    let text = match reply.body.split_once("data: ") {
        Some((_, data)) => data.trim(),
        None => reply.body.as_str(),
    };
    let Ok(mut message @ Value::Object(_)) = serde_json::from_str::<Value>(text) else {
        return reply;
    };
    change(&mut message);
    // Indexing a missing member inserts null, so this removes it again.
    for key in ["result", "error"] {
        if let Some(members) = message
            .as_object_mut()
            .filter(|members| members.get(key) == Some(&Value::Null))
        {
            members.remove(key);
        }
    }
    reply.body = if reply.body.contains("data: ") {
        format!("data: {message}\n\n")
    } else {
        message.to_string()
    };
    reply
}

/// A JSON-RPC response with this result.
pub(crate) fn result_of(call: &ReceivedCall, result: &Value) -> CannedReply {
    CannedReply::json(
        &serde_json::json!({"jsonrpc": "2.0", "id": call.body["id"], "result": result}),
    )
}

/// The server that violates this rule; `None` for a rule without one.
pub(crate) fn broken(rule: &str) -> Option<Broken> {
    let (group, name) = rule.split_once('/')?;
    match group {
        "lifecycle" => protocol::lifecycle(name),
        "transport" => protocol::transport(name),
        "tools" => tools::tools(name),
        "baseline" => tools::baseline(name),
        "search-fetch" => retrieval::search_fetch(name),
        "limits" => retrieval::limits(name),
        "auth" => auth::auth(name),
        "widgets" => widgets::widgets(name),
        "security" => protocol::security(name),
        _ => None,
    }
}
