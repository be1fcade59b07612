//! Compares the estimate with the resident memory of a process that really parses the text.
//!
//! The estimate guards a limit, so it must be too low for no shape. It may be three times too high at most, or ordinary
//! answers would be refused. Each shape gets a process of its own, where no other test allocates memory.

use super::*;

/// JSON items by name: small texts that are large in memory, and ordinary ones.
fn shapes() -> Vec<(&'static str, String)> {
    let object = |members: usize| {
        let members = (0..members).map(|n| format!("\"m{n}\":{n}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    vec![
        ("number", "0".to_owned()),
        ("empty text", "\"\"".to_owned()),
        ("short text", "\"abcdefgh\"".to_owned()),
        ("long text", format!("\"{}\"", "x".repeat(10_000))),
        ("escapes", "\"\\\"\\\\\\n\\u00e9\"".to_owned()),
        ("empty array", "[]".to_owned()),
        ("array of one", "[0]".to_owned()),
        ("array of five", "[0,[],0,0,\"\"]".to_owned()),
        (
            "deep array",
            format!("{}{}", "[".repeat(100), "]".repeat(100)),
        ),
        ("empty object", "{}".to_owned()),
        ("object of one", "{\"a\":0}".to_owned()),
        ("object of three", object(3)),
        ("object of four", object(4)),
        ("object of eight", object(8)),
        ("object of fifteen", object(15)),
        ("object of a thousand", object(1_000)),
        (
            "deep object",
            format!("{}0{}", "{\"a\":".repeat(100), "}".repeat(100)),
        ),
        (
            "schema",
            r#"{"type":"object","properties":{"q":{"type":"string","description":"what to look for"}},"required":["q"]}"#
                .to_owned(),
        ),
    ]
}

/// A list of as many items as should take about `bytes` of memory.
fn list_of(item: &str, bytes: usize) -> String {
    let count = bytes / memory(item.as_bytes()).max(1);
    format!("[{}{item}]", format!("{item},").repeat(count))
}

/// The resident set size of this process, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse::<usize>().unwrap() * 1024
}

/// Runs in a child process, where no other test allocates memory; the test below starts it once for each shape.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "started by no_shape_takes_more_than_is_reckoned"]
fn measure_one_shape() {
    let Ok(wanted) = std::env::var("DOCENT_CHECK_SHAPE") else {
        return;
    };
    let (_, item) = shapes()
        .into_iter()
        .find(|(name, _)| *name == wanted)
        .unwrap();
    let text = list_of(&item, 24 * 1024 * 1024);
    let estimated = memory(text.as_bytes());
    let before = resident();
    let value: Value = serde_json::from_slice(text.as_bytes()).unwrap();
    let taken = resident() - before;
    assert!(value.is_array());
    let waste = 1024 * 1024;
    assert!(
        taken <= estimated + waste,
        "{wanted}: {taken} taken, {estimated} estimated"
    );
    assert!(
        estimated <= 3 * taken + waste,
        "{wanted}: {taken} taken, {estimated} estimated"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn no_shape_takes_more_than_is_reckoned() {
    for (name, _) in shapes() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "connection::bounded_json::tests::measure_one_shape",
                "--ignored",
            ])
            .env("DOCENT_CHECK_SHAPE", name)
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {stdout}");
        assert!(stdout.contains("1 passed"), "{name}: {stdout}");
    }
}

#[test]
fn only_what_is_outside_of_strings_counts() {
    let plain = memory(br#"{"abcdefgh":"ijklmnop"}"#);
    assert_eq!(memory(br#"{"a,[{\"\\":"]}, [\"{,"}"#), plain);
    assert_eq!(memory(b" [ 0 , 1 ] "), memory(b"[0,1]"));
    assert_eq!(memory(b"[]"), memory(b"0"));
    assert!(memory(br#"{"a":0}"#) > 400);
}

/// Malformed text is estimated too, in linear time.
#[test]
fn broken_text_is_reckoned() {
    for piece in ["[", "{", "\"", "]", ",", "\\", "[\"", "{\"a\":["] {
        let text = piece.repeat(1_000_000);
        assert!(memory(text.as_bytes()) > 0, "{piece}");
    }
    let deep = MAX_DEPTH
        * OpenContainer {
            is_object: false,
            room: 4,
            items: 1,
        }
        .bytes();
    assert!(memory("[".repeat(1_000_000).as_bytes()) <= deep + size_of::<Value>());
}
