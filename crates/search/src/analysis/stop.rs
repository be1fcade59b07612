//! English words that say nothing about what a question is about.

/// In alphabetical order, so that they can be looked up by halving.
#[rustfmt::skip]
const STOP_WORDS: [&str; 134] = [
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at",
    "be", "because", "been", "before", "being", "but", "by", "can", "could", "did", "do", "does",
    "doing", "don", "during", "each", "few", "for", "from", "further", "had", "has", "have",
    "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in", "into", "is",
    "isn", "it", "its", "itself", "just", "let", "like", "me", "might", "more", "most", "must",
    "my", "no", "nor", "not", "now", "of", "off", "on", "once", "only", "or", "other", "ought",
    "our", "ours", "out", "over", "own", "please", "said", "same", "say", "says", "shall", "she",
    "should", "show", "so", "some", "such", "tell", "than", "that", "the", "their", "theirs",
    "them", "then", "there", "these", "they", "this", "those", "through", "to", "too", "under",
    "until", "up", "upon", "us", "very", "was", "wasn", "we", "were", "weren", "what", "when",
    "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "won", "would",
    "you", "your", "yours",
];

/// Whether a folded, unstemmed word says nothing by itself.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_halved() {
        assert!(STOP_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| is_stop_word(word)));
        assert!(!is_stop_word("ferry"));
    }
}
