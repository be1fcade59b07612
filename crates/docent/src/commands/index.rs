//! `docent index`: updates the index of a folder once and reports what changed. Exit status 3 means that files or rows
//! were lost.

use std::path::Path;
use std::process::ExitCode;

use docent_ingest::IngestError;
use docent_search::{EmbeddedEngine, EmbeddingProgress, Engine, PartState};
use serde_json::{Map, Value, json};

use super::CommandContext;
use super::problem_lines::problem_lines;
use crate::cli_error::CliError;
use crate::corpus::{
    self, FileStateCache, FormatBreakdown, FormatCounts, SyncObserver, SyncReport,
    UnreadableDocuments,
};
use crate::display_text::pluralize;
use crate::loss_report::LossReport;
use crate::model_settings::{self, CpuCoreLimit};
use crate::output::{self, ProgressReporter};

/// Number of documents to embed between two progress reports.
const EMBED_BATCH: usize = 8_192;

/// Exit status if the folder was indexed, but some files or rows were lost.
const LOST: u8 = 3;

pub(super) fn run(context: &CommandContext, as_json: bool) -> Result<ExitCode, CliError> {
    let (engine, location) = open(context)?;
    let runtime = super::runtime()?;
    let mut progress = ProgressReporter::start("indexing");
    let outcome = runtime.block_on(async {
        let report = corpus::sync(
            &context.folder,
            engine.as_ref(),
            context.settings.sync_options(),
            &mut FileStateCache::default(),
            &mut IndexProgress(&mut progress),
        )
        .await?;
        let documents = engine.status().await?.documents;
        let unreadable = UnreadableDocuments::of(engine.as_ref(), 0).await?.count;
        Ok::<_, CliError>((report, documents, unreadable))
    });
    progress.finish();
    let outcome = outcome.and_then(|outcome| {
        runtime.block_on(embed_pending(engine.as_ref()))?;
        Ok(outcome)
    });
    let (report, documents, unreadable) = outcome?;
    save_losses(&report, context.index_location.existing());
    if as_json {
        output::json(&report_json(
            &report,
            documents,
            unreadable,
            &context.folder.display().to_string(),
            &location,
        ))?;
    } else {
        for line in problem_lines(&report, usize::MAX) {
            output::say(&line);
        }
        let mut lines = vec![summary(&report, documents)];
        lines.extend(unreadable_line(unreadable));
        lines.extend(formats(&report.formats));
        output::data(&lines.join("\n"))?;
    }
    if documents == 0 {
        warn_empty(context);
    }
    if report.lost > 0 {
        output::error(&loss_error(report.lost));
        return Ok(ExitCode::from(LOST));
    }
    Ok(ExitCode::SUCCESS)
}

fn loss_error(count: u64) -> CliError {
    let what = if count == 1 {
        "1 row or file was lost".to_owned()
    } else {
        format!("{count} rows or files were lost")
    };
    CliError::failed(what).hint(
        "each line above that begins with `error` names one and its fix; everything else is indexed",
    )
}

/// Stores the loss report for `docent doctor`. A failure is only logged, since the index itself is complete.
pub(super) fn save_losses(report: &SyncReport, index: &Path) {
    if !report.stopped
        && let Err(error) = LossReport::of(report).save(index)
    {
        tracing::warn!(%error, "cannot write the loss report beside the index");
    }
}

/// Opens the engine for writing. Returns it with the location of its index for the report.
fn open(context: &CommandContext) -> Result<(Box<dyn Engine>, String), CliError> {
    let embedder = model_settings::embedder(&context.settings, CpuCoreLimit::All)?;
    let shared = &context.settings.engine;
    if shared.is_shared() {
        return Ok((Box::new(shared.open(embedder)?), shared.index_address()));
    }
    let dir = context.index_location.create()?;
    let engine = match embedder {
        Some(embedder) => {
            EmbeddedEngine::open_with_previous(dir, embedder, model_settings::built_in)?
        }
        None => EmbeddedEngine::open(dir)?,
    };
    super::warn_corrupt_index(&engine);
    let engine = engine.with_writer_bytes(context.settings.memory.writer_bytes());
    Ok((Box::new(engine), dir.display().to_string()))
}

/// Computes all missing embeddings, if the engine has an embedding model.
async fn embed_pending(engine: &dyn Engine) -> Result<(), CliError> {
    if engine.status().await?.vectors == PartState::Absent {
        return Ok(());
    }
    let mut progress = ProgressReporter::start("embedding");
    loop {
        let EmbeddingProgress { done, left } = engine.embed_pending(EMBED_BATCH).await?;
        let size = |count| usize::try_from(count).unwrap_or(usize::MAX);
        progress.at(size(done), size(done + left));
        if left == 0 {
            progress.finish();
            return Ok(());
        }
    }
}

struct IndexProgress<'a>(&'a mut ProgressReporter);

impl SyncObserver for IndexProgress<'_> {
    fn at(&mut self, done: usize, total: usize) {
        self.0.at(done, total);
    }
}

/// Warns that the folder contains nothing to search.
pub(super) fn warn_empty(context: &CommandContext) {
    let text = format!("there are no documents in `{}`", context.folder.display());
    output::warn(
        &text,
        Some("put documents into it; docs/formats.md lists the supported formats"),
    );
}

/// Summarizes the report in one line. Counts that are usually zero appear only if they are not.
pub(super) fn summary(report: &SyncReport, documents: u64) -> String {
    let SyncReport {
        indexed,
        unchanged,
        removed,
        kept,
        skipped,
        warnings,
        unlisted,
        excluded,
        lost,
        ..
    } = report;
    let mut parts = vec![
        format!("{indexed} indexed"),
        format!("{unchanged} unchanged"),
        format!("{removed} removed"),
        format!("{} skipped", skipped.len()),
    ];
    let more = [
        (usize::try_from(*lost).unwrap_or(usize::MAX), "lost"),
        (*kept, "kept"),
        (warnings.len(), "with warnings"),
        (*unlisted, "problems not listed"),
        (
            usize::try_from(*excluded).unwrap_or(usize::MAX),
            "excluded by filters",
        ),
    ];
    parts.extend(
        more.iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}")),
    );
    let early = if report.stopped {
        " (stopped early)"
    } else {
        ""
    };
    format!(
        "{}: {}{early}",
        pluralize(documents, "document"),
        parts.join(", ")
    )
}

/// Line about documents that nobody may read because their reader field is malformed, if there are any.
fn unreadable_line(count: usize) -> Option<String> {
    let documents = pluralize(count as u64, "document");
    (count > 0).then(|| {
        format!(
            "  {documents} that nobody may read, because the reader field is malformed; \
             list them with `docent permissions list --unreadable`"
        )
    })
}

/// One line per file format with the outcome of its files.
fn formats(breakdown: &FormatBreakdown) -> Vec<String> {
    let width = breakdown
        .kinds()
        .map(|(kind, _)| kind.len())
        .max()
        .unwrap_or(0);
    breakdown
        .kinds()
        .map(|(kind, counts)| format!("  {kind:width$}  {}", describe_counts(counts)))
        .collect()
}

fn describe_counts(counts: &FormatCounts) -> String {
    let mut parts: Vec<String> = [(counts.indexed, "indexed"), (counts.unchanged, "unchanged")]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    for (codes, what) in [
        (&counts.skipped, "skipped"),
        (&counts.warnings, "with warnings"),
    ] {
        let all: usize = codes.values().sum();
        let codes: Vec<_> = codes
            .iter()
            .map(|(code, count)| format!("{count} {code}"))
            .collect();
        if all > 0 {
            parts.push(format!("{all} {what} ({})", codes.join(", ")));
        }
    }
    let parts = if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    };
    match counts.files {
        // Symbolic links and folders are skipped entries, but not files.
        0 => parts,
        files => format!("{}: {parts}", pluralize(files as u64, "file")),
    }
}

fn report_json(
    report: &SyncReport,
    documents: u64,
    unreadable: usize,
    folder: &str,
    index: &str,
) -> Value {
    let problem = |path: &str, line: Option<u64>, reason: &IngestError| {
        json!({"path": path, "line": line, "code": reason.code(),
            "message": reason.to_string(), "hint": reason.hint()})
    };
    let skipped: Vec<_> = report
        .skipped
        .iter()
        .map(|s| problem(&s.path, s.line, &s.reason))
        .collect();
    let warnings: Vec<_> = report
        .warnings
        .iter()
        .map(|w| problem(&w.path, w.line, &w.reason))
        .collect();
    json!({
        "folder": folder,
        "index": index,
        "documents": documents,
        "unreadable": unreadable,
        "files": report.files,
        "indexed": report.indexed,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "kept": report.kept,
        "excluded": report.excluded,
        "skipped": skipped,
        "warnings": warnings,
        "unlisted": report.unlisted,
        "lost": report.lost,
        "formats": report.formats.kinds().map(format).collect::<Map<_, _>>(),
    })
}

fn format((kind, counts): (&str, &FormatCounts)) -> (String, Value) {
    let counts = json!({
        "files": counts.files,
        "indexed": counts.indexed,
        "unchanged": counts.unchanged,
        "skipped": counts.skipped,
        "warnings": counts.warnings,
    });
    (kind.to_owned(), counts)
}

#[cfg(test)]
mod tests {
    use docent_ingest::SkippedItem;

    use super::*;

    #[test]
    fn long_reports_end_with_how_much_is_left_out() {
        let skipped = |n: usize| SkippedItem {
            path: format!("{n}"),
            line: Some(1),
            reason: IngestError::Empty,
        };
        let report = SyncReport {
            skipped: (0..3).map(skipped).collect(),
            unlisted: 4,
            ..SyncReport::default()
        };
        let lines = problem_lines(&report, 2);
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[0],
            "skipped: 0:1: there is nothing to index in it (write some text, or remove it)"
        );
        assert_eq!(lines[2], "5 more; `docent index --json` lists them");
        let summary = summary(&report, 1);
        assert_eq!(
            summary,
            "1 document: 0 indexed, 0 unchanged, 0 removed, 3 skipped, 4 problems not listed"
        );
    }
}
