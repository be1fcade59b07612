//! Protocol negotiation as ChatGPT does it: `server/discover` first, then `initialize`; then `initialize` once in every
//! other revision, so that rules can judge the version negotiation.
//!
//! A stdio program gets a fresh process for each attempt, because one that has answered in one era may refuse the
//! other. Sessions that these attempts open are ended.

use std::sync::Arc;

use serde_json::{Value, json};

use super::SurveySession;
use crate::connection::OutgoingRequest;
use crate::exchange::RecordedExchange;
use crate::request_builder::{LEGACY_REVISIONS, MODERN_REVISION, McpRequestBuilder};

/// A version that never existed, to test the version negotiation.
pub(crate) const UNKNOWN_REVISION: &str = "1999-01-01";

pub(super) fn negotiate(ctx: &mut SurveySession) {
    ctx.survey.handshakes.clear();
    let modern = McpRequestBuilder::new(ctx.identity, MODERN_REVISION);
    let id = json!("openai-mcp-discover");
    let discover = ctx
        .wire
        .send(modern.request_as(id, "server/discover", json!({})));
    ctx.survey.discover = Some(Arc::clone(&discover));
    ctx.survey.modern = names_modern(discover.result());
    if discover.outcome.is_err() && ctx.wire.as_http().is_some() {
        // The server is unreachable or hangs; the next request tells which.
        (ctx.progress)("handshake again");
    }
    // A program that has answered in one era may refuse the other in the same process.
    ctx.wire.restart();
    let mut legacy = initialize(ctx, LEGACY_REVISIONS[0]);
    ctx.survey.legacy = legacy.is_some();
    ctx.survey.is_connected = ctx.survey.modern || ctx.survey.legacy;
    let initialize_status = ctx.first_handshake().and_then(RecordedExchange::status);
    ctx.survey.requires_sign_in = !ctx.survey.is_connected && initialize_status == Some(401);
    if let Some(legacy) = &legacy {
        ctx.survey.has_session = legacy.session.is_some();
    }
    let initialized = ctx
        .first_handshake()
        .and_then(RecordedExchange::result)
        .cloned();
    let discovered = discover.result().cloned();
    if ctx.survey.modern {
        if ctx.wire.as_http().is_none()
            && let Some(builder) = legacy.take()
        {
            super::lists::list_in_other_era(ctx, &builder);
        }
        ctx.survey.initialize_result = discovered.or(initialized).unwrap_or_default();
        ctx.main = Some(modern);
        ctx.other = legacy;
    } else {
        ctx.survey.initialize_result = initialized.unwrap_or_default();
        ctx.main = legacy;
    }
    if ctx.survey.legacy {
        other_versions(ctx);
    }
}

/// Sends `initialize` and the notification `initialized`, and returns the request builder of the new session.
fn initialize(ctx: &mut SurveySession, version: &'static str) -> Option<McpRequestBuilder> {
    let mut builder = McpRequestBuilder::new(ctx.identity, version);
    let exchange = ctx.wire.send(builder.initialize(version));
    ctx.survey
        .handshakes
        .push((version.to_owned(), Arc::clone(&exchange)));
    let answered = exchange.result()?.get("protocolVersion")?.as_str()?;
    // The version is sent back in a header, so it must be printable ASCII.
    if !answered.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return None;
    }
    answered.clone_into(&mut builder.version);
    let session = exchange
        .received()
        .and_then(|received| received.header("mcp-session-id"));
    builder.session = session.map(str::to_owned);
    ctx.probe(
        "initialized",
        builder.notification("notifications/initialized"),
    );
    Some(builder)
}

/// Sends `initialize` with the other legacy revisions, with one that never existed, and with 2026-07-28, which has no
/// `initialize`.
fn other_versions(ctx: &mut SurveySession) {
    for version in LEGACY_REVISIONS
        .into_iter()
        .skip(1)
        .chain([UNKNOWN_REVISION, MODERN_REVISION])
    {
        ctx.wire.restart();
        let builder = McpRequestBuilder::new(ctx.identity, version);
        let exchange = ctx.wire.send(builder.initialize(version));
        let session = exchange
            .received()
            .and_then(|received| received.header("mcp-session-id"));
        if let Some(session) = session {
            end_session(ctx, session);
        }
        if version == "2025-03-26"
            && exchange
                .result()
                .and_then(|result| result.get("protocolVersion"))
                == Some(&json!(version))
        {
            batch(ctx, version);
        }
        ctx.survey.handshakes.push((version.to_owned(), exchange));
    }
    // The survey goes on in a fresh process, which has seen no other handshake.
    ctx.wire.restart();
    if ctx.wire.as_http().is_none()
        && let Some(main) = ctx.main.as_ref().filter(|main| !main.is_modern())
    {
        ctx.wire.send(main.initialize(LEGACY_REVISIONS[0]));
        ctx.wire
            .send(main.notification("notifications/initialized"));
    }
}

/// Sends a JSON-RPC batch, which only revision 2025-03-26 allows.
fn batch(ctx: &mut SurveySession, version: &'static str) {
    if ctx.wire.as_http().is_none() {
        return;
    }
    let mut builder = McpRequestBuilder::new(ctx.identity, version);
    let exchange = ctx.wire.send(builder.initialize(version));
    let session = exchange
        .received()
        .and_then(|received| received.header("mcp-session-id"));
    builder.session = session.map(str::to_owned);
    if builder.session.is_some() {
        ctx.wire
            .send(builder.notification("notifications/initialized"));
    }
    let two = json!([
        {"jsonrpc": "2.0", "id": "one", "method": "ping"},
        {"jsonrpc": "2.0", "id": "two", "method": "ping"},
    ]);
    let mut request =
        builder.with_protocol_headers(OutgoingRequest::post(two.to_string()), "ping", None);
    request.id = Some(json!("one"));
    ctx.probe("batch", request);
    if let Some(session) = builder.session {
        end_session(ctx, &session);
    }
}

/// Ends the open sessions with DELETE, and sends one request in an ended session.
pub(super) fn end_sessions(ctx: &mut SurveySession) {
    for builder in [ctx.main.take(), ctx.other.take()].into_iter().flatten() {
        let Some(session) = &builder.session else {
            continue;
        };
        let ended = end_session(ctx, session);
        ctx.survey.probes.insert("session-end", ended);
        ctx.probe("session-ended", builder.request("tools/list", json!({})));
    }
}

fn end_session(ctx: &SurveySession, session: &str) -> Arc<RecordedExchange> {
    let request = OutgoingRequest {
        verb: Some("DELETE"),
        ..OutgoingRequest::default()
    };
    ctx.wire
        .send(request.with_header("Mcp-Session-Id", session))
}

impl SurveySession<'_> {
    fn first_handshake(&self) -> Option<&RecordedExchange> {
        self.survey
            .handshakes
            .first()
            .map(|(_, exchange)| exchange.as_ref())
    }
}

/// Whether the result of `server/discover` lists revision 2026-07-28.
pub(crate) fn names_modern(discovered: Option<&Value>) -> bool {
    let versions = discovered
        .and_then(|result| result.get("supportedVersions"))
        .and_then(Value::as_array);
    versions.is_some_and(|versions| versions.iter().any(|version| version == MODERN_REVISION))
}
