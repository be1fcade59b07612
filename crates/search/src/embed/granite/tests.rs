//! Tests of the model as a whole, against golden vectors that the original model computed in full precision.

use super::*;

type GoldenCase<T> = (String, Vec<T>);

fn golden<T: serde::de::DeserializeOwned>(lines: &str) -> Vec<GoldenCase<T>> {
    let parse = |line| serde_json::from_str(line).unwrap();
    lines.lines().map(parse).collect()
}

fn vectors() -> Vec<GoldenCase<f32>> {
    golden(include_str!(
        "../../../models/granite-embedding-30m-english/golden/vectors.jsonl"
    ))
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn held_to(name: &str) -> GraniteEmbedder {
    GraniteEmbedder::with_threads(1)
        .with_instructions(name)
        .unwrap()
}

#[test]
fn tokens_are_those_of_the_models_own_tokenizer() {
    let weights = GraniteWeights::load().unwrap();
    let golden = golden::<u16>(include_str!(
        "../../../models/granite-embedding-30m-english/golden/tokens.jsonl"
    ));
    assert!(golden.len() > 300);
    for (text, tokens) in golden {
        assert_eq!(weights.tokenizer.encode(&text), tokens, "{text:?}");
    }
}

#[test]
fn vectors_are_those_of_the_model_in_full_precision() {
    let granite = GraniteEmbedder::with_threads(2);
    let (texts, expected): (Vec<_>, Vec<_>) = vectors().into_iter().unzip();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = granite.passages(&texts).unwrap();
    let alike: Vec<f32> = found
        .iter()
        .zip(&expected)
        .map(|(a, b)| cosine(a, b))
        .collect();
    let mean = alike.iter().sum::<f32>() / alike.len() as f32;
    assert!(mean > 0.997, "{mean}: {alike:?}");
    assert!(alike.iter().all(|&one| one > 0.99), "{alike:?}");
}

#[test]
fn every_set_of_instructions_gives_the_same_vectors() {
    for (text, expected) in vectors().into_iter().filter(|(text, _)| text.len() < 60) {
        let names = GraniteEmbedder::instructions().into_iter();
        let vectors: Vec<_> = names
            .map(|name| (name, held_to(name).query(&text).unwrap()))
            .collect();
        for (name, vector) in &vectors {
            assert!(cosine(vector, &expected) > 0.99, "{name}: {text:?}");
            // Without fused multiply-add the numbers round differently, and so do their int8 codes.
            if *name != "portable" {
                assert_eq!(vector, &vectors[0].1, "{name}: {text:?}");
            }
        }
    }
}

#[test]
fn a_texts_vector_does_not_depend_on_its_company() {
    let texts = ["one", "two words", "", "and a few more of them", "one"];
    let together = GraniteEmbedder::with_threads(1).passages(&texts).unwrap();
    let apart: Vec<_> = texts
        .iter()
        .map(|text| GraniteEmbedder::with_threads(1).query(text).unwrap())
        .collect();
    assert_eq!(together, apart);
    let many: Vec<&str> = texts.iter().copied().cycle().take(150).collect();
    let vectors = GraniteEmbedder::with_threads(3).passages(&many).unwrap();
    assert_eq!(vectors.len(), many.len());
    for (at, vector) in vectors.iter().enumerate() {
        assert_eq!(vector, &apart[at % texts.len()]);
    }
}

#[test]
fn no_texts_give_no_vectors() {
    assert!(GraniteEmbedder::new().passages(&[]).unwrap().is_empty());
}

#[test]
fn a_related_passage_is_nearer_than_an_unrelated_one() {
    let granite = GraniteEmbedder::with_threads(1);
    let query = granite.query("how do I change a flat tyre").unwrap();
    let near = granite.query("Replacing a punctured wheel on your car");
    let far = granite.query("The history of the printing press");
    assert!(cosine(&query, &near.unwrap()) > cosine(&query, &far.unwrap()) + 0.1);
}

#[test]
fn odd_texts_have_vectors_of_length_one() {
    let granite = GraniteEmbedder::with_threads(2);
    let controls: String = (0..32).map(|code| char::from(code as u8)).collect();
    let long = [
        "x".repeat(200_000),
        "\u{10ffff}".repeat(50_000),
        " ".repeat(100_000),
    ];
    let mut texts = vec![
        "",
        "\0",
        "\u{feff}",
        "\u{301}",
        "<s></s><pad><mask>",
        &controls,
    ];
    texts.extend(long.iter().map(String::as_str));
    for vector in granite.passages(&texts).unwrap() {
        assert_eq!(vector.len(), granite.dimensions());
        assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-4);
    }
}

#[test]
fn a_question_is_read_up_to_128_tokens() {
    let granite = GraniteEmbedder::with_threads(1);
    let words = |count: usize| " word".repeat(count);
    let ask = |text: &str| granite.query(text).unwrap();
    assert_ne!(ask(&words(125)), ask(&words(126)));
    assert_eq!(ask(&words(126)), ask(&(words(126) + " tax house levy")));
}

#[test]
fn a_text_is_read_up_to_512_tokens() {
    let granite = GraniteEmbedder::with_threads(1);
    let words = |count: usize| " word".repeat(count);
    assert_eq!(granite.tokens(&words(509)).unwrap(), 511);
    assert_eq!(granite.tokens(&words(510)).unwrap(), 512);
    assert_eq!(granite.tokens(&words(511)).unwrap(), 512);
    let weights = GraniteWeights::load().unwrap();
    let encode = |text: &str| weights.tokenizer.encode(text);
    assert_eq!(encode(&words(510)), encode(&words(511)));
    assert_ne!(encode(&words(509)), encode(&words(510)));
}

#[test]
fn every_text_is_in_one_batch_and_no_batch_is_too_long() {
    let long = "x".repeat(10_000);
    let some = "y".repeat(4 * (BATCH_TOKENS / 2 - 2));
    let texts = [&some, "", &long, "short", &some, &long, &some];
    let batches = batches(&texts);
    let mut places: Vec<usize> = batches.concat();
    places.sort_unstable();
    assert_eq!(places, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(batches[0].len(), 1, "a long text is alone");
    assert!(
        batches.contains(&vec![6, 4]),
        "two halves fill a batch: {batches:?}"
    );
    assert!(super::batches(&[]).is_empty());
}
