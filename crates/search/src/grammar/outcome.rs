//! What a query turns out to say, gathered while it is read.

use std::ops::Range;

use super::groups::{Join, Node};
use super::scan::{Scan, is_quote};
use super::{Applied, Ignored, MAX_IGNORED, Parsed};
use crate::query::MAX_QUERY_TERMS;

/// A phrase or a word, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Phrase<'q> {
    pub at: usize,
    pub written: &'q str,
    pub text: &'q str,
    pub has_to_occur: bool,
}

/// All that was found so far.
#[derive(Default)]
pub(super) struct Outcome<'q> {
    text: String,
    pub phrases: Vec<Phrase<'q>>,
    excluded: Vec<Phrase<'q>>,
    ignored: Vec<(usize, Ignored)>,
}

impl<'q> Outcome<'q> {
    /// Adds to what is ranked by.
    pub(super) fn push_text(&mut self, words: &str) {
        let words = words.trim();
        if !self.text.is_empty() && !words.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(words);
    }

    pub(super) fn require(&mut self, phrase: Phrase<'q>) {
        if self.phrases.len() < MAX_QUERY_TERMS {
            self.phrases.push(phrase);
        }
    }

    pub(super) fn exclude(&mut self, phrase: Phrase<'q>) {
        let is_around = |c: char| is_quote(c) || ".,;:!?".contains(c);
        if self.excluded.len() < MAX_QUERY_TERMS {
            self.excluded.push(Phrase {
                text: phrase.text.trim_matches(is_around),
                ..phrase
            });
        }
    }

    /// Of phrases that are joined by `OR`, none has to occur.
    pub(super) fn make_optional(&mut self, join: Join, phrases: Range<usize>) {
        let phrases = self.phrases.get_mut(phrases).unwrap_or_default();
        for phrase in phrases {
            phrase.has_to_occur &= join != Join::Or;
        }
    }

    pub(super) fn ignore(&mut self, at: usize, ignored: Ignored) {
        if self.ignored.len() < MAX_IGNORED {
            self.ignored.push((at, ignored));
        }
    }

    pub(super) fn finish(mut self, nodes: Vec<Node>, scan: &Scan<'q>) -> Parsed {
        let has_text = self.text.contains(char::is_alphanumeric);
        if !has_text && nodes.is_empty() {
            // Everything but a word is no question; the word is.
            for phrase in std::mem::take(&mut self.excluded) {
                self.push_text(phrase.text);
            }
        }
        self.phrases.retain(|phrase| phrase.has_to_occur);
        self.ignored.sort_by_key(|(at, _)| *at);
        let texts = |phrases: &[Phrase<'_>]| {
            let texts = phrases.iter().map(|phrase| phrase.text.to_owned());
            texts.collect::<Vec<_>>()
        };
        Parsed {
            applied: self.applied(&nodes, scan),
            phrases: texts(&self.phrases),
            excluded: texts(&self.excluded),
            text: self.text,
            filter: Node::joined(Join::And, nodes).map(|node| node.filter),
            ignored: self.ignored.into_iter().map(|(_, one)| one).collect(),
        }
    }

    /// All that a document has to meet, in the order of the query.
    fn applied(&self, nodes: &[Node], scan: &Scan<'_>) -> Vec<Applied> {
        let conditions = nodes.iter().map(|node| {
            let written = scan.slice(node.span.clone());
            (node.span.start, written, node.filter.to_string())
        });
        let told = |phrase: &Phrase<'q>, how| {
            let meaning = format!("{how} `{}`", phrase.text);
            (phrase.at, phrase.written, meaning)
        };
        let with = self.phrases.iter().map(|phrase| told(phrase, "with"));
        let without = self.excluded.iter().map(|phrase| told(phrase, "without"));
        let mut applied: Vec<_> = conditions.chain(with).chain(without).collect();
        applied.sort_by_key(|(at, _, _)| *at);
        let applied = applied.into_iter().map(|(_, written, meaning)| Applied {
            written: written.to_owned(),
            meaning,
        });
        applied.collect()
    }
}
