//! `docent health`: what a container's health check learns, with the real program on both sides.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::process::{Dir, Server};

#[test]
fn a_living_server_is_well_and_a_ready_one_says_how_far_it_is() {
    let dir = Dir::small();
    let server = Server::start(&dir, &["docs"]);
    server.wait_until_synced();
    let address = format!("http://{}", server.address);
    let ran = dir.run(&["health", &address]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "{\"status\":\"ok\"}\n"),
        "{ran:?}"
    );
    let ran = dir.run(&["health", &format!("{address}/mcp"), "--ready"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("{\"ready\":true"), "{ran:?}");
    // Without an address it asks where the same settings would listen, as in a container.
    let everywhere = server.address.replace("127.0.0.1", "0.0.0.0");
    let mut command = dir.docent(&["health"]);
    let ran = command.env("DOCENT_SERVER_LISTEN", everywhere).output();
    assert_eq!(ran.unwrap().status.code(), Some(0));
}

#[test]
fn nobody_and_strangers_are_not_well() {
    let dir = Dir::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let ran = dir.run(&["health", &format!("http://{nobody}")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("hint: is `docent serve`"), "{ran:?}");
    for (answer, expected) in [
        ("200 OK", "something else than docent answers"),
        ("503 Service Unavailable", "is not ready"),
        ("404 Not Found", "answers with status 404"),
    ] {
        let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = stranger.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = stranger.accept().unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                asked.extend(byte);
            }
            write!(
                stream,
                "HTTP/1.1 {answer}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
            )
            .unwrap();
        });
        let ran = dir.run(&["health", &format!("http://{address}")]);
        serving.join().unwrap();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
    }
}

#[test]
fn a_wait_has_its_bounds_and_an_address_is_one() {
    let dir = Dir::new();
    for args in [
        ["health", "--timeout", "0"],
        ["health", "--timeout", "601"],
        ["health", "nonsense", "--ready"],
    ] {
        assert_eq!(dir.run(&args).code, Some(2), "{args:?}");
    }
}
