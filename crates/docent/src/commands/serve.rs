//! `docent serve`: an index, an app and a listener into a server that runs until it is told to
//! stop. It answers from the index it finds at once and brings it in step with the folder
//! meanwhile.

mod banner;
mod changes;
mod settle;
pub(super) mod signals;
mod step;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use docent_mcp::{http, stdio};
use docent_search::{Embedded, Engine, Error};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Desk;
use crate::knowledge::Knowledge;
use crate::model::{self, Cores};
use crate::output;
use crate::pages;
use crate::preview;
use crate::problem::Problem;
use crate::standing::{Standing, Sync};

/// How long a sync may take to notice that the server stops; it looks after every file.
const FAREWELL: Duration = Duration::from_secs(5);

pub(super) fn run(desk: &Desk, over_stdio: bool) -> Result<ExitCode, Problem> {
    let index = open(desk)?;
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(serve(desk, index, over_stdio));
    // Whatever is left waits for a terminal or a disk and has nothing more to say.
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

/// An engine, and whether this process may change what it holds.
struct Index {
    engine: Arc<dyn Engine>,
    read_only: bool,
}

/// Opens the index for writing; where somebody else writes to it, or nobody can, for reading.
fn open(desk: &Desk) -> Result<Index, Problem> {
    let dir = desk.place.made()?;
    let embedder = model::embedder(&desk.settings, Cores::Half)?;
    let opened = match &embedder {
        Some(embedder) => Embedded::open_after(dir, embedder.clone(), model::built_in),
        None => Embedded::open(dir),
    };
    let because = match opened {
        Ok(engine) => {
            super::tell_damage(&engine);
            let engine = engine.with_writer_bytes(desk.settings.memory.writer_bytes());
            return Ok(Index {
                engine: Arc::new(engine),
                read_only: false,
            });
        }
        Err(Error::Locked { .. }) => "another process keeps the index",
        Err(Error::Io { source, .. }) if is_refusal(&source) => "the index cannot be written to",
        Err(error) => return Err(error.into()),
    };
    let engine = Embedded::open_read_only(dir, embedder)?;
    let hint = "changes in the folder are not seen; choose another index with `--index`";
    output::warn(&format!("{because}, so it is only read"), Some(hint));
    Ok(Index {
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

async fn serve(desk: &Desk, index: Index, over_stdio: bool) -> Result<(), Problem> {
    let server = &desk.settings.server;
    // The address first: when it is taken, nothing else should have happened.
    let listener = if over_stdio {
        None
    } else {
        Some(bind(server.listen).await?)
    };
    let status = index.engine.status().await?;
    let knowledge = Arc::new(Knowledge::new(index.engine, &desk.settings, &desk.name()));
    knowledge.count().await?;
    let app = crate::app::app(&knowledge, server.dual, server.text)
        .map_err(|error| Problem::failed("the app cannot be built").because(error))?;
    let first = if index.read_only {
        Sync::ReadOnly
    } else {
        Sync::Running { done: 0, total: 0 }
    };
    let standing = Arc::new(Standing::new(status, first));
    knowledge.stand(standing.clone());
    let stop = CancellationToken::new();
    signals::watch(stop.clone())?;
    banner::show(
        desk,
        &knowledge,
        listener.as_ref().and_then(|l| l.local_addr().ok()),
    );
    let options = options(desk, &knowledge, standing.clone());
    let syncing = (!index.read_only).then(|| {
        step::start(
            desk,
            step::Parts {
                knowledge,
                app: app.clone(),
                standing: standing.clone(),
            },
            stop.clone(),
        )
    });
    let served = match listener {
        Some(listener) => http::serve(app, options, listener, stop.clone()).await,
        None => stdio::serve(app, desk.settings.limits.clone(), stop.clone()).await,
    };
    stop.cancel();
    if let Some(syncing) = syncing {
        let _ = tokio::time::timeout(FAREWELL, syncing).await;
    }
    served.map_err(|error| Problem::failed("the server stopped").because(error))
}

fn options(desk: &Desk, knowledge: &Arc<Knowledge>, standing: Arc<Standing>) -> http::Options {
    let server = &desk.settings.server;
    let mut routes = Vec::new();
    if server.pages {
        routes.push(pages::route(knowledge.clone()));
    }
    if server.preview {
        routes.extend(preview::routes(&preview::Target::Own));
    }
    http::Options {
        allowed_hosts: server.allow_hosts.clone(),
        allowed_origins: server.allow_origins.clone(),
        public_url: server.public_url.as_ref().map(ToString::to_string),
        lenient_modern_headers: server.lenient_modern_headers,
        readiness: Arc::new(move || standing.ready()),
        limits: desk.settings.limits.clone(),
        routes,
    }
}

/// Takes an address, or says why it cannot be had.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, Problem> {
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
        Problem::failed(message).hint(hint).because(error)
    })
}
