//! Swaps of the embedding model and of the index format: the new index is built beside the one that answers,
//! which is removed when nobody needs it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use docent_search::{
    ClusterEngine, ClusterSettings, Embedder, Engine, PartState, Query, RankingMethod,
    ReaderIdentity, SearchError,
};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::meanings::{embed_all, topics};
use crate::server::{TestServers, get};
use crate::shelf::put;
use crate::{SharedServers, runtime};

/// How many documents only semantic search finds.
const BOATS: usize = 40;

/// How long an awaited event may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

type SwapCase = fn(&TestServers);

pub(crate) fn trials(servers: &SharedServers) -> Vec<Trial> {
    let cases: [(&'static str, SwapCase); 3] = [
        ("readers_see_no_gap_when_the_model_changes", another_model),
        ("what_was_made_is_not_made_again", interrupted),
        (
            "an_older_format_answers_until_the_new_is_whole",
            another_format,
        ),
    ];
    let trial = |(name, case): (&'static str, SwapCase)| {
        let servers = servers.clone();
        Trial::test(format!("swapping::{name}"), move || {
            case(servers.get());
            Ok(())
        })
    };
    cases.into_iter().map(trial).collect()
}

fn settings(servers: &TestServers, name: &str) -> ClusterSettings {
    ClusterSettings {
        garbage_collection_grace: Duration::from_secs(2),
        timeout: Duration::from_secs(10),
        ..servers.settings(name)
    }
}

/// The same topics in other coordinates: vectors of one model are meaningless to the other.
struct SecondModel {
    first: Arc<dyn Embedder>,
    embedded: AtomicUsize,
}

impl SecondModel {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            first: topics(),
            embedded: AtomicUsize::new(0),
        })
    }
}

impl Embedder for SecondModel {
    fn fingerprint(&self) -> &str {
        "topics/2"
    }

    fn dimensions(&self) -> usize {
        self.first.dimensions()
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        self.embedded.fetch_add(texts.len(), Ordering::Relaxed);
        let mut vectors = self.first.passages(texts)?;
        vectors.iter_mut().for_each(|vector| vector.rotate_left(1));
        Ok(vectors)
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        let mut vector = self.first.query(text)?;
        vector.rotate_left(1);
        Ok(vector)
    }
}

async fn fill(engine: &ClusterEngine) {
    let boats = (0..BOATS).map(|n| put(&format!("b{n:02}"), "T", &format!("Ship number {n}.")));
    let rest = (0..BOATS).map(|n| put(&format!("h{n:02}"), "T", &format!("Levy number {n}.")));
    engine.apply(boats.chain(rest).collect()).await.unwrap();
    embed_all(engine).await;
}

/// The documents that a semantic query for boats finds, and the similarity of the last of them.
async fn boats(engine: &ClusterEngine) -> Result<(usize, f32), SearchError> {
    let query =
        Query::new("boat", BOATS, ReaderIdentity::everyone()).method(RankingMethod::Semantic);
    let found = engine.search(query).await?;
    let boats = found
        .hits
        .iter()
        .filter(|hit| hit.id.as_str().starts_with('b'));
    let near = boats.clone().filter_map(|hit| hit.why.semantic);
    Ok((boats.count(), near.fold(1.0, f32::min)))
}

/// Queries for boats until stopped. Missing boats, low similarities and errors fail the test.
async fn ask(engine: ClusterEngine, stop: Arc<AtomicBool>) -> usize {
    let mut answers = 0;
    while !stop.load(Ordering::Relaxed) {
        let (count, near) = boats(&engine).await.unwrap();
        assert!(count == BOATS && near > 0.9, "{count} boats, {near}");
        answers += 1;
    }
    answers
}

/// The factory for both models that a program has.
fn both(second: &Arc<SecondModel>) -> impl Fn() -> Vec<Arc<dyn Embedder>> + Send + Sync + use<> {
    let second: Arc<dyn Embedder> = second.clone();
    move || vec![topics(), second.clone()]
}

/// The collections of an index, and the targets of its aliases.
fn collections(servers: &TestServers, name: &str) -> (Vec<String>, Vec<(String, String)>) {
    let address = &servers.addresses()[0];
    let texts = |value: &Value, list: &str, key: &str| -> Vec<String> {
        let list = value.pointer(list).and_then(Value::as_array);
        let named = list.into_iter().flatten();
        named
            .map(|one| one[key].as_str().unwrap().to_owned())
            .collect()
    };
    let all = get(address, "/collections");
    let all = texts(&all, "/result/collections", "name");
    let mine = all
        .into_iter()
        .filter(|one| one.starts_with(&format!("{name}-")));
    let aliases = get(address, "/aliases");
    let names = texts(&aliases, "/result/aliases", "alias_name");
    let targets = texts(&aliases, "/result/aliases", "collection_name");
    let named = names.into_iter().zip(targets);
    let mut named: Vec<_> = named
        .filter(|(alias, _)| alias.starts_with(&format!("{name}-")))
        .collect();
    named.sort();
    (mine.collect(), named)
}

fn passages(servers: &TestServers, name: &str) -> Vec<String> {
    let (all, _) = collections(servers, name);
    let start = format!("{name}-passages-");
    all.into_iter()
        .filter(|one| one.starts_with(&start))
        .collect()
}

/// Waits until one passage collection is left on every node, and returns its name.
fn only(servers: &TestServers, name: &str) -> String {
    let start = Instant::now();
    loop {
        let found = passages(servers, name);
        match found.as_slice() {
            [one] => return one.clone(),
            _ => assert!(start.elapsed() < PATIENCE, "{found:?}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn another_model(servers: &TestServers) {
    let name = "swap-model";
    let settings = settings(servers, name);
    let runtime = runtime();
    let second = SecondModel::new();
    let open = |model: Arc<dyn Embedder>| {
        ClusterEngine::open_with_previous(settings.clone(), Some(model), both(&second)).unwrap()
    };
    let first = open(topics());
    runtime.block_on(fill(&first));
    let old = only(servers, name);
    drop(first);

    // One process that was started before, and two with the new model, of which one writes.
    let (before, reader, writer) = (open(topics()), open(second.clone()), open(second.clone()));
    let stop = Arc::new(AtomicBool::new(false));
    let asking: Vec<_> = [before.clone(), reader, writer.clone()]
        .into_iter()
        .map(|engine| runtime.spawn(ask(engine, stop.clone())))
        .collect();
    runtime.block_on(async {
        let building = writer.embed_pending(8).await.unwrap();
        assert!(building.left > 0 && building.done > 0, "{building:?}");
        assert_eq!(
            writer.status().await.unwrap().vectors,
            PartState::Building(building)
        );
        assert_eq!(before.status().await.unwrap().vectors, PartState::Ready);
        // Documents that change meanwhile are found semantically too, before the new model has got that far.
        let changed = vec![put("h00", "T", "Levy, mended.")];
        writer.apply(changed).await.unwrap();
        assert!(writer.embed_pending(1).await.unwrap().left > 0);
        let query =
            Query::new("tax", BOATS, ReaderIdentity::everyone()).method(RankingMethod::Semantic);
        let found = before.search(query).await.unwrap();
        let mended = found.hits.iter().find(|hit| hit.id.as_str() == "h00");
        assert!(mended.is_some_and(|hit| hit.why.semantic > Some(0.9)));
    });
    let (_, aliases) = collections(servers, name);
    assert_eq!(aliases[1], (format!("{name}-passages"), old.clone()));
    runtime.block_on(embed_all(&writer));
    stop.store(true, Ordering::Relaxed);
    for one in asking {
        assert!(runtime.block_on(one).unwrap() > 3);
    }
    // The process that computes the last vectors waits until nobody needs the old ones, and removes them.
    let new = only(servers, name);
    assert_ne!(new, old);
    let (_, aliases) = collections(servers, name);
    let documents = (
        format!("{name}-documents"),
        format!("{name}-documents-{}", settings.format),
    );
    assert_eq!(aliases, [documents, (format!("{name}-passages"), new)]);
    // A process that was started with the old model goes on, and so does one without any other.
    assert_eq!(runtime.block_on(boats(&before)).unwrap().0, BOATS);
    let alone = ClusterEngine::open_read_only(settings.clone(), Some(topics())).unwrap();
    let words = runtime.block_on(alone.search(Query::new("ship", 5, ReaderIdentity::everyone())));
    assert_eq!(words.unwrap().hits.len(), 5);
    assert_eq!(runtime.block_on(boats(&alone)).unwrap().0, 0);
}

fn interrupted(servers: &TestServers) {
    let name = "swap-twice";
    let settings = settings(servers, name);
    let runtime = runtime();
    let first = ClusterEngine::open(settings.clone(), Some(topics())).unwrap();
    runtime.block_on(fill(&first));
    drop(first);
    let second = SecondModel::new();
    let open = || {
        ClusterEngine::open_with_previous(settings.clone(), Some(second.clone()), || vec![topics()])
    };
    let half = open().unwrap();
    let left = runtime.block_on(half.embed_pending(50)).unwrap().left;
    let made = second.embedded.load(Ordering::Relaxed);
    assert!(left > 0 && made > 0);
    drop(half);
    let rest = open().unwrap();
    runtime.block_on(embed_all(&rest));
    let all = second.embedded.load(Ordering::Relaxed);
    assert_eq!(all, 2 * BOATS, "every passage once, in two runs");
    assert_eq!(runtime.block_on(boats(&rest)).unwrap().0, BOATS);
    // Going back: vectors that were removed are computed again, not taken to exist.
    drop(rest);
    let back =
        ClusterEngine::open_with_previous(settings.clone(), Some(topics()), both(&second)).unwrap();
    runtime.block_on(async {
        assert_eq!(
            boats(&back).await.unwrap().0,
            BOATS,
            "the second model answers meanwhile"
        );
        embed_all(&back).await;
        assert_eq!(boats(&back).await.unwrap().0, BOATS);
    });
    only(servers, name);
}

fn another_format(servers: &TestServers) {
    let name = "swap-format";
    let old = settings(servers, name);
    let new = ClusterSettings {
        format: old.format + 1,
        ..old.clone()
    };
    let (before, now) = (old.format, new.format);
    let runtime = runtime();
    let older = ClusterEngine::open(old, Some(topics())).unwrap();
    runtime.block_on(fill(&older));
    let stop = Arc::new(AtomicBool::new(false));
    let asking = runtime.spawn(ask(older.clone(), stop.clone()));
    let newer = ClusterEngine::open(new.clone(), Some(topics())).unwrap();
    let is_building = |engine: &ClusterEngine| {
        let status = runtime.block_on(engine.status()).unwrap();
        matches!(status.lexical, PartState::Building(_))
    };
    let documents = |format: u32| {
        (
            format!("{name}-documents"),
            format!("{name}-documents-{format}"),
        )
    };
    assert!(is_building(&newer) && !is_building(&older));
    runtime
        .block_on(newer.apply(vec![put("b00", "T", "A ship.")]))
        .unwrap();
    assert!(is_building(&newer));
    assert_eq!(collections(servers, name).1[0], documents(before));
    runtime.block_on(fill(&newer));
    runtime.block_on(newer.mark_complete()).unwrap();
    assert!(!is_building(&newer));
    assert_eq!(collections(servers, name).1[0], documents(now));
    // Programs that know the old format go on as long as they live, and do not take the alias back.
    runtime
        .block_on(older.apply(vec![put("h00", "T", "A levy.")]))
        .unwrap();
    runtime.block_on(newer.mark_complete()).unwrap();
    assert_eq!(collections(servers, name).1[0], documents(now));
    stop.store(true, Ordering::Relaxed);
    assert!(runtime.block_on(asking).unwrap() > 3);
    assert_eq!(runtime.block_on(boats(&older)).unwrap().0, BOATS);
    drop(older);
    let is_there = || {
        let (all, _) = collections(servers, name);
        all.iter()
            .any(|one| one.contains(&format!("-{before}-")) || one.ends_with(&format!("-{before}")))
    };
    let start = Instant::now();
    while is_there() {
        assert!(
            start.elapsed() < PATIENCE,
            "{:?}",
            collections(servers, name).0
        );
        runtime.block_on(newer.mark_complete()).unwrap();
        std::thread::sleep(Duration::from_secs(2));
    }
    assert_eq!(runtime.block_on(boats(&newer)).unwrap().0, BOATS);
}
