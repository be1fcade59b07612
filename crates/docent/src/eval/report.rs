//! The HTML report of an evaluation run: one self-contained page without scripts, which can be sent to anyone.

mod chart;
mod safe_html;
mod table;

use docent_search::{DocId, Engine, ReaderIdentity, SearchError};

use super::query_runner::{self, DEEP, QueryOutcome, TOP};
use super::run_comparison::RunComparison;
use super::run_json::EvalRun;
use super::run_text::{queries, significance};
use super::scoring::{MEASURES, RunSummary, millis, worst};
use crate::display_text::pluralize;
use crate::knowledge_base::KnowledgeBase;
use chart::ChartBar;
use safe_html::SafeHtml;

/// How many of the worst queries the report lists.
const MAX_WORST: usize = 20;

/// The style sheet, inlined into the page.
const STYLE: &str = include_str!("report/page.css");

/// A document in the list of a worst query.
#[derive(Clone, Debug)]
pub(crate) struct ReportDocument {
    id: String,
    title: String,
    rank: Option<usize>,
    /// Whether the document is relevant and in the top.
    good: bool,
}

/// One of the worst queries, with the titles of the expected and of the found documents.
#[derive(Clone, Debug)]
pub(crate) struct WorstQuery<'a> {
    outcome: &'a QueryOutcome,
    expected: Vec<ReportDocument>,
    found: Vec<ReportDocument>,
}

/// Loads the titles of the documents of the worst queries; the scores are known already.
pub(crate) async fn cases<'a>(
    knowledge: &KnowledgeBase,
    outcomes: &'a [QueryOutcome],
) -> Result<Vec<WorstQuery<'a>>, SearchError> {
    let mut cases = Vec::new();
    for outcome in worst(outcomes, MAX_WORST) {
        let relevant = &outcome.judged.relevant;
        let hits = query_runner::search_hits(knowledge, &outcome.judged.query, TOP).await?;
        let found = hits.into_iter().zip(1..).map(|(hit, rank)| ReportDocument {
            good: relevant.contains_key(hit.id.as_str()),
            id: hit.id.as_str().to_owned(),
            title: hit.title,
            rank: Some(rank),
        });
        let found = found.take(table::MAX_LISTED).collect();
        let mut expected = Vec::new();
        for one in outcome.expected.iter().take(table::MAX_LISTED) {
            expected.push(ReportDocument {
                title: title(&*knowledge.engine, &one.id).await?,
                id: one.id.clone(),
                rank: one.rank,
                good: one.rank.is_some_and(|rank| rank <= TOP),
            });
        }
        cases.push(WorstQuery {
            outcome,
            expected,
            found,
        });
    }
    Ok(cases)
}

async fn title(engine: &dyn Engine, id: &str) -> Result<String, SearchError> {
    let Ok(id) = DocId::parse(id) else {
        return Ok(String::new());
    };
    let document = engine.fetch(id, ReaderIdentity::owner()).await?;
    Ok(document.map_or_else(
        || "not in the index".to_owned(),
        |found| found.name().into_owned(),
    ))
}

/// Renders the report with score cards, charts, the comparison with a baseline, and the worst queries.
pub(crate) fn page(run: &EvalRun<'_>, cases: &[WorstQuery<'_>]) -> String {
    let title = SafeHtml::text(run.title);
    let mut body = SafeHtml::default();
    body.raw("<header><p class=\"over\">Search quality</p><h1>")
        .add(&title)
        .raw("</h1><p class=\"lead\">");
    body.add(&SafeHtml::text(&lead(run)))
        .raw("</p></header><main>");
    body.add(&cards(run.summary)).add(&gates(run));
    body.raw("<div class=\"grid\">")
        .add(&measures(run.summary))
        .add(&first_rank(run.outcomes))
        .add(&ndcg_histogram(run.outcomes))
        .add(&latency(run))
        .raw("</div>");
    body.add(&table::kinds(run.summary));
    if let Some(change) = run.change {
        body.add(&compared(change));
    }
    body.add(&table::worst(cases))
        .add(&table::meanings())
        .raw("</main>");
    // The CSP blocks scripts and resources, even if escaping failed somewhere.
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} – search quality</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n",
    )
}

fn lead(run: &EvalRun<'_>) -> String {
    let judged = queries(run.summary.queries, "judged ");
    let mut parts = vec![format!(
        "{judged} on {}",
        pluralize(run.documents as u64, "document")
    )];
    let left_out = [
        (run.unjudged, "without a relevant document left out"),
        (run.skipped, "bad lines skipped"),
        (run.unknown, "judged documents not in the index"),
    ];
    let counted = left_out.iter().filter(|(count, _)| *count > 0);
    parts.extend(counted.map(|(count, what)| format!("{count} {what}")));
    parts.join(" · ")
}

fn cards(summary: &RunSummary) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<section class=\"cards\" aria-label=\"Scores\">");
    for (measure, mean) in summary.scores.each() {
        let margin = summary.margin.filter(|_| measure.key == "ndcg_at_10");
        let note = margin.map_or_else(String::new, |margin| format!("± {margin:.3}"));
        html.add(&card(measure.label, &format!("{mean:.3}"), &note));
    }
    html.add(&card("p50", &format!("{:.2}", summary.p50), "ms"));
    html.add(&card("p99", &format!("{:.2}", summary.p99), "ms"));
    html.raw("</section>");
    html
}

fn card(label: &str, value: &str, note: &str) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<div class=\"card\"><span class=\"label\">")
        .add(&SafeHtml::text(label))
        .raw("</span><span class=\"value\">")
        .add(&SafeHtml::text(value))
        .raw("</span><span class=\"note\">")
        .add(&SafeHtml::text(note))
        .raw("</span></div>");
    html
}

fn gates(run: &EvalRun<'_>) -> SafeHtml {
    let mut html = SafeHtml::default();
    for gate in run.gates {
        let (class, word) = if gate.passed() {
            ("gate good", "passed")
        } else {
            ("gate bad", "failed")
        };
        let text = format!(
            "{word}: {} {:.4}, at least {:.4} by {}",
            gate.label, gate.found, gate.least, gate.flag
        );
        html.raw("<p class=\"")
            .raw(class)
            .raw("\">")
            .add(&SafeHtml::text(&text))
            .raw("</p>");
    }
    html
}

fn measures(summary: &RunSummary) -> SafeHtml {
    let bar = |(measure, mean): (&super::scoring::EvalMetric, f64)| ChartBar {
        label: measure.label.to_owned(),
        size: mean,
        shown: format!("{mean:.3}"),
    };
    let bars: Vec<_> = summary.scores.each().map(bar).collect();
    panel(
        "Scores",
        "Each from 0 to 1; longer is better.",
        &chart::rows(&bars, "Scores"),
    )
}

fn first_rank(outcomes: &[QueryOutcome]) -> SafeHtml {
    let steps = [(1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, DEEP)];
    let mut counts: Vec<(String, usize)> = steps
        .iter()
        .map(|(from, to)| {
            let inside = |outcome: &&QueryOutcome| {
                outcome
                    .first
                    .is_some_and(|rank| (*from..=*to).contains(&rank))
            };
            let label = if from == to {
                from.to_string()
            } else {
                format!("{from}–{to}")
            };
            (label, outcomes.iter().filter(inside).count())
        })
        .collect();
    let never = outcomes
        .iter()
        .filter(|outcome| outcome.first.is_none())
        .count();
    counts.push(("none".to_owned(), never));
    panel(
        "Where the first relevant document stands",
        "Queries by its rank; a host shows a model the first ten.",
        &chart::columns(
            &counts,
            "Queries by the rank of their first relevant document",
        ),
    )
}

fn ndcg_histogram(outcomes: &[QueryOutcome]) -> SafeHtml {
    let mut counts = vec![("0".to_owned(), 0)];
    counts.extend((0..10).map(|tenth| (format!(".{tenth}"), 0)));
    counts.push(("1".to_owned(), 0));
    for outcome in outcomes {
        let last = counts.len() - 1;
        let place = if outcome.ndcg <= f64::EPSILON {
            0
        } else if outcome.ndcg >= 1.0 - f64::EPSILON {
            last
        } else {
            // The value is between 0 and 1, so the bin is between 0 and 9.
            (outcome.ndcg * 10.0) as usize + 1
        };
        if let Some((_, count)) = counts.get_mut(place) {
            *count += 1;
        }
    }
    panel(
        "nDCG@10 of each query",
        "From nothing (0) over tenths to the best order there is (1).",
        &chart::columns(&counts, "Queries by their nDCG"),
    )
}

fn latency(run: &EvalRun<'_>) -> SafeHtml {
    let times: Vec<f64> = run
        .outcomes
        .iter()
        .map(|outcome| millis(outcome.time))
        .collect();
    let note = format!(
        "Milliseconds of one search for {TOP} results; half took up to {:.2}, 99 of 100 up to {:.2}.",
        run.summary.p50, run.summary.p99
    );
    panel(
        "Latency",
        &note,
        &chart::columns(&chart::steps(&times), "Queries by their latency"),
    )
}

fn panel(title: &str, note: &str, chart: &SafeHtml) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<section class=\"panel\"><h2>")
        .add(&SafeHtml::text(title))
        .raw("</h2><p class=\"note\">")
        .add(&SafeHtml::text(note))
        .raw("</p>")
        .add(chart)
        .raw("</section>");
    html
}

fn compared(change: &RunComparison) -> SafeHtml {
    let same = change.both - change.better - change.worse;
    let text = format!(
        "In {} that both runs asked: {} better, {} worse, {same} the same. \
         The change of nDCG@10 {} (p = {:.3}). {} only in this run, {} only in the earlier one.",
        queries(change.both, ""),
        change.better,
        change.worse,
        significance(change.p_value),
        change.p_value,
        change.only_now,
        change.only_before
    );
    let mut html = SafeHtml::default();
    html.raw("<section class=\"panel\"><h2>Compared with the earlier run</h2><p class=\"note\">")
        .add(&SafeHtml::text(&text))
        .raw("</p>")
        .add(&table::change(change))
        .raw("</section>");
    html
}

/// The labels of the metrics, for table headers.
fn labels() -> impl Iterator<Item = &'static str> {
    MEASURES.iter().map(|measure| measure.label)
}

#[cfg(test)]
mod tests {
    use super::super::scoring::tests::outcome;
    use super::*;

    const HOSTILE: &str = "</td><script src=\"https://a.example/x.js\">alert(1)</script>&\u{202E}'";

    fn shown(title: &str) -> ReportDocument {
        ReportDocument {
            id: title.to_owned(),
            title: title.to_owned(),
            rank: Some(2),
            good: true,
        }
    }

    fn rendered() -> String {
        let outcomes = [
            outcome(HOSTILE, Some(2), Some(HOSTILE)),
            outcome("fine", Some(1), None),
            outcome("lost", None, None),
        ];
        let summary = RunSummary::new(&outcomes);
        let cases: Vec<_> = worst(&outcomes, MAX_WORST)
            .into_iter()
            .map(|outcome| WorstQuery {
                outcome,
                expected: vec![shown(HOSTILE)],
                found: vec![shown(HOSTILE)],
            })
            .collect();
        let run = EvalRun {
            title: HOSTILE,
            documents: 1,
            unjudged: 2,
            skipped: 0,
            unknown: 0,
            summary: &summary,
            outcomes: &outcomes,
            gates: &[],
            change: None,
        };
        page(&run, &cases)
    }

    #[test]
    fn hostile_text_is_escaped() {
        let page = rendered();
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains('\u{202E}'));
        assert!(page.contains("&lt;script src=&quot;https://a.example/x.js&quot;&gt;"));
        assert!(page.contains("default-src 'none'"));
    }

    /// Tags are balanced, so no text from outside can break the markup.
    #[test]
    fn the_page_is_well_formed() {
        let page = rendered();
        let mut open = vec!["html".to_owned()];
        let start = page.find("<body>").unwrap();
        for tag in page[start..]
            .split('<')
            .skip(1)
            .map(|part| part.split('>').next().unwrap())
        {
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name), "{open:?}");
            } else if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap().to_owned());
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn the_histogram_counts_every_query_once() {
        let page = rendered();
        for label in [
            "nDCG@10 of each query",
            "Latency",
            "Where the first relevant",
        ] {
            assert!(page.contains(label), "{label}");
        }
        assert!(page.contains("2 without a relevant document left out"));
    }
}
