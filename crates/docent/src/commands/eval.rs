//! `docent eval`: measures search quality on judged queries and fails below thresholds, or drafts such queries from the
//! documents.

use std::collections::{BTreeSet, HashSet};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use docent_search::Engine;

use super::CommandContext;
use crate::args::EvalArgs;
use crate::cli_error::CliError;
use crate::display_text::shorten;
use crate::eval::judged_queries::{self, JudgedQueries, JudgedQuery};
use crate::eval::qrels::Qrels;
use crate::eval::quality_gate::{self, QualityThresholds};
use crate::eval::query_runner::{self, EvalObserver};
use crate::eval::run_comparison::{BaselineRun, LatencyPercentiles, RunComparison};
use crate::eval::run_json::{self, EvalRun};
use crate::eval::scoring::RunSummary;
use crate::eval::{query_draft, report, run_text};
use crate::knowledge_base::KnowledgeBase;
use crate::output::{self, ProgressReporter};

/// Maximum number of unknown documents that a warning names.
const MAX_NAMED: usize = 3;

pub(super) fn run(context: &CommandContext, eval: &EvalArgs) -> Result<ExitCode, CliError> {
    match (&eval.queries, eval.make) {
        (Some(queries), _) => score(context, eval, queries),
        (None, count) => make(context, eval, count.unwrap_or(1)),
    }
}

fn score(context: &CommandContext, eval: &EvalArgs, queries: &Path) -> Result<ExitCode, CliError> {
    let engine = super::search::engine(context)?;
    let knowledge = KnowledgeBase::new(engine, &context.settings, &context.name());
    let JudgedQueries {
        queries,
        unjudged,
        faults,
    } = read(eval, queries)?;
    let earlier = eval.compare.as_deref().map(BaselineRun::read).transpose()?;
    if let Some(path) = &eval.report {
        ensure_writable(path)?;
    }
    let runtime = super::runtime()?;
    let held = runtime.block_on(knowledge.engine.inventory())?;
    let ids: HashSet<&str> = held.iter().map(|held| held.id.as_str()).collect();
    let unknown = warn_unknown(&queries, &ids);
    let mut progress = EvalProgress::new("searching");
    let outcomes = runtime.block_on(query_runner::run_queries(
        &knowledge,
        queries,
        &mut progress,
    ));
    progress.progress.finish();
    let outcomes = outcomes?;
    let summary = RunSummary::new(&outcomes);
    let latency = LatencyPercentiles {
        p50: summary.p50,
        p99: summary.p99,
    };
    let change = earlier.map(|earlier| RunComparison::new(&earlier, &outcomes, latency));
    let floors = QualityThresholds {
        ndcg: eval.min_ndcg,
        recall: eval.min_recall,
        mrr: eval.min_mrr,
        drop: eval.max_drop,
    };
    let gates = quality_gate::gates(floors, &summary.scores, change.as_ref());
    let run = EvalRun {
        title: &knowledge.title,
        documents: held.len(),
        unjudged,
        skipped: faults.count,
        unknown,
        summary: &summary,
        outcomes: &outcomes,
        gates: &gates,
        change: change.as_ref(),
    };
    show(eval, &run)?;
    if let Some(path) = &eval.report {
        let cases = runtime.block_on(report::cases(&knowledge, &outcomes))?;
        let page = report::page(&run, &cases);
        std::fs::write(path, page).map_err(|error| CliError::io("write", path, error))?;
    }
    quality_gate::enforce(&gates).map(|()| ExitCode::SUCCESS)
}

fn show(eval: &EvalArgs, run: &EvalRun<'_>) -> Result<(), CliError> {
    if eval.json {
        return output::json(&run_json::json(run));
    }
    output::data(&run_text::lines(run))
}

/// Reads the judged queries and warns about lines and queries that were skipped.
fn read(eval: &EvalArgs, queries: &Path) -> Result<JudgedQueries, CliError> {
    let skip = eval.skip_bad;
    let qrels = eval.qrels.as_deref().map(|path| Qrels::read(path, skip));
    let (qrels, of_qrels) = qrels.transpose()?.unzip();
    let mut reading = judged_queries::read(queries, qrels.as_ref(), skip)?;
    if let Some(more) = of_qrels {
        reading.faults.count += more.count;
        reading.faults.named.extend(more.named);
    }
    for named in &reading.faults.named {
        output::say(&format!("skipped: {named}"));
    }
    let hidden = reading.faults.count - reading.faults.named.len();
    if hidden > 0 {
        output::say(&format!("skipped: {hidden} more bad lines"));
    }
    if reading.queries.is_empty() {
        let path = queries.display();
        return Err(
            CliError::usage(format!("no query of `{path}` has a relevant document"))
                .hint("judge at least one: name the ids of documents that answer it"),
        );
    }
    if reading.unjudged > 0 {
        let left_out = run_text::queries(reading.unjudged, "");
        output::warn(
            &format!("{left_out} left out, without a relevant document"),
            None,
        );
    }
    Ok(reading)
}

/// Warns about judged documents that are not in the index and returns their number. They still count in the scores, as
/// relevant documents that were not found.
fn warn_unknown(queries: &[JudgedQuery], ids: &HashSet<&str>) -> usize {
    let judged: BTreeSet<&str> = queries
        .iter()
        .flat_map(|query| query.relevant.keys().map(String::as_str))
        .collect();
    let unknown: Vec<&str> = judged
        .iter()
        .copied()
        .filter(|id| !ids.contains(id))
        .collect();
    if !unknown.is_empty() {
        let named: Vec<_> = unknown
            .iter()
            .take(MAX_NAMED)
            .map(|id| format!("`{}`", shorten(id, 60)))
            .collect();
        let more = if unknown.len() > MAX_NAMED {
            " and others"
        } else {
            ""
        };
        let text = format!(
            "{} of {} judged documents are not in the index: {}{more}",
            unknown.len(),
            judged.len(),
            named.join(", ")
        );
        let hint = "they count as not found; run `docent index`, or compare the ids with those of `docent search --json`";
        output::warn(&text, Some(hint));
    }
    unknown.len()
}

/// Checks that the report can be written before the run, which may take minutes, and not after it.
fn ensure_writable(path: &Path) -> Result<(), CliError> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let there = folder.is_none_or(Path::is_dir);
    if there && !path.is_dir() {
        return Ok(());
    }
    Err(
        CliError::usage(format!("`{}` cannot be written", path.display()))
            .hint("choose a file in an existing folder"),
    )
}

struct EvalProgress {
    progress: ProgressReporter,
    start: Instant,
}

impl EvalProgress {
    fn new(what: &'static str) -> Self {
        Self {
            progress: ProgressReporter::start(what),
            start: Instant::now(),
        }
    }
}

impl EvalObserver for EvalProgress {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn at(&mut self, done: usize, total: usize) {
        self.progress.at(done, total);
    }
}

fn make(context: &CommandContext, eval: &EvalArgs, count: usize) -> Result<ExitCode, CliError> {
    let engine = super::search::engine(context)?;
    if let Some(path) = eval.out.as_deref().filter(|path| path.exists()) {
        return Err(already_exists(path));
    }
    let lines = draft_lines(engine.as_ref(), count, eval.seed.unwrap_or(1))?;
    if lines.len() < count {
        let made = run_text::queries(lines.len(), "");
        output::warn(
            &format!("only {made} of {count} could be drafted"),
            Some("each document gives up to three, and needs some thirty words of text"),
        );
    }
    match &eval.out {
        Some(path) => {
            write_new(path, &lines)?;
            let made = run_text::queries(lines.len(), "");
            output::say(&format!(
                "{made} drafted in {}; read them, correct them, and add your own",
                path.display()
            ));
        }
        None if lines.is_empty() => {}
        None => output::json_lines(&lines)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn draft_lines(engine: &dyn Engine, count: usize, seed: u64) -> Result<Vec<String>, CliError> {
    let mut progress = ProgressReporter::start("drafting");
    let mut report_progress = |done, total| progress.at(done, total);
    let drafts =
        super::runtime()?.block_on(query_draft::make(engine, count, seed, &mut report_progress));
    progress.finish();
    Ok(drafts?
        .iter()
        .map(|draft| output::json_line(&draft.json()))
        .collect())
}

fn write_new(path: &Path, lines: &[String]) -> Result<(), CliError> {
    let all: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(all.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => already_exists(path),
        _ => CliError::io("write", path, error),
    })
}

/// Error for an existing output file. Judgements take manual work, so a file of them is never overwritten.
fn already_exists(path: &Path) -> CliError {
    CliError::usage(format!("`{}` is there already", path.display()))
        .hint("choose another file, or remove it; judged queries are never overwritten")
}
