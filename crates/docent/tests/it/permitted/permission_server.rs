//! Test server with documents of two groups, an API key for a reader of each, and every request that could reveal a
//! document: searches, filters, facets, completion, resources and pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use docent::audit::AuditLog;
use docent::knowledge_base::KnowledgeBase;
use docent::settings::Settings;
use docent::{app, pages};
use docent_mcp::http::{HttpOptions, limits::HttpLimits};
use docent_mcp::{ApiKeyGrant, ApiKeyStore, Auth, AuthRequirement, DualFormat, TextForm};
use docent_search::{
    AllowedReaders, Document, DocumentChange, DocumentValue as Field, EmbeddedEngine, Engine as _,
    Principal,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::contract;

/// Two groups, and one without members and documents. All names have four letters, so that responses that differ only
/// in the name have the same length.
pub(super) const GROUPS: [&str; 2] = ["pear", "plum"];
pub(super) const NOBODY: &str = "figs";

/// The `traceparent` of every request.
pub(super) const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

pub(super) struct PermissionServer {
    address: String,
    pub(super) keys: BTreeMap<&'static str, String>,
    stop: CancellationToken,
    _dir: tempfile::TempDir,
}

fn document(group: &str, n: usize) -> Document {
    let text = format!(
        "{group}canary says that the ferry of the {group}s sails on day {n}.\n\n# Notes\n\nThe harbour of \
         the {group}canary is closed."
    );
    Document {
        title: format!("Paper {n} of {group}s"),
        date: Some(format!("2024-05-{:02}", 1 + n % 28)),
        fields: vec![
            (
                format!("{group}field"),
                Field::Text(format!("{group}value{n}")),
            ),
            (
                "tags".to_owned(),
                Field::List(vec![format!("{group}tag"), "sea".to_owned()]),
            ),
        ],
        source: format!("{group}/paper-{n}.md"),
        readers: AllowedReaders::Only(
            [Principal::parse(&format!("group:{group}")).unwrap()].into(),
        ),
        ..contract::long(&format!("{group}-{n:03}"), text)
    }
}

fn open(n: usize) -> Document {
    let text = format!("A notice for all: the ferry sails, says notice {n}.");
    Document {
        fields: vec![("tags".to_owned(), Field::List(vec!["sea".to_owned()]))],
        date: Some("2024-04-01".to_owned()),
        ..contract::long(&format!("open-{n:03}"), text)
    }
}

impl PermissionServer {
    pub(super) async fn start(audit: Option<Arc<AuditLog>>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = EmbeddedEngine::open(&dir.path().join("index")).unwrap();
        let mut all: Vec<_> = (0..4).map(open).collect();
        all.extend(
            GROUPS
                .iter()
                .flat_map(|group| (0..20).map(|n| document(group, n))),
        );
        engine
            .apply(all.into_iter().map(DocumentChange::Put).collect())
            .await
            .unwrap();
        let mut settings = Settings::default();
        settings.record.name = Some("record".to_owned());
        let knowledge = Arc::new(KnowledgeBase::new(Arc::new(engine), &settings, "world"));
        knowledge.refresh_counts().await.unwrap();
        let mut app = app::builder(&knowledge, DualFormat::Auto, TextForm::Json);
        let observer = audit
            .clone()
            .map(|audit| audit as Arc<dyn docent_mcp::CallObserver>);
        if let Some(audit) = audit {
            app = app.observer(audit);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let api_keys = ApiKeyStore::open(dir.path().join("keys.json")).unwrap();
        let keys = GROUPS.map(|group| {
            let grant = ApiKeyGrant {
                name: format!("reader-of-{group}"),
                claims: [("groups".to_owned(), vec![group.to_owned()])].into(),
                ..ApiKeyGrant::default()
            };
            (group, api_keys.add(grant, 1).unwrap())
        });
        let auth = Auth::builder([format!("http://{address}")])
            .keys(api_keys)
            .requirement(AuthRequirement::Optional);
        let options = HttpOptions {
            limits: HttpLimits {
                calls_per_minute: 0,
                ..HttpLimits::default()
            },
            routes: vec![pages::route(knowledge, observer)],
            auth: Some(auth.build().unwrap()),
            ..HttpOptions::default()
        };
        let stop = CancellationToken::new();
        let serving =
            docent_mcp::http::serve(app.build().unwrap(), options, listener, stop.clone());
        tokio::spawn(serving);
        Self {
            address,
            keys: keys.into(),
            stop,
            _dir: dir,
        }
    }
}

impl Drop for PermissionServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Request template; `{g}` is replaced with the name of a group.
#[derive(Clone, Copy)]
pub(super) enum ReaderRequest {
    Rpc(&'static str, &'static str),
    Page(&'static str),
}

/// Every request that a caller can make about a group.
pub(super) const ASKS: [ReaderRequest; 20] = [
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"search","arguments":{"query":"{g}canary"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"search","arguments":{"query":"ferry {g}field:{g}value3"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"search","arguments":{"query":"\"harbour of the {g}canary\""}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"search","arguments":{"query":"{g}can"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"fetch","arguments":{"id":"{g}-003"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"fetch","arguments":{"id":"{g}-003#p1"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"record","arguments":{"id":"{g}-003"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"find","arguments":{"query":"{g}canary","facets":["tags"]}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"find","arguments":{"query":"","tags":["{g}tag"]}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"list_fields","arguments":{"field":"{g}field"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"show_results","arguments":{"query":"{g}canary ferry"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"show_results","arguments":{"ids":["{g}-003","open-001"]}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"show_document","arguments":{"id":"{g}-003","query":"ferry"}}"#,
    ),
    ReaderRequest::Rpc("resources/read", r#"{"uri":"docent://fields/{g}field"}"#),
    ReaderRequest::Rpc(
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"research"},"argument":{"name":"filter","value":"{g}"}}"#,
    ),
    ReaderRequest::Rpc(
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"research"},"argument":{"name":"filter","value":"tags:{g}"}}"#,
    ),
    ReaderRequest::Rpc(
        "completion/complete",
        r#"{"ref":{"type":"ref/resource","uri":"docent://fields/{field}"},"argument":{"name":"field","value":"{g}"}}"#,
    ),
    ReaderRequest::Page("/d/{g}-003"),
    ReaderRequest::Page("/d/{g}-003?q=ferry&p=1"),
    ReaderRequest::Page("/d/{g}-003?p=9"),
];

/// Requests that name no group.
pub(super) const PLAIN: [ReaderRequest; 9] = [
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"search","arguments":{"query":"ferry"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"search","arguments":{"query":"harbor notice"}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"find","arguments":{"query":"ferry","facets":["tags"],"limit":50}}"#,
    ),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"find","arguments":{"query":"","sort":"newest","limit":50}}"#,
    ),
    ReaderRequest::Rpc("tools/call", r#"{"name":"list_fields","arguments":{}}"#),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"show_results","arguments":{"query":"ferry"}}"#,
    ),
    ReaderRequest::Rpc("tools/list", "{}"),
    ReaderRequest::Rpc("resources/read", r#"{"uri":"docent://corpus"}"#),
    ReaderRequest::Rpc(
        "tools/call",
        r#"{"name":"fetch","arguments":{"id":"docent:about-this-search"}}"#,
    ),
];

/// Client of the test server with a keep-alive connection.
pub(super) struct ReaderClient {
    address: String,
    stream: Option<TcpStream>,
}

impl ReaderClient {
    pub(super) fn new(server: &PermissionServer) -> Self {
        Self {
            address: server.address.clone(),
            stream: None,
        }
    }

    /// Sends a request, and returns the whole response without its `Date` header.
    pub(super) async fn ask(
        &mut self,
        ask: ReaderRequest,
        group: &str,
        key: Option<&str>,
    ) -> String {
        let request = self.request(ask, group, key);
        for _ in 0..3 {
            if self.stream.is_none() {
                self.stream = Some(TcpStream::connect(&self.address).await.unwrap());
            }
            if let Some(answer) = self.exchange(&request).await {
                let lines = answer.split("\r\n");
                let kept: Vec<_> = lines.filter(|line| !line.starts_with("date:")).collect();
                return kept.join("\r\n");
            }
            // The server closes connections at their maximum age, so this reconnects.
            self.stream = None;
        }
        panic!("no answer to {request}");
    }

    fn request(&self, ask: ReaderRequest, group: &str, key: Option<&str>) -> String {
        let (line, body) = match ask {
            ReaderRequest::Page(path) => {
                (format!("GET {}", path.replace("{g}", group)), String::new())
            }
            ReaderRequest::Rpc(method, params) => {
                let params = params.replace("{g}", group);
                let body =
                    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
                ("POST /mcp".to_owned(), body)
            }
        };
        let key = key.map_or(String::new(), |key| {
            format!("authorization: Bearer {key}\r\n")
        });
        format!(
            "{line} HTTP/1.1\r\nhost: {}\r\naccept: application/json\r\ncontent-type: application/json\r\n\
             mcp-protocol-version: 2025-11-25\r\ntraceparent: {TRACE}\r\n{key}content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
    }

    async fn exchange(&mut self, request: &str) -> Option<String> {
        let stream = self.stream.as_mut()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        let (mut bytes, mut room) = (Vec::new(), [0; 16 * 1024]);
        loop {
            let text = String::from_utf8_lossy(&bytes);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let mut lines = head.lines();
                let length = lines.find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.unwrap_or_else(|| panic!("{head}")).parse().unwrap();
                if body.len() >= length {
                    return Some(text.into_owned());
                }
            }
            let read = stream.read(&mut room).await.ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&room[..read]);
        }
    }
}
