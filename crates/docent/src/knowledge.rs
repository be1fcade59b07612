//! An engine and the settings of its corpus into what all tools share: what the corpus is
//! called, how large it is, how its documents are linked, and an overview of it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use docent_search::{Catalog, Day, DocId, Engine, Error, Generation, Method, Reader};
use tokio::sync::Mutex;

use crate::links::{self, Template};
use crate::pages;
use crate::settings::{self, Settings};
use crate::standing::Standing;
use crate::tools::about;

/// How many documents are looked at to say which fields there are.
const SAMPLE: usize = 50;

/// The most fields an overview names.
const MAX_FIELDS_NAMED: usize = 40;

/// One corpus, as the tools see it.
pub struct Knowledge {
    /// What holds the documents.
    pub engine: Arc<dyn Engine>,
    /// What people call the documents.
    pub title: String,
    /// What they are about, as a sentence with its full stop.
    pub description: Option<String>,
    /// How many results a search gives.
    pub results: usize,
    /// How words and meanings are weighed against each other.
    pub method: Method,
    /// How much results should differ from each other.
    pub diversity: f32,
    /// How many characters of text one fetch gives.
    pub max_chars: usize,
    /// Which day it is, for filters such as `since:30d`.
    pub today: fn() -> Day,
    /// What `find` is called, takes and gives.
    pub find: settings::Find,
    /// The same for the tool that reads records.
    pub record: settings::Record,
    /// Whether and how results are shown in the conversation.
    pub widgets: settings::Widgets,
    /// The page of each document, where others can reach it.
    pages: Option<Template>,
    /// How documents without an address get one; it may change while the server runs.
    url: RwLock<Option<Template>>,
    /// How far the index is, where somebody keeps it in step while it is asked.
    standing: OnceLock<Arc<Standing>>,
    documents: AtomicU64,
    counting: Mutex<()>,
    /// The fields that the tools speak of when they are listed.
    listed: RwLock<Arc<Catalog>>,
    overview: Mutex<Option<(Generation, Arc<str>)>>,
    fields: std::sync::Mutex<Option<(Arc<Catalog>, Arc<str>)>>,
}

impl Knowledge {
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
            url: RwLock::new(settings.documents_url.clone()),
            standing: OnceLock::new(),
            documents: AtomicU64::new(0),
            counting: Mutex::new(()),
            listed: RwLock::default(),
            overview: Mutex::new(None),
            fields: std::sync::Mutex::new(None),
        }
    }

    /// Has answers tell what they may lack.
    pub(crate) fn stand(&self, standing: Arc<Standing>) {
        // Said once, when the server starts.
        let _ = self.standing.set(standing);
    }

    /// What answers may lack at this moment, as JSON; nothing when they lack nothing.
    pub(crate) fn unready(&self) -> Option<Arc<str>> {
        let parts = self.standing.get()?.unready()?;
        Some(parts.to_string().into())
    }

    /// How many documents there were when somebody last counted.
    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Counts the documents and looks at their fields; true when what the tools say about
    /// themselves is no longer what they said before.
    pub async fn count(&self) -> Result<bool, Error> {
        // One at a time, so that who looked first does not have the last word.
        let _one = self.counting.lock().await;
        let documents = self.engine.status().await?.documents;
        let is_other = self.documents.swap(documents, Ordering::Relaxed) != documents;
        let catalog = self.engine.catalog(Reader::everyone()).await?;
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *listed, catalog);
        Ok(is_other || before != *listed)
    }

    /// The fields there were when somebody last counted.
    pub fn catalog(&self) -> Arc<Catalog> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.clone()
    }

    /// The fields of the documents, and the same as the JSON that every answer carries.
    pub async fn fields(&self) -> Result<(Arc<Catalog>, Arc<str>), Error> {
        let catalog = self.engine.catalog(Reader::everyone()).await?;
        let mut kept = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, json)) = kept.as_ref()
            && Arc::ptr_eq(known, &catalog)
        {
            return Ok((catalog, json.clone()));
        }
        let json = about::fields(&catalog);
        *kept = Some((catalog.clone(), json.clone()));
        Ok((catalog, json))
    }

    /// The number of documents in words, such as `64 documents`.
    pub fn size(&self) -> String {
        counted(self.documents(), "document")
    }

    /// The absolute http or https address of a document, or an empty text.
    pub fn address(&self, id: &str, own: Option<&str>) -> String {
        let template = self.url.read().unwrap_or_else(PoisonError::into_inner);
        links::address(own, id, template.as_ref().or(self.pages.as_ref()))
    }

    /// The same, leading to a passage where the address is that of a page of ours.
    pub fn address_at(&self, id: &str, own: Option<&str>, passage: usize) -> String {
        let address = self.address(id, own);
        let ours = self
            .pages
            .as_ref()
            .map(|pages| links::address(None, id, Some(pages)));
        if passage == 0 || address.is_empty() || ours.as_deref() != Some(address.as_str()) {
            return address;
        }
        pages::at(&address, passage)
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
        let origins = made.filter_map(Template::origin).filter(is_safe);
        let mut origins: Vec<_> = origins.collect();
        origins.dedup();
        origins
    }

    /// Links documents without an address of their own in another way from now on.
    pub fn link_by(&self, template: Option<Template>) {
        *self.url.write().unwrap_or_else(PoisonError::into_inner) = template;
    }

    /// What the corpus holds and how to use it, as Markdown. Made once for each generation:
    /// looking at the whole inventory is too much to do for every reader.
    pub async fn overview(&self) -> Result<Arc<str>, Error> {
        let mut kept = self.overview.lock().await;
        let status = self.engine.status().await?;
        if let Some((generation, text)) = kept.as_ref()
            && *generation == status.generation
        {
            return Ok(text.clone());
        }
        let text: Arc<str> = self
            .describe(status.documents, &self.field_names().await?)
            .into();
        *kept = Some((status.generation, text.clone()));
        Ok(text)
    }

    fn describe(&self, documents: u64, fields: &[String]) -> String {
        let mut text = format!("# {}\n\n", self.title);
        if let Some(description) = &self.description {
            text.push_str(&format!("{description}\n\n"));
        }
        text.push_str(&format!("- Size: {}\n", counted(documents, "document")));
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

    /// The names of the fields of some documents, spread over the whole corpus.
    async fn field_names(&self) -> Result<Vec<String>, Error> {
        let held = self.engine.inventory().await?;
        let step = held.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<DocId> = held.into_iter().step_by(step).map(|held| held.id).collect();
        let mut names = BTreeSet::new();
        for id in sample {
            let document = self.engine.fetch(id, Reader::everyone()).await?;
            for (name, _) in document.iter().flat_map(|document| &document.fields) {
                names.insert(one_line(name, 64));
            }
        }
        Ok(names.into_iter().take(MAX_FIELDS_NAMED).collect())
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
pub(crate) fn counted(count: u64, noun: &str) -> String {
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
    fn one_is_not_many() {
        assert_eq!(counted(1, "document"), "1 document");
        assert_eq!(counted(0, "document"), "0 documents");
    }
}
