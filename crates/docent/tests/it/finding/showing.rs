//! `show_results` and `show_document`, the tools with widgets, through the real router, and the HTML pages that
//! citations link to.

use bytes::Bytes;
use docent::pages;
use docent::settings::Settings;
use docent_mcp::http::{HttpOptions, router};
use docent_search::{Document, DocumentValue as Field};
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use url::Url;

use super::find_harness::{FindHarness, document, run, speeches};
use crate::contract;

/// Calls a tool with a widget, and returns the data for the model and the view for the widget.
async fn show(harness: &FindHarness, name: &str, arguments: Value) -> (Value, Value) {
    let params = json!({"name": name, "arguments": arguments});
    let mut result = harness.mcp("tools/call", params).await;
    let tool = harness.tool(name).await;
    let data = result["structuredContent"].take();
    let schema = jsonschema::draft202012::new(&tool["outputSchema"]).unwrap();
    let wrong = schema.iter_errors(&data).next();
    assert!(wrong.is_none(), "{wrong:?} {data}");
    assert!(data.to_string().len() <= 10_000, "{data}");
    let member = if name == "show_results" {
        "docent/results"
    } else {
        "docent/document"
    };
    (data, result["_meta"][member].take())
}

fn public() -> Settings {
    let mut settings = Settings::default();
    settings.server.public_url = Some(Url::parse("https://docs.example.org/mcp").unwrap());
    settings
}

fn titles(view: &Value) -> Vec<&str> {
    let cards = view["cards"].as_array().unwrap();
    cards
        .iter()
        .map(|card| card["id"].as_str().unwrap())
        .collect()
}

#[test]
fn the_tools_have_widgets_and_search_and_fetch_have_none() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        for (name, widget) in [("show_results", "results"), ("show_document", "document")] {
            let tool = harness.tool(name).await;
            let uri = tool["_meta"]["ui"]["resourceUri"].as_str().unwrap();
            assert!(uri.contains(widget), "{uri}");
            assert_eq!(tool["_meta"]["openai/outputTemplate"], uri);
            assert_eq!(tool["_meta"]["openai/widgetAccessible"], true);
            assert_eq!(tool["annotations"]["readOnlyHint"], true);
            let read = harness.mcp("resources/read", json!({"uri": uri})).await;
            let page = &read["contents"][0];
            assert_eq!(page["mimeType"], "text/html;profile=mcp-app");
            assert!(
                page["text"]
                    .as_str()
                    .unwrap()
                    .starts_with("<!doctype html>")
            );
        }
        for name in ["search", "fetch", "find", "list_fields"] {
            let meta = &harness.tool(name).await["_meta"];
            assert!(meta.get("ui").is_none() && meta.get("openai/outputTemplate").is_none());
        }
        let mut settings = Settings::default();
        settings.widgets.enabled = false;
        let without = FindHarness::new(speeches(), &settings).await;
        let list = without.mcp("tools/list", json!({})).await;
        assert!(!list.to_string().contains("show_"));
    });
}

#[test]
fn results_are_counted_by_value_and_by_time() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let (data, view) = show(&harness, "show_results", json!({"query": "ferry"})).await;
        assert_eq!(data["total"], 5);
        assert_eq!(data["results"].as_array().unwrap().len(), 5);
        let excerpt = view["cards"][0]["excerpt"].as_array().unwrap();
        let mark = excerpt.iter().find(|span| span["mark"] == true).unwrap();
        assert_eq!(mark["text"], "ferry");
        let party = &view["facets"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["field"] == "party")
            .unwrap()["values"];
        assert_eq!(party[0], json!({"value": "Labor", "count": 3}));
        let bars = view["histogram"]["bars"].as_array().unwrap();
        assert_eq!(view["histogram"]["unit"], "month");
        let counts: Vec<_> = bars
            .iter()
            .map(|bar| bar["count"].as_u64().unwrap())
            .collect();
        assert_eq!(counts, [1, 1, 1, 1, 1]);

        let narrowed = json!({"query": "ferry", "filters": {"party": ["Labor", "Greens"]}, "from": "2024-02-01", "to": "2024-04-30"});
        let (_, view) = show(&harness, "show_results", narrowed).await;
        let mut found = titles(&view);
        found.sort_unstable();
        assert_eq!(found, ["d1", "d3"]);
        let bars = view["histogram"]["bars"].as_array().unwrap();
        let counts: Vec<_> = bars
            .iter()
            .map(|bar| bar["count"].as_u64().unwrap())
            .collect();
        assert_eq!(
            counts,
            [1, 1, 0, 1, 1],
            "of all days, with the other filters kept"
        );
        assert_eq!(
            view["asked"]["filters"],
            json!({"party": ["Labor", "Greens"]})
        );
    });
}

#[test]
fn results_come_by_id_and_by_page() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let (_, view) = show(
            &harness,
            "show_results",
            json!({"ids": ["d3", "nope", "d1#c0"]}),
        )
        .await;
        assert_eq!(titles(&view), ["d3", "d1"]);
        assert_eq!(view["note"], "Not found: `nope`.");
        assert_eq!(
            harness
                .refusal("show_results", json!({"ids": ["nope"]}))
                .await,
            "no document with id `nope`\nhint: ids come from `search`; search again"
        );
        let many = (0..13)
            .map(|n| document(n, "Labor", "2024-05-10"))
            .collect();
        harness.put(many).await;
        let (_, view) = show(&harness, "show_results", json!({})).await;
        assert_eq!(
            (view["total"].as_u64(), view["next"].as_u64()),
            (Some(13), Some(10))
        );
        let (_, view) = show(&harness, "show_results", json!({"offset": 10})).await;
        assert_eq!((titles(&view).len(), view["next"].as_u64()), (3, None));
        let (_, view) = show(&harness, "show_results", json!({"query": "submarine"})).await;
        assert_eq!((titles(&view).len(), &view["histogram"]), (0, &Value::Null));
        let (_, view) = show(
            &harness,
            "show_results",
            json!({"query": "ferry partei:x party:Labr"}),
        )
        .await;
        assert!(
            view["note"].as_str().unwrap().contains("Ignored"),
            "{}",
            view["note"]
        );
    });
}

fn book() -> Document {
    let filler = "Nothing of note was said in the house on that day. ".repeat(20);
    let text = (0..300)
        .map(|n| {
            format!(
                "## Chapter {n}\n\n{filler}{}\n\n",
                if n == 250 { "A ferry in winter." } else { "" }
            )
        })
        .collect::<String>();
    Document {
        fields: vec![(
            "said by".to_owned(),
            Field::Text("<b>nobody</b>".to_owned()),
        )],
        ..contract::long("books/one two.md", text)
    }
}

#[test]
fn a_document_opens_where_the_words_are() {
    run(async {
        let harness = FindHarness::new(vec![book()], &public()).await;
        let arguments = json!({"id": "books/one two.md", "query": "winter ferry"});
        let (data, view) = show(&harness, "show_document", arguments).await;
        assert_eq!(
            (view["at"].as_u64(), &view["hits"]),
            (Some(250), &json!([250]))
        );
        assert_eq!(
            data["url"],
            "https://docs.example.org/d/books/one%20two.md?p=250#p250"
        );
        assert_eq!(view["outline"].as_array().unwrap().len(), 200);
        let indexes: Vec<_> = view["passages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["index"].as_u64().unwrap())
            .collect();
        assert_eq!(indexes, [249, 250, 251, 252, 253]);
        assert!(
            data["text"]
                .as_str()
                .unwrap()
                .contains("A ferry in winter.")
        );
        let next = json!({"id": "books/one two.md", "first": 254});
        let (_, view) = show(&harness, "show_document", next).await;
        assert_eq!(view["passages"][0]["index"], 254);
        let end = json!({"id": "books/one two.md", "passage": 99_999});
        let (_, view) = show(&harness, "show_document", end).await;
        assert_eq!(view["at"], 299);
        let part = json!({"id": "books/one two.md#c7"});
        assert_eq!(show(&harness, "show_document", part).await.1["at"], 7);
        assert!(
            harness
                .refusal("show_document", json!({"id": "no"}))
                .await
                .starts_with("no document with id `no`")
        );
        let found = harness.call("search", json!({"query": "winter"})).await;
        assert_eq!(
            found["results"][0]["url"],
            "https://docs.example.org/d/books/one%20two.md"
        );
    });
}

/// Checks that every span has text, and that links lead to the web only.
fn check_spans(spans: &Value) {
    for span in spans.as_array().unwrap() {
        assert!(!span["text"].as_str().unwrap().is_empty(), "{span}");
        let href = span["href"].as_str().unwrap_or("https://");
        assert!(href.starts_with("http"), "{span}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_corpus_and_any_query_can_be_shown(
        documents in prop::collection::vec(contract::documents(), 0..8),
        query in "\\PC{0,30}",
    ) {
        run(async {
            let harness = FindHarness::new(documents.clone(), &public()).await;
            for arguments in [json!({"query": query}), json!({})] {
                let (_, view) = show(&harness, "show_results", arguments).await;
                for card in view["cards"].as_array().unwrap() {
                    check_spans(&card["excerpt"]);
                    let id = card["id"].as_str().unwrap();
                    assert!(documents.iter().any(|one| one.id.as_str() == id));
                    let (_, view) = show(&harness, "show_document", json!({"id": id, "query": query})).await;
                    assert_eq!(view["id"], id);
                    for passage in view["passages"].as_array().unwrap() {
                        for block in passage["blocks"].as_array().unwrap() {
                            if let Some(spans) = block.get("spans") {
                                check_spans(spans);
                            }
                        }
                    }
                }
            }
        });
    }
}

struct CardReply {
    status: u16,
    head: http::HeaderMap,
    body: String,
}

async fn get(harness: &FindHarness, path: &str, tag: Option<&str>) -> CardReply {
    let options = HttpOptions {
        routes: vec![pages::route(harness.knowledge.clone(), None)],
        ..HttpOptions::default()
    };
    let guard = options.guard(([127, 0, 0, 1], 8787).into()).unwrap();
    let mut request = http::Request::get(path).header("host", "localhost");
    if let Some(tag) = tag {
        request = request.header("if-none-match", tag);
    }
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let answer = router(harness.app.clone(), options, guard)
        .oneshot(request)
        .await
        .unwrap();
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    CardReply {
        status: head.status.as_u16(),
        head: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

#[test]
fn every_document_has_a_page_that_runs_nothing() {
    run(async {
        let harness = FindHarness::new(vec![book()], &public()).await;
        let page = get(&harness, "/d/books/one%20two.md?p=250&q=ferry", None).await;
        assert_eq!(page.status, 200);
        for part in [
            "<section id=\"p250\" class=\"passage here\"",
            "A <mark>ferry</mark> in winter.",
            "&lt;b&gt;nobody&lt;/b&gt;",
            "Passages 201 to 300 of 300",
            "<a href=\"?p=0\">Earlier</a>",
        ] {
            assert!(page.body.contains(part), "{part}");
        }
        assert!(!page.body.contains("<script") && !page.body.contains("<b>nobody"));
        let header = |name: &str| page.head[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-")
                && !policy.contains("unsafe")
        );
        assert_eq!(header("cache-control"), "public, max-age=60");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("x-robots-tag"), "noindex");
        let again = get(
            &harness,
            "/d/books/one%20two.md?p=250&q=ferry",
            Some(&header("etag")),
        )
        .await;
        assert_eq!((again.status, again.body.as_str()), (304, ""));
        let other = get(
            &harness,
            "/d/books/one%20two.md?p=249&q=ferry",
            Some(&header("etag")),
        )
        .await;
        assert_eq!(other.status, 200);
        for missing in [
            "/d/nope",
            "/d/",
            "/d/%00",
            "/d/%ff",
            "/d/books/one%20two.md/",
        ] {
            assert_eq!(get(&harness, missing, None).await.status, 404, "{missing}");
        }
    });
}
