//! Parser of an embeddings response: normalized vectors, in the order of the inputs.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::vectors::MAX_DIMENSIONS;

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
}

/// One vector of a response. `index` is the input it belongs to; servers that leave it out answer in order.
#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: EmbeddingVector,
}

/// A vector in either encoding of the API: a JSON array of numbers, or little-endian floats in base64.
struct EmbeddingVector(Vec<f32>);

/// Parses the vectors of `inputs` inputs, and refuses those that do not have `dimensions` numbers where that is known.
/// The error completes the sentence "the endpoint answered with …".
pub(super) fn read(
    body: &[u8],
    inputs: usize,
    dimensions: Option<usize>,
) -> Result<Vec<Vec<f32>>, String> {
    // The parser's error is left out, because it quotes the response.
    let response: EmbeddingsResponse = serde_json::from_slice(body)
        .map_err(|_| "something that is not a list of embeddings".to_owned())?;
    let found = response.data.len();
    if found != inputs {
        return Err(format!("{found} vectors for {inputs} inputs"));
    }
    let width = dimensions
        .or_else(|| response.data.first().map(|item| item.embedding.0.len()))
        .unwrap_or_default();
    let mut slots: Vec<Option<Vec<f32>>> = vec![None; inputs];
    for (place, item) in response.data.into_iter().enumerate() {
        let index = item.index.unwrap_or(place);
        let slot = slots
            .get_mut(index)
            .ok_or_else(|| format!("a vector for input {index} of {inputs}"))?;
        if slot.is_some() {
            return Err(format!("two vectors for input {index}"));
        }
        *slot = Some(normalized(item.embedding.0, width)?);
    }
    // As many vectors as inputs and no index twice: every slot is filled.
    Ok(slots.into_iter().flatten().collect())
}

fn normalized(mut vector: Vec<f32>, width: usize) -> Result<Vec<f32>, String> {
    let found = vector.len();
    if found == 0 || found > MAX_DIMENSIONS {
        return Err(format!("a vector of {found} numbers"));
    }
    if found != width {
        return Err(format!("a vector of {found} numbers instead of {width}"));
    }
    if vector.iter().any(|number| !number.is_finite()) {
        return Err("a vector with a number that is not finite".to_owned());
    }
    // In double precision the squares of floats cannot overflow.
    let norm = vector
        .iter()
        .map(|number| f64::from(*number).powi(2))
        .sum::<f64>()
        .sqrt();
    if norm == 0.0 {
        return Err("a vector of zeros".to_owned());
    }
    for number in &mut vector {
        *number = (f64::from(*number) / norm) as f32;
    }
    Ok(vector)
}

impl<'de> Deserialize<'de> for EmbeddingVector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FloatsOrBase64Visitor)
    }
}

/// Deserializes either encoding directly, without an intermediate JSON value.
struct FloatsOrBase64Visitor;

impl<'de> Visitor<'de> for FloatsOrBase64Visitor {
    type Value = EmbeddingVector;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers or base64")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<EmbeddingVector, A::Error> {
        let mut numbers = Vec::new();
        // Read as f64: a number beyond f32 becomes infinite, and `normalized` refuses it with its own message.
        while let Some(number) = list.next_element::<f64>()? {
            numbers.push(number as f32);
        }
        Ok(EmbeddingVector(numbers))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<EmbeddingVector, E> {
        let bytes = STANDARD.decode(text).map_err(|_| E::custom("not base64"))?;
        let (floats, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(E::custom("not a whole number of floats"));
        }
        Ok(EmbeddingVector(
            floats.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(data: &str) -> Vec<u8> {
        format!(r#"{{"object":"list","data":{data},"usage":{{}}}}"#).into_bytes()
    }

    #[test]
    fn vectors_come_in_the_order_of_the_inputs_and_of_length_one() {
        let body = response(r#"[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}]"#);
        assert_eq!(
            read(&body, 2, None),
            Ok(vec![vec![0.6, 0.8], vec![0.0, 1.0]])
        );
        let unnumbered = response(r#"[{"embedding":[3,4]},{"embedding":[0,2]}]"#);
        assert_eq!(read(&unnumbered, 2, Some(2)), read(&body, 2, Some(2)));
    }

    #[test]
    fn base64_means_the_same() {
        let bytes: Vec<u8> = [3f32, 4.0].iter().flat_map(|n| n.to_le_bytes()).collect();
        let body = response(&format!(
            r#"[{{"index":0,"embedding":"{}"}}]"#,
            STANDARD.encode(bytes)
        ));
        assert_eq!(read(&body, 1, Some(2)), Ok(vec![vec![0.6, 0.8]]));
    }

    #[test]
    fn the_longest_numbers_do_not_overflow() {
        let body = response(r#"[{"index":0,"embedding":[3e38,0]}]"#);
        assert_eq!(read(&body, 1, None), Ok(vec![vec![1.0, 0.0]]));
    }

    #[test]
    fn malformed_responses_are_rejected() {
        let nan = STANDARD.encode(f32::NAN.to_le_bytes());
        let cases = [
            ("[]".to_owned(), "0 vectors for 1 inputs"),
            (
                r#"[{"embedding":[1]},{"embedding":[1]}]"#.to_owned(),
                "2 vectors for 1 inputs",
            ),
            (
                r#"[{"index":1,"embedding":[1]}]"#.to_owned(),
                "a vector for input 1 of 1",
            ),
            (r#"[{"embedding":[]}]"#.to_owned(), "a vector of 0 numbers"),
            (
                r#"[{"embedding":[1,2]}]"#.to_owned(),
                "a vector of 2 numbers instead of 1",
            ),
            (r#"[{"embedding":[0]}]"#.to_owned(), "a vector of zeros"),
            (
                r#"[{"embedding":[1e39]}]"#.to_owned(),
                "a vector with a number that is not finite",
            ),
            (
                format!(r#"[{{"embedding":"{nan}"}}]"#),
                "a vector with a number that is not finite",
            ),
        ];
        for (data, expected) in cases {
            assert_eq!(
                read(&response(&data), 1, Some(1)),
                Err(expected.to_owned()),
                "{data}"
            );
        }
        for data in [
            r#"[{"embedding":[NaN]}]"#,
            r#"[{"embedding":[null]}]"#,
            r#"[{"embedding":"%"}]"#,
            r#"[{"embedding":"AAA="}]"#,
            r#"[{"embedding":{}}]"#,
            r#"[{"index":-1,"embedding":[1]}]"#,
            "null",
        ] {
            let refused = read(&response(data), 1, Some(1));
            assert_eq!(
                refused,
                Err("something that is not a list of embeddings".to_owned()),
                "{data}"
            );
        }
    }

    #[test]
    fn no_input_gets_two_vectors() {
        let body = response(r#"[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]"#);
        assert_eq!(
            read(&body, 2, None),
            Err("two vectors for input 0".to_owned())
        );
    }

    #[test]
    fn vectors_of_one_answer_are_equally_long() {
        let body = response(r#"[{"embedding":[1]},{"embedding":[1,1]}]"#);
        assert_eq!(
            read(&body, 2, None),
            Err("a vector of 2 numbers instead of 1".to_owned())
        );
    }

    #[test]
    fn a_vector_may_have_as_many_numbers_as_the_limit_and_not_one_more() {
        let one = |count: usize| {
            response(&format!(
                r#"[{{"embedding":[{}1]}}]"#,
                "1,".repeat(count - 1)
            ))
        };
        assert!(read(&one(MAX_DIMENSIONS), 1, None).is_ok());
        assert_eq!(
            read(&one(MAX_DIMENSIONS + 1), 1, None),
            Err(format!("a vector of {} numbers", MAX_DIMENSIONS + 1))
        );
    }
}
