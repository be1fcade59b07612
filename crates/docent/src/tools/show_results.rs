//! The `show_results` tool behind the results widget: cards, facet filters and a timeline for a query or for given ids.
//! `widgets/src/payload.ts` declares the payload in `_meta`.

mod results_query;

use std::sync::Arc;

use docent_mcp::{Answer, Context, Failure, Tool, ToolAnnotations, ToolAudience, ToolDescriptor};
use docent_search::{
    Catalog, Day, Document, FacetCounts, FieldKind, MAX_EXCERPT_CHARS, MatchHighlighter, Query,
    RankingMethod, ReaderIdentity, SearchHit, passages,
};
use schemars::JsonSchema;
use serde::Serialize;

use self::results_query::{EchoedQuery, ResultsQuery};
use super::date_buckets::{self, DateBuckets};
use super::document_view::{self, FieldValue, MAX_STRUCTURED_BYTES};
use super::fetch::FetchTool;
use super::search_notes;
use crate::display_text::one_line;
use crate::knowledge_base::KnowledgeBase;
use crate::layout::TextSpan;

pub use self::results_query::ShowResultsInput;

/// The name of the widget; its payload is the member `docent/results` of `_meta`.
pub const WIDGET: &str = "results";
const META: &str = "docent/results";

/// The page size of the widget.
const LIMIT: usize = 10;

/// Maximum number of facets, and of values of each.
const MAX_FACETS: usize = 6;
const MAX_VALUES: usize = 12;

/// Maximum length of a facet value in characters; the widget shows no longer one.
const MAX_CHIP_CHARS: usize = 80;

/// Maximum number of fields on a card, and of characters of each value.
const MAX_FIELDS: usize = 6;
const MAX_FIELD_CHARS: usize = 80;

/// How many characters of each title and passage the model reads.
#[derive(Clone, Copy)]
struct BriefBudget {
    title: usize,
    text: usize,
}

/// The budgets, tried in this order until the output fits.
const BUDGETS: [BriefBudget; 4] = [
    BriefBudget::new(200, 240),
    BriefBudget::new(120, 120),
    BriefBudget::new(80, 40),
    BriefBudget::new(40, 0),
];

impl BriefBudget {
    const fn new(title: usize, text: usize) -> Self {
        Self { title, text }
    }
}

/// The `show_results` tool of a knowledge base. The widget calls it too, when the user changes a filter.
pub struct ShowResultsTool(pub Arc<KnowledgeBase>);

/// Output of `show_results` for the model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShowResultsOutput {
    /// The search query.
    query: String,
    /// Total number of results.
    total: u64,
    /// The results that the user sees, best first.
    results: Vec<ResultBrief>,
}

/// One result, as the model reads it.
#[derive(Debug, Serialize, JsonSchema)]
struct ResultBrief {
    id: String,
    title: String,
    url: String,
    date: String,
    text: String,
}

/// The payload of the widget, sent in `_meta` so that the model does not read it.
#[derive(Debug, Serialize)]
struct ResultsView {
    corpus: String,
    asked: EchoedQuery,
    total: u64,
    cards: Vec<ResultCard>,
    facets: Vec<FacetChips>,
    histogram: Option<DateHistogram>,
    note: String,
    next: Option<usize>,
}

#[derive(Debug, Serialize)]
struct ResultCard {
    id: String,
    title: String,
    url: String,
    source: String,
    date: String,
    passage: usize,
    path: String,
    excerpt: Vec<TextSpan>,
    fields: Vec<FieldValue>,
    /// The passage as plain text, for the model.
    #[serde(skip)]
    plain: String,
}

#[derive(Debug, Serialize)]
struct FacetChips {
    field: String,
    values: Vec<FacetChip>,
}

#[derive(Debug, Serialize)]
struct FacetChip {
    value: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct DateHistogram {
    unit: &'static str,
    bars: Vec<HistogramBar>,
}

#[derive(Debug, Serialize)]
struct HistogramBar {
    from: String,
    to: String,
    count: u64,
}

impl ShowResultsTool {
    /// Shows the documents with these ids in order. Unknown ids are listed in the note beside the others.
    async fn by_ids(
        &self,
        question: ResultsQuery,
        reader: &ReaderIdentity,
    ) -> Result<ResultsView, Failure> {
        let fetch = FetchTool(self.0.clone());
        let mut cards = Vec::new();
        let mut missing = Vec::new();
        for id in &question.asked.ids {
            match fetch.locate(id, reader).await? {
                Some((document, start)) => {
                    let marker = MatchHighlighter::new(&document, &question.parsed.text);
                    let all = passages(&document);
                    let at = match start {
                        Some(start) => document_view::passage_at(&all, start),
                        None => document_view::matching_passages(&document, &all, &marker).1,
                    };
                    let passage = all.get(at);
                    let text = passage.and_then(|one| document.text.get(one.range.clone()));
                    let excerpt = CardExcerpt {
                        passage: at,
                        path: passage.map_or_else(String::new, |one| one.path.clone()),
                        text: one_line(text.unwrap_or_default(), MAX_EXCERPT_CHARS),
                    };
                    cards.push(self.card(&document, excerpt, &marker));
                }
                None => missing.push(format!("`{}`", one_line(id, 80))),
            }
        }
        if cards.is_empty() {
            return Err(
                Failure::caller(format!("no document with id {}", missing.join(", ")))
                    .hint("ids come from `search`; search again"),
            );
        }
        let note = (!missing.is_empty()).then(|| format!("Not found: {}.", missing.join(", ")));
        Ok(ResultsView {
            corpus: self.0.title.clone(),
            total: cards.len() as u64,
            asked: question.asked,
            cards,
            facets: Vec::new(),
            histogram: None,
            note: note.unwrap_or_default(),
            next: None,
        })
    }

    async fn by_query(
        &self,
        catalog: &Catalog,
        question: ResultsQuery,
        reader: &ReaderIdentity,
    ) -> Result<ResultsView, Failure> {
        let ResultsQuery { asked, parsed, .. } = &question;
        let offset = asked.offset;
        let query = Query::parsed(parsed, LIMIT, reader.clone())
            .method(self.0.method)
            .diversity(self.0.diversity)
            .offset(offset)
            .sort(question.sort)
            .facets(facet_fields(catalog))
            .count_total()
            .excerpts();
        let found = self.0.engine.search(query).await?;
        let cards: Vec<ResultCard> = found
            .hits
            .iter()
            .map(|hit| self.hit(hit, &parsed.text))
            .collect();
        let seen = offset + cards.len();
        // The total counts lexical matches, but semantic hits need not contain a query word.
        let least = if cards.is_empty() { 0 } else { seen as u64 };
        let total = found.total.unwrap_or(0).max(least);
        let histogram = match date_buckets::date_buckets(catalog) {
            // A user who chose a range without results needs the timeline to choose another one.
            Some(buckets) if total > 0 || question.has_day_bounds() => {
                Some(self.count(&question, buckets, reader).await?)
            }
            _ => None,
        };
        let note = search_notes::search_note(
            &question.typed,
            catalog,
            search_notes::ResultAvailability::Some,
        );
        Ok(ResultsView {
            corpus: self.0.title.clone(),
            total,
            next: (cards.len() == LIMIT && (seen as u64) < total).then_some(seen),
            cards,
            facets: found.facets.into_iter().filter_map(chips).collect(),
            histogram,
            note: note.unwrap_or_default(),
            asked: question.asked,
        })
    }

    /// Counts the results in each date bucket, ignoring the selected range. Only lexical matches are counted, as in the
    /// total.
    async fn count(
        &self,
        question: &ResultsQuery,
        buckets: DateBuckets,
        reader: &ReaderIdentity,
    ) -> Result<DateHistogram, Failure> {
        let DateBuckets { unit, bars } = buckets;
        let parsed = question.within(None, None);
        let query = Query::parsed(&parsed, 1, reader.clone()).method(RankingMethod::Lexical);
        let field = date_buckets::DATE.to_owned();
        let counts = self
            .0
            .engine
            .count_date_ranges(query, field, bars.clone())
            .await?;
        let bar = |((from, to), count): ((Day, Day), u64)| HistogramBar {
            from: from.to_string(),
            to: to.to_string(),
            count,
        };
        let bars = bars.into_iter().zip(counts).map(bar).collect();
        Ok(DateHistogram { unit, bars })
    }

    fn hit(&self, hit: &SearchHit, words: &str) -> ResultCard {
        let marker = MatchHighlighter::new(&hit.document, words);
        let best = hit.excerpts.first();
        let excerpt = CardExcerpt {
            passage: best.map_or(0, |best| best.index),
            path: best.map_or_else(String::new, |best| best.path.clone()),
            text: best.map_or(&hit.snippet, |best| &best.text).clone(),
        };
        self.card(&hit.document, excerpt, &marker)
    }

    fn card(
        &self,
        document: &Document,
        excerpt: CardExcerpt,
        marker: &MatchHighlighter,
    ) -> ResultCard {
        let id = document.id.as_str();
        ResultCard {
            id: id.to_owned(),
            title: document_view::title(document),
            url: self.0.address_at(document, excerpt.passage),
            source: one_line(&document.source, 200),
            date: document_view::day(document),
            passage: excerpt.passage,
            path: one_line(&excerpt.path, 200),
            excerpt: document_view::excerpt(&excerpt.text, marker),
            plain: excerpt.text,
            fields: document_view::fields(document, MAX_FIELDS, MAX_FIELD_CHARS),
        }
    }
}

/// The passage that a card shows: its number, the headings above it, and its text.
struct CardExcerpt {
    passage: usize,
    path: String,
    text: String,
}

/// The facet fields, those with the fewest values first: a choice among three parties narrows more, with less reading,
/// than one among sixty speakers. Fields that fewer than half of the documents have come last.
fn facet_fields(catalog: &Catalog) -> Vec<String> {
    let fields = catalog.fields.iter();
    let mut chosen: Vec<_> = fields
        .filter(|field| {
            matches!(field.kind, FieldKind::Keyword | FieldKind::List) && field.values.len() > 1
        })
        .collect();
    // The sort is stable, so ties keep the order of the catalog: most documents first.
    chosen.sort_by_key(|field| {
        let is_rare = field.documents.saturating_mul(2) < catalog.documents;
        (
            is_rare,
            field.more,
            field.values.len() > MAX_VALUES,
            field.values.len(),
        )
    });
    let names = chosen.into_iter().map(|field| field.name.clone());
    names.take(MAX_FACETS).collect()
}

fn chips(facet: FacetCounts) -> Option<FacetChips> {
    let values = facet.values.into_iter();
    let values = values.filter(|(value, _)| value.chars().count() <= MAX_CHIP_CHARS);
    let values: Vec<_> = values
        .take(MAX_VALUES)
        .map(|(value, count)| FacetChip { value, count })
        .collect();
    (!values.is_empty()).then_some(FacetChips {
        field: facet.field,
        values,
    })
}

impl ResultsView {
    /// The structured content for the model, within the size limit of all hosts.
    fn model_output(&self) -> ShowResultsOutput {
        let mut output = self.within(BriefBudget::new(0, 0));
        for budget in BUDGETS {
            output = self.within(budget);
            if size(&output) <= MAX_STRUCTURED_BYTES {
                return output;
            }
        }
        while size(&output) > MAX_STRUCTURED_BYTES && output.results.pop().is_some() {}
        output
    }

    fn within(&self, budget: BriefBudget) -> ShowResultsOutput {
        let results = self.cards.iter().map(|card| ResultBrief {
            id: card.id.clone(),
            title: one_line(&card.title, budget.title),
            // A longer URL does not help a model; the widget has it.
            url: Some(card.url.clone())
                .filter(|url| url.len() <= 300)
                .unwrap_or_default(),
            date: card.date.clone(),
            text: one_line(&card.plain, budget.text),
        });
        ShowResultsOutput {
            query: one_line(&self.asked.query, 1_000),
            total: self.total,
            results: results.collect(),
        }
    }

    /// The text content, for models that read no structured content and for hosts without widgets.
    fn summary_text(&self, output: &ShowResultsOutput) -> String {
        let mut text = format!(
            "The user sees {} of {} results.",
            output.results.len(),
            self.total
        );
        for (number, result) in output.results.iter().enumerate() {
            text.push_str(&format!(
                "\n{}. {} (id: {})",
                number + 1,
                result.title,
                result.id
            ));
        }
        if !self.note.is_empty() {
            text.push_str(&format!("\n{}", self.note));
        }
        text
    }
}

fn size(output: &ShowResultsOutput) -> usize {
    serde_json::to_string(output).map_or(usize::MAX, |json| json.len())
}

impl Tool for ShowResultsTool {
    type Input = ShowResultsInput;
    type Output = ShowResultsOutput;

    fn descriptor(&self) -> ToolDescriptor {
        let description = format!(
            "Use this when the user wants to see search results of {}, browse them or narrow them down by \
             hand. Shows cards with passages, filters and a timeline. Pass ids from search to show those \
             documents, or a query with filters. To read results yourself, call search.",
            self.0.title
        );
        ToolDescriptor::new("show_results", "Show results", description, ToolAnnotations::READ_ONLY)
            .input_schema(results_query::schema())
            .widget(WIDGET)
            // The widget calls the tool when the user chooses a filter.
            .audience(ToolAudience::Everyone)
            .status("Showing results…", "Results shown")
    }

    async fn call(
        &self,
        input: ShowResultsInput,
        context: Context,
    ) -> Result<Answer<ShowResultsOutput>, Failure> {
        let reader = self.0.reader(context.caller());
        let (catalog, _) = self.0.fields(&reader).await?;
        let question = results_query::read(input, &catalog, (self.0.today)())?;
        let view = if question.asked.ids.is_empty() {
            self.by_query(&catalog, question, &reader).await?
        } else {
            self.by_ids(question, &reader).await?
        };
        let output = view.model_output();
        let summary = view.summary_text(&output);
        let ids = context.touched(view.cards.iter().map(|card| &card.id));
        let answer = Answer::new(output)
            .touched(ids)
            .text(summary)
            .meta(META, serde_json::to_value(&view)?);
        Ok(search_notes::with_unready(answer, &self.0))
    }
}

#[cfg(test)]
mod tests {
    use docent_search::{DocId, MemoryEngine};

    use super::*;
    use crate::settings::Settings;

    #[test]
    fn the_structured_content_stays_small_with_long_titles_and_addresses() {
        let tool = ShowResultsTool(Arc::new(KnowledgeBase::new(
            Arc::new(MemoryEngine::new()),
            &Settings::default(),
            "folder",
        )));
        let document = |n: usize| Document {
            id: DocId::parse(&format!("{n:02}{}", "\"".repeat(510))).unwrap(),
            title: "𝔘".repeat(400),
            text: String::new(),
            url: Some(format!("https://a.example/{}", "x".repeat(8_000))),
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
            readers: docent_search::AllowedReaders::Everyone,
        };
        let cards = (0..20).map(|n| {
            let document = document(n);
            let marker = MatchHighlighter::new(&document, "");
            let excerpt = CardExcerpt {
                passage: 0,
                path: String::new(),
                text: "𝔘\"".repeat(250),
            };
            tool.card(&document, excerpt, &marker)
        });
        let view = ResultsView {
            corpus: String::new(),
            asked: EchoedQuery::default(),
            total: 20,
            cards: cards.collect(),
            facets: Vec::new(),
            histogram: None,
            note: String::new(),
            next: None,
        };
        let output = view.model_output();
        assert!(size(&output) <= MAX_STRUCTURED_BYTES);
        assert!(!output.results.is_empty());
        assert!(
            output
                .results
                .first()
                .is_some_and(|one| one.id.starts_with("00"))
        );
    }
}
