//! The contract of every engine, one case for each rule.

use docent_search::{
    DocumentChange, DocumentValue, Engine, Generation, InventoryEntry, MAX_LIMIT,
    MAX_SNIPPET_CHARS, MAX_SOURCE_BYTES, MAX_TITLE_CHARS, PartState, ReaderIdentity, SearchError,
};

use crate::shelf::{document, fill, find, find_all, hits, id, put, put_with, remove};

pub(crate) async fn starts_empty(engine: &dyn Engine) {
    assert!(find(engine, "ferry").await.is_empty());
    assert!(engine.inventory().await.unwrap().is_empty());
    let status = engine.status().await.unwrap();
    assert_eq!((status.documents, status.generation), (0, Generation(0)));
}

pub(crate) async fn finds_what_was_put(engine: &dyn Engine) {
    fill(
        engine,
        &["The ferry was late.", "The bus was late.", "Nothing moved."],
    )
    .await;
    assert_eq!(find(engine, "ferry").await, ["d0"]);
    assert_eq!(find_all(engine, "late").await, ["d0", "d1"]);
    assert!(find(engine, "tram").await.is_empty());
}

pub(crate) async fn puts_replace(engine: &dyn Engine) {
    engine.apply(vec![put("a", "Old", "ferry")]).await.unwrap();
    engine.apply(vec![put("a", "New", "tram")]).await.unwrap();
    assert!(find(engine, "ferry").await.is_empty());
    assert_eq!(find(engine, "tram").await, ["a"]);
    assert_eq!(engine.status().await.unwrap().documents, 1);
    let found = engine
        .fetch(id("a"), ReaderIdentity::everyone())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.title, "New");
}

pub(crate) async fn removes_forget(engine: &dyn Engine) {
    fill(engine, &["ferry", "ferry", "ferry"]).await;
    engine
        .apply(vec![remove("d1"), remove("never-there")])
        .await
        .unwrap();
    assert_eq!(find(engine, "ferry").await, ["d0", "d2"]);
    assert!(
        engine
            .fetch(id("d1"), ReaderIdentity::everyone())
            .await
            .unwrap()
            .is_none()
    );
    engine
        .apply(vec![remove("d0"), remove("d2")])
        .await
        .unwrap();
    assert!(find(engine, "ferry").await.is_empty());
    assert_eq!(engine.status().await.unwrap().documents, 0);
}

pub(crate) async fn a_batch_applies_in_its_order(engine: &dyn Engine) {
    let changes = vec![
        put("a", "T", "one"),
        put("a", "T", "two"),
        put("b", "T", "one"),
        remove("b"),
        remove("c"),
        put("c", "T", "one"),
    ];
    engine.apply(changes).await.unwrap();
    assert_eq!(find(engine, "one").await, ["c"]);
    assert_eq!(find(engine, "two").await, ["a"]);
    assert_eq!(engine.status().await.unwrap().documents, 2);
}

pub(crate) async fn a_refused_batch_changes_nothing(engine: &dyn Engine) {
    engine.apply(vec![put("a", "T", "ferry")]).await.unwrap();
    let mut broken = document("c", "T", "tram");
    broken.source = "x".repeat(MAX_SOURCE_BYTES + 1);
    let changes = vec![
        remove("a"),
        put("b", "T", "tram"),
        DocumentChange::Put(broken),
    ];
    let refused = engine.apply(changes).await;
    assert!(matches!(refused, Err(SearchError::TooLarge { .. })));
    assert_eq!(find(engine, "ferry tram").await, ["a"]);
    assert_eq!(engine.status().await.unwrap().generation, Generation(1));
}

pub(crate) async fn a_batch_without_changes_makes_no_generation(engine: &dyn Engine) {
    assert_eq!(engine.apply(Vec::new()).await.unwrap(), Generation(0));
    engine.apply(vec![put("a", "T", "ferry")]).await.unwrap();
    assert_eq!(engine.apply(Vec::new()).await.unwrap(), Generation(1));
}

pub(crate) async fn generations_count_up(engine: &dyn Engine) {
    for expected in 1..=12 {
        let changes = vec![
            put("a", "T", "ferry"),
            put(&format!("n{expected}"), "T", "ferry"),
        ];
        assert_eq!(engine.apply(changes).await.unwrap(), Generation(expected));
        assert_eq!(
            engine.status().await.unwrap().generation,
            Generation(expected)
        );
        assert_eq!(find(engine, "ferry").await.len() as u64, expected + 1);
    }
}

pub(crate) async fn a_query_without_words_finds_nothing(engine: &dyn Engine) {
    fill(engine, &["ferry ? * ( ) \" : \u{1F980}"]).await;
    for query in [
        "",
        " ",
        "\t\n",
        "?",
        "*",
        "()",
        "\"\"",
        ":",
        "-",
        "\u{1F980}",
        "\0",
        "\u{301}",
    ] {
        assert!(find(engine, query).await.is_empty(), "{query:?}");
    }
}

pub(crate) async fn any_word_is_enough(engine: &dyn Engine) {
    fill(engine, &["ferry", "tram", "bus"]).await;
    assert_eq!(find_all(engine, "ferry OR tram").await, ["d0", "d1"]);
    assert_eq!(find_all(engine, "+ferry -bus").await, ["d0", "d2"]);
    assert_eq!(find_all(engine, "title:\"ferry\"~3^2").await, ["d0"]);
}

pub(crate) async fn forms_of_a_word_are_one_word(engine: &dyn Engine) {
    fill(engine, &["The minister's ferries were running."]).await;
    for query in ["ferry", "FERRIES", "run", "runs", "ministers", "Minister’s"] {
        assert_eq!(find(engine, query).await, ["d0"], "{query}");
    }
}

pub(crate) async fn accents_do_not_matter(engine: &dyn Engine) {
    fill(
        engine,
        &["Café Łódź Straße", "cafe lodz strasse", "Cafe\u{301}"],
    )
    .await;
    for query in ["cafe", "café", "CAFÉ", "cafe\u{301}"] {
        assert_eq!(find_all(engine, query).await, ["d0", "d1", "d2"], "{query}");
    }
    assert_eq!(find_all(engine, "łódź strasse").await, ["d0", "d1"]);
}

pub(crate) async fn words_that_say_nothing_do_not_count(engine: &dyn Engine) {
    fill(
        engine,
        &[
            "What is the plan for it?",
            "The ferry.",
            "To be, or not to be.",
        ],
    )
    .await;
    assert_eq!(find(engine, "what is the ferry").await, ["d1"]);
    assert_eq!(
        find(engine, "to be or not to be").await.first().unwrap(),
        "d2"
    );
}

pub(crate) async fn scripts_without_spaces_are_found(engine: &dyn Engine) {
    let texts = [
        "東京都の予算について説明した。",
        "한국의 예산안을 심의했다",
        "งบประมาณของประเทศ",
        "ferry",
    ];
    fill(engine, &texts).await;
    for (query, expected) in [
        ("予算", "d0"),
        ("東京都", "d0"),
        ("都", "d0"),
        ("東京都の予算について説明した。", "d0"),
        ("예산안", "d1"),
        ("한국", "d1"),
        ("ประเทศ", "d2"),
    ] {
        assert_eq!(find(engine, query).await, [expected], "{query}");
    }
    assert!(find(engine, "京東").await.is_empty());
}

pub(crate) async fn other_scripts_are_found(engine: &dyn Engine) {
    fill(
        engine,
        &[
            "Бюджет страны",
            "προϋπολογισμός",
            "ميزانية الدولة",
            "बजट भाषण",
            "תקציב",
        ],
    )
    .await;
    for (query, expected) in [
        ("БЮДЖЕТ", "d0"),
        ("ΠΡΟΫΠΟΛΟΓΙΣΜΟΣ", "d1"),
        ("مِيزانية", "d2"),
        ("बजट", "d3"),
        ("תַּקְצִיב", "d4"),
    ] {
        assert_eq!(find(engine, query).await, [expected], "{query}");
    }
}

pub(crate) async fn text_and_list_fields_are_found(engine: &dyn Engine) {
    let tags = DocumentValue::List(vec!["ferries".to_owned(), "islands".to_owned()]);
    let changes = vec![
        put_with("a", DocumentValue::Text("Aurel Whitmarron".to_owned())),
        put_with("b", tags),
        put_with("c", DocumentValue::Bool(true)),
    ];
    engine.apply(changes).await.unwrap();
    assert_eq!(find(engine, "whitmarron").await, ["a"]);
    assert_eq!(find(engine, "island").await, ["b"]);
    assert!(find(engine, "true").await.is_empty());
}

pub(crate) async fn a_title_match_comes_first(engine: &dyn Engine) {
    let body = "The ferry to the island was late again this week.";
    let changes = vec![
        put("a", "Weekly notes", body),
        put(
            "b",
            "Ferry timetable",
            "The boat to the island was late again this week.",
        ),
        put(
            "c",
            "Weekly notes",
            "Nothing happened on the island this week at all.",
        ),
    ];
    engine.apply(changes).await.unwrap();
    assert_eq!(find(engine, "ferry").await, ["b", "a"]);
}

pub(crate) async fn a_phrase_comes_first(engine: &dyn Engine) {
    let texts = [
        "The court was closed while the press waited for the freedom to enter and speak.",
        "The court was closed while the public waited for the freedom of the press to enter.",
        "The press and the court waited; closed was the freedom to enter the public house.",
    ];
    fill(engine, &texts).await;
    assert_eq!(
        find(engine, "freedom of the press").await.first().unwrap(),
        "d1"
    );
}

pub(crate) async fn rare_words_count_more(engine: &dyn Engine) {
    let texts = [
        "house ferry",
        "house tram",
        "house bus",
        "house rail",
        "lighthouse keeper",
    ];
    fill(engine, &texts).await;
    assert_eq!(find(engine, "house keeper").await.first().unwrap(), "d4");
}

pub(crate) async fn more_of_the_query_comes_first(engine: &dyn Engine) {
    fill(
        engine,
        &[
            "ferry alpha beta",
            "ferry timetable beta",
            "timetable alpha beta",
        ],
    )
    .await;
    assert_eq!(find(engine, "ferry timetable").await.first().unwrap(), "d1");
}

pub(crate) async fn each_document_is_one_hit(engine: &dyn Engine) {
    let mut document = document("a", "ferry ferry", "ferry ferry ferry. ferry!");
    document
        .fields
        .push(("ferry".to_owned(), DocumentValue::Text("ferry".to_owned())));
    engine
        .apply(vec![DocumentChange::Put(document)])
        .await
        .unwrap();
    assert_eq!(find(engine, "ferry ferries ferry").await, ["a"]);
}

pub(crate) async fn equals_come_in_the_order_of_their_ids(engine: &dyn Engine) {
    // Neither insertion order nor batches may show in the order of ties, however many there are.
    let names: Vec<String> = (0..260)
        .map(|n| format!("n{:03}", (n * 37) % 260))
        .collect();
    for batch in names.chunks(100) {
        let changes = batch.iter().map(|name| put(name, "Same", "ferry words"));
        engine.apply(changes.collect()).await.unwrap();
    }
    for limit in [1, 3, MAX_LIMIT] {
        let expected: Vec<String> = (0..limit).map(|n| format!("n{n:03}")).collect();
        let found = hits(engine, "ferry", limit).await;
        let found: Vec<String> = found.iter().map(|hit| hit.id.to_string()).collect();
        assert_eq!(found, expected);
    }
}

pub(crate) async fn the_limit_holds(engine: &dyn Engine) {
    let changes = (0..=MAX_LIMIT)
        .map(|n| put(&format!("n{n}"), "T", "ferry"))
        .collect();
    engine.apply(changes).await.unwrap();
    for (requested, given) in [
        (0, 1),
        (1, 1),
        (7, 7),
        (100, 100),
        (101, 100),
        (usize::MAX, 100),
    ] {
        assert_eq!(
            hits(engine, "ferry", requested).await.len(),
            given,
            "{requested}"
        );
    }
}

pub(crate) async fn scores_fall_within_their_range(engine: &dyn Engine) {
    let filler = "word ".repeat(300);
    let texts = [
        "ferry ferry ferry",
        "ferry and a bus",
        filler.as_str(),
        "a ferry by the way",
    ];
    fill(engine, &texts).await;
    let hits = hits(engine, "ferry word bus", 10).await;
    assert_eq!(hits.len(), 4);
    assert!(hits.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0));
    assert!(hits.is_sorted_by(|left, right| left.score >= right.score));
}

pub(crate) async fn snippets_show_why_and_stay_short(engine: &dyn Engine) {
    let filler = "Nothing of note\r\nwas said \u{7}on that day.\n\n".repeat(200);
    let texts = [
        format!("{filler}The ferry timetable was cut.\n{filler}"),
        format!("ferry {}", "x".repeat(5_000)),
        "東京都の予算について説明した。".repeat(100),
        "ferry".to_owned(),
    ];
    fill(engine, &texts.each_ref().map(String::as_str)).await;
    let found = hits(engine, "ferry timetable 予算", 10).await;
    assert_eq!(found.len(), 4);
    for hit in &found {
        assert!(
            hit.snippet.chars().count() <= MAX_SNIPPET_CHARS,
            "{}",
            hit.snippet
        );
        assert!(!hit.snippet.contains(char::is_control), "{:?}", hit.snippet);
    }
    let snippet = |name: &str| &found.iter().find(|hit| hit.id == id(name)).unwrap().snippet;
    assert!(
        snippet("d0").contains("The ferry timetable was cut."),
        "{}",
        snippet("d0")
    );
    assert!(snippet("d0").starts_with('…') && snippet("d0").ends_with('…'));
    assert!(snippet("d2").contains("予算"));
    assert_eq!(snippet("d3"), "ferry");
}

pub(crate) async fn titles_of_hits_stay_short(engine: &dyn Engine) {
    let title = format!("ferry\n{}", "word ".repeat(1_000));
    engine.apply(vec![put("a", &title, "text")]).await.unwrap();
    let hit = hits(engine, "ferry", 1).await.remove(0);
    assert!(hit.title.chars().count() <= MAX_TITLE_CHARS);
    assert!(hit.title.starts_with("ferry word word"));
    let found = engine
        .fetch(id("a"), ReaderIdentity::everyone())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.title, title);
}

pub(crate) async fn the_inventory_lists_everything(engine: &dyn Engine) {
    let mut bare = document("bare", "", "");
    bare.source = String::new();
    bare.hash = String::new();
    let changes = vec![
        put("b", "T", "x"),
        put("ä", "T", "y"),
        DocumentChange::Put(bare),
    ];
    engine.apply(changes).await.unwrap();
    engine
        .apply(vec![put("a", "T", "x"), remove("b"), put("ä", "T", "zzz")])
        .await
        .unwrap();
    let held = |name: &str, source: &str, hash: String| InventoryEntry {
        id: id(name),
        source: source.to_owned(),
        hash,
    };
    let expected = [
        held("a", "folder/a.md", format!("{:064x}", 1)),
        held("bare", "", String::new()),
        held("ä", "folder/ä.md", format!("{:064x}", 3)),
    ];
    assert_eq!(engine.inventory().await.unwrap(), expected);
}

pub(crate) async fn fetch_gives_back_every_field(engine: &dyn Engine) {
    let mut full = document(
        "a/b#c d",
        "A \"title\"\n",
        "line\r\n\u{0}\u{1F980}\\ end\u{2028}",
    );
    full.url = Some("https://example.org/a?b=c#d".to_owned());
    full.date = Some("2024-05-01".to_owned());
    full.fields = vec![
        ("zeta".to_owned(), DocumentValue::Text("ünïcode".to_owned())),
        ("alpha".to_owned(), DocumentValue::Number(-0.1)),
        ("alpha".to_owned(), DocumentValue::Number(f64::INFINITY)),
        ("tiny".to_owned(), DocumentValue::Number(5e-324)),
        ("yes".to_owned(), DocumentValue::Bool(true)),
        (
            "on".to_owned(),
            DocumentValue::Date("2024-05-02".to_owned()),
        ),
        (
            "tags".to_owned(),
            DocumentValue::List(vec!["b".to_owned(), String::new(), "a".to_owned()]),
        ),
        (String::new(), DocumentValue::List(Vec::new())),
    ];
    let empty = document("empty", "", "");
    let changes = vec![
        DocumentChange::Put(full.clone()),
        DocumentChange::Put(empty.clone()),
    ];
    engine.apply(changes).await.unwrap();
    for expected in [full, empty] {
        let found = engine
            .fetch(expected.id.clone(), ReaderIdentity::everyone())
            .await
            .unwrap();
        assert_eq!(*found.unwrap(), expected);
    }
}

pub(crate) async fn fetch_of_nothing_is_nothing(engine: &dyn Engine) {
    fill(engine, &["ferry"]).await;
    for name in ["d", "d00", "D0", "ferry", "folder/d0.md"] {
        assert!(
            engine
                .fetch(id(name), ReaderIdentity::everyone())
                .await
                .unwrap()
                .is_none(),
            "{name}"
        );
    }
}

pub(crate) async fn status_counts(engine: &dyn Engine) {
    fill(engine, &["a", "b", "c"]).await;
    engine.apply(vec![remove("d0")]).await.unwrap();
    let status = engine.status().await.unwrap();
    assert_eq!((status.documents, status.generation), (2, Generation(2)));
    assert_eq!(
        (status.lexical, status.vectors),
        (PartState::Ready, PartState::Absent)
    );
}

pub(crate) async fn work_not_waited_for_is_not_begun(engine: &dyn Engine) {
    drop(engine.apply(vec![put("a", "T", "ferry")]));
    assert_eq!(engine.status().await.unwrap().documents, 0);
}
