//! Turns a payload file into the smallest rmcp server that answers from it, as rmcp's documentation serves.

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

/// Serves recorded answers on loopback with rmcp and axum, and nothing else.
#[derive(Parser)]
struct Options {
    /// File with the answers to give
    #[arg(long)]
    payload: PathBuf,
    /// Port on 127.0.0.1
    #[arg(long)]
    port: u16,
}

struct Answers {
    tools: Vec<Tool>,
    search: CallToolResult,
    fetch: CallToolResult,
}

#[derive(Clone)]
struct Bare(Arc<Answers>);

impl ServerHandler for Bare {
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
    let options = Options::parse();
    let handler = Bare(Arc::new(answers(Payload::read(&options.payload)?)?));
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

fn answers(payload: Payload) -> anyhow::Result<Answers> {
    let list: ListToolsResult = serde_json::from_value(payload.tools_list).context("tools_list")?;
    Ok(Answers {
        tools: list.tools,
        search: serde_json::from_value(payload.search).context("search")?,
        fetch: serde_json::from_value(payload.fetch).context("fetch")?,
    })
}
