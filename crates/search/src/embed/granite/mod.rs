//! Texts into vectors with granite-embedding-30m-english, a small model by IBM that is part of the
//! program: no download, no service, no graphics card.

mod forward_pass;
mod kernels;
mod tokenizer;
mod weights;

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::embedder::{Embedder, ModelLanguages};
use crate::error::SearchError;
use forward_pass::ForwardPass;
use kernels::InstructionSet;
use tokenizer::MAX_TOKENS;
use weights::{GraniteWeights, HIDDEN};

/// The model's revision as its authors number it, and how its weights are packed and its
/// activations rounded here. Whoever changes the arithmetic counts the last number up.
/// The last number is the version of the rule that says which passages get a vector: those in English, since 4 by
/// [`LanguageId`](crate::analysis::LanguageId) as it is now.
const FINGERPRINT: &str = "granite-embedding-30m-english/9b5b0964/int8/4";

/// How many tokens are passed through the layers together: enough to reuse each weight from the
/// cache many times, few enough for the rows themselves to stay in it.
const BATCH_TOKENS: usize = 256;

/// A token of English or of code has about this many bytes.
const BYTES_A_TOKEN: usize = 4;

/// The most tokens of a question that count, about a hundred words: somebody waits for it, and each
/// token takes its time.
const MAX_QUESTION_TOKENS: usize = 128;

/// The embedding model inside the program: English, 384 numbers a vector, the first 512 tokens of
/// each text.
pub struct GraniteEmbedder {
    weights: OnceLock<Option<GraniteWeights>>,
    instructions: InstructionSet,
    threads: usize,
}

impl Default for GraniteEmbedder {
    fn default() -> Self {
        Self::new()
    }
}

impl GraniteEmbedder {
    /// The model on as many threads as the machine runs at once.
    pub fn new() -> Self {
        Self::with_threads(std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// The model on at most this many threads; a single text always uses one.
    pub fn with_threads(threads: usize) -> Self {
        let fastest = InstructionSet::available().into_iter().next();
        Self {
            weights: OnceLock::new(),
            instructions: fastest.unwrap_or(InstructionSet::Portable),
            threads: threads.max(1),
        }
    }

    /// The names of the vector instructions that this processor could use, the fastest first.
    pub fn instructions() -> Vec<&'static str> {
        let available = InstructionSet::available();
        available.into_iter().map(InstructionSet::name).collect()
    }

    /// The same model held to one set of vector instructions, to compare them; nothing if the
    /// processor does not have it.
    pub fn with_instructions(self, instructions: &str) -> Option<Self> {
        let mut available = InstructionSet::available().into_iter();
        let instructions = available.find(|one| one.name() == instructions)?;
        Some(Self {
            instructions,
            ..self
        })
    }

    /// How many tokens a text has, the opening and closing ones included; at most 512.
    pub fn tokens(&self, text: &str) -> Result<usize, SearchError> {
        Ok(self.weights()?.tokenizer.encode(text).len())
    }

    fn weights(&self) -> Result<&GraniteWeights, SearchError> {
        let weights = self.weights.get_or_init(GraniteWeights::load).as_ref();
        weights.ok_or_else(|| SearchError::engine("the embedding model in the program is damaged"))
    }
}

impl Embedder for GraniteEmbedder {
    fn fingerprint(&self) -> &str {
        FINGERPRINT
    }

    fn dimensions(&self) -> usize {
        HIDDEN
    }

    fn languages(&self) -> ModelLanguages {
        ModelLanguages::English
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        let weights = self.weights()?;
        let batches = batches(texts);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut pass = ForwardPass::new(weights, self.instructions);
            let mut done = Vec::new();
            while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                let encode = |&at: &usize| weights.tokenizer.encode(texts.get(at).unwrap_or(&""));
                let tokens: Vec<_> = batch.iter().map(encode).collect();
                done.extend(batch.iter().copied().zip(pass.run(&tokens)));
            }
            done
        };
        let others = self.threads.min(batches.len()).saturating_sub(1);
        let mut done = std::thread::scope(|scope| {
            let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
            let mut done = work();
            for other in others {
                done.extend(other.join().unwrap_or_default());
            }
            done
        });
        if done.len() != texts.len() {
            return Err(SearchError::engine(
                "a thread of the embedding model failed",
            ));
        }
        done.sort_unstable_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, vector)| vector).collect())
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        let weights = self.weights()?;
        let mut tokens = weights.tokenizer.encode(text);
        if let (Some(&last), true) = (tokens.last(), tokens.len() > MAX_QUESTION_TOKENS) {
            // It ends with the closing token, wherever it ends.
            tokens.truncate(MAX_QUESTION_TOKENS - 1);
            tokens.push(last);
        }
        let vectors = ForwardPass::new(weights, self.instructions).run(&[tokens]);
        let vector = vectors.into_iter().next();
        vector.ok_or_else(|| SearchError::engine("the embedding model gave no vector"))
    }
}

/// Places of texts that are embedded together, the longest first, so that the threads finish at
/// about the same time.
fn batches(texts: &[&str]) -> Vec<Vec<usize>> {
    let mut order: Vec<(usize, usize)> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| ((text.len() / BYTES_A_TOKEN + 2).min(MAX_TOKENS), at))
        .collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for (tokens, at) in order {
        match batches.last_mut() {
            Some(batch) if tokens <= room => {
                batch.push(at);
                room -= tokens;
            }
            _ => {
                batches.push(vec![at]);
                room = BATCH_TOKENS.saturating_sub(tokens);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests;
