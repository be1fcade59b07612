//! `docent migrate`: copies an index from one engine to another, documents and vectors, without parsing files or
//! computing embeddings again. It is idempotent, so an interrupted migration resumes.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

use docent_search::{
    DocId, DocumentChange, EmbeddedEngine, Embedder, Engine, InventoryEntry, PrecomputedEmbedder,
    ReaderIdentity,
};
use serde_json::json;

use super::CommandContext;
use crate::args;
use crate::cli_error::CliError;
use crate::display_text::pluralize;
use crate::engine_settings::EngineKind;
use crate::model_settings::{self, CpuCoreLimit};
use crate::output::{self, ProgressReporter};

/// Batch size in documents. An interrupted migration resumes after the last batch that arrived.
const BATCH_SIZE: usize = 256;

/// Maximum number of differing ids that an error names.
const MAX_NAMED: usize = 5;

/// Counts of documents: copied, already present in the target, and embedded anew because they had no vectors.
#[derive(Debug, Default)]
struct MigrationReport {
    copied: usize,
    present_count: usize,
    embedded: u64,
}

pub(super) fn run(
    context: &CommandContext,
    migrate: &args::MigrateArgs,
) -> Result<ExitCode, CliError> {
    let (from, to) = match migrate.to.as_str() {
        "qdrant" => (EngineKind::Embedded, EngineKind::Qdrant),
        "embedded" => (EngineKind::Qdrant, EngineKind::Embedded),
        other => {
            return Err(CliError::usage(format!("there is no engine `{other}`"))
                .hint("write `qdrant` or `embedded`"));
        }
    };
    let embedder = model_settings::embedder(&context.settings, CpuCoreLimit::All)?;
    let source = open_engine(context, from, embedder.clone(), true)?;
    let precomputed = embedder.map(|model| Arc::new(PrecomputedEmbedder::new(model)));
    let target = open_engine(
        context,
        to,
        precomputed.clone().map(|one| one as Arc<dyn Embedder>),
        false,
    )?;
    let runtime = super::runtime()?;
    let mut progress = ProgressReporter::start("copying");
    let outcome = runtime.block_on(copy_documents(
        source.as_ref(),
        target.as_ref(),
        precomputed.as_deref(),
        &mut progress,
    ));
    progress.finish();
    let report = outcome?;
    let documents = runtime.block_on(verify_same(source.as_ref(), target.as_ref()))?;
    if migrate.json {
        output::json(&json!({
            "documents": documents, "carried": report.copied, "unchanged": report.present_count,
            "embedded": report.embedded,
        }))?;
    } else {
        output::data(&format!(
            "{}: {} copied, {} already present; both indexes are identical",
            pluralize(documents as u64, "document"),
            report.copied,
            report.present_count
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open_engine(
    context: &CommandContext,
    kind: EngineKind,
    embedder: Option<Arc<dyn Embedder>>,
    read_only: bool,
) -> Result<Box<dyn Engine>, CliError> {
    let shared = &context.settings.engine;
    Ok(match (kind, read_only) {
        (EngineKind::Qdrant, true) => Box::new(shared.open_read_only(embedder)?),
        (EngineKind::Qdrant, false) => Box::new(shared.open(embedder)?),
        (EngineKind::Embedded, true) => Box::new(EmbeddedEngine::open_read_only(
            context.index_location.existing(),
            embedder,
        )?),
        (EngineKind::Embedded, false) => {
            let dir = context.index_location.create()?;
            match embedder {
                Some(embedder) => Box::new(EmbeddedEngine::open_with(dir, embedder)?),
                None => Box::new(EmbeddedEngine::open(dir)?),
            }
        }
    })
}

/// Copies the documents that the target does not have, in batches.
async fn copy_documents(
    source: &dyn Engine,
    target: &dyn Engine,
    precomputed: Option<&PrecomputedEmbedder>,
    progress: &mut ProgressReporter,
) -> Result<MigrationReport, CliError> {
    let present: HashMap<DocId, InventoryEntry> = by_id(target).await?;
    let all = source.inventory().await?;
    let total = all.len();
    let is_there = |held: &InventoryEntry| present.get(&held.id) == Some(held);
    let (unchanged, missing): (Vec<_>, Vec<_>) = all.into_iter().partition(is_there);
    let mut report = MigrationReport {
        present_count: unchanged.len(),
        ..MigrationReport::default()
    };
    for batch in missing.chunks(BATCH_SIZE) {
        let mut changes = Vec::with_capacity(batch.len());
        for held in batch {
            let Some(document) = source
                .fetch(held.id.clone(), ReaderIdentity::owner())
                .await?
            else {
                continue;
            };
            if let Some(precomputed) = precomputed {
                precomputed.preload(&document, source.vectors(held.id.clone()).await?);
            }
            changes.push(DocumentChange::Put(document.as_ref().clone()));
        }
        report.copied += changes.len();
        target.apply(changes).await?;
        embed_pending(target, precomputed).await?;
        progress.at(report.present_count + report.copied, total);
    }
    // Documents that an interrupted run left without vectors are embedded now.
    embed_pending(target, precomputed).await?;
    report.embedded = precomputed.map_or(0, PrecomputedEmbedder::computed_count);
    target.mark_complete().await?;
    Ok(report)
}

async fn embed_pending(
    target: &dyn Engine,
    precomputed: Option<&PrecomputedEmbedder>,
) -> Result<(), CliError> {
    if let Some(precomputed) = precomputed {
        while target.embed_pending(BATCH_SIZE).await?.left > 0 {}
        precomputed.clear();
    }
    Ok(())
}

async fn by_id(engine: &dyn Engine) -> Result<HashMap<DocId, InventoryEntry>, CliError> {
    let held = engine.inventory().await?.into_iter();
    Ok(held.map(|one| (one.id.clone(), one)).collect())
}

/// Verifies that both engines contain the same documents, and returns their number.
async fn verify_same(source: &dyn Engine, target: &dyn Engine) -> Result<usize, CliError> {
    let (left, right) = (source.inventory().await?, target.inventory().await?);
    if left == right {
        return Ok(left.len());
    }
    let ids = |held: &[InventoryEntry]| {
        held.iter()
            .map(|one| one.id.to_string())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let (left, right) = (ids(&left), ids(&right));
    let named: Vec<_> = left
        .symmetric_difference(&right)
        .take(MAX_NAMED)
        .map(|id| format!("`{id}`"))
        .collect();
    let message = format!(
        "the indexes differ: {} documents in the source, {} in the target; for example {}",
        left.len(),
        right.len(),
        named.join(", ")
    );
    Err(CliError::failed(message)
        .hint("run it again while no other process changes either index, into a target that only this migration fills"))
}
