//! The terminal output of an evaluation run: scores, comparison with the baseline, and the worst queries.

use super::query_runner::{DEEP, QueryOutcome};
use super::run_comparison::{QueryDelta, RunComparison};
use super::run_json::EvalRun;
use super::scoring::{RunSummary, worst};

use crate::display_text::{one_line, pluralize};

/// How many of the worst queries are printed.
const MAX_WORST: usize = 5;

/// The length limit of a query in one line, in characters.
const MAX_QUERY_CHARS: usize = 60;

/// Renders a run as lines of text.
pub(crate) fn lines(run: &EvalRun<'_>) -> String {
    let mut lines = vec![
        format!(
            "{}: {}, {}",
            run.title,
            queries(run.summary.queries, "judged "),
            pluralize(run.documents as u64, "document")
        ),
        String::new(),
    ];
    lines.extend(scores(run.summary));
    lines.extend(kinds(run.summary));
    lines.extend(run.change.into_iter().flat_map(change));
    lines.extend(worst_queries(run.outcomes));
    lines.join("\n")
}

fn scores(summary: &RunSummary) -> Vec<String> {
    let mut lines: Vec<_> = summary
        .scores
        .each()
        .map(|(measure, mean)| format!("  {:<13} {mean:.3}  {}", measure.label, measure.meaning))
        .collect();
    if let (Some(first), Some(margin)) = (lines.first_mut(), summary.margin) {
        first.push_str(&format!(" (± {margin:.3})"));
    }
    let RunSummary { p50, p99, .. } = summary;
    lines.push(format!(
        "  {:<13} p50 {p50:.2} ms, p99 {p99:.2} ms",
        "latency"
    ));
    lines
}

fn kinds(summary: &RunSummary) -> Vec<String> {
    if summary.kinds.is_empty() {
        return Vec::new();
    }
    let row = |cells: [&str; 5]| {
        let [kind, count, ndcg, recall, mrr] = cells;
        format!("  {kind:<20} {count:>7} {ndcg:>9} {recall:>10} {mrr:>7}")
    };
    let head = row(["kind", "queries", "nDCG@10", "recall@10", "MRR@10"]);
    let rows = summary.kinds.iter().map(|(kind, count, scores)| {
        let shown = |key: &str| format!("{:.3}", scores.get(key));
        row([
            &one_line(kind, 20),
            &count.to_string(),
            &shown("ndcg_at_10"),
            &shown("recall_at_10"),
            &shown("mrr_at_10"),
        ])
    });
    [String::new(), head].into_iter().chain(rows).collect()
}

fn change(change: &RunComparison) -> Vec<String> {
    let RunComparison {
        both,
        only_now,
        only_before,
        better,
        worse,
        ..
    } = change;
    let same = both - better - worse;
    let mut lines = vec![
        String::new(),
        format!(
            "compared in {} ({only_now} only in this run, {only_before} only in the earlier one)",
            queries(*both, "")
        ),
    ];
    lines.extend(change.scores.iter().map(|(measure, before, now)| {
        let gain = signed(now - before);
        format!("  {:<13} {before:.3} -> {now:.3}  {gain}", measure.label)
    }));
    for (label, (before, now)) in [("p50", change.p50), ("p99", change.p99)] {
        lines.push(format!("  {label:<13} {before:.2} ms -> {now:.2} ms"));
    }
    let p_value = change.p_value;
    lines.push(format!(
        "  nDCG@10: {better} better, {worse} worse, {same} the same; the change {} (p = {p_value:.3})",
        significance(p_value)
    ));
    let moves = |word: &str, moves: &[QueryDelta]| -> Vec<String> {
        let line = |m: &QueryDelta| {
            format!(
                "  {word:<6} {}  {}",
                signed(m.gain()),
                short_query(&m.query)
            )
        };
        moves.iter().take(MAX_WORST).map(line).collect()
    };
    lines.extend(moves("better", &change.gains));
    lines.extend(moves("worse", &change.losses));
    lines
}

/// A count with its noun, as in `1 judged query` and `2 judged queries`.
pub(crate) fn queries(count: usize, which: &str) -> String {
    let noun = if count == 1 { "query" } else { "queries" };
    format!("{count} {which}{noun}")
}

/// Formats a change with its sign; a value that rounds to zero is `+0.000`, never `-0.000`.
pub(crate) fn signed(change: f64) -> String {
    let change = if change.abs() < 0.000_5 { 0.0 } else { change };
    format!("{change:+.3}")
}

/// Describes a p-value at the conventional significance level of 0.05.
pub(crate) fn significance(p_value: f64) -> &'static str {
    if p_value < 0.05 {
        "is more than chance"
    } else {
        "may be chance"
    }
}

fn worst_queries(outcomes: &[QueryOutcome]) -> Vec<String> {
    let worst = worst(outcomes, MAX_WORST);
    if worst.is_empty() {
        return Vec::new();
    }
    let line = |outcome: &&QueryOutcome| {
        let expected = outcome.expected.first().map_or("", |one| one.id.as_str());
        let place = outcome.first.map_or_else(
            || format!("nothing relevant in the first {DEEP}"),
            |rank| format!("first relevant at rank {rank}"),
        );
        format!(
            "  {:.3}  {}\n         {place}; expected {}",
            outcome.ndcg,
            short_query(&outcome.judged.query),
            one_line(expected, MAX_QUERY_CHARS)
        )
    };
    [String::new(), "worst queries by nDCG@10".to_owned()]
        .into_iter()
        .chain(worst.iter().map(line))
        .collect()
}

fn short_query(query: &str) -> String {
    crate::display_text::shorten(&one_line(query, 2 * MAX_QUERY_CHARS), MAX_QUERY_CHARS)
}

#[cfg(test)]
mod tests {
    use super::super::scoring::tests::outcome;
    use super::*;

    #[test]
    fn changes_that_round_to_zero_are_positive() {
        assert_eq!(signed(-0.000_1), "+0.000");
        assert_eq!(signed(-0.000_6), "-0.001");
        assert_eq!(signed(0.25), "+0.250");
    }

    #[test]
    fn long_queries_end_with_an_ellipsis() {
        let at = |count: usize| short_query(&"a ".repeat(count));
        assert_eq!(
            at(MAX_QUERY_CHARS / 2),
            "a ".repeat(MAX_QUERY_CHARS / 2).trim_end()
        );
        assert!(at(MAX_QUERY_CHARS / 2 + 1).ends_with('…'));
    }

    #[test]
    fn a_run_reads_as_a_page() {
        let outcomes = [
            outcome("the ferry", Some(1), Some("keywords")),
            outcome("the levee", Some(20), Some("phrase")),
            outcome(&"long ".repeat(30), None, Some("phrase")),
        ];
        let summary = RunSummary::new(&outcomes);
        let run = EvalRun {
            title: "Corrowin",
            documents: 1,
            unjudged: 0,
            skipped: 0,
            unknown: 0,
            summary: &summary,
            outcomes: &outcomes,
            gates: &[],
            change: None,
        };
        let text = lines(&run);
        for part in [
            "Corrowin: 3 judged queries, 1 document\n\n  nDCG@10       0.333  how near",
            "(± 0.653)\n",
            "  coverage      0.667  how many queries find anything\n",
            "  latency       p50 20.00 ms, p99 50.00 ms\n",
            "  kind                 queries   nDCG@10  recall@10  MRR@10\n",
            "  phrase                     2     0.000      0.000   0.000\n",
            "\n  0.000  the levee\n         first relevant at rank 20; expected r",
        ] {
            assert!(text.contains(part), "{part}\n---\n{text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }
}
