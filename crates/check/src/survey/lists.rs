//! The lists of a server: tools in both eras and twice, resources, prompts, templates.

use std::sync::Arc;

use serde_json::{Value, json};

use super::SurveySession;
use crate::exchange::RecordedExchange;
use crate::request_builder::McpRequestBuilder;

/// The most tools and pages of tools that are looked at.
pub(crate) const MAX_TOOLS: usize = 1_000;
pub(crate) const MAX_PAGES: usize = 50;

pub(super) fn read(visit: &mut SurveySession) {
    let Some(main) = visit.main.take() else {
        return;
    };
    let (tools, ended) = tools(visit, &main);
    visit.survey.tools = tools;
    visit.survey.tools_listed = ended;
    visit.survey.tools_again = once_more(visit, &main);
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
        list_in_other_era(visit, &other);
        visit.other = Some(other);
    } else if !main.is_modern() {
        visit.probe("ping", main.request("ping", json!({})));
    }
    visit.main = Some(main);
}

/// What a client that begins with `initialize` sees of a server that also speaks the newer revision.
pub(super) fn list_in_other_era(visit: &mut SurveySession, other: &McpRequestBuilder) {
    visit.survey.tools_other_era = once_more(visit, other);
    visit.probe("ping", other.request("ping", json!({})));
}

/// The list again, to be held against the first; `None` where the check had no room for all of it.
fn once_more(visit: &mut SurveySession, voice: &McpRequestBuilder) -> Option<ToolList> {
    let (tools, _) = tools(visit, voice);
    let (_, last) = visit.survey.tool_pages.last()?;
    (!last.was_not_sent()).then_some(tools)
}

/// All tools, from as many pages as the server makes of them, and whether they came to an end.
fn tools(visit: &mut SurveySession, voice: &McpRequestBuilder) -> (ToolList, bool) {
    let mut tools = ToolList::default();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = visit.wire.send(voice.request("tools/list", params));
        let modern = voice.is_modern();
        visit.survey.tool_pages.push((modern, Arc::clone(&page)));
        let Some(result) = page.result() else {
            return (tools, false);
        };
        if !tools.add(&page) {
            return (tools, false);
        }
        match result.get("nextCursor").and_then(Value::as_str) {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return (tools, true),
        }
    }
    (tools, false)
}

/// The tools of a list, which stay in the answers that they came with: descriptors may be large, and every list is
/// asked for more than once.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolList {
    /// Each page with how many of its tools count.
    pages: Vec<(Arc<RecordedExchange>, usize)>,
    length: usize,
}

impl ToolList {
    /// Takes the tools of a page, as far as there is room; says whether there was.
    fn add(&mut self, page: &Arc<RecordedExchange>) -> bool {
        let listed = tools_of(page).len();
        let taken = listed.min(MAX_TOOLS.saturating_sub(self.length));
        self.length += taken;
        self.pages.push((Arc::clone(page), taken));
        taken == listed
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Value> {
        let pages = self.pages.iter();
        pages.flat_map(|(page, taken)| tools_of(page).iter().take(*taken))
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

fn tools_of(page: &RecordedExchange) -> &[Value] {
    let listed = page.result().and_then(|result| result.get("tools"));
    listed.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
