//! `docent search`: asks the index of a folder, here in the terminal.

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
use crate::model_settings::{self, CoreShare};
use crate::output::{self, AnsiStyler};
use crate::tools::search_notes;

pub(super) fn run(desk: &CommandContext, search: &args::SearchArgs) -> Result<ExitCode, CliError> {
    let engine = engine(desk)?;
    let knowledge = KnowledgeBase::new(engine, &desk.settings, &desk.name());
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
    let paint = AnsiStyler::for_data();
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
                    paint,
                },
            )
        })
        .collect();
    output::styled(&blocks.join("\n\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The index of the folder, opened to be read.
pub(super) fn engine(desk: &CommandContext) -> Result<Arc<dyn Engine>, CliError> {
    let embedder = model_settings::embedder(&desk.settings, CoreShare::All)?;
    if desk.settings.engine.is_shared() {
        return Ok(Arc::new(desk.settings.engine.open_read_only(embedder)?));
    }
    let opened = EmbeddedEngine::open_read_only(desk.place.existing(), embedder);
    let engine = opened.map_err(|error| match error {
        SearchError::Missing { .. } => {
            let folder = desk.folder.display();
            CliError::failed(format!("`{folder}` is not indexed"))
                .hint(format!("index it with `docent index {folder}`"))
        }
        other => CliError::from(other),
    })?;
    Ok(Arc::new(engine))
}

/// Says what was taken for a filter and what was not.
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

/// What a block needs besides its hit.
struct HitRenderContext<'a> {
    knowledge: &'a KnowledgeBase,
    parsed: &'a ParsedQuery,
    search: &'a args::SearchArgs,
    paint: AnsiStyler,
}

fn render_hit(number: usize, hit: &SearchHit, shown: &HitRenderContext<'_>) -> String {
    let title = if hit.title.is_empty() {
        hit.id.as_str()
    } else {
        &hit.title
    };
    let url = shown.knowledge.address(&hit.document);
    let mut lines = vec![format!("id: {}", hit.id)];
    if !url.is_empty() {
        lines.push(format!("url: {url}"));
    }
    if let Some(date) = &hit.document.date {
        lines.push(format!("date: {date}"));
    }
    if shown.search.explain {
        lines.push(explain_score(hit));
    }
    let paint = shown.paint;
    let mut lines: Vec<_> = lines.iter().map(|line| paint.plain(line)).collect();
    lines.push(paint.words(&hit.snippet, &shown.parsed.text));
    let lines: Vec<_> = lines.iter().map(|line| format!("\n    {line}")).collect();
    format!("{number:>2}. {}{}", paint.bold(title), lines.concat())
}

/// Why a hit is where it is, in one line.
fn explain_score(hit: &SearchHit) -> String {
    let why = &hit.why;
    let words = if why.lexical > 0.0 {
        format!(
            "words {:.2} ({:.2} of it side by side)",
            why.lexical, why.pairs
        )
    } else {
        "no word of it".to_owned()
    };
    let meaning = why
        .semantic
        .map_or("meaning not known".to_owned(), |cosine| {
            format!("meaning {cosine:.3}")
        });
    format!(
        "why: score {:.3} = {words}, {meaning}; odds {:+.2} by words, {:+.2} by meaning",
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
    // One walk over the text for all of its passages.
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

/// A passage, with what leads to it where there is such a thing.
fn passage_json(anchors: &TextAnchors, one: &HitExcerpt) -> Value {
    let mut wire = json!({"index": one.index, "path": one.path, "text": one.text});
    let anchor = anchors.at(one.range.start);
    if let (Some(members), Some(anchor)) = (wire.as_object_mut(), anchor) {
        members.insert("anchor".to_owned(), json!(anchor));
    }
    wire
}
