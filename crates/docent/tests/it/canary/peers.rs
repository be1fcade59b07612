//! Whoever the program talks to: servers that answer as told, and keep every word that they hear.

use std::sync::{Arc, Mutex};

use docent_mcp::http::{HttpOptions, Route, RouteRequest, RouteResponse, ServerTls, serve_routes};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

type Answer = dyn Fn(&str, &RouteRequest) -> RouteResponse + Send + Sync;

/// A server on this machine.
pub(super) struct Peer {
    /// Its address, with the scheme.
    pub(super) name: String,
    heard: Arc<Mutex<String>>,
    stop: CancellationToken,
    _runtime: Runtime,
}

impl Peer {
    /// Answers whatever comes; over TLS it is called `localhost`. The answer is made once the name is known.
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
        let heard: Arc<Mutex<String>> = Arc::default();
        let answer: Arc<Answer> = Arc::new(answer(&name));
        let handler = {
            let heard = heard.clone();
            move |visit: RouteRequest| {
                let path = visit.var("path").unwrap_or_default();
                let body = String::from_utf8_lossy(visit.body()).into_owned();
                let words = format!("/{path} {visit:?} {body}\n");
                heard.lock().unwrap().push_str(&words);
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
            heard,
            stop,
            _runtime: runtime,
        }
    }

    pub(super) fn heard(&self) -> String {
        self.heard.lock().unwrap().clone()
    }

    /// Its name and port.
    pub(super) fn host(&self) -> &str {
        self.name.split_once("://").unwrap().1
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(super) fn nothing() -> RouteResponse {
    RouteResponse::new(404, "text/plain", "")
}
