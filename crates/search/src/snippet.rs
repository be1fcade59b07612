//! Snippets: the line of a document's text that shows why it was found.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use docent_unicode::truncate_bytes;

use crate::analysis::{
    AnalysisMode, Language, QueryTerm, ScriptSpacing, StemCache, TermStream, detect,
    extends_previous, script,
};
use crate::document::Document;
use crate::excerpt;
use crate::hit::{MAX_SNIPPET_CHARS, MAX_TITLE_CHARS, ScoreExplanation, SearchHit};

/// How much of a text is searched for a snippet, in bytes. It bounds the cost of the first hit on a very long
/// document; for a match further back the snippet is the beginning of the text.
const MAX_MAPPED_BYTES: usize = 256 * 1024;

/// The size of the window: how far apart the first and the last match of a snippet may begin, in bytes. It is smaller
/// than a snippet, so that every match of the window is in the part that is shown, after the words that lead to the
/// first one.
const WINDOW_BYTES: u32 = 200;

/// How much text around the best window says in which language it is: about two lines, in bytes before the first
/// match and from there on. More text would reach into the next paragraph, which may be in another language.
const CONTEXT_BYTES_BEFORE: usize = 80;
const CONTEXT_BYTES: usize = 160;

/// The most characters before the first match, when no sentence begins there. Some words before a match are needed to
/// understand it; many would leave too little room for those after it, where the answer usually is.
const LEAD_CHARS: usize = 60;

/// A document with its precomputed display data, which engines cache beside it: the title on one line, the
/// flattened text (see [`flat`]) and the term map.
pub(crate) struct DisplayDocument {
    pub document: Arc<Document>,
    /// The language it was analyzed in.
    pub language: Language,
    title: String,
    flat: String,
    map: TermMap,
}

impl DisplayDocument {
    pub(crate) fn new(document: impl Into<Arc<Document>>) -> Self {
        let document = document.into();
        let flat = flat(&document.text);
        let language = detect(&document.title, &document.text);
        Self {
            title: line(&self::flat(&document.name()), 0, MAX_TITLE_CHARS),
            map: TermMap::of(&flat, language),
            language,
            flat,
            document,
        }
    }

    /// Builds the hit for this document with a snippet that shows the query terms.
    pub(crate) fn hit(&self, context: &HitContext<'_>) -> SearchHit {
        SearchHit {
            id: self.document.id.clone(),
            title: self.title.clone(),
            url: self.document.url.clone(),
            snippet: self.snippet(context),
            score: context.score,
            document: self.document.clone(),
            excerpts: if context.excerpts {
                excerpt::best_excerpts(&self.document, self.language, context)
            } else {
                Vec::new()
            },
            why: context.why,
        }
    }

    /// The snippet: the best window around query terms, or without any the beginning of the nearest passage.
    fn snippet(&self, context: &HitContext<'_>) -> String {
        if let Some(first) = best_window(&self.map, context.wanted) {
            return line(
                &self.flat,
                begin(&self.flat, first, MAX_SNIPPET_CHARS),
                MAX_SNIPPET_CHARS,
            );
        }
        let near = (context.near)();
        let nearest = near.first().filter(|range| range.start > 0);
        match nearest.and_then(|range| self.document.text.get(range.clone())) {
            Some(passage) => {
                let text = line(&flat(passage), 0, MAX_SNIPPET_CHARS - 1);
                format!("…{text}")
            }
            None => line(&self.flat, 0, MAX_SNIPPET_CHARS),
        }
    }

    /// The text around the query terms; without any, the beginning of the text or else the title.
    pub(crate) fn context(&self, wanted: &HighlightTerms) -> &str {
        let first = best_window(&self.map, wanted).unwrap_or(0);
        let start = first.saturating_sub(CONTEXT_BYTES_BEFORE);
        let start = self.flat.ceil_char_boundary(start);
        let rest = self.flat.get(start..).unwrap_or_default();
        let context = truncate_bytes(rest, first + CONTEXT_BYTES - start);
        if context.is_empty() {
            &self.title
        } else {
            context
        }
    }

    /// The Jaccard similarity of the terms of two documents, from 0 to 1, for diversification.
    pub(crate) fn jaccard_similarity(&self, other: &Self) -> f32 {
        let (mut left, mut right) = (self.map.terms().peekable(), other.map.terms().peekable());
        let (mut shared, mut all) = (0_u32, 0_u32);
        while let Some(next) = left.peek().into_iter().chain(right.peek()).min().copied() {
            let both = [left.next_if_eq(&next), right.next_if_eq(&next)];
            shared += u32::from(both.iter().all(Option::is_some));
            all += 1;
        }
        if all == 0 {
            1.0
        } else {
            shared as f32 / all as f32
        }
    }

    /// Approximate size in memory, in bytes, for the cache limit.
    pub(crate) fn bytes(&self) -> usize {
        let map = self.map.0.len() * size_of::<TermOccurrence>();
        self.document.bytes() + self.flat.len() + map + size_of::<Self>()
    }
}

/// What a document needs to become a hit.
pub(crate) struct HitContext<'a> {
    pub score: f32,
    /// Computes the passages nearest by embedding, nearest first; lazy, because a snippet with query terms does not
    /// need them.
    pub near: &'a dyn Fn() -> Vec<Range<usize>>,
    /// Whether the hit includes excerpts.
    pub excerpts: bool,
    pub wanted: &'a HighlightTerms,
    pub why: ScoreExplanation,
}

/// Flattens the beginning of a text: each run of white space and control characters becomes one blank, or one line
/// feed where it contains one, because the end of a line may end a sentence.
fn flat(text: &str) -> String {
    let text = truncate_bytes(text, MAX_MAPPED_BYTES);
    let mut flat = String::with_capacity(text.len());
    let mut gap = None;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            gap = if c == '\n' {
                Some('\n')
            } else {
                gap.or(Some(' '))
            };
            continue;
        }
        if let Some(gap) = gap.take().filter(|_| !flat.is_empty()) {
            flat.push(gap);
        }
        flat.push(c);
    }
    flat
}

/// The positions of the terms of a text, sorted by term, so that a snippet costs a binary search instead of another
/// analysis of the text.
struct TermMap(Vec<TermOccurrence>);

#[derive(Clone, Copy)]
struct TermOccurrence {
    at: u32,
    term: u32,
}

impl TermMap {
    fn of(text: &str, language: Language) -> Self {
        let mut cache = StemCache::for_a_text();
        let mut terms =
            TermStream::new(text, AnalysisMode::Index, language).with_stem_cache(&mut cache);
        // English has a term about every six bytes.
        let mut occurrences = Vec::with_capacity(text.len() / 6);
        while let Some(term) = terms.advance() {
            let at = u32::try_from(term.span.start).unwrap_or(u32::MAX);
            occurrences.push(TermOccurrence {
                at,
                term: fingerprint(term.text),
            });
        }
        occurrences.shrink_to_fit();
        occurrences.sort_unstable_by_key(|occurrence| (occurrence.term, occurrence.at));
        Self(occurrences)
    }

    /// The distinct terms, in order.
    fn terms(&self) -> impl Iterator<Item = u32> {
        let runs = self.0.chunk_by(|left, right| left.term == right.term);
        runs.filter_map(|run| run.first())
            .map(|occurrence| occurrence.term)
    }

    /// The matches of the query terms in the order of the text, each with the rank of its term.
    fn matches(&self, wanted: &HighlightTerms) -> Vec<(u32, usize)> {
        let mut matches = Vec::new();
        for (rank, term) in &wanted.0 {
            let first = self.0.partition_point(|occurrence| occurrence.term < *term);
            let from = self.0.get(first..).unwrap_or_default();
            let same = from
                .iter()
                .take_while(|occurrence| occurrence.term == *term);
            matches.extend(same.map(|occurrence| (occurrence.at, *rank)));
        }
        matches.sort_unstable();
        matches
    }
}

/// The query terms a snippet should show: the fingerprint of each form, with the rank of its term.
pub(crate) struct HighlightTerms(Vec<(usize, u32)>);

impl HighlightTerms {
    pub(crate) fn new(terms: &[&QueryTerm]) -> Self {
        let forms = terms.iter().enumerate().flat_map(|(rank, term)| {
            let forms = term.forms.iter();
            forms.map(move |form| (rank, fingerprint(form)))
        });
        Self(forms.collect())
    }

    /// Terms with one form each, for tests.
    #[cfg(test)]
    pub(crate) fn of(terms: &[&str]) -> Self {
        let terms = terms.iter().enumerate();
        Self(
            terms
                .map(|(rank, term)| (rank, fingerprint(term)))
                .collect(),
        )
    }
}

/// FNV-1a hash of a term. Collisions are rare and would only move a snippet.
fn fingerprint(term: &str) -> u32 {
    term.bytes().fold(0x811C_9DC5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// A snippet of at most `limit` characters around the best window, with the number of distinct query terms in the
/// text and the number of matches.
pub(crate) fn snippet_around(
    text: &str,
    language: Language,
    wanted: &HighlightTerms,
    limit: usize,
) -> (String, (usize, usize)) {
    let flat = flat(text);
    let map = TermMap::of(&flat, language);
    let matches = map.matches(wanted);
    let different: BTreeSet<usize> = matches.iter().map(|(_, rank)| *rank).collect();
    let first = best_window(&map, wanted).unwrap_or(0);
    let shown = line(&flat, begin(&flat, first, limit), limit);
    (shown, (different.len(), matches.len()))
}

/// The start of the best window in bytes: most distinct terms, then most matches, then the earliest. A sliding
/// window over the matches finds it in one pass.
fn best_window(map: &TermMap, wanted: &HighlightTerms) -> Option<usize> {
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
        while let Some((_, rank)) = left.next_if(|(start, _)| at - start > WINDOW_BYTES) {
            inside -= 1;
            if let Some(count) = counts.get_mut(*rank) {
                *count -= 1;
                different -= usize::from(*count == 0);
            }
        }
        let start = left.peek().map_or(*at, |(start, _)| *start);
        if best.is_none_or(|(terms, total, _)| (different, inside) > (terms, total)) {
            best = Some((different, inside, start));
        }
    }
    best.map(|(_, _, start)| start as usize)
}

/// The start of a snippet that shows the byte `first`: the start of its sentence when that is near, else a few
/// words earlier, but early enough to fill the line.
fn begin(text: &str, first: usize, limit: usize) -> usize {
    let before = text.get(..first).unwrap_or_default();
    let after = text.get(first..).unwrap_or_default();
    // No character has more than four bytes, so a long rest need not be counted.
    let left_over = if after.len() >= 4 * limit {
        0
    } else {
        limit.saturating_sub(after.chars().count())
    };
    let in_ascii = (left_over == 0).then(|| begin_in_ascii(before, after));
    in_ascii
        .flatten()
        .unwrap_or_else(|| begin_anywhere(before, after, left_over))
}

fn begin_anywhere(before: &str, after: &str, left_over: usize) -> usize {
    let reach = LEAD_CHARS.max(left_over.saturating_sub(2));
    let mut start = before.len();
    let mut next = after.chars().next().unwrap_or(' ');
    for (steps, (offset, c)) in before.char_indices().rev().enumerate() {
        if steps > reach {
            return start;
        }
        if is_break(c, next) {
            start = offset + c.len_utf8();
        }
        if steps >= left_over && ends_sentence(c, next) {
            return start;
        }
        next = c;
    }
    0
}

/// Fast path of [`begin_anywhere`] for ASCII text when no line has to be filled, which is the most frequent case:
/// bytes are characters, and only white space separates words.
fn begin_in_ascii(before: &str, after: &str) -> Option<usize> {
    let window = before.as_bytes();
    let window = window.get(window.len().checked_sub(LEAD_CHARS + 1)?..)?;
    let next = *after.as_bytes().first()?;
    if !window.is_ascii() || !next.is_ascii() {
        return None;
    }
    let offset = before.len() - window.len();
    if let Some(end) = last_sentence(window, next) {
        return Some(offset + end);
    }
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let blank = window.iter().position(is_blank).unwrap_or(window.len());
    Some(offset + blank.max(1))
}

/// The start of the last sentence in ASCII text, when one ends before `next`.
fn last_sentence(text: &[u8], next: u8) -> Option<usize> {
    let line = memchr::memrchr(b'\n', text).map(|at| at + 1);
    let mut end = text.len();
    while let Some(at) = memchr::memrchr3(b'.', b'!', b'?', text.get(line.unwrap_or(0)..end)?) {
        end = line.unwrap_or(0) + at;
        let after = text.get(end + 1).copied().unwrap_or(next);
        if after.is_ascii_whitespace() {
            return Some(end + 1);
        }
    }
    line
}

fn ends_sentence(c: char, next: char) -> bool {
    match c {
        '.' | '!' | '?' => next.is_whitespace(),
        '。' | '！' | '？' | '\n' => true,
        _ => false,
    }
}

/// Whether a line may break between two characters without splitting a word.
#[inline]
fn is_break(left: char, right: char) -> bool {
    if left.is_ascii() && right.is_ascii() {
        return left.is_ascii_whitespace() || right.is_ascii_whitespace();
    }
    if left.is_whitespace() || right.is_whitespace() {
        return true;
    }
    let unspaced = |c| script(c) == Some(ScriptSpacing::Unspaced);
    (unspaced(left) || unspaced(right)) && !extends_previous(right)
}

/// At most `limit` characters of a flattened text from the byte `start`, as one line.
fn line(flat: &str, start: usize, limit: usize) -> String {
    let opening = if start > 0 { "…" } else { "" };
    let room = limit.saturating_sub(1 + usize::from(start > 0));
    let rest = flat.get(start..).unwrap_or_default().trim_start();
    let (shown, closing) = match after_chars(rest, room) {
        None => (rest, ""),
        Some((shown, next)) => {
            let cut = last_part(shown, next);
            (shown.get(..cut).unwrap_or_default(), "…")
        }
    };
    let mut line = String::with_capacity(opening.len() + shown.len() + closing.len());
    line.push_str(opening);
    let mut rest = shown;
    while let Some(at) = memchr::memchr(b'\n', rest.as_bytes()) {
        let (piece, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        line.push_str(piece);
        line.push(' ');
        rest = tail.get(1..).unwrap_or_default();
    }
    line.push_str(rest);
    line.push_str(closing);
    line
}

/// The first `count` characters of a text and the character after them; `None` for a shorter text.
fn after_chars(text: &str, count: usize) -> Option<(&str, char)> {
    let ascii = text.as_bytes().get(..count).is_some_and(<[u8]>::is_ascii);
    let end = if ascii {
        count
    } else {
        text.char_indices().nth(count)?.0
    };
    let (first, rest) = text.split_at_checked(end)?;
    rest.chars().next().map(|next| (first, next))
}

/// The length of a line without its last, incomplete word. A word that fills the whole line stays, since there is
/// nothing else to show.
fn last_part(line: &str, mut next: char) -> usize {
    for (at, c) in line.char_indices().rev() {
        let end = at + c.len_utf8();
        if is_break(c, next) {
            return line.get(..end).unwrap_or_default().trim_end().len();
        }
        next = c;
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 80;

    fn shown(text: &str, wanted: &[&str]) -> String {
        snippet_around(text, Language::English, &HighlightTerms::of(wanted), LIMIT).0
    }

    fn check(text: &str, wanted: &[&str], expected: &str) {
        let found = shown(text, wanted);
        assert_eq!(found, expected);
        assert!(found.chars().count() <= LIMIT);
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
        let found = shown(&text, &["予算"]);
        assert_eq!(found.chars().count(), LIMIT);
        assert!(found.contains("予算") && found.ends_with('…'));
    }

    #[test]
    fn one_word_longer_than_the_line_is_cut() {
        let text = "x".repeat(1_000);
        check(&text, &["absent"], &format!("{}…", "x".repeat(LIMIT - 1)));
    }

    proptest! {
        #[test]
        fn the_ascii_fast_path_agrees_with_the_general_one(
            before in "[ab .!?\n]{60,70}",
            after in "[ab .!?\n]{1,3}",
        ) {
            if let Some(start) = begin_in_ascii(&before, &after) {
                prop_assert_eq!(start, begin_anywhere(&before, &after, 0));
            } else {
                prop_assert!(before.len() <= LEAD_CHARS);
            }
        }
    }

    #[test]
    fn only_the_first_part_of_a_long_text_is_mapped() {
        let early = format!("{}ferry", "a ".repeat(MAX_MAPPED_BYTES / 2 - 3));
        let late = format!("{}ferry", "a ".repeat(MAX_MAPPED_BYTES / 2 - 2));
        assert!(shown(&early, &["ferri"]).contains("ferry"));
        assert!(!shown(&late, &["ferri"]).contains("ferry"));
    }
}
