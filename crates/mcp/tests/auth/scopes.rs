//! Scopes of tools: which tools a caller may list and call, and how the missing scope is reported to hosts that read
//! HTTP challenges and to ChatGPT, which reads them inside the result.

use docent_mcp::AuthRequirement;
use serde_json::{Value, json};

use crate::fixture::{AuthFixture, BASE, RawRequest, app};

fn token(fixture: &AuthFixture, scope: &str) -> String {
    let mut claims = fixture.claims();
    claims["scope"] = scope.into();
    fixture.ed.token(&claims)
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

fn list() -> RawRequest {
    RawRequest::rpc(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_missing_scope_is_a_403_that_names_all() {
    let fixture = AuthFixture::start().await;
    let cases = [
        ("docs.read", "write", 403),
        ("docs.read docs.write", "write", 403),
        ("docs.read docs.admin", "write", 403),
        ("docs.read docs.write docs.admin", "write", 200),
        ("docs.read", "whoami", 200),
        ("docs.read", "open", 200),
        ("docs.read", "either", 200),
    ];
    for (scope, tool, status) in cases {
        let sent = RawRequest::call(tool).bearer(&token(&fixture, scope));
        let answered = fixture.server.send(&sent).await;
        assert_eq!(answered.status, status, "{scope} {tool}");
        if status == 403 {
            let challenge = answered.header("www-authenticate").unwrap();
            assert!(
                challenge.contains(r#"error="insufficient_scope""#),
                "{challenge}"
            );
            assert!(
                challenge.ends_with(r#"scope="docs.read docs.write docs.admin""#),
                "{challenge}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_has_what_the_caller_may_call() {
    let fixture = AuthFixture::start().await;
    let all = token(&fixture, "docs.read docs.write docs.admin");
    let some = token(&fixture, "docs.read");
    let answered = fixture.server.send(&list().bearer(&all)).await.json();
    assert_eq!(names(&answered), ["whoami", "open", "write", "either"]);
    let answered = fixture.server.send(&list().bearer(&some)).await.json();
    assert_eq!(names(&answered), ["whoami", "open", "either"]);
    let tools = &answered["result"]["tools"];
    let demanded = json!([{"type": "oauth2", "scopes": ["docs.read"]}]);
    assert_eq!(tools[0]["securitySchemes"], demanded);
    assert_eq!(tools[0]["_meta"]["securitySchemes"], demanded);
    assert_eq!(tools[1]["securitySchemes"], json!([{"type": "noauth"}]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_list_is_for_its_caller_alone() {
    let fixture = AuthFixture::start().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let mut sent = RawRequest::rpc(&body).bearer(&token(&fixture, "docs.read"));
    sent.headers
        .retain(|(name, _)| *name != "mcp-protocol-version");
    let sent = sent
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "tools/list");
    let answered = fixture.server.send(&sent).await.json();
    assert_eq!(answered["result"]["cacheScope"], "private");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_mixed_mode_each_tool_says_what_it_needs() {
    let fixture = AuthFixture::with(AuthRequirement::ByTool).await;
    for (tool, status) in [
        ("open", 200),
        ("either", 200),
        ("whoami", 401),
        ("write", 401),
    ] {
        let answered = fixture.server.send(&RawRequest::call(tool)).await;
        assert_eq!(answered.status, status, "{tool}");
    }
    let answered = fixture.server.send(&RawRequest::call("write")).await;
    let expected = format!(
        r#"Bearer resource_metadata="{BASE}/.well-known/oauth-protected-resource/mcp", scope="docs.read docs.write docs.admin""#
    );
    assert_eq!(answered.header("www-authenticate"), Some(expected.as_str()));
    let listed = fixture.server.send(&list()).await.json();
    assert_eq!(names(&listed), ["whoami", "open", "write", "either"]);
    // A token that is sent must be valid. A valid token without a scope still opens tools that need none.
    let bad = fixture
        .server
        .send(&RawRequest::call("open").bearer("eyJ.e.e"))
        .await;
    assert_eq!(bad.status, 401);
    let poor = token(&fixture, "other");
    for (tool, status) in [("open", 200), ("either", 200), ("whoami", 403)] {
        let answered = fixture
            .server
            .send(&RawRequest::call(tool).bearer(&poor))
            .await;
        assert_eq!(answered.status, status, "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_optional_sign_in_a_tool_without_schemes_accepts_both() {
    let fixture = AuthFixture::with(AuthRequirement::Optional).await;
    let nobody = fixture.server.send(&RawRequest::call("whoami")).await;
    assert_eq!(
        nobody.json()["result"]["structuredContent"]["subject"],
        Value::Null
    );
    let somebody = RawRequest::call("whoami").bearer(&token(&fixture, "docs.read"));
    let somebody = fixture.server.send(&somebody).await;
    assert_eq!(
        somebody.json()["result"]["structuredContent"]["subject"],
        "user-1"
    );
    let listed = fixture.server.send(&list()).await.json();
    let schemes = &listed["result"]["tools"][0]["securitySchemes"];
    assert_eq!(
        *schemes,
        json!([{"type": "noauth"}, {"type": "oauth2", "scopes": ["docs.read"]}])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chatgpt_gets_the_challenge_inside_the_result() {
    let fixture = AuthFixture::with(AuthRequirement::ByTool).await;
    let by_meta = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":
        {"name": "write", "arguments": {}, "_meta": {"openai/subject": "v1/x"}}});
    let requests = [
        RawRequest::call("write").with("user-agent", "openai-mcp/1.0.0"),
        RawRequest::call("write").with("user-agent", "OpenAI-MCP/2"),
        RawRequest::rpc(&by_meta),
    ];
    let metadata = format!(
        r#"resource_metadata="{BASE}/.well-known/oauth-protected-resource/mcp", scope="docs.read docs.write docs.admin""#
    );
    for sent in requests {
        let answered = fixture.server.send(&sent).await;
        assert_eq!(answered.status, 200);
        let result = &answered.json()["result"];
        assert_eq!(result["isError"], true);
        let challenge = format!(
            r#"Bearer error="insufficient_scope", error_description="Sign in to continue", {metadata}"#
        );
        assert_eq!(result["_meta"]["mcp/www_authenticate"], json!([challenge]));
        let signed_in = sent.bearer(&token(&fixture, "docs.read"));
        let result = &fixture.server.send(&signed_in).await.json()["result"];
        let challenge = format!(
            r#"Bearer error="insufficient_scope", error_description="This needs more than was granted", {metadata}"#
        );
        assert_eq!(result["_meta"]["mcp/www_authenticate"], json!([challenge]));
    }
    let other = RawRequest::call("write").with("user-agent", "Claude-User");
    assert_eq!(fixture.server.send(&other).await.status, 401);
}

/// A batch has one HTTP status, so the challenge of each call is inside its own result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_of_a_batch_is_authorized_alone() {
    let fixture = AuthFixture::with(AuthRequirement::ByTool).await;
    let call = |id: u32, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    let mut sent = RawRequest::rpc(&json!([call(1, "open"), call(2, "write")]));
    sent.headers
        .retain(|(name, _)| *name != "mcp-protocol-version");
    let answers = fixture
        .server
        .send(&sent.with("mcp-protocol-version", "2025-03-26"))
        .await
        .json();
    assert_eq!(answers[0]["result"]["isError"], Value::Null, "{answers}");
    assert_eq!(answers[1]["result"]["isError"], true, "{answers}");
    assert!(
        answers[1]["result"]["_meta"]["mcp/www_authenticate"].is_array(),
        "{answers}"
    );
}

/// On stdio the caller is the user who started the process, so no scope is required.
#[tokio::test]
async fn over_stdio_the_caller_is_the_owner() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    let (client, server) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(server);
    let stop = tokio_util::sync::CancellationToken::new();
    let serving = docent_mcp::stdio::run(app(), Default::default(), input, output, stop);
    tokio::spawn(serving);
    let (read, mut write) = tokio::io::split(client);
    let call = RawRequest::call("write").body;
    write
        .write_all(format!("{call}\n").as_bytes())
        .await
        .unwrap();
    let mut line = String::new();
    let mut lines = tokio::io::BufReader::new(read);
    lines.read_line(&mut line).await.unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let who = &answer["result"]["structuredContent"];
    assert_eq!(
        (&who["owner"], &who["subject"]),
        (&json!(true), &Value::Null),
        "{line}"
    );
}
