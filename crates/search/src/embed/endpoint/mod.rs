//! Embeddings from an HTTP endpoint with OpenAI's `/embeddings` API, which Ollama, vLLM and text-embeddings-inference
//! serve too.

mod client;
mod response;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use docent_unicode::truncate_bytes;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::embedder::Embedder;
use crate::error::SearchError;
use crate::vectors::MAX_DIMENSIONS;
use client::{EndpointClient, RetryPolicy};

/// The most bytes of an address, of a model's name and of a prefix: far more than any that is in use.
pub const MAX_SETTING_BYTES: usize = 2_048;

/// The most inputs of one request. Servers commonly refuse more by default.
const MAX_INPUTS: usize = 64;
/// The most bytes of input of one request, so that the retry of a lost one is cheap.
const MAX_BATCH_BYTES: usize = 256 * 1024;
/// Texts are truncated to this many bytes, about as much as the widest context windows of embedding models hold.
const MAX_TEXT_BYTES: usize = 32 * 1024;

/// The address of an embeddings endpoint, its credentials, and the model to use there.
#[derive(Debug, Clone)]
pub struct EndpointSettings {
    /// The base URL, such as `http://localhost:11434/v1`. `/embeddings` is appended if it does not end so.
    pub url: String,
    /// The name of the model at the endpoint.
    pub model: String,
    /// The API key, sent as a bearer token.
    pub key: Option<ServiceKey>,
    /// The number of dimensions. If it is given, it is part of every request; otherwise the model decides, and one
    /// request at the start finds out.
    pub dimensions: Option<usize>,
    /// A prefix of each question, for models that were trained with one.
    pub query_prefix: String,
    /// A prefix of each passage, for models that were trained with one.
    pub passage_prefix: String,
    /// The timeout of one request with passages.
    pub timeout: Duration,
    /// The timeout of one request with a question. It is shorter, because a user is waiting.
    pub query_timeout: Duration,
}

impl EndpointSettings {
    /// The default settings for a model of an endpoint: no key, no prefixes, 60 s for passages and 5 s for questions.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            model: model.into(),
            key: None,
            dimensions: None,
            query_prefix: String::new(),
            passage_prefix: String::new(),
            timeout: Duration::from_secs(60),
            query_timeout: Duration::from_secs(5),
        }
    }
}

/// An API key. Its `Debug` output is redacted, so that it cannot leak into a log.
#[derive(Clone)]
pub struct ServiceKey(String);

impl ServiceKey {
    /// Wraps a key that was read from the settings.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key in plain text, for the request that has to send it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

/// An embedding model behind an HTTP endpoint.
pub struct EndpointEmbedder {
    client: EndpointClient,
    query_prefix: String,
    passage_prefix: String,
    dimensions: usize,
    fingerprint: String,
    passages: RetryPolicy,
    query: RetryPolicy,
}

impl EndpointEmbedder {
    /// Validates the settings. If they leave the dimensions open, a probe request finds out how many the model has.
    pub fn connect(settings: &EndpointSettings) -> Result<Self, SearchError> {
        Self::connect_with_wait(settings, std::thread::sleep)
    }

    /// The same as [`connect`](Self::connect), with another way to sleep between retries. Tests pass one that returns
    /// at once.
    pub fn connect_with_wait(
        settings: &EndpointSettings,
        wait: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Result<Self, SearchError> {
        check(settings)?;
        let client = EndpointClient::new(settings, Box::new(wait))?;
        let mut endpoint = Self {
            client,
            query_prefix: settings.query_prefix.clone(),
            passage_prefix: settings.passage_prefix.clone(),
            dimensions: settings.dimensions.unwrap_or_default(),
            fingerprint: String::new(),
            passages: RetryPolicy::for_passages(settings.timeout),
            query: RetryPolicy::for_queries(settings.query_timeout),
        };
        if settings.dimensions.is_none() {
            endpoint.dimensions = endpoint.probe()?;
        }
        endpoint.fingerprint = endpoint.compute_fingerprint(&settings.model);
        Ok(endpoint)
    }

    fn probe(&self) -> Result<usize, SearchError> {
        let vectors = self.client.embed(&["dimensions"], None, &self.passages)?;
        Ok(vectors.first().map(Vec::len).unwrap_or_default())
    }

    /// The fingerprint: a hash of everything that changes the vectors. It is hashed because an index stores it and the
    /// settings may be long, and hashed as JSON because its quotes keep a prefix from passing for a model's name.
    fn compute_fingerprint(&self, model: &str) -> String {
        let all = json!({
            "endpoint": self.client.url(),
            "model": model,
            "dimensions": self.dimensions,
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
        });
        let sum = Sha256::digest(all.to_string());
        let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("endpoint-{hex}")
    }
}

impl Embedder for EndpointEmbedder {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        let inputs: Vec<String> = texts
            .iter()
            .map(|text| input(&self.passage_prefix, text))
            .collect();
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in batches(&inputs) {
            let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
            let embedded = self
                .client
                .embed(&batch, Some(self.dimensions), &self.passages)?;
            vectors.extend(embedded);
        }
        Ok(vectors)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        let input = input(&self.query_prefix, text);
        let vectors = self
            .client
            .embed(&[&input], Some(self.dimensions), &self.query)?;
        vectors
            .into_iter()
            .next()
            .ok_or_else(|| client::error("the endpoint answered without a vector", client::WRONG))
    }
}

/// The input for a text: its prefix and the truncated text. Most endpoints refuse an empty input, so a full stop takes
/// its place.
fn input(prefix: &str, text: &str) -> String {
    let text = truncate_bytes(text, MAX_TEXT_BYTES);
    if text.trim().is_empty() {
        format!("{prefix}.")
    } else {
        format!("{prefix}{text}")
    }
}

/// Splits the inputs, in their order, into batches within both limits of a request.
fn batches(inputs: &[String]) -> Vec<&[String]> {
    let mut batches = Vec::new();
    let mut rest = inputs;
    while !rest.is_empty() {
        let mut bytes = 0;
        let mut fits = rest
            .iter()
            .take(MAX_INPUTS)
            .take_while(|input| {
                bytes += input.len();
                bytes <= MAX_BATCH_BYTES
            })
            .count();
        // A batch has at least one input, whose own limit is far below that of a request.
        fits = fits.max(1);
        let (batch, after) = rest.split_at(fits);
        batches.push(batch);
        rest = after;
    }
    batches
}

/// Refuses settings that cannot work before anything is sent.
fn check(settings: &EndpointSettings) -> Result<(), SearchError> {
    for (name, value) in [
        ("address", &settings.url),
        ("model", &settings.model),
        ("query prefix", &settings.query_prefix),
        ("passage prefix", &settings.passage_prefix),
    ] {
        if value.len() > MAX_SETTING_BYTES {
            return Err(SearchError::TooLarge {
                what: format!("the endpoint's {name}"),
                size: value.len(),
                limit: MAX_SETTING_BYTES,
            });
        }
    }
    if settings.model.trim().is_empty() {
        return Err(client::error(
            "the endpoint's model has no name",
            "name a model that the endpoint serves, such as `nomic-embed-text`",
        ));
    }
    match settings.dimensions {
        Some(0) => Err(client::error(
            "the number of dimensions is `0`",
            "leave out the dimensions to let the endpoint decide",
        )),
        Some(size) if size > MAX_DIMENSIONS => Err(SearchError::TooLarge {
            what: "the number of dimensions".to_owned(),
            size,
            limit: MAX_DIMENSIONS,
        }),
        _ => Ok(()),
    }
}
