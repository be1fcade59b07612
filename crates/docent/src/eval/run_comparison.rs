//! Comparison of a run with a baseline: changes of each score and query, and a permutation test for significance.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;

use super::judged_queries::MAX_QUERIES;
use super::metrics;
use super::query_runner::QueryOutcome;
use super::run_json::FORMAT;
use super::scoring::{EvalMetric, MEASURES};
use super::splitmix::SplitMix64;
use crate::cli_error::CliError;

/// The size limit of a baseline file: a hundred thousand queries with ids of maximum length fit.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// How many queries are listed among the gains and among the losses.
const MAX_MOVES: usize = 10;

/// The random draws of a permutation test, which bound its time.
const MAX_DRAWS: usize = 20_000_000;

/// Differences below this are rounding errors.
const ROUNDING: f64 = 1e-6;

/// The baseline: an earlier run, read from the output of `--json`.
#[derive(Debug, Deserialize)]
pub(crate) struct BaselineRun {
    format: u32,
    latency_ms: LatencyPercentiles,
    queries: Vec<BaselineQuery>,
}

/// Percentiles of the latency of searches in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct LatencyPercentiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

#[derive(Debug, Deserialize)]
struct BaselineQuery {
    id: String,
    scores: HashMap<String, Option<f64>>,
}

impl BaselineRun {
    /// Reads a baseline file within the size limit.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        Self::within(path, MAX_BYTES)
    }

    /// Reads at most `most` bytes. A longer file is truncated and therefore fails to parse.
    fn within(path: &Path, most: u64) -> Result<Self, CliError> {
        let shown = path.display();
        let hint = "keep a run to compare with by `docent eval queries.jsonl --json > before.json`";
        let file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                CliError::usage(format!("there is no file `{shown}`")).hint(hint)
            }
            _ => CliError::io("open", path, error),
        })?;
        let read = serde_json::from_reader(BufReader::new(file.take(most)));
        let wrong = || CliError::usage(format!("`{shown}` is not an earlier run")).hint(hint);
        let earlier: Self = read.map_err(|error| wrong().because(error))?;
        if earlier.format != FORMAT || earlier.queries.len() > MAX_QUERIES {
            return Err(wrong());
        }
        Ok(earlier)
    }
}

/// The changes between two runs, over the queries that both have in common.
#[derive(Debug)]
pub(crate) struct RunComparison {
    /// The number of queries in both runs.
    pub(crate) both: usize,
    /// The number of queries only in this run.
    pub(crate) only_now: usize,
    /// The number of queries only in the baseline.
    pub(crate) only_before: usize,
    /// The mean of each metric, before and now.
    pub(crate) scores: Vec<(&'static EvalMetric, f64, f64)>,
    /// Latency percentiles, before and now.
    pub(crate) p50: (f64, f64),
    pub(crate) p99: (f64, f64),
    /// The number of queries whose nDCG improved.
    pub(crate) better: usize,
    /// The number of queries whose nDCG got worse.
    pub(crate) worse: usize,
    /// The p-value of the difference of nDCG under the null hypothesis that both runs are equally good.
    pub(crate) p_value: f64,
    /// The queries with the largest gains and with the largest losses.
    pub(crate) gains: Vec<QueryDelta>,
    pub(crate) losses: Vec<QueryDelta>,
}

/// One query whose nDCG changed.
#[derive(Clone, Debug)]
pub(crate) struct QueryDelta {
    pub(crate) id: String,
    pub(crate) query: String,
    pub(crate) before: f64,
    pub(crate) now: f64,
}

impl QueryDelta {
    /// The change of nDCG, positive for an improvement.
    pub(crate) fn gain(&self) -> f64 {
        self.now - self.before
    }
}

impl RunComparison {
    /// Compares a run with a baseline; `latency` is that of this run.
    pub(crate) fn new(
        earlier: &BaselineRun,
        outcomes: &[QueryOutcome],
        latency: LatencyPercentiles,
    ) -> Self {
        let before: HashMap<&str, &BaselineQuery> =
            earlier.queries.iter().map(|b| (b.id.as_str(), b)).collect();
        let pairs: Vec<(&BaselineQuery, &QueryOutcome)> = outcomes
            .iter()
            .filter_map(|now| Some((*before.get(now.judged.id.as_str())?, now)))
            .collect();
        let ids: HashSet<&str> = outcomes.iter().map(|o| o.judged.id.as_str()).collect();
        let mut moves: Vec<QueryDelta> = pairs
            .iter()
            .filter_map(|(b, now)| query_delta(b, now))
            .collect();
        moves.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
        let differences: Vec<f64> = moves.iter().map(QueryDelta::gain).collect();
        let better = moves.iter().filter(|m| m.gain() > ROUNDING).count();
        let worse = moves.iter().filter(|m| m.gain() < -ROUNDING).count();
        let losses = moves.iter().rev().take(worse.min(MAX_MOVES));
        Self {
            both: pairs.len(),
            only_now: outcomes.len() - pairs.len(),
            only_before: before.keys().filter(|id| !ids.contains(*id)).count(),
            scores: MEASURES.iter().filter_map(|m| means(m, &pairs)).collect(),
            p50: (earlier.latency_ms.p50, latency.p50),
            p99: (earlier.latency_ms.p99, latency.p99),
            better,
            worse,
            p_value: permutation_p_value(&differences),
            gains: moves.iter().take(better.min(MAX_MOVES)).cloned().collect(),
            losses: losses.cloned().collect(),
        }
    }

    /// The change of the mean nDCG.
    pub(crate) fn gain(&self) -> f64 {
        self.scores
            .first()
            .map_or(0.0, |(_, before, now)| now - before)
    }
}

fn query_delta(before: &BaselineQuery, now: &QueryOutcome) -> Option<QueryDelta> {
    let (measure, now_is) = (MEASURES.first()?, now.ndcg);
    Some(QueryDelta {
        id: now.judged.id.clone(),
        query: now.judged.query.clone(),
        before: (*before.scores.get(measure.key)?)?,
        now: now_is,
    })
}

/// The means of a metric over the queries that have it in both runs; `None` when no query has.
fn means(
    measure: &'static EvalMetric,
    pairs: &[(&BaselineQuery, &QueryOutcome)],
) -> Option<(&'static EvalMetric, f64, f64)> {
    let of_both = |(before, now): &(&BaselineQuery, &QueryOutcome)| {
        Some(((*before.scores.get(measure.key)?)?, (measure.of)(now)?))
    };
    let (before, now): (Vec<f64>, Vec<f64>) = pairs.iter().filter_map(of_both).unzip();
    let means = (metrics::mean(&before), metrics::mean(&now));
    (!before.is_empty()).then_some((measure, means.0, means.1))
}

/// Paired permutation test with random signs. If both runs were equally good, each difference could as well have the
/// opposite sign; the p-value is how often random signs give a mean at least as far from zero.
fn permutation_p_value(differences: &[f64]) -> f64 {
    let observed = differences.iter().sum::<f64>().abs();
    let moved: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|d| d.abs() > ROUNDING)
        .collect();
    if moved.is_empty() {
        return 1.0;
    }
    let rounds = (MAX_DRAWS / moved.len()).clamp(200, 10_000);
    let mut rng = SplitMix64::new(1);
    let mut draw = || {
        let signed = |d: &f64| if rng.next() >> 63 == 0 { *d } else { -*d };
        moved.iter().map(signed).sum::<f64>().abs()
    };
    let as_far = (0..rounds)
        .filter(|_| draw() >= observed - ROUNDING)
        .count();
    // The observed signs count as one draw, so the p-value is never 0.
    (as_far + 1) as f64 / (rounds + 1) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::scoring::tests::outcome;
    use super::*;

    fn earlier(rows: &[(&str, f64)]) -> BaselineRun {
        let queries: Vec<_> = rows
            .iter()
            .map(|(id, ndcg)| json!({"id": id, "scores": {"ndcg_at_10": ndcg, "diversity_at_10": null}}))
            .collect();
        let file =
            json!({"format": FORMAT, "latency_ms": {"p50": 1.0, "p99": 2.0}, "queries": queries});
        serde_json::from_value(file).unwrap()
    }

    fn latency(p50: f64, p99: f64) -> LatencyPercentiles {
        LatencyPercentiles { p50, p99 }
    }

    #[test]
    fn gains_and_losses_are_separated() {
        let outcomes = [
            outcome("same", Some(1), None),
            outcome("better", Some(1), None),
            outcome("worse", None, None),
            outcome("new", Some(1), None),
        ];
        let earlier = earlier(&[
            ("same", 1.0),
            ("better", 0.5),
            ("worse", 0.25),
            ("old", 1.0),
        ]);
        let found = RunComparison::new(&earlier, &outcomes, latency(3.0, 4.0));
        assert_eq!((found.both, found.only_now, found.only_before), (3, 1, 1));
        assert_eq!((found.better, found.worse), (1, 1));
        assert_eq!((found.p50, found.p99), ((1.0, 3.0), (2.0, 4.0)));
        let [(measure, before, now)] = found.scores.as_slice() else {
            panic!("{:?}", found.scores.len());
        };
        assert_eq!(measure.key, "ndcg_at_10");
        assert!((before - 1.75 / 3.0).abs() < 1e-9 && (now - 2.0 / 3.0).abs() < 1e-9);
        assert!((found.gain() - 0.25 / 3.0).abs() < 1e-9);
        assert_eq!(
            (found.gains[0].id.as_str(), found.gains[0].gain()),
            ("better", 0.5)
        );
        assert_eq!(
            (found.losses[0].id.as_str(), found.losses[0].gain()),
            ("worse", -0.25)
        );
        assert_eq!((found.gains.len(), found.losses.len()), (1, 1));
    }

    #[test]
    fn moves_are_listed_up_to_a_bound() {
        let names: Vec<String> = (0..=MAX_MOVES).map(|n| n.to_string()).collect();
        let rows: Vec<_> = names.iter().map(|name| (name.as_str(), 0.0)).collect();
        let compared = |count: usize| {
            let outcomes: Vec<_> = names
                .iter()
                .take(count)
                .map(|n| outcome(n, Some(1), None))
                .collect();
            RunComparison::new(&earlier(&rows), &outcomes, latency(0.0, 0.0))
        };
        assert_eq!(compared(MAX_MOVES).gains.len(), MAX_MOVES);
        let more = compared(MAX_MOVES + 1);
        assert_eq!((more.gains.len(), more.better), (MAX_MOVES, MAX_MOVES + 1));
    }

    /// With n differences of one size and sign, random signs all agree in 2 of 2^n cases.
    #[test]
    fn one_lucky_query_may_be_chance_and_many_are_not() {
        assert!((permutation_p_value(&[]) - 1.0).abs() < 1e-9);
        assert!((permutation_p_value(&[0.0, 0.0]) - 1.0).abs() < 1e-9);
        assert!((permutation_p_value(&[0.5, 0.0]) - 1.0).abs() < 1e-9);
        assert!((permutation_p_value(&[0.5, -0.5]) - 1.0).abs() < 1e-9);
        let five = permutation_p_value(&[0.2; 5]);
        assert!((five - 2.0 / 32.0).abs() < 0.01, "{five}");
        assert!(permutation_p_value(&[0.2; 30]) < 0.001);
    }

    #[test]
    fn a_file_that_is_no_baseline_run_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("before.json");
        let mut queries = vec![json!({"id": "a", "scores": {}}); MAX_QUERIES];
        let file = |format: u32, queries: &[serde_json::Value]| {
            json!({"format": format, "latency_ms": {"p50": 1, "p99": 1}, "queries": queries})
                .to_string()
        };
        std::fs::write(&path, file(FORMAT, &queries)).unwrap();
        assert_eq!(BaselineRun::read(&path).unwrap().queries.len(), MAX_QUERIES);
        queries.extend(queries.first().cloned());
        let texts = [
            "{}".to_owned(),
            "x".to_owned(),
            file(FORMAT + 1, &[]),
            file(FORMAT, &queries),
        ];
        for text in texts {
            std::fs::write(&path, &text).unwrap();
            let problem = BaselineRun::read(&path).unwrap_err();
            assert!(
                problem.message.ends_with("is not an earlier run"),
                "{problem}"
            );
            assert_eq!(problem.exit, 2);
        }
        let small = file(FORMAT, &[]);
        std::fs::write(&path, &small).unwrap();
        assert!(BaselineRun::within(&path, small.len() as u64).is_ok());
        assert!(BaselineRun::within(&path, small.len() as u64 - 1).is_err());
        assert_eq!(
            BaselineRun::read(&dir.path().join("none"))
                .unwrap_err()
                .exit,
            2
        );
    }
}
