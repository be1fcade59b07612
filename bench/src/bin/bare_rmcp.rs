//! The peer `bare-rmcp`: a minimal rmcp server, set up as in rmcp's documentation, that returns recorded responses.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use docent_bench::payload::Payload;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::net::TcpListener;

/// Serves recorded responses on loopback with rmcp and axum alone.
#[derive(Parser)]
struct BareServerArgs {
    /// Payload file with the responses to return
    #[arg(long)]
    payload: PathBuf,
    /// Port on 127.0.0.1
    #[arg(long)]
    port: u16,
}

struct RecordedResponses {
    tools: Vec<Tool>,
    search: CallToolResult,
    fetch: CallToolResult,
}

#[derive(Clone)]
struct BareServer(Arc<RecordedResponses>);

impl ServerHandler for BareServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "search" => Ok(self.0.search.clone().into()),
            "fetch" => Ok(self.0.fetch.clone().into()),
            other => Err(ErrorData::invalid_params(
                format!("no tool `{other}`"),
                None,
            )),
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = BareServerArgs::parse();
    let handler = BareServer(Arc::new(recorded_responses(Payload::read(
        &options.payload,
    )?)?));
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true),
    );
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind(("127.0.0.1", options.port)).await?;
    Ok(axum::serve(listener, router).await?)
}

fn recorded_responses(payload: Payload) -> anyhow::Result<RecordedResponses> {
    let list: ListToolsResult = serde_json::from_value(payload.tools_list).context("tools_list")?;
    Ok(RecordedResponses {
        tools: list.tools,
        search: serde_json::from_value(payload.search).context("search")?,
        fetch: serde_json::from_value(payload.fetch).context("fetch")?,
    })
}
