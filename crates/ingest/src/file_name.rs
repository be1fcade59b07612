//! What the name of a file says about its document: id, title and date.

use docent_search::DocId;

use crate::clean::{clean_line, truncate_chars};
use crate::dates;
use crate::error::IngestError;
use crate::exports::notion;
use crate::parser::ParserInput;

/// The document id of the file itself.
pub(crate) fn file_id(input: &ParserInput<'_>) -> Result<DocId, IngestError> {
    DocId::parse(input.id).map_err(|error| IngestError::BadId {
        why: error.to_string(),
    })
}

/// The date for files that do not state one, such as daily notes, minutes and posts: from a list next to
/// the file, or else from the start of its name.
pub(crate) fn date_from_context(input: &ParserInput<'_>) -> Option<String> {
    let listed = input.folder_context.day.clone();
    listed.or_else(|| dates::leading_date(input.stem).map(|(day, _)| day.to_owned()))
}

/// Builds a title from the file's name: `2024-03-12-rail_link` becomes `2024-03-12 Rail link`, and an
/// exported Notion page `Rail link 1f0c…` becomes `Rail link`.
pub(crate) fn title_from_name(input: &ParserInput<'_>) -> String {
    let stem = notion::name_and_id(input.stem).map_or(input.stem, |(name, _)| name);
    let stem = clean_line(stem);
    let (date, rest) = match dates::leading_date(&stem) {
        Some((day, rest)) => (Some(day), rest),
        None => (None, stem.as_str()),
    };
    let words: Vec<_> = rest
        .split(['-', '_', ' '])
        .filter(|word| !word.is_empty())
        .collect();
    let words = words.join(" ");
    let mut letters = words.chars();
    let words: String = letters
        .next()
        .map(char::to_uppercase)
        .into_iter()
        .flatten()
        .chain(letters)
        .collect();
    let parts: Vec<_> = date
        .into_iter()
        .chain(Some(words.as_str()))
        .filter(|part| !part.is_empty())
        .collect();
    let mut title = if parts.is_empty() {
        input.path.to_owned()
    } else {
        parts.join(" ")
    };
    truncate_chars(&mut title, input.limits.max_title_chars);
    title
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::options::IngestOptions;
    use crate::parser::folder_context::FolderContext;

    #[test]
    fn names_become_titles() {
        let limits = Limits {
            max_title_chars: 22,
            ..Limits::default()
        };
        let title = |stem: &str| {
            let options = IngestOptions::default();
            let input = ParserInput {
                id: "x",
                path: "dir/x",
                stem,
                bytes: b"",
                sha256: "",
                limits: &limits,
                options: &options,
                folder_context: &FolderContext::NONE,
                sink: None,
                ids: crate::parser::IdPass::Own,
            };
            title_from_name(&input)
        };
        assert_eq!(title("rail_link-plan"), "Rail link plan");
        assert_eq!(title("2024-03-12-rail_link"), "2024-03-12 Rail link");
        assert_eq!(title("2024-03-12"), "2024-03-12");
        assert_eq!(title("état"), "État");
        assert_eq!(title("---"), "dir/x");
        assert_eq!(title(&"a".repeat(22)), format!("A{}", "a".repeat(21)));
        assert_eq!(title(&"a".repeat(23)).len(), 22);
    }
}
