//! Tampering with signed links: a genuine link opens its own document until its expiry, and no altered link opens
//! anything.

use serde_json::json;
use url::Url;

use crate::browser::Browser;
use crate::process::{ServerProcess, TestDir, until};

/// The signed link that an authenticated caller gets for a document.
fn link(browser: &Browser, token: &str, id: &str) -> Url {
    let headers = format!("Authorization: Bearer {token}\r\n");
    let call = json!({"name": "fetch", "arguments": {"id": id}});
    let url = until(|| {
        let got = browser.rpc("/mcp", &headers, "tools/call", &call).json();
        let url = &got["result"]["structuredContent"]["url"];
        url.as_str().map(str::to_owned)
    });
    Url::parse(&url.unwrap()).unwrap()
}

fn value(url: &Url, name: &str) -> String {
    let mut pairs = url.query_pairs();
    pairs.find(|(key, _)| key == name).unwrap().1.into_owned()
}

#[test]
fn a_link_with_any_part_changed_opens_nothing() {
    let dir = TestDir::small();
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let public = ["--public-url", "https://docs.example.org"];
    let server = ServerProcess::start(
        &dir,
        &[
            "docs",
            "--auth",
            "password",
            "--no-watch",
            public[0],
            public[1],
        ],
    );
    let browser = Browser {
        address: server.address.clone(),
    };
    let client = browser.register();
    let page = browser.authorize(&client);
    let password = added.stdout.trim();
    let answer = browser.submit_consent(&page, &[("name", "anna"), ("password", password)]);
    let tokens = browser
        .redeem(&client, &answer.redirect_parameter("code"))
        .json();
    let token = tokens["access_token"].as_str().unwrap();

    let (one, other) = (
        link(&browser, token, "slate.txt"),
        link(&browser, token, "ferry.md"),
    );
    let (path, exp, sig) = (one.path(), value(&one, "exp"), value(&one, "sig"));
    let other_sig = value(&other, "sig");
    assert_eq!(exp, value(&other, "exp"), "both end at one midnight");
    let later = (exp.parse::<u64>().unwrap() + 86_400).to_string();
    let opens = |target: &str| {
        let got = browser.get(target, "");
        let shown = got.body.contains("Slate is mined") || got.body.contains("The ferry sails");
        assert_eq!(got.status == 200, shown, "{target}: {}", got.status);
        shown
    };
    for good in [
        format!("{path}?exp={exp}&sig={sig}"),
        format!("{path}?sig={sig}&exp={exp}"),
        format!("{path}?p=1&exp={exp}&sig={sig}&x=y"),
        format!("{}?exp={exp}&sig={other_sig}", other.path()),
    ] {
        assert!(opens(&good), "{good}");
    }
    for bad in changed(&one, &other, &later) {
        assert!(!opens(&bad), "{bad}");
    }
    // A forged `X-Forwarded-Host` is not reflected in the page.
    let elsewhere = browser.get(
        &format!("{path}?exp={exp}&sig={sig}"),
        "X-Forwarded-Host: evil.example\r\n",
    );
    assert!(!elsewhere.body.contains("evil.example"));
}

/// Altered forms of a genuine link, none of which may open a document.
fn changed(one: &Url, other: &Url, later: &str) -> Vec<String> {
    let (path, exp, sig) = (one.path(), value(one, "exp"), value(one, "sig"));
    let other_sig = value(other, "sig");
    let flipped = sig.replacen(|c: char| c.is_ascii_lowercase(), "A", 1);
    let mut bad = vec![
        path.to_owned(),
        format!("{path}?exp={exp}"),
        format!("{path}?sig={sig}"),
    ];
    for (e, s) in [
        // Another expiry, the signature of another document, truncated and extended signatures.
        (later, sig.as_str()),
        ("18446744073709551615", &sig),
        ("-1", &sig),
        ("1e12", &sig),
        (&format!("0{exp}"), &sig),
        (&format!("%2B{exp}"), &sig),
        (&format!("{exp}%20"), &sig),
        (&format!("{exp}%00"), &sig),
        (&exp, &other_sig),
        (&exp, &flipped),
        (&exp, &sig[..sig.len() - 1]),
        (&exp, &sig[1..]),
        (&exp, &format!("{sig}A")),
        (&exp, &format!("{sig}%3D")),
        (&exp, &format!("{sig}{sig}")),
        (&exp, &sig.to_ascii_uppercase()),
        (&exp, &sig.to_ascii_lowercase()),
        (&sig, &exp),
        // Duplicate parameters, whichever of them is valid.
        (&exp, &format!("{sig}&sig={sig}")),
        (&exp, &format!("{sig}&sig={other_sig}")),
        (&exp, &format!("{other_sig}&sig={sig}")),
        (later, &format!("{sig}&exp={exp}")),
        (&exp, &format!("{sig}&exp={later}")),
    ] {
        bad.push(format!("{path}?exp={e}&sig={s}"));
    }
    bad.extend([
        format!("{}?exp={exp}&sig={sig}", other.path()),
        format!("{path}?EXP={exp}&SIG={sig}"),
        format!("{path}?exp[]={exp}&sig[]={sig}"),
        format!("{path};exp={exp};sig={sig}"),
        format!("{path}#exp={exp}&sig={sig}"),
        format!("{}?exp={exp}&sig={sig}", path.to_ascii_uppercase()),
        format!("{path}/?exp={exp}&sig={sig}"),
        format!("{path}%00?exp={exp}&sig={sig}"),
        format!("/d/../d/ferry.md?exp={exp}&sig={sig}"),
    ]);
    bad
}
