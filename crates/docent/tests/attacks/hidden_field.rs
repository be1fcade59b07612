//! Hidden reader field: no request tells the field that names the readers, or the names in it, from a field that no
//! document has.

use serde_json::{Value, json};

use crate::malformed_permissions::{NAMED, WORD};
use crate::process::ServerProcess;

/// The answer to a request, as it was sent.
fn answer(server: &ServerProcess, headers: &str, method: &str, params: &Value) -> String {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (head, body) = server.raw("POST", "/mcp", Some(&message), headers);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
    body
}

/// A request to complete the start of a filter, or of a field in the address of a resource.
fn completions(value: &str) -> [Value; 2] {
    let filter = json!({"type": "ref/prompt", "name": "research"});
    let field = json!({"type": "ref/resource", "uri": "docent://fields/{field}"});
    [
        json!({"ref": filter, "argument": {"name": "filter", "value": value}}),
        json!({"ref": field, "argument": {"name": "field", "value": value}}),
    ]
}

/// All answers that an MCP client gets when it enumerates everything it can.
pub(crate) fn heard(server: &ServerProcess, headers: &str) -> String {
    let mut all = String::new();
    let mut ask = |method: &str, params: Value| {
        all.push_str(&answer(server, headers, method, &params));
    };
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ] {
        ask(method, json!({}));
    }
    ask("resources/read", json!({"uri": "docent://corpus"}));
    for params in completions("").into_iter().chain(completions("k")) {
        ask("completion/complete", params);
    }
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    ask("tools/call", call("search", json!({"query": WORD})));
    ask(
        "tools/call",
        call("search", json!({"query": NAMED.get(..6)})),
    );
    ask("tools/call", call("list_fields", json!({})));
    ask(
        "tools/call",
        call("find", json!({"query": WORD, "facets": ["kind"]})),
    );
    for offset in [0, 50, 100] {
        let arguments = json!({"query": WORD, "limit": 50, "offset": offset});
        ask("tools/call", call("find", arguments));
    }
    all
}

/// The answers to everything that can be asked about a field, with its name replaced.
fn heard_about(server: &ServerProcess, headers: &str, field: &str) -> String {
    let mut all = String::new();
    let mut ask = |method: &str, params: Value| {
        let answer = answer(server, headers, method, &params);
        // A hint lists the fields that are allowed, which is not the name of one.
        let answer = answer.replace("allowed are", "known are");
        all.push_str(&answer.replace(field, "FIELD"));
        all.push('\n');
    };
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    for name in [field.to_owned(), format!("{field}.groups")] {
        for (tool, arguments) in [
            ("find", json!({"query": WORD, "facets": [&name]})),
            ("find", json!({"query": WORD, &name: ["hr"]})),
            ("find", json!({"query": WORD, "sort": &name})),
            ("list_fields", json!({"field": &name})),
            ("search", json!({"query": format!("{WORD} {name}:hr")})),
            (
                "search",
                json!({"query": format!("{WORD} -{name}:{NAMED}")}),
            ),
        ] {
            ask("tools/call", call(tool, arguments));
        }
        let typed = [name.clone(), format!("{name}:"), format!("{name}:k")];
        for params in typed.iter().flat_map(|typed| completions(typed)) {
            ask("completion/complete", params);
        }
        ask(
            "resources/read",
            json!({"uri": format!("docent://fields/{name}")}),
        );
    }
    all
}

/// Whether the reader field cannot be told from a field that no document has.
pub(crate) fn assert_field_is_hidden(server: &ServerProcess, headers: &str) {
    let field = heard_about(server, headers, "allowed");
    let absent = heard_about(server, headers, "blocked");
    for (field, absent) in field.lines().zip(absent.lines()) {
        assert_eq!(field, absent);
    }
    assert_eq!(field.lines().count(), absent.lines().count());
}
