//! A document's text into the one line that shows why it was found.

use std::sync::Arc;

use crate::analysis::{Purpose, Script, Terms, joins_the_previous, script};
use crate::document::Document;
use crate::hit::{Hit, MAX_SNIPPET_CHARS, MAX_TITLE_CHARS};

/// The part of a text that is searched for a snippet. It bounds what the first hit on a very long
/// document costs; a match that only occurs later shows the beginning of the text.
const MAX_MAPPED_BYTES: usize = 256 * 1024;

/// How many bytes apart the first and the last match of one snippet may begin.
const WINDOW_BYTES: u32 = 200;

/// How many characters before the first match are shown at most, when no sentence begins there.
const LEAD_CHARS: usize = 60;

/// A document with what is needed to show it as a hit.
pub(crate) struct Mapped {
    pub document: Arc<Document>,
    map: TermMap,
}

impl Mapped {
    pub(crate) fn new(document: Document) -> Self {
        let map = TermMap::of(&document.text);
        Self {
            document: Arc::new(document),
            map,
        }
    }

    /// The document as a hit that shows the terms wanted.
    pub(crate) fn hit(&self, score: f32, wanted: &Wanted) -> Hit {
        let document = &self.document;
        Hit {
            id: document.id.clone(),
            title: line(&document.title, 0, MAX_TITLE_CHARS),
            url: document.url.clone(),
            snippet: snippet(&document.text, &self.map, wanted, MAX_SNIPPET_CHARS),
            score,
        }
    }

    /// About how many bytes it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.document.bytes() + self.map.0.len() * size_of::<Place>() + size_of::<Document>()
    }
}

/// Where the terms of a text stand, in the order of the terms. Made once per document and kept
/// beside it, so that a snippet costs a look-up instead of another analysis of the text.
struct TermMap(Vec<Place>);

#[derive(Clone, Copy)]
struct Place {
    at: u32,
    term: u32,
}

impl TermMap {
    fn of(text: &str) -> Self {
        let mut end = text.len().min(MAX_MAPPED_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut terms = Terms::new(text.get(..end).unwrap_or_default(), Purpose::Index);
        // English has a term about every six bytes.
        let mut places = Vec::with_capacity(end / 6);
        while let Some(term) = terms.advance() {
            let at = u32::try_from(term.span.start).unwrap_or(u32::MAX);
            places.push(Place {
                at,
                term: fingerprint(term.text),
            });
        }
        places.shrink_to_fit();
        places.sort_unstable_by_key(|place| (place.term, place.at));
        Self(places)
    }

    /// Where the terms wanted stand, in the order of the text, each with its rank among them.
    fn matches(&self, wanted: &Wanted) -> Vec<(u32, usize)> {
        let mut matches = Vec::new();
        for (rank, term) in wanted.0.iter().enumerate() {
            let first = self.0.partition_point(|place| place.term < *term);
            let same = self
                .0
                .iter()
                .skip(first)
                .take_while(|place| place.term == *term);
            matches.extend(same.map(|place| (place.at, rank)));
        }
        matches.sort_unstable();
        matches
    }
}

/// The terms a snippet should show.
pub(crate) struct Wanted(Vec<u32>);

impl Wanted {
    pub(crate) fn new(terms: &[&str]) -> Self {
        Self(terms.iter().map(|term| fingerprint(term)).collect())
    }
}

/// Two terms with one fingerprint are rare, and would only move a snippet.
fn fingerprint(term: &str) -> u32 {
    term.bytes().fold(0x811C_9DC5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// At most `most` characters of `text` around the window that shows most of what was wanted.
fn snippet(text: &str, map: &TermMap, wanted: &Wanted, most: usize) -> String {
    let first = best_window(map, wanted).unwrap_or(0);
    line(text, begin(text, first, most), most)
}

/// The byte at which the best window begins: the one with the most different terms, then with the
/// most matches, then the earliest.
fn best_window(map: &TermMap, wanted: &Wanted) -> Option<usize> {
    let matches = map.matches(wanted);
    let mut counts = vec![0_usize; wanted.0.len()];
    let mut different = 0;
    let mut left = matches.iter().peekable();
    let mut inside = 0;
    let mut best: Option<(usize, usize, u32)> = None;
    for (at, rank) in &matches {
        inside += 1;
        if let Some(count) = counts.get_mut(*rank) {
            different += usize::from(*count == 0);
            *count += 1;
        }
        while let Some((_, gone)) = left.next_if(|(start, _)| at - start > WINDOW_BYTES) {
            inside -= 1;
            if let Some(count) = counts.get_mut(*gone) {
                *count -= 1;
                different -= usize::from(*count == 0);
            }
        }
        let start = left.peek().map_or(*at, |(start, _)| *start);
        if best.is_none_or(|(most, total, _)| (different, inside) > (most, total)) {
            best = Some((different, inside, start));
        }
    }
    best.map(|(_, _, start)| start as usize)
}

/// Where a snippet that shows the byte `first` begins: at the start of its sentence when that is
/// near, else a few words earlier; and no later than needed to fill the line.
fn begin(text: &str, first: usize, most: usize) -> usize {
    let before = text.get(..first).unwrap_or_default();
    let after = text.get(first..).unwrap_or_default();
    let left_over = most.saturating_sub(after.chars().take(most).count());
    let reach = LEAD_CHARS.max(left_over.saturating_sub(2));
    let mut start = first;
    let mut next = after.chars().next().unwrap_or(' ');
    for (steps, (offset, c)) in before.char_indices().rev().enumerate() {
        if steps > reach {
            return start;
        }
        if may_part(c, next) {
            start = offset + c.len_utf8();
        }
        if steps >= left_over && ends_sentence(c, next) {
            return start;
        }
        next = c;
    }
    0
}

fn ends_sentence(c: char, next: char) -> bool {
    match c {
        '.' | '!' | '?' => next.is_whitespace(),
        '。' | '！' | '？' | '\n' => true,
        _ => false,
    }
}

/// Whether a line may be cut between two characters without cutting a word.
fn may_part(left: char, right: char) -> bool {
    let unspaced = |c| script(c) == Some(Script::Unspaced);
    left.is_whitespace()
        || right.is_whitespace()
        || ((unspaced(left) || unspaced(right)) && !joins_the_previous(right))
}

/// At most `most` characters from the byte `start` on, as one line.
fn line(text: &str, start: usize, most: usize) -> String {
    let mut out = String::with_capacity(most);
    let has_before = start > 0;
    if has_before {
        out.push('…');
    }
    let opening = out.len();
    let room = most.saturating_sub(1 + usize::from(has_before));
    let mut chars = 0;
    let mut previous = ' ';
    let mut rest = text.get(start..).unwrap_or_default().trim_end();
    loop {
        // Most of a text is plain: such a run is taken in one piece.
        let run = plain_run(rest, room - chars, previous == ' ');
        let (plain, tail) = rest.split_at_checked(run).unwrap_or((rest, ""));
        out.push_str(plain);
        chars += run;
        previous = plain.chars().next_back().unwrap_or(previous);
        let Some(c) = tail.chars().next() else { break };
        rest = tail.get(c.len_utf8()..).unwrap_or_default();
        let c = if c.is_whitespace() || c.is_control() {
            ' '
        } else {
            c
        };
        if c == ' ' && previous == ' ' {
            continue;
        }
        if chars == room {
            let cut = last_part(out.get(opening..).unwrap_or_default(), c);
            out.truncate(opening + cut);
            out.push('…');
            return out;
        }
        out.push(c);
        chars += 1;
        previous = c;
    }
    out.truncate(out.trim_end().len());
    out
}

/// How many bytes at the start of a text, `most` at the most, are visible ASCII characters and
/// single blanks between them.
fn plain_run(text: &str, most: usize, mut after_blank: bool) -> usize {
    let mut plain = |byte: &u8| {
        let blank = *byte == b' ';
        let plain = byte.is_ascii_graphic() || (blank && !after_blank);
        after_blank = blank;
        plain
    };
    text.as_bytes()
        .iter()
        .take(most)
        .take_while(|byte| plain(byte))
        .count()
}

/// How much of a line is left when its last, unfinished word is cut off. A word that fills the
/// whole line stays, since there is nothing else to show.
fn last_part(line: &str, mut next: char) -> usize {
    for (at, c) in line.char_indices().rev() {
        let end = at + c.len_utf8();
        if may_part(c, next) {
            return line.get(..end).unwrap_or_default().trim_end().len();
        }
        next = c;
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 80;

    fn check(text: &str, wanted: &[&str], expected: &str) {
        let found = snippet(text, &TermMap::of(text), &Wanted::new(wanted), MOST);
        assert_eq!(found, expected);
        assert!(found.chars().count() <= MOST);
    }

    #[test]
    fn a_short_text_is_shown_whole_and_on_one_line() {
        check("One\n\ttwo \u{0} three.\n", &["two"], "One two three.");
        check("", &["two"], "");
        check(" \n ", &["two"], "");
    }

    #[test]
    fn without_a_match_the_beginning_is_shown() {
        let text =
            "The quick brown fox jumps over the lazy dog while the sun sets behind the hills.";
        check(
            &format!("{text} {text}"),
            &["absent"],
            "The quick brown fox jumps over the lazy dog while the sun sets behind the…",
        );
    }

    #[test]
    fn the_window_with_the_most_different_terms_wins() {
        let filler =
            "Nothing of note was said on this day by anyone in the house at all. ".repeat(9);
        let text = format!("A ferry. A ferry. {filler}The ferry timetable was cut. {filler}");
        check(
            &text,
            &["ferri", "timet"],
            "…The ferry timetable was cut. Nothing of note was said on this day by anyone in…",
        );
    }

    #[test]
    fn a_match_near_the_end_fills_the_line_backwards() {
        let text = format!("{}and then the ferry sank", "word ".repeat(40));
        check(
            &text,
            &["ferri"],
            "…word word word word word word word word word word word and then the ferry sank",
        );
    }

    #[test]
    fn script_without_spaces_is_cut_between_characters() {
        let text = "東京都の予算について説明した。".repeat(20);
        let found = snippet(&text, &TermMap::of(&text), &Wanted::new(&["予算"]), MOST);
        assert_eq!(found.chars().count(), MOST);
        assert!(found.contains("予算") && found.ends_with('…'));
    }

    #[test]
    fn one_word_longer_than_the_line_is_cut() {
        let text = "x".repeat(1_000);
        check(&text, &["absent"], &format!("{}…", "x".repeat(MOST - 1)));
    }

    #[test]
    fn only_the_first_part_of_a_long_text_is_mapped() {
        let early = format!("{}ferry", "a ".repeat(MAX_MAPPED_BYTES / 2 - 3));
        let late = format!("{}ferry", "a ".repeat(MAX_MAPPED_BYTES / 2 - 2));
        let shown = |text: &str| snippet(text, &TermMap::of(text), &Wanted::new(&["ferri"]), MOST);
        assert!(shown(&early).contains("ferry"));
        assert!(!shown(&late).contains("ferry"));
    }
}
