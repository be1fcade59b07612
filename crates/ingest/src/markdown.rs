//! Markdown files into one document each. The text stays Markdown, which people and models read alike;
//! front matter leaves it and becomes title, day, address and fields.

use crate::clean::{clean_line, cut};
use crate::error::Reason;
use crate::fields::{Facts, Keys, facts};
use crate::format::{Format, Input, Parsed, begins_with_anything};
use crate::front_matter::{Start, read};
use crate::text::decode;
use crate::whole::document;

pub(crate) const FORMAT: Format = Format {
    name: "markdown",
    extensions: &["md", "markdown", "mdown", "mkd", "mdx"],
    begins: begins_with_anything,
    parse,
};

const KEYS: Keys = Keys {
    title: &["title"],
    text: &[],
    url: &["url", "link", "canonical"],
};

fn parse(input: &Input<'_>) -> Result<Parsed, Reason> {
    let text = decode(input.bytes, input.limits.max_text_chars)?;
    let (mut facts, body) = match read(&text, input.limits) {
        Start::Plain => (Facts::default(), text.as_str()),
        Start::Keys(keys, body) => (facts(keys, &KEYS, input.limits), body),
        Start::Broken(reason) => (
            Facts {
                warnings: vec![reason],
                ..Facts::default()
            },
            text.as_str(),
        ),
    };
    if facts.title.is_none() {
        facts.title = heading(body, input.limits.max_title_chars);
    }
    document(input, body.to_owned(), facts)
}

/// The words of the first heading of the first level, `# so` or underlined with `=`, outside code.
pub(crate) fn heading(body: &str, max_chars: usize) -> Option<String> {
    let mut fence: Option<&str> = None;
    let mut above = "";
    for line in body.lines() {
        let shown = line.trim();
        if let Some(open) = fence {
            if shown.starts_with(open) && shown.trim_start_matches(open).is_empty() {
                fence = None;
            }
            continue;
        }
        fence = ["```", "~~~"]
            .into_iter()
            .find(|fence| shown.starts_with(fence));
        let indented = line.starts_with("    ") || line.starts_with('\t');
        let underlined = !shown.is_empty() && shown.bytes().all(|byte| byte == b'=');
        let words = match shown.strip_prefix("# ") {
            Some(words) if !indented => words.trim_end_matches('#'),
            _ if underlined && !indented => above,
            _ => "",
        };
        // Marks and link targets go, so more is read than is kept; but a line may have a million brackets.
        let mut words: String = words.chars().take(max_chars.saturating_mul(4)).collect();
        words = plain_words(&words);
        if !words.is_empty() {
            cut(&mut words, max_chars);
            return Some(words);
        }
        above = if fence.is_some() || indented {
            ""
        } else {
            shown
        };
    }
    None
}

/// A heading without its emphasis, code marks and link targets.
fn plain_words(markdown: &str) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some(at) = rest.find(['[', '*', '`']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let link = from
            .strip_prefix('[')
            .and_then(|from| from.split_once("]("));
        match link.and_then(|(words, target)| Some((words, target.split_once(')')?.1))) {
            Some((words, after)) => {
                out.extend(words.chars().filter(|c| !"*`".contains(*c)));
                rest = after;
            }
            None => {
                if from.starts_with('[') {
                    out.push('[');
                }
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    clean_line(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expect: Option<&str>) {
        assert_eq!(heading(body, 20).as_deref(), expect, "{body:?}");
    }

    #[test]
    fn the_first_heading_is_found() {
        check("text\n\n# Rail *link* ##\n# Other", Some("Rail link"));
        check("## Second\n\nRail link\n=========\n", Some("Rail link"));
        check("   # Indented a little", Some("Indented a little"));
        check("# \n# Next", Some("Next"));
        check("# [The `plan`](http://a.example) [x]", Some("The plan [x]"));
        check("no heading\n## second\n#tag", None);
        check("\n===", None);
    }

    #[test]
    fn code_is_no_heading() {
        check("```sh\n# comment\n```\n# Real", Some("Real"));
        check("~~~\n```\n# comment\n~~~\n# Real", Some("Real"));
        check("    # code\n# Real", Some("Real"));
        check("```\n# never closed", None);
        check("a\n```\n===\n```\n", None);
    }

    #[test]
    fn headings_end_at_their_bound() {
        let exact = "a".repeat(20);
        check(&format!("# {exact}"), Some(&exact));
        check(&format!("# {exact}b"), Some(&exact));
    }

    #[test]
    fn a_line_of_brackets_is_read_in_good_time() {
        let line = format!("# {}", "[".repeat(200_000));
        assert_eq!(heading(&line, 20).map(|words| words.len()), Some(20));
    }
}
