//! Call observers: each call is reported exactly once, with its outcome, however it ends.

use std::sync::{Arc, Mutex};

use docent_mcp::http::HttpOptions;
use docent_mcp::http::limits::HttpLimits;
use docent_mcp::{
    Answer, App, Auth, AuthRequirement, CallKind, CallObserver, CallRecord, CallStatus, Context,
    Failure, Issuer, LocalKeys, MAX_TOUCHED, Tool, ToolAnnotations, ToolDescriptor,
};
use serde_json::{Value, json};

use crate::server::{MODERN, RouterServer};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EndingInput {
    way: String,
}

/// Tool that ends in the way its input names: success, tool error, panic, or never.
struct EndingTool;

impl Tool for EndingTool {
    type Input = EndingInput;
    type Output = Value;
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::new(
            "ending",
            "Ending",
            "Use this to test.",
            ToolAnnotations::READ_ONLY,
        )
    }
    async fn call(&self, input: EndingInput, cx: Context) -> Result<Answer<Value>, Failure> {
        match input.way.as_str() {
            "well" => {
                let touched_ids = cx.touched((0..=MAX_TOUCHED).map(|n| n.to_string()));
                Ok(Answer::new(json!({})).touched(touched_ids))
            }
            "mistaken" => Err(Failure::caller("no such way")),
            "panic" => panic!("asked to"),
            _ => std::future::pending().await,
        }
    }
}

/// One recorded call: tool, outcome, number of touched documents, client name and trace context.
type RecordedCall = (String, CallStatus, usize, Option<String>, Option<String>);

#[derive(Default)]
struct RecordingObserver(Mutex<Vec<RecordedCall>>);

impl CallObserver for RecordingObserver {
    fn on_call(&self, call: &CallRecord<'_>) {
        assert!(call.arguments.starts_with('{') && call.caller.is_anonymous());
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let is_read = call.tool == "resources/read";
        assert_eq!(call.what == CallKind::Resource, is_read);
        self.0.lock().unwrap().push((
            call.tool.to_owned(),
            call.outcome,
            call.touched.len(),
            owned(call.client),
            call.trace.map(|trace| trace.to_string()),
        ));
    }
}

fn observed(observer: &Arc<RecordingObserver>, calls_per_minute: u32) -> RouterServer {
    let app = App::builder("a", "1")
        .tool(EndingTool)
        .observer(observer.clone());
    let options = HttpOptions {
        limits: HttpLimits {
            calls_per_minute,
            ..HttpLimits::default()
        },
        ..HttpOptions::default()
    };
    RouterServer::with(app.build().unwrap(), options)
}

#[tokio::test]
async fn every_call_is_reported_once() {
    let observer = Arc::new(RecordingObserver::default());
    let server = observed(&observer, 0);
    let call = |tool: &str, way: &str| {
        json!({"name": tool, "arguments": {"way": way}, "_meta": {
            "openai/subject": "v1/somebody",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "io.modelcontextprotocol/clientInfo": {"name": "a host", "version": "1"},
        }})
    };
    let ask = |tool: &'static str, way: &'static str| {
        let (server, params) = (&server, call(tool, way));
        async move { server.ask(MODERN, "tools/call", params).await }
    };
    for (tool, way, outcome, touched) in [
        ("ending", "well", CallStatus::Done, MAX_TOUCHED),
        ("ending", "mistaken", CallStatus::Mistaken, 0),
        ("ending", "panic", CallStatus::Failed, 0),
        ("absent", "well", CallStatus::Mistaken, 0),
    ] {
        ask(tool, way).await;
        let recorded = std::mem::take(&mut *observer.0.lock().unwrap());
        let [(name, ended, touched_ids, client, trace)] = recorded.as_slice() else {
            panic!("{way}: {recorded:?}");
        };
        assert_eq!(
            (name.as_str(), *ended, *touched_ids),
            (tool, outcome, touched)
        );
        assert_eq!(client.as_deref(), Some("a host"));
        assert!(trace.as_deref().unwrap().starts_with("00-0af7"));
    }
    {
        let mut left = Box::pin(ask("ending", "never"));
        assert!(futures::poll!(left.as_mut()).is_pending());
    }
    let rate_limited = observed(&observer, 1);
    for _ in 0..2 {
        rate_limited
            .ask(MODERN, "tools/call", call("ending", "well"))
            .await;
    }
    let recorded = observer.0.lock().unwrap();
    let ended: Vec<_> = recorded.iter().map(|(_, ended, ..)| *ended).collect();
    assert_eq!(
        ended,
        [CallStatus::Abandoned, CallStatus::Done, CallStatus::TooSoon]
    );
}

const ONE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TWO: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

#[tokio::test]
async fn the_trace_comes_from_the_metadata_or_else_from_the_header() {
    let observer = Arc::new(RecordingObserver::default());
    let server = observed(&observer, 0);
    for (meta, header, expected) in [
        (Some(ONE), Some(TWO), Some(ONE)),
        (None, Some(TWO), Some(TWO)),
        (Some("CANARY"), Some(TWO), Some(TWO)),
        (Some(ONE), Some("CANARY"), Some(ONE)),
        (Some("CANARY"), None, None),
        (None, Some("CANARY"), None),
        (None, None, None),
    ] {
        let mut params = json!({"name": "ending", "arguments": {"way": "well"}, "_meta": {}});
        if let Some(meta) = meta {
            params["_meta"]["traceparent"] = meta.into();
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let mut headers = vec![("mcp-protocol-version", "2025-11-25")];
        headers.extend(header.map(|header| ("traceparent", header)));
        server.post("/mcp", &headers, body.to_string()).await;
        let recorded = std::mem::take(&mut *observer.0.lock().unwrap());
        let [(.., trace)] = recorded.as_slice() else {
            panic!("{recorded:?}");
        };
        assert_eq!(trace.as_deref(), expected, "{meta:?} {header:?}");
    }
}

#[tokio::test]
async fn resource_reads_are_reported_too() {
    let observer = Arc::new(RecordingObserver::default());
    let app = crate::server::builder(Arc::default()).observer(observer.clone());
    let server = RouterServer::new(app.build().unwrap());
    for (uri, outcome, touched) in [
        ("test://page", CallStatus::Done, 1),
        ("test://panic/1", CallStatus::Failed, 0),
        ("test://nothing", CallStatus::Mistaken, 0),
    ] {
        for revision in [MODERN, "2025-11-25"] {
            server
                .ask(revision, "resources/read", json!({"uri": uri}))
                .await;
            let recorded = std::mem::take(&mut *observer.0.lock().unwrap());
            let [(name, ended, touched_ids, ..)] = recorded.as_slice() else {
                panic!("{uri}: {recorded:?}");
            };
            let expected = ("resources/read", outcome, touched);
            assert_eq!((name.as_str(), *ended, *touched_ids), expected, "{uri}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_refused_before_it_begins_is_reported() {
    let observer = Arc::new(RecordingObserver::default());
    let app = App::builder("a", "1")
        .tool(EndingTool)
        .observer(observer.clone());
    let auth = Auth::builder(["http://localhost"])
        .issuer(Issuer::local("http://localhost", LocalKeys::default()))
        .requirement(AuthRequirement::ByTool);
    let options = HttpOptions {
        auth: Some(auth.build().unwrap()),
        ..HttpOptions::default()
    };
    let server = RouterServer::with(app.build().unwrap(), options);
    let params = json!({"name": "ending", "arguments": {"way": "well"}});
    // ChatGPT is recognized by a key of its own. Text in a value can come from anybody.
    for (meta, status) in [
        (json!({}), 401),
        (json!({"note": "\"openai/locale\""}), 401),
        (json!({"nested": {"openai/locale": "en"}}), 401),
        (json!({"openai/locale": "en"}), 200),
    ] {
        let mut params = params.clone();
        params["_meta"] = meta;
        let answered = server.ask("2025-11-25", "tools/call", params).await;
        assert_eq!(answered.status, status, "{}", answered.text);
        let recorded = std::mem::take(&mut *observer.0.lock().unwrap());
        let [(name, ended, ..)] = recorded.as_slice() else {
            panic!("{recorded:?}");
        };
        assert_eq!((name.as_str(), *ended), ("ending", CallStatus::Forbidden));
    }
}
