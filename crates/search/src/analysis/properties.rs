//! Property tests of text analysis: invariants that hold for any input.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Generates words and fragments in combinations that tokenizing could get wrong.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => select(vec![
            "ferry", "Ferries", "readFile", "read_file", "HTTPServer2", "std::fs", "a/b.md", "U.S.",
            "don't", "l'été", "café", "cafe\u{301}", "Straße", "İstanbul", "ığdır", "Бюджета", "ё",
            "ελληνικά", "العربية", "हिन्दी", "東京都", "アジア", "ｶﾞ", "예산안을", "ภาษาไทย", "กำ", "မြန်မာ",
            "ខ្មែរ", "ລາວ", "\u{FDFA}", "\u{200D}", "\u{301}", "1.5", "-", "_", "::", ".", "'s", "\n",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[\u{0}-\u{2FF}]{0,9}",
        1 => "[\u{E00}-\u{EFF}\u{1000}-\u{109F}\u{1780}-\u{17FF}]{0,9}",
        1 => "[\u{3040}-\u{30FF}\u{4E00}-\u{4E40}\u{AC00}-\u{AC40}\u{FF66}-\u{FF9F}]{0,9}",
    ];
    (vec(piece, 0..9), select(vec![" ", "", "-"])).prop_map(|(pieces, by)| pieces.join(by))
}

fn language() -> impl Strategy<Value = Language> {
    select(Language::ALL.to_vec())
}

fn indexed(text: &str, language: Language) -> HashSet<String> {
    let mut terms = TermStream::new(text, AnalysisMode::Index, language);
    let mut found = HashSet::new();
    while let Some(term) = terms.advance() {
        found.insert(term.text.to_owned());
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn terms_stand_in_the_text_in_its_order(
        text in text(),
        language in language(),
        mode in select(vec![AnalysisMode::Index, AnalysisMode::Query]),
    ) {
        let mut terms = TermStream::new(&text, mode, language);
        let mut last = (0, 0);
        while let Some(term) = terms.advance() {
            prop_assert!(text.get(term.span.clone()).is_some_and(|written| !written.is_empty()));
            prop_assert!(!term.text.is_empty() && !term.word.is_empty());
            prop_assert!(term.text.chars().count() <= MAX_TERM_CHARS);
            if mode == AnalysisMode::Index {
                prop_assert!(last <= (term.span.start, term.position));
                last = (term.span.start, term.position);
            }
        }
    }

    #[test]
    fn any_text_has_a_language(title in text(), text in text()) {
        let found = detect(&title, &text);
        prop_assert_eq!(detect(&title, &text), found);
    }

    #[test]
    fn words_of_a_document_find_it(
        words in vec(select(vec![
            "Ferries", "readFile", "read_file", "HTTPServer2", "std::fs", "U.S.", "don't", "l'été",
            "mangée", "Straße", "İSTANBUL", "ığdır", "Бюджета", "закони", "Ελληνικά", "العربية",
            "हिन्दी", "东京", "예산안을", "budget", "Häuser", "adatbázisról", "zażółć",
        ]), 1..12),
        from in 0_usize..12,
        length in 1_usize..4,
        language in language(),
        others in vec(language(), 0..4),
    ) {
        let document = indexed(&words.join(" "), language);
        let part: Vec<&str> = words.into_iter().skip(from).take(length).collect();
        let mut languages = others;
        languages.push(language);
        for term in query_terms(&part.join(" "), 64, &languages) {
            let is_found = term.forms.iter().any(|form| document.contains(form));
            prop_assert!(is_found, "{:?} in {:?}", term, document);
        }
    }

    #[test]
    fn a_word_without_its_accents_finds_the_word(
        word in select(vec![
            "mangée", "abandonnées", "canción", "ação", "città", "Häuser", "adatbázisról", "zażółć",
            "adaletbakanlığı", "administrația", "naïve", "förändring", "Łódź", "århundrede",
        ]),
        language in language(),
    ) {
        let mut typed = String::new();
        fold(word, MAX_TERM_CHARS, &mut typed);
        let document = indexed(word, language);
        for term in query_terms(&typed, 64, &[language]) {
            let is_found = term.forms.iter().any(|form| document.contains(form));
            prop_assert!(is_found, "{:?} in {:?}", term, document);
        }
    }

    #[test]
    fn two_characters_of_an_unspaced_document_find_it(
        run in prop_oneof![
            "[\u{4E00}-\u{4E30}の東京都予算]{2,600}",
            "[ぁ-んァ-ヶ東京都予算]{2,40}",
            "[가-깋예산안을의]{2,40}",
            "[ก-ฮะาเแโไ]{2,600}",
            "[က-အ]{2,40}",
        ],
        from in 0_usize..600,
        length in 2_usize..40,
    ) {
        let count = run.chars().count();
        let from = from % (count - 1);
        let part: String = run.chars().skip(from).take(length).collect();
        let document = indexed(&run, Language::English);
        let terms = query_terms(&part, 64, &[Language::English]);
        prop_assert!(!terms.is_empty());
        for term in &terms {
            let is_long = term.text().chars().count() > 2;
            prop_assert!(is_long || document.contains(term.text()), "{:?}", term);
        }
        prop_assert!(terms.iter().any(|term| document.contains(term.text())), "{part}");
    }
}
