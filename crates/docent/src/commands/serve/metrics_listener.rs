//! Where calls are counted, and where the counts can be seen.

use std::sync::Arc;

use docent_mcp::{AppBuilder, http};
use docent_search::Engine;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{CommandContext, bind};
use crate::cli_error::CliError;
use crate::knowledge_base::KnowledgeBase;
use crate::metrics::ServerMetrics;
use crate::output;
use crate::readiness::Readiness;

/// The index whose state the metrics show.
pub(super) struct ObservedIndex {
    readiness: Arc<Readiness>,
    engine: Arc<dyn Engine>,
}

impl ObservedIndex {
    pub(super) fn new(knowledge: &KnowledgeBase, readiness: &Arc<Readiness>) -> Self {
        Self {
            readiness: readiness.clone(),
            engine: knowledge.engine.clone(),
        }
    }
}

/// The address of the counts, taken.
pub(super) struct MetricsListener(TcpListener);

impl MetricsListener {
    /// Takes the address that settings name, if they name one.
    pub(super) async fn open(desk: &CommandContext) -> Result<Option<Self>, CliError> {
        match desk.settings.server.metrics {
            Some(address) => bind(address).await.map(|listener| Some(Self(listener))),
            None => Ok(None),
        }
    }

    /// Has the calls of an app counted, and the counts served until told to stop.
    pub(super) fn start(
        self,
        desk: &CommandContext,
        app: AppBuilder,
        index: ObservedIndex,
        stop: CancellationToken,
    ) -> AppBuilder {
        let title = desk.settings.title.clone().unwrap_or_else(|| desk.name());
        let spans = desk.traces.as_ref().map(|traces| traces.counts.clone());
        let meter = ServerMetrics::new(&title, &app.tool_names(), index.readiness, index.engine)
            .with_spans(spans);
        let meter = Arc::new(meter);
        let options = http::HttpOptions {
            allowed_hosts: desk.settings.server.allow_hosts.clone(),
            limits: desk.settings.limits.clone().for_side_listener(),
            routes: meter.routes(),
            ..http::HttpOptions::default()
        };
        if let Ok(address) = self.0.local_addr() {
            output::say(&format!("  metrics      http://{address}/metrics"));
        }
        tokio::spawn(async move {
            let served = http::serve_routes(options, self.0, stop).await;
            if let Err(error) = served {
                tracing::error!(%error, "the counts are not served any more");
            }
        });
        app.observer(meter)
    }
}
