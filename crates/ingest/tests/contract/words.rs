//! No word of a record is lost: what exceeds a limit on fields is still in the text of its document.

use docent_ingest::{FileReadOutcome, Limits};
use proptest::prelude::*;

use crate::TestFolder;

/// A JSON value. Each leaf becomes a word of its own; keys may repeat, which no parsed value can show.
#[derive(Debug, Clone)]
enum JsonNode {
    /// A text, longer than a field where `is_long`.
    Leaf {
        is_long: bool,
    },
    List(Vec<JsonNode>),
    Object(Vec<(&'static str, JsonNode)>),
}

const KEYS: &[&str] = &[
    "id",
    "title",
    "text",
    "url",
    "date",
    "a",
    "A",
    "b",
    "b.c",
    " b",
    "b\\u0000",
    "\\u200b",
    "",
    "a name that is too long for a field",
    "c",
    "d",
    "e",
    "f",
];

fn leaf() -> impl Strategy<Value = JsonNode> {
    any::<bool>().prop_map(|is_long| JsonNode::Leaf { is_long })
}

fn object(value: impl Strategy<Value = JsonNode>) -> impl Strategy<Value = JsonNode> {
    let entry = (prop::sample::select(KEYS), value);
    prop::collection::vec(entry, 1..8).prop_map(JsonNode::Object)
}

fn record() -> impl Strategy<Value = JsonNode> {
    let inner = leaf().prop_recursive(4, 40, 6, |value| {
        prop_oneof![
            prop::collection::vec(value.clone(), 1..6).prop_map(JsonNode::List),
            object(value),
        ]
    });
    object(inner)
}

/// Writes a node as JSON, and its words into `words`.
fn written(node: &JsonNode, words: &mut Vec<String>) -> String {
    match node {
        JsonNode::Leaf { is_long } => {
            let word = format!("word{}end", words.len());
            words.push(word.clone());
            let padding = if *is_long {
                "padding ".repeat(4)
            } else {
                String::new()
            };
            format!("\"{padding}{word}\"")
        }
        JsonNode::List(items) => {
            let items: Vec<_> = items.iter().map(|item| written(item, words)).collect();
            format!("[{}]", items.join(","))
        }
        JsonNode::Object(entries) => {
            let entries = entries.iter();
            let entries: Vec<_> = entries
                .map(|(key, value)| format!("\"{key}\":{}", written(value, words)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}

fn limits() -> Limits {
    Limits {
        max_fields: 3,
        max_value_chars: 16,
        max_list_values: 2,
        max_name_chars: 12,
        max_field_depth: 2,
        max_title_chars: 10,
        ..Limits::default()
    }
}

/// Everything of the documents that a search can find.
fn content(read: &FileReadOutcome) -> String {
    let documents = read.documents.iter();
    let texts = documents.map(|one| {
        let fields: String = one
            .fields
            .iter()
            .map(|(_, value)| format!("{value}\n"))
            .collect();
        let url = one.url.as_deref().unwrap_or_default();
        format!("{} {} {} {url} {fields}", one.id, one.title, one.text)
    });
    texts.collect()
}

fn check(name: &str, text: &str, words: &[String]) {
    let folder = TestFolder::new();
    folder.write(name, text);
    let read = folder.read(name, limits());
    let read = read.unwrap_or_else(|reason| panic!("{name}: {reason}: {text}"));
    // What is not indexed all the same is reported, such as a text beside the list that holds the records.
    let is_beside = |code: &str| code == "beside-records";
    if !read.skipped.is_empty() || read.warnings.iter().any(|one| is_beside(one.reason.code())) {
        return;
    }
    let content = content(&read);
    for word in words {
        assert!(
            content.contains(word),
            "{word} of {text} is not in {read:#?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_word_of_a_json_record_is_lost(record in record()) {
        let mut words = Vec::new();
        let text = written(&record, &mut words);
        check("f.jsonl", &format!("{text}\n"), &words);
        check("f.json", &text, &words);
        check("list.json", &format!("[{text},{{\"x\":1}}]"), &words);
    }

    #[test]
    fn no_word_of_a_row_is_lost(widths in prop::collection::vec(any::<bool>(), 1..12)) {
        let names: Vec<_> = (0..widths.len()).map(|n| format!("column {n}")).collect();
        let cell = |(n, is_long): (usize, &bool)| format!("{} word{n}end", "x ".repeat(if *is_long { 20 } else { 1 }));
        let cells: Vec<_> = widths.iter().enumerate().map(cell).collect();
        let words: Vec<_> = (0..widths.len()).map(|n| format!("word{n}end")).collect();
        check("f.csv", &format!("{}\n{}\n", names.join(","), cells.join(",")), &words);
    }
}
