//! How frequent words are, which words there are that were probably meant, and what words are worth.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::PoisonError;

use serde::Serialize;
use serde_json::{Value, json};

use super::layout::{BEGINNINGS, ID, LETTERS, PAIRS, TERM, TERMS, WORDS};
use super::narrow::{Conditions, any_term, body_term, title_term};
use super::nodes::Ask;
use super::point::{LONGEST_BEGINNING, Sparse, pairs};
use super::view::View;
use super::wire::Points;
use crate::analysis::QueryTerm;
use crate::error::Error;
use crate::postings::rarity;
use crate::ranking::TITLE_WEIGHT;
use crate::spelling::Dictionary;

/// How many words that begin alike, or are almost alike, are looked at.
const MAX_ALIKE: usize = 2_000;

/// Of how many of them it is counted how many documents have them.
const MAX_COUNTED: usize = 48;

/// How many counts are asked for at once.
const AT_ONCE: usize = 8;

/// A term that so many versions have is in a document that counts, whatever was changed lately.
const SURELY: u64 = 1_000;

/// What the terms of a question are worth.
pub(super) struct Weights {
    places: Vec<u32>,
    values: Vec<f32>,
    /// How rare each form is.
    rarities: HashMap<String, f32>,
}

impl Weights {
    /// How rare two forms are together.
    pub(super) fn rarity(&self, first: &str, second: &str) -> f32 {
        let of = |form| self.rarities.get(form).copied().unwrap_or_default();
        of(first) + of(second)
    }
}

#[derive(Serialize)]
struct Asked<'a> {
    query: Sparse<'a>,
    using: &'a str,
    filter: Value,
    limit: usize,
    with_payload: &'a [&'a str],
}

/// A document found by its words.
pub(super) struct Worded {
    pub version: String,
    pub id: String,
    pub score: f32,
}

impl View<'_> {
    /// The documents whose words fit best, among those that meet the conditions.
    pub(super) fn worded(
        &self,
        weights: &Weights,
        conditions: &Conditions,
        most: usize,
    ) -> Result<Vec<Worded>, Error> {
        if weights.places.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        let asked = Asked {
            query: Sparse {
                indices: &weights.places,
                values: &weights.values,
            },
            using: WORDS,
            filter: conditions.json(),
            limit: most,
            with_payload: &[ID],
        };
        let body = serde_json::to_string(&asked).map_err(Error::engine)?;
        let found: Points = self.documents("search words", "points/query", body)?;
        let points = found.points.iter();
        Ok(points
            .map(|point| Worded {
                version: point.name(),
                id: point.text(ID).to_owned(),
                score: point.score,
            })
            .collect())
    }

    /// What these terms are worth, by how many documents have them. A word that languages write in
    /// several ways is as frequent as all of these ways together.
    pub(super) fn weights(&self, terms: &[&QueryTerm]) -> Result<Weights, Error> {
        let forms = terms.iter().flat_map(|term| &term.forms);
        let numbers: Vec<u32> = forms
            .flat_map(|form| [body_term(form), title_term(form)])
            .collect();
        let counts = self.frequencies(&numbers)?;
        let all = self.head.documents;
        let mut values: BTreeMap<u32, f32> = BTreeMap::new();
        let mut rarities = HashMap::new();
        for term in terms {
            for (number, weight) in [
                (body_term as fn(&str) -> u32, 1.0),
                (title_term, TITLE_WEIGHT),
            ] {
                let with = term
                    .forms
                    .iter()
                    .map(|form| counts.get(&number(form)).copied().unwrap_or(0));
                let rare = rarity(all, with.sum::<u64>().min(all));
                for form in &term.forms {
                    *values.entry(number(form)).or_default() += weight * term.weight * rare;
                    if weight == 1.0 {
                        rarities.insert(form.clone(), rare);
                    }
                }
            }
        }
        let (places, values) = values.into_iter().unzip();
        Ok(Weights {
            places,
            values,
            rarities,
        })
    }

    /// How many documents have each of these terms. Versions that are gone count until they are removed.
    fn frequencies(&self, numbers: &[u32]) -> Result<HashMap<u32, u64>, Error> {
        let generation = self.head.generation;
        let cache = &self.inner.caches.frequencies;
        let mut known = HashMap::new();
        let mut open = Vec::new();
        for number in numbers {
            match cache.get(generation, number) {
                Some(count) => drop(known.insert(*number, count)),
                None => open.push(*number),
            }
        }
        let counts = self.at_once(&open, |number| {
            let with = json!({"must": [{"key": TERMS, "match": {"value": number}}]});
            self.count(&with, false)
        })?;
        for (number, count) in open.iter().zip(counts) {
            cache.keep(generation, *number, count);
            known.insert(*number, count);
        }
        Ok(known)
    }

    /// Does the same for each, some of them at once.
    fn at_once<K: Sync, T: Send>(
        &self,
        keys: &[K],
        each: impl Fn(&K) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        if keys.len() <= 1 {
            return keys.iter().map(each).collect();
        }
        let done: Mutex<Vec<(usize, Result<T, Error>)>> = Mutex::default();
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(keys.len()) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(key) = keys.get(at) else { return };
                        let outcome = each(key);
                        done.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((at, outcome));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// How many documents that the reader sees have a term.
    fn seen_with(&self, term: &str) -> Result<u64, Error> {
        self.count(&self.seen.clone().and(any_term(&[term])).json(), true)
    }

    /// The words that meet a condition.
    fn alike(&self, filter: &Value) -> Result<Vec<String>, Error> {
        let body = json!({"filter": filter, "limit": MAX_ALIKE, "with_payload": [TERM]});
        let path = format!("/collections/{}/points/scroll", self.inner.names.terms);
        let ask = Ask::post("look for words", path, body.to_string());
        let found: Points = self.inner.nodes.ask(&ask, self.deadline)?;
        Ok(found
            .points
            .iter()
            .map(|point| point.text(TERM).to_owned())
            .collect())
    }
}

impl Dictionary for View<'_> {
    type Error = Error;

    fn knows(&self, term: &str) -> Result<bool, Error> {
        let is_open = self.head.restricted == 0;
        let number = body_term(term);
        let count = self
            .frequencies(&[number])?
            .get(&number)
            .copied()
            .unwrap_or_default();
        if count == 0 || (is_open && count >= SURELY) {
            return Ok(count > 0);
        }
        Ok(self.seen_with(term)? > 0)
    }

    fn beginning_with(&self, first: char) -> Result<BTreeMap<String, u64>, Error> {
        self.like(&first.to_string())
    }

    /// Only words that may have been meant: those that begin so, and those that share most pairs of
    /// letters. Of very many the shortest are counted.
    fn like(&self, word: &str) -> Result<BTreeMap<String, u64>, Error> {
        let letters: Vec<char> = word.chars().collect();
        let beginning: String = letters.iter().take(LONGEST_BEGINNING).collect();
        let begins = json!({"must": [{"key": BEGINNINGS, "match": {"value": beginning}}]});
        let mut found = self.alike(&begins)?;
        found.retain(|term| term.starts_with(word));
        shortest(&mut found, letters.len());
        let mut near = self.alike(&almost(&letters))?;
        near.retain(|term| crate::spelling::is_near(word, term));
        shortest(&mut near, letters.len());
        found.extend(near);
        found.sort_unstable();
        found.dedup();
        let counts = self.at_once(&found, |term| self.seen_with(term))?;
        Ok(found
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .collect())
    }
}

/// Leaves as many as are counted, those that are about as long first.
fn shortest(terms: &mut Vec<String>, letters: usize) {
    terms.sort_by_key(|term| term.chars().count().abs_diff(letters));
    terms.truncate(MAX_COUNTED);
}

/// The words that a slip or two may have made into this one: they begin with the same letter, are about as
/// long, and have most of their pairs of letters in common, of which each slip spoils three.
fn almost(letters: &[char]) -> Value {
    let first: String = letters.iter().take(1).collect();
    let slips = crate::spelling::slips_of(letters.len());
    let pairs = pairs(letters);
    let least = pairs.len().saturating_sub(3 * slips);
    let mut must = vec![
        json!({"key": BEGINNINGS, "match": {"value": first}}),
        json!({"key": LETTERS, "range": {
            "gte": letters.len().saturating_sub(slips), "lte": letters.len() + slips,
        }}),
    ];
    if least > 0 {
        let shared: Vec<_> = pairs
            .iter()
            .map(|pair| json!({"key": PAIRS, "match": {"value": pair}}))
            .collect();
        must.push(json!({"min_should": {"conditions": shared, "min_count": least}}));
    }
    json!({"must": must})
}
