//! A reference server that satisfies every rule: three documents, both protocol eras, a widget and, as options,
//! sessions and sign-in. Tests break one thing of it at a time.

use serde_json::{Value, json};

use crate::server::{CannedReply, ReceivedCall};

/// The optional features of the reference server.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kind {
    /// Issues session ids to clients of the legacy revisions.
    pub sessions: bool,
    /// Requires the token `good-token` for every request.
    pub sign_in: bool,
    /// Supports the legacy revisions only, without `server/discover`.
    pub legacy_only: bool,
}

pub(crate) const TOKEN: &str = "good-token";
const SESSION: &str = "a-session";
const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const WIDGET: &str = "ui://harbour/results-v1.html";

/// A widget that completes the handshake with its host and shows the tool result.
pub(crate) const GREETING: &str = "<!doctype html><html><body><p id=\"count\">Waiting</p><script>
const send = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
addEventListener('message', ({ source, data }) => {
  if (source !== parent) return;
  if (data.id === 1) send({ method: 'ui/notifications/initialized', params: {} });
  if (data.method === 'ui/notifications/tool-result')
    document.getElementById('count').textContent = data.params.structuredContent.documents;
});
send({ id: 1, method: 'ui/initialize', params: { protocolVersion: '2026-01-26', appInfo: { name: 'a', version: '1' }, appCapabilities: {} } });
</script></body></html>";

fn is_modern(call: &ReceivedCall) -> bool {
    !call.body["params"]["_meta"][META_VERSION].is_null()
        || call.header("mcp-protocol-version") == Some(MODERN)
}

fn failure(status: u16, call: &ReceivedCall, code: i64, message: &str) -> CannedReply {
    let id = call.body.get("id").cloned().unwrap_or_default();
    CannedReply::json(
        &json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
    )
    .coded(status)
}

/// Answers one request: first the HTTP layer (origin, metadata, login, token, body), then the JSON-RPC message.
pub(crate) fn answer(kind: Kind, origin: &str, call: &ReceivedCall) -> CannedReply {
    if call
        .header("host")
        .is_some_and(|host| !host.starts_with("127.0.0.1"))
        || call
            .header("origin")
            .is_some_and(|from| call.verb != "OPTIONS" && from != origin)
    {
        return CannedReply::status(403);
    }
    if let Some(path) = call.path.strip_prefix("/.well-known/") {
        return well_known(kind, origin, path);
    }
    if let Some(reply) = login(kind, origin, call) {
        return reply;
    }
    match call.verb.as_str() {
        // Clients can neither open a stream nor end a session.
        "GET" | "DELETE" => return CannedReply::status(405),
        "OPTIONS" => return CannedReply::status(204),
        _ => {}
    }
    if kind.sign_in && call.header("authorization") != Some("Bearer good-token") {
        let error = if call.header("authorization").is_some() {
            "error=\"invalid_token\", "
        } else {
            ""
        };
        let header = format!(
            "Bearer {error}resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\""
        );
        return CannedReply::status(401).with("WWW-Authenticate", &header);
    }
    if call.header("content-type") != Some("application/json") {
        return CannedReply::status(415);
    }
    if call.text.len() > 1_000_000 {
        return CannedReply::status(413);
    }
    if let Value::Array(batch) = &call.body {
        let one = |message: &Value| {
            let call = ReceivedCall {
                body: message.clone(),
                ..call.clone()
            };
            json!({"jsonrpc": "2.0", "id": call.body["id"], "result": {}})
        };
        return CannedReply::json(&Value::Array(batch.iter().map(one).collect()));
    }
    if !call.body.is_object() {
        return failure(400, call, -32700, "not JSON");
    }
    if call.method().is_empty() {
        return failure(400, call, -32600, "no method");
    }
    if call.body.get("id").is_none() {
        return CannedReply::status(202);
    }
    if let Some(refused) = refuse(kind, call) {
        return refused;
    }
    let reply = match result(kind, call) {
        Ok(result) => json!({"jsonrpc": "2.0", "id": call.body["id"], "result": result}),
        Err((code, message)) => {
            let status = if is_modern(call) && code == -32601 {
                404
            } else {
                200
            };
            return failure(status, call, code, message);
        }
    };
    let wants = call.header("accept").unwrap_or_default();
    let reply = if wants.contains("event-stream") && !wants.contains("json") {
        CannedReply::events(&[reply])
    } else {
        CannedReply::json(&reply)
    };
    if kind.sessions && call.method() == "initialize" {
        reply.with("Mcp-Session-Id", SESSION)
    } else {
        reply
    }
}

/// Refuses requests whose protocol headers or session do not match.
fn refuse(kind: Kind, call: &ReceivedCall) -> Option<CannedReply> {
    let header = call.header("mcp-protocol-version");
    if kind.legacy_only && is_modern(call) && call.method() != "initialize" {
        return Some(failure(400, call, -32601, "unknown revision"));
    }
    if is_modern(call) {
        let meta = &call.body["params"]["_meta"][META_VERSION];
        if meta.is_null() {
            return Some(failure(400, call, -32602, "no _meta"));
        }
        if header != meta.as_str() || call.header("mcp-method") != Some(call.method()) {
            return Some(failure(400, call, -32020, "header and body differ"));
        }
        if meta != MODERN {
            let id = &call.body["id"];
            let data = json!({"supported": [MODERN], "requested": meta});
            let error = json!({"code": -32022, "message": "unsupported", "data": data});
            return Some(
                CannedReply::json(&json!({"jsonrpc": "2.0", "id": id, "error": error})).coded(400),
            );
        }
        return None;
    }
    if header.is_some_and(|version| !LEGACY.contains(&version)) && call.method() != "initialize" {
        return Some(failure(400, call, -32600, "unknown revision"));
    }
    if kind.sessions && call.method() != "initialize" {
        return match call.header("mcp-session-id") {
            Some(SESSION) => None,
            Some(_) => Some(failure(404, call, -32001, "no such session")),
            None => Some(failure(400, call, -32000, "no session")),
        };
    }
    None
}

/// The authorization server: every login succeeds and yields the same token.
fn login(kind: Kind, origin: &str, call: &ReceivedCall) -> Option<CannedReply> {
    let (path, query) = call.path.split_once('?').unwrap_or((&call.path, ""));
    let field = |text: &str, key: &str| {
        let pair = text
            .split('&')
            .find_map(|pair| pair.strip_prefix(&format!("{key}=")));
        pair.unwrap_or_default().to_owned()
    };
    match path {
        "/register" if kind.sign_in => {
            Some(CannedReply::json(&json!({"client_id": "client-1"})).coded(201))
        }
        "/authorize" if kind.sign_in => {
            let back = field(query, "redirect_uri")
                .replace("%3A", ":")
                .replace("%2F", "/");
            let location = format!(
                "{back}?code=abc&state={}&iss={origin}",
                field(query, "state")
            );
            Some(CannedReply::status(302).with("Location", &location))
        }
        "/token" if kind.sign_in => {
            let proven = field(&call.text, "grant_type") == "refresh_token"
                || field(&call.text, "code_verifier").len() >= 43;
            let token = json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "refresh-1"});
            Some(if proven {
                CannedReply::json(&token)
            } else {
                CannedReply::json(&json!({"error": "invalid_grant"})).coded(400)
            })
        }
        _ => None,
    }
}

fn well_known(kind: Kind, origin: &str, path: &str) -> CannedReply {
    let resource = |path: &str| json!({"resource": format!("{origin}{path}"), "authorization_servers": [origin], "scopes_supported": ["docs.read"]});
    match path {
        "oauth-protected-resource/mcp" if kind.sign_in => CannedReply::json(&resource("/mcp")),
        "oauth-protected-resource" if kind.sign_in => CannedReply::json(&resource("/")),
        "oauth-authorization-server" if kind.sign_in => CannedReply::json(&json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "client_id_metadata_document_supported": true,
            "token_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "authorization_response_iss_parameter_supported": true,
        })),
        "openai-apps-challenge" => CannedReply::raw("text/plain", "token-1234"),
        _ => CannedReply::json(&json!({"error": "not found"})).coded(404),
    }
}

type Answer = Result<Value, (i64, &'static str)>;

fn result(kind: Kind, call: &ReceivedCall) -> Answer {
    let modern = is_modern(call);
    let params = &call.body["params"];
    let mut result = match call.method() {
        "initialize" => {
            let requested = params["protocolVersion"].as_str().unwrap_or_default();
            let version = if LEGACY.contains(&requested) {
                requested
            } else {
                LEGACY[0]
            };
            json!({"protocolVersion": version, "capabilities": capabilities(), "serverInfo": info(), "instructions": "Search first, then fetch by id."})
        }
        "server/discover" if !kind.legacy_only => json!({
            "supportedVersions": [MODERN, "2025-11-25"], "capabilities": capabilities(), "ttlMs": 1000, "cacheScope": "public",
            "instructions": "Search first, then fetch by id.", "_meta": {"io.modelcontextprotocol/serverInfo": info()},
        }),
        "ping" if !modern => json!({}),
        "tools/list" if params["cursor"].is_string() => return Err((-32602, "no such page")),
        "tools/list" => json!({"tools": tools(), "ttlMs": 1000, "cacheScope": "public"}),
        "resources/list" => {
            json!({"resources": [{"uri": WIDGET, "name": "results", "mimeType": "text/html;profile=mcp-app", "_meta": widget_meta()}], "ttlMs": 1000, "cacheScope": "public"})
        }
        "resources/templates/list" => {
            json!({"resourceTemplates": [], "ttlMs": 1000, "cacheScope": "public"})
        }
        "resources/read" if params["uri"] == WIDGET => json!({
            "contents": [{"uri": WIDGET, "mimeType": "text/html;profile=mcp-app", "text": GREETING, "_meta": widget_meta()}],
            "ttlMs": 1000, "cacheScope": "public",
        }),
        "tools/call" => tool(&params["name"], &params["arguments"])?,
        _ => return Err((-32601, "no such method")),
    };
    if modern {
        result["resultType"] = json!("complete");
    } else if let Some(members) = result.as_object_mut() {
        members.remove("ttlMs");
        members.remove("cacheScope");
    }
    Ok(result)
}

fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}, "extensions": {"io.modelcontextprotocol/ui": {}}})
}

fn info() -> Value {
    json!({"name": "harbour", "version": "1.0.0"})
}

fn widget_meta() -> Value {
    json!({
        "ui": {"csp": {"connectDomains": [], "resourceDomains": []}, "permissions": {"clipboardWrite": {}}},
        "openai/widgetCSP": {"connect_domains": [], "resource_domains": []},
        "openai/widgetDomain": "https://widgets.example",
    })
}

fn tools() -> Value {
    let hints = |title: &str| json!({"title": title, "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false});
    let schemes = json!([{"type": "noauth"}]);
    let of = |name: &str, title: &str, argument: &str, output: Value| {
        json!({
            "name": name, "title": title, "description": format!("Use this when the user asks about the harbour. {title}."),
            "inputSchema": {"type": "object", "properties": {argument: {"type": "string", "description": "A text."}}, "required": [argument], "additionalProperties": false},
            "outputSchema": output, "annotations": hints(title), "securitySchemes": schemes,
            "icons": [{"src": "https://a.example/i.png", "mimeType": "image/png"}],
            "_meta": {
                "securitySchemes": schemes, "openai/toolInvocation/invoking": "Searching…", "openai/toolInvocation/invoked": "Done",
                "anthropic/maxResultSizeChars": 150_000,
            },
        })
    };
    let text = json!({"type": "string"});
    let results = json!({"type": "object", "properties": {"results": {"type": "array", "items": {"type": "object", "properties": {"id": text, "title": text, "url": text}, "required": ["id", "title", "url"]}}}, "required": ["results"]});
    let document = json!({"type": "object", "properties": {"id": text, "title": text, "text": text, "url": text, "metadata": {"type": "object", "additionalProperties": text}}, "required": ["id", "title", "text", "url"]});
    let status = json!({"type": "object", "properties": {"documents": {"type": "integer"}}, "required": ["documents"]});
    let mut show = of("show_status", "Show the state", "file", status);
    show["inputSchema"]["required"] = json!([]);
    show["_meta"]["ui"] = json!({"resourceUri": WIDGET, "visibility": ["model", "app"]});
    show["_meta"]["openai/outputTemplate"] = json!(WIDGET);
    show["_meta"]["openai/fileParams"] = json!(["file"]);
    json!([
        of("search", "Search documents", "query", results),
        of("fetch", "Read a document", "id", document),
        show
    ])
}

const DOCUMENTS: [(&str, &str); 3] = [
    ("doc-1", "Ferry timetable"),
    ("doc-2", "Harbour dues"),
    ("doc-3", "Report of the pilots"),
];

fn url(id: &str) -> String {
    format!("https://harbour.example/{id}")
}

fn success(payload: &Value) -> Value {
    json!({"content": [{"type": "text", "text": payload.to_string()}], "structuredContent": payload})
}

fn refused(message: &str) -> Value {
    json!({"content": [{"type": "text", "text": message}], "isError": true})
}

fn tool(name: &Value, arguments: &Value) -> Answer {
    match name.as_str() {
        Some("search") => {
            let Some(query) = arguments["query"].as_str() else {
                return Ok(refused("the query is missing"));
            };
            let query = query.to_lowercase();
            let words: Vec<&str> = query.split_whitespace().collect();
            let fits = |title: &str| {
                words
                    .iter()
                    .any(|word| *word == "the" || title.to_lowercase().contains(word))
            };
            let hits = DOCUMENTS.iter().filter(|(_, title)| fits(title));
            let hits: Vec<Value> = hits
                .map(|(id, title)| json!({"id": id, "title": title, "url": url(id)}))
                .collect();
            Ok(success(&json!({"results": hits})))
        }
        Some("fetch") => {
            let found = DOCUMENTS.iter().find(|(id, _)| arguments["id"] == *id);
            Ok(match found {
                Some((id, title)) => success(
                    &json!({"id": id, "title": title, "text": format!("{title} in full."), "url": url(id), "metadata": {"source": "harbour"}}),
                ),
                None => refused("no document with this id; search again"),
            })
        }
        Some("show_status") => Ok(success(&json!({"documents": 3}))),
        _ => Err((-32602, "no such tool")),
    }
}
