//! Knowledge base: the engine and the corpus settings that all tools share. It holds the corpus's title and size, maps
//! callers to readers, builds document URLs and renders the overview.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use docent_mcp::Caller;
use docent_search::{Catalog, Day, Document, Engine, RankingMethod, ReaderIdentity, SearchError};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::display_text::{one_line, pluralize};
use crate::links::{self, UrlTemplate};
use crate::pages;
use crate::permissions::{ClaimMapping, IssuerCount};
use crate::readiness::Readiness;
use crate::settings::{self, Settings};
use crate::tools::{search_notes, text_facts};

/// Maximum number of field names in the overview.
const MAX_FIELDS_NAMED: usize = 40;

/// Capacity of the cache of field lists as JSON, in distinct catalogs; the oldest entry is evicted.
const MAX_KEPT: usize = 64;

/// One corpus as the tools see it: the search engine together with the settings that shape queries and answers.
pub struct KnowledgeBase {
    /// The search engine that holds the documents.
    pub engine: Arc<dyn Engine>,
    /// Title of the corpus, which hosts show.
    pub title: String,
    /// What the documents are about, as a sentence with a full stop.
    pub description: Option<String>,
    /// Number of results per search.
    pub results: usize,
    /// Ranking method: how lexical and semantic scores are combined.
    pub method: RankingMethod,
    /// Strength of result diversification (MMR), 0 to 1.
    pub diversity: f32,
    /// Maximum number of characters that one fetch returns.
    pub max_chars: usize,
    /// Clock for relative date filters such as `since:30d`; tests replace it.
    pub today: fn() -> Day,
    /// Name, parameters and result shape of the `find` tool.
    pub find: settings::FindSettings,
    /// Name, parameter and result shape of the tool that reads records.
    pub record: settings::RecordSettings,
    /// Whether widgets are offered, and under which domain.
    pub widgets: settings::WidgetSettings,
    /// URL template of the document pages, if the server has a public URL.
    pages: Option<UrlTemplate>,
    /// Signs the URLs of pages if reading them requires authorization.
    link_signer: OnceLock<pages::LinkSigner>,
    /// URL template for documents without a URL of their own; changes when the settings are reloaded.
    url: RwLock<Option<UrlTemplate>>,
    /// Maps the claims of a caller to principals; changes when the settings are reloaded.
    claims: RwLock<ClaimMapping>,
    /// How many issuers are trusted. Fixed at the start, because a reload does not change which tokens are accepted.
    issuers: IssuerCount,
    /// The reader for whom tools are described: everyone, since all callers get the same tool list, or the owner over
    /// stdio.
    list_reader: ReaderIdentity,
    /// Readiness of the index; only a server sets it.
    readiness: OnceLock<Arc<Readiness>>,
    documents: AtomicU64,
    counting: Mutex<()>,
    /// Catalog of fields that the tool descriptions mention.
    listed: RwLock<Arc<Catalog>>,
    /// Cache of field lists as JSON, keyed by catalog identity, newest last.
    fields: std::sync::Mutex<VecDeque<(Arc<Catalog>, Arc<str>)>>,
    /// Cache of language and word counts of recently fetched texts.
    pub(crate) facts: text_facts::TextFactsCache,
}

impl KnowledgeBase {
    /// Creates a knowledge base over an engine; `fallback` is the title if none is set.
    pub fn new(engine: Arc<dyn Engine>, settings: &Settings, fallback: &str) -> Self {
        let sentence = |text: &String| format!("{}.", text.trim_end_matches('.'));
        Self {
            engine,
            title: settings
                .title
                .clone()
                .unwrap_or_else(|| fallback.to_owned()),
            description: settings.description.as_ref().map(sentence),
            results: settings.search_results,
            method: settings.search_method,
            diversity: settings.search_diversity,
            today,
            max_chars: settings.fetch_max_chars,
            find: settings.find.clone(),
            record: settings.record.clone(),
            widgets: settings.widgets.clone(),
            pages: pages::template(&settings.server),
            link_signer: OnceLock::new(),
            url: RwLock::new(settings.documents_url.clone()),
            claims: RwLock::new(settings.permissions.claims.clone()),
            issuers: settings.issuers(),
            list_reader: ReaderIdentity::everyone(),
            readiness: OnceLock::new(),
            documents: AtomicU64::new(0),
            counting: Mutex::new(()),
            listed: RwLock::default(),
            fields: std::sync::Mutex::default(),
            facts: text_facts::TextFactsCache::default(),
        }
    }

    /// Treats the tool list as the owner's. For stdio, where every caller is the owner of the documents.
    #[must_use]
    pub fn for_the_owner(mut self) -> Self {
        self.list_reader = ReaderIdentity::owner();
        self
    }

    /// Maps a caller to the reader whose permissions apply to everything they search, fetch and list.
    pub fn reader(&self, caller: &Caller) -> ReaderIdentity {
        let claims = self.claims.read().unwrap_or_else(PoisonError::into_inner);
        claims.reader(caller, self.issuers)
    }

    /// Replaces the claim mapping after a settings reload. It applies to the next call of every caller.
    pub fn set_claim_mapping(&self, claims: ClaimMapping) {
        *self.claims.write().unwrap_or_else(PoisonError::into_inner) = claims;
    }

    /// Sets the readiness that answers report while the index is incomplete.
    pub(crate) fn set_readiness(&self, readiness: Arc<Readiness>) {
        // Set once, when the server starts.
        let _ = self.readiness.set(readiness);
    }

    /// Notice about an incomplete index as JSON, or `None` if everything is indexed.
    pub(crate) fn unready(&self) -> Option<Arc<str>> {
        let mut parts = self.readiness.get()?.unready()?;
        self.redact_counts(&mut parts);
        Some(parts.to_string().into())
    }

    /// Whether the first scan of the folder is still running, so that existing documents may not be found yet.
    pub(crate) fn is_first_sync(&self) -> bool {
        self.readiness
            .get()
            .is_some_and(|readiness| readiness.is_first_sync())
    }

    /// Removes document counts from a status report if some documents are restricted: the total would reveal how many
    /// documents a caller may not see.
    pub(crate) fn redact_counts(&self, report: &mut Value) {
        if self.catalog().documents != self.documents() {
            remove_counts(report);
        }
    }

    /// Number of documents at the last refresh, regardless of permissions.
    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Refreshes the document count and the catalog of fields. Returns true if the tool descriptions have changed, so
    /// that clients must be notified.
    pub async fn refresh_counts(&self) -> Result<bool, SearchError> {
        // Serialized, so that an older result cannot overwrite a newer one.
        let _one = self.counting.lock().await;
        let documents = self.engine.status().await?.documents;
        self.documents.store(documents, Ordering::Relaxed);
        let catalog = self.engine.catalog(self.list_reader.clone()).await?;
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *listed, catalog);
        // Only the public catalog counts: a notification must not reveal changes to restricted documents.
        Ok(before != *listed)
    }

    /// Catalog of fields at the last refresh, as everyone may see it.
    pub fn catalog(&self) -> Arc<Catalog> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.clone()
    }

    /// Catalog of the fields that a reader may see, and its JSON form, which every answer includes.
    pub async fn fields(
        &self,
        reader: &ReaderIdentity,
    ) -> Result<(Arc<Catalog>, Arc<str>), SearchError> {
        let catalog = self.engine.catalog(reader.clone()).await?;
        let mut cached = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        // The engine returns the same `Arc` until something changes. A cached entry keeps its `Arc` alive, so no other
        // catalog can get the same address.
        let known = cached
            .iter()
            .find(|(known, _)| Arc::ptr_eq(known, &catalog));
        if let Some((_, json)) = known {
            return Ok((catalog, json.clone()));
        }
        let json = search_notes::fields(&catalog);
        if cached.len() >= MAX_KEPT {
            cached.pop_front();
        }
        cached.push_back((catalog.clone(), json.clone()));
        Ok((catalog, json))
    }

    /// Size of the corpus for tool descriptions, such as `64 documents`.
    pub fn size(&self) -> String {
        pluralize(self.catalog().documents, "document")
    }

    /// The absolute http or https URL of a document, or an empty text.
    pub fn address(&self, document: &Document) -> String {
        self.address_at(document, 0)
    }

    /// Sets the signer for the URLs of document pages.
    pub(crate) fn set_link_signer(&self, signer: pages::LinkSigner) {
        // Set once, when the server starts.
        let _ = self.link_signer.set(signer);
    }

    /// The signer for page URLs, if pages require authorization.
    pub(crate) fn link_signer(&self) -> Option<&pages::LinkSigner> {
        self.link_signer.get()
    }

    /// URL of a document at a passage. Only URLs of our own pages point at the passage and carry a signature.
    pub fn address_at(&self, document: &Document, passage: usize) -> String {
        let (id, own) = (document.id.as_str(), document.url.as_deref());
        let template = self.url.read().unwrap_or_else(PoisonError::into_inner);
        let address = links::address(own, id, template.as_ref().or(self.pages.as_ref()));
        let signer = self.link_signer.get();
        if passage == 0 && signer.is_none() {
            return address;
        }
        let page = |pages| links::address(None, id, Some(pages));
        let own_page = self.pages.as_ref().map(page);
        if address.is_empty() || own_page.as_deref() != Some(address.as_str()) {
            return address;
        }
        pages::page_url(
            &address,
            passage,
            signer.map(|signer| signer.signed_query(document)),
        )
    }

    /// The https origins of all URLs that this corpus generates, for the redirect domains of widgets. Others are left
    /// out, because hosts reject them.
    pub fn origins(&self) -> Vec<String> {
        let template = self.url.read().unwrap_or_else(PoisonError::into_inner);
        let made = [template.as_ref(), self.pages.as_ref()]
            .into_iter()
            .flatten();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
        let is_safe = |origin: &String| {
            let name = origin.strip_prefix("https://");
            name.is_some_and(|name| name.chars().all(plain))
        };
        let origins = made.filter_map(UrlTemplate::origin).filter(is_safe);
        let mut origins: Vec<_> = origins.collect();
        origins.dedup();
        origins
    }

    /// Replaces the URL template for documents without a URL of their own, after a settings reload.
    pub fn set_url_template(&self, template: Option<UrlTemplate>) {
        *self.url.write().unwrap_or_else(PoisonError::into_inner) = template;
    }

    /// Overview of the corpus for a reader, with instructions for use, as Markdown.
    pub async fn overview(&self, reader: &ReaderIdentity) -> Result<String, SearchError> {
        let catalog = self.engine.catalog(reader.clone()).await?;
        let fields = catalog.fields.iter();
        let mut names: Vec<_> = fields.map(|field| one_line(&field.name, 64)).collect();
        names.sort();
        names.dedup();
        names.truncate(MAX_FIELDS_NAMED);
        Ok(self.describe(catalog.documents, &names))
    }

    fn describe(&self, documents: u64, fields: &[String]) -> String {
        let mut text = format!("# {}\n\n", self.title);
        if let Some(description) = &self.description {
            text.push_str(&format!("{description}\n\n"));
        }
        text.push_str(&format!("- Size: {}\n", pluralize(documents, "document")));
        if !fields.is_empty() {
            text.push_str(&format!("- Fields in `metadata`: {}\n", fields.join(", ")));
        }
        text.push_str(&format!(
            "\n## How to use it\n\n\
             1. Call `search` with words from the question. It gives up to {} results, best first.\n\
             2. Call `fetch` with the `id` of a result to read it. A document of more than {} \
             characters comes in parts; `metadata.next` is the id of the next one.\n\
             3. Cite the `url` of what you used.\n",
            self.results, self.max_chars
        ));
        text
    }
}

fn remove_counts(report: &mut Value) {
    if let Some(members) = report.as_object_mut() {
        members.retain(|name, _| !["documents", "of"].contains(&name.as_str()));
        members.values_mut().for_each(remove_counts);
    }
}

/// Current day in UTC, for relative date filters.
fn today() -> Day {
    const DAY: u64 = 24 * 60 * 60;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = since.map_or(0, |since| since.as_secs() / DAY);
    let day = i64::try_from(days).ok().and_then(Day::from_number);
    day.unwrap_or(Day::EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_can_be_kept_back() {
        let mut report = serde_json::json!({"documents": 3, "ready": true,
            "vectors": {"state": "building", "documents": 1, "of": 3}});
        remove_counts(&mut report);
        let expected = serde_json::json!({"ready": true, "vectors": {"state": "building"}});
        assert_eq!(report, expected);
    }
}
