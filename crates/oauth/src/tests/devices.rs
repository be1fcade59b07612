//! Login floods from one network, distributed guessing of one user's password, and the device cookies that
//! keep users from being locked out by either.

use super::*;

const FLOOD: &str = "9.9.9.9";
const ELSEWHERE: &str = "8.8.8.8";
const OTHER: &str = "__Host-docent-device=";

/// A browser with its cookies.
struct Browser<'a> {
    world: &'a SignInWorld,
    page: &'a PageReply,
    /// The network from which the proxy forwards its requests.
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
        let (request_query, token) = (self.page.hidden("request"), self.page.hidden("token"));
        let values = [
            ("request", request_query.as_str()),
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

    /// Logs in and keeps the device cookie.
    async fn remember(&mut self, name: &str) {
        let reply = self.sign_in(name, PASSWORD).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        self.device = Some(device(&reply));
    }

    /// Guesses until the user name is rate limited.
    async fn lock(&self, name: &str) {
        for _ in 0..10 {
            assert_eq!(self.sign_in(name, "wrong password").await.status, 403);
        }
        let reply = self.sign_in(name, PASSWORD).await;
        assert_eq!(reply.status, 429);
        assert!(reply.body.contains("wrong passwords for this name"));
    }
}

/// The device cookie that a response sets.
fn device(reply: &PageReply) -> String {
    let set = reply.header("set-cookie");
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

// The clock is paused, so that no bucket refills during the flood.
#[tokio::test(start_paused = true)]
async fn a_flood_of_made_up_names_from_one_network_leaves_the_others_their_turn() {
    let world = SignInWorld::new();
    let page = page(&world).await;
    let flood = Browser::new(&world, &page, FLOOD);
    let mut hashed = 0;
    for n in 0..60 {
        let reply = flood.sign_in(&format!("u{n}"), "wrong password").await;
        hashed += u32::from(reply.status == 403);
        if reply.status != 403 {
            assert_eq!(reply.status, 429, "{}", reply.body);
            assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
            assert!(reply.body.contains("from your network") && reply.body.contains("<form"));
        }
    }
    assert_eq!(hashed, 30);
    // While every hashing slot is taken, a request over the rate limit is refused at once instead of
    // waiting for a slot.
    let all = verifier(&world).take_all_slots().await;
    assert_eq!(flood.sign_in("anna", PASSWORD).await.status, 429);
    drop(all);
    let reply = Browser::new(&world, &page, ELSEWHERE)
        .sign_in("anna", PASSWORD)
        .await;
    assert!(reply.sent("code").is_some(), "{}", reply.body);
    // Cancelling, or sending no password, takes no token.
    let denied = world.submit_form(&page, &[("decision", "deny")]).await;
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
    let reply = browser.sign_in("anna", PASSWORD).await;
    let set = reply.header("set-cookie").to_owned();
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
    browser.device = Some(device(&reply));
    // A wrong password sets no device cookie.
    let wrong = browser.sign_in("anna", "wrong password").await;
    assert!(!wrong.header("set-cookie").contains("device"));
    // The cookie alone logs nobody in.
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
    let reply = home.sign_in("anna", PASSWORD).await;
    assert!(reply.sent("code").is_some(), "{}", reply.body);
    // The exemption holds in any network, and with the renewed cookie.
    home.network = FLOOD;
    home.device = Some(device(&reply));
    assert_eq!(home.sign_in("anna", PASSWORD).await.status, 200);
    // The device has a rate limit of its own, too.
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
        let reply = browser.sign_in("anna", PASSWORD).await;
        assert_eq!(reply.status, 429, "{what}: {}", reply.body);
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
    for (passed, status) in [(device::DEVICE_COOKIE_LIFETIME - 1, 200), (1, 429)] {
        world.advance_clock(passed);
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
    let _all = verifier(&world).take_all_slots().await;
    assert_eq!(home.sign_in("anna", PASSWORD).await.status, 200);
}
