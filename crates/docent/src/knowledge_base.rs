//! An engine and the settings of its corpus into what all tools share: what the corpus is
//! called, how large it is, how its documents are linked, and an overview of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use docent_mcp::Caller;
use docent_search::{Catalog, Day, Document, Engine, RankingMethod, ReaderIdentity, SearchError};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::links::{self, UrlTemplate};
use crate::pages;
use crate::permissions::{ClaimMapping, IssuerCount};
use crate::readiness::Readiness;
use crate::settings::{self, Settings};
use crate::tools::{search_notes, text_facts};

/// The most fields an overview names.
const MAX_FIELDS_NAMED: usize = 40;

/// For how many readers the fields are kept as JSON.
const MAX_KEPT: usize = 64;

/// One corpus, as the tools see it.
pub struct KnowledgeBase {
    /// What holds the documents.
    pub engine: Arc<dyn Engine>,
    /// What people call the documents.
    pub title: String,
    /// What they are about, as a sentence with its full stop.
    pub description: Option<String>,
    /// How many results a search gives.
    pub results: usize,
    /// How words and meanings are weighed against each other.
    pub method: RankingMethod,
    /// How much results should differ from each other.
    pub diversity: f32,
    /// How many characters of text one fetch gives.
    pub max_chars: usize,
    /// Which day it is, for filters such as `since:30d`.
    pub today: fn() -> Day,
    /// What `find` is called, takes and gives.
    pub find: settings::FindSettings,
    /// The same for the tool that reads records.
    pub record: settings::RecordSettings,
    /// Whether and how results are shown in the conversation.
    pub widgets: settings::WidgetSettings,
    /// The page of each document, where others can reach it.
    pages: Option<UrlTemplate>,
    /// What signs the addresses of pages, where not everybody may open them.
    link_signer: OnceLock<pages::LinkSigner>,
    /// How documents without an address get one; it may change while the server runs.
    url: RwLock<Option<UrlTemplate>>,
    /// What of a caller's claims says what they may read; it may change while the server runs.
    claims: RwLock<ClaimMapping>,
    /// How many issuers vouch for callers. Those of the start count until the end, whatever the settings say
    /// meanwhile.
    issuers: IssuerCount,
    /// For whom tools are listed: everyone, since all callers see one list, unless there is but one.
    lister: ReaderIdentity,
    /// How far the index is, where somebody keeps it in step while it is asked.
    readiness: OnceLock<Arc<Readiness>>,
    documents: AtomicU64,
    counting: Mutex<()>,
    /// The fields that the tools speak of when they are listed.
    listed: RwLock<Arc<Catalog>>,
    /// The fields that readers asked for lately, as JSON, the newest last.
    fields: std::sync::Mutex<VecDeque<(Arc<Catalog>, Arc<str>)>>,
    /// What the texts that were fetched lately tell about themselves.
    pub(crate) facts: text_facts::TextFactsCache,
}

impl KnowledgeBase {
    /// The knowledge in an engine; `fallback` is the title when none is set.
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
            lister: ReaderIdentity::everyone(),
            readiness: OnceLock::new(),
            documents: AtomicU64::new(0),
            counting: Mutex::new(()),
            listed: RwLock::default(),
            fields: std::sync::Mutex::default(),
            facts: text_facts::TextFactsCache::default(),
        }
    }

    /// The same, for a server whose every caller is the owner.
    #[must_use]
    pub fn for_the_owner(mut self) -> Self {
        self.lister = ReaderIdentity::owner();
        self
    }

    /// The reader that a caller is: what they search, fetch and are told of is what this one sees.
    pub fn reader(&self, caller: &Caller) -> ReaderIdentity {
        let claims = self.claims.read().unwrap_or_else(PoisonError::into_inner);
        claims.reader(caller, self.issuers)
    }

    /// Reads callers by other claims from now on.
    pub fn set_claim_mapping(&self, claims: ClaimMapping) {
        *self.claims.write().unwrap_or_else(PoisonError::into_inner) = claims;
    }

    /// Has answers tell what they may lack.
    pub(crate) fn set_readiness(&self, standing: Arc<Readiness>) {
        // Said once, when the server starts.
        let _ = self.readiness.set(standing);
    }

    /// What answers may lack at this moment, as JSON; nothing when they lack nothing.
    pub(crate) fn unready(&self) -> Option<Arc<str>> {
        let mut parts = self.readiness.get()?.unready()?;
        self.redact_counts(&mut parts);
        Some(parts.to_string().into())
    }

    /// Whether documents that are there may not be found yet, because the folder is read for the first time.
    pub(crate) fn is_first_sync(&self) -> bool {
        self.readiness
            .get()
            .is_some_and(|standing| standing.is_first_sync())
    }

    /// Takes out of what the engine says of itself how many documents there are, where not everyone may know
    /// of all.
    pub(crate) fn redact_counts(&self, told: &mut Value) {
        if self.catalog().documents != self.documents() {
            remove_counts(told);
        }
    }

    /// How many documents there were when somebody last counted, whoever may read them.
    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Counts the documents and looks at their fields; true when what the tools say about
    /// themselves is no longer what they said before.
    pub async fn refresh_counts(&self) -> Result<bool, SearchError> {
        // One at a time, so that who looked first does not have the last word.
        let _one = self.counting.lock().await;
        let documents = self.engine.status().await?.documents;
        self.documents.store(documents, Ordering::Relaxed);
        let catalog = self.engine.catalog(self.lister.clone()).await?;
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *listed, catalog);
        // What not everyone may read is not told of by a notice either.
        Ok(before != *listed)
    }

    /// The fields there were when somebody last counted.
    pub fn catalog(&self) -> Arc<Catalog> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.clone()
    }

    /// The fields of the documents that a reader sees, and the same as the JSON that every answer carries.
    pub async fn fields(
        &self,
        reader: &ReaderIdentity,
    ) -> Result<(Arc<Catalog>, Arc<str>), SearchError> {
        let catalog = self.engine.catalog(reader.clone()).await?;
        let mut kept = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        // The engine gives the same catalog as long as nothing changes, and each kept one lives on.
        let known = kept.iter().find(|(known, _)| Arc::ptr_eq(known, &catalog));
        if let Some((_, json)) = known {
            return Ok((catalog, json.clone()));
        }
        let json = search_notes::fields(&catalog);
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back((catalog.clone(), json.clone()));
        Ok((catalog, json))
    }

    /// The number of documents that tools are listed with, in words, such as `64 documents`.
    pub fn size(&self) -> String {
        pluralize(self.catalog().documents, "document")
    }

    /// The absolute http or https address of a document, or an empty text.
    pub fn address(&self, document: &Document) -> String {
        self.address_at(document, 0)
    }

    /// Signs the addresses of pages from now on.
    pub(crate) fn set_link_signer(&self, seal: pages::LinkSigner) {
        // Said once, when the server starts.
        let _ = self.link_signer.set(seal);
    }

    /// What signs the addresses of pages, where not everybody may open them.
    pub(crate) fn link_signer(&self) -> Option<&pages::LinkSigner> {
        self.link_signer.get()
    }

    /// The same, leading to a passage where the address is that of a page of ours.
    pub fn address_at(&self, document: &Document, passage: usize) -> String {
        let (id, own) = (document.id.as_str(), document.url.as_deref());
        let template = self.url.read().unwrap_or_else(PoisonError::into_inner);
        let address = links::address(own, id, template.as_ref().or(self.pages.as_ref()));
        let seal = self.link_signer.get();
        if passage == 0 && seal.is_none() {
            return address;
        }
        let page = |pages| links::address(None, id, Some(pages));
        let ours = self.pages.as_ref().map(page);
        if address.is_empty() || ours.as_deref() != Some(address.as_str()) {
            return address;
        }
        pages::page_url(
            &address,
            passage,
            seal.map(|seal| seal.signed_query(document)),
        )
    }

    /// The https origins of all addresses that are made here, as far as hosts take them.
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

    /// Links documents without an address of their own in another way from now on.
    pub fn set_url_template(&self, template: Option<UrlTemplate>) {
        *self.url.write().unwrap_or_else(PoisonError::into_inner) = template;
    }

    /// What a reader sees of the corpus and how to use it, as Markdown.
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

fn remove_counts(told: &mut Value) {
    if let Some(members) = told.as_object_mut() {
        members.retain(|name, _| !["documents", "of"].contains(&name.as_str()));
        members.values_mut().for_each(remove_counts);
    }
}

/// The day it is in UTC.
fn today() -> Day {
    const DAY: u64 = 24 * 60 * 60;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = since.map_or(0, |since| since.as_secs() / DAY);
    let day = i64::try_from(days).ok().and_then(Day::from_number);
    day.unwrap_or(Day::EPOCH)
}

/// `1 document`, `2 documents`.
pub(crate) fn pluralize(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The words of a text on one line, at most `most` characters of them.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    // Nearly every value is one line already.
    let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let tidy = || text.trim() == text && !text.contains("  ");
    if text.len() <= most && text.bytes().all(plain) && tidy() {
        return text.to_owned();
    }
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    // Looking at a bounded part keeps the work bounded; runs of spaces may then leave fewer.
    let start: String = text
        .chars()
        .take(most.saturating_mul(4))
        .map(visible)
        .collect();
    let words = start.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(most) {
        Some((end, _)) => words.get(..end).unwrap_or_default().trim_end().to_owned(),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_one_line_and_end_at_their_bound() {
        assert_eq!(one_line(" a\n\u{1b}b\t c ", 9), "a b c");
        assert_eq!(one_line(&"é".repeat(9), 9), "é".repeat(9));
        assert_eq!(one_line(&"é".repeat(10), 9), "é".repeat(9));
        assert_eq!(one_line("abc def", 4), "abc");
    }

    #[test]
    fn counts_can_be_kept_back() {
        let mut told = serde_json::json!({"documents": 3, "ready": true,
            "vectors": {"state": "building", "documents": 1, "of": 3}});
        remove_counts(&mut told);
        let expected = serde_json::json!({"ready": true, "vectors": {"state": "building"}});
        assert_eq!(told, expected);
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(pluralize(1, "document"), "1 document");
        assert_eq!(pluralize(0, "document"), "0 documents");
    }
}
