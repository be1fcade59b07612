//! Excerpt selection: the passages of a document that are shown for a query.

use crate::analysis::Language;
use crate::document::Document;
use crate::hit::{HitExcerpt, MAX_EXCERPT_CHARS, MAX_EXCERPTS};
use crate::passage::{Passage, passages};
use crate::snippet::{HitContext, snippet_around};

/// The most passages that are searched for the query terms, which bounds the cost of a hit on a very long document.
const MAX_SEARCHED: usize = 64;

/// The best excerpts of a document: the passages nearest by embedding first, then those with the most query terms.
/// A document with text has at least one.
pub(crate) fn best_excerpts(
    document: &Document,
    language: Language,
    context: &HitContext<'_>,
) -> Vec<HitExcerpt> {
    let all = passages(document);
    let near = (context.near)();
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
                snippet_around(text, language, context.wanted, MAX_EXCERPT_CHARS);
            let term_matches = (different, matches);
            (nearest(&passage), term_matches, excerpt(passage, text))
        })
        .collect();
    found.sort_by(|(near, term_matches, _), (other_near, other_matches, _)| {
        near.cmp(other_near)
            .then_with(|| other_matches.cmp(term_matches))
    });
    let is_relevant =
        |(at, (near, term_matches, _)): &(usize, (usize, (usize, usize), HitExcerpt))| {
            *at == 0 || *near < usize::MAX || term_matches.0 > 0
        };
    let relevant = found.into_iter().enumerate().filter(is_relevant);
    relevant
        .take(MAX_EXCERPTS)
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
