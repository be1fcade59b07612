//! HTML pages of the login: consent form, redirect and error pages. They are plain HTML without scripts,
//! with a strict CSP and escaped values, and cannot be framed.

use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docent_mcp::escape_html;
use docent_mcp::http::RouteResponse;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::oauth_client::OAuthClient;
use super::redirect;

const STYLE: &str = include_str!("page.css");

/// The values of the consent page. `error` is the reason when the form is shown again.
pub(crate) struct ConsentPage<'a> {
    pub(crate) server: &'a str,
    pub(crate) client: &'a OAuthClient,
    pub(crate) redirect: &'a str,
    pub(crate) sees_email: bool,
    /// The authorization request, and the MAC over it.
    pub(crate) query: &'a str,
    pub(crate) token: &'a str,
    /// The user name that the client expects (`login_hint`).
    pub(crate) hint: Option<&'a str>,
    /// The upstream provider's host; without one the page asks for a password.
    pub(crate) at: Option<&'a str>,
    pub(crate) error: Option<SignInError>,
}

/// Why a login failed and the form is shown again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignInError {
    Wrong,
    /// The rate limit for wrong passwords of one user name.
    TooOften(Duration),
    /// The rate limit for logins from one network.
    NetworkTooOften(Duration),
    Busy,
}

impl SignInError {
    fn text(self) -> String {
        match self {
            Self::Wrong => "That name and password do not go together.".to_owned(),
            Self::TooOften(wait) => {
                let seconds = wait.as_secs().max(1);
                format!("Too many wrong passwords for this name. Try again in {seconds} seconds.")
            }
            Self::NetworkTooOften(wait) => {
                let seconds = wait.as_secs().max(1);
                format!("Too many sign-ins from your network. Try again in {seconds} seconds.")
            }
            Self::Busy => "Many people sign in at once. Try again in a moment.".to_owned(),
        }
    }
}

/// Renders the consent page with the login form.
pub(crate) fn consent_page(consent: &ConsentPage<'_>) -> RouteResponse {
    let host = redirect::display_target(consent.redirect);
    let client = client_label(consent.client, &host);
    let (name, server) = (escape_html(&client), escape_html(consent.server));
    let mut main = String::new();
    let _ = write!(
        main,
        "<h1>Let <b>{name}</b> read <b>{server}</b>?</h1>\n<dl>\n<div><dt>Returns to</dt><dd>{}</dd></div>\n",
        escape_html(&host)
    );
    let vouched = if consent.client.has_document() {
        let source = Url::parse(&consent.client.id).ok();
        let source = source.and_then(|url| url.host_str().map(str::to_owned));
        format!("Identified by {}", escape_html(&source.unwrap_or_default()))
    } else {
        "Nobody but the app vouches for its name".to_owned()
    };
    let _ = writeln!(main, "<div><dt>App</dt><dd>{vouched}</dd></div>");
    let email = if consent.sees_email {
        ", and see your e-mail address"
    } else {
        ""
    };
    let _ = writeln!(
        main,
        "<div><dt>It may</dt><dd>search and read what you may read{email}</dd></div>\n</dl>"
    );
    if let Some(error) = consent.error {
        let _ = writeln!(
            main,
            "<p class=\"trouble\" role=\"alert\">{}</p>",
            escape_html(&error.text())
        );
    }
    main.push_str(&form(consent));
    main.push_str("<p class=\"note\">Go on only if you have just started this in that app.</p>\n");
    let page = page(&format!("Sign in to {}", consent.server), &main, "");
    match consent.error {
        None => page,
        Some(SignInError::Wrong) => page.status(403),
        Some(SignInError::Busy) => page.status(503).header("retry-after", "10"),
        Some(SignInError::TooOften(wait) | SignInError::NetworkTooOften(wait)) => page
            .status(429)
            .header("retry-after", wait.as_secs().max(1).to_string()),
    }
}

/// The client's display name: its own, or the host of its redirect URI if it has none.
fn client_label(client: &OAuthClient, host: &str) -> String {
    if client.name.is_empty() {
        format!("an app at {host}")
    } else {
        client.name.clone()
    }
}

fn form(consent: &ConsentPage<'_>) -> String {
    let mut form = format!(
        "<form method=\"post\" action=\"authorize\">\n<input type=\"hidden\" name=\"request\" value=\"{}\">\n\
         <input type=\"hidden\" name=\"token\" value=\"{}\">\n",
        escape_html(consent.query),
        escape_html(consent.token)
    );
    let allow = match consent.at {
        None => {
            // With a known user name only the password is left to type, so it gets the focus.
            let (first, second) = match consent.hint {
                None => (" autofocus".to_owned(), ""),
                Some(name) => (format!(" value=\"{}\"", escape_html(name)), " autofocus"),
            };
            let _ = write!(
                form,
                "<label>Name<input name=\"name\" autocomplete=\"username\" autocapitalize=\"none\" \
                 spellcheck=\"false\" maxlength=\"200\" required{first}></label>\n\
                 <label>Password<input name=\"password\" type=\"password\" autocomplete=\"current-password\" \
                 maxlength=\"512\" required{second}></label>\n",
            );
            "Sign in and allow".to_owned()
        }
        Some(provider) => format!("Continue at {}", escape_html(provider)),
    };
    // Browsers submit with the first button on the enter key, so it has to be the allowing one.
    let _ = write!(
        form,
        "<div class=\"buttons\"><button name=\"decision\" value=\"allow\">{allow}</button>\n\
         <button name=\"decision\" value=\"deny\" class=\"quiet\" formnovalidate>Cancel</button></div>\n</form>\n"
    );
    form
}

/// A page that forwards the browser to the client, automatically or by a link.
pub(crate) fn redirect_page(to: &str) -> RouteResponse {
    let to = escape_html(to);
    let refresh = format!("<meta http-equiv=\"refresh\" content=\"0; url={to}\">\n");
    let main = format!(
        "<h1>Going back to the app…</h1>\n<p><a href=\"{to}\">Go on</a> if nothing happens.</p>\n"
    );
    page("Going back", &main, &refresh).header("referrer-policy", "no-referrer")
}

/// An error page for something that the user or the app has to correct.
pub(crate) fn error_page(why: &str) -> RouteResponse {
    let mut text = why.to_owned();
    if let Some(first) = text.get(..1) {
        let first = first.to_uppercase();
        text.replace_range(..1, &first);
    }
    let main = format!(
        "<h1>This cannot go on</h1>\n<p>{}.</p>\n",
        escape_html(&text)
    );
    page("This cannot go on", &main, "")
}

/// An error page for a request that failed before the user saw any page. Anybody can register a client, so
/// a redirect here would be an open redirector; the user may still follow the link.
pub(crate) fn refused_page(error: &str, why: &str, to: &str) -> RouteResponse {
    let to = escape_html(to);
    let main = format!(
        "<h1>This cannot go on</h1>\n<p>The app asked for something that this server does not do: {} ({}).</p>\n\
         <p>Go back to the app. It would learn of this at an address of its own choice; follow it only if you trust \
         it:</p>\n<p><a href=\"{to}\" rel=\"noreferrer\">{to}</a></p>\n",
        escape_html(why),
        escape_html(error)
    );
    page("This cannot go on", &main, "").status(400)
}

/// An HTTP redirect, for responses that do not follow a form submission.
pub(crate) fn redirect(to: &str) -> RouteResponse {
    RouteResponse::new(302, "text/plain; charset=utf-8", "")
        .header("location", to)
        .header("cache-control", "no-store")
}

fn page(title: &str, main: &str, head: &str) -> RouteResponse {
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         {head}<style>{STYLE}</style>\n<main>\n{main}</main>\n</html>\n",
        escape_html(title)
    );
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    RouteResponse::html(body)
        .header("cache-control", "no-store")
        .header("x-frame-options", "DENY")
        // With a stricter policy browsers would send `Origin: null` with the form.
        .header("referrer-policy", "same-origin")
        .header(
            "content-security-policy",
            format!(
                "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; \
                 frame-ancestors 'none'; base-uri 'none'"
            ),
        )
}
