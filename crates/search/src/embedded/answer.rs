//! A query into its answer: both halves, what they say together, and the hits to show.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::Inner;
use super::lexical::{self, Lexical};
use super::listing;
use super::meaning::Asked;
use super::narrow::{self, Allowed};
use super::sight::Sight;
use super::snapshot::Snapshot;
use super::words::Words;
use crate::error::Error;
use crate::fuse::{self, Candidate, Scale, Signals};
use crate::hit::Found;
use crate::query::{self, Method, Query, Sort};
use crate::ranking;
use crate::snippet::{Shown, Wanted};
use crate::spelling;
use crate::vectors;

/// The most documents that are compared with each other for variety.
const MAX_VARIED: usize = 200;

/// How many threads work on one answer.
const THREADS: usize = 2;

/// One document on its way to become a hit.
struct Ranked {
    candidate: lexical::Candidate,
    semantic: Option<f32>,
}

impl Inner {
    /// Whether the answer needs no model, or one that has seen the question before.
    pub(super) fn is_known(&self, query: &Query) -> bool {
        let snapshot = self.snapshot();
        let (Some(meaning), Some(views)) = (&self.meaning, &snapshot.vectors) else {
            return true;
        };
        query.method == Method::Lexical || meaning.knows(&query.text, views)
    }

    pub(super) fn search(&self, query: &Query) -> Result<Found, Error> {
        let snapshot = self.snapshot();
        let known = |source| self.known(source);
        let sight = snapshot.sight(query.reader()).map_err(known)?;
        let asked = self.asked(&snapshot, &sight, query)?;
        let terms = ranking::distinct(&asked.terms);
        let allowed =
            narrow::allowed((&snapshot, &sight), &self.fields, query, &asked).map_err(known)?;
        let is_list = query.sort != Sort::Relevance || (terms.is_empty() && query.is_narrowed());
        let set = if is_list || query.counted || !query.facets.is_empty() {
            let set = narrow::matching(
                &snapshot,
                &self.fields,
                &ranking::forms(&terms),
                allowed.as_deref(),
            );
            Some(set.map_err(known)?)
        } else {
            None
        };
        let question = if is_list || terms.is_empty() {
            None
        } else {
            self.question(&snapshot, query)
        };
        let mut ranked = match &set {
            Some(set) if is_list => listed(&snapshot, set, query),
            _ if terms.is_empty() => Vec::new(),
            _ => {
                let lexical = Lexical {
                    snapshot: &snapshot,
                    fields: &self.fields,
                    terms: &asked.terms,
                    allowed: allowed.as_deref(),
                    sight: &sight,
                };
                self.ranked(&lexical, query, question.as_ref())?
            }
        };
        if query.diversity > 0.0 && !is_list {
            self.vary(&snapshot, query, &mut ranked)?;
        }
        let wanted = Wanted::new(&terms);
        let shown = ranked.into_iter().skip(query.offset).take(query.limit);
        let hits = shown.map(|one| {
            let at = one.item.candidate.at;
            let near = || match &question {
                Some(question) => question.passages(snapshot.ordinal(at)),
                None => Vec::new(),
            };
            Ok(self.mapped(&snapshot, at)?.hit(&Shown {
                score: one.parts.score,
                near: &near,
                excerpts: query.excerpts,
                wanted: &wanted,
                why: one.why(one.item.candidate.pairs),
            }))
        });
        let hits = hits.collect::<Result<_, Error>>()?;
        let facets = match &set {
            Some(set) => listing::facets(&snapshot, &self.fields, set, &query.facets),
            None => Ok(Vec::new()),
        };
        Ok(Found {
            hits,
            total: set.as_ref().filter(|_| query.counted).map(Allowed::count),
            facets: facets.map_err(known)?,
        })
    }

    /// The terms of a query in the languages that its reader sees, mistyped ones as they were meant.
    pub(super) fn asked(
        &self,
        snapshot: &Snapshot,
        sight: &Sight,
        query: &Query,
    ) -> Result<query::Asked, Error> {
        let mut asked = query.asked(&sight.languages);
        let words = Words {
            snapshot,
            fields: &self.fields,
            seen: sight.documents().map(Arc::as_ref),
        };
        let corrected = spelling::correct(&mut asked.terms, &words);
        corrected.map_err(|source| self.known(source))?;
        Ok(asked)
    }

    /// What the model makes of the question, where there is a model and vectors to ask.
    fn question<'s>(&self, snapshot: &'s Snapshot, query: &Query) -> Option<Asked<'s>> {
        let (meaning, views) = (self.meaning.as_ref()?, snapshot.vectors.as_ref()?);
        if query.method == Method::Lexical {
            return None;
        }
        match meaning.question(&query.text, views) {
            Ok(asked) => Some(asked).filter(|asked| asked.view.rows() > 0),
            // Words alone are a worse answer than both, and a better one than none.
            Err(error) => {
                tracing::warn!(%error, "a question could not be turned into a vector");
                None
            }
        }
    }

    /// The best documents, best first, as many as have to be known for the hits asked for.
    fn ranked(
        &self,
        lexical: &Lexical<'_>,
        query: &Query,
        question: Option<&Asked<'_>>,
    ) -> Result<Vec<Candidate<Ranked>>, Error> {
        let most = ranking::candidates(query.depth());
        let best = lexical.best(most).map_err(|source| self.known(source))?;
        let mut ranked: Vec<Ranked> = best.into_iter().map(Ranked::from).collect();
        if let Some(question) = question {
            self.add_meanings(lexical, question, most, &mut ranked)?;
        }
        let mut candidates: Vec<_> = ranked.into_iter().map(Ranked::weighed).collect();
        let signals = Signals {
            words: fuse::words(&query.text),
            scale: question.map_or(Scale::GRANITE, |question| question.scale),
            weighing: query.method.weighing(),
        };
        fuse::weigh(&signals, &mut candidates);
        candidates.retain(|one| query.method != Method::Hybrid || one.is_worth_showing());
        // Variety is sought among more than are shown.
        let keep = if query.diversity > 0.0 {
            MAX_VARIED.max(query.depth())
        } else {
            query.depth()
        };
        fuse::best(&mut candidates, keep, |left, right| {
            left.candidate.by_id(&right.candidate, lexical.snapshot)
        });
        Ok(candidates)
    }

    /// Puts variety into the hits that are shown.
    fn vary(
        &self,
        snapshot: &Snapshot,
        query: &Query,
        ranked: &mut [Candidate<Ranked>],
    ) -> Result<(), Error> {
        let pool = ranked.iter().take(MAX_VARIED);
        let mapped = pool.map(|one| {
            let at = one.item.candidate.at;
            Ok((at, self.mapped(snapshot, at)?))
        });
        let mapped: HashMap<_, _> = mapped.collect::<Result<_, Error>>()?;
        fuse::vary(ranked, query.diversity, query.depth(), |left, right| {
            let of = |one: &Ranked| mapped.get(&one.candidate.at);
            match (of(left), of(right)) {
                (Some(left), Some(right)) => left.likeness(right),
                _ => 0.0,
            }
        });
        Ok(())
    }

    /// Adds what the model says about the documents found so far, and those that only it finds.
    fn add_meanings(
        &self,
        lexical: &Lexical<'_>,
        question: &Asked<'_>,
        most: usize,
        ranked: &mut Vec<Ranked>,
    ) -> Result<(), Error> {
        let snapshot = lexical.snapshot;
        let near = |allowed: Option<&vectors::Allowed>| {
            let wanted = vectors::Wanted {
                documents: most.min(vectors::MAX_DOCUMENTS),
                allowed,
                threads: THREADS,
            };
            question.view.search(&question.question, &wanted)
        };
        let near = lexical
            .sight
            .with_ordinals(snapshot, lexical.allowed, near)?;
        let mut is_new = vec![true; near.len()];
        let may_lack = lexical.may_lack(ranked.len(), most);
        for one in ranked.iter_mut() {
            let ordinal = snapshot.ordinal(one.candidate.at);
            let place = near.binary_search_by_key(&ordinal, |found| found.ordinal);
            one.semantic = match place
                .ok()
                .and_then(|at| near.get(at).zip(is_new.get_mut(at)))
            {
                Some((found, is_new)) => {
                    *is_new = false;
                    Some(found.score)
                }
                None => question.view.score(&question.question, ordinal),
            };
        }
        let new = near.iter().zip(is_new).filter(|(_, is_new)| *is_new);
        let (mut only, mut scores) = (Vec::new(), Vec::new());
        for (found, _) in new {
            if let Some(at) = snapshot.address(found.ordinal) {
                only.push(lexical::Candidate::new(snapshot, at, 0.0));
                scores.push(found.score);
            }
        }
        // They are in the order of their addresses, and stay so.
        if may_lack {
            let scored = lexical.score(&mut only);
            scored.map_err(|source| self.known(source))?;
        }
        let only = only.into_iter().zip(scores);
        ranked.extend(only.map(|(candidate, score)| Ranked {
            candidate,
            semantic: Some(score),
        }));
        Ok(())
    }
}

impl Asked<'_> {
    /// The passages of a document nearest to it, the nearest first.
    fn passages(&self, ordinal: u32) -> Vec<Range<usize>> {
        let near = self.view.passages(&self.question, ordinal).into_iter();
        near.map(|one| one.start as usize..one.end as usize)
            .collect()
    }
}

/// Documents in the order of their days, each fitting as well as anything can.
fn listed(snapshot: &Snapshot, set: &Allowed, query: &Query) -> Vec<Candidate<Ranked>> {
    let list = listing::by_day(snapshot, set, query.sort, query.depth());
    list.into_iter()
        .map(|one| Candidate::listed(Ranked::from(one)))
        .collect()
}

impl From<lexical::Candidate> for Ranked {
    fn from(candidate: lexical::Candidate) -> Self {
        Self {
            candidate,
            semantic: None,
        }
    }
}

impl Ranked {
    fn weighed(self) -> Candidate<Self> {
        let (lexical, semantic) = (self.candidate.raw, self.semantic);
        Candidate::new(self, Some(lexical), semantic)
    }
}
