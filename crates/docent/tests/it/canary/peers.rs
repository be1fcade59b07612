//! Mock servers that the program talks to, such as issuers and client hosts. They record every request, so that a test
//! can search it for leaked secrets.

use std::sync::{Arc, Mutex};

use docent_mcp::http::{HttpOptions, Route, RouteRequest, RouteResponse, ServerTls, serve_routes};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

type ReplyHandler = dyn Fn(&str, &RouteRequest) -> RouteResponse + Send + Sync;

/// Mock HTTP server on the loopback interface, with its own runtime so that plain tests can use it.
pub(super) struct MockPeer {
    /// Base URL: the scheme, host and port.
    pub(super) name: String,
    requests: Arc<Mutex<String>>,
    stop: CancellationToken,
    _runtime: Runtime,
}

impl MockPeer {
    /// Starts a server that answers every path. With TLS its host is `localhost`, as in the certificate. The handler is
    /// built from the base URL, which is known only once the port is bound.
    pub(super) fn start<A>(tls: Option<ServerTls>, answer: impl FnOnce(&str) -> A) -> Self
    where
        A: Fn(&str, &RouteRequest) -> RouteResponse + Send + Sync + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let name = match tls {
            Some(_) => format!("https://localhost:{}", address.port()),
            None => format!("http://{address}"),
        };
        let requests: Arc<Mutex<String>> = Arc::default();
        let answer: Arc<ReplyHandler> = Arc::new(answer(&name));
        let handler = {
            let requests = requests.clone();
            move |visit: RouteRequest| {
                let path = visit.var("path").unwrap_or_default();
                let body = String::from_utf8_lossy(visit.body()).into_owned();
                let request = format!("/{path} {visit:?} {body}\n");
                requests.lock().unwrap().push_str(&request);
                let page = answer(path, &visit);
                async move { Ok(page) }
            }
        };
        let options = HttpOptions {
            routes: vec![
                Route::get("/{+path}", handler.clone()),
                Route::post("/{+path}", handler),
            ],
            tls,
            ..HttpOptions::default()
        };
        let stop = CancellationToken::new();
        runtime.spawn(serve_routes(options, listener, stop.clone()));
        Self {
            name,
            requests,
            stop,
            _runtime: runtime,
        }
    }

    pub(super) fn received(&self) -> String {
        self.requests.lock().unwrap().clone()
    }

    /// The host and port of the base URL.
    pub(super) fn host(&self) -> &str {
        self.name.split_once("://").unwrap().1
    }
}

impl Drop for MockPeer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(super) fn not_found() -> RouteResponse {
    RouteResponse::new(404, "text/plain", "")
}
