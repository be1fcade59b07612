//! Parser for relevance judgements (qrels) in the two common formats: the three columns of BEIR (query, document,
//! grade) and the four of TREC (query, iteration, document, grade).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::judged_queries::{MAX_QUERIES, MAX_RELEVANT};
use super::judgement_lines::{self, LineError, LineErrorLog};
use crate::cli_error::CliError;
use crate::display_text::shorten;

/// Known names of the first column in a header line.
const HEADERS: [&str; 7] = [
    "query-id", "query_id", "queryid", "qid", "query", "topic", "id",
];

const SHAPE: &str = "a line is `query-id<tab>document-id<tab>grade`, or the four columns of TREC";

/// The grades of each judged document, by query id.
#[derive(Debug, Default)]
pub(crate) struct Qrels(HashMap<String, BTreeMap<String, u32>>);

impl Qrels {
    /// Reads a file and returns the skipped lines beside the judgements.
    pub(crate) fn read(path: &Path, skip: bool) -> Result<(Self, LineErrorLog), CliError> {
        let bytes = judgement_lines::bytes(path, judgement_lines::MAX_FILE_BYTES)?;
        let mut faults = LineErrorLog::new(path, skip);
        Ok((Self::parse(&bytes, &mut faults)?, faults))
    }

    pub(crate) fn parse(bytes: &[u8], faults: &mut LineErrorLog) -> Result<Self, CliError> {
        let mut qrels = Self::default();
        for (number, line) in judgement_lines::numbered(bytes) {
            let row = judgement_lines::text(line).and_then(|text| {
                if number == 1 && is_header(text) {
                    Ok(())
                } else {
                    row(text).and_then(|row| qrels.add(row))
                }
            });
            faults.accept(number, row)?;
            if qrels.0.len() > MAX_QUERIES {
                return Err(
                    CliError::usage(format!("more than {MAX_QUERIES} queries are judged"))
                        .hint("keep the lines of the queries you evaluate"),
                );
            }
        }
        Ok(qrels)
    }

    /// The relevant documents of a query, those with a grade above 0.
    pub(crate) fn of(&self, query: &str) -> BTreeMap<String, u32> {
        let graded = self.0.get(query).into_iter().flatten();
        graded
            .filter(|(_, grade)| **grade > 0)
            .map(|(id, grade)| (id.clone(), *grade))
            .collect()
    }

    fn add(&mut self, judgement: Judgement) -> Result<(), LineError> {
        let Judgement {
            query,
            document,
            grade,
        } = judgement;
        let of_query = self.0.entry(query).or_default();
        if let Some(earlier) = of_query.get(&document).filter(|earlier| **earlier != grade) {
            return Err(LineError::new(
                format!(
                    "`{}` has grade {earlier} and grade {grade}",
                    shorten(&document, 60)
                ),
                "keep one grade for each document of a query",
            ));
        }
        if of_query.len() >= MAX_RELEVANT && !of_query.contains_key(&document) {
            return Err(LineError::new(
                format!("a query has more than {MAX_RELEVANT} judgements"),
                "keep the most relevant ones",
            ));
        }
        of_query.insert(document, grade);
        Ok(())
    }
}

/// The grade of one document for one query, as a line states it.
struct Judgement {
    query: String,
    document: String,
    grade: u32,
}

/// Splits a line into columns. Ids may contain spaces, so a line with tabs is split at tabs only.
fn columns(text: &str) -> Vec<&str> {
    if text.contains('\t') {
        text.split('\t').map(str::trim).take(5).collect()
    } else {
        text.split_whitespace().take(5).collect()
    }
}

fn is_header(text: &str) -> bool {
    let columns = columns(text);
    let (first, last) = (columns.first(), columns.last());
    let is_number = last.is_some_and(|last| last.parse::<i64>().is_ok());
    let known = first.is_some_and(|first| HEADERS.contains(&first.to_ascii_lowercase().as_str()));
    known && !is_number
}

fn row(text: &str) -> Result<Judgement, LineError> {
    let (query, document, grade) = match columns(text).as_slice() {
        [query, document, grade] | [query, _, document, grade] => (*query, *document, *grade),
        other => {
            let count = if other.len() > 4 {
                "more than 4".to_owned()
            } else {
                other.len().to_string()
            };
            return Err(LineError::new(
                format!("the line has {count} columns"),
                SHAPE,
            ));
        }
    };
    let grade = judgement_lines::grade(grade.parse().ok(), grade)?;
    Ok(Judgement {
        query: judgement_lines::id(query)?,
        document: judgement_lines::id(document)?,
        grade,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Qrels, CliError> {
        Qrels::parse(
            text.as_bytes(),
            &mut LineErrorLog::new(Path::new("q.tsv"), false),
        )
    }

    #[test]
    fn all_formats_parse_to_the_same_grades() {
        let expected = BTreeMap::from([("a b.md".to_owned(), 2), ("c".to_owned(), 1)]);
        for text in [
            "query-id\tcorpus-id\tscore\nq\ta b.md\t2\nq\tc\t1\nq\td\t0\n",
            "q\ta b.md\t2\r\nq\tc\t1\r\n",
            "q\t0\ta b.md\t2\nq\t0\tc\t1\nq\t0\tz\t-1\n",
            "q 0 c 1\nq\t0\ta b.md\t2\nq 0 c 1\n",
        ] {
            assert_eq!(parse(text).unwrap().of("q"), expected, "{text}");
        }
        assert!(parse("").unwrap().of("q").is_empty());
    }

    #[test]
    fn a_bad_line_says_where_and_what() {
        for (line, message) in [
            ("q\tx", "the line has 2 columns"),
            ("q a b c 1", "the line has more than 4 columns"),
            ("q\tx\tyes", "`yes` is not a grade"),
            ("query-id\tcorpus-id\tscore", "`score` is not a grade"),
            ("\u{1}\tx\t1", "`\u{FFFD}` is not an id"),
            ("q\ta\t2", "`a` has grade 1 and grade 2"),
        ] {
            let problem = parse(&format!("q\ta\t1\n{line}\n")).unwrap_err();
            assert_eq!(problem.message, message);
            assert_eq!(problem.origin.as_deref(), Some("q.tsv:2"));
        }
        // Only a first line with a known column name is a header.
        assert_eq!(
            parse("q\tx\tyes\n").unwrap_err().message,
            "`yes` is not a grade"
        );
    }

    #[test]
    fn judgements_have_bounds() {
        let of_one = |count: usize| {
            (0..count)
                .map(|n| format!("q\t{n}\t1\n"))
                .collect::<String>()
        };
        assert_eq!(
            parse(&of_one(MAX_RELEVANT)).unwrap().of("q").len(),
            MAX_RELEVANT
        );
        let problem = parse(&of_one(MAX_RELEVANT + 1)).unwrap_err();
        assert_eq!(problem.message, "a query has more than 10000 judgements");
        let of_many = |count: usize| {
            (0..count)
                .map(|n| format!("{n}\td\t1\n"))
                .collect::<String>()
        };
        assert!(parse(&of_many(MAX_QUERIES)).is_ok());
        assert!(parse(&of_many(MAX_QUERIES + 1)).is_err());
    }
}
