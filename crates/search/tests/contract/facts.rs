//! The contract of metadata fields: filters, lists by day, facet counts and the catalog.

use docent_search::{
    Day, DocumentValue, Engine, FacetCounts, FieldKind, FieldTest, Filter, MAX_DATE_RANGES, Query,
    ReaderIdentity, SortOrder,
};

use crate::shelf::{ask, ids, put, put_facts, remove};

fn text(text: &str) -> DocumentValue {
    DocumentValue::Text(text.to_owned())
}

fn list(items: &[&str]) -> DocumentValue {
    DocumentValue::List(items.iter().map(|item| (*item).to_owned()).collect())
}

async fn debates(engine: &dyn Engine) {
    let party = |name: &str| ("party", text(name));
    let rows = vec![
        put_facts(
            "a",
            "Housing on the island is dear.",
            "2024-05-01",
            &[
                party("Labor"),
                ("tags", list(&["housing", "budget"])),
                ("words", DocumentValue::Number(120.0)),
            ],
        ),
        put_facts(
            "b",
            "Housing needs land.",
            "2024-06-15",
            &[
                party("Greens"),
                ("tags", list(&["housing"])),
                ("words", DocumentValue::Number(80.5)),
            ],
        ),
        put_facts(
            "c",
            "The ferry to the island is late, and housing waits.",
            "2023-12-24",
            &[
                party("labor"),
                ("urgent", DocumentValue::Bool(true)),
                ("words", DocumentValue::Number(-3.0)),
            ],
        ),
        put_facts("d", "The ferry sank.", "", &[party("Libéral")]),
    ];
    engine.apply(rows).await.unwrap();
}

async fn check(engine: &dyn Engine, written: &str, expected: &[&str]) {
    let found = ask(engine, written).await;
    let mut names = ids(&found);
    names.sort_unstable();
    assert_eq!(names, expected, "{written}");
}

pub(crate) async fn filters_narrow(engine: &dyn Engine) {
    debates(engine).await;
    for (written, expected) in [
        ("housing", &["a", "b", "c"][..]),
        ("housing party:Labor", &["a", "c"]),
        ("housing party:LABOR,greens", &["a", "b", "c"]),
        ("housing -party:labor", &["b"]),
        ("ferry party:liberal", &["d"]),
        ("housing tags:budget", &["a"]),
        ("housing -tags:budget", &["b", "c"]),
        ("housing date:2024-05..2024-06", &["a", "b"]),
        ("housing date:2024-05", &["a"]),
        ("housing since:30d", &["b"]),
        ("housing words:>=80.5", &["a", "b"]),
        ("housing words:-5..0", &["c"]),
        ("housing urgent:true", &["c"]),
        ("(party:greens OR tags:budget) housing", &["a", "b"]),
        ("island \"the island is\"", &["a", "c"]),
        ("\"island is late\"", &["c"]),
        ("housing -ferry", &["a", "b"]),
        ("housing -\"needs land\"", &["a", "c"]),
    ] {
        check(engine, written, expected).await;
    }
    engine
        .apply(vec![remove("a"), put("b", "T", "housing")])
        .await
        .unwrap();
    check(engine, "housing party:labor", &["c"]).await;
}

pub(crate) async fn a_filter_alone_lists_the_latest_first(engine: &dyn Engine) {
    debates(engine).await;
    let found = ask(engine, "party:labor,greens,liberal").await;
    assert_eq!(ids(&found), ["b", "a", "c", "d"]);
    assert_eq!(found.total, Some(4));
    assert!(
        found
            .hits
            .iter()
            .all(|hit| hit.score > 0.0 && hit.score <= 1.0)
    );
}

pub(crate) async fn hits_can_be_in_the_order_of_days(engine: &dyn Engine) {
    debates(engine).await;
    for (sort, expected) in [
        (SortOrder::Newest, ["a", "c", "d"]),
        (SortOrder::Oldest, ["c", "a", "d"]),
    ] {
        let query = Query::new("island ferry", 10, ReaderIdentity::everyone()).sort(sort);
        let found = engine.search(query).await.unwrap();
        assert_eq!(ids(&found), expected, "{sort:?}");
    }
    let query = Query::new("island ferry", 1, ReaderIdentity::everyone()).sort(SortOrder::Newest);
    let found = engine.search(query.offset(1)).await.unwrap();
    assert_eq!(ids(&found), ["c"]);
}

pub(crate) async fn everything_is_counted(engine: &dyn Engine) {
    debates(engine).await;
    let query = Query::new("housing", 1, ReaderIdentity::everyone());
    let names = ["party", "tags", "words", "nothing"].map(str::to_owned);
    let found = engine
        .search(query.count_total().facets(names.to_vec()))
        .await
        .unwrap();
    assert_eq!((found.hits.len(), found.total), (1, Some(3)));
    let value = |name: &str, count| (name.to_owned(), count);
    let facet = |field: &str, values| FacetCounts {
        field: field.to_owned(),
        values,
        more: false,
    };
    let expected = [
        facet(
            "party",
            vec![value("Greens", 1), value("Labor", 1), value("labor", 1)],
        ),
        facet("tags", vec![value("housing", 2), value("budget", 1)]),
        facet(
            "words",
            vec![value("-3", 1), value("120", 1), value("80.5", 1)],
        ),
        facet("nothing", vec![]),
    ];
    assert_eq!(found.facets, expected);
}

pub(crate) async fn days_are_counted_by_stretches(engine: &dyn Engine) {
    debates(engine).await;
    let day = |text: &str| Day::parse(text).unwrap();
    let always = (day("0001-01-01"), day("9999-12-31"));
    let newest = engine
        .search(Query::new("island ferry", 10, ReaderIdentity::everyone()).sort(SortOrder::Newest))
        .await
        .unwrap();
    let dates: Vec<Day> = newest
        .hits
        .iter()
        .filter_map(|hit| hit.document.date.as_deref().and_then(Day::parse))
        .collect();
    let (last, first) = (dates[0], dates[1]);
    let before = first.plus_days(-1).unwrap();
    let stretches = vec![always, (first, first), (last, last), (before, before)];
    let query = || Query::new("island ferry", 1, ReaderIdentity::everyone());
    let counted = |query: Query, stretches: Vec<(Day, Day)>| async move {
        let days = engine
            .count_date_ranges(query, "date".to_owned(), stretches)
            .await;
        days.unwrap()
    };
    assert_eq!(counted(query(), stretches).await, [2, 1, 1, 0]);
    let narrowed = query().filter(Filter::Field {
        name: "date".to_owned(),
        test: FieldTest::Date {
            from: Some(last.to_string()),
            to: None,
        },
    });
    assert_eq!(counted(narrowed, vec![always]).await, [1]);
    assert_eq!(counted(query(), Vec::new()).await, [0; 0]);
    let many = vec![always; MAX_DATE_RANGES + 1];
    assert_eq!(counted(query(), many).await.len(), MAX_DATE_RANGES);
    let nothing = engine
        .count_date_ranges(query(), "words".to_owned(), vec![always])
        .await;
    assert_eq!(nothing.unwrap(), [0]);
}

pub(crate) async fn the_catalog_names_the_fields(engine: &dyn Engine) {
    debates(engine).await;
    let catalog = engine.catalog(ReaderIdentity::everyone()).await.unwrap();
    assert_eq!(catalog.documents, 4);
    let kinds: Vec<_> = catalog
        .fields
        .iter()
        .map(|field| (field.name.as_str(), field.kind, field.documents))
        .collect();
    assert_eq!(
        kinds,
        [
            ("party", FieldKind::Keyword, 4),
            ("date", FieldKind::Date, 3),
            ("words", FieldKind::Number, 3),
            ("tags", FieldKind::List, 2),
            ("urgent", FieldKind::Bool, 1),
        ]
    );
    engine.apply(vec![remove("c")]).await.unwrap();
    let catalog = engine.catalog(ReaderIdentity::everyone()).await.unwrap();
    assert_eq!(catalog.documents, 3);
    assert!(catalog.field("urgent").is_none());
}

pub(crate) async fn hits_can_be_passed_over(engine: &dyn Engine) {
    debates(engine).await;
    let all = ask(engine, "housing").await;
    for offset in 0..4 {
        let query = Query::new("housing", 2, ReaderIdentity::everyone()).offset(offset);
        let found = engine.search(query).await.unwrap();
        let expected: Vec<_> = ids(&all).into_iter().skip(offset).take(2).collect();
        assert_eq!(ids(&found), expected);
    }
}

pub(crate) async fn excerpts_come_when_asked_for(engine: &dyn Engine) {
    debates(engine).await;
    let query = Query::new("ferry", 1, ReaderIdentity::everyone());
    let found = engine.search(query.clone()).await.unwrap();
    assert!(found.hits[0].excerpts.is_empty());
    let found = engine.search(query.excerpts()).await.unwrap();
    let excerpt = &found.hits[0].excerpts[0];
    let document = &found.hits[0].document;
    assert_eq!(
        (excerpt.index, excerpt.text.as_str()),
        (0, document.text.as_str())
    );
    assert_eq!(excerpt.range, 0..document.text.len());
}
