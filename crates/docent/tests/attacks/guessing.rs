//! Guesses at one password, with guesses at many other names in between to make the server forget the first.

use crate::browser::Browser;
use crate::process::{Dir, Server};

/// Wrong passwords in a row before a name has to wait.
const AT_ONCE: usize = 10;
const OTHERS: usize = 60;

#[test]
fn guesses_at_other_names_win_back_none_at_the_first() {
    let dir = Dir::small();
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let server = Server::start(&dir, &["docs", "--auth", "password", "--no-watch"]);
    let browser = Browser {
        address: server.address.clone(),
    };
    let page = browser.ask(&browser.register());
    let guess = |name: &str, password: &str| {
        let got = browser.answer(&page, &[("name", name), ("password", password)]);
        got.status
    };
    for n in 0..AT_ONCE {
        assert_eq!(guess("anna", "wrong words"), 403, "guess {n}");
    }
    assert_eq!(guess("anna", "wrong words"), 429);
    // Some of them by other spellings of the same name, which are other names.
    for n in 0..OTHERS {
        let name = if n % 2 == 0 { "user" } else { "anna" };
        assert_eq!(
            guess(&format!("{name}{n}"), "wrong words"),
            403,
            "{name}{n}"
        );
    }
    // Thirty seconds win back one guess; this took fewer, or a few more on a slow machine.
    let left = (0..AT_ONCE).filter(|_| guess("anna", "wrong words") == 403);
    assert!(left.count() < AT_ONCE / 2, "the count was kept");
    let right = added.stdout.trim();
    assert_eq!(guess("anna", right), 429, "the right password waits too");
}
