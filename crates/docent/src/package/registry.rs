//! `server.json`, the entry of a server in the MCP registry, with its remote endpoint and its downloadable bundle.

use serde_json::{Value, json};
use url::{Host, Url};

use super::{PackageInfo, truncate_at_word};

/// Latest schema version that the registry accepts.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// Length limits of the registry: for title and description, and for the name.
const MAX_TEXT: usize = 100;
const MAX_NAME: usize = 200;

/// Download of the bundle: its URL, and the checksum that installers verify.
#[derive(Debug, Clone)]
pub(crate) struct BundleDownload {
    pub url: Url,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sum: String,
}

/// Name in the registry: the reversed domain of the public URL, and the server's name.
pub(crate) fn registry_name(url: &Url, name: &str) -> Option<String> {
    let Some(Host::Domain(host)) = url.host() else {
        return None;
    };
    let mut parts: Vec<_> = host.split('.').collect();
    parts.reverse();
    Some(format!("{}/{name}", parts.join(".")))
}

/// Whether a name is valid in the registry.
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

/// Builds the registry entry from the package metadata.
pub(crate) fn entry(name: &str, info: &PackageInfo, download: Option<&BundleDownload>) -> Value {
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": name,
        "title": truncate_at_word(&info.title, MAX_TEXT),
        "description": truncate_at_word(&info.description, MAX_TEXT),
        "version": info.version,
    });
    let Some(object) = entry.as_object_mut() else {
        return entry;
    };
    if let Some(url) = &info.url {
        object.insert(
            "remotes".to_owned(),
            json!([{"type": "streamable-http", "url": url.as_str()}]),
        );
    }
    if let Some(download) = download {
        let package = json!({
            "registryType": "mcpb",
            "identifier": download.url.as_str(),
            "version": info.version,
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
