//! The embedding model as a trait: the one seam between texts and the vectors that represent their meaning.

use crate::error::SearchError;
use crate::fusion::CosineScale;

/// The languages that a model was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelLanguages {
    /// Many, or unknown: every text gets a vector.
    Any,
    /// English only: foreign texts get no vector, because their cosines would be noise.
    English,
}

/// An embedding model: turns texts into unit vectors whose cosine measures how close their meaning is.
///
/// Calls block the thread for as long as they take, so callers run them where blocking keeps nobody waiting.
pub trait Embedder: Send + Sync + 'static {
    /// Identifies the model and every setting that changes its vectors. Vectors with different fingerprints are not
    /// comparable, so an engine discards those of another one.
    fn fingerprint(&self) -> &str;

    /// The number of dimensions of a vector.
    fn dimensions(&self) -> usize;

    /// The calibration of its cosines for score fusion. A model that nobody has measured is assumed to behave like
    /// the built-in one.
    fn scale(&self) -> CosineScale {
        CosineScale::GRANITE
    }

    /// The languages whose texts its vectors can distinguish. Text in any other language gets no vector and is
    /// ranked by words alone.
    fn languages(&self) -> ModelLanguages {
        ModelLanguages::Any
    }

    /// Embeds passages, in their order; every vector has length one.
    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError>;

    /// Whether embedding a question is so fast that it may run on an async thread.
    fn is_instant(&self) -> bool {
        false
    }

    /// Whether embedding a question waits for another machine, so that more of them may be in flight than there are
    /// processors.
    fn is_remote(&self) -> bool {
        false
    }

    /// Embeds a question; the vector has length one.
    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError>;
}
