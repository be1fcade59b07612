//! The built-in embedding model, granite-embedding-30m-english by IBM: a transformer encoder of six layers, quantized
//! to int8 and run on the CPU. It needs no download, no service and no GPU.

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

/// The model's revision as its authors number it, its quantization, and a version. The version is raised when a change
/// of the arithmetic changes vectors, and when the rule changes which passages get one: those in English, since 5 as
/// [`LanguageId`](crate::analysis::LanguageId) identifies it now.
const FINGERPRINT: &str = "granite-embedding-30m-english/9b5b0964/int8/5";

/// How many tokens go through the layers together: enough to reuse each weight in the CPU cache many times, few enough
/// for the activations to stay there too.
const BATCH_TOKENS: usize = 256;

/// About how many bytes a token of English or of code has; batches are sized with it before tokenization.
const BYTES_A_TOKEN: usize = 4;

/// Questions are truncated to this many tokens, about a hundred words. A user is waiting, and every token adds
/// latency.
const MAX_QUERY_TOKENS: usize = 128;

/// The built-in embedding model: English, 384 dimensions, reads the first 512 tokens of each text. Weights are loaded
/// on first use.
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
    /// The model with one thread for each CPU that the process may use.
    pub fn new() -> Self {
        Self::with_threads(std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// The model with at most this many threads. A single text always runs on one.
    pub fn with_threads(threads: usize) -> Self {
        let fastest = InstructionSet::available().into_iter().next();
        Self {
            weights: OnceLock::new(),
            instructions: fastest.unwrap_or(InstructionSet::Portable),
            threads: threads.max(1),
        }
    }

    /// The names of the SIMD instruction sets that this CPU supports, the fastest first.
    pub fn instructions() -> Vec<&'static str> {
        let available = InstructionSet::available();
        available.into_iter().map(InstructionSet::name).collect()
    }

    /// The same model restricted to one SIMD instruction set, for comparisons; `None` if the CPU does not support it.
    pub fn with_instructions(self, instructions: &str) -> Option<Self> {
        let mut available = InstructionSet::available().into_iter();
        let instructions = available.find(|one| one.name() == instructions)?;
        Some(Self {
            instructions,
            ..self
        })
    }

    /// The number of tokens that the model reads of a text, `<s>` and `</s>` included; at most 512.
    pub fn tokens(&self, text: &str) -> Result<usize, SearchError> {
        Ok(self.weights()?.tokenizer.encode(text).len())
    }

    fn weights(&self) -> Result<&GraniteWeights, SearchError> {
        let weights = self.weights.get_or_init(GraniteWeights::load).as_ref();
        weights.ok_or_else(|| SearchError::engine("the built-in embedding model is corrupt"))
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
            return Err(SearchError::engine("an embedding thread panicked"));
        }
        done.sort_unstable_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, vector)| vector).collect())
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        let weights = self.weights()?;
        let mut tokens = weights.tokenizer.encode(text);
        if let (Some(&last), true) = (tokens.last(), tokens.len() > MAX_QUERY_TOKENS) {
            // A truncated question ends with `</s>` too.
            tokens.truncate(MAX_QUERY_TOKENS - 1);
            tokens.push(last);
        }
        let vectors = ForwardPass::new(weights, self.instructions).run(&[tokens]);
        let vector = vectors.into_iter().next();
        vector.ok_or_else(|| SearchError::engine("the embedding model returned no vector"))
    }
}

/// Groups texts, by their indexes, into batches of about [`BATCH_TOKENS`] tokens. The longest go first, so that the
/// threads finish at about the same time.
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
