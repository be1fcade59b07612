//! Client hints from hosts (locale, location, subject), locale negotiation, and the rate limit per subject.

use docent_mcp::http::HttpOptions;
use docent_mcp::http::limits::HttpLimits;
use docent_mcp::{
    Answer, App, AppBuilder, Context, Failure, Tool, ToolAnnotations, ToolDescriptor,
};
use serde_json::{Value, json};

use crate::server::{LEGACY, MODERN, RouterServer};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct MirrorInput {}

/// Tool that returns the client hints it was given.
struct MirrorTool;

impl Tool for MirrorTool {
    type Input = MirrorInput;
    type Output = Value;
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::new(
            "mirror",
            "Mirror",
            "Use this to test.",
            ToolAnnotations::READ_ONLY,
        )
    }
    async fn call(&self, _: MirrorInput, cx: Context) -> Result<Answer<Value>, Failure> {
        let hints = cx.client_hints();
        Ok(Answer::new(json!({
            "locale": cx.locale(),
            "agent": hints.user_agent,
            "city": hints.location.as_ref().and_then(|place| place.city.clone()),
            "longitude": hints.location.and_then(|place| place.longitude),
            "subject": hints.subject.map(|name| name.fingerprint()),
            "session": hints.session.is_some(),
            "organization": hints.organization.is_some(),
            "verified": !cx.caller().is_anonymous(),
        })))
    }
}

fn building() -> AppBuilder {
    App::builder("a", "1").tool(MirrorTool)
}

async fn mirrored(server: &RouterServer, revision: &str, meta: Value) -> Value {
    let call = json!({"name": "mirror", "arguments": {}, "_meta": meta});
    server.ask(revision, "tools/call", call).await.json()["result"].clone()
}

#[tokio::test]
async fn tools_get_client_hints_and_hints_verify_nobody() {
    let server = RouterServer::new(building().locales(["en", "de"]).build().unwrap());
    let meta = json!({
        "openai/locale": "de-AT",
        "openai/userAgent": "ChatGPT/1.2025.012",
        "openai/userLocation": {"city": "Lisbon", "longitude": "-9.14"},
        "openai/subject": "v1/somebody",
        "openai/session": "v1/conversation",
        "openai/organization": "v1/company",
    });
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let result = mirrored(&server, revision, meta.clone()).await;
        let seen = &result["structuredContent"];
        assert_eq!(seen["locale"], "de", "{revision}");
        assert_eq!(seen["agent"], "ChatGPT/1.2025.012");
        assert_eq!(
            (&seen["city"], &seen["longitude"]),
            (&json!("Lisbon"), &json!(-9.14))
        );
        assert_eq!(
            (&seen["session"], &seen["organization"]),
            (&json!(true), &json!(true))
        );
        assert!(!seen["subject"].as_str().unwrap().contains("somebody"));
        assert_eq!(seen["verified"], false);
        let nothing = mirrored(&server, revision, json!({})).await;
        assert_eq!(nothing["structuredContent"]["locale"], "en");
        assert_eq!(nothing["structuredContent"]["subject"], Value::Null);
    }
}

#[tokio::test]
async fn the_locale_is_negotiated_in_the_handshake() {
    let handshake = |locale: Value| {
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "_meta": locale,
            "clientInfo": {"name": "x", "version": "1"}})
    };
    let server = RouterServer::new(building().locales(["en", "de"]).build().unwrap());
    for (requested, expected) in [("de-AT", "de"), ("fr", "en")] {
        let meta = json!({"openai/locale": requested});
        let old = server
            .ask("2025-11-25", "initialize", handshake(meta.clone()))
            .await
            .json();
        assert_eq!(old["result"]["_meta"]["openai/locale"], expected, "{old}");
        let new = server
            .ask(MODERN, "server/discover", json!({"_meta": meta}))
            .await
            .json();
        assert_eq!(new["result"]["_meta"]["openai/locale"], expected);
        assert_eq!(new["result"]["cacheScope"], "private");
        let server = &new["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server["name"], "a");
    }
    let new = server
        .ask(MODERN, "server/discover", json!({}))
        .await
        .json();
    assert!(new["result"]["_meta"].get("openai/locale").is_none());
    assert_eq!(new["result"]["cacheScope"], "public");
    let silent = RouterServer::new(building().build().unwrap());
    let old = silent
        .ask(
            "2025-11-25",
            "initialize",
            handshake(json!({"openai/locale": "de"})),
        )
        .await;
    assert!(old.json()["result"].get("_meta").is_none());
    let mirrored = mirrored(&silent, MODERN, json!({"openai/locale": "de-AT"})).await;
    assert_eq!(mirrored["structuredContent"]["locale"], "de-AT");
    assert!(App::builder("a", "1").locales(["en_US"]).build().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_of_one_subject_affects_no_other() {
    let limits = HttpLimits {
        calls_per_minute: 3,
        ..HttpLimits::default()
    };
    let server = RouterServer::with(
        building().build().unwrap(),
        HttpOptions {
            limits,
            ..HttpOptions::default()
        },
    );
    let meta_of = |subject: &str| json!({"openai/subject": subject});
    for _ in 0..3 {
        assert!(
            mirrored(&server, MODERN, meta_of("a"))
                .await
                .get("isError")
                .is_none()
        );
    }
    for revision in ["2024-11-05", MODERN] {
        let refused = mirrored(&server, revision, meta_of("a")).await;
        assert_eq!(refused["isError"], true);
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert_eq!(
            text,
            "too many calls\nhint: wait 20 seconds, then call again"
        );
    }
    assert!(
        mirrored(&server, MODERN, meta_of("b"))
            .await
            .get("isError")
            .is_none()
    );
    for _ in 0..9 {
        assert!(
            mirrored(&server, MODERN, json!({}))
                .await
                .get("isError")
                .is_none()
        );
    }
    tokio::time::advance(std::time::Duration::from_secs(20)).await;
    assert!(
        mirrored(&server, MODERN, meta_of("a"))
            .await
            .get("isError")
            .is_none()
    );
}
