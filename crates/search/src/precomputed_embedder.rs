//! An [`Embedder`] that serves vectors which another engine has computed already; migration uses it to move an
//! index without embedding again.
//!
//! Every engine splits documents into the same passages and embeds the same text, so the embedded text identifies
//! the vector. This embedder is the model of the target engine. A migration preloads the vectors of some documents
//! into it, applies these documents to the target engine and calls `embed_pending`. The engine then gets the preloaded
//! vectors from this embedder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::document::Document;
use crate::embedder::{Embedder, ModelLanguages};
use crate::engine::PassageVector;
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::passage::embeddable_passages;

/// An embedding model with a cache of preloaded vectors; `misses` counts the misses.
pub struct PrecomputedEmbedder {
    model: Arc<dyn Embedder>,
    vectors: Mutex<HashMap<String, Vec<f32>>>,
    misses: Mutex<u64>,
}

impl PrecomputedEmbedder {
    /// Wraps `model`, which computes every vector that was not preloaded.
    pub fn new(model: Arc<dyn Embedder>) -> Self {
        Self {
            model,
            vectors: Mutex::default(),
            misses: Mutex::default(),
        }
    }

    /// Preloads the vectors of a document. Vectors that fit none of its passages are ignored.
    pub fn preload(&self, document: &Document, vectors: Vec<PassageVector>) {
        let mut by_range: HashMap<_, _> = vectors
            .into_iter()
            .map(|one| ((one.range.start, one.range.end), one.vector))
            .collect();
        let mut known = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        for (passage, text) in embeddable_passages(document, self.model.languages()) {
            if let Some(vector) = by_range.remove(&(passage.range.start, passage.range.end)) {
                known.insert(text, vector);
            }
        }
    }

    /// Drops all preloaded vectors.
    pub fn clear(&self) {
        self.vectors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// How many vectors were not preloaded and had to be computed.
    pub fn computed_count(&self) -> u64 {
        *self.misses.lock().unwrap_or_else(PoisonError::into_inner)
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
        let known = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<Option<Vec<f32>>> =
            texts.iter().map(|text| known.get(*text).cloned()).collect();
        drop(known);
        let missing: Vec<&str> = texts
            .iter()
            .zip(&found)
            .filter(|(_, known)| known.is_none())
            .map(|(text, _)| *text)
            .collect();
        let mut computed = Vec::new();
        if !missing.is_empty() {
            computed = self.model.passages(&missing)?;
            *self.misses.lock().unwrap_or_else(PoisonError::into_inner) += computed.len() as u64;
        }
        let mut computed = computed.into_iter();
        let all = found
            .into_iter()
            .map(|known| known.or_else(|| computed.next()));
        all.collect::<Option<_>>()
            .ok_or_else(|| SearchError::engine("the model returned too few vectors"))
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

    /// A fake model whose vector is the length of the text.
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
    fn preloaded_vectors_are_not_computed_again() {
        let embedder = PrecomputedEmbedder::new(Arc::new(LengthEmbedder));
        let document = plain("A ferry.");
        let given = |range| PassageVector {
            range,
            vector: vec![-1.0],
        };
        embedder.preload(&document, vec![given(0..8), given(3..5)]);
        let all = embedder.passages(&["A boat!!", "A ferry.", "x"]).unwrap();
        assert_eq!(all, [[8.0], [-1.0], [1.0]]);
        assert_eq!(embedder.computed_count(), 2);
        embedder.clear();
        assert_eq!(embedder.passages(&["A ferry."]).unwrap(), [[8.0]]);
    }
}
