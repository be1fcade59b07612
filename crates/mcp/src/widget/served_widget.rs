//! The resources of a widget: its current URI, the former ones, and the variants for each host.

use futures::FutureExt;

use super::{MAX_HTML_BYTES, MCP_APP, SKYBRIDGE, Widget, WidgetSource};
use crate::error::{BuildError, Failure};
use crate::fingerprint::fingerprint;
use crate::resource::{Resource, ResourceBody};

/// Bytes of the fingerprint in a URI. Hosts cache a page for about an hour, so few versions have to differ.
const VERSION_BYTES: usize = 4;
/// Maximum length of the version in a former URI. Versions written by hand were shorter.
const MAX_VERSION: usize = 16;

/// A widget with its URIs.
///
/// `standard` is the page for the MCP Apps standard, and `skybridge` the same page for ChatGPT clients of 2025, which
/// is always readable but only listed on request.
#[derive(Clone)]
pub(crate) struct ServedWidget {
    pub(crate) name: String,
    pub(crate) standard: Resource,
    pub(crate) skybridge: Resource,
    pub(crate) lists_skybridge: bool,
    stem: String,
    former: Vec<String>,
}

impl ServedWidget {
    /// Validates a widget and assigns its URIs, under the name of the app.
    pub(crate) fn new(widget: &Widget, app: &str) -> Result<Self, BuildError> {
        let html = widget
            .source
            .read_blocking()
            .map_err(|what| BuildError::Widget {
                widget: widget.name.clone(),
                what,
            })?;
        widget.check(&html)?;
        let stem = format!("ui://{}/{}-", uri_host(app), widget.name);
        let meta = widget.meta();
        // A host caches the page with its metadata, so a change of either makes a new version.
        let version = fingerprint(
            format!("{}\n{html}", serde_json::json!(meta)).as_bytes(),
            VERSION_BYTES,
        );
        let resource = |uri: String, kind: &str| {
            let source = widget.source.clone();
            let mut resource = Resource::new(uri, widget.name.clone(), kind, move |_| {
                let source = source.clone();
                async move { source.read().await }.boxed()
            })
            .title(widget.title.clone())
            .description(widget.description.clone());
            for (key, value) in &meta {
                resource = resource.meta(key.clone(), value.clone());
            }
            resource
        };
        Ok(Self {
            name: widget.name.clone(),
            standard: resource(format!("{stem}{version}.html"), MCP_APP),
            skybridge: resource(format!("{stem}{version}.skybridge.html"), SKYBRIDGE),
            lists_skybridge: widget.skybridge,
            stem,
            former: widget.former.clone(),
        })
    }

    /// Returns the resources that hosts see on the list.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Resource> {
        let old = self.lists_skybridge.then_some(&self.skybridge);
        [&self.standard].into_iter().chain(old)
    }

    /// Returns the current page for the URI of any version.
    pub(crate) fn resource_at(&self, uri: &str) -> Option<&Resource> {
        if self.former.iter().any(|former| former == uri) {
            return Some(&self.standard);
        }
        let version = uri.strip_prefix(&self.stem)?.strip_suffix(".html")?;
        let (version, resource) = match version.strip_suffix(".skybridge") {
            Some(version) => (version, &self.skybridge),
            None => (version, &self.standard),
        };
        let is_version = (1..=MAX_VERSION).contains(&version.len())
            && version.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_version.then_some(resource)
    }
}

/// Converts the app's name to the host part of a URI.
fn uri_host(app: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    app.chars().map(plain).collect()
}

impl WidgetSource {
    /// Reads the page synchronously, once while the app is built.
    fn read_blocking(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone().into_owned()),
            Self::File(path) => {
                let shown = path.display();
                std::fs::read_to_string(path).map_err(|error| {
                    format!("cannot be read from `{shown}`: {error}; check the path")
                })
            }
        }
    }

    async fn read(&self) -> Result<ResourceBody, Failure> {
        let text = match self {
            Self::Text(text) => text.clone().into_owned(),
            Self::File(path) => {
                if tokio::fs::metadata(path).await?.len() > MAX_HTML_BYTES as u64 {
                    return Err(std::io::Error::other("the widget file is too large").into());
                }
                tokio::fs::read_to_string(path).await?
            }
        };
        Ok(ResourceBody::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(html: &'static str) -> ServedWidget {
        let widget =
            Widget::new("board", "Board", "Tasks.", html).formerly("ui://widget/kanban.html");
        ServedWidget::new(&widget, "Task App").unwrap()
    }

    #[test]
    fn a_changed_page_has_a_new_address_and_the_old_one_still_reads() {
        let (old, new) = (placed("<!doctype html>1"), placed("<!doctype html>2"));
        assert!(old.standard.uri.starts_with("ui://task-app/board-"));
        assert_ne!(old.standard.uri, new.standard.uri);
        assert_eq!(old.standard.uri, placed("<!doctype html>1").standard.uri);
        for uri in [
            &old.standard.uri,
            &new.standard.uri,
            "ui://widget/kanban.html",
            "ui://task-app/board-v3.html",
        ] {
            assert_eq!(
                new.resource_at(uri).map(|found| &found.uri),
                Some(&new.standard.uri),
                "{uri}"
            );
        }
        let skybridge = new.resource_at(&old.skybridge.uri).unwrap();
        assert_eq!(skybridge.uri, new.skybridge.uri);
        for uri in [
            "ui://task-app/board-.html",
            "ui://task-app/board-a-b.html",
            "ui://task-app/board-../x.html",
            "ui://task-app/board-12345678901234567.html",
            "ui://task-app/board.html",
            "ui://other/board-1.html",
        ] {
            assert!(new.resource_at(uri).is_none(), "{uri}");
        }
    }

    #[test]
    fn changed_metadata_is_a_new_version_too() {
        let widget = Widget::new("board", "Board", "Tasks.", "<!doctype html>1");
        let uri = |widget: &Widget| ServedWidget::new(widget, "a").unwrap().standard.uri;
        assert_ne!(uri(&widget), uri(&widget.clone().border(true)));
    }

    #[test]
    fn a_missing_file_does_not_build() {
        let widget = Widget::from_file("board", "Board", "Tasks.", "/nowhere/board.html");
        let problem = ServedWidget::new(&widget, "a").err().unwrap().to_string();
        assert!(problem.contains("/nowhere/board.html"), "{problem}");
    }
}
