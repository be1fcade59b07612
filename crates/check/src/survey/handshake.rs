//! Greets a server as ChatGPT does: `server/discover` first, `initialize` where that is not understood;
//! then once in every revision.

use std::sync::Arc;

use serde_json::{Value, json};

use super::SurveySession;
use crate::connection::OutgoingRequest;
use crate::exchange::RecordedExchange;
use crate::request_builder::{LEGACY_REVISIONS, MODERN_REVISION, McpRequestBuilder};

/// A version that never was, to see what a server makes of it.
pub(crate) const UNKNOWN_REVISION: &str = "1999-01-01";

pub(super) fn negotiate(visit: &mut SurveySession) {
    visit.survey.greetings.clear();
    let modern = McpRequestBuilder::new(visit.identity, MODERN_REVISION);
    let id = json!("openai-mcp-discover");
    let discover = visit
        .wire
        .send(modern.request_as(id, "server/discover", json!({})));
    visit.survey.discover = Some(Arc::clone(&discover));
    visit.survey.modern = names_modern(discover.result());
    if discover.outcome.is_err() && visit.wire.as_http().is_some() {
        // Nobody is there, or it hangs: one more question decides which.
        (visit.progress)("greeting again");
    }
    // A program that has answered in one era may refuse the other on the same pipes.
    visit.wire.restart();
    let mut legacy = initialize(visit, LEGACY_REVISIONS[0]);
    visit.survey.legacy = legacy.is_some();
    visit.survey.is_connected = visit.survey.modern || visit.survey.legacy;
    let greeted = visit.first_greeting().and_then(RecordedExchange::status);
    visit.survey.requires_sign_in = !visit.survey.is_connected && greeted == Some(401);
    if let Some(legacy) = &legacy {
        visit.survey.has_session = legacy.session.is_some();
    }
    let greeted = visit
        .first_greeting()
        .and_then(RecordedExchange::result)
        .cloned();
    let discovered = discover.result().cloned();
    if visit.survey.modern {
        if visit.wire.as_http().is_none()
            && let Some(voice) = legacy.take()
        {
            super::lists::list_in_other_era(visit, &voice);
        }
        visit.survey.initialize_result = discovered.or(greeted).unwrap_or_default();
        visit.main = Some(modern);
        visit.other = legacy;
    } else {
        visit.survey.initialize_result = greeted.unwrap_or_default();
        visit.main = legacy;
    }
    if visit.survey.legacy {
        other_versions(visit);
    }
}

/// `initialize`, and the notice that follows it.
fn initialize(visit: &mut SurveySession, version: &'static str) -> Option<McpRequestBuilder> {
    let mut voice = McpRequestBuilder::new(visit.identity, version);
    let greeted = visit.wire.send(voice.initialize(version));
    visit
        .survey
        .greetings
        .push((version.to_owned(), Arc::clone(&greeted)));
    let answered = greeted.result()?.get("protocolVersion")?.as_str()?;
    // Only what a header can carry.
    if !answered.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return None;
    }
    answered.clone_into(&mut voice.version);
    let session = greeted
        .received()
        .and_then(|received| received.header("mcp-session-id"));
    voice.session = session.map(str::to_owned);
    visit.probe(
        "initialized",
        voice.notification("notifications/initialized"),
    );
    Some(voice)
}

/// The older revisions, one that never was, and the newest where only the older may be asked for.
fn other_versions(visit: &mut SurveySession) {
    for version in LEGACY_REVISIONS
        .into_iter()
        .skip(1)
        .chain([UNKNOWN_REVISION, MODERN_REVISION])
    {
        visit.wire.restart();
        let voice = McpRequestBuilder::new(visit.identity, version);
        let greeted = visit.wire.send(voice.initialize(version));
        let session = greeted
            .received()
            .and_then(|received| received.header("mcp-session-id"));
        if let Some(session) = session {
            end_session(visit, session);
        }
        if version == "2025-03-26"
            && greeted
                .result()
                .and_then(|result| result.get("protocolVersion"))
                == Some(&json!(version))
        {
            batch(visit, version);
        }
        visit.survey.greetings.push((version.to_owned(), greeted));
    }
    // The conversation goes on in a program that has heard nothing else.
    visit.wire.restart();
    if visit.wire.as_http().is_none()
        && let Some(main) = visit.main.as_ref().filter(|main| !main.is_modern())
    {
        visit.wire.send(main.initialize(LEGACY_REVISIONS[0]));
        visit
            .wire
            .send(main.notification("notifications/initialized"));
    }
}

/// Two requests in one body, which the revision of March 2025 allows.
fn batch(visit: &mut SurveySession, version: &'static str) {
    if visit.wire.as_http().is_none() {
        return;
    }
    let mut voice = McpRequestBuilder::new(visit.identity, version);
    let greeted = visit.wire.send(voice.initialize(version));
    let session = greeted
        .received()
        .and_then(|received| received.header("mcp-session-id"));
    voice.session = session.map(str::to_owned);
    if voice.session.is_some() {
        visit
            .wire
            .send(voice.notification("notifications/initialized"));
    }
    let two = json!([
        {"jsonrpc": "2.0", "id": "one", "method": "ping"},
        {"jsonrpc": "2.0", "id": "two", "method": "ping"},
    ]);
    let mut ask = voice.with_protocol_headers(OutgoingRequest::post(two.to_string()), "ping", None);
    ask.id = Some(json!("one"));
    visit.probe("batch", ask);
    if let Some(session) = voice.session {
        end_session(visit, &session);
    }
}

/// Ends the sessions that are left, and asks something in one that was ended.
pub(super) fn end_sessions(visit: &mut SurveySession) {
    for voice in [visit.main.take(), visit.other.take()]
        .into_iter()
        .flatten()
    {
        let Some(session) = &voice.session else {
            continue;
        };
        let ended = end_session(visit, session);
        visit.survey.probes.insert("session-end", ended);
        visit.probe("session-ended", voice.request("tools/list", json!({})));
    }
}

fn end_session(visit: &SurveySession, session: &str) -> Arc<RecordedExchange> {
    let ask = OutgoingRequest {
        verb: Some("DELETE"),
        ..OutgoingRequest::default()
    };
    visit.wire.send(ask.with_header("Mcp-Session-Id", session))
}

impl SurveySession<'_> {
    fn first_greeting(&self) -> Option<&RecordedExchange> {
        self.survey
            .greetings
            .first()
            .map(|(_, exchange)| exchange.as_ref())
    }
}

/// Whether a server says that it speaks the newer revision.
pub(crate) fn names_modern(discovered: Option<&Value>) -> bool {
    let versions = discovered
        .and_then(|result| result.get("supportedVersions"))
        .and_then(Value::as_array);
    versions.is_some_and(|versions| versions.iter().any(|version| version == MODERN_REVISION))
}
