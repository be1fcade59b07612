//! A JSON parser that refuses duplicate object members.
//!
//! Two programs that read `{"aud":"a","aud":"b"}` may each see another audience (RFC 8259 leaves that
//! open). JSON with a duplicate member at any depth is therefore invalid here.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses an object without duplicate members; `None` for anything else.
///
/// ```rust
/// use docent_mcp::oauth::parse_strict_json;
///
/// assert!(parse_strict_json(br#"{"aud": "a"}"#).is_some());
/// assert!(parse_strict_json(br#"{"aud": "a", "aud": "b"}"#).is_none());
/// ```
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(bytes) {
        Ok(UniqueKeyJson(Value::Object(members))) => Some(members),
        _ => None,
    }
}

struct UniqueKeyJson(Value);

impl<'de> Deserialize<'de> for UniqueKeyJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeyVisitor)
    }
}

struct UniqueKeyVisitor;

impl<'de> Visitor<'de> for UniqueKeyVisitor {
    type Value = UniqueKeyJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<UniqueKeyJson, E> {
        Ok(UniqueKeyJson(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<UniqueKeyJson, E> {
        Ok(UniqueKeyJson(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<UniqueKeyJson, E> {
        Ok(UniqueKeyJson(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<UniqueKeyJson, E> {
        Ok(UniqueKeyJson(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<UniqueKeyJson, E> {
        Ok(UniqueKeyJson(
            Number::from_f64(value).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_str<E>(self, value: &str) -> Result<UniqueKeyJson, E> {
        Ok(UniqueKeyJson(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeyJson, A::Error> {
        let mut all = Vec::new();
        while let Some(UniqueKeyJson(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(UniqueKeyJson(Value::Array(all)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<UniqueKeyJson, A::Error> {
        let mut all = Map::new();
        while let Some((name, UniqueKeyJson(value))) =
            members.next_entry::<String, UniqueKeyJson>()?
        {
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate member"));
            }
        }
        Ok(UniqueKeyJson(Value::Object(all)))
    }
}

/// Parses a NumericDate (RFC 7519), the seconds since 1970 in `exp` and similar claims; fractions are cut
/// off.
pub(crate) fn numeric_date(value: &Value) -> Option<u64> {
    /// 2^53, beyond which a float is no longer exact; it is in the year 285 million.
    const MOST: f64 = 9_007_199_254_740_992.0;
    if let Some(whole) = value.as_u64() {
        return Some(whole).filter(|&whole| (whole as f64) < MOST);
    }
    let part = value.as_f64().filter(|part| (0.0..MOST).contains(part))?;
    // The cast is exact enough: the line above has checked the range.
    Some(part as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_value_is_read_as_it_is() {
        let text = r#"{"a":null,"b":true,"c":-1,"d":18446744073709551615,"e":1.5,"f":"x\u00e9","g":[1,[2]],"h":{"a":{}}}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parse(text.as_bytes()).map(Value::Object), Some(expected));
    }

    #[test]
    fn a_member_twice_is_refused_at_any_depth() {
        for bad in [
            r#"{"aud":"a","aud":"b"}"#,
            r#"{"aud":"a","\u0061ud":"a"}"#,
            r#"{"x":[{"a":1,"a":1}]}"#,
            "[]",
            "\"a\"",
            "{",
            "{} x",
            "",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert!(parse(b"{\"a\":\"\xff\"}").is_none(), "not UTF-8");
        assert!(parse(br#"{"a":{"b":1},"c":{"b":1}}"#).is_some());
    }

    #[test]
    fn moments_are_numbers_within_reason() {
        let cases = [
            (json!(0), Some(0)),
            (json!(1_800_000_000), Some(1_800_000_000)),
            (json!(1_800_000_000.9), Some(1_800_000_000)),
            (
                json!(9_007_199_254_740_991_u64),
                Some(9_007_199_254_740_991),
            ),
            (json!(9_007_199_254_740_992_u64), None),
            (json!(u64::MAX), None),
            (json!(-1), None),
            (json!(-0.5), None),
            (json!(1e300), None),
            (json!("1800000000"), None),
            (json!(true), None),
            (json!(null), None),
            (json!([1]), None),
        ];
        for (value, expected) in cases {
            assert_eq!(numeric_date(&value), expected, "{value}");
        }
    }
}
