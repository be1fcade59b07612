//! Each output format of one small report.
//!
//! The report has several findings of one rule and text with markup in it, so that the tests see the grouping and the
//! escaping of every format. The page of all rules is compared with the rule table.

use super::*;
use crate::profile::CheckProfile;
use crate::report::RuleFinding;
use crate::rule::single_report as one_report;

fn report() -> CheckReport {
    let finding = |severity: Severity, message: &str| RuleFinding {
        rule: "tools/title",
        severity,
        message: message.to_owned(),
        sent: String::new(),
        received: "{\"a\": \"<b>|\"}".to_owned(),
        fix: "give it one",
        source: one_report("a report", "2026-01-01"),
        profiles: vec![CheckProfile::Claude],
    };
    CheckReport {
        target: "https://a.example/mcp".to_owned(),
        profiles: vec![CheckProfile::ChatGpt, CheckProfile::Claude],
        findings: vec![
            finding(Severity::Error, "tool `x` has <none>"),
            finding(Severity::Error, "tool `y`"),
            finding(Severity::Note, "tool `z`"),
        ],
        passed: vec!["tools/name-form"],
        skipped: vec![("transport/get", "no \"http\"")],
        facts: vec![("tools", "2".to_owned())],
        tools: Vec::new(),
        trouble: None,
    }
}

#[test]
fn the_terminal_shows_the_worst_first_and_each_fix_once() {
    let text = terminal(&report(), TerminalStyle::Plain);
    assert_eq!(
        text,
        "https://a.example/mcp as chatgpt, claude\n  tools  2\n\nerrors\n  tools/title\n    tool `x` has <none>\n    tool `y`\n    \
         received: {\"a\": \"<b>|\"}\n    fix:      give it one\n    source:   a report, 2026-01-01; rests on a single report (claude)\n\n\
         notes\n  tools/title\n    tool `z`\n    received: {\"a\": \"<b>|\"}\n    fix:      give it one\n    \
         source:   a report, 2026-01-01; rests on a single report (claude)\n\n2 errors, 0 warnings, 1 note, 1 rule passed, 1 skipped"
    );
    assert!(terminal(&report(), TerminalStyle::Colour).contains("\u{1b}[1;31merrors\u{1b}[0m"));
}

#[test]
fn json_and_sarif_hold_every_finding() {
    let found = json(&report());
    assert_eq!(found["findings"].as_array().unwrap().len(), 3);
    assert_eq!(found["findings"][0]["source"]["basis"], "single report");
    assert_eq!(found["skipped"][0]["rule"], "transport/get");
    let found = sarif(&report());
    let results = found["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    let index = results[0]["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!(
        found["runs"][0]["tool"]["driver"]["rules"][index]["id"],
        "tools/title"
    );
    let program = CheckReport {
        target: "npx a server".to_owned(),
        ..report()
    };
    let found = sarif(&program);
    let uri = &found["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        ["uri"];
    assert_eq!(uri, "stdio:npx%20a%20server");
}

#[test]
fn documents_hold_no_markup_of_the_server() {
    let xml = junit(&report());
    assert!(xml.contains("<failure message=\"tool `x` has &lt;none&gt;\">"));
    assert!(xml.contains("<skipped message=\"no &quot;http&quot;\"/>"));
    assert!(xml.contains("tests=\"3\" failures=\"1\""), "{xml}");
    let page = html(&report());
    assert!(page.contains("tool `x` has &lt;none&gt;") && !page.contains("<none>"));
    let text = markdown(&report());
    assert!(text.contains("- tool `x` has &lt;none>") && text.contains("### tools/title"));
}

#[test]
fn every_rule_is_on_its_page() {
    let page = rules_markdown();
    for rule in crate::rules() {
        assert!(page.contains(&format!("### {}\n", rule.id)), "{}", rule.id);
    }
    assert_eq!(
        rules_json(&CheckProfile::ALL).as_array().unwrap().len(),
        crate::rules().count()
    );
    assert!(rules_text(&[CheckProfile::Claude]).lines().count() > 20);
}
