//! Arguments of `docent eval`.

use std::path::PathBuf;

use clap::Args as Flags;
use clap::builder::RangedU64ValueParser;

use crate::eval::query_draft::MAX_MADE;

const EXAMPLES: &str = "\
Examples:
  docent eval --make 50 --path ./documents --out queries.jsonl
                                      draft 50 queries to correct and add to
  docent eval queries.jsonl --path ./documents
                                      measure search quality on them
  docent eval queries.jsonl --path ./documents --min-ndcg 0.6 --report report.html
                                      fail a build below 0.6, and write a report
  docent eval queries.jsonl --path ./documents --json > before.json
  docent eval queries.jsonl --path ./documents --compare before.json --max-drop 0.01
                                      compare before and after a change
  docent eval queries.jsonl --path ./documents --mode lexical --compare before.json
                                      see what semantic search adds
  docent eval queries.jsonl --qrels qrels.tsv
                                      use a test collection in BEIR or TREC format

A line of QUERIES is {\"query\": \"ferry fares\", \"relevant\": [\"id\", …]}, or with grades:
{\"query\": \"ferry fares\", \"relevant\": {\"id\": 2, …}}. `id` and `kind` are optional.
`docent search --json` prints the ids of documents. See docs/eval.md.

Exit status: 0 done, 1 failure or below a threshold, 2 wrong usage or a malformed line.";

/// Arguments of `docent eval`, which measures search quality or drafts queries to measure it with.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES, mut_args = super::with_default)]
pub struct EvalArgs {
    /// File with the judged queries, one JSON object per line
    #[arg(required_unless_present = "make", conflicts_with = "make")]
    pub queries: Option<PathBuf>,

    /// The folder with the documents
    #[arg(long, default_value = ".")]
    pub path: PathBuf,

    /// Where the index is stored [default: PATH/.docent/index, or the user's cache directory]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Search method: hybrid, lexical (keywords only), semantic (embeddings only)
    #[arg(long, value_name = "MODE", conflicts_with = "make")]
    pub mode: Option<String>,

    /// Relevance judgments (qrels) in a separate file: query, document and grade, tab-separated
    #[arg(long, value_name = "FILE", conflicts_with = "make")]
    pub qrels: Option<PathBuf>,

    /// Skip malformed lines instead of failing
    #[arg(long, conflicts_with = "make")]
    pub skip_bad: bool,

    /// Fail if nDCG@10 is below this value, 0 to 1
    #[arg(long, value_name = "SHARE", conflicts_with = "make", value_parser = share)]
    pub min_ndcg: Option<f64>,

    /// Fail if recall@10 is below this value, 0 to 1
    #[arg(long, value_name = "SHARE", conflicts_with = "make", value_parser = share)]
    pub min_recall: Option<f64>,

    /// Fail if MRR@10 is below this value, 0 to 1
    #[arg(long, value_name = "SHARE", conflicts_with = "make", value_parser = share)]
    pub min_mrr: Option<f64>,

    /// Compare with an earlier run, which `--json` printed
    #[arg(long, value_name = "FILE", conflicts_with = "make")]
    pub compare: Option<PathBuf>,

    /// Fail if nDCG@10 drops by more than this against the earlier run, 0 to 1
    #[arg(long, value_name = "SHARE", requires = "compare", value_parser = share)]
    pub max_drop: Option<f64>,

    /// Write an HTML report with plots and the worst queries
    #[arg(long, value_name = "FILE", conflicts_with = "make")]
    pub report: Option<PathBuf>,

    /// Print the results as JSON
    #[arg(long, conflicts_with = "make")]
    pub json: bool,

    /// Draft this many queries from the documents, 1 to 10000
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_MADE as u64))]
    pub make: Option<usize>,

    /// Write the drafts to a new file instead of stdout
    #[arg(long, value_name = "FILE", conflicts_with = "queries")]
    pub out: Option<PathBuf>,

    /// Random seed for the drafts [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "queries")]
    pub seed: Option<u64>,
}

fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| "write a number from 0 to 1, such as 0.6".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::CliArgs;

    #[test]
    fn shares_are_numbers_from_0_to_1() {
        for good in ["0", "1", "0.6", "1e-3"] {
            assert!(share(good).is_ok(), "{good}");
        }
        for bad in ["", "x", "-0.1", "1.01", "NaN", "inf"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn flags_that_do_not_go_together_are_refused() {
        let typed = |rest: &str| {
            let all = ["docent", "eval"]
                .into_iter()
                .chain(rest.split_whitespace());
            CliArgs::try_parse_from(all).is_ok()
        };
        for good in [
            "q.jsonl",
            "--make 1",
            "--make 10000 --seed 3 --out q.jsonl",
            "q --compare a --max-drop 0",
        ] {
            assert!(typed(good), "{good}");
        }
        let bad = [
            "",
            "q --make 1",
            "--make 0",
            "--make 10001",
            "--make 1 --json",
            "--make 1 --min-ndcg 0.5",
            "q --out x",
            "q --seed 1",
            "q --max-drop 0.1",
            "q --min-ndcg 2",
        ];
        for bad in bad {
            assert!(!typed(bad), "{bad}");
        }
    }
}
