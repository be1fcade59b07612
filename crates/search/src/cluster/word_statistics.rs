//! Word statistics: how many documents contain each term. The writer keeps them in the index, and every replica
//! caches them, so that a question need not ask nodes how frequent its words are.
//!
//! They are stored in the collection of terms as a chain of links. A link holds the changes of one commit, and
//! names the commit before it, down to a base that holds everything. The head names the last link, so statistics
//! become visible with the commit that they belong to, and what an aborted generation wrote is in no chain. A
//! replica that has the statistics of one generation reads the links from there to the next.
//!
//! Where the head names no statistics of its generation, or a link is missing, nodes are asked as before. That is
//! so for an index of an earlier version until its writer has counted all documents, see
//! [`super::statistics_update`].

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::ClusterInner;
use super::head::IndexHead;
use super::layout::{CHANGES, COUNTED, PART, PARTS, PREVIOUS, point_id};
use super::point::PointStruct;
use super::qdrant_response::{PointsPage, ScoredPoint};
use super::request::{ClusterRequest, RequestDeadline};
use super::traffic::RequestKind;
use crate::error::SearchError;

/// The most terms whose statistics are kept, eight bytes each in every replica. Beyond it nodes are asked.
pub(super) const MAX_COUNTED_TERMS: usize = 8_000_000;

/// How many terms a point holds: about 700 kB, so that a page of them is answered well before its deadline.
const TERMS_PER_POINT: usize = 65_536;

/// How many points one request reads.
const POINTS_PER_PAGE: usize = 16;

/// How long nodes are asked instead, after the statistics of a generation could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The changes to the statistics by term id.
pub(super) type FrequencyChanges = HashMap<u32, i32>;

/// The document frequencies of one generation.
#[derive(Debug, Default)]
pub(super) struct WordStatistics {
    /// The generation of the last link that they contain.
    version: u64,
    /// The terms with their document frequencies, by term id.
    terms: Vec<(u32, u32)>,
    /// How many links were read to get them.
    pub links: usize,
}

impl WordStatistics {
    /// The number of documents that contain a term.
    pub(super) fn frequency(&self, term_id: u32) -> u64 {
        let at = self.terms.binary_search_by_key(&term_id, |(id, _)| *id);
        at.ok()
            .and_then(|at| self.terms.get(at))
            .map_or(0, |(_, count)| u64::from(*count))
    }

    /// All terms as changes to empty statistics, as a base holds them.
    pub(super) fn as_changes(&self) -> FrequencyChanges {
        let counts = self.terms.iter();
        counts
            .map(|(id, count)| (*id, i32::try_from(*count).unwrap_or(i32::MAX)))
            .collect()
    }

    /// The statistics after these changes.
    fn changed(&self, version: u64, links: usize, changes: &FrequencyChanges) -> Self {
        let mut changes: Vec<(u32, i32)> = changes.iter().map(|(id, by)| (*id, *by)).collect();
        changes.sort_unstable();
        let mut terms = Vec::with_capacity(self.terms.len() + changes.len());
        let mut old = self.terms.iter().copied().peekable();
        for (id, by) in changes {
            while let Some(one) = old.next_if(|(old, _)| *old < id) {
                terms.push(one);
            }
            let before = old.next_if(|(old, _)| *old == id).map_or(0, |(_, n)| n);
            let count = before.saturating_add_signed(by);
            if count > 0 {
                terms.push((id, count));
            }
        }
        terms.extend(old);
        Self {
            version,
            terms,
            links,
        }
    }
}

/// A link of the chain, with the changes of its points.
#[derive(Default)]
struct StatisticsLink {
    previous: u64,
    parts: u64,
    changes: Vec<Vec<(u32, i32)>>,
}

impl StatisticsLink {
    fn is_whole(&self) -> bool {
        self.parts > 0 && self.changes.len() as u64 == self.parts
    }
}

/// The links by the generation that they belong to, and whether they are a base.
#[derive(Default)]
struct StatisticsLinks(BTreeMap<(u64, bool), StatisticsLink>);

impl StatisticsLinks {
    fn add(&mut self, point: &ScoredPoint) {
        let (counted, previous) = (point.number(COUNTED), point.number(PREVIOUS));
        let is_base = point.payload.get(PREVIOUS).is_none_or(Value::is_null);
        let Some(changes) = decode(point.text(CHANGES)) else {
            return;
        };
        let link = self.0.entry((counted, is_base)).or_default();
        link.previous = previous;
        link.parts = point.number(PARTS);
        link.changes.push(changes);
    }

    /// The statistics of the version `wanted`, from those that are known; `None` when a link is missing.
    fn follow(&self, known: &WordStatistics, wanted: u64) -> Option<WordStatistics> {
        let whole =
            |at: u64, is_base: bool| self.0.get(&(at, is_base)).filter(|one| one.is_whole());
        let mut changes = FrequencyChanges::new();
        let mut add = |link: &StatisticsLink| {
            for (id, by) in link.changes.iter().flatten() {
                let sum = changes.entry(*id).or_default();
                *sum = sum.saturating_add(*by);
            }
        };
        let empty = WordStatistics::default();
        let (mut at, mut links) = (wanted, 0);
        let start = loop {
            if at == known.version {
                break known;
            }
            links += 1;
            if let Some(base) = whole(at, true) {
                add(base);
                break &empty;
            }
            let link = whole(at, false).filter(|link| link.previous < at)?;
            add(link);
            at = link.previous;
        };
        Some(start.changed(wanted, start.links + links, &changes))
    }
}

/// The statistics that were read last. Whoever waits for newer ones is woken when they are read.
#[derive(Default)]
pub(super) struct StatisticsCache {
    state: Mutex<CachedStatistics>,
    is_read: Condvar,
}

#[derive(Default)]
struct CachedStatistics {
    latest: Arc<WordStatistics>,
    /// Whether a thread reads newer ones.
    is_reading: bool,
    /// The last version of which a link was missing, or which had too many terms.
    incomplete: Option<u64>,
    /// The version that could not be read, and when.
    failed: Option<(u64, Instant)>,
}

impl StatisticsCache {
    fn lock(&self) -> MutexGuard<'_, CachedStatistics> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether these statistics were read and cannot be used, so that the documents have to be counted again.
    pub(super) fn is_incomplete(&self, version: u64) -> bool {
        self.lock().incomplete == Some(version)
    }

    /// Notes that the chain of the cached statistics was replaced by a base.
    pub(super) fn forget_links(&self) {
        let mut cached = self.lock();
        cached.latest = Arc::new(WordStatistics {
            version: cached.latest.version,
            terms: cached.latest.terms.clone(),
            links: 1,
        });
    }

    fn publish(&self, wanted: u64, read: Result<Option<WordStatistics>, SearchError>) {
        let mut cached = self.lock();
        cached.is_reading = false;
        match read {
            Ok(Some(read)) if read.terms.len() <= MAX_COUNTED_TERMS => {
                cached.latest = Arc::new(read);
            }
            Ok(_) => {
                tracing::warn!("word statistics are incomplete, nodes count words instead");
                cached.incomplete = Some(wanted);
                cached.failed = Some((wanted, Instant::now()));
            }
            Err(error) => {
                tracing::warn!(%error, "could not read word statistics, nodes count words instead");
                cached.failed = Some((wanted, Instant::now()));
            }
        }
        drop(cached);
        self.is_read.notify_all();
    }
}

impl ClusterInner {
    /// The statistics of the head's generation, from the cache or the cluster; `None` where nodes have to be
    /// asked. Newer ones are read by a thread of their own, because the first time they may take longer than an
    /// answer: whoever needs them waits for half of the time that is left, and then asks the nodes.
    pub(super) fn word_statistics(
        &self,
        head: &IndexHead,
        deadline: RequestDeadline,
    ) -> Option<Arc<WordStatistics>> {
        let wanted = head.statistics_version()?;
        let end = Instant::now() + deadline.remaining()? / 2;
        let cache = &self.caches.statistics;
        let mut cached = cache.lock();
        loop {
            if cached.latest.version == wanted {
                return Some(cached.latest.clone());
            }
            let has_failed = cached
                .failed
                .is_some_and(|(version, at)| version == wanted && at.elapsed() < RETRY_AFTER);
            if has_failed || cached.latest.version > wanted {
                return None;
            }
            if !cached.is_reading {
                self.start_reading(cached.latest.clone(), wanted)?;
                cached.is_reading = true;
            }
            let left = end.checked_duration_since(Instant::now())?;
            let waited = cache.is_read.wait_timeout(cached, left);
            cached = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts a thread that reads these statistics; `None` when there can be none.
    fn start_reading(&self, known: Arc<WordStatistics>, wanted: u64) -> Option<()> {
        let inner = self.this.upgrade()?;
        let named = std::thread::Builder::new().name("docent-words".to_owned());
        let thread = named.spawn(move || {
            let read = inner.read_statistics(&known, wanted, inner.write_deadline());
            inner.caches.statistics.publish(wanted, read);
        });
        thread.ok().map(drop)
    }

    /// Reads the links from the known version to the wanted one; where one is missing, those from the base.
    fn read_statistics(
        &self,
        known: &WordStatistics,
        wanted: u64,
        deadline: RequestDeadline,
    ) -> Result<Option<WordStatistics>, SearchError> {
        if wanted == 0 {
            return Ok(Some(WordStatistics::default()));
        }
        let links = self.statistics_links(known.version, wanted, deadline)?;
        let found = links.follow(known, wanted);
        if found.is_some() || known.version == 0 {
            return Ok(found);
        }
        let links = self.statistics_links(0, wanted, deadline)?;
        Ok(links.follow(&WordStatistics::default(), wanted))
    }

    /// The links after one generation, up to another.
    fn statistics_links(
        &self,
        after: u64,
        to: u64,
        deadline: RequestDeadline,
    ) -> Result<StatisticsLinks, SearchError> {
        let mut links = StatisticsLinks::default();
        let path = format!("/collections/{}/points/scroll", self.names.terms);
        let mut offset = Value::Null;
        loop {
            let body = json!({
                "filter": {"must": [{"key": COUNTED, "range": {"gt": after, "lte": to}}]},
                "limit": POINTS_PER_PAGE, "offset": offset, "with_payload": true,
            });
            let request = ClusterRequest::read(
                RequestKind::State,
                "read word statistics",
                path.clone(),
                body.to_string(),
            );
            let page: PointsPage = self.nodes.request(&request, deadline)?;
            page.points.iter().for_each(|point| links.add(point));
            match page.next(&offset) {
                Some(next) => offset = next,
                None => return Ok(links),
            }
        }
    }
}

impl IndexHead {
    /// The version of the statistics that hold for this generation; `None` when there are none.
    pub(super) fn statistics_version(&self) -> Option<u64> {
        let [version, generation] = self.counted;
        (generation == self.generation).then_some(version)
    }

    /// Raises the generation without a change to any document, so that the statistics go on holding.
    pub(super) fn advance(&mut self) {
        let version = self.statistics_version();
        self.generation += 1;
        if let Some(version) = version {
            self.counted = [version, self.generation];
        }
    }
}

/// The points of a link: the changes of a generation after `previous`, or a base where there is none.
pub(super) fn link_points(
    counted: u64,
    previous: Option<u64>,
    changes: FrequencyChanges,
) -> Vec<Result<PointStruct, SearchError>> {
    let mut changes: Vec<(u32, i32)> = changes.into_iter().filter(|(_, by)| *by != 0).collect();
    changes.sort_unstable();
    // A link without changes is a link all the same.
    let parts: Vec<&[(u32, i32)]> = match changes.len() {
        0 => vec![&[]],
        _ => changes.chunks(TERMS_PER_POINT).collect(),
    };
    let kind = if previous.is_some() { "link" } else { "base" };
    let point = |(part, some): (usize, &&[(u32, i32)])| {
        PointStruct::bare(
            point_id(&["statistics", kind, &counted.to_string(), &part.to_string()]),
            json!({
                COUNTED: counted, PREVIOUS: previous, PART: part, PARTS: parts.len(),
                CHANGES: encode(some),
            }),
        )
    };
    parts.iter().enumerate().map(point).collect()
}

fn encode(changes: &[(u32, i32)]) -> String {
    let bytes = changes.iter().flat_map(|(id, by)| {
        let [a, b, c, d] = id.to_le_bytes();
        let [e, f, g, h] = by.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    });
    STANDARD.encode(bytes.collect::<Vec<u8>>())
}

fn decode(text: &str) -> Option<Vec<(u32, i32)>> {
    let bytes = STANDARD.decode(text).ok()?;
    let (pairs, []) = bytes.as_chunks::<8>() else {
        return None;
    };
    let pairs = pairs.iter().map(|[a, b, c, d, e, f, g, h]| {
        let (id, by) = ([*a, *b, *c, *d], [*e, *f, *g, *h]);
        (u32::from_le_bytes(id), i32::from_le_bytes(by))
    });
    Some(pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    type LinkContent = (u64, Option<u64>, &'static [(u32, i32)]);

    fn links(all: &[LinkContent]) -> StatisticsLinks {
        let mut links = StatisticsLinks::default();
        for (counted, previous, changes) in all {
            for point in link_points(*counted, *previous, changes.iter().copied().collect()) {
                let point = serde_json::to_value(point.unwrap()).unwrap();
                links.add(&serde_json::from_value(point).unwrap());
            }
        }
        links
    }

    #[test]
    fn links_are_followed_to_what_is_known_or_to_the_base() {
        let chain = links(&[
            (1, Some(0), &[(7, 2), (u32::MAX, 1)]),
            (2, Some(0), &[(7, 100)]),
            (3, Some(1), &[(7, -1), (8, 4)]),
            (4, Some(3), &[]),
            (6, Some(4), &[(8, -4)]),
        ]);
        let empty = WordStatistics::default();
        let third = chain.follow(&empty, 3).unwrap();
        assert_eq!(third.terms, [(7, 1), (8, 4), (u32::MAX, 1)]);
        assert_eq!((third.frequency(8), third.frequency(9)), (4, 0));
        let sixth = chain.follow(&third, 6).unwrap();
        assert_eq!(sixth.terms, [(7, 1), (u32::MAX, 1)]);
        assert_eq!((sixth.version, sixth.links), (6, 4));
        assert_eq!(chain.follow(&empty, 6).unwrap().terms, sixth.terms);
        assert!(chain.follow(&empty, 5).is_none(), "there is no link of 5");
        let base = links(&[
            (4, None, &[(9, 9)]),
            (4, Some(3), &[(1, 1)]),
            (6, Some(4), &[]),
        ]);
        assert_eq!(base.follow(&third, 6).unwrap().terms, [(9, 9)]);
        assert_eq!(base.follow(&empty, 6).unwrap().links, 2);
    }

    #[test]
    fn a_link_of_several_points_counts_only_when_all_are_there() {
        let many: FrequencyChanges = (0..TERMS_PER_POINT as u32 + 1).map(|id| (id, 1)).collect();
        let points = link_points(1, Some(0), many);
        let mut links = StatisticsLinks::default();
        let mut found = points.into_iter().map(|point| {
            let point = serde_json::to_value(point.unwrap()).unwrap();
            links.add(&serde_json::from_value(point).unwrap());
            let read = links.follow(&WordStatistics::default(), 1);
            read.map(|read| read.terms.len())
        });
        assert_eq!(found.next(), Some(None));
        assert_eq!(found.next(), Some(Some(TERMS_PER_POINT + 1)));
    }

    #[test]
    fn statistics_hold_for_the_generation_that_the_head_says() {
        let mut head = IndexHead::default();
        assert_eq!(head.statistics_version(), Some(0));
        head.counted = [4, 6];
        assert_eq!(head.statistics_version(), None);
        head.generation = 6;
        head.advance();
        assert_eq!((head.generation, head.statistics_version()), (7, Some(4)));
        head.generation += 1;
        head.advance();
        assert_eq!((head.generation, head.statistics_version()), (9, None));
        assert!(decode("AAAA").is_none());
    }
}
