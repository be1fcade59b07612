//! The model's tokenizer: byte-level BPE over pre-tokens of letters, digits, other characters and whitespace. It gives
//! the same tokens as the original, which the golden files check.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use unicode_general_category::{GeneralCategory, get_general_category};

/// The context window of the model in tokens, `<s>` and `</s>` included.
pub(super) const MAX_TOKENS: usize = 512;

/// Texts are truncated to this many bytes. The longest token has 128 bytes, so nothing beyond can be among the first
/// 512 tokens.
const MAX_TEXT_BYTES: usize = 128 * MAX_TOKENS;

const OPEN: u16 = 0;
const CLOSE: u16 = 2;

/// Special tokens. Like the original tokenizer, this one recognises their spelling anywhere in a text.
const SPECIAL: [(&str, u16); 5] = [
    ("<s>", OPEN),
    ("<pad>", 1),
    ("</s>", CLOSE),
    ("<unk>", 3),
    (MASK, 50264),
];
/// The only special token that swallows the whitespace before it.
const MASK: &str = "<mask>";

/// The vocabulary and the merge table of the tokenizer, read in place from the decompressed model file as little-endian
/// numbers. `bytes` has the token of each byte. `merges` has right half, rank and result of each merge, sorted by left
/// half and then by right half; `begins` has, for each token, where the merges that it begins start there.
pub(super) struct BpeTokenizer {
    bytes: &'static [[u8; 2]],
    begins: &'static [[u8; 4]],
    merges: &'static [[u8; 6]],
}

impl BpeTokenizer {
    pub(super) fn new(bytes: &'static [u8], begins: &'static [u8], merges: &'static [u8]) -> Self {
        Self {
            bytes: bytes.as_chunks().0,
            begins: begins.as_chunks().0,
            merges: merges.as_chunks().0,
        }
    }

    /// Tokenizes a text: `<s>`, its tokens, `</s>`, at most [`MAX_TOKENS`] in all.
    pub(super) fn encode(&self, text: &str) -> Vec<u16> {
        let mut rest = truncate(text);
        let mut word = BpeWord::default();
        let mut tokens = vec![OPEN];
        while !rest.is_empty() && tokens.len() < MAX_TOKENS {
            let (plain, special, after) = split_special(rest);
            self.encode_plain(plain, &mut word, &mut tokens);
            tokens.extend(special);
            rest = after;
        }
        tokens.truncate(MAX_TOKENS - 1);
        tokens.push(CLOSE);
        tokens
    }

    fn encode_plain(&self, mut text: &str, word: &mut BpeWord, tokens: &mut Vec<u16>) {
        while !text.is_empty() && tokens.len() < MAX_TOKENS {
            let Some((piece, after)) = text.split_at_checked(piece_length(text)) else {
                return;
            };
            self.merge(piece, word, tokens);
            text = after;
        }
    }

    /// Applies byte-pair merges to one pre-token, the lowest rank first and of equal ranks the leftmost, until no
    /// adjacent pair has a merge. A priority queue keeps this at O(n log n) for a long run of letters.
    fn merge(&self, piece: &str, word: &mut BpeWord, tokens: &mut Vec<u16>) {
        word.fill(piece.bytes().filter_map(|byte| self.byte(byte)));
        for at in 0..word.symbols.len() {
            self.queue_pair(word, at);
        }
        while let Some(Reverse((_, at, left, right))) = word.pairs.pop() {
            // An entry of the queue is stale once one of its halves was merged with another token.
            if word.pair(at) != Some((left, right)) {
                continue;
            }
            if let Some((_, merged)) = self.merge_of(left, right) {
                word.join(at, merged);
                if let Some(before) = word.before(at) {
                    self.queue_pair(word, before);
                }
                self.queue_pair(word, at);
            }
        }
        tokens.extend(word.tokens());
    }

    /// Queues the pair that starts at a symbol, if there is a merge for it.
    fn queue_pair(&self, word: &mut BpeWord, at: usize) {
        if let Some((left, right)) = word.pair(at)
            && let Some((rank, _)) = self.merge_of(left, right)
        {
            word.pairs.push(Reverse((rank, at, left, right)));
        }
    }

    fn byte(&self, byte: u8) -> Option<u16> {
        Some(u16::from_le_bytes(*self.bytes.get(usize::from(byte))?))
    }

    /// Looks up the merge of a pair: its rank and the resulting token.
    fn merge_of(&self, left: u16, right: u16) -> Option<(u16, u16)> {
        let begin = |token: usize| Some(u32::from_le_bytes(*self.begins.get(token)?) as usize);
        let left = usize::from(left);
        let merges = self.merges.get(begin(left)?..begin(left + 1)?)?;
        let at = merges
            .binary_search_by_key(&right, |merge| u16::from_le_bytes([merge[0], merge[1]]))
            .ok()?;
        let merge = merges.get(at)?;
        Some((
            u16::from_le_bytes([merge[2], merge[3]]),
            u16::from_le_bytes([merge[4], merge[5]]),
        ))
    }
}

/// The working state of one pre-token: a linked list of symbols, and the queue of candidate merges with rank, position
/// and both halves. It is reused for the next pre-token to save allocations.
#[derive(Default)]
struct BpeWord {
    symbols: Vec<BpeSymbol>,
    pairs: BinaryHeap<Reverse<(u16, usize, u16, u16)>>,
}

/// A node of the linked list. A symbol that was merged into its left neighbour has no token any more.
struct BpeSymbol {
    token: Option<u16>,
    before: Option<usize>,
    after: usize,
}

impl BpeWord {
    fn fill(&mut self, tokens: impl Iterator<Item = u16>) {
        self.pairs.clear();
        self.symbols.clear();
        self.symbols
            .extend(tokens.enumerate().map(|(at, token)| BpeSymbol {
                token: Some(token),
                before: at.checked_sub(1),
                after: at + 1,
            }));
    }

    fn pair(&self, at: usize) -> Option<(u16, u16)> {
        let left = self.symbols.get(at)?;
        Some((left.token?, self.symbols.get(left.after)?.token?))
    }

    fn before(&self, at: usize) -> Option<usize> {
        self.symbols.get(at)?.before
    }

    fn join(&mut self, at: usize, merged: u16) {
        let Some(right_at) = self.symbols.get(at).map(|left| left.after) else {
            return;
        };
        let Some(right) = self.symbols.get_mut(right_at) else {
            return;
        };
        right.token = None;
        let after = right.after;
        if let Some(next) = self.symbols.get_mut(after) {
            next.before = Some(at);
        }
        if let Some(left) = self.symbols.get_mut(at) {
            left.token = Some(merged);
            left.after = after;
        }
    }

    fn tokens(&self) -> impl Iterator<Item = u16> {
        self.symbols.iter().filter_map(|symbol| symbol.token)
    }
}

/// Truncates a text to [`MAX_TEXT_BYTES`], at a character boundary.
fn truncate(text: &str) -> &str {
    docent_unicode::truncate_bytes(text, MAX_TEXT_BYTES)
}

/// Splits a text at its first special token: the text before, the token, the text after.
fn split_special(text: &str) -> (&str, Option<u16>, &str) {
    for (at, _) in text.match_indices('<') {
        let Some((before, from)) = text.split_at_checked(at) else {
            continue;
        };
        for (name, token) in SPECIAL {
            if let Some(after) = from.strip_prefix(name) {
                let before = if name == MASK {
                    before.trim_end()
                } else {
                    before
                };
                return (before, Some(token), after);
            }
        }
    }
    (text, None, "")
}

/// The length in bytes of the first pre-token, by the regular expression of GPT-2 written as code: an English
/// contraction; or a run of letters, digits or other characters with at most one space before it; or a run of
/// whitespace, whose last character is left to the word that follows.
fn piece_length(text: &str) -> usize {
    for contraction in ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"] {
        if text.starts_with(contraction) {
            return contraction.len();
        }
    }
    let unspaced = text.strip_prefix(' ').unwrap_or(text);
    let Some(class) = unspaced.chars().next().map(CharClass::of) else {
        return text.len();
    };
    if class == CharClass::Blank {
        return blank_length(text);
    }
    let end = unspaced.find(|c| CharClass::of(c) != class);
    text.len() - unspaced.len() + end.unwrap_or(unspaced.len())
}

fn blank_length(text: &str) -> usize {
    let Some(end) = text.find(|c: char| !c.is_whitespace()) else {
        return text.len();
    };
    let last = text
        .get(..end)
        .and_then(|blanks| blanks.char_indices().next_back());
    match last {
        Some((at, _)) if at > 0 => at,
        _ => end,
    }
}

/// The character classes `\p{L}`, `\p{N}`, `\s` and everything else, by which pre-tokens are split.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letter,
    Digit,
    Blank,
    Other,
}

impl CharClass {
    fn of(c: char) -> Self {
        if c.is_ascii() {
            return Self::of_ascii(c);
        }
        if c.is_whitespace() {
            return Self::Blank;
        }
        match get_general_category(c) {
            GeneralCategory::UppercaseLetter
            | GeneralCategory::LowercaseLetter
            | GeneralCategory::TitlecaseLetter
            | GeneralCategory::ModifierLetter
            | GeneralCategory::OtherLetter => Self::Letter,
            GeneralCategory::DecimalNumber
            | GeneralCategory::LetterNumber
            | GeneralCategory::OtherNumber => Self::Digit,
            _ => Self::Other,
        }
    }

    fn of_ascii(c: char) -> Self {
        if c.is_ascii_alphabetic() {
            Self::Letter
        } else if c.is_ascii_digit() {
            Self::Digit
        } else if c.is_whitespace() {
            Self::Blank
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(mut text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        while !text.is_empty() {
            let (piece, after) = text.split_at(piece_length(text));
            assert!(!piece.is_empty());
            pieces.push(piece);
            text = after;
        }
        pieces
    }

    #[test]
    fn pieces_are_words_with_the_space_before_them() {
        let cases: [(&str, &[&str]); 8] = [
            ("it's a test", &["it", "'s", " a", " test"]),
            ("'S 'll", &["'", "S", " '", "ll"]),
            ("a  b", &["a", " ", " b"]),
            ("a \n b", &["a", " \n", " b"]),
            ("a\nb", &["a", "\n", "b"]),
            ("x1 ,y", &["x", "1", " ,", "y"]),
            ("a   ", &["a", "   "]),
            ("é²…\u{3000}", &["é", "²", "…", "\u{3000}"]),
        ];
        for (text, expected) in cases {
            assert_eq!(pieces(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_part_of_a_text_that_is_looked_at_is_bounded() {
        let at = "a".repeat(MAX_TEXT_BYTES);
        assert_eq!(truncate(&at), at);
        assert_eq!(truncate(&format!("{at}a")), at);
        for before in 0..4 {
            let text = format!("{}😀", "a".repeat(MAX_TEXT_BYTES - before));
            assert_eq!(truncate(&text).len(), MAX_TEXT_BYTES - before);
        }
        let fits = format!("{}😀", "a".repeat(MAX_TEXT_BYTES - 4));
        assert_eq!(truncate(&fits), fits);
    }

    #[test]
    fn special_texts_are_found_where_they_begin() {
        assert_eq!(split_special("a < b"), ("a < b", None, ""));
        assert_eq!(split_special("a <s> b"), ("a ", Some(OPEN), " b"));
        assert_eq!(split_special("<<s>>"), ("<", Some(OPEN), ">"));
        assert_eq!(split_special("a \n<mask> b"), ("a", Some(50264), " b"));
    }
}
