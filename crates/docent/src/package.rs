//! A served folder into what directories and registries ask for.

pub(crate) mod bundle;
pub(crate) mod registry;
pub(crate) mod submission;
pub(crate) mod test_cases;

use url::Url;

/// What is published, in the words of its owner.
#[derive(Debug, Clone)]
pub(crate) struct PackageInfo {
    /// A name that every client takes.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it is about, in a sentence.
    pub description: String,
    pub version: String,
    pub author: String,
    /// The public MCP endpoint.
    pub url: Option<Url>,
    pub privacy: Option<Url>,
}

/// The beginning of a text, cut between words, without an ellipsis since every character counts.
pub(crate) fn truncate_at_word(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most).collect();
    let end = start.rfind(' ').filter(|at| *at > 0);
    let start = end.and_then(|at| start.get(..at)).unwrap_or(&start);
    start.trim_end_matches([' ', ',', ';', ':', '-']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_words() {
        assert_eq!(
            truncate_at_word("Parliament of Corrowin", 30),
            "Parliament of Corrowin"
        );
        assert_eq!(
            truncate_at_word("Speeches, questions and answers of the house", 30),
            "Speeches, questions and"
        );
        assert_eq!(truncate_at_word(&"ü".repeat(31), 30).chars().count(), 30);
    }
}
