//! The files of `deploy/`: Docker Compose and Kubernetes. They parse as YAML, their references resolve, and the program
//! accepts their settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::process::{ProcessOutput, TestDir};

/// Default shutdown timeout of the program, which the grace periods in the files must exceed.
const SHUTDOWN_SECONDS: u64 = 30;

/// The YAML documents of a file, with merge keys (`<<`) resolved.
fn yaml(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let documents = text.split("\n---\n");
    documents
        .map(|one| merged(&serde_saphyr::from_str::<Value>(one).unwrap()))
        .collect()
}

fn merged(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let base = map.get("<<").map(merged);
            let mut all = base
                .and_then(|base| base.as_object().cloned())
                .unwrap_or_default();
            let own = map.iter().filter(|(key, _)| *key != "<<");
            all.extend(own.map(|(key, value)| (key.clone(), merged(value))));
            Value::Object(all)
        }
        Value::Array(list) => Value::Array(list.iter().map(merged).collect()),
        other => other.clone(),
    }
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// Substitutes `${NAME:-default}` with the default and `${NAME:?hint}` with a placeholder, as Compose does.
fn filled(text: &str) -> String {
    let Some((before, rest)) = text.split_once("${") else {
        return text.to_owned();
    };
    let (variable, after) = rest.split_once('}').unwrap();
    let default = variable
        .split_once(":-")
        .map_or("given", |(_, default)| default);
    filled(&format!("{before}{default}{after}"))
}

fn settings(environment: &Value) -> BTreeMap<String, String> {
    let each = environment.as_object().unwrap().iter();
    let texts = each.map(|(name, value)| (name.clone(), filled(value.as_str().unwrap())));
    texts
        .filter(|(name, _)| name.starts_with("DOCENT_"))
        .collect()
}

/// Asserts that the program accepts these settings: each is documented, and the only error is the unreachable cluster.
fn assert_accepted(settings: &BTreeMap<String, String>) {
    let page = include_str!("../../../../docs/settings.md");
    for name in settings.keys() {
        assert!(
            page.contains(&format!("`{name}`")),
            "unknown setting `{name}`"
        );
    }
    let unused = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let dir = TestDir::small();
    let mut command = dir.docent(&["index", "docs"]);
    command
        .envs(settings)
        .env("DOCENT_ENGINE_ADDRESSES", format!("http://{unused}"));
    let ran = ProcessOutput::of(command.output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("none of the cluster's 1 nodes answers"),
        "{ran:?}"
    );
    for name in settings.keys() {
        assert!(!ran.stderr.contains(name), "{ran:?}");
    }
}

/// Finds the hosts of all `host:port` addresses in a text.
fn hosts(text: &str) -> BTreeSet<String> {
    let parts = text.split(['/', ',', ' ']);
    let hosts = parts.filter_map(|part| part.split_once(':'));
    let named = hosts.filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    named.map(|(host, _)| host.to_owned()).collect()
}

#[test]
fn compose_names_what_it_has() {
    let [file]: [Value; 1] = yaml("compose.yaml").try_into().unwrap();
    let services = names(&file["services"]);
    let volumes = names(&file["volumes"]);
    let of_kind = |kind: &str| {
        let all = services.iter().filter(|name| name.starts_with(kind));
        all.cloned().collect::<BTreeSet<_>>()
    };
    let (nodes, replicas) = (of_kind("qdrant-"), of_kind("docent-"));
    assert_eq!((nodes.len(), replicas.len()), (3, 3));
    for name in &services {
        let service = &file["services"][name];
        assert!(service["image"].is_string(), "{name}");
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let source = filled(volume.as_str().unwrap());
            let (source, _) = source.split_once(':').unwrap();
            let is_there = volumes.contains(source) || source.starts_with("../");
            assert!(is_there, "{name}: {source}");
        }
        let command = service["command"].as_str().unwrap_or_default();
        let named = hosts(command);
        assert!(named.is_subset(&services), "{name}: {named:?}");
        if name == "balancer" {
            assert_eq!(named, replicas);
        }
    }
    for name in &replicas {
        let service = &file["services"][name];
        let settings = settings(&service["environment"]);
        assert_eq!(hosts(&settings["DOCENT_ENGINE_ADDRESSES"]), nodes);
        let grace = service["stop_grace_period"].as_str().unwrap();
        let grace: u64 = grace.trim_end_matches('s').parse().unwrap();
        assert!(grace > SHUTDOWN_SECONDS);
        if name.ends_with('1') {
            assert_accepted(&settings);
        }
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/../examples/parliament");
    assert!(example.is_dir());
}

#[test]
fn kubernetes_objects_fit_each_other_and_the_program() {
    let objects: BTreeMap<String, Value> = yaml("kubernetes.yaml")
        .into_iter()
        .map(|one| (one["kind"].as_str().unwrap().to_owned(), one))
        .collect();
    for (kind, object) in &objects {
        let version = if kind == "Deployment" {
            "apps/v1"
        } else {
            "v1"
        };
        assert_eq!(object["apiVersion"], version, "{kind}");
        assert!(object["metadata"]["name"].is_string(), "{kind}");
    }
    let (config, service) = (&objects["ConfigMap"], &objects["Service"]);
    let spec = &objects["Deployment"]["spec"];
    let (template, pod) = (&spec["template"], &spec["template"]["spec"]);
    let labels = &template["metadata"]["labels"];
    assert_eq!(&spec["selector"]["matchLabels"], labels);
    assert_eq!(&service["spec"]["selector"], labels);
    assert!(spec["replicas"].as_u64() > Some(1));
    assert!(pod["terminationGracePeriodSeconds"].as_u64() > Some(SHUTDOWN_SECONDS));
    let [container] = pod["containers"].as_array().unwrap().as_slice() else {
        panic!("{pod}");
    };
    assert_eq!(
        container["args"],
        serde_json::json!(["serve", "/documents"])
    );
    let port = &container["ports"][0]["name"];
    assert_eq!(&service["spec"]["ports"][0]["targetPort"], port);
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        let get = &container[probe]["httpGet"];
        assert_eq!((&get["path"], &get["port"]), (&Value::from(path), port));
    }
    assert_eq!(
        container["envFrom"][0]["configMapRef"]["name"],
        config["metadata"]["name"]
    );
    assert_eq!(
        container["volumeMounts"][0]["name"],
        pod["volumes"][0]["name"]
    );
    let mut settings = settings(&config["data"]);
    for one in container["env"].as_array().unwrap() {
        let name = one["name"].as_str().unwrap();
        assert!(
            one["valueFrom"]["secretKeyRef"]["key"].is_string(),
            "{name}"
        );
        settings.insert(name.to_owned(), "given".to_owned());
    }
    assert_accepted(&settings);
}

#[test]
fn variables_are_substituted() {
    for (text, expected) in [
        ("plain", "plain"),
        ("${KEY:?set KEY}", "given"),
        ("${A:-http://x:1}/a ${B:-b}", "http://x:1/a b"),
    ] {
        assert_eq!(filled(text), expected);
    }
    let found = hosts("http://a-1:6333,http://b:1 --to c:8787 :8787");
    assert_eq!(found, ["a-1", "b", "c"].map(str::to_owned).into());
}
