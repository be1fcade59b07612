//! A widget's page into a document under the exact policy of a host, in a sandbox of its own.
//!
//! The policy travels as a header, which a page cannot change. The `sandbox` in it gives the document
//! an origin that is nobody's, so that it can reach nothing here even when opened by itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use docent_mcp::Failure;
use docent_mcp::csp::{HostStyle, WidgetDomains, policy};
use docent_mcp::http::{Route, RouteRequest, RouteResponse};
use serde::Deserialize;
use serde_json::json;

use super::{require_same_origin, require_token};

/// How many widgets are kept: one is on the stage, a few more may be behind it in the history.
const MAX_FRAMES: usize = 8;
/// The largest page; the kit's own bound, and room for the script that runs first.
const MAX_BYTES: usize = 5 * 1024 * 1024;

/// The widgets of late, oldest first.
#[derive(Default)]
pub(super) struct WidgetFrames(Mutex<VecDeque<WidgetFrame>>);

struct WidgetFrame {
    id: String,
    html: String,
    policy: String,
}

#[derive(Deserialize)]
struct FrameRequest {
    html: String,
    csp: Option<CspDomains>,
    host: PreviewHost,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PreviewHost {
    ChatGpt,
    Claude,
}

/// The domains as `_meta.ui.csp` has them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CspDomains {
    connect_domains: Option<Vec<String>>,
    resource_domains: Option<Vec<String>>,
    frame_domains: Option<Vec<String>>,
    base_uri_domains: Option<Vec<String>>,
}

impl From<CspDomains> for WidgetDomains {
    fn from(csp: CspDomains) -> Self {
        Self {
            connect: csp.connect_domains.unwrap_or_default(),
            resource: csp.resource_domains.unwrap_or_default(),
            frame: csp.frame_domains.unwrap_or_default(),
            base_uri: csp.base_uri_domains.unwrap_or_default(),
            redirect: Vec::new(),
        }
    }
}

impl WidgetFrames {
    /// Keeps a widget and says where it is.
    fn store(&self, wanted: FrameRequest) -> Result<RouteResponse, Failure> {
        if wanted.html.len() > MAX_BYTES {
            return Err(Failure::caller(format!(
                "the widget has more than {MAX_BYTES} bytes"
            )));
        }
        let style = match wanted.host {
            PreviewHost::ChatGpt => HostStyle::ChatGpt,
            PreviewHost::Claude => HostStyle::Claude,
        };
        let policy = policy(wanted.csp.map(WidgetDomains::from).as_ref(), style);
        let id = uuid::Uuid::new_v4().simple().to_string();
        let answer =
            RouteResponse::json(&json!({"src": format!("/preview/frame/{id}"), "policy": policy}));
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while frames.len() >= MAX_FRAMES {
            frames.pop_front();
        }
        frames.push_back(WidgetFrame {
            id,
            html: wanted.html,
            policy,
        });
        Ok(answer)
    }

    fn show(&self, id: &str) -> Result<RouteResponse, Failure> {
        let frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(frame) = frames.iter().find(|frame| frame.id == id) else {
            return Err(Failure::not_found(id));
        };
        let policy = format!(
            "{}; frame-ancestors 'self'; sandbox allow-scripts",
            frame.policy
        );
        Ok(RouteResponse::html(frame.html.clone())
            .header("content-security-policy", policy)
            .header("cache-control", "no-store"))
    }
}

/// `POST /preview/frame`.
pub(super) fn store_route(frames: Arc<WidgetFrames>, token: String) -> Route {
    Route::post("/preview/frame", move |visit: RouteRequest| {
        let kept = require_token(&visit, &token).and_then(|()| {
            let wanted = serde_json::from_slice(visit.body())
                .map_err(|error| Failure::caller(format!("not a widget: {error}")))?;
            frames.store(wanted)
        });
        std::future::ready(kept)
    })
}

/// `GET /preview/frame/{id}`.
pub(super) fn frame_route(frames: Arc<WidgetFrames>) -> Route {
    Route::get("/preview/frame/{id}", move |visit: RouteRequest| {
        let shown = require_same_origin(&visit, false)
            .and_then(|()| frames.show(visit.var("id").unwrap_or_default()));
        std::future::ready(shown)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(html: String) -> FrameRequest {
        FrameRequest {
            html,
            csp: None,
            host: PreviewHost::Claude,
        }
    }

    #[test]
    fn only_the_latest_are_kept() {
        let frames = WidgetFrames::default();
        for n in 0..=MAX_FRAMES {
            frames.store(wanted(n.to_string())).unwrap();
        }
        let kept = frames.0.lock().unwrap();
        assert_eq!(kept.len(), MAX_FRAMES);
        assert_eq!(kept.front().unwrap().html, "1");
    }

    #[test]
    fn a_widget_has_a_bound() {
        let frames = WidgetFrames::default();
        assert!(frames.store(wanted("x".repeat(MAX_BYTES))).is_ok());
        assert!(frames.store(wanted("x".repeat(MAX_BYTES + 1))).is_err());
    }
}
