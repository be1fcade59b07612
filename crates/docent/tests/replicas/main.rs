//! Three servers on one cluster behind a balancer: nodes and servers die and come back, and who asks does not
//! notice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    dead_code,
    reason = "a test fails by panicking, in its helpers too; the servers are shared with another test"
)]

mod balancer;
#[path = "../../../search/tests/cluster/server.rs"]
mod server;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::balancer::Balancer;
use self::server::{TestServers, get};

/// How many documents there are.
const DOCUMENTS: usize = 40;

/// How often every server is started again.
const ROUNDS: usize = 10;

/// How long a server may take to start, on a machine that does much else.
const START: Duration = Duration::from_secs(60);

struct Replica {
    child: Child,
    port: u16,
}

impl Replica {
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
            assert!(start.elapsed() < START, "a server never got ready");
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

    /// How many documents have the vectors of its model.
    fn with_vectors(&self) -> u64 {
        let state = self.state();
        let counted = state.pointer("/vectors/documents");
        counted
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_default()
    }

    /// Whether it is the one of all servers that changes the index.
    fn writes(&self) -> bool {
        let state = self.state();
        let sync = state
            .pointer("/sync/state")
            .and_then(serde_json::Value::as_str);
        sync.is_some_and(|state| state != "read-only")
    }

    /// Ends it with a signal that it cannot catch.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits until it has.
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

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder of documents whose index is on these nodes.
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

/// What one call of the `search` tool answers.
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
    // As one object, or as the one event of a stream.
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.unwrap_or(&text)).map_err(|error| format!("{error}: {text}"))
}

/// Whether an answer has as many results as there should be.
fn is_whole(answer: &serde_json::Value) -> bool {
    let results = answer.pointer("/result/structuredContent/results");
    results
        .and_then(serde_json::Value::as_array)
        .is_some_and(|list| list.len() >= 10)
}

/// Asks until told to stop. What is not whole is a failure.
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

/// Whether there is a Qdrant; says so where there is none.
fn is_there() -> bool {
    let is_there = server::program().is_some();
    if !is_there {
        eprintln!("skipped: there is no Qdrant to test against; run conformance/qdrant/setup");
    }
    is_there
}

/// Runs the program, and gives what it prints as JSON.
fn docent(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docent"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("DOCENT_MODEL_NAME", "table");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_index_is_carried_there_and_back() {
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
        "nothing is carried twice"
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
    // The settings name the cluster, so the first of these asks the cluster whatever the folder.
    let there = ids("nowhere");
    assert_eq!(there.len(), 10);
    std::fs::remove_file(here.join("docent.toml")).unwrap();
    assert_eq!(ids(".docent/index"), there);
    assert_eq!(ids("back"), there);
}

#[test]
fn whoever_asks_does_not_notice_who_dies() {
    if !is_there() {
        return;
    }
    let servers = TestServers::start(3);
    let folder = folder(&servers);
    let balancer = Balancer::start(3);
    let mut replicas: Vec<_> = balancer
        .backends()
        .iter()
        .map(|port| Replica::start(folder.path(), *port))
        .collect();
    // The others are ready when they can answer; the documents come with the one that writes.
    let start = Instant::now();
    while !search(&balancer.address()).as_ref().is_ok_and(is_whole) {
        assert!(start.elapsed() < START, "{:?}", search(&balancer.address()));
        std::thread::sleep(Duration::from_millis(200));
    }
    let (stop, answers) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let asking: Vec<_> = (0..3)
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
            *replica = Replica::start(folder.path(), port);
        }
    }
    stop.store(true, Ordering::Relaxed);
    for one in asking {
        one.join().unwrap();
    }

    // Two nodes of three: whoever asks hears why there is no answer, soon.
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

/// The ids that a search finds; an error where there is no answer.
fn found_ids(address: &str) -> Result<Vec<String>, String> {
    let answer = search(address)?;
    let results = answer.pointer("/result/structuredContent/results");
    let list = results.and_then(serde_json::Value::as_array);
    let id = |one: &serde_json::Value| one["id"].as_str().map(str::to_owned);
    let list = list.ok_or_else(|| answer.to_string())?;
    Ok(list.iter().filter_map(id).collect())
}

#[test]
fn stricter_permissions_hold_from_the_first_answer_after_a_kill() {
    if !is_there() {
        return;
    }
    let servers = TestServers::start(1);
    let folder = tempfile::tempdir().unwrap();
    let settings = {
        let whole = folder_of(&servers, 0);
        std::fs::read_to_string(whole.path().join("docent.toml")).unwrap()
    };
    std::fs::create_dir(folder.path().join("crew")).unwrap();
    for n in 0..DOCUMENTS {
        let place = if n < 10 { "." } else { "crew" };
        let text = format!("# Ferry {n}\n\nThe ferry to isle number {n} was late again.\n");
        let name = folder.path().join(place).join(format!("ferry-{n}.md"));
        std::fs::write(name, text).unwrap();
    }
    let file = folder.path().join("docent.toml");
    std::fs::write(&file, &settings).unwrap();
    let mut writer = Replica::start(folder.path(), free_port());
    let address = format!("http://127.0.0.1:{}", writer.port);
    until("crew documents are found", || {
        found_ids(&address).is_ok_and(|ids| ids.iter().any(|id| id.starts_with("crew/")))
    });
    until("all are indexed", || {
        !writer.state().to_string().contains("running")
    });

    // It holds the lease for ten more seconds, in which the next one cannot withdraw anything.
    writer.kill();
    let rules = "[permissions]\ndefault = \"everyone\"\n\
                 [[permissions.folder]]\npath = \"crew/**\"\nreaders = \"nobody\"\n";
    std::fs::write(&file, format!("{settings}{rules}")).unwrap();
    let port = free_port();
    let address = format!("http://127.0.0.1:{port}");
    let asking = std::thread::spawn(move || {
        let start = Instant::now();
        loop {
            if let Ok(ids) = found_ids(&address) {
                assert!(ids.iter().all(|id| !id.starts_with("crew/")), "{ids:?}");
                if ids.len() == 10 {
                    return;
                }
            }
            assert!(
                start.elapsed() < START,
                "the open documents never came back"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let strict = Replica::start(folder.path(), port);
    asking.join().unwrap();

    // Another process with other rules, while this one is alive and has the lease, must not answer either.
    let stricter = tempfile::tempdir().unwrap();
    let rules = "[permissions]\ndefault = \"nobody\"\n";
    std::fs::write(
        stricter.path().join("docent.toml"),
        format!("{settings}{rules}"),
    )
    .unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_docent"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg(stricter.path())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(
        message.contains("made under other permissions"),
        "{message}"
    );
    assert!(strict.writes());
}

fn wait_for(answers: &AtomicU64, wanted: u64) {
    let start = Instant::now();
    while answers.load(Ordering::Relaxed) < wanted {
        assert!(start.elapsed() < Duration::from_secs(120), "nobody answers");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How many documents get vectors of another model. Vectors are written 256 at a time, so several batches are left
/// to make when the first one is seen.
const MANY: usize = 1_200;

/// The collection whose passages answer, as other programs see it.
fn answering(servers: &TestServers) -> Option<String> {
    let aliases = get(&servers.addresses()[0], "/aliases");
    let all = aliases.pointer("/result/aliases")?.as_array()?;
    let one = all
        .iter()
        .find(|one| one["alias_name"] == "docent-passages")?;
    one["collection_name"].as_str().map(str::to_owned)
}

/// Waits for something that will be.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(180), "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn a_model_is_replaced_while_servers_answer_and_die() {
    if !is_there() {
        return;
    }
    let servers = TestServers::start(3);
    let folder = folder_of(&servers, MANY);
    let balancer = Balancer::start(3);
    let places = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let start = |at: usize, model: &str, metrics: &str| {
        let env = [
            ("DOCENT_MODEL_NAME", model),
            ("DOCENT_SERVER_METRICS", metrics),
        ];
        Replica::start_with(folder.path(), balancer.backends()[at], &env)
    };
    let mut old = start(0, "table", "127.0.0.1:0");
    until("the first model has all", || {
        old.with_vectors() == MANY as u64
    });
    until("its vectors answer", || answering(&servers).is_some());
    let before = answering(&servers).unwrap();

    // Two with the new model, of which one will write.
    let mut new = [(1, &places[0]), (2, &places[1])].map(|(at, place)| start(at, "granite", place));
    until("there are answers", || {
        search(&balancer.address()).as_ref().is_ok_and(is_whole)
    });
    let (stop, answers) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let asking = ask(balancer.address(), stop.clone(), answers.clone());
    until("both wait for the old one", || {
        !new.iter().any(Replica::writes)
    });
    old.end();
    until("one of them writes", || new.iter().any(Replica::writes));
    let writer = new.iter().position(Replica::writes).unwrap();
    until("some vectors are made", || new[writer].with_vectors() > 0);
    let made = new[writer].with_vectors();
    assert!(made < MANY as u64, "all {made} were made before the kill");
    assert_eq!(answering(&servers).as_ref(), Some(&before));
    new[writer].kill();
    let left = &new[1 - writer];
    let metrics = &places[1 - writer];
    until("the other one writes", || left.writes());
    until("the new model has all", || {
        left.with_vectors() == MANY as u64
    });
    until("its vectors answer", || {
        answering(&servers).is_some_and(|now| now != before)
    });
    until("the old ones are gone", || {
        let all = get(&servers.addresses()[0], "/collections");
        !all.to_string().contains(&before)
    });
    let so_far = answers.load(Ordering::Relaxed);
    wait_for(&answers, so_far + 5);
    stop.store(true, Ordering::Relaxed);
    asking.join().unwrap();

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
