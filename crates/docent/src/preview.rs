//! A page that plays the host: any MCP server's tools into forms, results and widgets, as ChatGPT or
//! Claude would show them. For `docent preview`, and at `/preview` of `docent serve --preview`.
//!
//! The page calls the server that it came from directly and any other through [`proxy`], because a
//! browser does not let it. Widgets come from [`frame`] under the policy that the host would derive.

mod page;
mod proxy;
mod widget_frame;

use std::sync::Arc;

use docent_mcp::Failure;
use docent_mcp::http::{Route, RouteRequest, RouteResponse};

use self::widget_frame::WidgetFrames;

/// What the page shows, and whom it may call.
#[derive(Debug, Clone)]
pub enum PreviewTarget {
    /// The server that serves the page; nobody else can be called through it.
    Own,
    /// The server at this address alone, or any whose address a person types.
    Any(Option<String>),
}

/// The addresses below `/preview`.
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

/// Refuses what another site's page asks for. Browsers say so in a header that no script can change; a
/// person may still follow a link from anywhere to the page itself.
fn require_same_origin(visit: &RouteRequest, is_page: bool) -> Result<(), Failure> {
    let from_here = matches!(
        visit.header("sec-fetch-site"),
        None | Some("same-origin" | "none")
    );
    // A frame of another page is no person.
    let is_whole = matches!(visit.header("sec-fetch-dest"), None | Some("document"));
    let by_person = is_page && is_whole && visit.header("sec-fetch-mode") == Some("navigate");
    if from_here || by_person {
        return Ok(());
    }
    Err(Failure::refused("the preview answers its own page alone"))
}

/// The same for what changes or fetches something, where the page also has to know its secret.
fn require_token(visit: &RouteRequest, token: &str) -> Result<(), Failure> {
    require_same_origin(visit, false)?;
    if visit.header("x-docent-token") == Some(token) {
        return Ok(());
    }
    Err(Failure::refused(
        "the preview was started anew; load its page again",
    ))
}
