//! What files looked like when they were read, so that those that still look so need not be read again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use docent_ingest::{Entry, Fingerprint};
use docent_search::DocId;

/// A file that was written within this time before it was read may have been written again since without
/// looking any different: some disks count time in steps of two seconds.
const STEP: Duration = Duration::from_secs(2);

/// The files of one sync, by their paths.
#[derive(Debug, Default)]
pub struct Seen {
    before: HashMap<String, Look>,
    now: HashMap<String, Look>,
}

/// How a file looked, and the documents it gave.
#[derive(Debug)]
struct Look {
    size: u64,
    modified: SystemTime,
    ids: Arc<[DocId]>,
}

impl Seen {
    /// What was seen becomes what was seen before.
    pub(super) fn begin(&mut self) -> Self {
        let mut before = std::mem::take(&mut self.now);
        // A sync that was stopped saw only some of the files; what it did not see is as it was.
        for (path, look) in self.before.drain() {
            before.entry(path).or_insert(look);
        }
        Self {
            before,
            now: HashMap::new(),
        }
    }

    /// The documents of a file that looks as it did before. It is noted as seen.
    pub(super) fn again(&mut self, entry: &Entry) -> Option<Arc<[DocId]>> {
        let look = self.before.remove(entry.path())?;
        if look.size != entry.size || Some(look.modified) != entry.modified {
            return None;
        }
        let ids = look.ids.clone();
        self.now.insert(entry.path().to_owned(), look);
        Some(ids)
    }

    /// Notes how a file looked when it was read, unless it may change without looking different.
    pub(super) fn note(&mut self, entry: &Entry, found: &Fingerprint, ids: Vec<DocId>) {
        let Some(modified) = found.modified else {
            return;
        };
        let is_settled = SystemTime::now()
            .duration_since(modified)
            .is_ok_and(|age| age > STEP);
        if is_settled {
            let look = Look {
                size: found.size,
                modified,
                ids: ids.into(),
            };
            self.now.insert(entry.path().to_owned(), look);
        }
    }
}
