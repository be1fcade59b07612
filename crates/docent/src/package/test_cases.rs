//! Documents into test cases that the running server has already passed.

use std::time::Duration;

use docent_check::{CheckTarget, ToolOutcome, call};
use docent_search::{DocId, Engine, ReaderIdentity};
use serde_json::{Value, json};

use crate::cli_error::CliError;
use crate::knowledge_base::one_line;

/// How many test cases reviewers want: those that must work, and those in which nothing must happen.
pub(crate) const POSITIVE: usize = 5;
pub(crate) const NEGATIVE: usize = 3;
/// How many documents are tried for them; one that has many others of its name is not found by it.
const TRIED: usize = 40;
/// How far down the document may be found; reviewers look at the first few.
const NEAR: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

/// What can be asked for and must be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestCase {
    /// The title of the document.
    pub title: String,
    /// Where it can be opened, if anywhere.
    pub url: Option<String>,
}

/// Asks the server for documents from all over the corpus until enough were found: `search` has them near the top
/// by their names, and `fetch` gives their text. The same documents give the same cases.
pub(crate) async fn passing_cases(
    target: &CheckTarget,
    engine: &dyn Engine,
) -> Result<Vec<TestCase>, CliError> {
    let ids: Vec<DocId> = engine
        .inventory()
        .await?
        .into_iter()
        .map(|held| held.id)
        .collect();
    let step = ids.len().div_ceil(TRIED).max(1);
    let mut cases: Vec<TestCase> = Vec::new();
    for id in ids.iter().step_by(step) {
        let Some(document) = engine.fetch(id.clone(), ReaderIdentity::everyone()).await? else {
            continue;
        };
        let calls = [
            ("search".to_owned(), json!({"query": document.title})),
            ("fetch".to_owned(), json!({"id": id.as_str()})),
        ];
        let answers = call(target, PATIENCE, &calls)
            .map_err(|unmet| CliError::failed("the test cases cannot be run").because(unmet))?;
        let case = found(&answers, id.as_str());
        cases.extend(case.filter(|case| cases.iter().all(|other| other.title != case.title)));
        if cases.len() == POSITIVE {
            break;
        }
    }
    Ok(cases)
}

/// The document, if the search found it and the fetch gave its text.
fn found(answers: &[ToolOutcome], id: &str) -> Option<TestCase> {
    let [Ok(found), Ok(fetched)] = answers else {
        return None;
    };
    let text = fetched.pointer("/structuredContent/text")?.as_str()?;
    top_result(found, id).filter(|_| !text.trim().is_empty())
}

/// The document among the first results.
fn top_result(answer: &Value, id: &str) -> Option<TestCase> {
    let results = answer.pointer("/structuredContent/results")?.as_array()?;
    let text =
        |result: &Value, key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
    let hit = results
        .iter()
        .take(NEAR)
        .find(|hit| text(hit, "id").as_deref() == Some(id))?;
    Some(TestCase {
        title: one_line(&text(hit, "title")?, 120),
        url: text(hit, "url").filter(|url| url.starts_with("https://")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_counts_only_near_the_top() {
        let results: Vec<_> = ["a", "b", "c", "d"]
            .iter()
            .map(|id| json!({"id": id, "title": id, "url": "https://x.example/"}))
            .collect();
        let answer = json!({"structuredContent": {"results": results}});
        assert_eq!(top_result(&answer, "c").unwrap().title, "c");
        assert_eq!(top_result(&answer, "d"), None);
        assert_eq!(top_result(&json!({}), "a"), None);
        let text = json!({"structuredContent": {"text": "x"}});
        let blank = json!({"structuredContent": {"text": " "}});
        assert!(found(&[Ok(answer.clone()), Ok(text.clone())], "a").is_some());
        assert!(found(&[Ok(answer.clone()), Ok(blank)], "a").is_none());
        assert!(found(&[Err("no".to_owned()), Ok(text)], "a").is_none());
    }
}
