//! Passages into vectors beside the index, and a question into the documents nearest to it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::snapshot::Snapshot;
use crate::document::Document;
use crate::embed::Remembered;
use crate::embedder::Embedder;
use crate::engine::Settled;
use crate::error::Error;
use crate::fuse::Scale;
use crate::passage::{embedded_text, passages};
use crate::vectors::{self, Live, Model, Question, Store, View};

/// The folder of the vectors inside the folder of the index.
const FOLDER: &str = "vectors";

/// How many passages are turned into vectors before they are written. A crash costs no more work
/// than this, and each writing costs a file.
const PASSAGES_AT_ONCE: usize = 512;

/// The vectors of an index and the model that makes them.
pub(super) struct Meaning {
    embedder: Arc<dyn Embedder>,
    questions: Remembered<Question>,
    store: Mutex<Store>,
    read_only: bool,
}

impl Meaning {
    /// Opens the vectors beside the index in `dir`. Vectors can be made again, so those that are
    /// damaged or of another version are thrown away.
    pub(super) fn open(
        dir: &Path,
        embedder: Arc<dyn Embedder>,
        read_only: bool,
    ) -> Result<Self, Error> {
        let root = dir.join(FOLDER);
        let model = Model::new(embedder.fingerprint(), embedder.dimensions())?;
        let store = if read_only {
            Store::open_read_only(&root, model)?
        } else {
            match Store::open(&root, model.clone()) {
                Err(error @ (Error::Corrupt { .. } | Error::Format { .. })) => {
                    tracing::warn!(%error, "the vectors are made again");
                    Store::anew(&root, model)?
                }
                other => other?,
            }
        };
        Ok(Self {
            embedder,
            questions: Remembered::new(Question::bytes),
            store: Mutex::new(store),
            read_only,
        })
    }

    /// The vectors of the documents of a generation.
    pub(super) fn view(&self, live: &Live) -> View {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        View::new(&store, live)
    }

    /// What the cosines of the model are worth.
    pub(super) fn scale(&self) -> Scale {
        self.embedder.scale()
    }

    /// Whether a question costs next to nothing.
    pub(super) fn knows(&self, text: &str) -> bool {
        self.embedder.is_instant() || self.questions.knows(text)
    }

    /// A text as a question to the vectors of `view`.
    pub(super) fn question(&self, text: &str, view: &View) -> Result<Arc<Question>, Error> {
        self.questions
            .get(text, || view.question(&self.embedder.query(text)?))
    }

    /// Makes vectors for some of the documents that have none, at least for one, and for `most` at
    /// most. `read` brings a document by its ordinal.
    pub(super) fn settle(
        &self,
        view: &View,
        most: usize,
        read: impl Fn(u32) -> Result<Option<Arc<Document>>, Error>,
    ) -> Result<(), Error> {
        let mut batch = Vec::new();
        let mut texts = Vec::new();
        for ordinal in view.missing().iter().take(most.max(1)) {
            let Some(document) = read(*ordinal)? else {
                continue;
            };
            let cut = passages(&document);
            texts.extend(cut.iter().map(|passage| embedded_text(&document, passage)));
            batch.push((key(&document), cut));
            if texts.len() >= PASSAGES_AT_ONCE {
                break;
            }
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut made = self.embedder.passages(&texts)?.into_iter();
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let documents: Vec<_> = batch
            .into_iter()
            .map(|(key, cut)| vectors::Embedded {
                key,
                passages: cut
                    .into_iter()
                    .zip(made.by_ref())
                    .map(|(passage, vector)| vectors::Passage {
                        start: place(passage.range.start),
                        end: place(passage.range.end),
                        vector,
                    })
                    .collect(),
            })
            .collect();
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.append(&documents)
    }

    /// Brings the store in order once everything has its vectors: merges what is small, drops what
    /// is gone, and removes the vectors of models that are no longer used.
    pub(super) fn tidy(&self, live: &Live) -> Result<(), Error> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.maintain(live)?;
        store.remove_other_models();
        Ok(())
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }
}

/// How far a generation is.
pub(super) fn settled(snapshot: &Snapshot) -> Settled {
    let left = snapshot
        .vectors
        .as_ref()
        .map_or(0, |view| view.missing().len() as u64);
    Settled {
        done: snapshot.searcher.num_docs().saturating_sub(left),
        left,
    }
}

/// Names a document and what of it is embedded.
pub(super) fn key(document: &Document) -> u128 {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for part in [document.id.as_str(), &document.title, &document.text] {
        // The lengths keep two ways of cutting the same bytes apart.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    bytes
        .iter()
        .take(16)
        .fold(0, |key, byte| key << 8 | u128::from(*byte))
}
