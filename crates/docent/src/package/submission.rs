//! Tools and test cases into `chatgpt-app-submission.json`, what ChatGPT's submission form reads.

use serde_json::{Map, Value, json};

use super::test_cases::{NEGATIVE, TestCase};
use super::{PackageInfo, truncate_at_word};

const SCHEMA: &str =
    "https://developers.openai.com/apps-sdk/schemas/chatgpt-app-submission.v1.json";
/// The most characters of the line below the name.
const MAX_SUBTITLE: usize = 30;
const MAX_DESCRIPTION: usize = 4_000;

/// The hints that reviewers want to see on every tool, each with the reason for its value here.
const HINTS: [&str; 3] = ["readOnlyHint", "openWorldHint", "destructiveHint"];

/// The file, or the tools that lack a hint or write something, for which no truthful file can be made.
pub(crate) fn file(
    work: &PackageInfo,
    tools: &[Value],
    cases: &[TestCase],
) -> Result<Value, Vec<String>> {
    let mut described = Map::new();
    let mut wrong = Vec::new();
    for tool in tools {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        match hints(tool) {
            Some([true, false, false]) => {
                described.insert(name.to_owned(), tool_justifications(tool, work));
            }
            _ => wrong.push(name.to_owned()),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let cases: Vec<_> = cases.iter().map(|case| positive(case, work)).collect();
    Ok(json!({
        "$schema": SCHEMA,
        "schema_version": 1,
        "app_info": {
            "display_name": truncate_at_word(&work.title, MAX_SUBTITLE),
            "subtitle": "Search and cite documents",
            "description": truncate_at_word(&format!("{} Find documents by words, meaning and fields, read them, and cite where each statement comes from.", sentence(&work.description)), MAX_DESCRIPTION),
            "category": "PRODUCTIVITY",
        },
        "tools": described,
        "test_cases": cases,
        "negative_test_cases": negatives(work),
    }))
}

/// The values of the three hints, if all are there.
fn hints(tool: &Value) -> Option<[bool; 3]> {
    let hints = tool.get("annotations")?;
    let mut values = [false; 3];
    for (value, name) in values.iter_mut().zip(HINTS) {
        *value = hints.get(name)?.as_bool()?;
    }
    Some(values)
}

/// Why each hint is what it is. Every tool of docent reads an index and nothing else, and the tools that show
/// something hand data to a page inside the conversation.
fn tool_justifications(tool: &Value, work: &PackageInfo) -> Value {
    let shows = tool.pointer("/_meta/ui/resourceUri").is_some();
    let does = match tool.get("title").and_then(Value::as_str) {
        Some(title) => title.to_owned(),
        None => "This tool".to_owned(),
    };
    let reads = if shows {
        format!(
            "{does}: reads an index of {} and shows what it found inside the conversation; nothing is stored or changed.",
            work.title
        )
    } else {
        format!(
            "{does}: only looks things up in an index of {} and returns them; nothing is stored or changed.",
            work.title
        )
    };
    json!({
        "annotations": {"readOnlyHint": true, "openWorldHint": false, "destructiveHint": false},
        "justifications": {
            "read_only_justification": reads,
            "open_world_justification": "Answers from one fixed set of documents on the server and neither posts, sends nor publishes anything elsewhere.",
            "destructive_justification": "Has no way to delete, overwrite or revoke anything; documents are read and never written.",
        },
    })
}

fn positive(case: &TestCase, work: &PackageInfo) -> Value {
    json!({
        "description": format!("Finds and cites `{}`.", case.title),
        "user_prompt": format!("What do we learn from {} about “{}”? Cite it.", work.title, case.title),
        "file_attachment_urls": null,
        "tools_triggered": "search, fetch",
        "expected_output": format!("`{}` is among the first results; the answer rests on its text and cites it.", case.title),
        "expected_output_url": case.url,
    })
}

/// What is near and yet out of reach: changing documents, the world outside, and other people's mail.
fn negatives(work: &PackageInfo) -> [Value; NEGATIVE] {
    let title = &work.title;
    let cases = [
        (
            "Does not change documents.",
            format!("Delete the oldest document in {title}."),
            "No tool is called for it, since none can change anything; the user is told so.",
        ),
        (
            "Does not answer about the world outside the documents.",
            "What will the weather be like tomorrow morning?".to_owned(),
            "The app is not called: the weather is not in the documents.",
        ),
        (
            "Does not send anything.",
            format!("Send an e-mail to my colleague that {title} has moved."),
            "The app is not called: it cannot send messages.",
        ),
    ];
    cases.map(|(description, prompt, expected)| {
        json!({
            "description": description,
            "user_prompt": prompt,
            "file_attachment_urls": null,
            "tools_triggered": null,
            "expected_output": expected,
            "expected_output_url": null,
        })
    })
}

fn sentence(text: &str) -> String {
    format!("{}.", text.trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> PackageInfo {
        PackageInfo {
            name: "dam".to_owned(),
            title: "Dam".to_owned(),
            description: "Papers of the dam.".to_owned(),
            version: "1.0.0".to_owned(),
            author: "The harbour office".to_owned(),
            url: None,
            privacy: None,
        }
    }

    #[test]
    fn a_tool_without_all_hints_is_refused() {
        let good = json!({"name": "search", "annotations": {"readOnlyHint": true, "openWorldHint": false, "destructiveHint": false}});
        let half = json!({"name": "half", "annotations": {"readOnlyHint": true}});
        let writes = json!({"name": "writes", "annotations": {"readOnlyHint": false, "openWorldHint": false, "destructiveHint": false}});
        let refused = file(&work(), &[good.clone(), half, writes], &[]).unwrap_err();
        assert_eq!(refused, ["half", "writes"]);
        let file = file(&work(), &[good], &[]).unwrap();
        assert_eq!(file["tools"]["search"]["annotations"]["readOnlyHint"], true);
        assert_eq!(
            file["negative_test_cases"].as_array().unwrap().len(),
            NEGATIVE
        );
        assert!(file["app_info"]["subtitle"].as_str().unwrap().len() <= MAX_SUBTITLE);
    }
}
