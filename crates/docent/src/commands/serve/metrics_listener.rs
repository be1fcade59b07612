//! The metrics endpoint: a listener of its own, apart from the public one.

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

/// The bound listener of the metrics endpoint.
pub(super) struct MetricsListener(TcpListener);

impl MetricsListener {
    /// Binds the configured address, if one is set.
    pub(super) async fn open(context: &CommandContext) -> Result<Option<Self>, CliError> {
        match context.settings.server.metrics {
            Some(address) => bind(address).await.map(|listener| Some(Self(listener))),
            None => Ok(None),
        }
    }

    /// Registers the metrics as an observer of the app and serves them until shutdown.
    pub(super) fn start(
        self,
        context: &CommandContext,
        app: AppBuilder,
        index: ObservedIndex,
        stop: CancellationToken,
    ) -> AppBuilder {
        let title = context
            .settings
            .title
            .clone()
            .unwrap_or_else(|| context.name());
        let spans = context.traces.as_ref().map(|traces| traces.counts.clone());
        let metrics = ServerMetrics::new(&title, &app.tool_names(), index.readiness, index.engine)
            .with_spans(spans);
        let metrics = Arc::new(metrics);
        let options = http::HttpOptions {
            allowed_hosts: context.settings.server.allow_hosts.clone(),
            limits: context.settings.limits.clone().for_side_listener(),
            routes: metrics.routes(),
            ..http::HttpOptions::default()
        };
        if let Ok(address) = self.0.local_addr() {
            output::say(&format!("  metrics      http://{address}/metrics"));
        }
        tokio::spawn(async move {
            let served = http::serve_routes(options, self.0, stop).await;
            if let Err(error) = served {
                tracing::error!(%error, "the metrics listener stopped");
            }
        });
        app.observer(metrics)
    }
}
