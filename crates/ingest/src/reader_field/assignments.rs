//! Recognizes the reader field in text that is not parsed: its name, followed by a colon or an equals sign.

use docent_unicode::truncate_bytes;
use unicode_normalization::UnicodeNormalization as _;

use super::ReaderKeys;

impl ReaderKeys {
    /// Whether a text seems to assign the field a value: its name is followed by a colon, an equals sign or
    /// a point.
    pub(crate) fn appears_in(&self, text: &str) -> bool {
        if !self.is_configured() {
            return false;
        }
        let text = text.nfkc().flat_map(char::to_lowercase).nfkc();
        let text: String = text.collect();
        // A nested name is written in parts, and the last part has the value.
        let lasts = self.0.iter().filter_map(|key| key.rsplit('.').next());
        lasts.filter(|last| !last.is_empty()).any(|last| {
            text.match_indices(last).any(|(at, _)| {
                let before = text.get(..at).and_then(|before| before.chars().next_back());
                let after = text.get(at + last.len()..).unwrap_or_default();
                let after = after
                    .trim_start_matches(|c: char| c.is_whitespace() || "\"'`*_”’»".contains(c));
                !before.is_some_and(char::is_alphanumeric) && after.starts_with([':', '=', '.'])
            })
        })
    }

    /// Whether some part of a line begins with the field name and a separator.
    pub(crate) fn are_assigned_in_line(&self, line: &str) -> bool {
        line.contains([':', '=', '：', '＝'])
            && line
                .split([',', ';', '{', '('])
                .any(|part| self.begin(part))
    }

    /// Whether a text begins with the field name and a separator, also in a list, in bold or in quotes.
    pub(crate) fn begin(&self, text: &str) -> bool {
        /// The most bytes of a name with its decoration.
        const MAX_NAME_BYTES: usize = 1_024;
        let is_around = |c: char| !c.is_alphanumeric();
        let text = truncate_bytes(text.trim_start(), MAX_NAME_BYTES);
        let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let text = if digits.starts_with(['.', ')']) {
            digits
        } else {
            text
        };
        let text = text.trim_start_matches(is_around);
        let Some((name, _)) = text.split_once([':', '=', '：', '＝']) else {
            return false;
        };
        let name = name.split(['[', '(']).next().unwrap_or_default();
        self.are_called(name.trim_end_matches(|c: char| "*_`~\"'”’»] \t-+?\\".contains(c)))
    }
}
