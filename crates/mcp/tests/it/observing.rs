//! Whoever watches calls hears of each of them once, however it ends.

use std::sync::{Arc, Mutex};

use docent_mcp::http::Options;
use docent_mcp::http::limits::Limits;
use docent_mcp::{
    Answer, App, Called, Context, Descriptor, Failure, Hints, MAX_TOUCHED, Observer, Outcome, Tool,
};
use serde_json::{Value, json};

use crate::server::{MODERN, Server};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Way {
    way: String,
}

/// Ends in whatever way it is told to.
struct Ending;

impl Tool for Ending {
    type Input = Way;
    type Output = Value;
    fn descriptor(&self) -> Descriptor {
        Descriptor::new("ending", "Ending", "Use this to test.", Hints::READ_ONLY)
    }
    async fn call(&self, input: Way, cx: Context) -> Result<Answer<Value>, Failure> {
        match input.way.as_str() {
            "well" => {
                let things = cx.touched((0..=MAX_TOUCHED).map(|n| n.to_string()));
                Ok(Answer::new(json!({})).touched(things))
            }
            "mistaken" => Err(Failure::caller("no such way")),
            "panic" => panic!("asked to"),
            _ => std::future::pending().await,
        }
    }
}

/// What was heard: the tool, how it ended, how much it touched, the client and the trace.
type Heard = (String, Outcome, usize, Option<String>, Option<String>);

#[derive(Default)]
struct Ear(Mutex<Vec<Heard>>);

impl Observer for Ear {
    fn called(&self, call: &Called<'_>) {
        assert!(call.arguments.starts_with('{') && call.caller.is_anonymous());
        let said = |text: Option<&str>| text.map(str::to_owned);
        self.0.lock().unwrap().push((
            call.tool.to_owned(),
            call.outcome,
            call.touched.len(),
            said(call.client),
            said(call.trace),
        ));
    }
}

fn watched(ear: &Arc<Ear>, calls_per_minute: u32) -> Server {
    let app = App::builder("a", "1").tool(Ending).observer(ear.clone());
    let options = Options {
        limits: Limits {
            calls_per_minute,
            ..Limits::default()
        },
        ..Options::default()
    };
    Server::with(app.build().unwrap(), options)
}

#[tokio::test]
async fn every_call_is_heard_of_once() {
    let ear = Arc::new(Ear::default());
    let server = watched(&ear, 0);
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
        ("ending", "well", Outcome::Done, MAX_TOUCHED),
        ("ending", "mistaken", Outcome::Mistaken, 0),
        ("ending", "panic", Outcome::Failed, 0),
        ("absent", "well", Outcome::Mistaken, 0),
    ] {
        ask(tool, way).await;
        let heard = std::mem::take(&mut *ear.0.lock().unwrap());
        let [(name, ended, things, client, trace)] = heard.as_slice() else {
            panic!("{way}: {heard:?}");
        };
        assert_eq!((name.as_str(), *ended, *things), (tool, outcome, touched));
        assert_eq!(client.as_deref(), Some("a host"));
        assert!(trace.as_deref().unwrap().starts_with("00-0af7"));
    }
    {
        let mut left = Box::pin(ask("ending", "never"));
        assert!(futures::poll!(left.as_mut()).is_pending());
    }
    let few = watched(&ear, 1);
    for _ in 0..2 {
        few.ask(MODERN, "tools/call", call("ending", "well")).await;
    }
    let heard = ear.0.lock().unwrap();
    let ended: Vec<_> = heard.iter().map(|(_, ended, ..)| *ended).collect();
    assert_eq!(ended, [Outcome::Abandoned, Outcome::Done, Outcome::TooSoon]);
}
