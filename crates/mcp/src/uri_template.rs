//! URI templates: patterns such as `docs://page/{id}`, for resources and for HTTP routes.

use std::collections::BTreeMap;

/// The values of a template's variables, by name.
pub type TemplateVars = BTreeMap<String, String>;

/// Matches a URI against a pattern. It uses no regular expression: each variable extends to the next literal, so the
/// time is linear for any input.
pub(crate) fn match_pattern(pattern: &str, uri: &str) -> Option<TemplateVars> {
    let mut vars = TemplateVars::new();
    let (mut pattern, mut rest) = (pattern, uri);
    while let Some((literal, tail)) = pattern.split_once('{') {
        rest = rest.strip_prefix(literal)?;
        let (name, tail) = tail.split_once('}')?;
        let next = tail.split_once('{').map_or(tail, |(literal, _)| literal);
        let end = if next.is_empty() {
            rest.len()
        } else {
            rest.find(next)?
        };
        let (value, after) = rest.split_at_checked(end)?;
        let (name, across) = name
            .strip_prefix('+')
            .map_or((name, false), |name| (name, true));
        if value.is_empty() || (!across && value.contains('/')) {
            return None;
        }
        vars.insert(name.to_owned(), value.to_owned());
        (pattern, rest) = (tail, after);
    }
    (rest == pattern).then_some(vars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_addresses() {
        let rows = [
            ("test://t/{id}/data", "test://t/123/data", Some("id=123")),
            ("test://t/{id}/data", "test://t//data", None),
            ("test://t/{id}/data", "test://t/1/2/data", None),
            ("test://t/{id}/data", "test://t/1/data/more", None),
            ("docs://{+path}", "docs://a/b.md", Some("path=a/b.md")),
            ("x://{a}-{b}", "x://1-2-3", Some("a=1,b=2-3")),
            ("x://fixed", "x://fixed", Some("")),
            ("x://fixed", "x://other", None),
        ];
        for (pattern, uri, expected) in rows {
            let found = match_pattern(pattern, uri).map(|vars| {
                vars.iter()
                    .map(|(k, v)| format!("{k}={v}"))
                    .collect::<Vec<_>>()
                    .join(",")
            });
            assert_eq!(found.as_deref(), expected, "{pattern} {uri}");
        }
    }
}
