//! Builders for small documents and short queries, so that a test case reads as what it checks.

use docent_search::{
    AllowedReaders, Day, DocId, Document, DocumentChange, DocumentValue, Engine, Query,
    ReaderIdentity, SearchHit, SearchResults, grammar,
};

pub(crate) fn id(text: &str) -> DocId {
    DocId::parse(text).unwrap()
}

pub(crate) fn document(name: &str, title: &str, text: &str) -> Document {
    Document {
        id: id(name),
        title: title.to_owned(),
        text: text.to_owned(),
        url: None,
        date: None,
        fields: Vec::new(),
        source: format!("folder/{name}.md"),
        hash: format!("{:064x}", text.len()),
        readers: AllowedReaders::Everyone,
    }
}

pub(crate) fn put(name: &str, title: &str, text: &str) -> DocumentChange {
    DocumentChange::Put(document(name, title, text))
}

pub(crate) fn put_with(name: &str, field: DocumentValue) -> DocumentChange {
    let mut document = document(name, "Untitled", "Nothing to see.");
    document.fields.push(("field".to_owned(), field));
    DocumentChange::Put(document)
}

pub(crate) fn remove(name: &str) -> DocumentChange {
    DocumentChange::Remove(id(name))
}

/// Puts documents that are named by their position, all with the same title.
pub(crate) async fn fill(engine: &dyn Engine, texts: &[&str]) {
    let names = (0..).map(|n| format!("d{n}"));
    let changes = texts
        .iter()
        .zip(names)
        .map(|(text, name)| put(&name, "Untitled", text));
    engine.apply(changes.collect()).await.unwrap();
}

pub(crate) async fn hits(engine: &dyn Engine, text: &str, limit: usize) -> Vec<SearchHit> {
    engine
        .search(Query::new(text, limit, ReaderIdentity::everyone()))
        .await
        .unwrap()
        .hits
}

/// The ids of the hits, best first.
pub(crate) async fn find(engine: &dyn Engine, text: &str) -> Vec<String> {
    hits(engine, text, 100)
        .await
        .iter()
        .map(|hit| hit.id.to_string())
        .collect()
}

/// The ids of the hits, sorted by id.
pub(crate) async fn find_all(engine: &dyn Engine, text: &str) -> Vec<String> {
    let mut found = find(engine, text).await;
    found.sort();
    found
}

/// A document with a day and metadata fields.
pub(crate) fn put_facts(
    name: &str,
    text: &str,
    date: &str,
    fields: &[(&str, DocumentValue)],
) -> DocumentChange {
    let mut document = document(name, "Untitled", text);
    document.date = Some(date.to_owned()).filter(|date| !date.is_empty());
    document.fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    DocumentChange::Put(document)
}

/// The hits of a query in the query grammar, filters included.
pub(crate) async fn ask(engine: &dyn Engine, written: &str) -> SearchResults {
    let catalog = engine.catalog(ReaderIdentity::everyone()).await.unwrap();
    let today = Day::new(2024, 6, 30).unwrap();
    let parsed = grammar::parse(written, &catalog, today);
    let query = Query::parsed(&parsed, 100, ReaderIdentity::everyone());
    engine.search(query.count_total()).await.unwrap()
}

/// The ids of the hits, in their order.
pub(crate) fn ids(found: &SearchResults) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.id.as_str()).collect()
}
