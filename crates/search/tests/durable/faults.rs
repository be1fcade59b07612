//! Fault injection at every named point of a write, once as a crash and once as a full disk.

use std::io::Read as _;

use docent_search::failpoints::POINTS;

use crate::kills::{ChildProgress, SEED, writer};
use crate::world::{WorldRng, assert_holds, generation, open, state};

fn run(dir: &std::path::Path, steps: u64, fault: &str) -> (ChildProgress, bool) {
    let mut child = writer(dir, steps, fault);
    let mut text = String::new();
    let mut output = child.stdout.take().unwrap();
    output.read_to_string(&mut text).unwrap();
    let mut progress = ChildProgress::default();
    text.lines().for_each(|line| progress.note(line));
    (progress, child.wait().unwrap().success())
}

#[tokio::test]
async fn a_process_that_is_killed_at_any_moment_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = WorldRng::new(3);
    let (mut done, mut aborted) = (0, 0);
    for point in POINTS {
        for passing in 1..=3 {
            let fault = format!("{point}@{passing}=abort");
            let (progress, ended_well) = run(dir.path(), 12, &fault);
            assert!(!ended_well, "{fault} was never reached: {progress:?}");
            aborted += 1;
            let engine = open(dir.path()).unwrap();
            let found = generation(&engine).await.0;
            let context = format!("{fault}: {found} of {progress:?}");
            let (acknowledged, begun) = (progress.done.max(done), progress.begun.max(done));
            assert!(found == acknowledged || found == begun, "{context}");
            assert!(engine.quarantined().is_empty(), "{context}");
            let context = (&mut random, context.as_str());
            assert_holds(&engine, &state(SEED, found), context).await;
            done = found;
        }
    }
    assert_eq!(aborted, POINTS.len() * 3);
}

#[tokio::test]
async fn a_disk_that_refuses_costs_only_what_was_not_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = WorldRng::new(4);
    let mut done = 0;
    for point in POINTS {
        let fault = format!("{point}@2=error");
        let (progress, _) = run(dir.path(), 9, &fault);
        assert!(
            progress.failed > 0,
            "{fault} was never reached: {progress:?}"
        );
        let engine = open(dir.path()).unwrap();
        let found = generation(&engine).await.0;
        let context = format!("{fault}: {found} of {progress:?}");
        let (acknowledged, begun) = (progress.done.max(done), progress.begun.max(done));
        assert!(found == acknowledged || found == begun, "{context}");
        let context = (&mut random, context.as_str());
        assert_holds(&engine, &state(SEED, found), context).await;
        done = found;
    }
}
