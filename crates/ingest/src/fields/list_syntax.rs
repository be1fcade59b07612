//! List syntax of table cells: recognizes cells that hold several values and splits them.

use serde_json::Value as Raw;

/// The notation in which a column writes lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListSyntax {
    /// A JSON array `["a", "b"]`, or a Python list with single quotes.
    Bracketed,
    /// Values separated by this character, as in `a; b`.
    Separated(char),
}

/// Column names whose cells count as lists even if only commas separate the values. Commas also stand in sentences,
/// addresses and names such as `Lovelace, Ada`, so elsewhere a comma alone does not make a list.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "tags", "keywords", "labels", "topics", "categories", "genres", "authors", "subjects", "skills",
    "languages",
];

/// The most characters of a list value; longer parts are sentences with a semicolon in them.
const MAX_VALUE_CHARS: usize = 60;

impl ListSyntax {
    /// Infers the list notation of a column: all cells are in brackets, or at least two of them and at least
    /// half contain the same separator between short values.
    pub(crate) fn infer_syntax(name: &str, cells: &[&str]) -> Option<Self> {
        let all = |lists: Self| cells.iter().all(|cell| lists.parse_list(cell).is_some());
        if all(Self::Bracketed) {
            return Some(Self::Bracketed);
        }
        let has_list_name = NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
        let separators: &[char] = if has_list_name {
            &['|', ';', ',']
        } else {
            &['|', ';']
        };
        separators.iter().copied().find_map(|separator| {
            let with_mark = cells.iter().filter(|cell| cell.contains(separator)).count();
            let lists = Self::Separated(separator);
            let often = with_mark > usize::from(!has_list_name) && with_mark * 2 >= cells.len();
            (often && all(lists)).then_some(lists)
        })
    }

    pub(crate) fn parse_list(self, cell: &str) -> Option<Raw> {
        match self {
            Self::Bracketed => bracketed(cell),
            Self::Separated(separator) => {
                let parts: Vec<_> = cell.split(separator).map(str::trim).collect();
                let short = |part: &&str| {
                    part.chars().nth(MAX_VALUE_CHARS).is_none() && !part.contains(". ")
                };
                parts.iter().all(short).then(|| {
                    let parts = parts.into_iter().filter(|part| !part.is_empty());
                    parts.map(|part| Raw::String(part.to_owned())).collect()
                })
            }
        }
    }
}

fn bracketed(cell: &str) -> Option<Raw> {
    let inner = cell.strip_prefix('[')?.strip_suffix(']')?;
    match serde_json::from_str(cell) {
        Ok(Raw::Array(values)) => Some(Raw::Array(values)),
        _ => single_quoted(inner),
    }
}

/// Parses the inside of a Python list, such as `'a', 'b\'s', "c's"`.
fn single_quoted(inner: &str) -> Option<Raw> {
    let mut values = Vec::new();
    let mut chars = inner.trim().chars();
    loop {
        let quote = chars.next().filter(|c| "'\"".contains(*c))?;
        let mut value = String::new();
        loop {
            match chars.next()? {
                '\\' => value.push(chars.next()?),
                c if c == quote => break,
                c => value.push(c),
            }
        }
        values.push(Raw::String(value));
        chars = match chars.as_str().trim_start().strip_prefix(',') {
            Some(rest) => rest.trim_start().chars(),
            None if chars.as_str().trim().is_empty() => return Some(Raw::Array(values)),
            None => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, cells: &[&str], expect: Option<&[&str]>) {
        let found = ListSyntax::infer_syntax(name, cells).map(|lists| {
            let list = |cell: &&str| lists.parse_list(cell).unwrap().to_string();
            cells.iter().map(list).collect::<Vec<_>>()
        });
        let expect = expect.map(|lists| lists.iter().map(|list| (*list).to_owned()).collect());
        assert_eq!(found, expect, "{cells:?}");
    }

    #[test]
    fn lists_are_known_by_their_marks() {
        check("x", &[r#"["a", 2]"#, "[]"], Some(&[r#"["a",2]"#, "[]"]));
        check(
            "x",
            &["['a', \"b's\"]", r"['c\'d']"],
            Some(&[r#"["a","b's"]"#, r#"["c'd"]"#]),
        );
        check(
            "x",
            &["a; b", "c", "d; e"],
            Some(&[r#"["a","b"]"#, r#"["c"]"#, r#"["d","e"]"#]),
        );
        check(
            "x",
            &["a|b|", "c|d"],
            Some(&[r#"["a","b"]"#, r#"["c","d"]"#]),
        );
        check("Tags", &["a, b", "c"], Some(&[r#"["a","b"]"#, r#"["c"]"#]));
    }

    #[test]
    fn texts_are_no_lists() {
        check("x", &["a, b", "c"], None);
        check("x", &["a; b", "c"], None);
        check("x", &["a; b", "a; c", "d", "e", "f"], None);
        check("x", &["[a", "[b]"], None);
        check("x", &["['a' 'b']"], None);
        check("x", &["['a"], None);
        check("x", &["['a',]"], None);
        let exact = "x".repeat(60);
        assert!(ListSyntax::infer_syntax("x", &[&format!("a; {exact}"), "a; b"]).is_some());
        check("x", &[&format!("a; {exact}x"), "a; b"], None);
        check("x", &["It rained. Then; it stopped.", "a; b"], None);
    }
}
