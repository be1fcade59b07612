//! `docent serve`: runs the MCP server over HTTP or stdio until shutdown. It answers from the existing index at once,
//! while a background sync updates the index from the folder.

mod audit_log;
mod auth_config;
mod banner;
mod certificate_authorities;
mod folder_watcher;
mod metrics_listener;
pub(super) use auth_config::KEYS;
pub(super) use sign_in::issuer_name;
mod embed_pending;
mod folder_sync;
mod sign_in;
pub(super) mod signals;
mod stale_permissions;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use docent_mcp::{Auth, CallObserver, http, stdio};
use docent_search::{EmbeddedEngine, Engine, EngineStatus, SearchError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::CommandContext;
use crate::cli_error::CliError;

use crate::knowledge_base::KnowledgeBase;
use crate::model_settings::{self, CpuCoreLimit};
use crate::output;
use crate::pages;
use crate::preview;
use crate::readiness::{Readiness, SyncState};
use crate::settings::TlsFiles;

/// Timeout for flushing the last spans to the OTLP collector at shutdown.
const SPAN_FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout for the sync to stop at shutdown. It checks for cancellation after every file.
const SYNC_STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn run(context: &CommandContext, over_stdio: bool) -> Result<ExitCode, CliError> {
    let index = open(context)?;
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(serve(context, index, over_stdio));
    // Remaining tasks only wait for a terminal or a disk, so they are not joined.
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

/// The opened engine, and whether this process may write to its index.
struct OpenedIndex {
    engine: Arc<dyn Engine>,
    read_only: bool,
}

/// Opens the index for writing. Falls back to read-only if another process holds the lock or the folder is not
/// writable.
fn open(context: &CommandContext) -> Result<OpenedIndex, CliError> {
    let embedder = model_settings::embedder(&context.settings, CpuCoreLimit::Half)?;
    if context.settings.engine.is_shared() {
        return Ok(OpenedIndex {
            engine: Arc::new(context.settings.engine.open(embedder)?),
            read_only: false,
        });
    }
    let dir = context.index_location.create()?;
    let opened = match &embedder {
        Some(embedder) => {
            EmbeddedEngine::open_with_previous(dir, embedder.clone(), model_settings::built_in)
        }
        None => EmbeddedEngine::open(dir),
    };
    let because = match opened {
        Ok(engine) => {
            super::warn_corrupt_index(&engine);
            let engine = engine.with_writer_bytes(context.settings.memory.writer_bytes());
            return Ok(OpenedIndex {
                engine: Arc::new(engine),
                read_only: false,
            });
        }
        Err(SearchError::Locked { .. }) => "another process is writing the index",
        Err(SearchError::Io { source, .. }) if is_refusal(&source) => "the index is not writable",
        Err(error) => return Err(error.into()),
    };
    let engine = EmbeddedEngine::open_read_only(dir, embedder)?;
    let hint =
        "this server does not index changes of the folder; choose another index with `--index`";
    output::warn(&format!("{because}, so it is opened read-only"), Some(hint));
    Ok(OpenedIndex {
        engine: Arc::new(engine),
        read_only: true,
    })
}

fn is_refusal(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

async fn serve(
    context: &CommandContext,
    index: OpenedIndex,
    over_stdio: bool,
) -> Result<(), CliError> {
    let server = &context.settings.server;
    // Binds first: if the address is in use, nothing else must have happened.
    let listener = if over_stdio {
        None
    } else {
        Some(bind(server.listen).await?)
    };
    let metrics = metrics_listener::MetricsListener::open(context).await?;
    let bound = listener.as_ref().and_then(|l| l.local_addr().ok());
    let sign_in = bound
        .map(|bound| sign_in::open(context, bound))
        .transpose()?;
    let sign_in = sign_in.flatten();
    let own_issuer = sign_in.as_ref().map(|server| server.issuer.clone());
    let auth = match bound {
        Some(bound) => auth_config::build_auth(context, bound, own_issuer)?,
        None => None,
    };
    let tls = tls(&server.tls)?;
    let is_writer = stale_permissions::withdraw_at_start(context, &index).await?;
    let status = index.engine.status().await?;
    let knowledge = knowledge(context, index.engine, over_stdio, auth.as_ref())?;
    knowledge.refresh_counts().await?;
    let readiness = Arc::new(initial_readiness(status, index.read_only));
    knowledge.set_readiness(readiness.clone());
    let stop = CancellationToken::new();
    signals::watch(stop.clone())?;
    banner::show(context, &knowledge, bound);
    if bound.is_some() {
        auth_config::announce_sign_in(context, auth.as_ref());
    }
    let audit = audit_log::open(context)?;
    let mut app = crate::app::builder(&knowledge, server.dual, server.text);
    if let Some(audit) = &audit {
        app = app.observer(audit.clone());
    }
    if let Some(metrics) = metrics {
        let index = metrics_listener::ObservedIndex::new(&knowledge, &readiness);
        app = metrics.start(context, app, index, stop.clone());
    }
    let app = app
        .build()
        .map_err(|error| CliError::failed("the app cannot be built").because(error))?;
    let observer = audit.clone().map(|audit| audit as Arc<dyn CallObserver>);
    let mut options = options(context, &knowledge, readiness.clone(), observer);
    options.auth = auth;
    options.tls = tls;
    if let Some(sign_in) = sign_in {
        options.routes.extend(sign_in.routes);
    }
    let syncing = (!index.read_only).then(|| {
        folder_sync::start(
            context,
            folder_sync::SyncContext {
                knowledge,
                app: app.clone(),
                readiness: readiness.clone(),
            },
            is_writer,
            stop.clone(),
        )
    });
    let served = match listener {
        Some(listener) => http::serve(app, options, listener, stop.clone()).await,
        None => stdio::serve(app, context.settings.limits.clone(), stop.clone()).await,
    };
    stop.cancel();
    if let Some(traces) = context.traces.clone() {
        let _ = tokio::task::spawn_blocking(move || traces.finish(SPAN_FLUSH_TIMEOUT)).await;
    }
    if let Some(audit) = audit {
        let _ = tokio::task::spawn_blocking(move || audit.close()).await;
    }
    if let Some(syncing) = syncing
        && let Ok(Ok(Err(error))) = tokio::time::timeout(SYNC_STOP_TIMEOUT, syncing).await
    {
        return Err(error);
    }
    served.map_err(|error| CliError::failed("the server stopped").because(error))
}

/// Creates the knowledge base. Over stdio every caller is the owner; with authentication, page URLs are signed.
fn knowledge(
    context: &CommandContext,
    engine: Arc<dyn Engine>,
    over_stdio: bool,
    auth: Option<&Auth>,
) -> Result<Arc<KnowledgeBase>, CliError> {
    let knowledge = KnowledgeBase::new(engine, &context.settings, &context.name());
    let knowledge = if over_stdio {
        knowledge.for_the_owner()
    } else {
        knowledge
    };
    if let Some(auth) = auth {
        knowledge.set_link_signer(auth_config::link_signer(context, auth)?);
    }
    Ok(Arc::new(knowledge))
}

/// Readiness of a server that has just opened its index.
fn initial_readiness(status: EngineStatus, read_only: bool) -> Readiness {
    let first = if read_only {
        SyncState::ReadOnly
    } else {
        SyncState::Running { done: 0, total: 0 }
    };
    Readiness::new(status, first)
}

fn options(
    context: &CommandContext,
    knowledge: &Arc<KnowledgeBase>,
    readiness: Arc<Readiness>,
    observer: Option<Arc<dyn CallObserver>>,
) -> http::HttpOptions {
    let server = &context.settings.server;
    let knowledge = knowledge.clone();
    let mut routes = Vec::new();
    if server.pages {
        routes.push(pages::route(knowledge.clone(), observer));
    }
    routes.extend(server.openai_challenge.clone().map(openai_challenge_route));
    if server.preview {
        // The page itself contains no data, and the tools that it calls require authentication.
        let preview_routes = preview::routes(&preview::PreviewTarget::Own);
        routes.extend(preview_routes.into_iter().map(http::Route::open));
    }
    http::HttpOptions {
        allowed_hosts: server.allow_hosts.clone(),
        allowed_origins: server.allow_origins.clone(),
        public_url: server.public_url.as_ref().map(ToString::to_string),
        lenient_modern_headers: server.lenient_modern_headers,
        readiness: Arc::new(move || {
            let mut ready = readiness.response();
            knowledge.redact_counts(&mut ready.parts);
            ready
        }),
        limits: context.settings.limits.clone(),
        routes,
        auth: None,
        tls: None,
    }
}

/// Loads the TLS certificate if one is configured.
fn tls(files: &TlsFiles) -> Result<Option<http::ServerTls>, CliError> {
    let (certificate, key) = match (&files.certificate, &files.key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        (named, _) => {
            let missing = if named.is_some() {
                "tls_key"
            } else {
                "tls_cert"
            };
            let problem = CliError::usage(format!("`server.{missing}` is not set"));
            return Err(problem.hint("TLS needs both the certificate file and its key file"));
        }
    };
    let certificate_error = |error: http::CertificateError| {
        let hint = error.hint();
        CliError::failed(error.to_string())
            .hint(hint)
            .because(error)
    };
    http::ServerTls::load(certificate, key)
        .map(Some)
        .map_err(certificate_error)
}

/// Route for OpenAI's domain verification: returns the configured token as plain text.
fn openai_challenge_route(token: String) -> http::Route {
    let route = http::Route::get("/.well-known/openai-apps-challenge", move |_| {
        let page = http::RouteResponse::new(200, "text/plain; charset=utf-8", token.clone());
        std::future::ready(Ok(page))
    });
    route.open()
}

/// Binds a TCP listener, with a hint for each common failure.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, CliError> {
    use std::io::ErrorKind;
    TcpListener::bind(address).await.map_err(|error| {
        let (message, hint) = match error.kind() {
            ErrorKind::AddrInUse => (
                format!("the address `{address}` is in use"),
                "stop the other server, or choose another address with `--listen 127.0.0.1:0`",
            ),
            ErrorKind::PermissionDenied => (
                format!("the address `{address}` is not allowed"),
                "choose a port above 1023 with `--listen`",
            ),
            _ => (
                format!("the address `{address}` cannot be used"),
                "choose an address of this machine with `--listen`",
            ),
        };
        CliError::failed(message).hint(hint).because(error)
    })
}
