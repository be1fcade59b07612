//! Builds the embedding model from the settings: a built-in model, an OpenAI-compatible endpoint, or none.

use std::sync::Arc;

use docent_search::{
    Embedder, EndpointEmbedder, EndpointSettings, GraniteEmbedder, RankingMethod, ServiceKey,
    StaticEmbedder,
};
use url::Url;

use crate::cli_error::CliError;
use crate::settings::Settings;

/// Which embedding model computes the vectors, and how to reach it.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// `granite`, `table` or `none`; with an endpoint, the name of the model there.
    pub name: String,
    /// URL of an OpenAI-compatible embeddings endpoint.
    pub url: Option<Url>,
    /// Bearer token for the endpoint.
    pub key: Option<ServiceKey>,
    /// Number of dimensions to request from the endpoint.
    pub dimensions: Option<usize>,
    /// Prefix that the model expects before each query.
    pub query_prefix: String,
    /// Prefix that the model expects before each passage.
    pub passage_prefix: String,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            name: GRANITE.to_owned(),
            url: None,
            key: None,
            dimensions: None,
            query_prefix: String::new(),
            passage_prefix: String::new(),
        }
    }
}

/// Names of the built-in models, and the name that turns semantic search off.
const GRANITE: &str = "granite";
const TABLE: &str = "table";
const NONE: &str = "none";

/// How many CPU cores the embedding model may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuCoreLimit {
    /// All cores, for commands that do nothing else meanwhile.
    All,
    /// Half of the cores, for a server that answers queries while it embeds.
    Half,
}

impl CpuCoreLimit {
    fn count(self) -> usize {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Self::All => all,
            Self::Half => all.div_ceil(2),
        }
    }
}

/// Builds the embedding model of the settings. Lexical search needs none, so it returns `None` without connecting.
///
/// # Errors
/// If the model name is unknown, or the endpoint does not answer.
pub fn embedder(
    settings: &Settings,
    cores: CpuCoreLimit,
) -> Result<Option<Arc<dyn Embedder>>, CliError> {
    let model = &settings.model;
    if settings.search_method == RankingMethod::Lexical {
        return Ok(None);
    }
    if let Some(url) = &model.url {
        let endpoint = EndpointEmbedder::connect(&EndpointSettings {
            key: model.key.clone(),
            dimensions: model.dimensions,
            query_prefix: with_separator(&model.query_prefix),
            passage_prefix: with_separator(&model.passage_prefix),
            ..EndpointSettings::new(url.as_str(), model.name.as_str())
        });
        return Ok(Some(Arc::new(endpoint?)));
    }
    Ok(match model.name.as_str() {
        GRANITE => Some(Arc::new(GraniteEmbedder::with_threads(cores.count()))),
        TABLE => Some(Arc::new(StaticEmbedder::new()?)),
        NONE => None,
        other => {
            return Err(CliError::usage(format!("there is no model `{other}`")).hint(format!(
                "write `{GRANITE}`, `{TABLE}` or `{NONE}` as `model.name`, or say in `model.url` \
                 where it is served"
            )));
        }
    })
}

/// The built-in models, as candidates for the previous model of an index: after a model change, the old vectors answer
/// queries until the new ones are ready, and that needs the model that computed them.
#[must_use]
pub fn built_in() -> Vec<Arc<dyn Embedder>> {
    let granite: Arc<dyn Embedder> =
        Arc::new(GraniteEmbedder::with_threads(CpuCoreLimit::Half.count()));
    let table = StaticEmbedder::new().ok().map(|table| Arc::new(table) as _);
    std::iter::once(granite).chain(table).collect()
}

/// Appends the space between prefix and text, because settings are trimmed when they are read.
fn with_separator(prefix: &str) -> String {
    if prefix.is_empty() {
        String::new()
    } else {
        format!("{prefix} ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> Result<Option<String>, CliError> {
        let mut settings = Settings::default();
        settings.model.name = name.to_owned();
        let model = embedder(&settings, CpuCoreLimit::Half)?;
        Ok(model.map(|model| model.fingerprint().to_owned()))
    }

    #[test]
    fn a_name_is_a_model_or_a_mistake() {
        assert!(model(GRANITE).unwrap().unwrap().starts_with("granite"));
        assert_ne!(model(TABLE).unwrap(), model(GRANITE).unwrap());
        assert_eq!(model(NONE).unwrap(), None);
        let problem = model("gpt").unwrap_err();
        assert_eq!(
            (problem.message.as_str(), problem.exit),
            ("there is no model `gpt`", 2)
        );
    }

    #[test]
    fn words_alone_need_no_model() {
        let settings = Settings {
            search_method: RankingMethod::Lexical,
            ..Settings::default()
        };
        assert!(embedder(&settings, CpuCoreLimit::All).unwrap().is_none());
    }
}
