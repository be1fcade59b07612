//! The vectors of one model on disk: a folder of immutable segments and a manifest, durable across crashes.
//!
//! ```text
//! vectors/
//!   3f2a…91/              one folder for each model, named after the hash of its fingerprint
//!     lock                file lock, held by the writer
//!     manifest.json       the list of segments
//!     0000000000000001.seg …
//! ```
//!
//! A batch becomes a new segment: the segment file is written and synced, then the folder; then the manifest that lists
//! it is written, synced and atomically renamed into place, then the folder is synced again. Only then is the batch
//! acknowledged. A crash before the rename leaves an orphaned file, which the next writer removes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::kernels::DistanceKernels;
use super::live_documents::LiveDocuments;
use super::manifest::{self, SEGMENT_ENDING, SegmentEntry, StoreManifest, file_name};
use super::random_rotation::RandomRotation;
use super::segment_writer::{self, RowSource};
use super::vector_batch::{EmbeddedDocument, VectorBatch};
use super::vector_segment::VectorSegment;
use super::{MAX_DIMENSIONS, MAX_FINGERPRINT_BYTES};
use crate::error::SearchError;
use crate::{failpoints, folder_lock};

const LOCK: &str = "lock";

/// How often a reader retries to open a store because a writer merged segments away in the meantime.
const MAX_READS: usize = 8;

/// Small segments are merged after this many batches even without a call of [`VectorStore::maintain`]: a first build
/// appends thousands.
const APPENDS_BEFORE_MERGE: usize = 16;

/// The identity of an embedding model: its fingerprint and the dimensions of its vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorModel {
    fingerprint: String,
    dims: usize,
}

impl VectorModel {
    /// Identifies a model by its fingerprint, of at most [`MAX_FINGERPRINT_BYTES`], and its dimensions, from one to
    /// [`MAX_DIMENSIONS`].
    pub fn new(fingerprint: &str, dims: usize) -> Result<Self, SearchError> {
        let sizes = [
            (
                "the fingerprint of the model",
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
            return Err(SearchError::engine("the model has `0` dimensions"));
        }
        Ok(Self {
            fingerprint: fingerprint.to_owned(),
            dims,
        })
    }

    /// The number of dimensions of a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The FNV-1a hash of the fingerprint. It only names a folder, so collisions do no harm: the manifest there has the
    /// whole fingerprint.
    fn hash(&self) -> u64 {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        self.fingerprint.bytes().fold(0xcbf2_9ce4_8422_2325, step)
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join(format!("{:016x}", self.hash()))
    }
}

/// The vectors of one model, open for writing or read-only.
pub struct VectorStore {
    model: VectorModel,
    dir: PathBuf,
    manifest: StoreManifest,
    segments: Vec<Arc<VectorSegment>>,
    /// Set while it is unknown which manifest is on disk: a rename or its sync failed.
    is_manifest_unknown: bool,
    /// The number of segments appended since the last merge.
    appended: usize,
    pub(super) rotation: Arc<RandomRotation>,
    pub(super) kernels: DistanceKernels,
    /// The file lock of the writer; `None` if opened read-only.
    lock: Option<File>,
}

impl VectorStore {
    /// Opens the vectors of `model` below `root` for writing, or creates an empty store there. Orphaned files of a
    /// crash are removed.
    ///
    /// Fails with [`SearchError::Locked`] while another writer has it open, and with [`SearchError::Corrupt`] or
    /// [`SearchError::Format`] if a file fails its checks. The cure is [`VectorStore::recreate`] and embedding again.
    pub fn open(root: &Path, model: VectorModel) -> Result<Self, SearchError> {
        let (dir, lock, manifest) = open_for_writing(root, &model)?;
        let segments = load(&dir, &model, &manifest)?;
        remove_orphans(&dir, &manifest);
        Ok(Self::with(model, dir, manifest, segments, Some(lock)))
    }

    /// Opens a store like [`VectorStore::open`], but drops corrupt segments instead of failing, and returns what was
    /// wrong with each. Their vectors are missing from then on, so they are computed again.
    pub fn open_without_corrupt(
        root: &Path,
        model: VectorModel,
    ) -> Result<(Self, Vec<String>), SearchError> {
        let (dir, lock, manifest) = open_for_writing(root, &model)?;
        check_model(&dir, &model, &manifest)?;
        let (mut intact, mut lost) = (Vec::new(), Vec::new());
        for entry in &manifest.segments {
            match VectorSegment::open(&dir, *entry, model.hash()) {
                Ok(segment) => intact.push(Arc::new(segment)),
                Err(error @ (SearchError::Corrupt { .. } | SearchError::Format { .. })) => {
                    lost.push(error.to_string());
                }
                Err(other) => return Err(other),
            }
        }
        let mut store = Self::with(model, dir, manifest, Vec::new(), Some(lock));
        store.commit(intact)?;
        Ok((store, lost))
    }

    /// Opens the vectors of `model` below `root` read-only, even while a writer has them open. Later appends of the
    /// writer are not visible. Nothing on disk is changed.
    pub fn open_read_only(root: &Path, model: VectorModel) -> Result<Self, SearchError> {
        let dir = model.folder(root);
        let mut read = 0;
        loop {
            let missing = || SearchError::Missing { path: dir.clone() };
            let manifest = StoreManifest::read(&dir)?.ok_or_else(missing)?;
            read += 1;
            match load(&dir, &model, &manifest) {
                Ok(segments) => {
                    return Ok(Self::with(model, dir, manifest, segments, None));
                }
                // A writer may have merged a segment away since the manifest was read.
                Err(_) if read < MAX_READS && StoreManifest::read(&dir)? != Some(manifest) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes the vectors of `model`, in whatever state they are, and opens an empty store.
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
        manifest: StoreManifest,
        segments: Vec<Arc<VectorSegment>>,
        lock: Option<File>,
    ) -> Self {
        let rotation = Arc::new(RandomRotation::new(model.dims));
        Self {
            model,
            dir,
            manifest,
            segments,
            is_manifest_unknown: false,
            appended: 0,
            rotation,
            kernels: DistanceKernels::detect(),
            lock,
        }
    }

    /// Deletes the vectors of all other models below `root`. Call it once the vectors of this model are complete and in
    /// use. Until then searches can use the old ones, as long as the old model is available to embed queries.
    ///
    /// Returns how many stores were deleted. One that is locked by a writer, or that cannot be deleted now, stays until
    /// the next call.
    pub fn remove_other_models(&self) -> usize {
        let removed = |path: &&PathBuf| {
            let lock = folder_lock::lock(path, LOCK);
            lock.is_ok() && fs::remove_dir_all(path).is_ok()
        };
        self.other_models().iter().filter(removed).count()
    }

    /// Whether there are vectors of other models beside these.
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

    /// Appends the vectors of `documents` as one atomic batch: once this returns they are durable, and if it fails none
    /// of them is visible. A document that is there already is replaced.
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
        self.appended += 1;
        if self.appended >= APPENDS_BEFORE_MERGE {
            self.appended = 0;
            // The batch is durable whatever becomes of the merge, which is retried after further batches.
            if let Err(error) = self.maintain(&LiveDocuments::everything(&self.segments)) {
                tracing::warn!(%error, "merging small vector segments failed, retrying later");
            }
        }
        Ok(())
    }

    /// Whether the document with this key has been embedded.
    pub fn contains(&self, key: u128) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|segment| segment.keys().binary_search(&key).is_ok())
    }

    /// The number of vectors, dead ones included until a merge drops them.
    pub fn rows(&self) -> usize {
        self.segments
            .iter()
            .map(|segment| segment.layout.rows)
            .sum()
    }

    /// The number of segments, each of which costs every search a few microseconds.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The size of all segments on disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.entry.bytes)
            .sum()
    }

    /// The model that computed the vectors.
    pub fn model(&self) -> &VectorModel {
        &self.model
    }

    pub(super) fn segments(&self) -> &[Arc<VectorSegment>] {
        &self.segments
    }

    /// Refuses to write to a store that was opened read-only. If the last commit ended with the manifest in an unknown
    /// state, loads again what is on disk.
    pub(super) fn writable(&mut self) -> Result<(), SearchError> {
        if self.lock.is_none() {
            return Err(SearchError::ReadOnly {
                path: self.dir.clone(),
            });
        }
        if self.is_manifest_unknown {
            let missing =
                || SearchError::corrupt(&self.dir, format!("`{}` is missing", manifest::NAME));
            let manifest = StoreManifest::read(&self.dir)?.ok_or_else(missing)?;
            self.segments = load(&self.dir, &self.model, &manifest)?;
            self.manifest = manifest;
            self.is_manifest_unknown = false;
        }
        Ok(())
    }

    /// Writes a segment file, which stays invisible until a manifest lists it.
    pub(super) fn write(
        &mut self,
        documents: &[RowSource<'_>],
    ) -> Result<VectorSegment, SearchError> {
        let number = self.manifest.next;
        // Incremented even if the write fails, so that no file name is ever used twice.
        self.manifest.next = number.saturating_add(1);
        let path = self.dir.join(file_name(number));
        let written = segment_writer::write(&path, self.model.dims, self.model.hash(), documents)
            .and_then(|written| failpoints::pass("vectors-written").map(|()| written));
        let written = written.map_err(|source| {
            // On a full disk the partial file should go at once; if that fails, the next writer removes it.
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

    /// Commits `segments` as the new content of the store: writes and atomically publishes a manifest that lists them,
    /// then removes orphaned files.
    pub(super) fn commit(&mut self, segments: Vec<Arc<VectorSegment>>) -> Result<(), SearchError> {
        let manifest = StoreManifest {
            segments: segments.iter().map(|segment| segment.entry).collect(),
            ..self.manifest.clone()
        };
        let prepared = docent_atomic_file::sync_folder(&self.dir)
            .map_err(|source| SearchError::io(&self.dir, source))
            .and_then(|()| manifest.stage(&self.dir))
            .and_then(|staged| match failpoints::pass("vectors-prepared") {
                Ok(()) => Ok(staged),
                Err(source) => Err(SearchError::io(&self.dir, source)),
            });
        let staged = prepared.inspect_err(|_| remove_orphans(&self.dir, &self.manifest))?;
        // From here until the rename is known to be durable, either manifest may be on disk.
        self.is_manifest_unknown = true;
        let io = |source| SearchError::io(&self.dir.join(manifest::NAME), source);
        staged.replace().map_err(io)?;
        failpoints::pass("vectors-named").map_err(|source| SearchError::io(&self.dir, source))?;
        self.is_manifest_unknown = false;
        self.manifest = manifest;
        self.segments = segments;
        remove_orphans(&self.dir, &self.manifest);
        Ok(())
    }
}

/// Creates and locks the folder of a model, and reads its manifest or creates an empty one.
fn open_for_writing(
    root: &Path,
    model: &VectorModel,
) -> Result<(PathBuf, File, StoreManifest), SearchError> {
    let dir = model.folder(root);
    let io = |source| SearchError::io(&dir, source);
    fs::create_dir_all(&dir).map_err(io)?;
    for parent in [Some(root), root.parent()].into_iter().flatten() {
        if parent.is_dir() {
            docent_atomic_file::sync_folder(parent).map_err(io)?;
        }
    }
    let lock = folder_lock::lock(&dir, LOCK)?;
    let manifest = match StoreManifest::read(&dir)? {
        Some(manifest) => manifest,
        None => create(&dir, model)?,
    };
    Ok((dir, lock, manifest))
}

/// Creates an empty store. A folder with segments but without a manifest is corrupt rather than empty.
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
    let staged = manifest.stage(dir)?;
    staged
        .replace()
        .map_err(|source| SearchError::io(&dir.join(manifest::NAME), source))?;
    Ok(manifest)
}

fn check_model(
    dir: &Path,
    model: &VectorModel,
    manifest: &StoreManifest,
) -> Result<(), SearchError> {
    if manifest.fingerprint != model.fingerprint || manifest.dims != model.dims {
        let reason = format!("`{}` belongs to another model", manifest::NAME);
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

/// The file names in a folder; empty if it cannot be read.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Removes orphaned files: segments that the manifest does not list, and a temporary manifest. One that is still mapped
/// stays readable for its views. What cannot be removed now is retried after the next commit.
fn remove_orphans(dir: &Path, manifest: &StoreManifest) {
    let kept: Vec<String> = manifest
        .segments
        .iter()
        .map(SegmentEntry::file_name)
        .collect();
    for name in names(dir) {
        let is_segment = name.ends_with(SEGMENT_ENDING) && !kept.contains(&name);
        if is_segment || docent_atomic_file::is_temporary(&name, manifest::NAME) {
            let _ = fs::remove_file(dir.join(name));
        }
    }
}

/// Whether a folder is named like that of a model: 16 hexadecimal digits.
fn is_model_folder(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    name.len() == 16 && name.chars().all(is_hex) && path.is_dir()
}
