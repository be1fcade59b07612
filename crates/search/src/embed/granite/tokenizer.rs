//! A text into the numbers of its tokens, exactly as the model's own tokenizer cuts it: byte-level
//! BPE over pieces of letters, digits, other signs and blanks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use unicode_general_category::{GeneralCategory, get_general_category};

/// The most tokens the model reads, its opening and closing ones included.
pub(super) const MAX_TOKENS: usize = 512;

/// How much of a text is looked at. The longest token has 128 bytes, so what lies behind cannot be
/// among the first 512 tokens.
const MAX_TEXT_BYTES: usize = 128 * MAX_TOKENS;

const OPEN: u16 = 0;
const CLOSE: u16 = 2;

/// Texts that stand for one token wherever they occur, as the model's own tokenizer has it.
const SPECIAL: [(&str, u16); 5] = [
    ("<s>", OPEN),
    ("<pad>", 1),
    ("</s>", CLOSE),
    ("<unk>", 3),
    (MASK, 50264),
];
/// The one special text that swallows the blanks before it.
const MASK: &str = "<mask>";

/// The vocabulary, read in place from the packed file.
pub(super) struct BpeTokenizer {
    /// The token of each single byte.
    bytes: &'static [[u8; 2]],
    /// For each token, where the merges that it begins start in `merges`.
    begins: &'static [[u8; 4]],
    /// Right half, rank and result of each merge, sorted by left half and then by right half.
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

    /// The tokens of a text between the opening and the closing one, at most [`MAX_TOKENS`].
    pub(super) fn encode(&self, text: &str) -> Vec<u16> {
        let mut rest = clip(text);
        let mut word = BpeWord::default();
        let mut tokens = vec![OPEN];
        while !rest.is_empty() && tokens.len() < MAX_TOKENS {
            let (plain, special, behind) = split_special(rest);
            self.encode_plain(plain, &mut word, &mut tokens);
            tokens.extend(special);
            rest = behind;
        }
        tokens.truncate(MAX_TOKENS - 1);
        tokens.push(CLOSE);
        tokens
    }

    fn encode_plain(&self, mut text: &str, word: &mut BpeWord, tokens: &mut Vec<u16>) {
        while !text.is_empty() && tokens.len() < MAX_TOKENS {
            let Some((piece, behind)) = text.split_at_checked(piece_length(text)) else {
                return;
            };
            self.merge(piece, word, tokens);
            text = behind;
        }
    }

    /// Joins the bytes of one piece, the pair of the lowest rank first and the leftmost of those,
    /// until no pair is in the vocabulary.
    fn merge(&self, piece: &str, word: &mut BpeWord, tokens: &mut Vec<u16>) {
        word.fill(piece.bytes().filter_map(|byte| self.byte(byte)));
        for at in 0..word.symbols.len() {
            self.queue_pair(word, at);
        }
        while let Some(Reverse((_, at, left, right))) = word.pairs.pop() {
            // A pair whose halves have since been joined with others is stale.
            if word.pair(at) != Some((left, right)) {
                continue;
            }
            if let Some((_, joined)) = self.merge_of(left, right) {
                word.join(at, joined);
                if let Some(before) = word.before(at) {
                    self.queue_pair(word, before);
                }
                self.queue_pair(word, at);
            }
        }
        tokens.extend(word.tokens());
    }

    /// Puts the pair that starts at a symbol in the queue, if it can be joined.
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

    /// The rank of a pair and the token that it becomes.
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

/// A piece under way from bytes to tokens; kept between pieces for its memory.
#[derive(Default)]
struct BpeWord {
    symbols: Vec<BpeSymbol>,
    /// Rank, place and halves of the pairs that may be joined.
    pairs: BinaryHeap<Reverse<(u16, usize, u16, u16)>>,
}

/// A token and its neighbours; one that was joined to the left has no token any more.
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

    fn join(&mut self, at: usize, joined: u16) {
        let Some(gone) = self.symbols.get(at).map(|left| left.after) else {
            return;
        };
        let Some(right) = self.symbols.get_mut(gone) else {
            return;
        };
        right.token = None;
        let after = right.after;
        if let Some(next) = self.symbols.get_mut(after) {
            next.before = Some(at);
        }
        if let Some(left) = self.symbols.get_mut(at) {
            left.token = Some(joined);
            left.after = after;
        }
    }

    fn tokens(&self) -> impl Iterator<Item = u16> {
        self.symbols.iter().filter_map(|symbol| symbol.token)
    }
}

/// The part of a text that is looked at, cut between two characters.
fn clip(text: &str) -> &str {
    docent_unicode::truncate_bytes(text, MAX_TEXT_BYTES)
}

/// The text before the first special one, that one's token, and the text behind it.
fn split_special(text: &str) -> (&str, Option<u16>, &str) {
    for (at, _) in text.match_indices('<') {
        let Some((before, from)) = text.split_at_checked(at) else {
            continue;
        };
        for (name, token) in SPECIAL {
            if let Some(behind) = from.strip_prefix(name) {
                let before = if name == MASK {
                    before.trim_end()
                } else {
                    before
                };
                return (before, Some(token), behind);
            }
        }
    }
    (text, None, "")
}

/// How many bytes the first piece of a text has. A piece is an English contraction, or a run of
/// letters, digits or other signs with at most one space before it, or a run of blanks; the last
/// blank of such a run is left to the word behind it.
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
    let end = unspaced.find(|sign| CharClass::of(sign) != class);
    text.len() - unspaced.len() + end.unwrap_or(unspaced.len())
}

fn blank_length(text: &str) -> usize {
    let Some(end) = text.find(|sign: char| !sign.is_whitespace()) else {
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letter,
    Digit,
    Blank,
    Other,
}

impl CharClass {
    fn of(sign: char) -> Self {
        if sign.is_ascii() {
            return Self::of_ascii(sign);
        }
        if sign.is_whitespace() {
            return Self::Blank;
        }
        match get_general_category(sign) {
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

    fn of_ascii(sign: char) -> Self {
        if sign.is_ascii_alphabetic() {
            Self::Letter
        } else if sign.is_ascii_digit() {
            Self::Digit
        } else if sign.is_whitespace() {
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
            let (piece, behind) = text.split_at(piece_length(text));
            assert!(!piece.is_empty());
            pieces.push(piece);
            text = behind;
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
        assert_eq!(clip(&at), at);
        assert_eq!(clip(&format!("{at}a")), at);
        for before in 0..4 {
            let text = format!("{}😀", "a".repeat(MAX_TEXT_BYTES - before));
            assert_eq!(clip(&text).len(), MAX_TEXT_BYTES - before);
        }
        let fits = format!("{}😀", "a".repeat(MAX_TEXT_BYTES - 4));
        assert_eq!(clip(&fits), fits);
    }

    #[test]
    fn special_texts_are_found_where_they_begin() {
        assert_eq!(split_special("a < b"), ("a < b", None, ""));
        assert_eq!(split_special("a <s> b"), ("a ", Some(OPEN), " b"));
        assert_eq!(split_special("<<s>>"), ("<", Some(OPEN), ">"));
        assert_eq!(split_special("a \n<mask> b"), ("a", Some(50264), " b"));
    }
}
