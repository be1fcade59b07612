//! Quality gates: fail `docent eval`, and so a CI build, when a score is below its threshold.

use super::run_comparison::RunComparison;
use super::scoring::{MEASURES, MeanScores};
use crate::cli_error::CliError;

/// The tolerance for a score exactly on its threshold: result files of earlier runs round to six decimal places.
const ROUNDING: f64 = 1e-6;

/// One threshold for a run, with the score that was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QualityGate {
    /// The command-line flag that sets it.
    pub(crate) flag: &'static str,
    /// The name of the metric, for messages.
    pub(crate) label: String,
    /// The lowest value that still passes.
    pub(crate) least: f64,
    /// The measured value of this run.
    pub(crate) found: f64,
}

/// The thresholds from the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QualityThresholds {
    pub(crate) ndcg: Option<f64>,
    pub(crate) recall: Option<f64>,
    pub(crate) mrr: Option<f64>,
    /// The largest permitted drop of nDCG against an earlier run.
    pub(crate) drop: Option<f64>,
}

impl QualityGate {
    /// Whether the measured value reaches the threshold, within rounding.
    pub(crate) fn passed(&self) -> bool {
        self.found >= self.least - ROUNDING
    }

    fn failure_message(&self) -> String {
        let Self {
            flag,
            label,
            least,
            found,
        } = self;
        format!("{label} is {found:.4}, below the {least:.4} of `{flag}`")
    }
}

/// Builds the gates of a run from the thresholds that are set.
pub(crate) fn gates(
    thresholds: QualityThresholds,
    scores: &MeanScores,
    change: Option<&RunComparison>,
) -> Vec<QualityGate> {
    let of_scores = [
        ("--min-ndcg", "ndcg_at_10", thresholds.ndcg),
        ("--min-recall", "recall_at_10", thresholds.recall),
        ("--min-mrr", "mrr_at_10", thresholds.mrr),
    ];
    let label = |key: &str| {
        let found = MEASURES.iter().find(|measure| measure.key == key);
        found.map_or(key, |measure| measure.label).to_owned()
    };
    let mut gates: Vec<QualityGate> = of_scores
        .into_iter()
        .filter_map(|(flag, key, least)| {
            Some(QualityGate {
                flag,
                label: label(key),
                least: least?,
                found: scores.get(key),
            })
        })
        .collect();
    gates.extend(
        thresholds
            .drop
            .zip(change)
            .map(|(drop, change)| QualityGate {
                flag: "--max-drop",
                label: "the change of nDCG@10".to_owned(),
                least: 0.0 - drop,
                found: change.gain(),
            }),
    );
    gates
}

/// Fails the command with one message for all gates that did not pass.
pub(crate) fn enforce(gates: &[QualityGate]) -> Result<(), CliError> {
    let failed = gates.iter().filter(|gate| !gate.passed());
    let messages: Vec<_> = failed.map(QualityGate::failure_message).collect();
    if messages.is_empty() {
        return Ok(());
    }
    Err(CliError::failed(messages.join("; "))
        .hint("look at the worst queries; `--report report.html` shows what each of them found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(thresholds: QualityThresholds) -> Result<(), CliError> {
        let scores = MeanScores([0.6, 0.5, 1.0, 0.7, 1.0, 1.0]);
        enforce(&gates(thresholds, &scores, None))
    }

    #[test]
    fn a_score_below_its_floor_ends_the_command() {
        let of = |ndcg: Option<f64>, recall: Option<f64>, mrr: Option<f64>| {
            verdict(QualityThresholds {
                ndcg,
                recall,
                mrr,
                drop: None,
            })
        };
        assert!(of(None, None, None).is_ok());
        assert!(of(Some(0.6), Some(0.5), Some(0.7)).is_ok());
        let one = of(Some(0.600_1), None, None).unwrap_err();
        assert_eq!(
            one.message,
            "nDCG@10 is 0.6000, below the 0.6001 of `--min-ndcg`"
        );
        assert_eq!(one.exit, 1);
        let two = of(Some(0.5), Some(0.9), Some(0.8)).unwrap_err();
        assert_eq!(
            two.message,
            "recall@10 is 0.5000, below the 0.9000 of `--min-recall`; \
             MRR@10 is 0.7000, below the 0.8000 of `--min-mrr`"
        );
    }

    #[test]
    fn a_run_may_lose_only_so_much() {
        let lost = |gain: f64, drop: f64| QualityGate {
            flag: "--max-drop",
            label: "the change of nDCG@10".to_owned(),
            least: 0.0 - drop,
            found: gain,
        };
        assert!(lost(-0.02, 0.02).passed());
        assert!(lost(0.0, 0.0).passed());
        assert!(lost(-0.000_000_6, 0.0).passed());
        assert!(!lost(-0.000_01, 0.0).passed());
        assert!(!lost(-0.03, 0.02).passed());
        assert_eq!(
            enforce(&[lost(-0.03, 0.02)]).unwrap_err().message,
            "the change of nDCG@10 is -0.0300, below the -0.0200 of `--max-drop`"
        );
    }
}
