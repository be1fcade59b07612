//! Rules about widgets: how their templates are declared, served and restricted by a CSP. They are judged by static
//! analysis and, with `--browser`, by what happened when a browser mounted them.

mod csp;
mod html;
mod mounted;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    Apps, ChatGpt, CheckRule, Claude, Error, Note, RuleVerdict, RuleViolation, ServerSurvey,
    Submission, Warning, at_path, corroborated, name, official, own_measure,
};
use crate::survey::{SurveyedWidget, templates};

const APPS: &str = "MCP Apps specification 2026-01-26";
const OPENAI_UI: &str = "OpenAI, plugins/build/chatgpt-ui";
const MIME: &str = "text/html;profile=mcp-app";

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "widgets/template-exists",
        requirement: "a template that a tool names can be read",
        severities: &[
            (Apps, Error),
            (ChatGpt, Error),
            (Claude, Error),
            (Submission, Error),
        ],
        source: official(APPS, "2026-01-26"),
        fix: "answer `resources/read` for the address that the tool names",
        evaluate: template_exists,
    },
    CheckRule {
        id: "widgets/uri",
        requirement: "the address of a template begins with `ui://`",
        severities: &[(Apps, Error), (Submission, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "name it such as `ui://results/v1.html`; a new version needs a new name",
        evaluate: uri,
    },
    CheckRule {
        id: "widgets/both-keys",
        requirement: "a tool names its template in `_meta.ui.resourceUri` and in `openai/outputTemplate` alike",
        severities: &[(Apps, Warning)],
        source: official(OPENAI_UI, "2026-11-15"),
        fix: "set `_meta.ui.resourceUri`; if `openai/outputTemplate` is there, make it the same",
        evaluate: both_keys,
    },
    CheckRule {
        id: "widgets/own-tool",
        requirement: "templates belong to tools that display results, not to `search` and `fetch`",
        severities: &[(Apps, Warning)],
        source: official(OPENAI_UI, "2026-11-15"),
        fix: "add a tool that shows results by their ids, and give it the template",
        evaluate: own_tool,
    },
    CheckRule {
        id: "widgets/mime",
        requirement: "a template has the type `text/html;profile=mcp-app`",
        severities: &[(Apps, Error), (Submission, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "set `mimeType` to exactly that, in `resources/list` and in `resources/read`",
        evaluate: mime,
    },
    CheckRule {
        id: "widgets/html",
        requirement: "a template is one whole HTML document",
        severities: &[(Apps, Error), (Submission, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "return `text` that begins with `<!doctype html>`",
        evaluate: html_document,
    },
    CheckRule {
        id: "widgets/inline",
        requirement: "scripts and styles are inside the document",
        severities: &[(Apps, Warning), (Submission, Warning)],
        source: corroborated(
            "modules from a CDN fail in Claude, and each domain is asked about in review",
            "2026-11-15",
        ),
        fix: "build one file with everything in it; images as data addresses",
        evaluate: html::inline,
    },
    CheckRule {
        id: "widgets/csp-covers",
        requirement: "every other origin that the document loads from is in its CSP",
        severities: &[(Apps, Error), (Submission, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "list the origin in `_meta.ui.csp.resourceDomains` or `connectDomains`, or load nothing",
        evaluate: html::csp_covers,
    },
    CheckRule {
        id: "widgets/csp-form",
        requirement: "the CSP holds lists of origins, under the member names of its key",
        severities: &[(Apps, Error), (Submission, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "write `connectDomains`, `resourceDomains` … in `_meta.ui.csp`, and `connect_domains`, `resource_domains` … in `openai/widgetCSP`",
        evaluate: csp::csp_form,
    },
    CheckRule {
        id: "widgets/csp-both-keys",
        requirement: "a CSP is declared in both `_meta.ui.csp` and `openai/widgetCSP`",
        severities: &[(Apps, Warning), (Submission, Warning)],
        source: corroborated(
            "PostHog#69612 and transcriptor-mcp#35 saw ChatGPT read one key, redmine-mcp-server#249 the other",
            "2026-11-15",
        ),
        fix: "declare it under both keys, on the item that `resources/read` returns",
        evaluate: csp::csp_both_keys,
    },
    CheckRule {
        id: "widgets/meta-on-contents",
        requirement: "the CSP is on the item that `resources/read` returns, not only in `resources/list`",
        severities: &[(Apps, Error), (Submission, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "put `_meta` on the item in `contents`",
        evaluate: csp::meta_on_contents,
    },
    CheckRule {
        id: "widgets/frames",
        requirement: "a widget embeds no other pages",
        severities: &[(Apps, Note), (Submission, Warning)],
        source: official(OPENAI_UI, "2026-11-15"),
        fix: "leave out `frameDomains`; Claude restricts it and OpenAI reviews it by hand",
        evaluate: csp::frames,
    },
    CheckRule {
        id: "widgets/domain-claude",
        requirement: "`_meta.ui.domain` is the one that Claude computes, or absent",
        severities: &[(Claude, Error), (Apps, Error)],
        source: official("Claude, mcp-apps/troubleshooting", "2026-11-15"),
        fix: "leave `ui.domain` out, and tell ChatGPT the domain in `openai/widgetDomain`",
        evaluate: domain_claude,
    },
    CheckRule {
        id: "widgets/domain-openai",
        requirement: "a widget that is submitted names a domain of its own",
        severities: &[(Submission, Error)],
        source: official("OpenAI, plugins submission", "2026-11-15"),
        fix: "set `openai/widgetDomain` to an https address of yours on each template",
        evaluate: domain_openai,
    },
    CheckRule {
        id: "widgets/permissions",
        requirement: "permissions are objects, such as `{\"clipboardWrite\": {}}`",
        severities: &[(Apps, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "write an empty object for each permission, not true",
        evaluate: permissions,
    },
    CheckRule {
        id: "widgets/eval",
        requirement: "no string is evaluated as code",
        severities: &[(Apps, Warning), (Submission, Warning)],
        source: official(APPS, "2026-01-26"),
        fix: "build without `eval` and `new Function`; no host allows them",
        evaluate: html::eval,
    },
    CheckRule {
        id: "widgets/sandbox",
        requirement: "nothing is called that the sandbox forbids",
        severities: &[(Apps, Note)],
        source: corroborated(
            "dialogs do nothing, and stored data is lost between mounts",
            "2026-11-15",
        ),
        fix: "show messages in the widget, and keep state on the server or in the host's widget state",
        evaluate: html::sandbox,
    },
    CheckRule {
        id: "widgets/size",
        requirement: "a template has at most a megabyte",
        severities: &[(Apps, Note), (Submission, Note)],
        source: own_measure("a megabyte; no host publishes a limit", "2026-11-15"),
        fix: "leave out fonts, maps and unused code",
        evaluate: html::size,
    },
    CheckRule {
        id: "widgets/declared",
        requirement: "a server with widgets declares the extension `io.modelcontextprotocol/ui`",
        severities: &[(Apps, Note)],
        source: official(APPS, "2026-01-26"),
        fix: "add it to `capabilities.extensions`",
        evaluate: declared,
    },
    CheckRule {
        id: "widgets/mounted-csp",
        requirement: "a mounted widget does not violate the CSP that its host applies",
        severities: &[(Apps, Error), (Submission, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "declare the origin in both CSP keys, or build without what is forbidden; no host allows `eval`",
        evaluate: mounted::csp,
    },
    CheckRule {
        id: "widgets/mounted-handshake",
        requirement: "a mounted widget greets its host with `ui/initialize`, then `ui/notifications/initialized`",
        severities: &[(Apps, Error), (Submission, Error)],
        source: official(APPS, "2026-01-26"),
        fix: "connect the bridge when the document is loaded; hosts send nothing before",
        evaluate: mounted::handshake,
    },
    CheckRule {
        id: "widgets/mounted-errors",
        requirement: "a mounted widget reports no error",
        severities: &[(Apps, Warning), (Submission, Warning)],
        source: own_measure(
            "what the console says of a widget that got a real result",
            "2026-11-15",
        ),
        fix: "open the widget with `docent preview` and look at the browser's console",
        evaluate: mounted::errors,
    },
    CheckRule {
        id: "widgets/mounted-network",
        requirement: "a mounted widget gets everything over the bridge and requests no other address",
        severities: &[(Apps, Note), (Submission, Warning)],
        source: corroborated(
            "each domain is asked about in review, and addresses leak what the user looks at",
            "2026-11-15",
        ),
        fix: "put scripts and pictures into the document, and let tools bring the data",
        evaluate: mounted::network,
    },
];

const NO_WIDGETS: RuleVerdict = RuleVerdict::Skipped("there are no widgets");

/// Evaluates a rule for each widget that could be read.
fn for_each_widget(
    survey: &ServerSurvey,
    judge: impl Fn(&SurveyedWidget, &Value) -> Option<RuleViolation>,
) -> RuleVerdict {
    if survey.widgets.is_empty() {
        return NO_WIDGETS;
    }
    let faults = survey
        .widgets
        .iter()
        .filter_map(|widget| judge(widget, widget.contents()?));
    RuleVerdict::Evaluated(faults.collect())
}

/// Evaluates a rule for each tool that names a template.
fn for_each_template_tool(
    survey: &ServerSurvey,
    judge: impl Fn(&Value, &[(&'static str, String)]) -> Option<RuleViolation>,
) -> RuleVerdict {
    let shown: Vec<_> = survey
        .tools
        .iter()
        .map(|tool| (tool, templates(tool)))
        .filter(|(_, named)| !named.is_empty())
        .collect();
    if shown.is_empty() {
        return RuleVerdict::Skipped("no tool has a template");
    }
    RuleVerdict::Evaluated(
        shown
            .into_iter()
            .filter_map(|(tool, named)| judge(tool, &named))
            .collect(),
    )
}

fn template_exists(survey: &ServerSurvey) -> RuleVerdict {
    let named: Vec<&SurveyedWidget> = survey
        .widgets
        .iter()
        .filter(|widget| !widget.tools.is_empty())
        .collect();
    if named.is_empty() {
        return RuleVerdict::Skipped("no tool has a template");
    }
    let missing = named
        .into_iter()
        .filter(|widget| widget.contents().is_none() && !widget.read.was_not_sent());
    RuleVerdict::Evaluated(
        missing
            .map(|widget| {
                RuleViolation::new(format!(
                    "`{}`, named by `{}`, cannot be read",
                    widget.uri,
                    widget.tools.join("`, `")
                ))
                .with_exchange(&widget.read)
            })
            .collect(),
    )
}

fn uri(survey: &ServerSurvey) -> RuleVerdict {
    for_each_template_tool(survey, |tool, named| {
        let (key, uri) = named.iter().find(|(_, uri)| !uri.starts_with("ui://"))?;
        Some(
            RuleViolation::new(format!(
                "`{key}` of `{}` does not begin with `ui://`",
                name(tool)
            ))
            .with_excerpt(uri),
        )
    })
}

fn both_keys(survey: &ServerSurvey) -> RuleVerdict {
    for_each_template_tool(survey, |tool, named| {
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
            RuleViolation::new(format!("the tool `{}` {what}", name(tool)))
                .with_excerpt(tool.get("_meta").unwrap_or(&Value::Null)),
        )
    })
}

fn own_tool(survey: &ServerSurvey) -> RuleVerdict {
    for_each_template_tool(survey, |tool, named| {
        let data = ["search", "fetch"].contains(&name(tool).as_str());
        data.then(|| {
            RuleViolation::new(format!(
                "`{}` has a template, so every call mounts a widget",
                name(tool)
            ))
            .with_excerpt(&format!("{named:?}"))
        })
    })
}

fn mime(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, contents| {
        let found = contents
            .get("mimeType")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let plain: String = found.split_whitespace().collect();
        if plain.eq_ignore_ascii_case(MIME) {
            return None;
        }
        let fault = RuleViolation::new(format!("`{}` has the type `{found}`", widget.uri))
            .with_exchange(&widget.read);
        // The media type of 2025, which ChatGPT may still mount.
        Some(if plain == "text/html+skybridge" {
            fault.at_most(Warning)
        } else {
            fault
        })
    })
}

fn html_document(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, _| {
        let html = widget.html().unwrap_or_default();
        let start: String = html
            .trim_start()
            .chars()
            .take(200)
            .collect::<String>()
            .to_ascii_lowercase();
        let good = start.starts_with("<!doctype html") || start.contains("<html");
        (!good).then(|| {
            RuleViolation::new(format!("`{}` is no HTML document", widget.uri))
                .with_exchange(&widget.read)
        })
    })
}

/// The domain that Claude gives to the widgets of a connector: a hash of the connector's URL.
pub(super) fn claude_domain(url: &str) -> String {
    let digest = Sha256::digest(url.as_bytes());
    let hex: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{hex}.claudemcpcontent.com")
}

fn domain_claude(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, _| {
        let domain = widget.meta(&["ui", "domain"])?.as_str().unwrap_or_default();
        let wanted = claude_domain(survey.url.as_deref().unwrap_or_default());
        let bare = domain.trim_start_matches("https://");
        (bare != wanted).then(|| {
            RuleViolation::new(format!(
                "`ui.domain` of `{}` is `{domain}`; Claude renders only `{wanted}`",
                widget.uri
            ))
            .with_excerpt(&domain)
        })
    })
}

fn domain_openai(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, contents| {
        let keys: [&[&str]; 2] = [&["openai/widgetDomain"], &["ui", "domain"]];
        let named = keys
            .into_iter()
            .find_map(|path| widget.meta(path))
            .and_then(Value::as_str);
        let missing = named.is_none_or(str::is_empty);
        missing.then(|| {
            RuleViolation::new(format!("`{}` names no domain", widget.uri))
                .with_excerpt(contents.get("_meta").unwrap_or(&Value::Null))
        })
    })
}

fn permissions(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, _| {
        let found = widget.meta(&["ui", "permissions"])?;
        let good = found
            .as_object()
            .is_some_and(|all| all.values().all(Value::is_object));
        (!good).then(|| {
            RuleViolation::new(format!(
                "the permissions of `{}` are not objects",
                widget.uri
            ))
            .with_excerpt(found)
        })
    })
}

fn declared(survey: &ServerSurvey) -> RuleVerdict {
    if survey.widgets.is_empty() {
        return NO_WIDGETS;
    }
    let path = ["capabilities", "extensions", "io.modelcontextprotocol/ui"];
    let missing = at_path(&survey.initialize_result, &path).is_none();
    RuleVerdict::from_option(missing.then(|| {
        RuleViolation::new("the extension `io.modelcontextprotocol/ui` is not declared")
            .with_excerpt(
                survey
                    .initialize_result
                    .get("capabilities")
                    .unwrap_or(&Value::Null),
            )
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
