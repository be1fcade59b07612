//! `chatgpt-app-submission.json`, which prefills ChatGPT's submission form: tools with justified hints, and test cases.

use serde_json::{Map, Value, json};

use super::test_cases::{NEGATIVE, TestCase};
use super::{PackageInfo, truncate_at_word};

const SCHEMA: &str =
    "https://developers.openai.com/apps-sdk/schemas/chatgpt-app-submission.v1.json";
/// Maximum length of the subtitle, and of the display name.
const MAX_SUBTITLE: usize = 30;
const MAX_DESCRIPTION: usize = 4_000;

/// Annotations that reviewers require on every tool; the submission justifies each value.
const HINTS: [&str; 3] = ["readOnlyHint", "openWorldHint", "destructiveHint"];

/// Builds the submission. Fails with the names of tools that lack an annotation or are not read-only, because the
/// justifications would be false for them.
pub(crate) fn file(
    info: &PackageInfo,
    tools: &[Value],
    cases: &[TestCase],
) -> Result<Value, Vec<String>> {
    let mut described = Map::new();
    let mut wrong = Vec::new();
    for tool in tools {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        match hints(tool) {
            Some([true, false, false]) => {
                described.insert(name.to_owned(), tool_justifications(tool, info));
            }
            _ => wrong.push(name.to_owned()),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let cases: Vec<_> = cases.iter().map(|case| positive(case, info)).collect();
    Ok(json!({
        "$schema": SCHEMA,
        "schema_version": 1,
        "app_info": {
            "display_name": truncate_at_word(&info.title, MAX_SUBTITLE),
            "subtitle": "Search and cite documents",
            "description": truncate_at_word(&format!("{} Find documents by words, meaning and fields, read them, and cite where each statement comes from.", sentence(&info.description)), MAX_DESCRIPTION),
            "category": "PRODUCTIVITY",
        },
        "tools": described,
        "test_cases": cases,
        "negative_test_cases": negatives(info),
    }))
}

/// Values of the three annotations; `None` if one is missing.
fn hints(tool: &Value) -> Option<[bool; 3]> {
    let hints = tool.get("annotations")?;
    let mut values = [false; 3];
    for (value, name) in values.iter_mut().zip(HINTS) {
        *value = hints.get(name)?.as_bool()?;
    }
    Some(values)
}

/// Justifications of the annotations. They hold for every docent tool: each only reads the index, and tools with a
/// widget only pass data to a page inside the conversation.
fn tool_justifications(tool: &Value, info: &PackageInfo) -> Value {
    let shows = tool.pointer("/_meta/ui/resourceUri").is_some();
    let does = match tool.get("title").and_then(Value::as_str) {
        Some(title) => title.to_owned(),
        None => "This tool".to_owned(),
    };
    let reads = if shows {
        format!(
            "{does}: reads an index of {} and shows what it found inside the conversation; nothing is stored or changed.",
            info.title
        )
    } else {
        format!(
            "{does}: only looks things up in an index of {} and returns them; nothing is stored or changed.",
            info.title
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

fn positive(case: &TestCase, info: &PackageInfo) -> Value {
    json!({
        "description": format!("Finds and cites `{}`.", case.title),
        "user_prompt": format!("What do we learn from {} about “{}”? Cite it.", info.title, case.title),
        "file_attachment_urls": null,
        "tools_triggered": "search, fetch",
        "expected_output": format!("`{}` is among the first results; the answer rests on its text and cites it.", case.title),
        "expected_output_url": case.url,
    })
}

/// Negative test cases, which the app must not answer: changing documents, questions about the world, sending mail.
fn negatives(info: &PackageInfo) -> [Value; NEGATIVE] {
    let title = &info.title;
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

    fn info() -> PackageInfo {
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
        let refused = file(&info(), &[good.clone(), half, writes], &[]).unwrap_err();
        assert_eq!(refused, ["half", "writes"]);
        let file = file(&info(), &[good], &[]).unwrap();
        assert_eq!(file["tools"]["search"]["annotations"]["readOnlyHint"], true);
        assert_eq!(
            file["negative_test_cases"].as_array().unwrap().len(),
            NEGATIVE
        );
        assert!(file["app_info"]["subtitle"].as_str().unwrap().len() <= MAX_SUBTITLE);
    }
}
