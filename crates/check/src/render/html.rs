//! HTML output: one self-contained page without scripts.
//!
//! The page loads nothing, so it can be attached to a build or sent by mail and looks the same offline. Messages and
//! evidence quote an untrusted server, so every text that does not come from our own rule table is escaped.

use super::{WORST_FIRST, evidence, group_by_rule, profile_names, source_line, summary};
use crate::report::{CheckReport, RuleFinding};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
code{font-size:.85em;overflow-wrap:anywhere}article{border-left:4px solid;padding:.2rem 1rem;margin:1rem 0}\
.error{border-color:#c62828}.warning{border-color:#f9a825}.note{border-color:#0277bd}dt{font-weight:600}dd{margin:0 0 .3rem 1rem}";

/// Renders the report as one HTML page. All texts of the server are escaped.
#[must_use]
pub fn html(report: &CheckReport) -> String {
    let names: Vec<&str> = report
        .profiles
        .iter()
        .map(|profile| profile.name())
        .collect();
    let target = escape_markup(&report.target);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>docent check: {target}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n\
         <h1><code>{target}</code></h1>\n<p>Checked as {}. {}.</p>\n<dl>",
        names.join(", "),
        summary(report)
    );
    for (name, value) in &report.facts {
        out.push_str(&format!("<dt>{name}</dt><dd>{}</dd>", escape_markup(value)));
    }
    out.push_str("</dl>\n");
    for (severity, heading) in WORST_FIRST {
        let groups = group_by_rule(report, severity);
        if !groups.is_empty() {
            out.push_str(&format!("<h2>{heading}</h2>\n"));
        }
        for group in groups {
            out.push_str(&article(&group));
        }
    }
    out.push_str("<details><summary>passed</summary><ul>");
    for rule in &report.passed {
        out.push_str(&format!("<li>{rule}</li>"));
    }
    out.push_str("</ul></details>\n<details><summary>skipped</summary><ul>");
    for (rule, reason) in &report.skipped {
        out.push_str(&format!("<li>{rule}: {}</li>", escape_markup(reason)));
    }
    out.push_str("</ul></details>\n</body></html>\n");
    out
}

fn article(group: &[&RuleFinding]) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let mut out = format!(
        "<article class=\"{}\"><h3>{}</h3>",
        first.severity.word(),
        first.rule
    );
    for finding in group {
        out.push_str(&format!("<p>{}</p>", escape_markup(&finding.message)));
    }
    if let Some((sent, received)) = evidence(group) {
        for (label, value) in [("sent", sent), ("received", received)] {
            if !value.is_empty() {
                out.push_str(&format!(
                    "<p>{label}: <code>{}</code></p>",
                    escape_markup(&value)
                ));
            }
        }
    }
    let source = format!("{} ({})", source_line(first.source), profile_names(first));
    out.push_str(&format!(
        "<p><b>Fix:</b> {}</p><p><small>{}</small></p></article>\n",
        escape_markup(first.fix),
        escape_markup(&source)
    ));
    out
}

/// Escapes text for content and attributes of HTML and XML; control characters become U+FFFD, because XML forbids
/// most of them. The checker depends on no other crate of ours, so it has an escaper of its own.
pub(super) fn escape_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}
