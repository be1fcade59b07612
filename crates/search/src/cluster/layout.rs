//! The layout of an index on the cluster: collection names, payload keys and point ids.
//!
//! | collection | a point is | its id |
//! |---|---|---|
//! | `<name>-head-<format>` | the index head | always the same |
//! | `<name>-documents-<format>` | one version of a document | its id and generation |
//! | `<name>-terms-<format>` | one term of the documents | the term |
//! | | a part of the word statistics | its generation and ordinal |
//! | `<name>-passages-<format>-<model>` | one passage of a document's version | the version and its ordinal |
//!
//! Two aliases always name what answers, for other programs: `<name>-documents` and `<name>-passages`.
//!
//! The first three keys below are on every version of a document and on its passages. A change never touches
//! what a reader sees: it adds versions and ends old ones, and all of it becomes visible at the moment at
//! which the head names the new generation (multi-version concurrency control).

use sha2::{Digest as _, Sha256};

/// The format of everything but passages. A new format is built beside the old one, which programs that know
/// it go on reading.
pub(super) const FORMAT: u32 = 2;

/// The generation that added a version, and the one that ended it.
pub(super) const FROM: &str = "from";
pub(super) const UNTIL: &str = "until";
/// The marks of the readers who may see it.
pub(super) const WHO: &str = "who";
/// The id of the document.
pub(super) const ID: &str = "id";
/// The ids of the terms it contains. The index of this key is the posting list of each term.
pub(super) const TERMS: &str = "terms";
/// Its day as the number `YYYYMMDD`.
pub(super) const DAY: &str = "day";
/// The code of the document's language.
pub(super) const LANGUAGE: &str = "language";
/// Which mean lengths its BM25 weights were computed with, as the `means_version` of the head.
pub(super) const WEIGHED: &str = "weighed";
/// The number of terms in its body and in its title.
pub(super) const LENGTHS: &str = "lengths";
/// The document itself as JSON text, and the length of that text in bytes.
pub(super) const STORED: &str = "stored";
pub(super) const SIZE: &str = "size";
/// The version of the document that a passage belongs to.
pub(super) const DOCUMENT: &str = "document";
/// Whether a passage is the first of its version. It is written after all others, so its presence marks a
/// version as embedded.
pub(super) const FIRST: &str = "first";
/// The name of a document's sparse vector, its terms with their BM25 weights.
pub(super) const WORDS: &str = "words";
/// A term, its prefixes, its letter pairs, and its length in letters: what spelling correction looks terms up
/// by.
pub(super) const TERM: &str = "term";
pub(super) const BEGINNINGS: &str = "beginnings";
pub(super) const PAIRS: &str = "pairs";
pub(super) const LETTERS: &str = "letters";
/// A link of the word statistics: its generation, the generation of the link before it, its ordinal and number of
/// points, and the changes. See [`super::word_statistics`].
pub(super) const COUNTED: &str = "counted";
pub(super) const PREVIOUS: &str = "previous";
pub(super) const PART: &str = "part";
pub(super) const PARTS: &str = "parts";
pub(super) const CHANGES: &str = "changes";

/// The names of the collections of one index in one format.
#[derive(Clone, Debug)]
pub(super) struct CollectionNames {
    base: String,
    pub format: u32,
    pub head: String,
    pub documents: String,
    pub terms: String,
}

impl CollectionNames {
    pub(super) fn new(base: &str, format: u32) -> Self {
        Self {
            base: base.to_owned(),
            format,
            head: format!("{base}-head-{format}"),
            documents: format!("{base}-documents-{format}"),
            terms: format!("{base}-terms-{format}"),
        }
    }

    /// The name of the collection of a model's passages.
    pub(super) fn passages(&self, model: &str) -> String {
        format!("{}-passages-{}-{model}", self.base, self.format)
    }

    /// The model whose passages a collection holds; `None` for a collection that is not of this index.
    pub(super) fn model_of<'c>(&self, collection: &'c str) -> Option<&'c str> {
        let rest = collection.strip_prefix(&self.base)?;
        let model = rest.strip_prefix(&format!("-passages-{}-", self.format))?;
        let is_name = model.len() == MODEL_DIGITS && model.bytes().all(|c| c.is_ascii_hexdigit());
        is_name.then_some(model)
    }

    /// The format of the index whose head a collection holds; `None` for a collection of another index.
    pub(super) fn format_of(&self, collection: &str) -> Option<u32> {
        let rest = collection.strip_prefix(&self.base)?;
        rest.strip_prefix("-head-")?.parse().ok()
    }

    /// Whether a collection of documents or passages was made by a newer program than this one.
    pub(super) fn is_of_a_newer_format(&self, collection: &str) -> bool {
        let rest = collection.strip_prefix(&self.base).unwrap_or_default();
        let format = ["-documents-", "-passages-"].iter().find_map(|kind| {
            let rest = rest.strip_prefix(kind)?;
            rest.split('-').next()?.parse::<u32>().ok()
        });
        format.is_some_and(|format| format > self.format)
    }

    /// The names of the same index in another format.
    pub(super) fn with_format(&self, format: u32) -> Self {
        Self::new(&self.base, format)
    }

    /// The aliases under which other programs find the documents and the passages that answer.
    pub(super) fn aliases(&self) -> [String; 2] {
        ["documents", "passages"].map(|what| format!("{}-{what}", self.base))
    }
}

/// How many hexadecimal digits the name of a model has.
const MODEL_DIGITS: usize = 16;

/// The name of the model with this fingerprint, as it stands in collection names and in the head.
pub(super) fn model_name(fingerprint: &str) -> String {
    format!("{:016x}", fnv1a(fingerprint.as_bytes()))
}

/// A UUID-shaped id for a point, a hash that is unambiguous in its parts: each is preceded by its length.
pub(super) fn point_id(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    let hex: String = bytes
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    let (a, b, c, d, e) = (
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32),
    );
    format!("{a}-{b}-{c}-{d}-{e}")
}

/// The FNV-1a hash. Its results are stored in collections, so it stays as it is for as long as the format
/// does.
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The payload key of a metadata field: a mark for the kind, and a hash of the name, which may contain
/// anything.
pub(super) fn field_key(mark: char, name: &str) -> String {
    format!("{mark}.{:016x}", fnv1a(name.as_bytes()))
}

/// The marks of the kinds: values for facet counts, folded texts for equality, numbers, and days.
pub(super) const VALUES: char = 'v';
pub(super) const TEXTS: char = 't';
pub(super) const NUMBERS: char = 'n';
pub(super) const DAYS: char = 'd';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_do_not_run_into_each_other() {
        let id = point_id(&["a", "bc"]);
        assert_eq!(id.len(), 36);
        assert_ne!(id, point_id(&["ab", "c"]));
        assert_eq!(id, point_id(&["a", "bc"]));
    }

    #[test]
    fn collections_of_an_index_are_known_by_their_names() {
        let names = CollectionNames::new("docs", 2);
        let model = model_name("topics/1");
        assert_eq!(
            names.model_of(&names.passages(&model)),
            Some(model.as_str())
        );
        for other in [
            "docs-passages-2-1",
            "docs-passages",
            "docs-passages-1-0123456789abcdef",
            "docs-passages-2-0123456789abcdeg",
            "docs-passages-2-0123456789abcdef-head-1",
            "other-passages-2-0123456789abcdef",
        ] {
            assert_eq!(names.model_of(other), None, "{other}");
        }
        assert_eq!(names.format_of(&names.with_format(1).head), Some(1));
        assert_eq!(names.format_of("docs-head-x"), None);
        for (name, is_newer) in [
            ("docs-documents-3", true),
            ("docs-passages-3-0123456789abcdef", true),
            ("docs-documents-2", false),
            ("other-documents-3", false),
        ] {
            assert_eq!(names.is_of_a_newer_format(name), is_newer, "{name}");
        }
        assert_eq!(names.aliases(), ["docs-documents", "docs-passages"]);
    }

    /// Hashes are stored in collections, where the next version of the program must find them again.
    #[test]
    fn numbers_of_terms_stay_what_they_are() {
        assert_eq!(fnv1a(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a(b"ferri"), 0x8932_14DF_F4DC_DC2B);
        assert_eq!(
            field_key(NUMBERS, "a.b"),
            format!("n.{:016x}", fnv1a(b"a.b"))
        );
    }
}
