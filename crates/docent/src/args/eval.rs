//! What `docent eval` takes.

use std::path::PathBuf;

use clap::Args as Flags;
use clap::builder::RangedU64ValueParser;

use crate::eval::query_draft::MAX_MADE;

const EXAMPLES: &str = "\
Examples:
  docent eval --make 50 --path ./documents --out queries.jsonl
                                      draft 50 queries to correct and add to
  docent eval queries.jsonl --path ./documents
                                      score the search on them
  docent eval queries.jsonl --path ./documents --min-ndcg 0.6 --report report.html
                                      fail a build below 0.6, and write a page
  docent eval queries.jsonl --path ./documents --json > before.json
  docent eval queries.jsonl --path ./documents --compare before.json --max-drop 0.01
                                      see what a change of documents or version does
  docent eval queries.jsonl --path ./documents --mode lexical --compare before.json
                                      see what searching by meaning adds
  docent eval queries.jsonl --qrels qrels.tsv
                                      use a collection in the form of BEIR or TREC

A line of QUERIES is {\"query\": \"ferry fares\", \"relevant\": [\"id\", …]}, or has grades:
{\"query\": \"ferry fares\", \"relevant\": {\"id\": 2, …}}. `id` and `kind` are optional.
`docent search --json` shows the ids of documents. See docs/eval.md.

Exit status: 0 done, 1 failed or below a limit, 2 wrong usage or a bad line.";

/// What `docent eval` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct EvalArgs {
    /// The judged queries, one JSON object a line
    #[arg(required_unless_present = "make", conflicts_with = "make")]
    pub queries: Option<PathBuf>,

    /// The folder with the documents
    #[arg(long, default_value = ".")]
    pub path: PathBuf,

    /// Where the index lives [default: PATH/.docent/index, or the user's cache]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// What to search by: hybrid, lexical (words alone), semantic (meaning alone) [default: hybrid]
    #[arg(long, value_name = "MODE", conflicts_with = "make")]
    pub mode: Option<String>,

    /// Judgements in a file of their own: query, document and grade, separated by tabs
    #[arg(long, value_name = "FILE", conflicts_with = "make")]
    pub qrels: Option<PathBuf>,

    /// Leave bad lines out instead of ending with an error
    #[arg(long, conflicts_with = "make")]
    pub skip_bad: bool,

    /// Fail when nDCG@10 is below this, 0 to 1
    #[arg(long, value_name = "SHARE", conflicts_with = "make", value_parser = share)]
    pub min_ndcg: Option<f64>,

    /// Fail when recall@10 is below this, 0 to 1
    #[arg(long, value_name = "SHARE", conflicts_with = "make", value_parser = share)]
    pub min_recall: Option<f64>,

    /// Fail when MRR@10 is below this, 0 to 1
    #[arg(long, value_name = "SHARE", conflicts_with = "make", value_parser = share)]
    pub min_mrr: Option<f64>,

    /// An earlier run, as `--json` printed it, to compare with
    #[arg(long, value_name = "FILE", conflicts_with = "make")]
    pub compare: Option<PathBuf>,

    /// Fail when nDCG@10 is lower than in the earlier run by more than this, 0 to 1
    #[arg(long, value_name = "SHARE", requires = "compare", value_parser = share)]
    pub max_drop: Option<f64>,

    /// Write a page of HTML with plots and the worst queries
    #[arg(long, value_name = "FILE", conflicts_with = "make")]
    pub report: Option<PathBuf>,

    /// Print everything as JSON
    #[arg(long, conflicts_with = "make")]
    pub json: bool,

    /// Draft this many queries from the documents, 1 to 10000
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_MADE as u64))]
    pub make: Option<usize>,

    /// Write the drafts to a new file instead of stdout
    #[arg(long, value_name = "FILE", conflicts_with = "queries")]
    pub out: Option<PathBuf>,

    /// Another number drafts other queries [default: 1]
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
