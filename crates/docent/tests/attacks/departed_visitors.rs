//! Clients that disconnect before the answer: the work that they started still counts against the concurrency limit, so
//! that a disconnect frees no slot early.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use crate::browser::form;
use crate::process::{TestDir, until};
use crate::upstream_mix_up::{SLOW_CODE, World};

/// The concurrency limit of a sign-in page.
const MAX_VISITS: usize = 64;
const ROUNDS: usize = 8;
const EACH: usize = 32;

#[test]
fn answers_of_a_provider_whose_browser_left_are_bounded() {
    let dir = TestDir::small();
    let world = World::start(&dir);
    let trip = world.depart();
    let values = [
        ("code", SLOW_CODE),
        ("state", trip.state.as_str()),
        ("iss", world.provider.name.as_str()),
    ];
    let request = format!(
        "GET /callback?{} HTTP/1.1\r\nHost: {}\r\n{}\r\n",
        form(&values),
        world.browser.address,
        trip.cookie
    );
    for round in 0..ROUNDS {
        let sent: Vec<_> = (0..EACH)
            .map(|_| {
                let mut stream = TcpStream::connect(&world.browser.address).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        if round == 0 {
            let asked = until(|| (world.provider.at_once() > 1).then_some(()));
            assert!(asked.is_some(), "the provider was never asked");
        }
        // Gives further requests to the provider time to start.
        std::thread::sleep(Duration::from_millis(50));
        drop(sent);
    }
    assert_eq!(world.browser.get("/healthz", "").status, 200);
    assert_eq!(world.browser.authorize(&world.client).status, 200);
    let quiet = until(|| (world.provider.at_once() == 0).then_some(()));
    assert!(quiet.is_some());
    let most = world.provider.most_at_once();
    assert!(most > 1 && most <= MAX_VISITS, "{most} questions at once");
}
