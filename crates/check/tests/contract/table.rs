//! The rule table, rule by rule: each finds its defect, and none has a finding on good servers.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use docent_check::{
    CheckOptions, CheckProfile, CheckReport, CheckRule, CheckTarget, Severity, SourceBasis, check,
    rules,
};

use crate::broken::{Broken, asking, broken, browsed, known_tools, opening, signing_in};

/// Rules that cannot be tested with a server on this machine; each has a unit test in its own file.
const TRIED_ELSEWHERE: [&str; 1] = ["security/https"];

/// Whether a rule is tried here. Those on mounted widgets need a browser, which cannot be missing in `./test`.
fn is_tried(rule: &CheckRule) -> bool {
    let needs_browser = rule.id.starts_with("widgets/mounted-");
    !TRIED_ELSEWHERE.contains(&rule.id) && (!needs_browser || crate::widgets::browser().is_some())
}

fn checked(broken: &Broken) -> CheckReport {
    let server = broken.serve();
    check(&CheckTarget::Url(server.url), &broken.options, &|step| {
        if let Some(url) = step.strip_prefix("sign in at ") {
            browse(url.to_owned());
        }
    })
}

/// Requests a URL and follows its redirects, as the user's browser would.
fn browse(url: String) {
    std::thread::spawn(move || {
        let mut next = Some(url);
        while let Some(url) = next {
            let (host, path) = url
                .strip_prefix("http://")
                .and_then(|rest| rest.split_once('/'))
                .unwrap();
            let mut stream = TcpStream::connect(host).unwrap();
            write!(
                stream,
                "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let location = answer
                .lines()
                .find_map(|line| line.strip_prefix("Location: "));
            next = location.map(str::to_owned);
        }
    });
}

/// Good servers of different kinds; together they give every rule something to evaluate.
fn good() -> Vec<(&'static str, Broken)> {
    let challenge = "Bearer error=\"insufficient_scope\", error_description=\"Sign in\", resource_metadata=\"https://a.example\"";
    vec![
        ("plain", Broken::nothing()),
        ("sessions", Broken::nothing().sessions()),
        ("older", Broken::nothing().legacy_only()),
        (
            "older with sessions",
            Broken::nothing().legacy_only().sessions(),
        ),
        ("sign-in", Broken::nothing().sign_in()),
        (
            "signed in",
            Broken::nothing()
                .sign_in()
                .checked(|options| options.token = Some(crate::good::TOKEN.to_owned())),
        ),
        ("logged in", signing_in(|_, _, reply| reply)),
        (
            "known",
            Broken::nothing().checked(|options| options.baseline = Some(known_tools())),
        ),
        ("opened", opening(200)),
        (
            "slow",
            Broken::nothing().checked(|options| options.slow = true),
        ),
        ("asking", asking(challenge)),
        ("mounted", browsed(Broken::nothing())),
    ]
}

/// Why a rule failed to find its defect; `None` where it found it.
fn missed(rule: &CheckRule) -> Option<String> {
    let Some(broken) = broken(rule.id) else {
        return Some(format!("{} has no broken server", rule.id));
    };
    let report = checked(&broken);
    if report
        .findings
        .iter()
        .any(|finding| finding.rule == rule.id)
    {
        return None;
    }
    if let Some(trouble) = report.trouble {
        return Some(format!("{}: {trouble}", rule.id));
    }
    let skipped = report.skipped.iter().find(|(id, _)| *id == rule.id);
    Some(format!(
        "{} does not find its defect ({skipped:?})",
        rule.id
    ))
}

#[test]
fn every_rule_finds_its_defect() {
    let tried: Vec<&CheckRule> = rules().filter(|rule| is_tried(rule)).collect();
    let missed: Vec<String> = std::thread::scope(|scope| {
        let work = |part: Vec<&'static CheckRule>| {
            scope.spawn(move || part.into_iter().filter_map(missed).collect::<Vec<_>>())
        };
        let parts: Vec<_> = (0..4)
            .map(|at| tried.iter().skip(at).step_by(4).copied().collect())
            .map(work)
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    });
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn good_servers_pass_every_rule() {
    let mut passed = BTreeSet::new();
    for (name, server) in good() {
        let report = checked(&server);
        let found: Vec<String> = report
            .findings
            .iter()
            .map(|finding| {
                format!(
                    "{}: {} ({})",
                    finding.rule, finding.message, finding.received
                )
            })
            .collect();
        assert!(found.is_empty(), "{name}: {}", found.join("\n"));
        passed.extend(report.passed);
    }
    let missed: Vec<&str> = rules()
        .filter(|rule| is_tried(rule) && !passed.contains(rule.id))
        .map(|rule| rule.id)
        .collect();
    assert!(missed.is_empty(), "no good server was judged by {missed:?}");
}

#[test]
fn the_table_is_in_order() {
    let mut ids = BTreeSet::new();
    for rule in rules() {
        assert!(ids.insert(rule.id), "{} stands twice", rule.id);
        let (group, name) = rule.id.split_once('/').unwrap();
        let plain = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        assert!(plain(group) && plain(name), "{}", rule.id);
        assert!(
            !rule.severities.is_empty(),
            "{} is asked by nobody",
            rule.id
        );
        for text in [rule.requirement, rule.fix] {
            assert!(
                !text.is_empty() && !text.ends_with('.'),
                "{}: {text}",
                rule.id
            );
        }
        let parts: Vec<&str> = rule.source.date.split('-').collect();
        assert!(
            parts.len() == 3 && rule.source.date.len() == 10,
            "{}: {}",
            rule.id,
            rule.source.date
        );
        let worst = rule
            .severities
            .iter()
            .map(|(_, severity)| *severity)
            .max()
            .unwrap();
        assert!(
            !matches!(rule.source.basis, SourceBasis::Report | SourceBasis::Ours)
                || worst < Severity::Error,
            "{} rests on one report and is an error",
            rule.id
        );
        let profiles: BTreeSet<_> = rule.severities.iter().map(|(profile, _)| profile).collect();
        assert_eq!(
            profiles.len(),
            rule.severities.len(),
            "{} names a profile twice",
            rule.id
        );
    }
    for profile in CheckProfile::ALL {
        assert!(
            rules().any(|rule| rule
                .severities
                .iter()
                .any(|(required_by, _)| *required_by == profile)),
            "{} asks for nothing",
            profile.name()
        );
    }
}

#[test]
fn the_page_of_rules_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let fresh = docent_check::render::rules_markdown();
    assert!(
        page.trim_end() == fresh.trim_end(),
        "docs/rules.md is old: run `docent check --list-rules --format markdown > docs/rules.md`"
    );
}

#[test]
fn without_profiles_those_are_taken_that_fit() {
    let report =
        |broken: Broken| checked(&broken.checked(|options| options.profiles = Vec::new())).profiles;
    let all = report(Broken::nothing());
    assert!(
        all.contains(&CheckProfile::DeepResearch)
            && all.contains(&CheckProfile::Apps)
            && !all.contains(&CheckProfile::Submission)
    );
    let fewer = report(Broken::tools(|tools| drop(tools.drain(0..3))));
    assert!(!fewer.contains(&CheckProfile::DeepResearch), "{fewer:?}");
    assert!(CheckOptions::default().profiles.is_empty());
}

#[test]
fn a_login_leaves_no_secret_in_the_report() {
    let broken = signing_in(|_, call, reply| {
        if call.method() == "tools/list" {
            reply.coded(500)
        } else {
            reply
        }
    });
    let report = checked(&broken);
    assert!(report.passed.contains(&"auth/login-accepted"), "{report:?}");
    assert!(!report.findings.is_empty());
    for secret in [crate::good::TOKEN, "refresh-1", "code=abc", "code_verifier"] {
        assert!(!format!("{report:?}").contains(secret), "{secret}");
    }
}
