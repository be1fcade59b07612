//! High availability: three servers on one Qdrant cluster behind a load balancer. Nodes and servers are killed and
//! restarted, and clients see no error. A model is replaced while servers fail over. A hostile client attacks a server
//! on a cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    dead_code,
    reason = "test helpers may panic; the servers are shared with another test"
)]

mod balancer;
mod hostile_client;
mod hostile_requests;
mod permissions;
#[path = "../../../search/tests/cluster/server.rs"]
mod server;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::balancer::LoadBalancer;
use self::server::{TestServers, get};

/// Number of documents in the indexed folder.
const DOCUMENTS: usize = 40;

/// Number of rounds in which every server is restarted.
const ROUNDS: usize = 10;

/// Upper bound on the start of a server, on a busy machine.
const START: Duration = Duration::from_secs(60);

struct ReplicaProcess {
    child: Child,
    port: u16,
}

impl ReplicaProcess {
    fn start(folder: &Path, port: u16) -> Self {
        Self::start_with(folder, port, &[])
    }

    fn start_with(folder: &Path, port: u16, env: &[(&str, &str)]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_docent"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .arg(folder)
            .envs(env.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let replica = Self { child, port };
        let start = Instant::now();
        while !replica.is_ready() {
            assert!(start.elapsed() < START, "the server did not become ready");
            std::thread::sleep(Duration::from_millis(100));
        }
        replica
    }

    fn is_ready(&self) -> bool {
        self.state().get("ready") == Some(&serde_json::Value::Bool(true))
    }

    fn state(&self) -> serde_json::Value {
        get(&format!("http://127.0.0.1:{}", self.port), "/readyz")
    }

    /// Number of documents with vectors of this server's model.
    fn with_vectors(&self) -> u64 {
        let state = self.state();
        let counted = state.pointer("/vectors/documents");
        counted
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_default()
    }

    /// Whether this server holds the lease, and so is the one that writes the index.
    fn writes(&self) -> bool {
        let state = self.state();
        let sync = state
            .pointer("/sync/state")
            .and_then(serde_json::Value::as_str);
        sync.is_some_and(|state| state != "read-only")
    }

    /// Kills the process with SIGKILL, so that it cannot release its lease.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM, and waits for the process to end.
    fn end(&mut self) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", "TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for ReplicaProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a folder of documents with settings that put its index on these nodes.
fn folder(servers: &TestServers) -> tempfile::TempDir {
    folder_of(servers, DOCUMENTS)
}

fn folder_of(servers: &TestServers, documents: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..documents {
        let text = format!("# Ferry {n}\n\nThe ferry to isle number {n} was late again.\n");
        std::fs::write(folder.path().join(format!("ferry-{n}.md")), text).unwrap();
    }
    let addresses = serde_json::to_string(&servers.addresses()).unwrap();
    let settings =
        format!("[engine]\nkind = \"qdrant\"\naddresses = {addresses}\n[model]\nname = \"none\"\n");
    std::fs::write(folder.path().join("docent.toml"), settings).unwrap();
    folder
}

/// Calls the `search` tool once, and returns the JSON-RPC response.
fn search(address: &str) -> Result<serde_json::Value, String> {
    let call = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "ferry isle"}},
    });
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .proxy(None)
        .max_idle_connections(0)
        .build()
        .into();
    let request = agent
        .post(format!("{address}/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18");
    let mut answer = request
        .send(call.to_string())
        .map_err(|error| error.to_string())?;
    let text = answer
        .body_mut()
        .read_to_string()
        .map_err(|error| error.to_string())?;
    // The response is one JSON object, or the one event of a stream.
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.unwrap_or(&text)).map_err(|error| format!("{error}: {text}"))
}

/// Whether a response has the full number of results.
fn is_whole(answer: &serde_json::Value) -> bool {
    let results = answer.pointer("/result/structuredContent/results");
    results
        .and_then(serde_json::Value::as_array)
        .is_some_and(|list| list.len() >= 10)
}

/// Searches in a thread until `stop` is set. An incomplete response fails the test.
fn ask(
    address: String,
    stop: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let answer = search(&address);
            assert!(answer.as_ref().is_ok_and(is_whole), "{answer:?}");
            answers.fetch_add(1, Ordering::Relaxed);
        }
    })
}

/// Whether Qdrant is installed. Prints a notice where it is not, because the test is then skipped.
fn is_there() -> bool {
    let is_there = server::program().is_some();
    if !is_there {
        eprintln!("skipped: there is no Qdrant to test against; run conformance/qdrant/setup");
    }
    is_there
}

/// Runs the program, and returns its JSON output.
fn docent(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docent"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("DOCENT_MODEL_NAME", "table");
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_index_is_migrated_to_a_cluster_and_back() {
    if !is_there() {
        return;
    }
    let servers = TestServers::start(1);
    let folder = folder(&servers);
    let here = folder.path();
    docent(here, &["index", ".", "--engine", "embedded", "--json"]);
    let report = |to: &str, index: &str| {
        let report = docent(
            here,
            &["migrate", ".", "--to", to, "--index", index, "--json"],
        );
        ["documents", "carried", "unchanged", "embedded"].map(|key| report[key].as_u64().unwrap())
    };
    let all = DOCUMENTS as u64;
    assert_eq!(report("qdrant", ".docent/index"), [all, all, 0, 0]);
    assert_eq!(
        report("qdrant", ".docent/index"),
        [all, 0, all, 0],
        "a second run must copy nothing"
    );
    assert_eq!(report("embedded", "back"), [all, all, 0, 0]);
    let ids = |index: &str| {
        let found = docent(
            here,
            &["search", "isle seven ferry", "--index", index, "--json"],
        );
        let results = found["results"].as_array().unwrap().clone();
        results
            .iter()
            .map(|one| one["id"].clone())
            .collect::<Vec<_>>()
    };
    // The settings name the cluster, so the first search uses the cluster whatever `--index` says.
    let there = ids("nowhere");
    assert_eq!(there.len(), 10);
    std::fs::remove_file(here.join("docent.toml")).unwrap();
    assert_eq!(ids(".docent/index"), there);
    assert_eq!(ids("back"), there);
}

#[test]
fn clients_do_not_notice_a_replica_that_dies() {
    if !is_there() {
        return;
    }
    let servers = TestServers::start(3);
    let folder = folder(&servers);
    let balancer = LoadBalancer::start(3);
    let mut replicas: Vec<_> = balancer
        .backends()
        .iter()
        .map(|port| ReplicaProcess::start(folder.path(), *port))
        .collect();
    // Servers are ready before there are documents; the writer indexes them.
    let start = Instant::now();
    while !search(&balancer.address()).as_ref().is_ok_and(is_whole) {
        assert!(start.elapsed() < START, "{:?}", search(&balancer.address()));
        std::thread::sleep(Duration::from_millis(200));
    }
    let (stop, answers) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let searches: Vec<_> = (0..3)
        .map(|_| ask(balancer.address(), stop.clone(), answers.clone()))
        .collect();

    let leader = servers.leader();
    servers.kill(leader);
    let before = answers.load(Ordering::Relaxed);
    wait_for(&answers, before + 60);
    servers.revive(leader);

    for _ in 0..ROUNDS {
        for replica in &mut replicas {
            let port = replica.port;
            replica.end();
            *replica = ReplicaProcess::start(folder.path(), port);
        }
    }
    stop.store(true, Ordering::Relaxed);
    for one in searches {
        one.join().unwrap();
    }

    // With two of three nodes down, a search must fail within two seconds and name the reason.
    let others: Vec<_> = (0..3).filter(|at| *at != leader).collect();
    others.iter().for_each(|at| servers.kill(*at));
    let start = Instant::now();
    let answer = search(&balancer.address()).unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        answer.pointer("/result/isError"),
        Some(&serde_json::Value::Bool(true)),
        "{answer}"
    );
    assert!(
        answer.to_string().contains("cannot be searched right now"),
        "{answer}"
    );
    others.iter().for_each(|at| servers.revive(*at));
    let start = Instant::now();
    while !search(&balancer.address()).as_ref().is_ok_and(is_whole) {
        assert!(
            start.elapsed() < Duration::from_secs(90),
            "{:?}",
            search(&balancer.address())
        );
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn wait_for(answers: &AtomicU64, wanted: u64) {
    let start = Instant::now();
    while answers.load(Ordering::Relaxed) < wanted {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "no response before the deadline"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Number of documents whose model is replaced. Vectors are written in batches of 256, so several batches are still
/// pending when the first one is observed.
const MANY: usize = 1_200;

/// The collection behind the alias that searches use.
fn live_collection(servers: &TestServers) -> Option<String> {
    let aliases = get(&servers.addresses()[0], "/aliases");
    let all = aliases.pointer("/result/aliases")?.as_array()?;
    let one = all
        .iter()
        .find(|one| one["alias_name"] == "docent-passages")?;
    one["collection_name"].as_str().map(str::to_owned)
}

/// Polls until a condition holds, and panics with its name after three minutes.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(
            start.elapsed() < Duration::from_secs(180),
            "did not happen: {what}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
#[allow(clippy::too_many_lines, reason = "one story, told in its order")]
fn a_model_is_replaced_while_servers_fail_over() {
    if !is_there() {
        return;
    }
    let servers = TestServers::start(3);
    let folder = folder_of(&servers, MANY);
    let balancer = LoadBalancer::start(3);
    let metrics_addresses = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let start = |at: usize, model: &str, metrics: &str| {
        let env = [
            ("DOCENT_MODEL_NAME", model),
            ("DOCENT_SERVER_METRICS", metrics),
        ];
        ReplicaProcess::start_with(folder.path(), balancer.backends()[at], &env)
    };
    let mut old = start(0, "table", "127.0.0.1:0");
    until("all vectors of the first model", || {
        old.with_vectors() == MANY as u64
    });
    until("searches use its collection", || {
        live_collection(&servers).is_some()
    });
    let before = live_collection(&servers).unwrap();

    // Two servers with the new model, one of which will become the writer.
    let mut new = [(1, &metrics_addresses[0]), (2, &metrics_addresses[1])]
        .map(|(at, metrics_address)| start(at, "granite", metrics_address));
    until("complete responses", || {
        search(&balancer.address()).as_ref().is_ok_and(is_whole)
    });
    let (stop, answers) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let searches = ask(balancer.address(), stop.clone(), answers.clone());
    until("both new servers wait for the lease", || {
        !new.iter().any(ReplicaProcess::writes)
    });
    old.end();
    until("one new server becomes the writer", || {
        new.iter().any(ReplicaProcess::writes)
    });
    let writer = new.iter().position(ReplicaProcess::writes).unwrap();
    until("the first vectors of the new model", || {
        new[writer].with_vectors() > 0
    });
    let made = new[writer].with_vectors();
    assert!(made < MANY as u64, "all {made} were made before the kill");
    assert_eq!(live_collection(&servers).as_ref(), Some(&before));
    new[writer].kill();
    let left = &new[1 - writer];
    let metrics = &metrics_addresses[1 - writer];
    until("the other new server becomes the writer", || left.writes());
    until("all vectors of the new model", || {
        left.with_vectors() == MANY as u64
    });
    until("searches use its collection", || {
        live_collection(&servers).is_some_and(|now| now != before)
    });
    until("the old collection is deleted", || {
        let all = get(&servers.addresses()[0], "/collections");
        !all.to_string().contains(&before)
    });
    let so_far = answers.load(Ordering::Relaxed);
    wait_for(&answers, so_far + 5);
    stop.store(true, Ordering::Relaxed);
    searches.join().unwrap();

    let numbers = ureq::get(format!("http://{metrics}/metrics"))
        .call()
        .unwrap();
    let numbers = numbers.into_body().read_to_string().unwrap();
    let value = |start: &str| {
        let line = numbers.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("{start}\n{numbers}"))
            .trim()
            .parse::<f64>()
            .unwrap()
    };
    assert!(value("docent_engine_calls_total{call=\"search\",outcome=\"answered\"}") > 0.0);
    assert!(value("docent_engine_call_seconds_count{call=\"search\"}") > 0.0);
    for node in servers.addresses() {
        assert!(
            value(&format!(
                "docent_engine_node_requests_total{{node=\"{node}\"}}"
            )) > 0.0
        );
        assert!(value(&format!("docent_engine_node_left_alone{{node=\"{node}\"}}")) == 0.0);
    }
}
