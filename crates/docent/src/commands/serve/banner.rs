//! Startup banner: title, number of documents, listen address, and the URLs to enter in ChatGPT and Claude.

use std::net::SocketAddr;

use url::Url;

use super::CommandContext;
use crate::display_text::pluralize;
use crate::knowledge_base::KnowledgeBase;
use crate::output;

/// Prints the banner. `bound` is the listen address; `None` means stdio.
pub(super) fn show(context: &CommandContext, knowledge: &KnowledgeBase, bound: Option<SocketAddr>) {
    let version = env!("CARGO_PKG_VERSION");
    output::say(&format!(
        "docent {version}: {}, {}",
        knowledge.title,
        pluralize(knowledge.documents(), "document")
    ));
    match bound {
        Some(bound) => {
            let server = &context.settings.server;
            let bound = format!("{}://{bound}", server.tls.scheme());
            output::say(&format!("listening on {bound}"));
            output::say(&addresses(&bound, server.public_url.as_ref()));
        }
        None => output::say("speaking MCP on stdin and stdout"),
    }
}

fn addresses(bound: &str, public: Option<&Url>) -> String {
    if let Some(public) = public {
        let address = endpoint(public);
        return format!("  ChatGPT      {address}\n  Claude       {address}");
    }
    format!(
        "  ChatGPT      needs a public https address: see --public-url\n  \
         Claude       the same; Claude Code: claude mcp add --transport http docent {bound}/mcp"
    )
}

/// URL of the MCP endpoint below the public URL.
fn endpoint(public: &Url) -> String {
    let base = public.as_str().trim_end_matches('/');
    if base.ends_with("/mcp") {
        base.to_owned()
    } else {
        format!("{base}/mcp")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_named_in_full() {
        for (public, expected) in [
            ("https://docs.example.org", "https://docs.example.org/mcp"),
            ("https://docs.example.org/", "https://docs.example.org/mcp"),
            (
                "https://docs.example.org/mcp",
                "https://docs.example.org/mcp",
            ),
            ("https://example.org/docs/", "https://example.org/docs/mcp"),
        ] {
            assert_eq!(endpoint(&Url::parse(public).unwrap()), expected);
        }
    }
}
