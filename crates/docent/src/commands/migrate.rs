//! `docent migrate`: carries an index from one engine to another, documents and vectors, without reading a
//! file or asking the model again.

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
use crate::engine_settings::EngineKind;
use crate::knowledge_base::pluralize;
use crate::model_settings::{self, CoreShare};
use crate::output::{self, ProgressReporter};

/// How many documents are carried at a time. What is interrupted begins again behind the last that arrived.
const AT_ONCE: usize = 256;

/// The most differences that are named.
const MAX_NAMED: usize = 5;

/// What was done.
#[derive(Debug, Default)]
struct MigrationReport {
    carried: usize,
    there: usize,
    made: u64,
}

pub(super) fn run(
    desk: &CommandContext,
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
    let embedder = model_settings::embedder(&desk.settings, CoreShare::All)?;
    let source = open_engine(desk, from, embedder.clone(), true)?;
    let carrier = embedder.map(|model| Arc::new(PrecomputedEmbedder::new(model)));
    let target = open_engine(
        desk,
        to,
        carrier.clone().map(|one| one as Arc<dyn Embedder>),
        false,
    )?;
    let runtime = super::runtime()?;
    let mut progress = ProgressReporter::start("carrying");
    let outcome = runtime.block_on(copy_documents(
        source.as_ref(),
        target.as_ref(),
        carrier.as_deref(),
        &mut progress,
    ));
    progress.finish();
    let report = outcome?;
    let documents = runtime.block_on(verify_same(source.as_ref(), target.as_ref()))?;
    if migrate.json {
        output::json(&json!({
            "documents": documents, "carried": report.carried, "unchanged": report.there,
            "embedded": report.made,
        }))?;
    } else {
        output::data(&format!(
            "{}: {} carried, {} there already; both engines hold the same",
            pluralize(documents as u64, "document"),
            report.carried,
            report.there
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open_engine(
    desk: &CommandContext,
    kind: EngineKind,
    embedder: Option<Arc<dyn Embedder>>,
    to_read: bool,
) -> Result<Box<dyn Engine>, CliError> {
    let shared = &desk.settings.engine;
    Ok(match (kind, to_read) {
        (EngineKind::Qdrant, true) => Box::new(shared.open_read_only(embedder)?),
        (EngineKind::Qdrant, false) => Box::new(shared.open(embedder)?),
        (EngineKind::Embedded, true) => Box::new(EmbeddedEngine::open_read_only(
            desk.place.existing(),
            embedder,
        )?),
        (EngineKind::Embedded, false) => {
            let dir = desk.place.create()?;
            match embedder {
                Some(embedder) => Box::new(EmbeddedEngine::open_with(dir, embedder)?),
                None => Box::new(EmbeddedEngine::open(dir)?),
            }
        }
    })
}

/// Carries what the target does not hold yet, some documents at a time.
async fn copy_documents(
    source: &dyn Engine,
    target: &dyn Engine,
    carrier: Option<&PrecomputedEmbedder>,
    progress: &mut ProgressReporter,
) -> Result<MigrationReport, CliError> {
    let present: HashMap<DocId, InventoryEntry> = by_id(target).await?;
    let all = source.inventory().await?;
    let total = all.len();
    let is_there = |held: &InventoryEntry| present.get(&held.id) == Some(held);
    let (there, open): (Vec<_>, Vec<_>) = all.into_iter().partition(is_there);
    let mut report = MigrationReport {
        there: there.len(),
        ..MigrationReport::default()
    };
    for some in open.chunks(AT_ONCE) {
        let mut changes = Vec::with_capacity(some.len());
        for held in some {
            let Some(document) = source
                .fetch(held.id.clone(), ReaderIdentity::owner())
                .await?
            else {
                continue;
            };
            if let Some(carrier) = carrier {
                carrier.preload(&document, source.vectors(held.id.clone()).await?);
            }
            changes.push(DocumentChange::Put(document.as_ref().clone()));
        }
        report.carried += changes.len();
        target.apply(changes).await?;
        embed_pending(target, carrier).await?;
        progress.at(report.there + report.carried, total);
    }
    // What an interrupted run has left without vectors gets them now, from the model.
    embed_pending(target, carrier).await?;
    report.made = carrier.map_or(0, PrecomputedEmbedder::computed_count);
    target.mark_complete().await?;
    Ok(report)
}

async fn embed_pending(
    target: &dyn Engine,
    carrier: Option<&PrecomputedEmbedder>,
) -> Result<(), CliError> {
    if let Some(carrier) = carrier {
        while target.embed_pending(AT_ONCE).await?.left > 0 {}
        carrier.clear();
    }
    Ok(())
}

async fn by_id(engine: &dyn Engine) -> Result<HashMap<DocId, InventoryEntry>, CliError> {
    let held = engine.inventory().await?.into_iter();
    Ok(held.map(|one| (one.id.clone(), one)).collect())
}

/// Compares what both hold, and says how many documents that is.
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
        "the engines do not hold the same: {} documents here, {} there; such as {}",
        left.len(),
        right.len(),
        named.join(", ")
    );
    Err(CliError::failed(message)
        .hint("run it again while nobody changes either, into an index of its own"))
}
