//! Widgets: how their templates are named, served and fenced in. Judged by their text, and by what a browser
//! did with them where one was asked for.

mod csp;
mod html;
mod mounted;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    Apps, ChatGpt, Claude, Error, Fault, Note, Rule, Seen, Submission, Verdict, Warning, name,
    ours, owner, several, within,
};
use crate::survey::{Widget, templates};

const APPS: &str = "MCP Apps specification 2026-01-26";
const OPENAI_UI: &str = "OpenAI, plugins/build/chatgpt-ui";
const MIME: &str = "text/html;profile=mcp-app";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "widgets/template-exists",
        demand: "a template that a tool names can be read",
        weights: &[
            (Apps, Error),
            (ChatGpt, Error),
            (Claude, Error),
            (Submission, Error),
        ],
        source: owner(APPS, "2026-01-26"),
        fix: "answer `resources/read` for the address that the tool names",
        judge: template_exists,
    },
    Rule {
        id: "widgets/uri",
        demand: "the address of a template begins with `ui://`",
        weights: &[(Apps, Error), (Submission, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "name it such as `ui://results/v1.html`; a new version needs a new name",
        judge: uri,
    },
    Rule {
        id: "widgets/both-keys",
        demand: "a tool names its template in `_meta.ui.resourceUri` and in `openai/outputTemplate` alike",
        weights: &[(Apps, Warning)],
        source: owner(OPENAI_UI, "2026-11-15"),
        fix: "set `_meta.ui.resourceUri`; if `openai/outputTemplate` is there, make it the same",
        judge: both_keys,
    },
    Rule {
        id: "widgets/own-tool",
        demand: "templates stand on tools that show, not on `search` and `fetch`",
        weights: &[(Apps, Warning)],
        source: owner(OPENAI_UI, "2026-11-15"),
        fix: "add a tool that shows results by their ids, and give it the template",
        judge: own_tool,
    },
    Rule {
        id: "widgets/mime",
        demand: "a template has the type `text/html;profile=mcp-app`",
        weights: &[(Apps, Error), (Submission, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "set `mimeType` to exactly that, in the list and in what is read",
        judge: mime,
    },
    Rule {
        id: "widgets/html",
        demand: "a template is one whole HTML document",
        weights: &[(Apps, Error), (Submission, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "return `text` that begins with `<!doctype html>`",
        judge: html_document,
    },
    Rule {
        id: "widgets/inline",
        demand: "scripts and styles are inside the document",
        weights: &[(Apps, Warning), (Submission, Warning)],
        source: several(
            "modules from a CDN fail in Claude, and each domain is asked about in review",
            "2026-11-15",
        ),
        fix: "build one file with everything in it; images as data addresses",
        judge: html::inline,
    },
    Rule {
        id: "widgets/csp-covers",
        demand: "every other origin that the document loads from is in its CSP",
        weights: &[(Apps, Error), (Submission, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "list the origin in `_meta.ui.csp.resourceDomains` or `connectDomains`, or load nothing",
        judge: html::csp_covers,
    },
    Rule {
        id: "widgets/csp-form",
        demand: "the CSP has lists of origins under the names of its two keys",
        weights: &[(Apps, Error), (Submission, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "write `connectDomains`, `resourceDomains` … in `_meta.ui.csp`, and `connect_domains`, `resource_domains` … in `openai/widgetCSP`",
        judge: csp::csp_form,
    },
    Rule {
        id: "widgets/csp-both-keys",
        demand: "a CSP stands in `_meta.ui.csp` and in `openai/widgetCSP`",
        weights: &[(Apps, Warning), (Submission, Warning)],
        source: several(
            "PostHog#69612 and transcriptor-mcp#35 saw ChatGPT read one key, redmine-mcp-server#249 the other",
            "2026-11-15",
        ),
        fix: "write it in both, on what is read",
        judge: csp::csp_both_keys,
    },
    Rule {
        id: "widgets/meta-on-contents",
        demand: "the CSP stands on what `resources/read` returns, not on the list alone",
        weights: &[(Apps, Error), (Submission, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "put `_meta` on the item in `contents`",
        judge: csp::meta_on_contents,
    },
    Rule {
        id: "widgets/frames",
        demand: "a widget embeds no other pages",
        weights: &[(Apps, Note), (Submission, Warning)],
        source: owner(OPENAI_UI, "2026-11-15"),
        fix: "leave out `frameDomains`; Claude restricts it and OpenAI reviews it by hand",
        judge: csp::frames,
    },
    Rule {
        id: "widgets/domain-claude",
        demand: "`_meta.ui.domain` is the one that Claude computes, or absent",
        weights: &[(Claude, Error), (Apps, Error)],
        source: owner("Claude, mcp-apps/troubleshooting", "2026-11-15"),
        fix: "leave `ui.domain` out, and tell ChatGPT the domain in `openai/widgetDomain`",
        judge: domain_claude,
    },
    Rule {
        id: "widgets/domain-openai",
        demand: "a widget that is submitted names a domain of its own",
        weights: &[(Submission, Error)],
        source: owner("OpenAI, plugins submission", "2026-11-15"),
        fix: "set `openai/widgetDomain` to an https address of yours on each template",
        judge: domain_openai,
    },
    Rule {
        id: "widgets/permissions",
        demand: "permissions are objects, such as `{\"clipboardWrite\": {}}`",
        weights: &[(Apps, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "write an empty object for each permission, not true",
        judge: permissions,
    },
    Rule {
        id: "widgets/eval",
        demand: "no text is run as a script",
        weights: &[(Apps, Warning), (Submission, Warning)],
        source: owner(APPS, "2026-01-26"),
        fix: "build without `eval` and `new Function`; no host allows them",
        judge: html::eval,
    },
    Rule {
        id: "widgets/sandbox",
        demand: "nothing is called that the sandbox forbids",
        weights: &[(Apps, Note)],
        source: several(
            "dialogs do nothing, and stored data is lost between mounts",
            "2026-11-15",
        ),
        fix: "show messages in the widget, and keep state on the server or in the host's widget state",
        judge: html::sandbox,
    },
    Rule {
        id: "widgets/size",
        demand: "a template has at most a megabyte",
        weights: &[(Apps, Note), (Submission, Note)],
        source: ours("a megabyte; no host publishes a limit", "2026-11-15"),
        fix: "leave out fonts, maps and unused code",
        judge: html::size,
    },
    Rule {
        id: "widgets/declared",
        demand: "a server with widgets declares the extension `io.modelcontextprotocol/ui`",
        weights: &[(Apps, Note)],
        source: owner(APPS, "2026-01-26"),
        fix: "add it to `capabilities.extensions`",
        judge: declared,
    },
    Rule {
        id: "widgets/mounted-csp",
        demand: "a mounted widget breaks nothing of the policy that its host puts on it",
        weights: &[(Apps, Error), (Submission, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "declare the origin in both CSP keys, or build without what is forbidden; no host allows `eval`",
        judge: mounted::csp,
    },
    Rule {
        id: "widgets/mounted-handshake",
        demand: "a mounted widget greets its host with `ui/initialize`, then `ui/notifications/initialized`",
        weights: &[(Apps, Error), (Submission, Error)],
        source: owner(APPS, "2026-01-26"),
        fix: "connect the bridge when the document is loaded; hosts send nothing before",
        judge: mounted::handshake,
    },
    Rule {
        id: "widgets/mounted-errors",
        demand: "a mounted widget reports no error",
        weights: &[(Apps, Warning), (Submission, Warning)],
        source: ours(
            "what the console says of a widget that got a real result",
            "2026-11-15",
        ),
        fix: "open the widget with `docent preview` and look at the browser's console",
        judge: mounted::errors,
    },
    Rule {
        id: "widgets/mounted-network",
        demand: "a mounted widget gets everything over the bridge and asks no other address",
        weights: &[(Apps, Note), (Submission, Warning)],
        source: several(
            "each domain is asked about in review, and addresses leak what the user looks at",
            "2026-11-15",
        ),
        fix: "put scripts and pictures into the document, and let tools bring the data",
        judge: mounted::network,
    },
];

const NO_WIDGETS: Verdict = Verdict::Skipped("there are no widgets");

/// What is wrong with each widget that could be read.
fn of_widgets(seen: &Seen, judge: impl Fn(&Widget, &Value) -> Option<Fault>) -> Verdict {
    if seen.widgets.is_empty() {
        return NO_WIDGETS;
    }
    let faults = seen
        .widgets
        .iter()
        .filter_map(|widget| judge(widget, widget.contents()?));
    Verdict::Judged(faults.collect())
}

/// What is wrong with each tool that has a template.
fn of_shown(
    seen: &Seen,
    judge: impl Fn(&Value, &[(&'static str, String)]) -> Option<Fault>,
) -> Verdict {
    let shown: Vec<_> = seen
        .tools
        .iter()
        .map(|tool| (tool, templates(tool)))
        .filter(|(_, named)| !named.is_empty())
        .collect();
    if shown.is_empty() {
        return Verdict::Skipped("no tool has a template");
    }
    Verdict::Judged(
        shown
            .into_iter()
            .filter_map(|(tool, named)| judge(tool, &named))
            .collect(),
    )
}

fn template_exists(seen: &Seen) -> Verdict {
    let named: Vec<&Widget> = seen
        .widgets
        .iter()
        .filter(|widget| !widget.tools.is_empty())
        .collect();
    if named.is_empty() {
        return Verdict::Skipped("no tool has a template");
    }
    let missing = named
        .into_iter()
        .filter(|widget| widget.contents().is_none() && !widget.read.is_unsent());
    Verdict::Judged(
        missing
            .map(|widget| {
                Fault::new(format!(
                    "`{}`, named by `{}`, cannot be read",
                    widget.uri,
                    widget.tools.join("`, `")
                ))
                .from(&widget.read)
            })
            .collect(),
    )
}

fn uri(seen: &Seen) -> Verdict {
    of_shown(seen, |tool, named| {
        let (key, uri) = named.iter().find(|(_, uri)| !uri.starts_with("ui://"))?;
        Some(
            Fault::new(format!(
                "`{key}` of `{}` does not begin with `ui://`",
                name(tool)
            ))
            .seen(uri),
        )
    })
}

fn both_keys(seen: &Seen) -> Verdict {
    of_shown(seen, |tool, named| {
        let find = |wanted: &str| {
            named
                .iter()
                .find(|(key, _)| *key == wanted)
                .map(|(_, uri)| uri)
        };
        let (standard, openai) = (find("ui.resourceUri"), find("openai/outputTemplate"));
        let what = match (standard, openai) {
            (Some(standard), Some(openai)) if standard != openai => "names two templates",
            (None, _) => "names its template under an old key only",
            _ => return None,
        };
        Some(
            Fault::new(format!("the tool `{}` {what}", name(tool)))
                .seen(tool.get("_meta").unwrap_or(&Value::Null)),
        )
    })
}

fn own_tool(seen: &Seen) -> Verdict {
    of_shown(seen, |tool, named| {
        let data = ["search", "fetch"].contains(&name(tool).as_str());
        data.then(|| {
            Fault::new(format!(
                "`{}` has a template, so every call mounts a widget",
                name(tool)
            ))
            .seen(&format!("{named:?}"))
        })
    })
}

fn mime(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, contents| {
        let found = contents
            .get("mimeType")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let plain: String = found.split_whitespace().collect();
        if plain.eq_ignore_ascii_case(MIME) {
            return None;
        }
        let fault =
            Fault::new(format!("`{}` has the type `{found}`", widget.uri)).from(&widget.read);
        // The spelling of 2025, which ChatGPT may still mount.
        Some(if plain == "text/html+skybridge" {
            fault.at_most(Warning)
        } else {
            fault
        })
    })
}

fn html_document(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, _| {
        let html = widget.html().unwrap_or_default();
        let start: String = html
            .trim_start()
            .chars()
            .take(200)
            .collect::<String>()
            .to_ascii_lowercase();
        let good = start.starts_with("<!doctype html") || start.contains("<html");
        (!good)
            .then(|| Fault::new(format!("`{}` is no HTML document", widget.uri)).from(&widget.read))
    })
}

/// The origin that Claude gives a connector's widgets: a hash of its address.
pub(super) fn claude_domain(url: &str) -> String {
    let digest = Sha256::digest(url.as_bytes());
    let hex: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{hex}.claudemcpcontent.com")
}

fn domain_claude(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, _| {
        let domain = widget.meta(&["ui", "domain"])?.as_str().unwrap_or_default();
        let wanted = claude_domain(seen.url.as_deref().unwrap_or_default());
        let bare = domain.trim_start_matches("https://");
        (bare != wanted).then(|| {
            Fault::new(format!(
                "`ui.domain` of `{}` is `{domain}`; Claude renders only `{wanted}`",
                widget.uri
            ))
            .seen(&domain)
        })
    })
}

fn domain_openai(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, contents| {
        let keys: [&[&str]; 2] = [&["openai/widgetDomain"], &["ui", "domain"]];
        let named = keys
            .into_iter()
            .find_map(|path| widget.meta(path))
            .and_then(Value::as_str);
        let missing = named.is_none_or(str::is_empty);
        missing.then(|| {
            Fault::new(format!("`{}` names no domain", widget.uri))
                .seen(contents.get("_meta").unwrap_or(&Value::Null))
        })
    })
}

fn permissions(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, _| {
        let found = widget.meta(&["ui", "permissions"])?;
        let good = found
            .as_object()
            .is_some_and(|all| all.values().all(Value::is_object));
        (!good).then(|| {
            Fault::new(format!(
                "the permissions of `{}` are not objects",
                widget.uri
            ))
            .seen(found)
        })
    })
}

fn declared(seen: &Seen) -> Verdict {
    if seen.widgets.is_empty() {
        return NO_WIDGETS;
    }
    let path = ["capabilities", "extensions", "io.modelcontextprotocol/ui"];
    let missing = within(&seen.hello, &path).is_none();
    Verdict::one(missing.then(|| {
        Fault::new("the extension `io.modelcontextprotocol/ui` is not declared")
            .seen(seen.hello.get("capabilities").unwrap_or(&Value::Null))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_the_one_that_claude_computes() {
        assert_eq!(
            claude_domain("https://example.com/mcp"),
            "c3d80a4ed901ee05b21755a88273b4a4.claudemcpcontent.com"
        );
    }
}
