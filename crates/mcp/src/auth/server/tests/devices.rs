//! Floods of sign-ins from one network, guesses at one name from all the world, and the browsers that neither may lock
//! out.

use super::*;

const FLOOD: &str = "9.9.9.9";
const ELSEWHERE: &str = "8.8.8.8";
const OTHER: &str = "__Host-docent-device=";

/// A browser, with the cookies that it was given.
struct Browser<'a> {
    world: &'a SignInWorld,
    page: &'a PageReply,
    /// The network that the proxy saw it in.
    network: &'static str,
    device: Option<String>,
}

impl<'a> Browser<'a> {
    const fn new(world: &'a SignInWorld, page: &'a PageReply, network: &'static str) -> Self {
        Self {
            world,
            page,
            network,
            device: None,
        }
    }

    async fn sign_in(&self, name: &str, password: &str) -> PageReply {
        let form = self.page.header("set-cookie").split(';').next().unwrap();
        let cookies = match &self.device {
            Some(device) => format!("{form}; {device}"),
            None => form.to_owned(),
        };
        let (asked, token) = (self.page.hidden("request"), self.page.hidden("token"));
        let values = [
            ("request", asked.as_str()),
            ("token", &token),
            ("name", name),
            ("password", password),
            ("decision", "allow"),
        ];
        let request = Request::post("/authorize")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("origin", ADDRESS)
            .header("sec-fetch-site", "same-origin")
            .header("x-forwarded-for", self.network)
            .header("cookie", cookies);
        self.world.send(request, encoded(&values)).await
    }

    /// Signs in and keeps the device cookie.
    async fn remember(&mut self, name: &str) {
        let got = self.sign_in(name, PASSWORD).await;
        assert_eq!(got.status, 200, "{}", got.body);
        self.device = Some(device(&got));
    }

    /// Guesses until the name has to wait.
    async fn lock(&self, name: &str) {
        for _ in 0..10 {
            assert_eq!(self.sign_in(name, "wrong password").await.status, 403);
        }
        let got = self.sign_in(name, PASSWORD).await;
        assert_eq!(got.status, 429);
        assert!(got.body.contains("wrong passwords for this name"));
    }
}

/// The device cookie that an answer sets.
fn device(got: &PageReply) -> String {
    let set = got.header("set-cookie");
    assert!(set.starts_with(OTHER), "{set}");
    set.split(';').next().unwrap().to_owned()
}

async fn page(world: &SignInWorld) -> PageReply {
    let client = world.client().await;
    world.ask(&world.request(&client)).await
}

fn verifier(world: &SignInWorld) -> &PasswordChecker {
    match &world.server().0.sign_in {
        LoginBackend::Password { verifier, .. } => verifier,
        LoginBackend::Upstream(_) => panic!("passwords are what is tested"),
    }
}

// The clock stands still, so that no token comes back while the flood lasts.
#[tokio::test(start_paused = true)]
async fn a_flood_of_made_up_names_from_one_network_leaves_the_others_their_turn() {
    let world = SignInWorld::new();
    let page = page(&world).await;
    let flood = Browser::new(&world, &page, FLOOD);
    let mut hashed = 0;
    for n in 0..60 {
        let got = flood.sign_in(&format!("u{n}"), "wrong password").await;
        hashed += u32::from(got.status == 403);
        if got.status != 403 {
            assert_eq!(got.status, 429, "{}", got.body);
            assert!(got.header("retry-after").parse::<u64>().unwrap() >= 1);
            assert!(got.body.contains("from your network") && got.body.contains("<form"));
        }
    }
    assert_eq!(hashed, 30);
    // With every turn taken, whoever is over the rate is told so and waits for none.
    let all = verifier(&world).take_all_turns().await;
    assert_eq!(flood.sign_in("anna", PASSWORD).await.status, 429);
    drop(all);
    let got = Browser::new(&world, &page, ELSEWHERE)
        .sign_in("anna", PASSWORD)
        .await;
    assert!(got.sent("code").is_some(), "{}", got.body);
    // Who only cancels, or sends no password, takes nothing.
    let denied = world.answer(&page, &[("decision", "deny")]).await;
    assert_eq!(denied.sent("error").as_deref(), Some("access_denied"));
    assert_eq!(flood.sign_in("anna", "").await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn right_passwords_count_for_the_network_too() {
    let world = SignInWorld::new();
    let page = page(&world).await;
    let insider = Browser::new(&world, &page, FLOOD);
    let mut let_in = 0;
    for _ in 0..45 {
        let_in += u32::from(insider.sign_in("nils", PASSWORD).await.status == 200);
    }
    assert_eq!(let_in, 30);
}

#[tokio::test]
async fn the_cookie_of_a_device_is_kept_from_scripts_and_other_sites_for_a_year() {
    let world = SignInWorld::new();
    let page = page(&world).await;
    let mut browser = Browser::new(&world, &page, ELSEWHERE);
    let got = browser.sign_in("anna", PASSWORD).await;
    let set = got.header("set-cookie").to_owned();
    for part in [
        "; Path=/",
        "; Max-Age=31536000",
        "; HttpOnly",
        "; SameSite=Lax",
        "; Secure",
    ] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("anna"), "{set}");
    browser.device = Some(device(&got));
    // A wrong password sets none.
    let wrong = browser.sign_in("anna", "wrong password").await;
    assert!(!wrong.header("set-cookie").contains("device"));
    // It signs nobody in.
    assert_eq!(browser.sign_in("anna", "").await.status, 403);
}

#[tokio::test]
async fn guesses_elsewhere_do_not_lock_out_a_browser_that_signed_in_before() {
    let world = SignInWorld::new();
    let page = page(&world).await;
    let mut home = Browser::new(&world, &page, ELSEWHERE);
    home.remember("anna").await;
    let attacker = Browser::new(&world, &page, FLOOD);
    attacker.lock("anna").await;
    let got = home.sign_in("anna", PASSWORD).await;
    assert!(got.sent("code").is_some(), "{}", got.body);
    // In any network, and again with the cookie that came back.
    home.network = FLOOD;
    home.device = Some(device(&got));
    assert_eq!(home.sign_in("anna", PASSWORD).await.status, 200);
    // Its own guesses have a bound, too.
    home.lock("anna").await;
}

#[tokio::test]
async fn a_cookie_that_is_not_for_this_name_counts_for_nothing() {
    let world = SignInWorld::new();
    let page = page(&world).await;
    let (mut annas, mut nilss) = (
        Browser::new(&world, &page, ELSEWHERE),
        Browser::new(&world, &page, ELSEWHERE),
    );
    annas.remember("anna").await;
    nilss.remember("nils").await;
    Browser::new(&world, &page, FLOOD).lock("anna").await;
    let good = annas.device.clone().unwrap();
    let last = if good.ends_with('A') { "B" } else { "A" };
    let changed = format!(
        "{}{last}{}",
        &good[..good.len() - 9],
        &good[good.len() - 8..]
    );
    let changed = if changed == good {
        good.replace('A', "B")
    } else {
        changed
    };
    let twice = format!("{good}; {good}");
    for (what, cookie) in [
        ("absent", None),
        ("empty", Some(OTHER.to_owned())),
        ("malformed", Some(format!("{OTHER}x.y.z~~"))),
        ("too long", Some(format!("{OTHER}{}", "x".repeat(4_097)))),
        ("another name's", nilss.device.clone()),
        ("changed", Some(changed)),
        ("twice", Some(twice)),
        ("without its prefix", Some(good.replace("__Host-", ""))),
    ] {
        let mut browser = Browser::new(&world, &page, ELSEWHERE);
        browser.device = cookie;
        let got = browser.sign_in("anna", PASSWORD).await;
        assert_eq!(got.status, 429, "{what}: {}", got.body);
    }
    assert_eq!(annas.sign_in("anna", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn a_device_is_known_across_a_restart_and_until_its_year_is_over() {
    let mut world = SignInWorld::new();
    let first = page(&world).await;
    let mut home = Browser::new(&world, &first, ELSEWHERE);
    home.remember("anna").await;
    let kept = home.device.take();
    world.restart();
    for (passed, status) in [(device::KNOWN_FOR - 1, 200), (1, 429)] {
        world.pass(passed);
        let page = page(&world).await;
        if status == 200 {
            Browser::new(&world, &page, FLOOD).lock("anna").await;
        }
        let mut home = Browser::new(&world, &page, ELSEWHERE);
        home.device.clone_from(&kept);
        assert_eq!(home.sign_in("anna", PASSWORD).await.status, status);
    }
}

#[tokio::test]
async fn people_who_share_a_browser_are_both_known_in_it() {
    let world = SignInWorld::new();
    let page = page(&world).await;
    let mut home = Browser::new(&world, &page, ELSEWHERE);
    home.remember("anna").await;
    home.remember("nils").await;
    let attacker = Browser::new(&world, &page, FLOOD);
    attacker.lock("anna").await;
    attacker.lock("nils").await;
    for name in ["anna", "nils"] {
        assert_eq!(home.sign_in(name, PASSWORD).await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn a_known_browser_signs_in_while_all_the_world_takes_every_turn() {
    let world = SignInWorld::new();
    let page = page(&world).await;
    let mut home = Browser::new(&world, &page, ELSEWHERE);
    home.remember("anna").await;
    let _all = verifier(&world).take_all_turns().await;
    assert_eq!(home.sign_in("anna", PASSWORD).await.status, 200);
}
