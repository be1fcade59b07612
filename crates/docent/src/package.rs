//! Packaging of a served folder for distribution: an MCPB bundle, an MCP registry entry and a ChatGPT app submission.

pub(crate) mod bundle;
pub(crate) mod registry;
pub(crate) mod submission;
pub(crate) mod test_cases;

use docent_unicode::truncate_chars;
use url::Url;

/// Metadata of the package, from the settings and the command line.
#[derive(Debug, Clone)]
pub(crate) struct PackageInfo {
    /// Server name that every client accepts.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Description in one sentence.
    pub description: String,
    pub version: String,
    pub author: String,
    /// Public URL of the MCP endpoint.
    pub url: Option<Url>,
    pub privacy: Option<Url>,
}

/// Truncates a text between words. No ellipsis is added, because the length limits of forms are tight.
pub(crate) fn truncate_at_word(text: &str, most: usize) -> String {
    let start = truncate_chars(text, most);
    if start.len() == text.len() {
        return text.to_owned();
    }
    let end = start.rfind(' ').filter(|at| *at > 0);
    let start = end.and_then(|at| start.get(..at)).unwrap_or(start);
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
