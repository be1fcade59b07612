//! Search for leaked secrets: the pieces of a secret in plain text, hex and base64, and a scanner that finds any of
//! them in a text. Pieces are searched because a log line or an error may cut a secret short.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Length of a piece in bytes. Texts are cut at the start or the end, so the first, middle and last piece suffice.
const PIECE: usize = 16;

/// All spellings to search for: each piece in plain text, in hex and in base64 at every alignment.
pub(crate) fn needles(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    assert!(
        bytes.len() >= PIECE,
        "too short to be distinguished from other text: {secret}"
    );
    let middle = (bytes.len() - PIECE) / 2;
    let starts = [0, middle, bytes.len() - PIECE];
    let mut all: Vec<String> = starts
        .into_iter()
        .flat_map(|start| {
            let piece = &bytes[start..start + PIECE];
            let plain = String::from_utf8_lossy(piece).into_owned();
            let hex: String = piece.iter().map(|byte| format!("{byte:02x}")).collect();
            [vec![plain, hex], encoded(piece)].concat()
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Base64 of a piece inside a longer text. A piece starts at one of three alignments, so it has three encodings.
fn encoded(piece: &[u8]) -> Vec<String> {
    let at = |before: usize| {
        let text = [&vec![0; before][..], piece].concat();
        // Keep only characters that depend on the piece alone.
        let known = (before * 8).div_ceil(6)..text.len() * 8 / 6;
        [
            URL_SAFE_NO_PAD.encode(&text)[known.clone()].to_owned(),
            STANDARD_NO_PAD.encode(&text)[known].to_owned(),
        ]
    };
    (0..3).flat_map(at).collect()
}

/// Length of the prefix by which candidates are looked up. All needles are longer.
const START: usize = 8;

/// Finds the first secret in a text, with the text before it. A hash map of prefixes lets one pass serve any number of
/// secrets, because the text may be the whole log of 10,000 requests.
pub(crate) fn found<'a>(
    text: &str,
    secrets: impl IntoIterator<Item = &'a String>,
) -> Option<String> {
    let mut known: HashMap<Vec<u8>, Vec<(String, &String)>> = HashMap::new();
    let mut first = [false; 256];
    for secret in secrets {
        for needle in needles(secret) {
            first[usize::from(needle.as_bytes()[0])] = true;
            let start = needle.as_bytes()[..START].to_vec();
            known.entry(start).or_default().push((needle, secret));
        }
    }
    let bytes = text.as_bytes();
    for (at, start) in bytes.windows(START).enumerate() {
        if !first[usize::from(start[0])] {
            continue;
        }
        let candidates = known.get(start).into_iter().flatten();
        for (needle, secret) in candidates {
            if bytes[at..].starts_with(needle.as_bytes()) {
                let before = String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at]);
                return Some(format!("{secret} as {needle} after {before}"));
            }
        }
    }
    None
}

#[test]
fn a_secret_is_found_however_it_is_written() {
    let secret = "CANARY-of-some-length-0123456789".to_owned();
    for text in [
        format!("token: {secret}"),
        format!("cut: {}…", &secret[..20]),
        format!("…{}", &secret[14..]),
        secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        STANDARD_NO_PAD.encode(format!("user:{secret}")),
        URL_SAFE_NO_PAD.encode(format!("{{\"a\":\"{secret}\"}}")),
        STANDARD_NO_PAD.encode(&secret),
    ] {
        assert!(found(&text, [&secret]).is_some(), "{text}");
    }
    assert_eq!(found("CANARY-of-some-other", [&secret]), None);
}
