//! Static analysis of widgets: documents that only look as if they loaded something, and those that do.

use std::path::PathBuf;

use docent_check::{CheckReport, CheckTarget, Severity, check};

use crate::broken::{Broken, greeting, mounted};

/// What bundles of zod, React, Ajv, D3 and pdf.js contain: URLs that nothing loads, and feature tests for `eval`.
const INNOCENT: &str = r##"<style>@namespace svg url(http://www.w3.org/2000/svg); /* url(https://comment.example/x.png) */
  b { background: url("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>") }</style>
<svg xmlns="http://www.w3.org/2000/svg"></svg><a href="https://link.example/">more</a>
<script type="application/ld+json">{"@context": "https://schema.org/", "image": "https://data.example/x.png"}</script>
<script type="application/json">{"$schema": "https://schema.example/x", "load": "fetch('https://data.example/')"}</script>
<script>
  // import "https://comment.example/x.js"
  const checkIp = (value) => { try { new URL(`http://[${value}]`); return true; } catch { return false; } };
  const schema = { $schema: "http://json-schema.org/draft-07/schema#", $id: "https://schema.example/id" };
  const message = 'see https://docs.example/ and fetch("https://docs.example/") or @import "https://docs.example/x.css"';
  const canRun = () => { try { const F = Function; new F(""); return true; } catch { return false; } };
  const canCompile = (() => { try { return new Function(""), !0 } catch { return !1 } })();
  const base = (host) => new URL("https://base.example/", `https://${host}/x`);
  checkIp("::1"); canRun();
  const link = /^https?:\/\/regex\.example\/fetch\('https:\/\/regex\.example\/'\)/i, half = 4 / 2 / 1;
  const markup = `<img src="https://template.example/${link.source}"><script src='https://template.example/x.js'>`;
  let kept = null; try { kept = localStorage.getItem("kept"); } catch { kept = null; }
  /*! @license MIT, see https://licence.example/ and import("https://licence.example/x.js") */
  !function(e,t){"use strict";var n={svg:"http://www.w3.org/2000/svg",xlink:"http://www.w3.org/1999/xlink"},r=/["'`]/g,i=e=>e?`https://${e}/`:"";t.x=n,t.y=r,t.z=i}(window,{});
  function mayRun() { return new Function("return 1")() } let may = false; try { may = mayRun() === 1 } catch {}
  class Server { prompt(name) { return name } confirm(x) { return x } #fetch(u) { return u } go() { return this.#fetch("https://private.example/") } }
  const worker = () => new URL("https://worker.example/w.js", import_meta_url); const import_meta_url = "https://meta.example/";
  const names = ["https://json-schema.org/draft/2020-12/schema", "http://www.w3.org/1998/Math/MathML"];
//# sourceMappingURL=https://maps.example/app.js.map
</script>
<img alt="" srcset="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=,//comma.example 1x"></body>"##;

/// Documents with one URL that is loaded together with the document.
const GUILTY: [&str; 10] = [
    "<script src=https://cdn.example/x.js></script></body>",
    "<img src='https://cdn.example/x.png'></body>",
    "<style>b{background:url(//cdn.example/x.png)}</style></body>",
    "<script>fetch(`https://cdn.example/v1?${Date.now()}`)</script></body>",
    "<script>!function(e){e.fetch('https://cdn.example/v1')}(window),window.fetch(\"https://cdn.example/v2\")</script></body>",
    "<script type=module>import\"https://cdn.example/m.js\"</script></body>",
    "<script>try{fetch('https://cdn.example/v1')}catch{}</script></body>",
    "<script type=module>async function load(){return fetch('https://cdn.example/v1')}\nawait load()</script></body>",
    "<script>(async()=>{const r=await fetch('https://cdn.example/v1')})();</script></body>",
    "<script>/[/'\"]/.test('');new WebSocket('wss://cdn.example/')</script></body>",
];

/// URLs in functions that nothing calls, in a font that no text uses and in an event handler: static analysis can only
/// say that they may be loaded.
const DEFERRED: [&str; 5] = [
    "<script type=module>async function discover(){return fetch('https://may.example/x')}</script></body>",
    "<script>async function report(e){try{await fetch('https://may.example/x')}catch{}}if(false)report(1)</script></body>",
    "<script>const lazy=()=>import('https://may.example/x.js');</script></body>",
    "<style>@font-face{font-family:x;src:local('x'),url(https://may.example/x.woff2)}</style></body>",
    "<button onclick=\"fetch('https://may.example/x')\">x</button></body>",
];

/// A request behind a condition that is never true.
const DEAD: &str =
    "<script>if (location.hash === '#never') fetch('https://dead.example/v1');</script></body>";

/// Says where the browser's program is. Where it is set, the program has to be there; `./test` sets it.
const VARIABLE: &str = "TEST_CHROMIUM";

/// A browser of this machine, where there is one.
pub(crate) fn browser() -> Option<PathBuf> {
    let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return docent_check::find_browser();
    };
    assert!(
        path.is_file(),
        "`{VARIABLE}` names no file: `{}`; run conformance/browser/setup",
        path.display()
    );
    Some(path)
}

fn checked(broken: &Broken) -> CheckReport {
    let server = broken.serve();
    check(
        &CheckTarget::Url(server.url.clone()),
        &broken.options,
        &|_| {},
    )
}

fn found(report: &CheckReport) -> Vec<(&'static str, Severity)> {
    let found = report.findings.iter();
    found
        .map(|finding| (finding.rule, finding.severity))
        .collect()
}

#[test]
fn addresses_that_nothing_loads_are_no_finding() {
    assert_eq!(checked(&greeting(INNOCENT)).findings, []);
}

#[test]
fn loads_outside_of_the_content_policy_are_errors() {
    for html in GUILTY {
        let report = checked(&greeting(html));
        let wanted = ("widgets/csp-covers", Severity::Error);
        assert!(found(&report).contains(&wanted), "{html}: {report:?}");
    }
}

#[test]
fn a_literal_request_is_an_error_where_nobody_looked() {
    let report = checked(&greeting(DEAD));
    assert_eq!(found(&report), [("widgets/csp-covers", Severity::Error)]);
}

#[test]
fn deferred_loads_outside_of_the_content_policy_are_warnings() {
    for html in DEFERRED {
        let report = checked(&greeting(html));
        let wanted = ("widgets/csp-covers", Severity::Warning);
        assert_eq!(found(&report), [wanted], "{html}");
        let message = &report.findings[0].message;
        assert!(
            message.contains("may load from `https://may.example`"),
            "{message}"
        );
    }
}

#[test]
fn text_that_may_never_run_is_a_note() {
    for (html, severity) in [
        (
            "<script>new Function('x')()</script></body>",
            Severity::Warning,
        ),
        (
            "<script>const run = (code) => new Function(code)();</script></body>",
            Severity::Note,
        ),
    ] {
        let report = checked(&greeting(html));
        assert_eq!(found(&report), [("widgets/eval", severity)], "{html}");
    }
}

#[test]
fn an_address_that_a_script_assigns_is_a_note() {
    let report = checked(&greeting(
        "<script>const image = new Image(); image.src = 'https://image.example/x.png';</script></body>",
    ));
    assert_eq!(found(&report), [("widgets/csp-covers", Severity::Note)]);
    assert!(
        report.findings[0]
            .message
            .contains("may load from `https://image.example`")
    );
}

/// The requests of the browser decide, not the static analysis.
#[test]
fn a_mounted_widget_is_judged_by_what_it_does() {
    if browser().is_none() {
        return;
    }
    assert_eq!(checked(&mounted(INNOCENT)).findings, []);
    assert_eq!(
        found(&checked(&mounted(DEAD))),
        [("widgets/csp-covers", Severity::Note)]
    );
    let report = checked(&mounted(
        "<script>fetch('https://api.example/v1').catch(() => {})</script></body>",
    ));
    let errors: Vec<_> = found(&report)
        .into_iter()
        .filter(|(_, severity)| *severity == Severity::Error)
        .map(|(rule, _)| rule)
        .collect();
    // One finding of static analysis, and one for each host.
    assert_eq!(
        errors,
        [
            "widgets/csp-covers",
            "widgets/mounted-csp",
            "widgets/mounted-csp"
        ]
    );
}
