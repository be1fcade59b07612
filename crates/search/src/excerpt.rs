//! A document into the passages of it that are worth showing.

use crate::analysis::Language;
use crate::document::Document;
use crate::hit::{HitExcerpt, MAX_EXCERPT_CHARS, MAX_EXCERPTS};
use crate::passage::{Passage, passages};
use crate::snippet::{HitContext, snippet_around};

/// How many passages are searched for the words wanted. It bounds what a hit on a very long
/// document costs.
const MAX_SEARCHED: usize = 64;

/// The best passages of a document: those nearest in meaning, then those with most of the words. A
/// document with text has at least one.
pub(crate) fn best_excerpts(
    document: &Document,
    language: Language,
    shown: &HitContext<'_>,
) -> Vec<HitExcerpt> {
    let all = passages(document);
    let near = (shown.near)();
    let nearest = |passage: &Passage| {
        near.iter()
            .position(|range| *range == passage.range)
            .unwrap_or(usize::MAX)
    };
    let mut found: Vec<_> = all
        .into_iter()
        .enumerate()
        .filter(|(at, passage)| *at < MAX_SEARCHED || nearest(passage) < usize::MAX)
        .map(|(_, passage)| {
            let text = document.text.get(passage.range.clone()).unwrap_or_default();
            let (text, (different, matches)) =
                snippet_around(text, language, shown.wanted, MAX_EXCERPT_CHARS);
            let worth = (different, matches);
            (nearest(&passage), worth, excerpt(passage, text))
        })
        .collect();
    found.sort_by(|(near, worth, _), (other_near, other_worth, _)| {
        near.cmp(other_near).then_with(|| other_worth.cmp(worth))
    });
    let is_good = |(at, (near, worth, _)): &(usize, (usize, (usize, usize), HitExcerpt))| {
        *at == 0 || *near < usize::MAX || worth.0 > 0
    };
    let good = found.into_iter().enumerate().filter(is_good);
    good.take(MAX_EXCERPTS)
        .map(|(_, (_, _, excerpt))| excerpt)
        .collect()
}

fn excerpt(passage: Passage, text: String) -> HitExcerpt {
    HitExcerpt {
        index: passage.index,
        range: passage.range,
        path: passage.path,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocId;
    use crate::hit::ScoreExplanation;
    use crate::reader_identity::AllowedReaders;
    use crate::snippet::HighlightTerms;

    fn indexes(near: &[usize], wanted: &[&str]) -> Vec<usize> {
        let filler = "Nothing of note was said in the house on that day. ".repeat(20);
        let text = format!(
            "# A\n{filler}\n# B\n{filler}A ferry.\n# C\n{filler}A ferry and a pier.\n# D\n{filler}"
        );
        let document = Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text,
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
            readers: AllowedReaders::Everyone,
        };
        let all = passages(&document);
        let near: Vec<_> = near.iter().map(|at| all[*at].range.clone()).collect();
        let found = best_excerpts(
            &document,
            Language::English,
            &HitContext {
                score: 1.0,
                near: &|| near.clone(),
                excerpts: true,
                wanted: &HighlightTerms::of(wanted),
                why: ScoreExplanation::default(),
            },
        );
        assert!(
            found
                .iter()
                .all(|one| one.text.chars().count() <= MAX_EXCERPT_CHARS)
        );
        found.iter().map(|one| one.index).collect()
    }

    #[test]
    fn near_ones_come_first_then_those_with_the_words() {
        assert_eq!(indexes(&[], &["ferri", "pier"]), [2, 1]);
        assert_eq!(indexes(&[3], &["ferri", "pier"]), [3, 2, 1]);
        assert_eq!(indexes(&[3, 0, 1], &["ferri"]), [3, 0, 1]);
        assert_eq!(indexes(&[], &["absent"]), [0]);
    }
}
