//! Texts into vectors by way of an HTTP endpoint that speaks the embeddings call of OpenAI, as
//! Ollama, vLLM and text-embeddings-inference do too.

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

/// The most bytes of an address, a model's name and a prefix: far more than any in use.
pub const MAX_SETTING_BYTES: usize = 2_048;

/// The most texts of one request; servers commonly refuse more by default.
const MAX_INPUTS: usize = 64;
/// The most bytes of text of one request, so that one lost answer costs little to ask for again.
const MAX_BATCH_BYTES: usize = 256 * 1024;
/// What is sent of a text: the widest windows of models hold about this much.
const MAX_TEXT_BYTES: usize = 32 * 1024;

/// Where an endpoint is and how it is spoken to.
#[derive(Debug, Clone)]
pub struct EndpointSettings {
    /// The base address, such as `http://localhost:11434/v1`; `/embeddings` is added where it is
    /// not there yet.
    pub url: String,
    /// The model's name, as the endpoint knows it.
    pub model: String,
    /// What the endpoint wants to see as a bearer token.
    pub key: Option<ServiceKey>,
    /// How many numbers a vector shall have. It is asked for only when it is given; without it the
    /// endpoint decides, and is asked once at the start.
    pub dimensions: Option<usize>,
    /// What goes before each question, for models that were trained so.
    pub query_prefix: String,
    /// What goes before each passage, for models that were trained so.
    pub passage_prefix: String,
    /// The longest that one request with passages may take.
    pub timeout: Duration,
    /// The longest that one request with a question may take: somebody is waiting for it.
    pub query_timeout: Duration,
}

impl EndpointSettings {
    /// The usual settings for a model of an endpoint.
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

/// A key that shows itself to nobody but the endpoint.
#[derive(Clone)]
pub struct ServiceKey(String);

impl ServiceKey {
    /// Takes a key into keeping.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for whoever has to send it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

/// The model behind an endpoint.
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
    /// Checks the settings, and asks the endpoint how many numbers its vectors have where the
    /// settings do not say.
    pub fn connect(settings: &EndpointSettings) -> Result<Self, SearchError> {
        Self::connect_with_wait(settings, std::thread::sleep)
    }

    /// The same, with another way to wait between tries.
    pub fn connect_with_wait(
        settings: &EndpointSettings,
        wait: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Result<Self, SearchError> {
        check(settings)?;
        let caller = EndpointClient::new(settings, Box::new(wait))?;
        let mut endpoint = Self {
            client: caller,
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
        endpoint.fingerprint = endpoint.describe(&settings.model);
        Ok(endpoint)
    }

    fn probe(&self) -> Result<usize, SearchError> {
        let vectors = self.client.embed(&["dimensions"], None, &self.passages)?;
        Ok(vectors.first().map(Vec::len).unwrap_or_default())
    }

    /// A sum, because an index keeps it and all of this may be long; of JSON, because its quotes
    /// keep a prefix from passing for a model's name.
    fn describe(&self, model: &str) -> String {
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
            let answer = self
                .client
                .embed(&batch, Some(self.dimensions), &self.passages)?;
            vectors.extend(answer);
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

/// What is sent for a text. Most endpoints refuse an empty input, so a lone full stop stands for it.
fn input(prefix: &str, text: &str) -> String {
    let text = truncate_bytes(text, MAX_TEXT_BYTES);
    if text.trim().is_empty() {
        format!("{prefix}.")
    } else {
        format!("{prefix}{text}")
    }
}

/// The inputs in their order, in groups that keep within both limits of a request.
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
        // One input always goes: its own limit is far below that of a request.
        fits = fits.max(1);
        let (batch, after) = rest.split_at(fits);
        batches.push(batch);
        rest = after;
    }
    batches
}

/// Refuses settings that could not work, before anything is sent anywhere.
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
            "a vector of `0` numbers was asked for",
            "leave the dimensions out, and the endpoint decides",
        )),
        Some(size) if size > MAX_DIMENSIONS => Err(SearchError::TooLarge {
            what: "the number of dimensions".to_owned(),
            size,
            limit: MAX_DIMENSIONS,
        }),
        _ => Ok(()),
    }
}
