//! The lists of a server: tools in both eras and twice, resources, prompts, templates.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Visit;
use crate::exchange::Exchange;
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
    visit.seen.tools_again = once_more(visit, &main);
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
    visit.seen.tools_other_era = once_more(visit, other);
    visit.probe("ping", other.request("ping", json!({})));
}

/// The list again, to be held against the first; `None` where the check had no room for all of it.
fn once_more(visit: &mut Visit, voice: &Voice) -> Option<ToolList> {
    let (tools, _) = tools(visit, voice);
    let (_, last) = visit.seen.tool_pages.last()?;
    (!last.is_unsent()).then_some(tools)
}

/// All tools, from as many pages as the server makes of them, and whether they came to an end.
fn tools(visit: &mut Visit, voice: &Voice) -> (ToolList, bool) {
    let mut tools = ToolList::default();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = visit.wire.send(voice.request("tools/list", params));
        let modern = voice.is_modern();
        visit.seen.tool_pages.push((modern, Arc::clone(&page)));
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
    pages: Vec<(Arc<Exchange>, usize)>,
    length: usize,
}

impl ToolList {
    /// Takes the tools of a page, as far as there is room; says whether there was.
    fn add(&mut self, page: &Arc<Exchange>) -> bool {
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

fn tools_of(page: &Exchange) -> &[Value] {
    let listed = page.result().and_then(|result| result.get("tools"));
    listed.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
