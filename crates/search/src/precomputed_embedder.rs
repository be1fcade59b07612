//! Vectors that another engine has made already, in the place of the model that would make them again.
//!
//! Every engine cuts documents into the same passages and embeds the same words, so what is embedded names
//! the vector. Who moves an index gives the vectors of some documents in hand, applies these documents to
//! the other engine and has it settle: it asks its model, which is this one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::document::Document;
use crate::embedder::{Embedder, ModelLanguages};
use crate::engine::PassageVector;
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::passage::embeddable_passages;

/// A model that knows some answers already.
pub struct PrecomputedEmbedder {
    model: Arc<dyn Embedder>,
    known: Mutex<HashMap<String, Vec<f32>>>,
    made: Mutex<u64>,
}

impl PrecomputedEmbedder {
    /// One that asks `model` for everything it was not given.
    pub fn new(model: Arc<dyn Embedder>) -> Self {
        Self {
            model,
            known: Mutex::default(),
            made: Mutex::default(),
        }
    }

    /// Takes the vectors of a document in hand. Those that do not fit its passages are left.
    pub fn preload(&self, document: &Document, vectors: Vec<PassageVector>) {
        let mut by_range: HashMap<_, _> = vectors
            .into_iter()
            .map(|one| ((one.range.start, one.range.end), one.vector))
            .collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (passage, text) in embeddable_passages(document, self.model.languages()) {
            if let Some(vector) = by_range.remove(&(passage.range.start, passage.range.end)) {
                known.insert(text, vector);
            }
        }
    }

    /// Lets go of all vectors in hand.
    pub fn clear(&self) {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// How many vectors were not in hand and had to be made.
    pub fn computed_count(&self) -> u64 {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Embedder for PrecomputedEmbedder {
    fn fingerprint(&self) -> &str {
        self.model.fingerprint()
    }

    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }

    fn scale(&self) -> CosineScale {
        self.model.scale()
    }

    fn languages(&self) -> ModelLanguages {
        self.model.languages()
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<Option<Vec<f32>>> =
            texts.iter().map(|text| known.get(*text).cloned()).collect();
        drop(known);
        let open: Vec<&str> = texts
            .iter()
            .zip(&found)
            .filter(|(_, known)| known.is_none())
            .map(|(text, _)| *text)
            .collect();
        let mut made = Vec::new();
        if !open.is_empty() {
            made = self.model.passages(&open)?;
            *self.made.lock().unwrap_or_else(PoisonError::into_inner) += made.len() as u64;
        }
        let mut made = made.into_iter();
        let all = found.into_iter().map(|known| known.or_else(|| made.next()));
        all.collect::<Option<_>>()
            .ok_or_else(|| SearchError::engine("the model gave too few vectors"))
    }

    fn is_remote(&self) -> bool {
        self.model.is_remote()
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        self.model.query(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::plain;

    /// Says of each text how long it is.
    struct LengthEmbedder;

    impl Embedder for LengthEmbedder {
        fn fingerprint(&self) -> &str {
            "lengths/1"
        }

        fn dimensions(&self) -> usize {
            1
        }

        fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
            Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
        }

        fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
            Ok(vec![text.len() as f32])
        }
    }

    #[test]
    fn what_was_given_is_not_made_again() {
        let carrier = PrecomputedEmbedder::new(Arc::new(LengthEmbedder));
        let document = plain("A ferry.");
        let given = |range| PassageVector {
            range,
            vector: vec![-1.0],
        };
        carrier.preload(&document, vec![given(0..8), given(3..5)]);
        let all = carrier.passages(&["A boat!!", "A ferry.", "x"]).unwrap();
        assert_eq!(all, [[8.0], [-1.0], [1.0]]);
        assert_eq!(carrier.computed_count(), 2);
        carrier.clear();
        assert_eq!(carrier.passages(&["A ferry."]).unwrap(), [[8.0]]);
    }
}
