//! The contract of multilingual text, and of identifiers in source code.

use docent_search::Engine;

use crate::shelf::{fill, find, find_all};

const ISLANDS: [&str; 8] = [
    "The ferry to the islands was late again this week, and the passengers were not told why.",
    "Die Fähre zu den Inseln kam diese Woche wieder zu spät, und die Fahrgäste wussten nicht warum.",
    "Le ferry pour les îles était encore en retard cette semaine, et les journées ont été annulées.",
    "El barco a las islas llegó tarde otra vez esta semana, y las canciones no se oyeron en el puerto.",
    "Паром на острова на этой неделе снова опоздал, и пассажирам не сказали почему.",
    "Adalara giden vapur bu hafta yine geç kaldı ve yolculara nedeni söylenmedi, çünkü kimse bilmiyordu.",
    "Lautta saarille oli taas myöhässä tällä viikolla, mutta matkustajille ei kerrottu miksi se oli niin.",
    "Το πλοίο για τα νησιά άργησε πάλι αυτή την εβδομάδα, και οι επιβάτες δεν έμαθαν γιατί.",
];

pub(crate) async fn each_document_is_found_in_its_language(engine: &dyn Engine) {
    fill(engine, &ISLANDS).await;
    for (query, expected) in [
        ("island", "d0"),
        ("Insel", "d1"),
        ("Fähren", "d1"),
        ("fahre", "d1"),
        ("journée annulée", "d2"),
        ("journee", "d2"),
        ("canción", "d3"),
        ("cancion", "d3"),
        ("остров", "d4"),
        ("пассажиры", "d4"),
        ("yolcu", "d5"),
        ("saari", "d6"),
        ("matkustaja", "d6"),
        ("νησί", "d7"),
    ] {
        assert_eq!(find(engine, query).await, [expected], "{query}");
    }
}

pub(crate) async fn silent_words_are_those_of_the_question(engine: &dyn Engine) {
    fill(engine, &ISLANDS).await;
    assert_eq!(find(engine, "wo sind die Fahrgäste").await, ["d1"]);
    assert_eq!(find(engine, "où est la journée").await, ["d2"]);
    assert_eq!(find(engine, "where are the islands").await, ["d0"]);
}

pub(crate) async fn words_side_by_side_are_found_in_every_language(engine: &dyn Engine) {
    let mut texts = ISLANDS.to_vec();
    texts.push("Der Hafen ist nicht zu sehen, und der große Nebel liegt auf der Stadt.");
    texts.push("Der große Hafen ist nicht zu sehen, und der Nebel liegt auf der Stadt.");
    fill(engine, &texts).await;
    let found = find(engine, "großer Hafen").await;
    assert_eq!(found.get(..2).unwrap(), ["d9", "d8"]);
}

pub(crate) async fn a_name_is_found_whole_and_in_parts(engine: &dyn Engine) {
    let texts = [
        "The function readConfigFile opens it.",
        "Call read_config_file before anything else.",
        "An HTTPServer listens; see src/net/server.rs for more.",
        "use std::collections::BTreeMap;",
        "Nothing of the kind.",
    ];
    fill(engine, &texts).await;
    for (query, expected) in [
        ("readConfigFile", vec!["d0", "d1"]),
        ("read-config-file", vec!["d0", "d1"]),
        ("config", vec!["d0", "d1"]),
        ("http", vec!["d2"]),
        ("HTTPServer", vec!["d2"]),
        ("server.rs", vec!["d2"]),
        ("tree map", vec!["d3"]),
        ("btreemap", vec!["d3"]),
        ("std::collections", vec!["d3"]),
    ] {
        assert_eq!(find_all(engine, query).await, expected, "{query}");
    }
}

pub(crate) async fn a_part_of_unspaced_text_is_found(engine: &dyn Engine) {
    let texts = [
        "研究生命起源的科学家发表了新的论文",
        "東アジアの広範囲においてみられる気象現象",
        "ทีมรับของแพนเธอร์สได้อันดับที่หกของลีก",
        "국회는 올해의 예산안을 심의하였다",
        "ferry",
    ];
    fill(engine, &texts).await;
    for (query, expected) in [
        ("生命", "d0"),
        ("研究生命", "d0"),
        ("生命的起源", "d0"),
        ("アジア", "d1"),
        ("気象は何", "d1"),
        ("広範囲", "d1"),
        ("อันดับ", "d2"),
        ("แพนเธอร์ส", "d2"),
        ("예산", "d3"),
        ("예산안은", "d3"),
    ] {
        let found = find(engine, query).await;
        assert_eq!(found.first().map(String::as_str), Some(expected), "{query}");
    }
}
