//! Parser for judged queries in JSON Lines: each query with its relevant documents and their grades.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::{Map, Value};

use super::judgement_lines::{self, LineError, LineErrorLog};
use super::qrels::Qrels;
use crate::cli_error::CliError;
use crate::display_text::shorten;

/// The most queries of one evaluation run.
pub(crate) const MAX_QUERIES: usize = 100_000;

/// The most relevance judgements of one query. The largest TREC pools hold a few thousand.
pub(crate) const MAX_RELEVANT: usize = 10_000;

/// The length limit of a query kind, in characters.
const MAX_KIND_CHARS: usize = 40;

/// An example line for hints.
const SHAPE: &str =
    "a line is like {\"query\": \"ferry fares\", \"relevant\": [\"id of a document\"]}";

/// A query with its relevance judgements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JudgedQuery {
    /// The identifier by which two runs are compared; the query text when the file gives none.
    pub(crate) id: String,
    /// The text that is sent to the engine.
    pub(crate) query: String,
    /// The kind of query, for scores by kind.
    pub(crate) kind: Option<String>,
    /// The grades of the relevant documents by id, all above 0.
    pub(crate) relevant: BTreeMap<String, u32>,
}

/// The result of parsing a file of judged queries.
pub(crate) struct JudgedQueries {
    /// The queries with at least one relevant document, in file order.
    pub(crate) queries: Vec<JudgedQuery>,
    /// How many queries have no relevant document.
    pub(crate) unjudged: usize,
    /// The invalid lines that were skipped.
    pub(crate) faults: LineErrorLog,
}

/// Reads the queries of a file. The judgements are in the same lines or in `qrels`.
pub(crate) fn read(
    path: &Path,
    qrels: Option<&Qrels>,
    skip: bool,
) -> Result<JudgedQueries, CliError> {
    let bytes = judgement_lines::bytes(path, judgement_lines::MAX_FILE_BYTES)?;
    parse(&bytes, qrels, LineErrorLog::new(path, skip))
}

fn parse(
    bytes: &[u8],
    qrels: Option<&Qrels>,
    faults: LineErrorLog,
) -> Result<JudgedQueries, CliError> {
    let mut reading = JudgedQueries {
        queries: Vec::new(),
        unjudged: 0,
        faults,
    };
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (number, line) in judgement_lines::numbered(bytes) {
        let judged =
            judged(line, qrels).and_then(|judged| match seen.insert(judged.id.clone(), number) {
                None => Ok(judged),
                Some(earlier) => Err(duplicate_query(&judged, earlier)),
            });
        let Some(judged) = reading.faults.accept(number, judged)? else {
            continue;
        };
        if seen.len() > MAX_QUERIES {
            return Err(
                CliError::usage(format!("there are more than {MAX_QUERIES} queries"))
                    .hint("split the file, or take a sample of its lines"),
            );
        }
        if judged.relevant.is_empty() {
            reading.unjudged += 1;
        } else {
            reading.queries.push(judged);
        }
    }
    Ok(reading)
}

fn duplicate_query(judged: &JudgedQuery, earlier: usize) -> LineError {
    let id = shorten(&judged.id, 60);
    LineError::new(
        format!("duplicate query `{id}`, already in line {earlier}"),
        "give each query an `id` of its own, or remove one of them",
    )
}

fn judged(line: &[u8], qrels: Option<&Qrels>) -> Result<JudgedQuery, LineError> {
    let text = judgement_lines::text(line)?;
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let column = error.column();
        LineError::new(format!("the line is not JSON (column {column})"), SHAPE)
    })?;
    let Value::Object(line) = value else {
        return Err(LineError::new("the line is not a JSON object", SHAPE));
    };
    let query = query(&line)?;
    let named = ["id", "_id"].iter().find_map(|key| line.get(*key));
    let named = named
        .filter(|value| !value.is_null())
        .map(name)
        .transpose()?;
    let relevant = match (qrels, line.get("relevant")) {
        (None, Some(relevant)) => grades(relevant)?,
        (None, None) => {
            let hint = "list the ids of the relevant documents, or name a file with `--qrels`";
            return Err(LineError::new("`relevant` is missing", hint));
        }
        (Some(_), Some(_)) => {
            let hint = "keep the judgements in one place: in the lines or in the file of `--qrels`";
            return Err(LineError::new("`relevant` conflicts with `--qrels`", hint));
        }
        (Some(qrels), None) => {
            let hint = "`--qrels` finds the judgements of a query by its `_id` or `id`";
            let id = named.as_deref();
            qrels.of(id.ok_or_else(|| LineError::new("`_id` is missing", hint))?)
        }
    };
    Ok(JudgedQuery {
        id: named.unwrap_or_else(|| query.clone()),
        query,
        kind: kind(&line)?,
        relevant,
    })
}

fn query(line: &Map<String, Value>) -> Result<String, LineError> {
    match ["query", "text"].iter().find_map(|key| line.get(*key)) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Some(Value::String(_)) => Err(LineError::new("`query` is empty", SHAPE)),
        Some(_) => Err(LineError::new("`query` is not a text", SHAPE)),
        None => Err(LineError::new("`query` is missing", SHAPE)),
    }
}

fn kind(line: &Map<String, Value>) -> Result<Option<String>, LineError> {
    match line.get("kind") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(kind)) if kind.chars().count() <= MAX_KIND_CHARS => {
            Ok(Some(kind.trim().to_owned()).filter(|kind| !kind.is_empty()))
        }
        Some(_) => Err(LineError::new(
            format!("`kind` is not a text of at most {MAX_KIND_CHARS} characters"),
            "one or two words will do, such as \"keywords\"",
        )),
    }
}

/// Parses an id, which some test collections write as a number.
fn name(value: &Value) -> Result<String, LineError> {
    match value {
        Value::String(text) => judgement_lines::id(text),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
        _ => Err(LineError::new(
            format!("`{}` is not an id", shorten(&value.to_string(), 60)),
            "an id is a text or a whole number",
        )),
    }
}

fn grades(value: &Value) -> Result<BTreeMap<String, u32>, LineError> {
    let check_count = |count: usize| {
        (count <= MAX_RELEVANT).then_some(()).ok_or_else(|| {
            LineError::new(
                format!("`relevant` has more than {MAX_RELEVANT} entries"),
                "keep the most relevant ones",
            )
        })
    };
    match value {
        Value::Array(ids) => {
            check_count(ids.len())?;
            ids.iter().map(|id| Ok((name(id)?, 1))).collect()
        }
        Value::Object(graded) => {
            check_count(graded.len())?;
            let entry = |(id, value): (&String, &Value)| {
                let grade = judgement_lines::grade(value.as_i64(), &value.to_string())?;
                Ok((judgement_lines::id(id)?, grade))
            };
            let graded: Result<BTreeMap<_, _>, _> = graded.iter().map(entry).collect();
            graded.map(|all| all.into_iter().filter(|(_, grade)| *grade > 0).collect())
        }
        _ => Err(LineError::new(
            "`relevant` is neither a list nor an object",
            "write [\"id\", …], or {\"id\": 2, …} with grades",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str, skip: bool) -> Result<JudgedQueries, CliError> {
        parse(
            text.as_bytes(),
            None,
            LineErrorLog::new(Path::new("q.jsonl"), skip),
        )
    }

    #[test]
    fn lines_are_read_in_every_shape() {
        let text = "{\"query\":\" a b \",\"relevant\":[\"x\",7],\"kind\":\"k\"}\n\
                    {\"id\":\"q2\",\"query\":\"c\",\"relevant\":{\"x\":2,\"y\":0,\"z\":-1},\"more\":[]}\n\
                    {\"_id\":3,\"text\":\"d\",\"relevant\":[]}\n";
        let reading = reading(text, false).unwrap();
        let shown: Vec<_> = reading
            .queries
            .iter()
            .map(|q| {
                (
                    q.id.as_str(),
                    q.query.as_str(),
                    q.kind.as_deref(),
                    q.relevant.len(),
                )
            })
            .collect();
        assert_eq!(shown, [("a b", "a b", Some("k"), 2), ("q2", "c", None, 1)]);
        assert_eq!(reading.queries[1].relevant["x"], 2);
        assert_eq!(reading.unjudged, 1);
    }

    #[test]
    fn a_bad_line_says_where_and_what() {
        let cases = [
            ("x", "the line is not JSON (column 1)"),
            ("[]", "the line is not a JSON object"),
            ("{\"relevant\":[]}", "`query` is missing"),
            ("{\"query\":1,\"relevant\":[]}", "`query` is not a text"),
            ("{\"query\":\" \",\"relevant\":[]}", "`query` is empty"),
            ("{\"query\":\"a\"}", "`relevant` is missing"),
            (
                "{\"query\":\"a\",\"relevant\":\"x\"}",
                "`relevant` is neither a list nor an object",
            ),
            ("{\"query\":\"a\",\"relevant\":[1.5]}", "`1.5` is not an id"),
            ("{\"query\":\"a\",\"relevant\":[\"\"]}", "an id is empty"),
            (
                "{\"query\":\"a\",\"relevant\":{\"x\":\"2\"}}",
                "`\"2\"` is not a grade",
            ),
            (
                "{\"query\":\"a\",\"relevant\":{\"x\":1001}}",
                "`1001` is not a grade",
            ),
            (
                "{\"id\":[],\"query\":\"a\",\"relevant\":[]}",
                "`[]` is not an id",
            ),
            (
                "{\"query\":\"a\",\"relevant\":[],\"kind\":3}",
                "`kind` is not a text of at most 40 characters",
            ),
            (
                "{\"query\":\"first\",\"relevant\":[\"x\"]}",
                "duplicate query `first`, already in line 1",
            ),
        ];
        let first = "{\"query\":\"first\",\"relevant\":[\"x\"]}\n\n";
        for (line, message) in cases {
            let problem = reading(&format!("{first}{line}\n"), false).err().unwrap();
            assert_eq!(problem.message, message);
            assert_eq!(problem.origin.as_deref(), Some("q.jsonl:3"), "{message}");
            assert!(problem.hint.is_some(), "{message}");
            let skipped = reading(&format!("{first}{line}\n"), true).unwrap();
            assert_eq!(
                (skipped.queries.len(), skipped.faults.count),
                (1, 1),
                "{message}"
            );
        }
    }

    #[test]
    fn judgements_and_queries_have_bounds() {
        let line = |count: usize| {
            let ids: Vec<_> = (0..count).map(|n| n.to_string()).collect();
            format!("{{\"query\":\"a\",\"relevant\":[{}]}}", ids.join(","))
        };
        assert!(reading(&line(MAX_RELEVANT), false).is_ok());
        let problem = reading(&line(MAX_RELEVANT + 1), false).err().unwrap();
        assert_eq!(problem.message, "`relevant` has more than 10000 entries");

        let file = |count: usize| {
            (0..count)
                .map(|n| format!("{{\"query\":\"{n}\",\"relevant\":[1]}}\n"))
                .collect::<String>()
        };
        assert_eq!(
            reading(&file(MAX_QUERIES), true).unwrap().queries.len(),
            MAX_QUERIES
        );
        let problem = reading(&file(MAX_QUERIES + 1), true).err().unwrap();
        assert_eq!(problem.message, "there are more than 100000 queries");
    }

    #[test]
    fn judgements_may_come_from_a_separate_file() {
        let mut faults = LineErrorLog::new(Path::new("qrels.tsv"), false);
        let qrels = Qrels::parse(b"1\tx\t2\n1\ty\t0\n", &mut faults).unwrap();
        let parse = |text: &str| {
            parse(
                text.as_bytes(),
                Some(&qrels),
                LineErrorLog::new(Path::new("q.jsonl"), false),
            )
        };
        let reading =
            parse("{\"_id\":\"1\",\"text\":\"a\"}\n{\"_id\":\"2\",\"text\":\"b\"}\n").unwrap();
        assert_eq!(
            reading.queries[0].relevant,
            BTreeMap::from([("x".to_owned(), 2)])
        );
        assert_eq!(reading.unjudged, 1);
        for (line, message) in [
            ("{\"text\":\"a\"}", "`_id` is missing"),
            (
                "{\"_id\":1,\"text\":\"a\",\"relevant\":[]}",
                "`relevant` conflicts with `--qrels`",
            ),
        ] {
            assert_eq!(parse(line).err().unwrap().message, message);
        }
    }
}
