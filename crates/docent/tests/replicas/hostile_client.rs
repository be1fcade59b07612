//! Hostile clients of a server on a cluster: deep pages, query bombs, and text that is syntax in a filter of Qdrant. No
//! answer shows anything of a restricted document, Qdrant rejects no request, and nothing in the collections changes.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::balancer::ByteCounter;
use super::hostile_requests::{INJECTIONS, bombs, call, injections, odd_pages, plain_requests};
use super::server::{TestServers, get};
use super::{ReplicaProcess, free_port, is_there, until};

/// The word in everything that is restricted, and one of the same length that is in no document.
const SECRET: &str = "plum";
const ABSENT: &str = "figs";
/// Open documents whose columns are named like syntax.
const OPEN: usize = 40;
/// How many of them have the word of honest searches.
const FERRIES: usize = 20;
/// Further documents, enough for a page at the largest offset, and the bytes of each, most of them repeated words.
const ROWS: usize = 10_050;
const ROW_BYTES: usize = 1_000;
const RESTRICTED: usize = 12;

/// A server on a cluster, with documents for everyone and for one group, and API keys.
struct ClusterTarget {
    servers: TestServers,
    replica: ReplicaProcess,
    /// Counts the bytes between the server and Qdrant.
    nodes: ByteCounter,
    metrics: String,
    member: String,
    strangers: Vec<String>,
    folder: tempfile::TempDir,
}

fn restricted_document(n: usize) -> String {
    format!(
        "---\ntitle: Paper {n} of {SECRET}s\n{SECRET}field: {SECRET}value{n}\nharbour: {SECRET}harbour\n\
         tags: [{SECRET}tag, sea]\n---\n{SECRET}canary says that the ferry of the {SECRET}s sails on day {n}.\n"
    )
}

/// Rows whose columns are named like the payload keys and operators of Qdrant.
fn open_documents() -> String {
    let mut table = "title,harbour,has_id,must_not,who,\"a\"\"b\",$where,note\n".to_owned();
    for n in 0..OPEN {
        let quay = n % 7;
        let word = if n < FERRIES { "ferry" } else { "barge" };
        let _ = writeln!(
            table,
            "{word} {n},quay {quay},id {quay},not {quay},who {quay},\"q\"\"{quay}\",$ {quay},The {word} waits at pier {n}."
        );
    }
    table
}

fn many_documents() -> String {
    let filler = "berth ".repeat(ROW_BYTES / 6);
    let mut table = "title,note\n".to_owned();
    for n in 0..ROWS {
        let _ = writeln!(table, "pier {n},{filler} number {n}");
    }
    table
}

fn key(folder: &Path, name: &str, group: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_docent"))
        .args(["key", "add", name, "--claim", &format!("groups={group}")])
        .arg("--path")
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl ClusterTarget {
    fn start() -> Self {
        let servers = TestServers::start(1);
        let nodes = ByteCounter::start(&servers.addresses()[0]);
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        std::fs::create_dir(here.join("inner")).unwrap();
        for n in 0..RESTRICTED {
            let path = here.join(format!("inner/{SECRET}-{n}.md"));
            std::fs::write(path, restricted_document(n)).unwrap();
        }
        std::fs::write(here.join("open.csv"), open_documents()).unwrap();
        let settings = format!(
            "record.name = \"record\"\n[engine]\nkind = \"qdrant\"\naddresses = [\"{}\"]\ntimeout_ms = 30000\n[model]\nname = \"none\"\n\
             [auth]\napi_keys = true\nrequired = false\n[limits]\ncalls_per_minute = 0\n\
             [permissions]\ndefault = \"everyone\"\n[[permissions.folder]]\npath = \"inner/**\"\ngroups = [\"{SECRET}\"]\n",
            nodes.address()
        );
        std::fs::write(here.join("docent.toml"), settings).unwrap();
        let member = key(here, "member", SECRET);
        // Names of groups that would grant more, were they taken for something else than names.
        let groups = ["*", "p*", "everyone", "any", "\"]}},{\"must\":[]", "PLUM"];
        let strangers = groups.iter().enumerate();
        let strangers = strangers
            .map(|(n, group)| key(here, &format!("stranger-{n}"), group))
            .collect();
        let metrics = format!("127.0.0.1:{}", free_port());
        let env = [("DOCENT_SERVER_METRICS", metrics.as_str())];
        let replica = ReplicaProcess::start_with(here, free_port(), &env);
        let target = Self {
            servers,
            replica,
            nodes,
            metrics,
            member,
            strangers,
            folder,
        };
        until("all documents are indexed", || {
            target.count(None, "") == Some(OPEN as u64)
                && target.count(Some(&target.member), "") == Some((OPEN + RESTRICTED) as u64)
        });
        target
    }

    /// Sends a request, and returns its status and text.
    fn send(&self, path: &str, key: Option<&str>, body: Option<&str>) -> (u16, String) {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .build()
            .into();
        let url = format!("http://127.0.0.1:{}{path}", self.replica.port);
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json"),
            ("mcp-protocol-version", "2025-06-18"),
        ];
        let bearer = key.map(|key| format!("Bearer {key}"));
        let got = match body {
            Some(body) => {
                let mut request = agent.post(&url);
                for (name, value) in headers {
                    request = request.header(name, value);
                }
                if let Some(bearer) = &bearer {
                    request = request.header("authorization", bearer);
                }
                request.send(body)
            }
            None => agent.get(&url).call(),
        };
        let mut got = got.unwrap_or_else(|error| panic!("{path} {body:?}: {error}"));
        let status = got.status().as_u16();
        let text = got.body_mut().with_config().limit(1 << 24);
        (status, text.read_to_string().unwrap())
    }

    /// Sends a message of any size and shape, and checks that the answer is one that a client's mistake gets.
    fn message(&self, key: Option<&str>, body: &str) -> String {
        let (status, text) = self.send("/mcp", key, Some(body));
        let shown: String = body.chars().take(300).collect();
        assert!(
            matches!(status, 200 | 400 | 413),
            "{status} {text}: {shown}"
        );
        assert!(
            serde_json::from_str::<Value>(&text).is_ok(),
            "{text}: {shown}"
        );
        for failure in ["internal error", "cannot be searched right now"] {
            assert!(!text.contains(failure), "{text}: {shown}");
        }
        text
    }

    fn call(&self, key: Option<&str>, tool: &str, arguments: &Value) -> Value {
        let body = call(tool, arguments);
        let text = self.message(key, &body);
        serde_json::from_str(&text).unwrap()
    }

    /// The number of documents that a reader finds.
    fn count(&self, key: Option<&str>, query: &str) -> Option<u64> {
        let body = call("find", &json!({"query": query, "limit": 1}));
        let (_, text) = self.send("/mcp", key, Some(&body));
        let answer: Value = serde_json::from_str(&text).ok()?;
        answer
            .pointer("/result/structuredContent/total_count")?
            .as_u64()
    }

    /// The sum of a metric over all its labels that contain these words.
    fn metric(&self, name: &str, labels: &str) -> f64 {
        let url = format!("http://{}/metrics", self.metrics);
        let text = ureq::get(url).call().unwrap().into_body();
        let text = text.into_with_config().read_to_string().unwrap();
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(labels));
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        lines.map(value).sum()
    }

    /// The names of the collections of Qdrant, each with its number of points.
    fn collections(&self) -> Vec<(String, u64)> {
        let node = &self.servers.addresses()[0];
        let found = get(node, "/collections");
        let found = found["result"]["collections"].as_array().unwrap();
        let names = found.iter().map(|one| one["name"].as_str().unwrap());
        let mut all: Vec<_> = names
            .map(|name| {
                let state = get(node, &format!("/collections/{name}"));
                let points = state["result"]["points_count"].as_u64();
                (name.to_owned(), points.unwrap_or_default())
            })
            .collect();
        all.sort();
        all
    }
}

/// What a caller who may not read the restricted documents gets about them is what everybody gets about documents that
/// do not exist.
fn check_hidden(target: &ClusterTarget, key: Option<&str>, template: &str) {
    let secret = target.message(key, &template.replace("{g}", SECRET));
    if !template.contains("{g}") {
        assert!(!secret.contains(SECRET), "{template}: {secret}");
        return;
    }
    let absent = target.message(key, &template.replace("{g}", ABSENT));
    assert_eq!(secret.replace(SECRET, ABSENT), absent, "{template}");
}

#[test]
fn a_hostile_client_of_a_cluster_learns_and_breaks_nothing() {
    if !is_there() {
        return;
    }
    let target = ClusterTarget::start();
    // The restricted documents are there, and whoever may read them finds them with the very same requests.
    let member = Some(target.member.as_str());
    let seen = plain_requests()
        .iter()
        .map(|plain| target.message(member, &plain.replace("{g}", SECRET)))
        .filter(|answer| answer.contains(&format!("{SECRET}canary says")))
        .count();
    assert!(seen >= 5, "{seen}");
    let before = target.collections();
    let failures = |target: &ClusterTarget| {
        [
            target.metric("docent_engine_calls_total", "outcome=\"refused\""),
            target.metric("docent_engine_calls_total", "outcome=\"failed\""),
            target.metric("docent_tool_calls_total", "outcome=\"failed\""),
        ]
    };
    let failed = failures(&target);

    for plain in plain_requests() {
        check_hidden(&target, None, &plain);
        for stranger in &target.strangers {
            check_hidden(&target, Some(stranger), &plain);
        }
    }
    for injection in INJECTIONS {
        for request in injections(injection) {
            check_hidden(&target, None, &request);
        }
    }
    for request in odd_pages().iter().chain(&bombs()) {
        check_hidden(&target, None, request);
    }
    for path in ["/d/inner/{g}-1.md", "/d/inner%2f{g}-1.md", "/d/..%2f{g}"] {
        let [secret, absent] =
            [SECRET, ABSENT].map(|group| target.send(&path.replace("{g}", group), None, None));
        assert_eq!((secret.0, absent.0), (404, 404), "{path}");
        assert_eq!(secret.1.replace(SECRET, ABSENT), absent.1, "{path}");
    }

    // Text that became syntax would be a request that Qdrant rejects.
    assert_eq!(failures(&target), failed);
    assert_eq!(target.collections(), before);
    assert_eq!(target.count(None, "ferry"), Some(FERRIES as u64));
    assert_eq!(
        target.count(member, "ferry"),
        Some((FERRIES + RESTRICTED) as u64)
    );
    check_deep_pages(&target);
}

/// A deep page has the results that are there, and loads only the documents that it shows.
fn check_deep_pages(target: &ClusterTarget) {
    std::fs::write(target.folder.path().join("many.csv"), many_documents()).unwrap();
    until("the further documents are indexed", || {
        target.count(None, "berth") == Some(ROWS as u64)
    });
    let page = |offset: usize| {
        let (bytes, asked) = (target.nodes.received(), target.asked());
        let arguments = json!({"query": "berth", "offset": offset, "limit": 10});
        let answer = target.call(None, "find", &arguments);
        let results = answer["result"]["structuredContent"]["results"].as_array();
        assert_eq!(results.map(Vec::len), Some(10), "{answer}");
        (target.nodes.received() - bytes, target.asked() - asked)
    };
    page(0);
    let (_, first) = page(0);
    let (bytes, deep) = page(10_000);
    let all = (ROWS * ROW_BYTES) as u64;
    assert!(bytes < all / 4, "{bytes} of {all} bytes");
    assert!(
        deep <= first * 4.0,
        "{deep} requests, {first} for the first page"
    );
}

impl ClusterTarget {
    /// The number of requests to the node so far.
    fn asked(&self) -> f64 {
        self.metric("docent_engine_node_requests_total", "")
    }
}
