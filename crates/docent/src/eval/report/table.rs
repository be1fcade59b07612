//! Tables of the report: scores by query kind, changes against the baseline, and the worst queries.

use super::super::run_comparison::{QueryDelta, RunComparison};
use super::super::run_text;
use super::super::scoring::{MEASURES, RunSummary};
use super::safe_html::SafeHtml;
use super::{ReportDocument, WorstQuery, labels};

use crate::display_text::{one_line, shorten};

/// How many documents one cell lists.
pub(super) const MAX_LISTED: usize = 3;

/// The length limit of text in a cell, in characters.
const MAX_CELL_CHARS: usize = 160;

/// The table of scores by query kind; empty when the queries have no kinds.
pub(super) fn kinds(summary: &RunSummary) -> SafeHtml {
    let mut html = SafeHtml::default();
    if summary.kinds.is_empty() {
        return html;
    }
    html.raw(
        "<section class=\"panel\"><h2>By kind of query</h2><div class=\"wide\"><table><thead><tr>",
    );
    for label in ["kind", "queries"].into_iter().chain(labels()) {
        html.raw("<th>").add(&SafeHtml::text(label)).raw("</th>");
    }
    html.raw("</tr></thead><tbody>");
    for (kind, count, scores) in &summary.kinds {
        html.raw("<tr><td>").add(&cell(kind)).raw("</td>");
        html.add(&figure(&count.to_string()));
        for (_, mean) in scores.each() {
            html.add(&figure(&format!("{mean:.3}")));
        }
        html.raw("</tr>");
    }
    html.raw("</tbody></table></div></section>");
    html
}

/// The comparison with the baseline: mean scores, and the queries with the largest changes.
pub(super) fn change(change: &RunComparison) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<div class=\"wide\"><table><thead><tr><th>score</th><th>before</th><th>now</th><th>change</th></tr></thead><tbody>");
    for (measure, before, now) in &change.scores {
        html.raw("<tr><td>")
            .add(&SafeHtml::text(measure.label))
            .raw("</td>");
        html.add(&figure(&format!("{before:.3}")))
            .add(&figure(&format!("{now:.3}")));
        html.add(&signed(now - before)).raw("</tr>");
    }
    html.raw("</tbody></table></div>");
    for (title, moves) in [
        ("Gained most", &change.gains),
        ("Lost most", &change.losses),
    ] {
        if !moves.is_empty() {
            html.raw("<h3>")
                .add(&SafeHtml::text(title))
                .raw("</h3>")
                .add(&moved(moves));
        }
    }
    html
}

fn moved(moves: &[QueryDelta]) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<div class=\"wide\"><table><thead><tr><th>query</th><th>before</th><th>now</th><th>change</th></tr></thead><tbody>");
    for one in moves {
        html.raw("<tr><td>").add(&cell(&one.query)).raw("</td>");
        html.add(&figure(&format!("{:.3}", one.before)))
            .add(&figure(&format!("{:.3}", one.now)));
        html.add(&signed(one.gain())).raw("</tr>");
    }
    html.raw("</tbody></table></div>");
    html
}

/// The table of the worst queries, each with its expected and its found documents.
pub(super) fn worst(cases: &[WorstQuery<'_>]) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<section class=\"panel\"><h2>Worst queries</h2>");
    if cases.is_empty() {
        html.raw("<p class=\"note\">Every query has the best order there is.</p></section>");
        return html;
    }
    html.raw("<p class=\"note\">Lowest nDCG@10 first. Relevant documents among the first ten are marked.</p>");
    html.raw("<div class=\"wide\"><table class=\"cases\"><thead><tr><th>nDCG</th><th>query</th><th>expected, with rank</th><th>found</th></tr></thead><tbody>");
    for case in cases {
        html.raw("<tr>")
            .add(&figure(&format!("{:.3}", case.outcome.ndcg)));
        html.raw("<td class=\"query\">")
            .add(&cell(&case.outcome.judged.query));
        if let Some(kind) = &case.outcome.judged.kind {
            html.raw("<span class=\"kind\">")
                .add(&cell(kind))
                .raw("</span>");
        }
        html.raw("</td><td>").add(&list(&case.expected, "nothing"));
        let more = case
            .outcome
            .judged
            .relevant
            .len()
            .saturating_sub(case.expected.len());
        if more > 0 {
            html.raw("<p class=\"note\">")
                .add(&SafeHtml::text(&format!("and {more} more")))
                .raw("</p>");
        }
        html.raw("</td><td>")
            .add(&list(&case.found, "nothing"))
            .raw("</td></tr>");
    }
    html.raw("</tbody></table></div></section>");
    html
}

fn list(documents: &[ReportDocument], none: &'static str) -> SafeHtml {
    let mut html = SafeHtml::default();
    if documents.is_empty() {
        html.raw("<p class=\"note\">").raw(none).raw("</p>");
        return html;
    }
    html.raw("<ul>");
    for document in documents {
        html.raw(if document.good {
            "<li class=\"hit\">"
        } else {
            "<li>"
        });
        let rank = document
            .rank
            .map_or_else(|| "–".to_owned(), |rank| rank.to_string());
        html.raw("<span class=\"rank\">")
            .add(&SafeHtml::text(&rank))
            .raw("</span><span>");
        let title = if document.title.is_empty() {
            &document.id
        } else {
            &document.title
        };
        html.add(&cell(title));
        if *title != document.id {
            html.raw("<span class=\"id\">")
                .add(&cell(&document.id))
                .raw("</span>");
        }
        html.raw("</span></li>");
    }
    html.raw("</ul>");
    html
}

/// The definitions of all metrics.
pub(super) fn meanings() -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<section class=\"panel\"><h2>What the numbers mean</h2><dl>");
    for measure in &MEASURES {
        html.raw("<dt>")
            .add(&SafeHtml::text(measure.label))
            .raw("</dt><dd>");
        html.add(&SafeHtml::text(measure.meaning)).raw("</dd>");
    }
    html.raw("<dt>p50, p99</dt><dd>the time that 50 and 99 of 100 searches kept within, by the nearest rank</dd></dl></section>");
    html
}

fn figure(text: &str) -> SafeHtml {
    let mut html = SafeHtml::default();
    html.raw("<td class=\"figure\">")
        .add(&SafeHtml::text(text))
        .raw("</td>");
    html
}

fn signed(change: f64) -> SafeHtml {
    let class = if change > 0.000_5 {
        "<td class=\"figure good\">"
    } else if change < -0.000_5 {
        "<td class=\"figure bad\">"
    } else {
        "<td class=\"figure\">"
    };
    let mut html = SafeHtml::default();
    html.raw(class)
        .add(&SafeHtml::text(&run_text::signed(change)))
        .raw("</td>");
    html
}

/// Untrusted text, shortened for a cell. `bdi` isolates its writing direction from the rest of the table.
fn cell(text: &str) -> SafeHtml {
    let short = shorten(&one_line(text, 2 * MAX_CELL_CHARS), MAX_CELL_CHARS);
    let mut html = SafeHtml::default();
    html.raw("<bdi>").add(&SafeHtml::text(&short)).raw("</bdi>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_end_at_their_bound() {
        let at = |count: usize| cell(&"a".repeat(count)).to_string();
        assert_eq!(
            at(MAX_CELL_CHARS),
            format!("<bdi>{}</bdi>", "a".repeat(MAX_CELL_CHARS))
        );
        assert_eq!(
            at(MAX_CELL_CHARS + 1),
            format!("<bdi>{}…</bdi>", "a".repeat(MAX_CELL_CHARS))
        );
    }

    #[test]
    fn gains_and_losses_have_their_colours() {
        assert!(signed(0.1).to_string().contains("good"));
        assert!(signed(-0.1).to_string().contains("bad\">-0.100"));
        assert_eq!(signed(0.0).to_string(), "<td class=\"figure\">+0.000</td>");
    }
}
