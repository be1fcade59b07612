//! One generation of the index, as one answer sees it from beginning to end.

use tantivy::columnar::StrColumn;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Index, IndexReader, Searcher, TERMINATED, TantivyError, Term};

use super::schema::{Fields, HASH, ID, SOURCE};
use super::writer;
use crate::document::DocId;
use crate::engine::{Generation, Held};

/// How often a reader starts again because another process committed while it was opening.
const MAX_RELOADS: usize = 8;

pub(super) struct Snapshot {
    pub searcher: Searcher,
    pub generation: Generation,
    /// The ids of each segment. Opening a column costs more than a search, so it is done once.
    ids: Vec<StrColumn>,
}

impl Snapshot {
    /// The newest generation.
    pub(super) fn newest(index: &Index, reader: &IndexReader) -> tantivy::Result<Self> {
        for _ in 0..MAX_RELOADS {
            let generation = writer::generation(index)?;
            reader.reload()?;
            if writer::generation(index)? == generation {
                let searcher = reader.searcher();
                let ids = columns(&searcher, ID)?;
                return Ok(Self {
                    searcher,
                    generation,
                    ids,
                });
            }
        }
        Err(TantivyError::InternalError(
            "the index changes faster than it opens".to_owned(),
        ))
    }

    /// Where the document of this id is.
    pub(super) fn find(&self, id: &DocId, fields: &Fields) -> tantivy::Result<Option<DocAddress>> {
        let term = Term::from_field_text(fields.id, id.as_str());
        for (ordinal, segment) in (0..).zip(self.searcher.segment_readers()) {
            let ids = segment.inverted_index(fields.id)?;
            let Some(mut postings) = ids.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !segment.is_deleted(postings.doc()) {
                    return Ok(Some(DocAddress::new(ordinal, postings.doc())));
                }
                postings.advance();
            }
        }
        Ok(None)
    }

    /// The rank of a document's id among those of its segment.
    pub(super) fn id_rank(&self, at: DocAddress) -> u64 {
        let column = self.ids.get(at.segment_ord as usize);
        column
            .and_then(|ids| ids.ords().first(at.doc_id))
            .unwrap_or(u64::MAX)
    }

    /// The id of a document, without reading the document.
    pub(super) fn id(&self, at: DocAddress) -> String {
        let mut id = String::new();
        if let Some(column) = self.ids.get(at.segment_ord as usize) {
            // An id that cannot be read sorts first, which still is an order.
            let _ = column.ord_to_str(self.id_rank(at), &mut id);
        }
        id
    }

    /// Everything held, in the order of the ids.
    pub(super) fn inventory(&self) -> tantivy::Result<Vec<Held>> {
        let mut held = Vec::new();
        let sources = columns(&self.searcher, SOURCE)?;
        let hashes = columns(&self.searcher, HASH)?;
        let segments = self.searcher.segment_readers().iter();
        for (((segment, ids), sources), hashes) in
            segments.zip(&self.ids).zip(&sources).zip(&hashes)
        {
            let (ids, sources, hashes) = (Texts::of(ids)?, Texts::of(sources)?, Texts::of(hashes)?);
            for doc in segment.doc_ids_alive() {
                let id = DocId::parse(ids.get(doc))
                    .map_err(|error| TantivyError::InternalError(error.to_string()))?;
                let (source, hash) = (sources.get(doc).to_owned(), hashes.get(doc).to_owned());
                held.push(Held { id, source, hash });
            }
        }
        held.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(held)
    }
}

fn columns(searcher: &Searcher, name: &str) -> tantivy::Result<Vec<StrColumn>> {
    let missing = || TantivyError::InternalError(format!("the column `{name}` is missing"));
    let segments = searcher.segment_readers().iter();
    segments
        .map(|segment| segment.fast_fields().str(name)?.ok_or_else(missing))
        .collect()
}

/// A column read from front to back, which is many times faster than asking for one row after the
/// other.
struct Texts<'c> {
    column: &'c StrColumn,
    texts: Vec<String>,
}

impl<'c> Texts<'c> {
    fn of(column: &'c StrColumn) -> tantivy::Result<Self> {
        let mut texts = Vec::new();
        let mut stream = column.dictionary().stream()?;
        while stream.advance() {
            texts.push(String::from_utf8_lossy(stream.key()).into_owned());
        }
        Ok(Self { column, texts })
    }

    fn get(&self, doc: u32) -> &str {
        let rank = self
            .column
            .ords()
            .first(doc)
            .and_then(|rank| usize::try_from(rank).ok());
        rank.and_then(|rank| self.texts.get(rank))
            .map_or("", String::as_str)
    }
}
