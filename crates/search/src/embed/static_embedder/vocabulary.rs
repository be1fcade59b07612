//! The tokenizer of the table of word vectors, in the manner of WordPiece: a word that has no row of its own is split
//! into the longest pieces that have one.

use docent_unicode::truncate_chars;
use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// The longest piece of a word in the vocabulary, in characters.
const MAX_PIECE_CHARS: usize = 24;
/// Longer runs of letters and digits are truncated: they are data, such as hashes and encoded files, and not words.
/// Splitting them into pieces takes time for each character and yields pieces without meaning.
const MAX_RUN_CHARS: usize = 64;
/// The prefix of vocabulary lines that are tails of words, as in WordPiece.
const TAIL: &str = "##";

/// Maps words (`heads`) and tails of words (`tails`) to rows of the embedding table.
pub(super) struct WordPieceVocabulary {
    heads: FxHashMap<&'static str, usize>,
    tails: FxHashMap<&'static str, usize>,
}

impl WordPieceVocabulary {
    /// Reads the vocabulary: one word or tail per line, in the order of the rows.
    pub(super) fn new(lines: &'static str) -> Self {
        let mut words = Self {
            heads: FxHashMap::default(),
            tails: FxHashMap::default(),
        };
        for (row, line) in lines.lines().enumerate() {
            match line.strip_prefix(TAIL) {
                Some(tail) => words.tails.insert(tail, row),
                None => words.heads.insert(line, row),
            };
        }
        words
    }

    /// Tokenizes a text and calls `found` with the row of each token, in the order of the text. Text is decomposed
    /// (NFKD) and stripped of its accents first.
    pub(super) fn rows(&self, text: &str, mut found: impl FnMut(usize)) {
        let mut lower = String::with_capacity(MAX_RUN_CHARS);
        if text.is_ascii() {
            self.folded(text, &mut lower, &mut found);
        } else {
            let marks = |c: &char| canonical_combining_class(*c) == 0;
            let text: String = text.nfkd().filter(marks).collect();
            self.folded(&text, &mut lower, &mut found);
        }
    }

    fn folded(&self, text: &str, lower: &mut String, found: &mut impl FnMut(usize)) {
        for run in text.split(|c: char| !c.is_alphanumeric()) {
            if run.is_empty() {
                continue;
            }
            lowercase(run, lower);
            if let Some(row) = self.heads.get(lower.as_str()) {
                found(*row);
            } else {
                self.parts(run, lower, found);
            }
        }
    }

    /// Splits an identifier at its camel-case humps: `parseHTMLPage2` becomes `parse`, `html`, `page` and `2`.
    fn parts(&self, run: &str, lower: &mut String, found: &mut impl FnMut(usize)) {
        let mut rest = truncate_chars(run, MAX_RUN_CHARS);
        while !rest.is_empty() {
            let (part, after) = rest.split_at(part_length(rest));
            lowercase(part, lower);
            match self.heads.get(lower.as_str()) {
                Some(row) => found(*row),
                None => self.pieces(lower, found),
            }
            rest = after;
        }
    }

    /// Greedy longest match: the longest head that has a row, then the longest tails. Unknown characters are skipped.
    fn pieces(&self, word: &str, found: &mut impl FnMut(usize)) {
        let mut rest = word;
        let mut table = &self.heads;
        while !rest.is_empty() {
            let longest = truncate_chars(rest, MAX_PIECE_CHARS).len();
            let piece = (1..=longest)
                .rev()
                .find_map(|end| Some((end, table.get(rest.get(..end)?)?)));
            let used = match piece {
                Some((end, row)) => {
                    found(*row);
                    table = &self.tails;
                    end
                }
                None => truncate_chars(rest, 1).len(),
            };
            rest = rest.get(used..).unwrap_or_default();
        }
    }
}

fn lowercase(text: &str, lower: &mut String) {
    lower.clear();
    if text.is_ascii() {
        lower.push_str(text);
        lower.make_ascii_lowercase();
    } else {
        lower.extend(text.chars().flat_map(char::to_lowercase));
    }
}

/// The length of the first part of an identifier. A part ends between letters and digits, before a capital that
/// follows a small letter, and before the last of several capitals if a small letter comes next.
fn part_length(run: &str) -> usize {
    let mut chars = run.char_indices().peekable();
    let mut last = ' ';
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, next)| *next);
        let digits = last.is_ascii_digit() != c.is_ascii_digit();
        let hump =
            c.is_ascii_uppercase() && (!last.is_ascii_uppercase() || next.is_ascii_lowercase());
        if at > 0 && (digits || hump) {
            return at;
        }
        last = c;
    }
    run.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "a\nhtml\npage\nparse\nun\n2\ncafe\nβ\nmrna\n##a\n##s\n##happy\n##β\n";

    fn check(text: &str, expected: &str) {
        let words = WordPieceVocabulary::new(LINES);
        let lines: Vec<&str> = LINES.lines().collect();
        let mut found = Vec::new();
        words.rows(text, |row| found.push(lines[row]));
        assert_eq!(found.join(" "), expected, "{text}");
    }

    #[test]
    fn words_are_found_whatever_their_case_and_accents() {
        check("A page, a PAGE; Café!", "a page a page cafe");
        check("ﬁ Β β", "β β");
        check("", "");
        check(" _-.\n", "");
    }

    #[test]
    fn a_word_without_a_row_is_cut() {
        check("unhappy pages parsea", "un ##happy page ##s parse ##a");
        check("zzz", "");
        check("unz", "un");
        check("zun", "un");
    }

    #[test]
    fn names_in_code_are_cut_where_they_are_joined() {
        check("parseHTMLPage2 parse_page", "parse html page 2 parse page");
        check("HTMLPages2un", "html page ##s 2 un");
    }

    #[test]
    fn a_word_with_a_row_is_not_cut_at_its_capitals() {
        check("mRNA", "mrna");
    }

    #[test]
    fn a_run_is_looked_at_up_to_its_limit() {
        let words = WordPieceVocabulary::new(LINES);
        let count = |length: usize| {
            let mut count = 0;
            words.rows(&"a".repeat(length), |_| count += 1);
            count
        };
        assert_eq!(count(MAX_RUN_CHARS), MAX_RUN_CHARS);
        assert_eq!(count(MAX_RUN_CHARS + 1), MAX_RUN_CHARS);
    }
}
