//! The requests of a hostile client, in which `{g}` stands for the word of a restricted document.

use serde_json::{Value, json};

/// Names and values that are syntax of JSON, of Qdrant's filters, payload paths or addresses, or keys of the payload.
pub(crate) const INJECTIONS: [&str; 38] = [
    "\"",
    "'",
    "\\",
    "\\\"",
    "\"}}",
    "\"],\"must_not\":[",
    "{\"must\":[]}",
    "{\"has_id\":[1]}",
    "{\"key\":\"who\",\"match\":{\"any\":[\"*\"]}}",
    "has_id",
    "is_empty",
    "is_null",
    "nested",
    "should",
    "who",
    "who[]",
    "until",
    "from",
    "stored",
    "terms",
    "id",
    "$",
    "$where",
    "$[0]",
    "*",
    "p*",
    "pgroup:{g}",
    "group:{g}",
    "{g}field",
    "{g}field[]",
    "values.{g}field",
    "texts.{g}field",
    "harbour.tide[0]",
    "../collections/docent-documents-2",
    "%2e%2e%2fcollections",
    "a\nb\r\nc",
    "a\u{0}b",
    "\u{202e}\u{200b}\u{fe00}",
];

pub(crate) fn message(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

pub(crate) fn call(tool: &str, arguments: &Value) -> String {
    message("tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// Every request in which a client chooses a name, a value or an id.
pub(crate) fn injections(text: &str) -> Vec<String> {
    let quoted = text.replace('"', "\\\"");
    let queries = [
        format!("ferry {text}"),
        format!("{text}:ferry"),
        format!("ferry {text}:\"{{g}}canary\""),
        format!("ferry \"{quoted}\":x"),
        format!("ferry harbour:\"{quoted}\""),
        format!("ferry -{text}:{{g}}value1"),
        format!("({text}:a OR who:\"*\") ferry"),
        format!("\"{quoted}\" {{g}}canary"),
        format!("{text}:>0 {text}:1..2 ferry"),
    ];
    let mut all: Vec<String> = queries
        .iter()
        .flat_map(|query| {
            [
                call("search", &json!({"query": query})),
                call(
                    "find",
                    &json!({"query": query, "facets": ["harbour", "tags"]}),
                ),
            ]
        })
        .collect();
    let (reference, argument) = (
        json!({"type": "ref/prompt", "name": "research"}),
        |value: String| json!({"name": "filter", "value": value}),
    );
    let field = json!({"type": "ref/resource", "uri": "docent://fields/{field}"});
    all.extend([
        call("find", &json!({"query": "ferry", text: "x"})),
        call("find", &json!({"query": "", "harbour": [text, "quay 1"]})),
        call("find", &json!({"query": "", "facets": [text]})),
        call("find", &json!({"query": "", "sort": text})),
        call("list_fields", &json!({"field": text})),
        call(
            "show_results",
            &json!({"query": "ferry", "filters": {text: ["x", "*"]}}),
        ),
        call(
            "show_results",
            &json!({"query": "ferry", "filters": {"harbour": [text]}}),
        ),
        call(
            "show_results",
            &json!({"ids": [text, "inner/{g}-1.md", format!("inner/{{g}}-1.md{text}")]}),
        ),
        call("show_results", &json!({"query": "ferry", "from": text})),
        call(
            "show_document",
            &json!({"id": format!("inner/{{g}}-1.md{text}"), "query": text}),
        ),
        call("fetch", &json!({"id": text})),
        call("fetch", &json!({"id": format!("inner/{{g}}-1.md{text}")})),
        call("record", &json!({"id": text})),
        message(
            "resources/read",
            &json!({"uri": format!("docent://fields/{text}")}),
        ),
        message(
            "completion/complete",
            &json!({"ref": &reference, "argument": argument(text.to_owned())}),
        ),
        message(
            "completion/complete",
            &json!({"ref": &reference, "argument": argument(format!("{text}:"))}),
        ),
        message(
            "completion/complete",
            &json!({"ref": &reference, "argument": argument(format!("harbour:{text}"))}),
        ),
        message(
            "completion/complete",
            &json!({"ref": field, "argument": {"name": "field", "value": text}}),
        ),
    ]);
    all
}

/// Requests that are about the restricted documents, without any trick.
pub(crate) fn plain_requests() -> Vec<String> {
    let complete = |value: &str| {
        message(
            "completion/complete",
            &json!({"ref": {"type": "ref/prompt", "name": "research"}, "argument": {"name": "filter", "value": value}}),
        )
    };
    vec![
        call("search", &json!({"query": "{g}canary"})),
        call("search", &json!({"query": "{g}can"})),
        call("search", &json!({"query": "{g}canarx"})),
        call("search", &json!({"query": "ferry {g}field:{g}value3"})),
        call("search", &json!({"query": "\"ferry of the {g}s\""})),
        call("search", &json!({"query": "ferry tags:{g}tag"})),
        call(
            "find",
            &json!({"query": "", "facets": ["tags", "harbour", "{g}field"]}),
        ),
        call("find", &json!({"query": "{g}canary", "facets": ["tags"]})),
        call("list_fields", &json!({})),
        call("list_fields", &json!({"field": "{g}field"})),
        call("list_fields", &json!({"field": "tags"})),
        call("fetch", &json!({"id": "inner/{g}-1.md"})),
        call("record", &json!({"id": "inner/{g}-1.md#p1"})),
        call("show_document", &json!({"id": "inner/{g}-1.md"})),
        complete("{g}"),
        complete("tags:"),
        complete("tags:{g}"),
        complete("harbour:{g}"),
        message(
            "resources/read",
            &json!({"uri": "docent://fields/{g}field"}),
        ),
        message("resources/read", &json!({"uri": "docent://corpus"})),
        message("resources/list", &json!({})),
        message("tools/list", &json!({})),
    ]
}

/// A mistake of a client in a number gets an answer too.
pub(crate) fn odd_pages() -> Vec<String> {
    let odd = [
        json!(0),
        json!(10_000),
        json!(10_001),
        json!(u32::MAX),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(-1),
        json!(0.5),
        json!(1e300),
        json!("10000"),
        json!([10_000]),
        json!({"gte": 0}),
        Value::Null,
    ];
    let pages = odd.iter().flat_map(|odd| {
        [
            call("find", &json!({"query": "berth", "offset": odd})),
            call(
                "find",
                &json!({"query": "", "offset": odd, "limit": 100, "sort": "oldest"}),
            ),
            call("find", &json!({"query": "berth", "limit": odd})),
            call("show_results", &json!({"query": "berth", "offset": odd})),
            call(
                "show_document",
                &json!({"id": "open.csv#L2", "passage": odd, "first": odd}),
            ),
        ]
    });
    pages.collect()
}

/// Requests that are short or within the size limit, and expensive where their cost is not bounded.
pub(crate) fn bombs() -> Vec<String> {
    let many = |count: usize, part: &dyn Fn(usize) -> String| -> String {
        (0..count).map(part).collect::<Vec<_>>().join(" ")
    };
    let queries = [
        many(40_000, &|_| "ferry".to_owned()),
        many(20_000, &|n| format!("w{n}")),
        "(".repeat(200_000),
        format!("{}ferry{}", "(".repeat(90_000), ")".repeat(90_000)),
        "\"".repeat(200_001),
        "-".repeat(200_000),
        "*".repeat(200_000),
        many(10_000, &|_| "berth*".to_owned()),
        many(10_000, &|n| format!("harbour:\"quay {n}\"")),
        many(10_000, &|n| format!("(harbour:a{n} OR who:b{n})")),
        many(10_000, &|n| format!("NOT -harbour:{n}")),
        format!("harbour:{}", many(20_000, &|n| format!("v{n},"))),
        format!("\"{}\"", many(30_000, &|_| "berth".to_owned())),
        many(400, &|_| "\"berth berth berth berth\"".to_owned()),
        "date:0001..9999 since:99999999999d year:99999999999 before:-1 date:2024-13-45".to_owned(),
        "words:>1e400 words:NaN..NaN words:-1e308..1e308 words:>=-inf".to_owned(),
        "a\u{301}".repeat(60_000),
        "船".repeat(80_000),
        "ßİﬁ\u{1d173}".repeat(10_000),
        "be".repeat(100_000),
    ];
    let mut all: Vec<String> = queries
        .iter()
        .flat_map(|query| {
            [
                call("search", &json!({"query": query})),
                call(
                    "find",
                    &json!({"query": query, "facets": ["harbour"], "offset": 10_000}),
                ),
            ]
        })
        .collect();
    let names = |count: usize| (0..count).map(|n| format!("n{n}")).collect::<Vec<_>>();
    let filters: serde_json::Map<_, _> = names(2_000)
        .into_iter()
        .map(|n| (n, json!(["x"])))
        .collect();
    let mut nested = json!("x");
    for _ in 0..50 {
        nested = json!({"must": [nested]});
    }
    all.extend([
        call("find", &json!({"query": "", "facets": names(17)})),
        call("find", &json!({"query": "", "facets": names(10_000)})),
        call("find", &json!({"query": "", "harbour": names(10_000)})),
        call("show_results", &json!({"ids": names(10_000)})),
        call("show_results", &json!({"filters": filters})),
        call(
            "show_results",
            &json!({"filters": {"harbour": names(10_000)}}),
        ),
        call("show_results", &json!({"filters": nested})),
        call("fetch", &json!({"id": "x".repeat(200_000)})),
        // A half of a surrogate pair, which is no Unicode text.
        call("search", &json!({"query": "HALF"})).replace("HALF", "\\ud800"),
        // A text that is longer than the size limit of a call.
        call("search", &json!({"query": "x".repeat(300_000)})),
    ]);
    all
}
