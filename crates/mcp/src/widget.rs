//! Widgets: self-contained HTML pages that hosts mount in the conversation, served as resources.
//!
//! Every host reads its own metadata, so a widget carries all of it: `_meta.ui` for the MCP Apps standard and
//! `openai/*` for ChatGPT, on the list of resources and on the contents alike.

mod html;
mod served_widget;

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::csp::{self, WidgetDomains};
use crate::error::BuildError;
use crate::fingerprint::fingerprint;
pub(crate) use html::MAX_HTML_BYTES;
pub(crate) use served_widget::ServedWidget;

/// Media type of a widget in all current hosts.
pub(crate) const MCP_APP: &str = "text/html;profile=mcp-app";
/// Media type of a widget in ChatGPT clients of 2025.
pub(crate) const SKYBRIDGE: &str = "text/html+skybridge";

/// A browser permission that a widget requests. A host may refuse it, so the page has to check before use.
///
/// ```rust
/// use docent_mcp::{Widget, WidgetPermission};
///
/// let page = "<!doctype html><title>Tides</title>";
/// let widget = Widget::new("tides", "Tides", "Copies the tides.", page)
///     .permission(WidgetPermission::ClipboardWrite);
/// # let _ = widget;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WidgetPermission {
    /// Permission to use the camera.
    Camera,
    /// Permission to use the microphone.
    Microphone,
    /// Permission to read the location of the device.
    Geolocation,
    /// Permission to write text to the clipboard.
    ClipboardWrite,
}

impl WidgetPermission {
    fn key(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboardWrite",
        }
    }
}

/// An HTML page that a host shows in the conversation. A tool renders it with
/// [`ToolDescriptor::widget`](crate::ToolDescriptor::widget).
///
/// Its URI contains a fingerprint of its content, because hosts cache pages by URI: a changed page gets a new URI
/// automatically. Conversations that still have a former URI get the current page.
///
/// ```rust
/// use docent_mcp::{App, Widget};
///
/// let page = "<!doctype html><title>Tides</title><h1>High water</h1>";
/// let widget = Widget::new("tides", "Tides", "The times of high water today.", page)
///     .border(true)
///     .connect_domain("https://api.tides.example")
///     .chatgpt_domain("https://tides.example");
/// let app = App::builder("tides", "1.0.0").widget(widget).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Widget {
    pub(crate) name: String,
    title: String,
    description: String,
    source: WidgetSource,
    domains: WidgetDomains,
    border: Option<bool>,
    permissions: Vec<WidgetPermission>,
    chatgpt_domain: Option<String>,
    connector: Option<String>,
    skybridge: bool,
    former: Vec<String>,
}

#[derive(Debug, Clone)]
enum WidgetSource {
    Text(Cow<'static, str>),
    File(PathBuf),
}

impl Widget {
    /// Creates a widget from its page, such as from `include_str!`. Tools refer to it by `name`; the model reads the
    /// `description` and then need not describe what the user sees.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        description: impl Into<String>,
        html: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::from_source(
            name.into(),
            title.into(),
            description.into(),
            WidgetSource::Text(html.into()),
        )
    }

    /// Creates a widget whose page is read from a file at every request, for development: `docent preview` shows a
    /// change as soon as it is saved. The URI stays the same while the process runs, so hosts that cache pages may
    /// show an older version.
    #[must_use]
    pub fn from_file(
        name: impl Into<String>,
        title: impl Into<String>,
        description: impl Into<String>,
        path: impl Into<PathBuf>,
    ) -> Self {
        Self::from_source(
            name.into(),
            title.into(),
            description.into(),
            WidgetSource::File(path.into()),
        )
    }

    fn from_source(name: String, title: String, description: String, source: WidgetSource) -> Self {
        Self {
            name,
            title,
            description,
            source,
            domains: WidgetDomains::default(),
            border: None,
            permissions: Vec::new(),
            chatgpt_domain: None,
            connector: None,
            skybridge: false,
            former: Vec::new(),
        }
    }

    /// Sets whether the host should draw a border and a background.
    #[must_use]
    pub const fn border(mut self, border: bool) -> Self {
        self.border = Some(border);
        self
    }

    /// Allows an origin for `fetch` and web sockets, such as `https://api.example.com`. A widget that gets its data
    /// through the host bridge needs none.
    #[must_use]
    pub fn connect_domain(mut self, origin: impl Into<String>) -> Self {
        self.domains.connect.push(origin.into());
        self
    }

    /// Allows an origin for images, fonts, scripts and styles; `https://*.example.com` is allowed.
    #[must_use]
    pub fn resource_domain(mut self, origin: impl Into<String>) -> Self {
        self.domains.resource.push(origin.into());
        self
    }

    /// Allows an origin for frames inside the widget. ChatGPT reviews such apps more strictly, and Claude shows no
    /// frames.
    #[must_use]
    pub fn frame_domain(mut self, origin: impl Into<String>) -> Self {
        self.domains.frame.push(origin.into());
        self
    }

    /// Allows an origin for the document's base URL.
    #[must_use]
    pub fn base_uri_domain(mut self, origin: impl Into<String>) -> Self {
        self.domains.base_uri.push(origin.into());
        self
    }

    /// Allows an origin to which ChatGPT opens links without a warning.
    #[must_use]
    pub fn redirect_domain(mut self, origin: impl Into<String>) -> Self {
        self.domains.redirect.push(origin.into());
        self
    }

    /// Requests a browser permission.
    #[must_use]
    pub fn permission(mut self, permission: WidgetPermission) -> Self {
        self.permissions.push(permission);
        self
    }

    /// Sets the origin under which ChatGPT runs the widget, which its store requires. It is sent as
    /// `openai/widgetDomain` only: Claude refuses a widget whose `ui.domain` is not one of its own.
    #[must_use]
    pub fn chatgpt_domain(mut self, origin: impl Into<String>) -> Self {
        self.chatgpt_domain = Some(origin.into());
        self
    }

    /// Requests a stable origin from Claude, for widgets that need one for CORS. It is derived from the URL of the
    /// MCP endpoint exactly as users type it; see [`claude_domain`].
    #[must_use]
    pub fn claude_domain_for(mut self, connector_url: impl Into<String>) -> Self {
        self.connector = Some(connector_url.into());
        self
    }

    /// Lists the page a second time as `text/html+skybridge`, and points `openai/outputTemplate` there, for ChatGPT
    /// clients of 2025.
    #[must_use]
    pub const fn skybridge(mut self) -> Self {
        self.skybridge = true;
        self
    }

    /// Keeps a URI readable that an earlier release used.
    #[must_use]
    pub fn formerly(mut self, uri: impl Into<String>) -> Self {
        self.former.push(uri.into());
        self
    }

    /// Returns the declared origins, from which [`csp::policy`] derives the policy of a host.
    #[must_use]
    pub const fn domains(&self) -> &WidgetDomains {
        &self.domains
    }

    /// Returns the `_meta` of the widget, for every host.
    fn meta(&self) -> Map<String, Value> {
        let WidgetDomains {
            connect,
            resource,
            frame,
            base_uri,
            redirect,
        } = &self.domains;
        let mut csp = json!({"connectDomains": connect, "resourceDomains": resource});
        let mut old = json!({"connect_domains": connect, "resource_domains": resource});
        // Hosts review apps that mention frames more strictly, so an empty list is omitted.
        let optional = [
            (&mut csp, "frameDomains", frame),
            (&mut old, "frame_domains", frame),
        ];
        for (object, key, list) in optional {
            add(object, key, list);
        }
        add(&mut csp, "baseUriDomains", base_uri);
        add(&mut old, "redirect_domains", redirect);
        let mut ui = Map::new();
        ui.insert("csp".to_owned(), csp);
        if !self.permissions.is_empty() {
            let requested = self
                .permissions
                .iter()
                .map(|permission| (permission.key().to_owned(), json!({})));
            ui.insert("permissions".to_owned(), Value::Object(requested.collect()));
        }
        let mut meta = Map::new();
        meta.insert(
            "openai/widgetDescription".to_owned(),
            json!(self.description),
        );
        if let Some(border) = self.border {
            ui.insert("prefersBorder".to_owned(), border.into());
            meta.insert("openai/widgetPrefersBorder".to_owned(), border.into());
        }
        if let Some(url) = &self.connector {
            ui.insert("domain".to_owned(), claude_domain(url).into());
        }
        if let Some(origin) = &self.chatgpt_domain {
            meta.insert("openai/widgetDomain".to_owned(), json!(origin));
        }
        meta.insert("openai/widgetCSP".to_owned(), old);
        meta.insert("ui".to_owned(), Value::Object(ui));
        meta
    }

    /// Validates everything that hosts would refuse later.
    fn check(&self, html: &str) -> Result<(), BuildError> {
        let name = &self.name;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(BuildError::WidgetName(name.clone()));
        }
        let wrong = |what: String| BuildError::Widget {
            widget: name.clone(),
            what,
        };
        for (what, text) in [("title", &self.title), ("description", &self.description)] {
            if text.trim().is_empty() {
                return Err(wrong(format!(
                    "has no {what}: say in a few words what it shows"
                )));
            }
        }
        let WidgetDomains {
            connect,
            resource,
            frame,
            base_uri,
            redirect,
        } = &self.domains;
        for list in [connect, resource, frame, base_uri, redirect] {
            if list.len() > csp::MAX_DOMAINS {
                let most = csp::MAX_DOMAINS;
                return Err(wrong(format!(
                    "lists {} origins, the limit is {most}: use fewer",
                    list.len()
                )));
            }
        }
        let listed = [connect, resource, frame, base_uri, redirect]
            .into_iter()
            .flatten();
        if let Some(bad) = listed
            .chain(&self.chatgpt_domain)
            .find(|entry| !csp::is_origin(entry))
        {
            let cure = "write a scheme and a host alone, such as `https://api.example.com`";
            return Err(wrong(format!(
                "names `{bad}`, which is not an origin: {cure}"
            )));
        }
        if let Some(bad) = self.former.iter().find(|uri| !uri.starts_with("ui://")) {
            return Err(wrong(format!(
                "has the former address `{bad}`: hosts read widgets from `ui://` only"
            )));
        }
        html::check(html, resource).map_err(wrong)
    }
}

fn add(object: &mut Value, key: &str, list: &[String]) {
    if let Some(object) = object.as_object_mut().filter(|_| !list.is_empty()) {
        object.insert(key.to_owned(), json!(list));
    }
}

/// Returns the origin under which Claude runs the widgets of a connector, derived from the exact URL that its user
/// typed. Any other value in `ui.domain` makes Claude refuse the widget.
///
/// ```rust
/// use docent_mcp::claude_domain;
///
/// assert_eq!(
///     claude_domain("https://example.com/mcp"),
///     "c3d80a4ed901ee05b21755a88273b4a4.claudemcpcontent.com"
/// );
/// ```
#[must_use]
pub fn claude_domain(connector_url: &str) -> String {
    format!(
        "{}.claudemcpcontent.com",
        fingerprint(connector_url.as_bytes(), 16)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!doctype html><title>x</title><p>x";

    fn widget() -> Widget {
        Widget::new("board", "Board", "A board of tasks.", PAGE)
    }

    fn problem(widget: &Widget) -> String {
        widget.check(PAGE).unwrap_err().to_string()
    }

    #[test]
    fn everything_is_said_in_every_spelling() {
        let widget = widget()
            .border(true)
            .connect_domain("https://api.example.com")
            .resource_domain("https://cdn.example.com")
            .redirect_domain("https://shop.example.com")
            .chatgpt_domain("https://board.example.com")
            .permission(WidgetPermission::ClipboardWrite);
        assert_eq!(
            Value::Object(widget.meta()),
            json!({
                "openai/widgetDescription": "A board of tasks.",
                "openai/widgetPrefersBorder": true,
                "openai/widgetDomain": "https://board.example.com",
                "openai/widgetCSP": {
                    "connect_domains": ["https://api.example.com"],
                    "resource_domains": ["https://cdn.example.com"],
                    "redirect_domains": ["https://shop.example.com"],
                },
                "ui": {
                    "csp": {
                        "connectDomains": ["https://api.example.com"],
                        "resourceDomains": ["https://cdn.example.com"],
                    },
                    "permissions": {"clipboardWrite": {}},
                    "prefersBorder": true,
                },
            })
        );
        let framed = widget
            .frame_domain("https://a.example")
            .base_uri_domain("https://b.example")
            .meta();
        assert_eq!(
            framed["ui"]["csp"]["frameDomains"],
            json!(["https://a.example"])
        );
        assert_eq!(
            framed["ui"]["csp"]["baseUriDomains"],
            json!(["https://b.example"])
        );
        assert_eq!(
            framed["openai/widgetCSP"]["frame_domains"],
            json!(["https://a.example"])
        );
    }

    #[test]
    fn the_domain_of_chatgpt_never_reaches_claude() {
        let meta = widget().chatgpt_domain("https://board.example.com").meta();
        assert!(meta["ui"].get("domain").is_none());
        let url = "https://example.com/mcp";
        assert_eq!(
            claude_domain(url),
            "c3d80a4ed901ee05b21755a88273b4a4.claudemcpcontent.com"
        );
        let meta = widget().claude_domain_for(url).meta();
        assert_eq!(meta["ui"]["domain"], json!(claude_domain(url)));
        assert!(meta.get("openai/widgetDomain").is_none());
    }

    #[test]
    fn widgets_that_hosts_reject_are_rejected_with_a_hint() {
        let named = |name: &str| Widget::new(name, "t", "d", PAGE);
        for name in ["", "Board", "a b", "ä", &"x".repeat(65)] {
            assert_eq!(
                named(name).check(PAGE),
                Err(BuildError::WidgetName(name.to_owned())),
                "{name}"
            );
        }
        assert_eq!(named(&"x".repeat(64)).check(PAGE), Ok(()));
        assert!(problem(&Widget::new("a", "t", " ", PAGE)).contains("has no description"));
        assert!(problem(&widget().connect_domain("api.example.com")).contains("is not an origin"));
        assert!(
            problem(&widget().chatgpt_domain("https://a.example/x")).contains("is not an origin")
        );
        assert!(problem(&widget().formerly("https://a.example")).contains("ui://"));
        let many = |count: usize| {
            (0..count).fold(widget(), |widget, n| {
                widget.connect_domain(format!("https://h{n}.example"))
            })
        };
        assert_eq!(many(csp::MAX_DOMAINS).check(PAGE), Ok(()));
        assert!(problem(&many(csp::MAX_DOMAINS + 1)).contains("the limit is 32"));
    }
}
