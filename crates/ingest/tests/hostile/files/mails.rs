//! E-mail that is nested deeper or has more parts than any real one.

use super::craft::noise;
use super::{Expect, Hostile};

const HEAD: &str = "From: a@tarnport.example\nDate: Tue, 12 Mar 2024 10:30:00 +0000\nMessage-ID: <1@x>\nSubject: S\n";

pub(super) fn all() -> Vec<Hostile> {
    let refused = Expect::Code("too-much-inside");
    let messages = |count: usize| {
        format!(
            "{HEAD}{}deep",
            "Content-Type: message/rfc822\n\n".repeat(count)
        )
    };
    let empty = format!(
        "{HEAD}Content-Type: multipart/mixed; boundary=b\n\n{}",
        "--b\n\n\n".repeat(100_001)
    );
    let headers = format!("{HEAD}{}\n\ntext", "X: y\n".repeat(1_000_000));
    let lost = format!(
        "{HEAD}{}",
        "Content-Type: multipart/mixed; boundary=\"lost\"\n\n".repeat(999)
    );
    let separators = "From a@x Tue Mar 12 10:30:00 2024\n\n".repeat(60_000);
    let words = "=?utf-8?B?4oCu?=".repeat(100_000);
    let parameters: String = (0..500_000).map(|n| format!("a*{n}=b;")).collect();
    vec![
        Hostile::new(
            "mail-parameters.eml",
            format!("{HEAD}Content-Type: text/plain; {parameters}\n\ntext"),
            refused,
        ),
        Hostile::new(
            "mail-nested-1000.eml",
            messages(1_000),
            Expect::Documents(1),
        ),
        Hostile::new("mail-nested-10000.eml", messages(10_000), refused),
        Hostile::new(
            "mail-multipart-nested.eml",
            multiparts(999),
            Expect::Documents(1),
        ),
        Hostile::new("mail-10000-parts.eml", parts(10_000), refused),
        Hostile::new("mail-empty-parts.eml", empty, refused),
        Hostile::new("mail-headers.eml", headers, Expect::Either),
        Hostile::new(
            "mail-lost-boundaries.eml",
            lost + &"x".repeat(1_000_000),
            Expect::Documents(1),
        ),
        Hostile::new(
            "mail-long-header.eml",
            format!("{HEAD}To: {}\n\ntext", "a@b, ".repeat(200_000)),
            Expect::Documents(1),
        ),
        Hostile::new(
            "mail-words.eml",
            format!("{HEAD}Subject: {words}\n\ntext"),
            Expect::Documents(1),
        ),
        Hostile::new(
            "mail-base64.eml",
            [
                format!("{HEAD}Content-Transfer-Encoding: base64\n\n").into_bytes(),
                noise(100_000, 13),
            ]
            .concat(),
            Expect::Either,
        ),
        Hostile::new(
            "mail-charset.eml",
            format!(
                "{HEAD}Content-Type: text/plain; charset=utf-7\n\n{}",
                "+AGE-".repeat(100_000)
            ),
            Expect::Documents(1),
        ),
        Hostile::new(
            "mailbox-empty-messages.mbox",
            separators,
            Expect::Documents(0),
        ),
    ]
}

fn multiparts(count: usize) -> String {
    let mut out = HEAD.to_owned();
    for number in 0..count {
        out.push_str(&format!(
            "Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n"
        ));
    }
    out + "Content-Type: text/plain\n\ndeep\n"
}

fn parts(count: usize) -> String {
    let part = "--b\nContent-Type: text/plain\n\nx\n".repeat(count);
    format!("{HEAD}Content-Type: multipart/mixed; boundary=b\n\n{part}--b--\n")
}
