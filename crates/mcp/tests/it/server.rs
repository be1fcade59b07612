//! Fixture: a small app on the kit, and a client that sends raw HTTP requests to its router without a socket.

use std::sync::Arc;

use axum::body::Body as HttpBody;
use docent_mcp::http::guard::RequestGuard;
use docent_mcp::http::{HttpOptions, router};
use docent_mcp::{
    Answer, App, Context, Failure, Prompt, Resource, ResourceBody, ResourceTemplate, Security,
    TemplateVars, Tool, ToolAnnotations, ToolDescriptor,
};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::ServiceExt;

pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
pub(crate) const MODERN: &str = "2026-07-28";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchArguments {
    query: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct SearchOutput {
    results: Vec<String>,
}

pub(crate) struct SearchStub;

impl Tool for SearchStub {
    type Input = SearchArguments;
    type Output = SearchOutput;
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::new(
            "search",
            "Search",
            "Use this to search.",
            ToolAnnotations::READ_ONLY,
        )
        .dual()
        .security([Security::NoAuth])
    }
    async fn call(
        &self,
        input: SearchArguments,
        cx: Context,
    ) -> Result<Answer<SearchOutput>, Failure> {
        match input.query.as_str() {
            "panic" => panic!("a tool went wrong"),
            "mistake" => Err(Failure::caller("nobody knows that").hint("ask something else")),
            "broken" => Err(std::io::Error::other("secret cause").into()),
            query => {
                cx.progress(1.0, None, None).await;
                Ok(Answer::new(SearchOutput {
                    results: vec![query.to_owned()],
                }))
            }
        }
    }
    fn prose(&self, output: &SearchOutput) -> Option<String> {
        Some(format!("Title: {}", output.results.join(", ")))
    }
}

/// Tool that blocks until it is notified when its query is `wait`, and then returns the query.
pub(crate) struct SlowTool(pub(crate) Arc<Notify>);

impl Tool for SlowTool {
    type Input = SearchArguments;
    type Output = SearchOutput;
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::new(
            "slow",
            "Slow",
            "Use this to wait.",
            ToolAnnotations::READ_ONLY,
        )
    }
    async fn call(
        &self,
        input: SearchArguments,
        _: Context,
    ) -> Result<Answer<SearchOutput>, Failure> {
        if input.query == "wait" {
            self.0.notified().await;
        }
        Ok(Answer::new(SearchOutput {
            results: vec![input.query],
        }))
    }
}

pub(crate) fn app() -> App {
    app_with(Arc::default())
}

pub(crate) fn app_with(gate: Arc<Notify>) -> App {
    builder(gate).build().unwrap()
}

pub(crate) fn builder(gate: Arc<Notify>) -> docent_mcp::AppBuilder {
    App::builder("test-app", "1.2.3")
        .title("Test app")
        .instructions("Search first.")
        .tool(SearchStub)
        .tool(SlowTool(gate))
        .resource(Resource::fixed(
            "test://page",
            "page",
            "text/plain",
            ResourceBody::Text("A page.".to_owned()),
        ))
        .resource_template(ResourceTemplate::new(
            "test://panic/{id}",
            "panic",
            "text/plain",
            |_: TemplateVars, _: Context| async { panic!("a resource went wrong") },
        ))
        .prompt(Prompt::new(
            "panic",
            "Panic",
            "Panics.",
            |_, _: Context| async { panic!("a prompt went wrong") },
        ))
}

pub(crate) struct RpcReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl RpcReply {
    pub(crate) fn kind(&self) -> &str {
        self.headers
            .get("content-type")
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The JSON-RPC messages of the response, from a JSON body or from an event stream.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.kind() == "text/event-stream" {
            let data = self
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("data: "));
            return data
                .map(|text| serde_json::from_str(text).unwrap())
                .collect();
        }
        vec![serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))]
    }

    pub(crate) fn json(&self) -> Value {
        self.messages()
            .pop()
            .unwrap_or_else(|| panic!("no message in {:?}", self.text))
    }

    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_default()
    }
}

#[derive(Clone)]
pub(crate) struct RouterServer(axum::Router);

impl RouterServer {
    pub(crate) fn new(app: App) -> Self {
        Self::with(app, HttpOptions::default())
    }

    pub(crate) fn with(app: App, options: HttpOptions) -> Self {
        let guard = RequestGuard::new(&["localhost"], &["https://chatgpt.com"]).unwrap();
        Self(router(app, options, guard))
    }

    pub(crate) async fn open(&self, request: Request<HttpBody>) -> http::Response<HttpBody> {
        self.0.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<HttpBody>) -> RpcReply {
        let (parts, body) = self.open(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        RpcReply {
            status: parts.status,
            headers: parts.headers,
            text,
        }
    }

    /// Sends a POST of JSON. The given headers replace the defaults, and an empty value removes a header.
    pub(crate) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<String>,
    ) -> RpcReply {
        let mut request = Request::post(path).header("host", "localhost");
        for (name, value) in [
            ("content-type", "application/json"),
            ("accept", "application/json"),
        ] {
            if !headers
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name))
            {
                request = request.header(name, value);
            }
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        self.send(request.body(HttpBody::from(body.into())).unwrap())
            .await
    }

    /// Sends a request in the form that its protocol revision requires, with headers and metadata.
    pub(crate) async fn ask(&self, revision: &str, method: &str, params: Value) -> RpcReply {
        let (headers, body) = shaped(revision, method, params);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
        self.post("/mcp", &headers, body.to_string()).await
    }

    pub(crate) async fn search(&self, revision: &str, query: &str) -> RpcReply {
        self.ask(
            revision,
            "tools/call",
            json!({"name": "search", "arguments": {"query": query}}),
        )
        .await
    }
}

pub(crate) fn shaped(
    revision: &str,
    method: &str,
    mut params: Value,
) -> (Vec<(&'static str, String)>, Value) {
    let mut headers = vec![("mcp-protocol-version", revision.to_owned())];
    if revision == MODERN {
        headers.push(("mcp-method", method.to_owned()));
        let name = params
            .get("name")
            .or_else(|| params.get("uri"))
            .and_then(Value::as_str);
        headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = revision.into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    (
        headers,
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
    )
}
