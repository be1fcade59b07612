//! Mutation tests on golden files of binary formats, with bytes changed, truncated, moved and repeated: no
//! panic, and no result beyond the limits. Half of each file often stays intact, so this reaches deeper
//! than random bytes do.

use std::path::Path;

use docent_ingest::Limits;
use proptest::prelude::*;

use crate::anything::{check_document, limits};
use crate::{TestFolder, find};

/// A mutation, with positions given as fractions of the file between 0 and 1.
#[derive(Debug, Clone)]
enum Change {
    Set(f64, u8),
    Number(f64, u32),
    Cut(f64),
    Repeat(f64, f64),
    Remove(f64, f64),
}

fn change() -> impl Strategy<Value = Change> {
    let at = || 0.0..1.0_f64;
    let number = prop_oneof![
        Just(u32::MAX),
        Just(i32::MAX as u32),
        Just(0),
        any::<u32>(),
        0..10_000_u32
    ];
    prop_oneof![
        6 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        3 => (at(), number).prop_map(|(at, number)| Change::Number(at, number)),
        1 => at().prop_map(Change::Cut),
        1 => (at(), at()).prop_map(|(a, b)| Change::Repeat(a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Change::Remove(a, b)),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let offset = |at: f64| ((bytes.len() as f64) * at) as usize;
        match *change {
            Change::Set(at, byte) => {
                let at = offset(at);
                if let Some(slot) = bytes.get_mut(at) {
                    *slot = byte;
                }
            }
            Change::Number(at, number) => {
                let at = offset(at);
                if let Some(slots) = bytes.get_mut(at..at + 4) {
                    slots.copy_from_slice(&number.to_le_bytes());
                }
            }
            Change::Cut(at) => bytes.truncate(offset(at)),
            Change::Repeat(a, b) => {
                let (from, to) = (offset(a.min(b)), offset(a.max(b)));
                let piece = bytes[from..to].to_vec();
                bytes.splice(to..to, piece);
            }
            Change::Remove(a, b) => {
                let (from, to) = (offset(a.min(b)), offset(a.max(b)));
                bytes.drain(from..to);
            }
        }
    }
    bytes
}

fn golden(path: &str) -> Vec<u8> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::read(data.join(path)).unwrap()
}

fn check(name: &str, bytes: &[u8], limits: &Limits) {
    let folder = TestFolder::new();
    folder.write(name, bytes);
    let source = folder.source(limits.clone());
    let entry = find(&source.list(), name);
    if let Ok(reading) = source.read(&entry) {
        assert!(reading.documents.len() <= limits.max_records + 2);
        assert!(reading.skipped.len() <= limits.max_reported + 1);
        assert!(reading.warnings.len() <= limits.max_reported + 1);
        for document in &reading.documents {
            check_document(document, limits);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]
    #[test]
    fn changed_files_stay_within_their_bounds(
        path in prop::sample::select(vec![
            "sheet/fleet.xlsx", "sheet/tides.ods", "sheet/harbours.xls", "sqlite/harbour.db",
            "parquet/berths.parquet", "csv/moorings.csv", "json/piers.json", "json/lights.geojson",
            "notebook/tide-tables.ipynb",
        ]),
        changes in prop::collection::vec(change(), 1..6),
        small in any::<bool>(),
    ) {
        let bytes = changed(golden(path), &changes);
        let name = path.rsplit('/').next().unwrap();
        let limits = if small {
            Limits { max_file_bytes: 1 << 20, max_unpacked_bytes: 1 << 20, ..limits() }
        } else {
            Limits::default()
        };
        check(name, &bytes, &limits);
    }
}
