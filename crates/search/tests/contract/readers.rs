//! The contract of permissions: for readers who may not see a document it does not exist, in answers of any
//! kind.

use std::collections::BTreeSet;

use docent_search::{
    AllowedReaders, Day, Document, DocumentChange, DocumentValue, Engine, FieldTest, Filter,
    Principal, Query, RankingMethod, ReaderIdentity, SearchResults, SortOrder, grammar,
};

use crate::meanings::embed_all;
use crate::shelf::{document, id, ids, put, remove};

pub(crate) fn only(names: &[&str]) -> AllowedReaders {
    let named = names.iter().map(|name| Principal::parse(name).unwrap());
    AllowedReaders::Only(named.collect())
}

pub(crate) fn holder(names: &[&str]) -> ReaderIdentity {
    ReaderIdentity::holder(names.iter().map(|name| Principal::parse(name).unwrap()))
}

fn put_for(name: &str, text: &str, readers: AllowedReaders) -> DocumentChange {
    DocumentChange::Put(Document {
        readers,
        ..document(name, "Untitled", text)
    })
}

async fn found(engine: &dyn Engine, text: &str, reader: &ReaderIdentity) -> BTreeSet<String> {
    let query = Query::new(text, 100, reader.clone());
    names(&engine.search(query).await.unwrap())
}

fn names(found: &SearchResults) -> BTreeSet<String> {
    ids(found).into_iter().map(str::to_owned).collect()
}

/// Accounts for the treasury, letters for the clerk, notices for everyone and one paper for nobody.
async fn archive(engine: &dyn Engine) {
    let fact = |name: &str, value: &str| (name.to_owned(), DocumentValue::Text(value.to_owned()));
    let rows = [
        (
            "notice",
            "The ferry is late.",
            "2024-05-01",
            vec![fact("kind", "Notice")],
            AllowedReaders::Everyone,
        ),
        (
            "account",
            "The ferry costs a quintessential sum.",
            "2024-05-03",
            vec![fact("kind", "Account"), fact("ledger", "Amber")],
            only(&["group:treasury", "group:audit"]),
        ),
        (
            "letter",
            "Dear clerk, the ferry sank.",
            "2024-05-02",
            vec![fact("kind", "Letter")],
            only(&["email:clerk@isle.example"]),
        ),
        (
            "sealed",
            "The ferry was never ours.",
            "2024-05-04",
            vec![fact("kind", "Sealed"), fact("seal", "Red")],
            only(&[]),
        ),
    ];
    let puts = rows.map(|(name, text, date, fields, readers)| {
        DocumentChange::Put(Document {
            date: Some(date.to_owned()),
            fields,
            readers,
            ..document(name, "Untitled", text)
        })
    });
    engine.apply(puts.to_vec()).await.unwrap();
}

/// Readers of the archive, each with the documents it sees, the latest last.
fn crowd() -> [(ReaderIdentity, Vec<&'static str>); 6] {
    [
        (ReaderIdentity::everyone(), vec!["notice"]),
        (holder(&["group:other"]), vec!["notice"]),
        (holder(&["group:treasury"]), vec!["notice", "account"]),
        (
            holder(&["email:clerk@isle.example"]),
            vec!["notice", "letter"],
        ),
        (
            holder(&["email:clerk@isle.example", "group:audit", "group:x"]),
            vec!["notice", "letter", "account"],
        ),
        (
            ReaderIdentity::owner(),
            vec!["notice", "letter", "account", "sealed"],
        ),
    ]
}

pub(crate) async fn each_reader_finds_and_counts_what_is_for_it(engine: &dyn Engine) {
    archive(engine).await;
    for (reader, seen) in crowd() {
        let facets = vec!["kind".to_owned(), "seal".to_owned()];
        let query = Query::new("ferry", 100, reader.clone()).facets(facets);
        let answer = engine.search(query.count_total()).await.unwrap();
        let expected: BTreeSet<_> = seen.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(names(&answer), expected, "{reader:?}");
        assert_eq!(answer.total, Some(seen.len() as u64));
        let always = (Day::new(1, 1, 1).unwrap(), Day::new(9999, 12, 31).unwrap());
        let query = Query::new("ferry", 1, reader.clone());
        let days = engine
            .count_date_ranges(query, "date".to_owned(), vec![always])
            .await;
        assert_eq!(days.unwrap(), [seen.len() as u64], "{reader:?}");
        assert_eq!(answer.facets[0].values.len(), seen.len());
        let is_owner = reader == ReaderIdentity::owner();
        assert_eq!(answer.facets[1].values.is_empty(), !is_owner);
        let only_secret = Query::new("quintessential", 100, reader.clone());
        let answer = engine.search(only_secret.count_total()).await.unwrap();
        let sees = seen.contains(&"account");
        assert_eq!(answer.total, Some(u64::from(sees)), "{reader:?}");
        assert_eq!(answer.hits.len(), usize::from(sees));
    }
}

pub(crate) async fn each_reader_fetches_what_is_for_it(engine: &dyn Engine) {
    archive(engine).await;
    for (reader, seen) in crowd() {
        for name in ["notice", "account", "letter", "sealed", "never"] {
            let fetched = engine.fetch(id(name), reader.clone()).await.unwrap();
            assert_eq!(fetched.is_some(), seen.contains(&name), "{name} {reader:?}");
        }
    }
    let fetched = engine
        .fetch(id("account"), ReaderIdentity::owner())
        .await
        .unwrap();
    let readers = &fetched.unwrap().readers;
    assert_eq!(*readers, only(&["group:audit", "group:treasury"]));
    let fetched = engine
        .fetch(id("sealed"), ReaderIdentity::owner())
        .await
        .unwrap();
    assert_eq!(fetched.unwrap().readers, only(&[]));
}

pub(crate) async fn each_reader_has_a_catalog_of_its_own(engine: &dyn Engine) {
    archive(engine).await;
    // Checked twice, since what is cached for one reader must not be shown to the next.
    for (reader, seen) in crowd().into_iter().chain(crowd()) {
        let catalog = engine.catalog(reader.clone()).await.unwrap();
        assert_eq!(catalog.documents, seen.len() as u64, "{reader:?}");
        assert_eq!(
            catalog.field("ledger").is_some(),
            seen.contains(&"account"),
            "{reader:?}"
        );
        assert_eq!(catalog.field("seal").is_some(), seen.contains(&"sealed"));
        let revealed = format!("{catalog:?}");
        for (word, name) in [
            ("Amber", "account"),
            ("Red", "sealed"),
            ("Letter", "letter"),
        ] {
            assert_eq!(
                revealed.contains(word),
                seen.contains(&name),
                "{word} {reader:?}"
            );
        }
        // For readers to whom the field does not exist, its name is a word like any other.
        let today = Day::new(2024, 6, 30).unwrap();
        let parsed = grammar::parse("ledger:Amber", &catalog, today);
        assert_eq!(parsed.filter.is_some(), seen.contains(&"account"));
    }
}

pub(crate) async fn lists_and_filters_are_of_what_is_seen(engine: &dyn Engine) {
    archive(engine).await;
    let is = |kind: &str| Filter::Field {
        name: "kind".to_owned(),
        test: FieldTest::Is(kind.to_owned()),
    };
    for (reader, seen) in crowd() {
        for (sort, is_reversed) in [(SortOrder::Newest, true), (SortOrder::Oldest, false)] {
            let query = Query::new("ferry", 100, reader.clone()).sort(sort);
            let mut expected = seen.clone();
            if is_reversed {
                expected.reverse();
            }
            let found = engine.search(query).await.unwrap();
            let by_day = |name: &&str| expected.iter().position(|one| one == name);
            assert!(ids(&found).is_sorted_by_key(by_day), "{reader:?}");
            assert_eq!(found.hits.len(), expected.len());
        }
        let without = Query::new("", 100, reader.clone()).filter(Filter::Not(is("Notice").into()));
        let listed = engine.search(without.count_total()).await.unwrap();
        assert_eq!(listed.total, Some(seen.len() as u64 - 1), "{reader:?}");
        assert_eq!(listed.hits.len(), seen.len() - 1);
        for (kind, name) in [("Account", "account"), ("Sealed", "sealed")] {
            let query = Query::new("ferry", 100, reader.clone()).filter(is(kind));
            let found = engine.search(query).await.unwrap();
            assert_eq!(found.hits.len(), usize::from(seen.contains(&name)));
        }
        let catalog = engine.catalog(ReaderIdentity::owner()).await.unwrap();
        let today = Day::new(2024, 6, 30).unwrap();
        for (written, name) in [
            ("\"quintessential sum\"", "account"),
            ("ferry \"never ours\"", "sealed"),
            ("ferry -late -sank -costs", "sealed"),
        ] {
            let parsed = grammar::parse(written, &catalog, today);
            let query = Query::parsed(&parsed, 100, reader.clone());
            let found = engine.search(query).await.unwrap();
            let expected = usize::from(seen.contains(&name));
            assert_eq!(found.hits.len(), expected, "{written} {reader:?}");
        }
    }
}

pub(crate) async fn slips_and_beginnings_are_of_what_is_seen(engine: &dyn Engine) {
    let secret = || only(&["group:a"]);
    let puts = vec![
        put("parlour", "Untitled", "A parlour in the harbour."),
        put_for("parliament", "The parliament sat.", secret()),
        put("fern", "Untitled", "Ferric fern."),
        put_for("ferrix", "The ferrix runs.", secret()),
        put_for("hidden", "A zweihander of the harbour.", secret()),
    ];
    engine.apply(puts).await.unwrap();
    let (everyone, member) = (ReaderIdentity::everyone(), holder(&["group:a"]));
    for (text, all, members) in [
        ("parlia", &[][..], &["parliament"][..]),
        ("parlaiment", &[], &["parliament"]),
        ("parl", &["parlour"], &["parliament", "parlour"]),
        ("zweihandr", &[], &["hidden"]),
        // A word that only restricted documents have is a typo for those who may not see them.
        ("ferrix", &["fern"], &["ferrix"]),
        ("harbour", &["parlour"], &["hidden", "parlour"]),
    ] {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let expected: BTreeSet<String> = set(all);
        assert_eq!(found(engine, text, &everyone).await, expected, "{text}");
        let expected: BTreeSet<String> = set(members);
        assert_eq!(found(engine, text, &member).await, expected, "{text}");
    }
}

pub(crate) async fn hidden_documents_take_no_place_in_the_results(engine: &dyn Engine) {
    let mut puts = vec![put(
        "z",
        "Untitled",
        &format!("ferry {}", "other ".repeat(50)),
    )];
    for n in 0..300 {
        puts.push(put_for(
            &format!("a{n}"),
            "Ferry ferry ferry.",
            only(&["group:a"]),
        ));
    }
    engine.apply(puts).await.unwrap();
    for reader in [ReaderIdentity::everyone(), holder(&["group:b"])] {
        let query = Query::new("ferry", 1, reader.clone());
        let answer = engine.search(query.count_total()).await.unwrap();
        assert_eq!((ids(&answer), answer.total), (vec!["z"], Some(1)));
        let next = Query::new("ferry", 1, reader).offset(1);
        assert!(engine.search(next).await.unwrap().hits.is_empty());
    }
    // So many words that only the rarest retrieve documents: invisible documents must not count as rare.
    let words: String = (0..40).map(|n| format!("q{n}w ")).collect();
    let puts = vec![
        put_for("all", &words, only(&["group:a"])),
        put("last", "Untitled", "q39w and ferry"),
    ];
    engine.apply(puts).await.unwrap();
    let seen = found(engine, &words, &ReaderIdentity::everyone()).await;
    assert_eq!(seen, BTreeSet::from(["last".to_owned()]));
}

pub(crate) async fn readers_change_with_the_generation(engine: &dyn Engine) {
    let text = "The ferry sails.";
    let (everyone, member) = (ReaderIdentity::everyone(), holder(&["group:a"]));
    engine
        .apply(vec![put("a", "Untitled", text)])
        .await
        .unwrap();
    assert_eq!(found(engine, "ferry", &everyone).await.len(), 1);
    for (readers, for_all, for_members) in [
        (only(&["group:a"]), 0, 1),
        (only(&["group:b"]), 0, 0),
        (AllowedReaders::Everyone, 1, 1),
        (only(&[]), 0, 0),
        (only(&["group:b", "group:a"]), 0, 1),
    ] {
        let change = put_for("a", text, readers.clone());
        engine.apply(vec![change]).await.unwrap();
        for (reader, expected) in [(&everyone, for_all), (&member, for_members)] {
            assert_eq!(found(engine, "ferry", reader).await.len(), expected);
            let fetched = engine.fetch(id("a"), reader.clone()).await.unwrap();
            assert_eq!(fetched.iter().count(), expected, "{readers:?}");
            let catalog = engine.catalog(reader.clone()).await.unwrap();
            assert_eq!(catalog.documents, expected as u64);
        }
    }
    let puts = vec![remove("a"), put("b", "Untitled", text)];
    engine.apply(puts).await.unwrap();
    assert_eq!(found(engine, "ferry", &everyone).await.len(), 1);
}

pub(crate) async fn meanings_are_of_what_is_seen(engine: &dyn Engine) {
    let mut puts = vec![
        put("ship", "Untitled", "A ship sails."),
        put_for("boat", "A boat boat boat.", only(&["group:a"])),
    ];
    for n in 0..250 {
        puts.push(put_for(&format!("x{n}"), "A boat.", only(&["group:b"])));
    }
    engine.apply(puts).await.unwrap();
    embed_all(engine).await;
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for (reader, seen) in [
        (ReaderIdentity::everyone(), vec!["ship"]),
        (holder(&["group:a"]), vec!["boat", "ship"]),
    ] {
        for method in [RankingMethod::Hybrid, RankingMethod::Semantic] {
            for text in ["ferry", "a ferry to the isle"] {
                let query = Query::new(text, 100, reader.clone()).method(method);
                let found = names(&engine.search(query).await.unwrap());
                let expected: BTreeSet<String> = set(&seen);
                assert_eq!(found, expected, "{text} {reader:?}");
            }
        }
    }
    let owner = Query::new("ferry", 100, ReaderIdentity::owner()).method(RankingMethod::Semantic);
    assert_eq!(engine.search(owner).await.unwrap().hits.len(), 100);
}
