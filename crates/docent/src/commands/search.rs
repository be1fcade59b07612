//! `docent search`: searches the index of a folder in the terminal, with the rights of its owner.

use std::process::ExitCode;
use std::sync::Arc;

use docent_search::{
    EmbeddedEngine, Engine, HitExcerpt, ParsedQuery, Query, ReaderIdentity, SearchError, SearchHit,
    TextAnchors, grammar,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::CommandContext;
use crate::args;
use crate::cli_error::CliError;
use crate::knowledge_base::KnowledgeBase;
use crate::model_settings::{self, CpuCoreLimit};
use crate::output::{self, AnsiStyler};
use crate::tools::search_notes;

pub(super) fn run(
    context: &CommandContext,
    search: &args::SearchArgs,
) -> Result<ExitCode, CliError> {
    let engine = engine(context)?;
    let knowledge = KnowledgeBase::new(engine, &context.settings, &context.name());
    let (parsed, found) = super::runtime()?.block_on(async {
        let catalog = knowledge.engine.catalog(ReaderIdentity::owner()).await?;
        let parsed = grammar::parse(&search.query, &catalog, (knowledge.today)());
        let query = Query::parsed(&parsed, knowledge.results, ReaderIdentity::owner())
            .method(knowledge.method)
            .diversity(knowledge.diversity)
            .excerpts()
            .count_total();
        let found = knowledge.engine.search(query).await?;
        Ok::<_, SearchError>((parsed, found))
    })?;
    if search.json {
        let results: Vec<_> = found
            .hits
            .iter()
            .map(|hit| hit_json(&knowledge, hit, search))
            .collect();
        let understood = RawValue::from_string(search_notes::query_report(&parsed)).ok();
        output::json(&json!({
            "results": results,
            "total": found.total,
            "understood": understood,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    say_filters(&parsed);
    if found.hits.is_empty() {
        output::say("no results");
        return Ok(ExitCode::SUCCESS);
    }
    let styler = AnsiStyler::for_data();
    let blocks: Vec<_> = (1..)
        .zip(&found.hits)
        .map(|(n, hit)| {
            render_hit(
                n,
                hit,
                &HitRenderContext {
                    knowledge: &knowledge,
                    parsed: &parsed,
                    search,
                    styler,
                },
            )
        })
        .collect();
    output::styled(&blocks.join("\n\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the index of the folder read-only.
pub(super) fn engine(context: &CommandContext) -> Result<Arc<dyn Engine>, CliError> {
    let embedder = model_settings::embedder(&context.settings, CpuCoreLimit::All)?;
    if context.settings.engine.is_shared() {
        return Ok(Arc::new(context.settings.engine.open_read_only(embedder)?));
    }
    let opened = EmbeddedEngine::open_read_only(context.index_location.existing(), embedder);
    let engine = opened.map_err(|error| match error {
        SearchError::Missing { .. } => {
            let folder = context.folder.display();
            CliError::failed(format!("`{folder}` is not indexed"))
                .hint(format!("index it with `docent index {folder}`"))
        }
        other => CliError::from(other),
    })?;
    Ok(Arc::new(engine))
}

/// Reports which conditions of the query were applied as filters, and which were ignored and why.
fn say_filters(parsed: &ParsedQuery) {
    for one in &parsed.applied {
        output::say(&format!("only where {}", one.meaning));
    }
    for one in &parsed.ignored {
        let hint = one.meant.as_ref().map(|meant| format!("write `{meant}`"));
        let text = format!("`{}` is ignored: {}", one.written, one.reason);
        output::warn(&text, hint.as_deref());
    }
}

/// Shared context for rendering hits.
struct HitRenderContext<'a> {
    knowledge: &'a KnowledgeBase,
    parsed: &'a ParsedQuery,
    search: &'a args::SearchArgs,
    styler: AnsiStyler,
}

fn render_hit(number: usize, hit: &SearchHit, rendering: &HitRenderContext<'_>) -> String {
    let title = if hit.title.is_empty() {
        hit.id.as_str()
    } else {
        &hit.title
    };
    let url = rendering.knowledge.address(&hit.document);
    let mut lines = vec![format!("id: {}", hit.id)];
    if !url.is_empty() {
        lines.push(format!("url: {url}"));
    }
    if let Some(date) = &hit.document.date {
        lines.push(format!("date: {date}"));
    }
    if rendering.search.explain {
        lines.push(explain_score(hit));
    }
    let styler = rendering.styler;
    let mut lines: Vec<_> = lines.iter().map(|line| styler.plain(line)).collect();
    lines.push(styler.words(&hit.snippet, &rendering.parsed.text));
    let lines: Vec<_> = lines.iter().map(|line| format!("\n    {line}")).collect();
    format!("{number:>2}. {}{}", styler.bold(title), lines.concat())
}

/// Explains the rank of a hit in one line: BM25 score, proximity bonus, cosine similarity and their log-odds.
fn explain_score(hit: &SearchHit) -> String {
    let why = &hit.why;
    let words = if why.lexical > 0.0 {
        format!(
            "lexical {:.2} ({:.2} of it for adjacent words)",
            why.lexical, why.pairs
        )
    } else {
        "no lexical match".to_owned()
    };
    let meaning = why.semantic.map_or("no vector".to_owned(), |cosine| {
        format!("semantic {cosine:.3}")
    });
    format!(
        "why: score {:.3} = {words}, {meaning}; log-odds {:+.2} lexical, {:+.2} semantic",
        hit.score, why.odds.0, why.odds.1
    )
}

fn hit_json(knowledge: &KnowledgeBase, hit: &SearchHit, search: &args::SearchArgs) -> Value {
    let excerpts = hit.excerpts.iter();
    let why = search.explain.then_some(&hit.why).map(|why| {
        json!({
            "lexical": why.lexical,
            "pairs": why.pairs,
            "semantic": why.semantic,
            "odds": {"lexical": why.odds.0, "semantic": why.odds.1},
        })
    });
    // One pass over the text finds the anchors of all passages.
    let last = hit.excerpts.iter().map(|one| one.range.start).max();
    let anchors = last.map_or_else(TextAnchors::default, |last| {
        TextAnchors::until(&hit.document.text, last)
    });
    let mut wire = json!({
        "id": hit.id.as_str(),
        "title": hit.title,
        "url": knowledge.address(&hit.document),
        "text": hit.snippet,
        "score": hit.score,
        "passages": excerpts
            .map(|one| passage_json(&anchors, one))
            .collect::<Vec<_>>(),
    });
    if let (Some(members), Some(why)) = (wire.as_object_mut(), why) {
        members.insert("why".to_owned(), why);
    }
    wire
}

/// Formats a passage as JSON, with the anchor of its page or heading if there is one.
fn passage_json(anchors: &TextAnchors, one: &HitExcerpt) -> Value {
    let mut wire = json!({"index": one.index, "path": one.path, "text": one.text});
    let anchor = anchors.at(one.range.start);
    if let (Some(members), Some(anchor)) = (wire.as_object_mut(), anchor) {
        members.insert("anchor".to_owned(), json!(anchor));
    }
    wire
}
