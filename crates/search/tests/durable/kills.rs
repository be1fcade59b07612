//! Two hundred writing processes on one index, each killed at a random moment.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use docent_search::Engine;

use crate::world::{WorldRng, assert_holds, batch, generation, open, state};

const KILLS: u64 = 200;
pub(crate) const SEED: u64 = 20_261_115;

/// The environment variable with the folder of the child's index.
const DIR: &str = "DURABLE_DIR";

/// The environment variable that limits how many batches a child applies.
const STEPS: &str = "DURABLE_STEPS";

/// Starts a child that writes to the index in `dir`, and prints what it begins and what is acknowledged.
pub(crate) fn writer(dir: &Path, steps: u64, fault: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["kills::child", "--exact", "--ignored", "--nocapture"])
        .env(DIR, dir)
        .env(STEPS, steps.to_string())
        .env("DOCENT_FAULT", fault)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The progress that a child has printed: the last generation it began, and the last that was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildProgress {
    pub(crate) begun: u64,
    pub(crate) done: u64,
    /// How often an operation failed in the child.
    pub(crate) failed: u64,
}

impl ChildProgress {
    pub(crate) fn note(&mut self, line: &str) {
        let number = |text: &str| text.trim().parse().unwrap();
        if let Some(text) = line.strip_prefix("begin ") {
            self.begun = number(text);
        } else if let Some(text) = line.strip_prefix("done ") {
            self.done = number(text);
        } else if line.starts_with("failed") {
            self.failed += 1;
        }
    }
}

#[tokio::test]
#[ignore = "the part of the process that is killed"]
async fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let steps: u64 = std::env::var(STEPS).unwrap().parse().unwrap();
    let Ok(engine) = open(dir.as_ref()) else {
        println!("failed to open");
        return;
    };
    let mut next = generation(&engine).await.0 + 1;
    let last = next + steps;
    while next < last {
        println!("begin {next}");
        // A generation that failed after its commit exists all the same.
        match engine.apply(batch(SEED, next)).await {
            Ok(generation) => {
                println!("done {}", generation.0);
                next = generation.0 + 1;
            }
            Err(_) => {
                println!("failed");
                drop(engine);
                return;
            }
        }
        if next.is_multiple_of(3) && engine.embed_pending(40).await.is_err() {
            println!("failed");
        }
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_doubled_or_resurrected() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = WorldRng::new(SEED);
    let mut done = 0;
    let mut cut = 0;
    for kill in 0..KILLS {
        let progress = run_and_kill(dir.path(), &mut random);
        let progress = ChildProgress {
            begun: progress.begun.max(done),
            done: progress.done.max(done),
            ..progress
        };
        let engine = open(dir.path()).unwrap_or_else(|error| panic!("kill {kill}: {error}"));
        assert!(
            engine.quarantined().is_empty(),
            "kill {kill}: {:?}",
            engine.quarantined()
        );
        let found = generation(&engine).await.0;
        let context = format!("kill {kill}, generation {found} of {progress:?}");
        assert!(
            found == progress.done || found == progress.begun,
            "{context}"
        );
        cut += u64::from(progress.begun > progress.done);
        // Checking everything takes longer than the kills, so most are checked briefly.
        if kill % 4 == 0 || kill + 1 == KILLS {
            let context = (&mut random, context.as_str());
            assert_holds(&engine, &state(SEED, found), context).await;
        } else {
            let held = engine.inventory().await.unwrap();
            let held: BTreeMap<_, _> = held.iter().map(|one| (&one.id, &one.hash)).collect();
            let expected = state(SEED, found);
            let wanted = expected.iter().map(|(id, one)| (id, &one.hash)).collect();
            assert_eq!(held, wanted, "{context}");
            let documents = engine.status().await.unwrap().documents;
            assert_eq!(documents, expected.len() as u64, "{context}");
        }
        done = found;
    }
    println!("{KILLS} kills, {cut} in the middle of a batch, {done} batches");
    assert!(cut > KILLS / 10, "{cut}");
    assert!(done > KILLS, "{done}");
}

fn run_and_kill(dir: &Path, random: &mut WorldRng) -> ChildProgress {
    let mut child = writer(dir, 100_000, "");
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut progress = ChildProgress::default();
        for line in output.lines().map_while(Result::ok) {
            progress.note(&line);
            if line.starts_with("begin") || line.starts_with("done") {
                let _ = sender.send(());
            }
        }
        progress
    });
    // Some children die while they open the index, most after some batches, at any moment of the next.
    for _ in 0..random.below(8) {
        let _ = receiver.recv_timeout(Duration::from_secs(60));
    }
    std::thread::sleep(Duration::from_millis(random.below(60)));
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}
