//! A public address and a bundle into `server.json`, the entry of the MCP registry.

use serde_json::{Value, json};
use url::{Host, Url};

use super::{PackageInfo, truncate_at_word};

/// The newest form of the file that the registry takes.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// The most characters of a title and of a description there, and of a name.
const MAX_TEXT: usize = 100;
const MAX_NAME: usize = 200;

/// A bundle that people can download.
#[derive(Debug, Clone)]
pub(crate) struct BundleDownload {
    pub url: Url,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sum: String,
}

/// The name in the registry: the owner's domain backwards, and the server's name.
pub(crate) fn registry_name(url: &Url, name: &str) -> Option<String> {
    let Some(Host::Domain(host)) = url.host() else {
        return None;
    };
    let mut parts: Vec<_> = host.split('.').collect();
    parts.reverse();
    Some(format!("{}/{name}", parts.join(".")))
}

/// Whether the registry takes this name.
pub(crate) fn is_name(name: &str) -> bool {
    let Some((space, server)) = name.split_once('/') else {
        return false;
    };
    let fits = |text: &str, more: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    name.len() <= MAX_NAME && fits(space, ".-") && fits(server, "._-")
}

/// The entry.
pub(crate) fn entry(name: &str, work: &PackageInfo, download: Option<&BundleDownload>) -> Value {
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": name,
        "title": truncate_at_word(&work.title, MAX_TEXT),
        "description": truncate_at_word(&work.description, MAX_TEXT),
        "version": work.version,
    });
    let Some(object) = entry.as_object_mut() else {
        return entry;
    };
    if let Some(url) = &work.url {
        object.insert(
            "remotes".to_owned(),
            json!([{"type": "streamable-http", "url": url.as_str()}]),
        );
    }
    if let Some(download) = download {
        let package = json!({
            "registryType": "mcpb",
            "identifier": download.url.as_str(),
            "version": work.version,
            "fileSha256": download.sum,
            "transport": {"type": "stdio"},
        });
        object.insert("packages".to_owned(), json!([package]));
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_domains_backwards() {
        let of = |url: &str| registry_name(&Url::parse(url).unwrap(), "dam");
        assert_eq!(
            of("https://docs.example.org/mcp").as_deref(),
            Some("org.example.docs/dam")
        );
        assert_eq!(of("https://127.0.0.1/mcp"), None);
        for good in ["org.example/dam", "io.github.some-body/a_b.c"] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "dam",
            "a/b/c",
            "a b/c",
            "/c",
            "a/",
            &format!("a/{}", "x".repeat(MAX_NAME)),
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
