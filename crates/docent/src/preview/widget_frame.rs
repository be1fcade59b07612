//! Sandboxed widget frames: serves a widget's HTML under the CSP that ChatGPT or Claude would derive for it.
//!
//! The CSP is sent as a header, which the page cannot change. Its `sandbox` directive gives the document an
//! opaque origin, so that it has no access to the preview even when it is opened by itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use docent_mcp::Failure;
use docent_mcp::csp::{HostStyle, WidgetDomains, policy};
use docent_mcp::http::{Route, RouteRequest, RouteResponse};
use serde::Deserialize;
use serde_json::json;

use super::{require_same_origin, require_token};

/// How many widgets are kept: one is shown, and a few more may be in the browser's history.
const MAX_FRAMES: usize = 8;
/// The size limit of a widget: the limit of the kit, and room for the injected script.
const MAX_BYTES: usize = 5 * 1024 * 1024;

/// The most recent widgets, oldest first; storing a ninth evicts the oldest.
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

/// The domain allowlists as they are written in `_meta.ui.csp`.
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
    /// Stores a widget under a random id and answers with its URL and CSP.
    fn store(&self, frame_request: FrameRequest) -> Result<RouteResponse, Failure> {
        if frame_request.html.len() > MAX_BYTES {
            return Err(Failure::caller(format!(
                "the widget has more than {MAX_BYTES} bytes"
            )));
        }
        let style = match frame_request.host {
            PreviewHost::ChatGpt => HostStyle::ChatGpt,
            PreviewHost::Claude => HostStyle::Claude,
        };
        let policy = policy(frame_request.csp.map(WidgetDomains::from).as_ref(), style);
        let id = uuid::Uuid::new_v4().simple().to_string();
        let answer =
            RouteResponse::json(&json!({"src": format!("/preview/frame/{id}"), "policy": policy}));
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while frames.len() >= MAX_FRAMES {
            frames.pop_front();
        }
        frames.push_back(WidgetFrame {
            id,
            html: frame_request.html,
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

/// The route `POST /preview/frame`, which stores a widget; it requires the page's token.
pub(super) fn store_route(frames: Arc<WidgetFrames>, token: String) -> Route {
    Route::post("/preview/frame", move |request: RouteRequest| {
        let kept = require_token(&request, &token).and_then(|()| {
            let frame_request = serde_json::from_slice(request.body())
                .map_err(|error| Failure::caller(format!("not a widget: {error}")))?;
            frames.store(frame_request)
        });
        std::future::ready(kept)
    })
}

/// The route `GET /preview/frame/{id}`, which serves a stored widget to the preview's own origin only.
pub(super) fn frame_route(frames: Arc<WidgetFrames>) -> Route {
    Route::get("/preview/frame/{id}", move |request: RouteRequest| {
        let shown = require_same_origin(&request, false)
            .and_then(|()| frames.show(request.var("id").unwrap_or_default()));
        std::future::ready(shown)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_request(html: String) -> FrameRequest {
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
            frames.store(frame_request(n.to_string())).unwrap();
        }
        let kept = frames.0.lock().unwrap();
        assert_eq!(kept.len(), MAX_FRAMES);
        assert_eq!(kept.front().unwrap().html, "1");
    }

    #[test]
    fn a_widget_has_a_bound() {
        let frames = WidgetFrames::default();
        assert!(frames.store(frame_request("x".repeat(MAX_BYTES))).is_ok());
        assert!(
            frames
                .store(frame_request("x".repeat(MAX_BYTES + 1)))
                .is_err()
        );
    }
}
