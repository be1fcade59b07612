//! A folder of segments, kept so that whatever was acknowledged is still there after a crash.
//!
//! ```text
//! vectors/
//!   3f2a…91/              one folder for each model, named after the hash of its fingerprint
//!     lock                held by the one who writes
//!     manifest.json       which segments there are
//!     0000000000000001.seg …
//! ```
//!
//! A batch becomes a new segment: its file is written and flushed, then the folder, then the
//! manifest that names it is written, flushed and renamed into place, then the folder again. Only
//! then is the batch acknowledged. A crash before the rename leaves a file that no manifest names,
//! which the next one to open the folder removes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::kernels::DistanceKernels;
use super::live_documents::LiveDocuments;
use super::manifest::{self, SEGMENT_ENDING, SegmentEntry, StoreManifest, TEMP_NAME, file_name};
use super::random_rotation::RandomRotation;
use super::segment_writer::{self, RowSource};
use super::vector_batch::{EmbeddedDocument, VectorBatch};
use super::vector_segment::VectorSegment;
use super::{MAX_DIMENSIONS, MAX_FINGERPRINT_BYTES};
use crate::error::SearchError;
use crate::{failpoints, folder_lock};

const LOCK: &str = "lock";

/// How often a reader starts again because a writer replaced what it was opening.
const MAX_READS: usize = 8;

/// After this many batches small segments are merged, even if nobody asks for it: a first build
/// adds thousands.
const ADDED_BEFORE_MERGE: usize = 16;

/// Whose vectors these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorModel {
    fingerprint: String,
    dims: usize,
}

impl VectorModel {
    /// A model by its fingerprint, of at most [`MAX_FINGERPRINT_BYTES`], and how many numbers its
    /// vectors have, from one to [`MAX_DIMENSIONS`].
    pub fn new(fingerprint: &str, dims: usize) -> Result<Self, SearchError> {
        let sizes = [
            (
                "the name of the model",
                fingerprint.len(),
                MAX_FINGERPRINT_BYTES,
            ),
            ("the number of dimensions", dims, MAX_DIMENSIONS),
        ];
        for (what, size, limit) in sizes {
            if size > limit {
                return Err(SearchError::TooLarge {
                    what: what.to_owned(),
                    size,
                    limit,
                });
            }
        }
        if dims == 0 {
            return Err(SearchError::engine("a model whose vectors have no numbers"));
        }
        Ok(Self {
            fingerprint: fingerprint.to_owned(),
            dims,
        })
    }

    /// How many numbers a vector has.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// FNV-1a. Only names a folder: the manifest in it has the whole fingerprint.
    fn hash(&self) -> u64 {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        self.fingerprint.bytes().fold(0xcbf2_9ce4_8422_2325, step)
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join(format!("{:016x}", self.hash()))
    }
}

/// The vectors of one model.
pub struct VectorStore {
    model: VectorModel,
    dir: PathBuf,
    manifest: StoreManifest,
    segments: Vec<Arc<VectorSegment>>,
    /// Set while it is not known which manifest the disk has.
    is_unsure: bool,
    /// How many segments were added since the last merge.
    added: usize,
    pub(super) rotation: Arc<RandomRotation>,
    pub(super) kernels: DistanceKernels,
    /// Nothing when opened to be read only.
    lock: Option<File>,
}

impl VectorStore {
    /// Opens the vectors of `model` below `root` to be searched and added to, or makes an empty
    /// store there. Everything a crash left behind is removed.
    ///
    /// Refused with [`Error::Locked`] while another has it open this way, and with
    /// [`Error::Corrupt`] or [`Error::Format`] when a byte is not as it was written: then
    /// [`Store::anew`] and making the vectors again are the cure.
    pub fn open(root: &Path, model: VectorModel) -> Result<Self, SearchError> {
        let (dir, lock, manifest) = begin(root, &model)?;
        let segments = load(&dir, &model, &manifest)?;
        remove_orphans(&dir, &manifest);
        Ok(Self::with(model, dir, (manifest, segments), Some(lock)))
    }

    /// The same, but segments that are damaged are removed instead of being a reason to refuse, and
    /// what was wrong with each is returned.
    pub fn open_without_corrupt(
        root: &Path,
        model: VectorModel,
    ) -> Result<(Self, Vec<String>), SearchError> {
        let (dir, lock, manifest) = begin(root, &model)?;
        check_model(&dir, &model, &manifest)?;
        let (mut sound, mut lost) = (Vec::new(), Vec::new());
        for entry in &manifest.segments {
            match VectorSegment::open(&dir, *entry, model.hash()) {
                Ok(segment) => sound.push(Arc::new(segment)),
                Err(error @ (SearchError::Corrupt { .. } | SearchError::Format { .. })) => {
                    lost.push(error.to_string());
                }
                Err(other) => return Err(other),
            }
        }
        let mut store = Self::with(model, dir, (manifest, Vec::new()), Some(lock));
        store.commit(sound)?;
        Ok((store, lost))
    }

    /// Opens the vectors of `model` below `root` to be searched. They may be open for writing
    /// elsewhere; what is added there later is not seen. Nothing on disk is touched.
    pub fn open_read_only(root: &Path, model: VectorModel) -> Result<Self, SearchError> {
        let dir = model.folder(root);
        let mut read = 0;
        loop {
            let missing = || SearchError::Missing { path: dir.clone() };
            let manifest = StoreManifest::read(&dir)?.ok_or_else(missing)?;
            read += 1;
            match load(&dir, &model, &manifest) {
                Ok(segments) => {
                    return Ok(Self::with(model, dir, (manifest, segments), None));
                }
                // A segment may be gone because a writer merged it away in the meantime.
                Err(_) if read < MAX_READS && StoreManifest::read(&dir)? != Some(manifest) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Throws away what is there for `model`, whatever state it is in, and opens an empty store.
    pub fn recreate(root: &Path, model: VectorModel) -> Result<Self, SearchError> {
        let dir = model.folder(root);
        if dir.is_dir() {
            let _lock = folder_lock::lock(&dir, LOCK)?;
            fs::remove_dir_all(&dir).map_err(|source| SearchError::io(&dir, source))?;
        }
        Self::open(root, model)
    }

    fn with(
        model: VectorModel,
        dir: PathBuf,
        (manifest, segments): (StoreManifest, Vec<Arc<VectorSegment>>),
        lock: Option<File>,
    ) -> Self {
        let rotation = Arc::new(RandomRotation::new(model.dims));
        Self {
            model,
            dir,
            manifest,
            segments,
            is_unsure: false,
            added: 0,
            rotation,
            kernels: DistanceKernels::detect(),
            lock,
        }
    }

    /// Removes the vectors of every other model below `root`. Called once the vectors of this one
    /// are complete and searches use them; until then the old ones are worth keeping, for as long
    /// as their model is there to turn questions into vectors.
    ///
    /// Returns how many were removed. One that is open for writing, or that cannot be removed now,
    /// stays until the next call.
    pub fn remove_other_models(&self) -> usize {
        let removed = |path: &&PathBuf| {
            let lock = folder_lock::lock(path, LOCK);
            lock.is_ok() && fs::remove_dir_all(path).is_ok()
        };
        self.other_models().iter().filter(removed).count()
    }

    /// Whether other models have left vectors beside these.
    pub fn has_other_models(&self) -> bool {
        !self.other_models().is_empty()
    }

    fn other_models(&self) -> Vec<PathBuf> {
        let root = self.dir.parent().unwrap_or(&self.dir);
        let Ok(entries) = fs::read_dir(root) else {
            return Vec::new();
        };
        let is_other = |path: &PathBuf| *path != self.dir && is_model_folder(path);
        let paths = entries.flatten().map(|entry| entry.path());
        paths.filter(is_other).collect()
    }

    /// Adds the vectors of `documents`. When this returns they are sure to last; when it fails none
    /// of them is there. A document that is there already is replaced.
    pub fn append(&mut self, documents: &[EmbeddedDocument]) -> Result<(), SearchError> {
        self.writable()?;
        if documents.is_empty() {
            return Ok(());
        }
        let batch = VectorBatch::new(documents, self.model.dims, &self.rotation)?;
        let segment = self.write(&batch.sources())?;
        let mut segments = self.segments.clone();
        segments.push(Arc::new(segment));
        self.commit(segments)?;
        self.added += 1;
        if self.added >= ADDED_BEFORE_MERGE {
            self.added = 0;
            // The batch is there whatever becomes of the merge, which is tried again later.
            if let Err(error) = self.maintain(&LiveDocuments::everything(&self.segments)) {
                tracing::warn!(%error, "small segments of vectors could not be merged");
            }
        }
        Ok(())
    }

    /// Whether the document of this key has vectors.
    pub fn contains(&self, key: u128) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|segment| segment.keys().binary_search(&key).is_ok())
    }

    /// How many vectors there are, those of documents long gone included.
    pub fn rows(&self) -> usize {
        self.segments
            .iter()
            .map(|segment| segment.layout.rows)
            .sum()
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// How many bytes there are on disk.
    pub fn bytes(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.entry.bytes)
            .sum()
    }

    /// Whose vectors these are.
    pub fn model(&self) -> &VectorModel {
        &self.model
    }

    pub(super) fn segments(&self) -> &[Arc<VectorSegment>] {
        &self.segments
    }

    /// Says no to whoever may not write, and finds out again what there is when the last attempt
    /// to write left that open.
    pub(super) fn writable(&mut self) -> Result<(), SearchError> {
        if self.lock.is_none() {
            return Err(SearchError::ReadOnly {
                path: self.dir.clone(),
            });
        }
        if self.is_unsure {
            let gone =
                || SearchError::corrupt(&self.dir, format!("`{}` is missing", manifest::NAME));
            let manifest = StoreManifest::read(&self.dir)?.ok_or_else(gone)?;
            self.segments = load(&self.dir, &self.model, &manifest)?;
            self.manifest = manifest;
            self.is_unsure = false;
        }
        Ok(())
    }

    /// Writes a segment that no manifest names yet.
    pub(super) fn write(
        &mut self,
        documents: &[RowSource<'_>],
    ) -> Result<VectorSegment, SearchError> {
        let number = self.manifest.next;
        // Counted up even if what follows fails, so that no name is ever used twice.
        self.manifest.next = number.saturating_add(1);
        let path = self.dir.join(file_name(number));
        let written = segment_writer::write(&path, (self.model.dims, self.model.hash()), documents)
            .and_then(|written| failpoints::pass("vectors-written").map(|()| written));
        let written = written.map_err(|source| {
            // A disk that is full is not made fuller; what stays is removed when next opened.
            let _ = fs::remove_file(&path);
            SearchError::io(&path, source)
        })?;
        let entry = SegmentEntry {
            number,
            rows: written.rows,
            bytes: written.bytes,
            sum: written.sum,
        };
        VectorSegment::open(&self.dir, entry, self.model.hash())
    }

    /// Makes `segments` all there is. Files that are no longer named are removed.
    pub(super) fn commit(&mut self, segments: Vec<Arc<VectorSegment>>) -> Result<(), SearchError> {
        let manifest = StoreManifest {
            segments: segments.iter().map(|segment| segment.entry).collect(),
            ..self.manifest.clone()
        };
        let prepared = folder_lock::sync_folder(&self.dir)
            .map_err(|source| SearchError::io(&self.dir, source))
            .and_then(|()| manifest.prepare(&self.dir))
            .and_then(|()| {
                failpoints::pass("vectors-prepared")
                    .map_err(|source| SearchError::io(&self.dir, source))
            });
        if let Err(error) = prepared {
            remove_orphans(&self.dir, &self.manifest);
            return Err(error);
        }
        // From here on the disk may have the one manifest or the other until it says otherwise.
        self.is_unsure = true;
        StoreManifest::publish(&self.dir)?;
        failpoints::pass("vectors-named").map_err(|source| SearchError::io(&self.dir, source))?;
        self.is_unsure = false;
        self.manifest = manifest;
        self.segments = segments;
        remove_orphans(&self.dir, &self.manifest);
        Ok(())
    }
}

/// The folder of a model, the right to write into it, and what its manifest says.
fn begin(root: &Path, model: &VectorModel) -> Result<(PathBuf, File, StoreManifest), SearchError> {
    let dir = model.folder(root);
    let io = |source| SearchError::io(&dir, source);
    fs::create_dir_all(&dir).map_err(io)?;
    for above in [Some(root), root.parent()].into_iter().flatten() {
        if above.is_dir() {
            folder_lock::sync_folder(above).map_err(io)?;
        }
    }
    let lock = folder_lock::lock(&dir, LOCK)?;
    let manifest = match StoreManifest::read(&dir)? {
        Some(manifest) => manifest,
        None => create(&dir, model)?,
    };
    Ok((dir, lock, manifest))
}

/// An empty store. A folder that has segments had a manifest once and is not empty.
fn create(dir: &Path, model: &VectorModel) -> Result<StoreManifest, SearchError> {
    if names(dir).iter().any(|name| name.ends_with(SEGMENT_ENDING)) {
        let reason = format!("`{}` is missing", manifest::NAME);
        return Err(SearchError::corrupt(dir, reason));
    }
    let manifest = StoreManifest {
        format: manifest::FORMAT,
        fingerprint: model.fingerprint.clone(),
        dims: model.dims,
        next: 1,
        segments: Vec::new(),
    };
    manifest.prepare(dir)?;
    StoreManifest::publish(dir)?;
    Ok(manifest)
}

fn check_model(
    dir: &Path,
    model: &VectorModel,
    manifest: &StoreManifest,
) -> Result<(), SearchError> {
    if manifest.fingerprint != model.fingerprint || manifest.dims != model.dims {
        let reason = format!("`{}` is of another model", manifest::NAME);
        return Err(SearchError::corrupt(dir, reason));
    }
    Ok(())
}

fn load(
    dir: &Path,
    model: &VectorModel,
    manifest: &StoreManifest,
) -> Result<Vec<Arc<VectorSegment>>, SearchError> {
    check_model(dir, model, manifest)?;
    let open = |entry: &SegmentEntry| VectorSegment::open(dir, *entry, model.hash()).map(Arc::new);
    manifest.segments.iter().map(open).collect()
}

/// The names in a folder. None of what cannot be read.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Removes our files that the manifest does not name. One that is still mapped stays readable for
/// those who have it; what cannot be removed now is tried again later.
fn remove_orphans(dir: &Path, manifest: &StoreManifest) {
    let kept: Vec<String> = manifest
        .segments
        .iter()
        .map(SegmentEntry::file_name)
        .collect();
    for name in names(dir) {
        let is_segment = name.ends_with(SEGMENT_ENDING) && !kept.contains(&name);
        if is_segment || name == TEMP_NAME {
            let _ = fs::remove_file(dir.join(name));
        }
    }
}

/// Whether a folder has the name that vectors of a model get.
fn is_model_folder(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    name.len() == 16 && name.chars().all(is_hex) && path.is_dir()
}
