//! What the collections of an index are called, which keys their points have, and how points are named.
//!
//! | collection | a point is | its id |
//! |---|---|---|
//! | `<name>-head-<format>` | the state of the index | always the same |
//! | `<name>-documents-<format>` | one version of a document | its id and generation |
//! | `<name>-terms-<format>` | one word of the documents | the word |
//! | `<name>-passages-<format>-<model>` | one passage of a document's version | the version and its place |
//!
//! For other programs there are two names that always stand for what answers, `<name>-documents` and
//! `<name>-passages`.
//!
//! The first three keys below are on every version of a document and on its passages: a change never
//! touches what a reader sees, but adds versions and gives the old ones an end. All of it counts from
//! the moment at which the head names the new generation.

use sha2::{Digest as _, Sha256};

/// The format of everything but passages; another one is built beside the old, which the programs that know
/// it go on reading.
pub(super) const FORMAT: u32 = 2;

/// The generation in which a version came, and that in which it went.
pub(super) const FROM: &str = "from";
pub(super) const UNTIL: &str = "until";
/// Who may read it.
pub(super) const WHO: &str = "who";
/// The document's id.
pub(super) const ID: &str = "id";
/// The terms that it holds, as numbers.
pub(super) const TERMS: &str = "terms";
/// Its day as the number `YYYYMMDD`.
pub(super) const DAY: &str = "day";
/// The code of its language.
pub(super) const LANGUAGE: &str = "language";
/// Which mean lengths its weights were worked out with, by the number that they have in the head.
pub(super) const WEIGHED: &str = "weighed";
/// How many terms its body and its title have.
pub(super) const LENGTHS: &str = "lengths";
/// The document itself, and how many bytes it takes.
pub(super) const STORED: &str = "stored";
pub(super) const SIZE: &str = "size";
/// The version of a document that a passage belongs to.
pub(super) const DOCUMENT: &str = "document";
/// Whether it is the first of its version, which is written after all others.
pub(super) const FIRST: &str = "first";
/// The sparse vector of a document.
pub(super) const WORDS: &str = "words";
/// A word of the documents, its beginnings, its pairs of letters, and how many letters it has.
pub(super) const TERM: &str = "term";
pub(super) const BEGINNINGS: &str = "beginnings";
pub(super) const PAIRS: &str = "pairs";
pub(super) const LETTERS: &str = "letters";

/// The names of the collections of one index.
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

    /// The collection of the passages of a model.
    pub(super) fn passages(&self, model: &str) -> String {
        format!("{}-passages-{}-{model}", self.base, self.format)
    }

    /// The model whose passages a collection has; nothing where it is none of this index.
    pub(super) fn model_of<'c>(&self, collection: &'c str) -> Option<&'c str> {
        let rest = collection.strip_prefix(&self.base)?;
        let model = rest.strip_prefix(&format!("-passages-{}-", self.format))?;
        let is_name = model.len() == MODEL_DIGITS && model.bytes().all(|c| c.is_ascii_hexdigit());
        is_name.then_some(model)
    }

    /// The format of an index whose head a collection has; nothing where it is none of this name.
    pub(super) fn format_of(&self, collection: &str) -> Option<u32> {
        let rest = collection.strip_prefix(&self.base)?;
        rest.strip_prefix("-head-")?.parse().ok()
    }

    /// Whether a collection of documents or passages is of a program newer than this one.
    pub(super) fn is_of_a_newer_format(&self, collection: &str) -> bool {
        let rest = collection.strip_prefix(&self.base).unwrap_or_default();
        let format = ["-documents-", "-passages-"].iter().find_map(|kind| {
            let rest = rest.strip_prefix(kind)?;
            rest.split('-').next()?.parse::<u32>().ok()
        });
        format.is_some_and(|format| format > self.format)
    }

    /// The same index in another format.
    pub(super) fn with_format(&self, format: u32) -> Self {
        Self::new(&self.base, format)
    }

    /// What other programs find the documents and the passages by that answer.
    pub(super) fn aliases(&self) -> [String; 2] {
        ["documents", "passages"].map(|what| format!("{}-{what}", self.base))
    }
}

/// How many digits the name of a model has.
const MODEL_DIGITS: usize = 16;

/// The name of a model that makes vectors of this fingerprint.
pub(super) fn model_name(fingerprint: &str) -> String {
    format!("{:016x}", fnv1a(fingerprint.as_bytes()))
}

/// A name for a point that no other parts give.
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

/// FNV-1a: what it gives lies in collections, so it stays as it is for as long as the format does.
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The part of a field's keys that stands for its name, which may hold anything.
pub(super) fn field_key(mark: char, name: &str) -> String {
    format!("{mark}.{:016x}", fnv1a(name.as_bytes()))
}

/// The values of a field as they are counted, its texts as they are compared, its numbers and its days.
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

    /// What lies in collections is found again by the next version.
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
