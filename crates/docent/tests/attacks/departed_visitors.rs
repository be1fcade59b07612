//! Visitors who hang up before they are answered: what they set going is still counted, so none of them makes room for
//! another.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use crate::browser::form;
use crate::process::{Dir, until};
use crate::upstream_mix_up::{SLOW_CODE, World};

/// Requests to one page of sign-in that are worked on at once.
const MAX_VISITS: usize = 64;
const ROUNDS: usize = 8;
const EACH: usize = 32;

#[test]
fn answers_of_a_provider_whose_browser_left_are_bounded() {
    let dir = Dir::small();
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
        // Time for more questions to be on their way.
        std::thread::sleep(Duration::from_millis(50));
        drop(sent);
    }
    assert_eq!(world.browser.get("/healthz", "").status, 200);
    assert_eq!(world.browser.ask(&world.client).status, 200);
    let quiet = until(|| (world.provider.at_once() == 0).then_some(()));
    assert!(quiet.is_some());
    let most = world.provider.most_at_once();
    assert!(most > 1 && most <= MAX_VISITS, "{most} questions at once");
}
