//! Reads the lists of a server: tools (twice, and in both protocol eras), resources, resource templates and prompts.
//!
//! The second reading shows whether the list is stable, the other era whether all clients see the same tools. Pages and
//! tools are bounded, since a server may hand out cursors forever.

use std::sync::Arc;

use serde_json::{Value, json};

use super::SurveySession;
use crate::exchange::RecordedExchange;
use crate::request_builder::McpRequestBuilder;

/// The most tools, and the most pages of tools, that are read.
pub(crate) const MAX_TOOLS: usize = 1_000;
pub(crate) const MAX_PAGES: usize = 50;

pub(super) fn read(ctx: &mut SurveySession) {
    let Some(main) = ctx.main.take() else {
        return;
    };
    let (tools, ended) = tools(ctx, &main);
    ctx.survey.tools = tools;
    ctx.survey.tools_listed = ended;
    ctx.survey.tools_again = once_more(ctx, &main);
    for (name, method) in [
        ("resources", "resources/list"),
        ("templates", "resources/templates/list"),
        ("prompts", "prompts/list"),
    ] {
        ctx.probe(name, main.request(method, json!({})));
    }
    ctx.probe(
        "unknown-method",
        main.request("docent/no-such-method", json!({})),
    );
    let cursor = json!({"cursor": "docent-check-no-such-cursor"});
    ctx.probe("bad-cursor", main.request("tools/list", cursor));
    if let Some(other) = ctx.other.take() {
        list_in_other_era(ctx, &other);
        ctx.other = Some(other);
    } else if !main.is_modern() {
        ctx.probe("ping", main.request("ping", json!({})));
    }
    ctx.main = Some(main);
}

/// Lists the tools again as a legacy client, of a server that also speaks 2026-07-28.
pub(super) fn list_in_other_era(ctx: &mut SurveySession, other: &McpRequestBuilder) {
    ctx.survey.tools_other_era = once_more(ctx, other);
    ctx.probe("ping", other.request("ping", json!({})));
}

/// Lists the tools again, to compare with the first list; `None` where the budget ended before the list did.
fn once_more(ctx: &mut SurveySession, builder: &McpRequestBuilder) -> Option<ToolList> {
    let (tools, _) = tools(ctx, builder);
    let (_, last) = ctx.survey.tool_pages.last()?;
    (!last.was_not_sent()).then_some(tools)
}

/// Reads all pages of tools by following `nextCursor`. The flag says whether the last page was reached.
fn tools(ctx: &mut SurveySession, builder: &McpRequestBuilder) -> (ToolList, bool) {
    let mut tools = ToolList::default();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = ctx.wire.send(builder.request("tools/list", params));
        let modern = builder.is_modern();
        ctx.survey.tool_pages.push((modern, Arc::clone(&page)));
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

/// A list of tools that borrows from the recorded pages, each with the number of its tools that count. Descriptors may
/// be large and every list is read more than once, so they are not copied.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolList {
    pages: Vec<(Arc<RecordedExchange>, usize)>,
    length: usize,
}

impl ToolList {
    /// Adds the tools of a page up to the limit; false where the limit cut some off.
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
