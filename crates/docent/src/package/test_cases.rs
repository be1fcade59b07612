//! Test cases for reviewers, drawn from the documents. Only cases that the running server passes are kept.

use std::time::Duration;

use docent_check::{CheckTarget, ToolOutcome, call};
use docent_search::{DocId, Engine, ReaderIdentity};
use serde_json::{Value, json};

use crate::cli_error::CliError;
use crate::display_text::one_line;

/// Number of test cases that reviewers ask for: positive ones, and negative ones that must not call the app.
pub(crate) const POSITIVE: usize = 5;
pub(crate) const NEGATIVE: usize = 3;
/// Number of documents to try. Some fail, since a title that many documents share does not find the right one.
const MAX_TRIED: usize = 40;
/// Maximum rank of the document in its results, because reviewers look at the first few.
const MAX_RANK: usize = 3;
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A document that a search for its title finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestCase {
    /// Title of the document, which is also the query.
    pub title: String,
    /// The https URL at which reviewers can open it, if it has one.
    pub url: Option<String>,
}

/// Tries documents spread over the corpus until [`POSITIVE`] cases pass: `search` ranks the document near the top for
/// its title, and `fetch` returns its text. Deterministic: the same documents give the same cases.
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
    let step = ids.len().div_ceil(MAX_TRIED).max(1);
    let mut cases: Vec<TestCase> = Vec::new();
    for id in ids.iter().step_by(step) {
        let Some(document) = engine.fetch(id.clone(), ReaderIdentity::everyone()).await? else {
            continue;
        };
        let calls = [
            ("search".to_owned(), json!({"query": document.title})),
            ("fetch".to_owned(), json!({"id": id.as_str()})),
        ];
        let answers = call(target, CALL_TIMEOUT, &calls)
            .map_err(|error| CliError::failed("cannot run the test cases").because(error))?;
        let case = found(&answers, id.as_str());
        cases.extend(case.filter(|case| cases.iter().all(|other| other.title != case.title)));
        if cases.len() == POSITIVE {
            break;
        }
    }
    Ok(cases)
}

/// The test case, if the search found the document and the fetch returned its text.
fn found(answers: &[ToolOutcome], id: &str) -> Option<TestCase> {
    let [Ok(found), Ok(fetched)] = answers else {
        return None;
    };
    let text = fetched.pointer("/structuredContent/text")?.as_str()?;
    top_result(found, id).filter(|_| !text.trim().is_empty())
}

/// The document as a test case, if it is among the first [`MAX_RANK`] results.
fn top_result(answer: &Value, id: &str) -> Option<TestCase> {
    let results = answer.pointer("/structuredContent/results")?.as_array()?;
    let text =
        |result: &Value, key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
    let hit = results
        .iter()
        .take(MAX_RANK)
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
