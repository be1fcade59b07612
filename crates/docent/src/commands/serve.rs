//! `docent serve`: an index, an app and a listener into a server that runs until it is told to
//! stop. It answers from the index it finds at once and brings it in step with the folder
//! meanwhile.

mod audit_log;
mod auth_config;
mod banner;
mod certificate_authorities;
mod folder_watcher;
mod metrics_listener;
pub(super) use auth_config::KEYS;
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
use crate::model_settings::{self, CoreShare};
use crate::output;
use crate::pages;
use crate::preview;
use crate::readiness::{Readiness, SyncState};
use crate::settings::TlsFiles;

/// How long a collector may take for the last spans.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// How long a sync may take to notice that the server stops; it looks after every file.
const SYNC_STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn run(desk: &CommandContext, over_stdio: bool) -> Result<ExitCode, CliError> {
    let index = open(desk)?;
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(serve(desk, index, over_stdio));
    // Whatever is left waits for a terminal or a disk and has nothing more to say.
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

/// An engine, and whether this process may change what it holds.
struct OpenedIndex {
    engine: Arc<dyn Engine>,
    read_only: bool,
}

/// Opens the index for writing; where somebody else writes to it, or nobody can, for reading.
fn open(desk: &CommandContext) -> Result<OpenedIndex, CliError> {
    let embedder = model_settings::embedder(&desk.settings, CoreShare::Half)?;
    if desk.settings.engine.is_shared() {
        return Ok(OpenedIndex {
            engine: Arc::new(desk.settings.engine.open(embedder)?),
            read_only: false,
        });
    }
    let dir = desk.place.create()?;
    let opened = match &embedder {
        Some(embedder) => {
            EmbeddedEngine::open_with_previous(dir, embedder.clone(), model_settings::built_in)
        }
        None => EmbeddedEngine::open(dir),
    };
    let because = match opened {
        Ok(engine) => {
            super::warn_corrupt_index(&engine);
            let engine = engine.with_writer_bytes(desk.settings.memory.writer_bytes());
            return Ok(OpenedIndex {
                engine: Arc::new(engine),
                read_only: false,
            });
        }
        Err(SearchError::Locked { .. }) => "another process keeps the index",
        Err(SearchError::Io { source, .. }) if is_refusal(&source) => {
            "the index cannot be written to"
        }
        Err(error) => return Err(error.into()),
    };
    let engine = EmbeddedEngine::open_read_only(dir, embedder)?;
    let hint = "changes in the folder are not seen; choose another index with `--index`";
    output::warn(&format!("{because}, so it is only read"), Some(hint));
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
    desk: &CommandContext,
    index: OpenedIndex,
    over_stdio: bool,
) -> Result<(), CliError> {
    let server = &desk.settings.server;
    // The address first: when it is taken, nothing else should have happened.
    let listener = if over_stdio {
        None
    } else {
        Some(bind(server.listen).await?)
    };
    let counts = metrics_listener::MetricsListener::open(desk).await?;
    let bound = listener.as_ref().and_then(|l| l.local_addr().ok());
    let sign_in = bound.map(|bound| sign_in::open(desk, bound)).transpose()?;
    let sign_in = sign_in.flatten();
    let own = sign_in.as_ref().map(|own| own.issuer.clone());
    let auth = match bound {
        Some(bound) => auth_config::build_auth(desk, bound, own)?,
        None => None,
    };
    let tls = tls(&server.tls)?;
    let is_writer = stale_permissions::withdraw_at_start(desk, &index).await?;
    let status = index.engine.status().await?;
    let knowledge = knowledge(desk, index.engine, over_stdio, auth.as_ref())?;
    knowledge.refresh_counts().await?;
    let standing = Arc::new(initial_readiness(status, index.read_only));
    knowledge.set_readiness(standing.clone());
    let stop = CancellationToken::new();
    signals::watch(stop.clone())?;
    banner::show(desk, &knowledge, bound);
    if bound.is_some() {
        auth_config::announce_sign_in(desk, auth.as_ref());
    }
    let audit = audit_log::open(desk)?;
    let mut app = crate::app::builder(&knowledge, server.dual, server.text);
    if let Some(audit) = &audit {
        app = app.observer(audit.clone());
    }
    if let Some(counts) = counts {
        let index = metrics_listener::ObservedIndex::new(&knowledge, &standing);
        app = counts.start(desk, app, index, stop.clone());
    }
    let app = app
        .build()
        .map_err(|error| CliError::failed("the app cannot be built").because(error))?;
    let watched = audit.clone().map(|audit| audit as Arc<dyn CallObserver>);
    let mut options = options(desk, &knowledge, standing.clone(), watched);
    options.auth = auth;
    options.tls = tls;
    if let Some(sign_in) = sign_in {
        options.routes.extend(sign_in.routes);
    }
    let syncing = (!index.read_only).then(|| {
        folder_sync::start(
            desk,
            folder_sync::SyncContext {
                knowledge,
                app: app.clone(),
                readiness: standing.clone(),
            },
            is_writer,
            stop.clone(),
        )
    });
    let served = match listener {
        Some(listener) => http::serve(app, options, listener, stop.clone()).await,
        None => stdio::serve(app, desk.settings.limits.clone(), stop.clone()).await,
    };
    stop.cancel();
    if let Some(traces) = desk.traces.clone() {
        let _ = tokio::task::spawn_blocking(move || traces.finish(LAST_SPANS)).await;
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

/// What the tools know, and who may see how much of it.
fn knowledge(
    desk: &CommandContext,
    engine: Arc<dyn Engine>,
    over_stdio: bool,
    auth: Option<&Auth>,
) -> Result<Arc<KnowledgeBase>, CliError> {
    let knowledge = KnowledgeBase::new(engine, &desk.settings, &desk.name());
    let knowledge = if over_stdio {
        knowledge.for_the_owner()
    } else {
        knowledge
    };
    if let Some(auth) = auth {
        knowledge.set_link_signer(auth_config::link_signer(desk, auth)?);
    }
    Ok(Arc::new(knowledge))
}

/// How far a server is that has just opened its index.
fn initial_readiness(status: EngineStatus, read_only: bool) -> Readiness {
    let first = if read_only {
        SyncState::ReadOnly
    } else {
        SyncState::Running { done: 0, total: 0 }
    };
    Readiness::new(status, first)
}

fn options(
    desk: &CommandContext,
    knowledge: &Arc<KnowledgeBase>,
    standing: Arc<Readiness>,
    observer: Option<Arc<dyn CallObserver>>,
) -> http::HttpOptions {
    let server = &desk.settings.server;
    let knowledge = knowledge.clone();
    let mut routes = Vec::new();
    if server.pages {
        routes.push(pages::route(knowledge.clone(), observer));
    }
    routes.extend(server.openai_challenge.clone().map(openai_challenge_route));
    if server.preview {
        // The page itself says nothing; what it calls is locked like everything.
        let own = preview::routes(&preview::PreviewTarget::Own);
        routes.extend(own.into_iter().map(http::Route::open));
    }
    http::HttpOptions {
        allowed_hosts: server.allow_hosts.clone(),
        allowed_origins: server.allow_origins.clone(),
        public_url: server.public_url.as_ref().map(ToString::to_string),
        lenient_modern_headers: server.lenient_modern_headers,
        readiness: Arc::new(move || {
            let mut ready = standing.response();
            knowledge.redact_counts(&mut ready.parts);
            ready
        }),
        limits: desk.settings.limits.clone(),
        routes,
        auth: None,
        tls: None,
    }
}

/// The certificate that the settings name, if they name one.
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
            return Err(problem.hint("TLS needs the file of a certificate and that of its key"));
        }
    };
    let bad = |error: http::CertificateError| {
        let hint = error.hint();
        CliError::failed(error.to_string())
            .hint(hint)
            .because(error)
    };
    http::ServerTls::load(certificate, key)
        .map(Some)
        .map_err(bad)
}

/// Where OpenAI looks for the proof that the address is the owner's: the token alone, as plain text.
fn openai_challenge_route(token: String) -> http::Route {
    let route = http::Route::get("/.well-known/openai-apps-challenge", move |_| {
        let page = http::RouteResponse::new(200, "text/plain; charset=utf-8", token.clone());
        std::future::ready(Ok(page))
    });
    route.open()
}

/// Takes an address, or says why it cannot be had.
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
                "choose one of this machine with `--listen`",
            ),
        };
        CliError::failed(message).hint(hint).because(error)
    })
}
