//! Password guessing and lockout attacks: guesses at other names must not evict the count of one name, a flood of
//! made-up names must not exhaust the password hashing, and guesses at a name must not lock out its owner.

use std::time::Instant;

use crate::browser::{Browser, HttpReply};
use crate::process::{ServerProcess, TestDir, until};

/// The burst of wrong passwords for one name before its rate limit applies.
const AT_ONCE: usize = 10;
const OTHERS: usize = 60;
/// The token bucket of passwords from one network: burst, and seconds per further one.
const NETWORK_BURST: usize = 30;
const NETWORK_EACH: u64 = 2;

/// Starts a server with one user, and returns the user's password.
fn serve(dir: &TestDir) -> (ServerProcess, Browser, String) {
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let server = ServerProcess::start(dir, &["docs", "--auth", "password", "--no-watch"]);
    let address = server.address.clone();
    (server, Browser { address }, added.stdout.trim().to_owned())
}

/// A browser in a network, with the device cookie of an earlier sign-in or none.
struct Visitor<'a> {
    browser: &'a Browser,
    page: &'a HttpReply,
    network: &'a str,
    device: String,
}

impl Visitor<'_> {
    fn sign_in(&self, name: &str, password: &str) -> HttpReply {
        let hidden = |name: &str| {
            let mark = format!("name=\"{name}\" value=\"");
            let rest = self.page.body.split_once(&mark).unwrap().1;
            rest.split('"').next().unwrap().replace("&amp;", "&")
        };
        let (request, token) = (hidden("request"), hidden("token"));
        let values = [
            ("request", request.as_str()),
            ("token", &token),
            ("decision", "allow"),
            ("name", name),
            ("password", password),
        ];
        let headers = format!(
            "Cookie: {}; {}\r\nX-Forwarded-For: {}\r\n",
            self.page.cookie(),
            self.device,
            self.network
        );
        self.browser.post("/authorize", &values, &headers)
    }
}

#[test]
fn a_flood_of_made_up_names_keeps_no_other_network_from_signing_in() {
    let dir = TestDir::small();
    let (_server, browser, password) = serve(&dir);
    let page = browser.authorize(&browser.register());
    let visitor = |network| Visitor {
        browser: &browser,
        page: &page,
        network,
        device: String::new(),
    };
    let flood = visitor("9.9.9.9");
    let start = Instant::now();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..20)
            .map(|thread| {
                let flood = &flood;
                scope.spawn(move || {
                    let one = |n| flood.sign_in(&format!("u{thread}x{n}"), "wrong words");
                    (0..20).map(|n| one(n).status).collect::<Vec<_>>()
                })
            })
            .collect();
        // Meanwhile a user in another network signs in repeatedly.
        let elsewhere = visitor("8.8.8.8");
        for _ in 0..10 {
            // On a busy machine the queue for hashing may time out (503) before the password is checked.
            let got = until(|| {
                let got = elsewhere.sign_in("anna", &password);
                (got.status != 503).then_some(got)
            });
            let got = got.expect("an answer other than that too many sign in");
            assert_eq!(got.status, 200, "{}", got.body);
        }
        let joined = threads.into_iter().flat_map(|one| one.join().unwrap());
        joined.collect()
    });
    let of = |status: u16| statuses.iter().filter(|found| **found == status).count();
    // The requests that the rate limit admitted, whether or not they were hashed in time.
    let let_in = of(403) + of(503);
    assert_eq!(let_in + of(429), 400, "nothing else: {statuses:?}");
    let more = usize::try_from(start.elapsed().as_secs() / NETWORK_EACH).unwrap() + 1;
    assert!(
        (NETWORK_BURST..=NETWORK_BURST + more).contains(&let_in),
        "{let_in}, and at most {more} more than {NETWORK_BURST}"
    );
}

#[test]
fn guesses_at_a_name_do_not_lock_out_the_browser_of_its_owner() {
    let dir = TestDir::small();
    let (_server, browser, password) = serve(&dir);
    let page = browser.authorize(&browser.register());
    let visitor = |network, device| Visitor {
        browser: &browser,
        page: &page,
        network,
        device,
    };
    let first = visitor("8.8.8.8", String::new()).sign_in("anna", &password);
    let device = first.cookie();
    assert!(device.starts_with("docent-device="), "{}", first.head);
    let stranger = visitor("9.9.9.9", String::new());
    let locked = (0..60).any(|_| stranger.sign_in("anna", "wrong words").status == 429);
    assert!(locked);
    let home = visitor("8.8.8.8", device.clone());
    assert_eq!(home.sign_in("anna", &password).status, 200);
    // The device cookie does not replace the password, and guesses with it have a rate limit of their own.
    let guesses = (0..60).filter(|_| home.sign_in("anna", "wrong words").status == 403);
    assert!((AT_ONCE..AT_ONCE * 2).contains(&guesses.count()));
}

/// The server counts guesses by the name as it was typed, and keeps the count while other names are tried. The rate
/// limits by network bound the number of names that this test can try. That no count is ever evicted is proven without
/// them, with twenty thousand names, by `no_flood_of_names_wins_back_a_guess_at_one` beside the login rate limiter in
/// docent-oauth.
#[test]
fn guesses_at_other_names_win_back_none_at_the_first() {
    let dir = TestDir::small();
    let (_server, browser, right) = serve(&dir);
    let page = browser.authorize(&browser.register());
    let guess = |name: &str, password: &str| {
        let got = browser.submit_consent(&page, &[("name", name), ("password", password)]);
        got.status
    };
    for n in 0..AT_ONCE {
        assert_eq!(guess("anna", "wrong words"), 403, "guess {n}");
    }
    assert_eq!(guess("anna", "wrong words"), 429);
    // Half of them are variations of the first name, which count as other names.
    for n in 0..OTHERS {
        let name = if n % 2 == 0 { "user" } else { "anna" };
        assert_eq!(
            guess(&format!("{name}{n}"), "wrong words"),
            403,
            "{name}{n}"
        );
    }
    // The bucket refills by one guess in thirty seconds; a slow machine may take long enough for a few.
    let left = (0..AT_ONCE).filter(|_| guess("anna", "wrong words") == 403);
    assert!(left.count() < AT_ONCE / 2, "the count was kept");
    assert_eq!(guess("anna", &right), 429, "the right password waits too");
}
