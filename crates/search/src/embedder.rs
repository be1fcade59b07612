//! The seam between texts and the vectors that stand for their meaning.

use crate::error::SearchError;
use crate::fusion::CosineScale;

/// The languages that a model was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelLanguages {
    /// Many, or nobody knows which: every text gets a vector.
    Any,
    /// English alone.
    English,
}

/// Something that turns texts into vectors, so that texts of like meaning get vectors that point
/// the same way.
///
/// The calls take as long as they take and block the thread: whoever asks decides where that keeps
/// nobody waiting.
pub trait Embedder: Send + Sync + 'static {
    /// Names the model and everything else that changes its vectors. Vectors of two fingerprints
    /// cannot be compared.
    fn fingerprint(&self) -> &str;

    /// How many numbers a vector has.
    fn dimensions(&self) -> usize;

    /// What the cosines of its vectors are worth beside words. Those of a model nobody has measured
    /// here are taken to be worth what the one in the program is.
    fn scale(&self) -> CosineScale {
        CosineScale::GRANITE
    }

    /// The languages whose texts its vectors tell apart. What is in another one gets no vector, and words alone
    /// decide about it.
    fn languages(&self) -> ModelLanguages {
        ModelLanguages::Any
    }

    /// The vectors of passages, in their order, each of length one.
    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError>;

    /// Whether a question takes so little that nobody need wait elsewhere for it.
    fn is_instant(&self) -> bool {
        false
    }

    /// Whether a question waits for another machine, so that more of them may be asked at once than there are
    /// processors.
    fn is_remote(&self) -> bool {
        false
    }

    /// The vector of a question, of length one.
    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError>;
}
