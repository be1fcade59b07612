//! The host simulator: a page that shows the tools of any MCP server as forms, results and widgets, as ChatGPT or
//! Claude would. It serves `docent preview`, and `/preview` of `docent serve --preview`.
//!
//! The page calls its own server directly. The same-origin policy of browsers forbids calls to any other server, so
//! those go through [`proxy`]. [`widget_frame`] serves the widgets under the CSP that the host would derive.

mod page;
mod proxy;
mod widget_frame;

use std::sync::Arc;

use docent_mcp::Failure;
use docent_mcp::http::{Route, RouteRequest, RouteResponse};

use self::widget_frame::WidgetFrames;

/// The MCP servers that the preview page may call.
#[derive(Debug, Clone)]
pub enum PreviewTarget {
    /// Only the server that serves the page; there is no proxy.
    Own,
    /// Only the server at this address, or without one any server whose address the user types.
    Any(Option<String>),
}

/// The routes of the preview. A new random token protects those that change or fetch something against CSRF.
#[must_use]
pub fn routes(target: &PreviewTarget) -> Vec<Route> {
    let token = uuid::Uuid::new_v4().simple().to_string();
    let page = Arc::new(page::PreviewPage::new(target, &token));
    let frames = Arc::new(WidgetFrames::default());
    let mut routes = vec![
        Route::get("/preview", move |visit: RouteRequest| {
            let page = page.clone();
            async move { require_same_origin(&visit, true).map(|()| page.answer()) }
        }),
        widget_frame::store_route(frames.clone(), token.clone()),
        widget_frame::frame_route(frames),
    ];
    if let PreviewTarget::Any(only) = target {
        routes.push(proxy::route(token, only.clone()));
        routes.push(Route::get("/", |_| async {
            Ok(RouteResponse::new(302, "text/plain", "/preview").header("location", "/preview"))
        }));
    }
    routes
}

/// Refuses cross-origin requests by the fetch metadata headers (`Sec-Fetch-*`), which no script can set. A person may
/// still navigate to the page itself from anywhere.
fn require_same_origin(visit: &RouteRequest, is_page: bool) -> Result<(), Failure> {
    let is_same_origin = matches!(
        visit.header("sec-fetch-site"),
        None | Some("same-origin" | "none")
    );
    // A frame inside another page is no top-level navigation.
    let is_top_level = matches!(visit.header("sec-fetch-dest"), None | Some("document"));
    let is_navigation =
        is_page && is_top_level && visit.header("sec-fetch-mode") == Some("navigate");
    if is_same_origin || is_navigation {
        return Ok(());
    }
    Err(Failure::refused(
        "the preview refuses cross-origin requests",
    ))
}

/// Refuses cross-origin requests, and requests without the CSRF token that only the page knows. It guards the routes
/// that change or fetch something.
fn require_token(visit: &RouteRequest, token: &str) -> Result<(), Failure> {
    require_same_origin(visit, false)?;
    if visit.header("x-docent-token") == Some(token) {
        return Ok(());
    }
    Err(Failure::refused(
        "the preview has restarted; reload the page",
    ))
}
