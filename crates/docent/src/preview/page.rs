//! The preview page: HTML, style and scripts inlined into one document, under a CSP that allows exactly those by
//! hash.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use docent_mcp::http::RouteResponse;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::PreviewTarget;

const DOCUMENT: &str = include_str!("../../assets/preview/page.html");
const STYLE: &str = include_str!("../../assets/preview/page.css");
const SCRIPT: &str = concat!(
    include_str!("../../assets/preview/server.js"),
    include_str!("../../assets/preview/form.js"),
    include_str!("../../assets/preview/host.js"),
    include_str!("../../assets/preview/page.js"),
);
/// The script that runs before anything else inside a widget's frame.
const FRAME: &str = include_str!("../../assets/preview/frame.js");

/// The rendered page and its CSP, computed once at the start.
pub(super) struct PreviewPage {
    html: String,
    policy: String,
}

impl PreviewPage {
    pub(super) fn new(target: &PreviewTarget, token: &str) -> Self {
        let (server, proxy) = match target {
            PreviewTarget::Own => (Some("/mcp"), false),
            PreviewTarget::Any(url) => (url.as_deref(), true),
        };
        let config = json!({"server": server, "proxy": proxy, "token": token, "frame": FRAME});
        // The URL is user input and must not close the `script` element that holds the configuration.
        let config = config.to_string().replace('<', "\\u003c");
        let html = DOCUMENT
            .replace("{{style}}", STYLE)
            .replace("{{config}}", &config)
            .replace("{{script}}", SCRIPT);
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; frame-src 'self'; \
             img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hash(SCRIPT),
            hash(STYLE)
        );
        Self { html, policy }
    }

    pub(super) fn answer(&self) -> RouteResponse {
        RouteResponse::html(self.html.clone())
            .header("content-security-policy", self.policy.clone())
            .header("cache-control", "no-store")
    }
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_brings_everything_and_loads_nothing() {
        let page = PreviewPage::new(&PreviewTarget::Own, "t");
        for mark in [
            "{{",
            "src=\"http",
            "href=\"http",
            "@import",
            "eval(",
            "innerHTML",
        ] {
            assert!(!page.html.contains(mark), "{mark}");
        }
        assert!(!page.policy.contains("unsafe"));
        assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
    }

    #[test]
    fn an_address_cannot_leave_its_place() {
        let hostile = "https://a.example/</script><script>alert(1)</script>".to_owned();
        let page = PreviewPage::new(&PreviewTarget::Any(Some(hostile)), "t");
        assert!(!page.html.contains("<script>alert(1)"));
    }
}
