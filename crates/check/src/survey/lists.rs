//! The lists of a server: tools in both eras and twice, resources, prompts, templates.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Visit;
use crate::voice::Voice;

/// The most tools and pages of tools that are looked at.
pub(crate) const MAX_TOOLS: usize = 1_000;
pub(crate) const MAX_PAGES: usize = 50;

pub(super) fn read(visit: &mut Visit) {
    let Some(main) = visit.main.take() else {
        return;
    };
    let (tools, ended) = tools(visit, &main);
    visit.seen.tools = tools;
    visit.seen.tools_listed = ended;
    visit.seen.tools_again = Some(self::tools(visit, &main).0);
    for (name, method) in [
        ("resources", "resources/list"),
        ("templates", "resources/templates/list"),
        ("prompts", "prompts/list"),
    ] {
        visit.probe(name, main.request(method, json!({})));
    }
    visit.probe(
        "unknown-method",
        main.request("docent/no-such-method", json!({})),
    );
    let cursor = json!({"cursor": "docent-check-no-such-cursor"});
    visit.probe("bad-cursor", main.request("tools/list", cursor));
    if let Some(other) = visit.other.take() {
        in_the_other_era(visit, &other);
        visit.other = Some(other);
    } else if !main.is_modern() {
        visit.probe("ping", main.request("ping", json!({})));
    }
    visit.main = Some(main);
}

/// What a client that begins with `initialize` sees of a server that also speaks the newer revision.
pub(super) fn in_the_other_era(visit: &mut Visit, other: &Voice) {
    let (tools, _) = tools(visit, other);
    visit.seen.tools_other_era = Some(tools);
    visit.probe("ping", other.request("ping", json!({})));
}

/// All tools, from as many pages as the server makes of them, and whether they came to an end.
fn tools(visit: &mut Visit, voice: &Voice) -> (Vec<Value>, bool) {
    let mut tools = Vec::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = visit.wire.send(voice.request("tools/list", params));
        let modern = voice.is_modern();
        visit.seen.tool_pages.push((modern, Arc::clone(&page)));
        let Some(result) = page.result() else {
            return (tools, false);
        };
        if let Some(Value::Array(more)) = result.get("tools") {
            let room = MAX_TOOLS.saturating_sub(tools.len());
            tools.extend(more.iter().take(room).cloned());
            if more.len() > room {
                return (tools, false);
            }
        }
        match result.get("nextCursor").and_then(Value::as_str) {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return (tools, true),
        }
    }
    (tools, false)
}
