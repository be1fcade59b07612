//! Defects of widgets, found by static analysis or in a browser.

use serde_json::{Value, json};

use super::{Broken, edited};

/// Changes the item that `resources/read` returns.
fn read(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Broken {
    Broken::result("resources/read", move |result| {
        change(&mut result["contents"][0])
    })
}

fn html(body: &'static str) -> Broken {
    read(move |contents| {
        contents["text"] = json!(format!("<!doctype html><html><body>{body}</body></html>"))
    })
}

/// Checks the server with the browser of this machine, if there is one.
pub(crate) fn browsed(broken: Broken) -> Broken {
    broken.checked(|options| options.browser = crate::widgets::browser())
}

/// The working widget with additional markup, mounted in a browser.
pub(crate) fn mounted(more: &'static str) -> Broken {
    browsed(greeting(more))
}

/// The working widget with additional markup, without a browser.
pub(crate) fn greeting(more: &'static str) -> Broken {
    read(move |contents| contents["text"] = json!(crate::good::GREETING.replace("</body>", more)))
}

pub(super) fn widgets(name: &str) -> Option<Broken> {
    Some(match name {
        "template-exists" => Broken::tools(|tools| {
            tools[2]["_meta"]["ui"]["resourceUri"] = json!("ui://gone.html");
            tools[2]["_meta"]["openai/outputTemplate"] = json!("ui://gone.html");
        }),
        "uri" => Broken::tools(|tools| {
            tools[2]["_meta"]["ui"]["resourceUri"] = json!("https://a.example/w.html")
        }),
        "both-keys" => Broken::tools(|tools| {
            tools[2]["_meta"]["openai/outputTemplate"] = json!("ui://other.html")
        }),
        "own-tool" => {
            Broken::tool(|tool| tool["_meta"]["ui"] = json!({"resourceUri": crate::good::WIDGET}))
        }
        "mime" => read(|contents| contents["mimeType"] = json!("text/html")),
        "html" => read(|contents| contents["text"] = json!("hello")),
        "inline" => html("<script src=\"https://cdn.example/a.js\"></script>"),
        "csp-covers" => html("<img src=\"https://img.example/a.png\">"),
        "csp-form" => {
            read(|contents| contents["_meta"]["ui"]["csp"] = json!({"connect_domains": []}))
        }
        "csp-both-keys" => Broken::reply(|_, call, reply| {
            let place = match call.method() {
                "resources/list" => "/result/resources/0/_meta",
                "resources/read" => "/result/contents/0/_meta",
                _ => return reply,
            };
            edited(reply, |message| {
                if let Some(meta) = message.pointer_mut(place) {
                    *meta = json!({"openai/widgetCSP": {"connect_domains": ["https://a.example"]}});
                }
            })
        }),
        "meta-on-contents" => read(|contents| contents["_meta"] = json!({})),
        "frames" => read(|contents| {
            contents["_meta"]["ui"]["csp"]["frameDomains"] = json!(["https://a.example"])
        }),
        "domain-claude" => {
            read(|contents| contents["_meta"]["ui"]["domain"] = json!("https://widgets.example"))
        }
        "domain-openai" => read(|contents| contents["_meta"]["openai/widgetDomain"] = json!("")),
        "permissions" => {
            read(|contents| contents["_meta"]["ui"]["permissions"] = json!({"camera": true}))
        }
        "eval" => html("<script>eval('1')</script>"),
        "sandbox" => html("<script>localStorage.x = 1</script>"),
        "size" => read(|contents| {
            contents["text"] = json!(format!("<!doctype html>{}", "x".repeat(1024 * 1024)))
        }),
        "declared" => Broken::result("server/discover", |result| {
            result["capabilities"] = json!({"tools": {}, "resources": {}})
        }),
        "mounted-csp" => mounted("<script>new Function('1')()</script>"),
        "mounted-handshake" => browsed(html("<p>quiet</p>")),
        "mounted-errors" => {
            mounted("<script>setTimeout(() => { throw new Error('lost') })</script>")
        }
        "mounted-network" => mounted("<script>navigator.sendBeacon('/count')</script>"),
        _ => return None,
    })
}
