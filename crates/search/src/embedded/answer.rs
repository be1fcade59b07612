//! A query into its answer: both halves, what they say together, and the hits to show.

use std::collections::HashMap;
use std::ops::Range;

use super::Inner;
use super::lexical::{self, Lexical};
use super::listing;
use super::meaning::Meaning;
use super::narrow::{self, Allowed};
use super::snapshot::Snapshot;
use super::words::Words;
use crate::error::Error;
use crate::fuse::{self, Candidate, Scale, Signals};
use crate::hit::Found;
use crate::query::{Asked, Method, Query, Sort};
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
    /// Its passages nearest to the question.
    near: Vec<Range<usize>>,
}

impl Inner {
    /// Whether the answer needs no model, or one that has seen the question before.
    pub(super) fn is_known(&self, query: &Query) -> bool {
        let meaning = self
            .meaning
            .as_ref()
            .filter(|_| query.method != Method::Lexical);
        meaning.is_none_or(|meaning| meaning.recall(&query.text).is_some())
    }

    pub(super) fn search(&self, query: &Query) -> Result<Found, Error> {
        let snapshot = self.snapshot();
        let known = |source| self.known(source);
        let mut asked = query.asked(&snapshot.languages);
        let words = Words {
            snapshot: &snapshot,
            fields: &self.fields,
        };
        spelling::correct(&mut asked.terms, &words).map_err(known)?;
        let terms = ranking::distinct(&asked.terms);
        let allowed = narrow::allowed(&snapshot, &self.fields, query, &asked).map_err(known)?;
        let is_list = query.sort != Sort::Relevance || (terms.is_empty() && query.is_narrowed());
        let set = if is_list || query.counted || !query.facets.is_empty() {
            let set = narrow::matching(
                &snapshot,
                &self.fields,
                &ranking::forms(&terms),
                allowed.as_ref(),
            );
            Some(set.map_err(known)?)
        } else {
            None
        };
        let mut ranked = match &set {
            Some(set) if is_list => listed(&snapshot, set, query),
            _ if terms.is_empty() => Vec::new(),
            _ => self.ranked(&snapshot, query, &asked, allowed.as_ref())?,
        };
        if query.diversity > 0.0 && !is_list {
            self.vary(&snapshot, query, &mut ranked)?;
        }
        let wanted = Wanted::new(&terms);
        let shown = ranked.into_iter().skip(query.offset).take(query.limit);
        let hits = shown.map(|one| {
            let mapped = self.mapped(&snapshot, one.item.candidate.at)?;
            Ok(mapped.hit(&Shown {
                score: one.parts.score,
                near: &one.item.near,
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

    /// The best documents, best first, as many as have to be known for the hits asked for.
    fn ranked(
        &self,
        snapshot: &Snapshot,
        query: &Query,
        asked: &Asked,
        allowed: Option<&Allowed>,
    ) -> Result<Vec<Candidate<Ranked>>, Error> {
        let known = |source| self.known(source);
        let most = ranking::candidates(query.depth());
        let lexical = Lexical {
            snapshot,
            fields: &self.fields,
            terms: &asked.terms,
            allowed,
        };
        let mut ranked: Vec<Ranked> = lexical
            .best(most)
            .map_err(known)?
            .into_iter()
            .map(Ranked::from)
            .collect();
        self.add_meanings(&lexical, query, most, &mut ranked)?;
        // Equals stay in the order they come in.
        ranked.sort_by(|left, right| left.candidate.by_id(&right.candidate, snapshot));
        let mut candidates: Vec<_> = ranked.into_iter().map(Ranked::weighed).collect();
        fuse::fuse(&self.signals(query), &mut candidates);
        candidates.retain(|one| query.method != Method::Hybrid || one.is_worth_showing());
        Ok(candidates)
    }

    fn signals(&self, query: &Query) -> Signals {
        Signals {
            words: fuse::words(&query.text),
            scale: self.meaning.as_ref().map_or(Scale::GRANITE, Meaning::scale),
            tail: None,
            weighing: query.method.weighing(),
        }
    }

    /// Puts variety into the hits that are shown.
    fn vary(
        &self,
        snapshot: &Snapshot,
        query: &Query,
        ranked: &mut Vec<Candidate<Ranked>>,
    ) -> Result<(), Error> {
        ranked.truncate(MAX_VARIED.max(query.depth()));
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
        query: &Query,
        most: usize,
        ranked: &mut Vec<Ranked>,
    ) -> Result<(), Error> {
        let snapshot = lexical.snapshot;
        let (Some(meaning), Some(view)) = (&self.meaning, &snapshot.vectors) else {
            return Ok(());
        };
        if query.method == Method::Lexical || view.rows() == 0 {
            return Ok(());
        }
        let question = match meaning.question(&query.text) {
            Ok(question) => question,
            // Words alone are a worse answer than both, and a better one than none.
            Err(error) => {
                tracing::warn!(%error, "a question could not be turned into a vector");
                return Ok(());
            }
        };
        let allowed = lexical.allowed.map(|allowed| {
            let mut set = vectors::Allowed::new(snapshot.ordinals());
            allowed
                .iter()
                .for_each(|at| set.insert(snapshot.ordinal(at)));
            set
        });
        let near = view.search(
            &question,
            &vectors::Wanted {
                documents: most.min(vectors::MAX_DOCUMENTS),
                allowed: allowed.as_ref(),
                threads: THREADS,
            },
        )?;
        let mut found: HashMap<u32, vectors::Found> =
            near.into_iter().map(|one| (one.ordinal, one)).collect();
        let mut alone = Vec::new();
        for one in ranked.iter_mut() {
            let ordinal = snapshot.ordinal(one.candidate.at);
            match found.remove(&ordinal) {
                Some(near) => one.take(&near),
                None => alone.push(ordinal),
            }
        }
        let mut rest = HashMap::new();
        for ordinals in alone.chunks(vectors::MAX_DOCUMENTS) {
            let scored = view.score(&question, ordinals)?;
            rest.extend(scored.into_iter().map(|one| (one.ordinal, one)));
        }
        for one in ranked.iter_mut().filter(|one| one.semantic.is_none()) {
            if let Some(near) = rest.get(&snapshot.ordinal(one.candidate.at)) {
                one.take(near);
            }
        }
        let mut only: Vec<lexical::Candidate> = Vec::new();
        let mut more = Vec::new();
        for (ordinal, near) in found {
            if let Some(at) = snapshot.address(ordinal) {
                only.push(lexical::Candidate::new(snapshot, at, 0.0));
                more.push((at, near));
            }
        }
        lexical
            .score(&mut only)
            .map_err(|source| self.known(source))?;
        more.sort_unstable_by_key(|(at, _)| *at);
        ranked.extend(only.into_iter().zip(more).map(|(candidate, (_, near))| {
            let mut one = Ranked::from(candidate);
            one.take(&near);
            one
        }));
        Ok(())
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
            near: Vec::new(),
        }
    }
}

impl Ranked {
    fn take(&mut self, near: &vectors::Found) {
        self.semantic = Some(near.score);
        let ranges = near.passages.iter();
        self.near = ranges
            .map(|one| one.start as usize..one.end as usize)
            .collect();
    }

    fn weighed(self) -> Candidate<Self> {
        let (lexical, semantic) = (self.candidate.raw, self.semantic);
        Candidate::new(self, Some(lexical), semantic)
    }
}
